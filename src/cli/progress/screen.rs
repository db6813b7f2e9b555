//! What a terminal shows of a query: the text of its turns as it arrives, a line for each tool call,
//! and below them what is being done.
//!
//! Whether a text is the answer is known only at the end of its turn. Until then, as much of it as
//! the screen holds is live, so that it can become dim if another turn follows.

use std::{io, mem, path::Path, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::cli::{
    markdown::{Look, Markdown},
    terminal::{Style, Terminal, one_line},
    text::{cut, width},
};

/// Interval between two drawings, of new text and of the spinner alone.
const FRAME: Duration = Duration::from_millis(33);
const SPIN: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Widest text that is comfortable to read.
const MOST_COLUMNS: usize = 100;
/// What the text of a turn begins with: an answer, and other text.
const MARKS: (&str, &str) = ("● ", "○ ");
/// What all other rows begin with.
const INDENT: &str = "  ";
/// Rows of the screen that stay free for other than text.
const SPARE: usize = 3;

pub(super) struct Screen {
    began: Instant,
    drawn: Instant,
    frames: usize,
    turn: TurnText,
    /// Whether something changed since the last drawing.
    is_changed: bool,
    /// Whether a blank row separates the next text from what is above.
    is_apart: bool,
    /// The folder of the places to which the text links.
    root: Arc<Path>,
}

/// The text of a turn.
#[derive(Default)]
struct TurnText {
    /// Text that is not rendered yet.
    arrived: String,
    markdown: Markdown,
    /// Rows that are final, but still live.
    rows: Vec<String>,
    /// Number of rows already written permanently.
    written: usize,
}

/// What a text turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Interim,
    Answer,
}

impl Screen {
    pub(super) fn new(root: &Path) -> Self {
        let now = Instant::now();
        Self {
            began: now,
            drawn: now,
            frames: 0,
            turn: TurnText::default(),
            is_changed: false,
            is_apart: false,
            root: root.into(),
        }
    }

    /// Time since the query was asked.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits until it is time to draw again. Cancel safe.
    pub(super) async fn due(&self) {
        let pause = if self.is_changed { FRAME } else { SPIN };
        sleep_until(self.drawn + pause).await;
    }

    pub(super) fn push(&mut self, text: &str) {
        self.turn.arrived.push_str(text);
        self.is_changed = true;
    }

    /// Discards the text of the turn; returns whether part of it was already written permanently.
    pub(super) fn retract(&mut self) -> bool {
        self.is_changed = true;
        mem::take(&mut self.turn).written > 0
    }

    /// Draws the text and, below it, what is being done.
    pub(super) fn draw(&mut self, terminal: &mut Terminal, status: Option<&str>) -> io::Result<()> {
        let Some((columns, height, style)) = terminal.screen() else {
            return Ok(());
        };
        let look = self.look(terminal);
        let turn = &mut self.turn;
        let arrived = mem::take(&mut turn.arrived);
        turn.rows.extend(turn.markdown.push(&arrived, &look));
        let mut open = turn.markdown.open_rows(&look);
        let room = height.saturating_sub(SPARE).max(1);
        let height_of = |row: &String| (width(row) + INDENT.len()).div_ceil(columns);
        let mut over = turn.rows.iter().chain(&open).map(height_of).sum::<usize>();
        over = over.saturating_sub(room);
        let mut drain_over = |rows: &mut Vec<String>| -> Vec<String> {
            let is_over = |row: &&String| {
                let is_over = over > 0;
                over = over.saturating_sub(height_of(row));
                is_over
            };
            let count = rows.iter().take_while(is_over).count();
            rows.drain(..count).collect()
        };
        let settled = drain_over(&mut turn.rows);
        // Of a long open block, the end is shown.
        drain_over(&mut open);
        let from = turn.written;
        turn.written += settled.len();
        let settled = self.marked(settled, from, &look, None);
        let rows: Vec<String> = self.turn.rows.iter().cloned().chain(open).collect();
        let mut live = self.marked(rows, self.turn.written, &look, None);
        if let Some(status) = status {
            let gap = (self.is_apart || !live.is_empty()).then(String::new);
            let spin = SPINNER[self.frames % SPINNER.len()];
            let status = one_line(&format!("{spin} {status}"));
            let status = style.dim(&cut(&status, columns.saturating_sub(1)));
            live.extend(gap.into_iter().chain([status]));
        }
        if settled.iter().chain(&live).next().is_some() {
            terminal.draw(&settled, &live)?;
        }
        self.frames += 1;
        (self.drawn, self.is_changed) = (Instant::now(), false);
        Ok(())
    }

    /// Ends the text of a turn and writes its rows permanently.
    pub(super) fn end_text(&mut self, terminal: &mut Terminal, kind: TextKind) -> io::Result<()> {
        let mut turn = mem::take(&mut self.turn);
        let look = self.look(terminal);
        turn.rows.extend(turn.markdown.whole(&turn.arrived, &look));
        if turn.rows.is_empty() && turn.written == 0 {
            return Ok(());
        }
        let mut rows = self.marked(turn.rows, turn.written, &look, Some(kind));
        if let (TextKind::Interim, Some((.., style))) = (kind, terminal.screen()) {
            rows = rows.iter().map(|row| style.dim(row)).collect();
        }
        terminal.draw(&rows, &[])?;
        self.is_apart = true;
        Ok(())
    }

    /// Writes a dim line, below the text that led to it or `apart` from it.
    pub(super) fn note(
        &mut self,
        terminal: &mut Terminal,
        line: &str,
        apart: bool,
    ) -> io::Result<()> {
        let Some((columns, _, style)) = terminal.screen() else {
            return Ok(());
        };
        let line = format!("{INDENT}{}", one_line(line));
        let line = style.dim(&cut(&line, columns.saturating_sub(1)));
        let gap = (apart && self.is_apart).then(String::new);
        let rows: Vec<String> = gap.into_iter().chain([line]).collect();
        self.is_apart = true;
        terminal.draw(&rows, &[])
    }

    fn marked(
        &self,
        rows: Vec<String>,
        from: usize,
        look: &Look,
        kind: Option<TextKind>,
    ) -> Vec<String> {
        let mark = match kind {
            Some(TextKind::Answer) if look.is_coloured => format!("\x1b[32m{}\x1b[0m", MARKS.0),
            Some(TextKind::Interim) => MARKS.1.to_owned(),
            Some(TextKind::Answer) | None => MARKS.0.to_owned(),
        };
        let gap = self.is_apart && from == 0 && !rows.is_empty();
        let marked = (from..).zip(rows).map(|(at, row)| match at {
            0 => format!("{mark}{row}"),
            _ if row.is_empty() => row,
            _ => format!("{INDENT}{row}"),
        });
        gap.then(String::new).into_iter().chain(marked).collect()
    }

    fn look(&self, terminal: &Terminal) -> Look {
        let (columns, _, style) = terminal.screen().unwrap_or((MOST_COLUMNS, 0, Style::Dumb));
        Look {
            columns: columns.min(MOST_COLUMNS).saturating_sub(INDENT.len() + 1),
            is_coloured: style == Style::Coloured,
            links: (style == Style::Coloured).then(|| Arc::clone(&self.root)),
        }
    }
}

/// A whole answer in colours.
pub(super) fn coloured(text: &str, columns: usize) -> String {
    let look = Look {
        columns: columns.min(MOST_COLUMNS),
        is_coloured: true,
        links: None,
    };
    Markdown::default().whole(text, &look).join("\n")
}

#[cfg(test)]
mod tests;
