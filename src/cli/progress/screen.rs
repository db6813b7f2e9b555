//! What a terminal shows of a query: the text of its turns as it arrives, a line for each tool call,
//! and below them what is being done.
//!
//! Whether a text is the answer is known only at the end of its turn. Until then, as much of it as
//! the screen holds is live, so that it can become dim if another turn follows.

use std::{mem, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::cli::{
    CliError,
    markdown::{Look, Markdown},
    terminal::{Style, Terminal},
    text::cut,
};

/// Interval between two drawings, of new text and of the spinner alone.
const FRAME: Duration = Duration::from_millis(33);
const SPIN: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Widest text that is comfortable to read.
const MOST_COLUMNS: usize = 100;
/// What the text of a turn begins with, and its further rows.
const MARKS: (&str, &str) = ("● ", "  ");
/// Rows of the screen that stay free for other than text.
const SPARE: usize = 3;

pub(super) struct Screen {
    began: Instant,
    drawn: Instant,
    frames: usize,
    turn: TurnText,
    /// Whether something changed since the last drawing.
    is_changed: bool,
    /// Whether a blank row parts the next text from what is above.
    is_apart: bool,
}

/// The text of a turn.
#[derive(Default)]
struct TurnText {
    source: String,
    /// Text that is not rendered yet.
    arrived: String,
    markdown: Markdown,
    /// Rows that are final, but still live.
    rows: Vec<String>,
    /// Number of rows that were written for good.
    written: usize,
}

/// What a text turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Interim,
    Answer,
}

impl Screen {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            drawn: now,
            frames: 0,
            turn: TurnText::default(),
            is_changed: false,
            is_apart: false,
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
        self.turn.source.push_str(text);
        self.turn.arrived.push_str(text);
        self.is_changed = true;
    }

    /// Forgets the text of the turn; returns whether a part of it was written for good.
    pub(super) fn retract(&mut self) -> bool {
        self.is_changed = true;
        mem::take(&mut self.turn).written > 0
    }

    /// Draws the text and, below it, what is being done.
    pub(super) fn draw(
        &mut self,
        terminal: &mut Terminal,
        status: Option<&str>,
    ) -> Result<(), CliError> {
        let Some((columns, height, _)) = terminal.screen() else {
            return Ok(());
        };
        let look = look(terminal, false);
        let turn = &mut self.turn;
        let arrived = mem::take(&mut turn.arrived);
        turn.rows.extend(turn.markdown.push(&arrived, &look));
        let mut open = turn.markdown.open_rows(&look);
        let room = height.saturating_sub(SPARE).max(1);
        let over = (turn.rows.len() + open.len()).saturating_sub(room);
        let settled: Vec<String> = turn.rows.drain(..over.min(turn.rows.len())).collect();
        // Of a long open block, the end is shown.
        open.drain(..open.len().saturating_sub(room));
        let from = turn.written;
        turn.written += settled.len();
        let settled = self.marked(settled, from, &look, None);
        let rows: Vec<String> = self.turn.rows.iter().cloned().chain(open).collect();
        let mut live = self.marked(rows, self.turn.written, &look, None);
        if let Some(status) = status {
            let spin = SPINNER[self.frames % SPINNER.len()];
            let seconds = self.began.elapsed().as_secs();
            let status = format!("{spin} {status} · {seconds} s · Ctrl-C interrupts");
            let status = cut(&status, columns.saturating_sub(1));
            live.push(dim(terminal, &status));
        }
        if settled.iter().chain(&live).next().is_some() {
            terminal.draw(&settled, &live)?;
        }
        self.frames += 1;
        (self.drawn, self.is_changed) = (Instant::now(), false);
        Ok(())
    }

    /// Ends the text of a turn, and writes all of it for good.
    pub(super) fn end_text(
        &mut self,
        terminal: &mut Terminal,
        kind: TextKind,
    ) -> Result<(), CliError> {
        let mut turn = mem::take(&mut self.turn);
        if turn.source.trim().is_empty() {
            return Ok(());
        }
        let look = look(terminal, kind == TextKind::Interim);
        let rows = match kind {
            TextKind::Interim => {
                let mut markdown = Markdown::default();
                let mut rows = markdown.push(&turn.source, &look);
                rows.extend(markdown.finish(&look));
                rows.split_off(turn.written.min(rows.len()))
            }
            TextKind::Answer => {
                turn.rows.extend(turn.markdown.push(&turn.arrived, &look));
                turn.rows.extend(turn.markdown.finish(&look));
                turn.rows
            }
        };
        let rows = self.marked(rows, turn.written, &look, Some(kind));
        terminal.draw(&rows, &[])?;
        self.is_apart = true;
        Ok(())
    }

    /// Writes a dim line.
    pub(super) fn note(&mut self, terminal: &mut Terminal, line: &str) -> Result<(), CliError> {
        let width = terminal
            .screen()
            .map_or(usize::MAX, |(columns, ..)| columns);
        let line = dim(terminal, &cut(line, width.saturating_sub(1)));
        let gap = mem::take(&mut self.is_apart).then(String::new);
        let rows: Vec<String> = gap.into_iter().chain([line]).collect();
        Ok(terminal.draw(&rows, &[])?)
    }

    fn marked(
        &self,
        rows: Vec<String>,
        from: usize,
        look: &Look,
        kind: Option<TextKind>,
    ) -> Vec<String> {
        let (first, other) = MARKS;
        let mark = match kind {
            Some(TextKind::Answer) if look.is_coloured => format!("\x1b[32m{first}\x1b[0m"),
            Some(TextKind::Interim) if look.is_coloured => format!("\x1b[2m{first}\x1b[0m"),
            _ => first.to_owned(),
        };
        let gap = self.is_apart && from == 0 && !rows.is_empty();
        let marked = rows
            .into_iter()
            .enumerate()
            .map(|(at, row)| match at + from {
                0 => format!("{mark}{row}"),
                _ if row.is_empty() => row,
                _ => format!("{other}{row}"),
            });
        gap.then(String::new).into_iter().chain(marked).collect()
    }
}

fn look(terminal: &Terminal, is_dim: bool) -> Look {
    let (columns, _, style) = terminal.screen().unwrap_or((MOST_COLUMNS, 0, Style::Dumb));
    Look {
        columns: columns
            .min(MOST_COLUMNS)
            .saturating_sub(MARKS.1.len() + 1)
            .max(1),
        is_coloured: style == Style::Coloured,
        is_dim,
        links: None,
    }
}

fn dim(terminal: &Terminal, text: &str) -> String {
    match terminal.screen() {
        Some((.., Style::Coloured)) => format!("\x1b[2m{text}\x1b[0m"),
        _ => text.to_owned(),
    }
}
