//! Draws the table or a text. Pure, but for what it notes about the lines that are on the screen.
//!
//! **Invariant:** no text of a model, a user or a server reaches the terminal without `harmless`.

use std::{collections::BTreeMap, mem};

use Constraint::{Fill, Length};
use ratatui::{
    prelude::*,
    widgets::{Paragraph, Row as Cells, Table, Wrap},
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{
    feed::Row,
    state::{Action, Prompt, Top},
};
use crate::{
    actor::SessionView,
    cli::{
        terminal::{harmless, one_line},
        text::{cost, grouped},
    },
    model::{Span, Usage},
};

const KEYS: &str = "Enter open  p pause  r resume  i interrupt  s steer  a approve  d deny  q quit";

/// Columns: head, width, and the width of the screen from which on it is shown.
const COLUMNS: [(&str, Constraint, u16); 9] = [
    ("SESSION", Fill(1), 0),
    ("STATE", Length(12), 0),
    ("PROFILE", Length(8), 80),
    ("  TURN", Length(7), 0),
    ("SIGNAL", Length(13), 72),
    ("   TOKENS", Length(10), 50),
    ("     COST", Length(10), 60),
    ("   AGE", Length(7), 0),
    ("QUESTION", Fill(2), 100),
];

pub(super) fn draw(top: &mut Top, frame: &mut Frame<'_>) {
    let [head, body, foot] = Layout::vertical([Length(2), Fill(1), Length(1)]).areas(frame.area());
    top.height = usize::from(body.height).saturating_sub(1).max(1);
    frame.render_widget(header(top), head);
    match &top.prompt {
        Some(Prompt::Read(text, _)) => {
            let lines = wrapped(text, body.width.into());
            let most = lines.len().saturating_sub(top.height);
            top.scroll = top.scroll.min(most);
            top.seen |= top.scroll == most;
            let lines = lines.get(top.scroll..).unwrap_or_default();
            frame.render_widget(Paragraph::new(lines.join("\n")), body);
        }
        _ => table(top, frame, body),
    }
    frame.render_widget(footer(top, foot.width.into()), foot);
}

/// The look of a state, by its urgency.
fn look(top: &Top, urgency: u8) -> Style {
    let look = match urgency {
        0 => Style::new().yellow().bold(),
        1 => Style::new().yellow(),
        2 => Style::new(),
        3 => Style::new().red(),
        _ => Style::new().dim(),
    };
    let fg = look.fg.filter(|_| top.coloured);
    Style { fg, ..look }
}

fn header(top: &Top) -> Paragraph<'static> {
    if let Some(why) = &top.lost {
        let lost = format!("connection lost, retrying: {why}");
        return Paragraph::new(one_line(&lost)).style(look(top, 3));
    }
    let (mut states, mut used) = (BTreeMap::<_, usize>::new(), Usage::default());
    for row in &top.snapshot.rows {
        *states.entry(row.state()).or_default() += 1;
        used += row.view.as_ref().map(|view| view.total).unwrap_or_default();
    }
    let (tokens, cost) = (grouped(used.total_tokens()), cost(&used));
    let mut text = format!("{tokens} tokens, {cost}");
    for ((_, state), count) in states {
        text += &format!("  {state}: {count}");
    }
    Paragraph::new(one_line(&text)).wrap(Wrap { trim: true })
}

fn table(top: &mut Top, frame: &mut Frame<'_>, area: Rect) {
    let widths = COLUMNS.map(|(_, width, from)| match area.width >= from {
        true => width,
        false => Length(0),
    });
    let rows = top.snapshot.rows.iter();
    let rows = rows.map(|row| line(cells(top, row)).style(look(top, row.state().0)));
    let table = Table::new(rows, widths)
        .column_spacing(0)
        .header(line(COLUMNS.map(|(head, ..)| head.to_owned())).bold())
        .row_highlight_style(Modifier::REVERSED);
    frame.render_stateful_widget(table, area, &mut top.table);
}

fn line(cells: [String; 9]) -> Cells<'static> {
    Cells::new(cells.map(|cell| format!(" {}", one_line(&cell))))
}

/// What is not known is `-`.
fn cells(top: &Top, row: &Row) -> [String; 9] {
    let view = row.view.as_deref();
    let known = |cell: fn(&SessionView) -> Option<String>| {
        view.and_then(cell).unwrap_or_else(|| "-".to_owned())
    };
    let turn = known(|view| Some(format!("{}/{}", view.turns, view.limits?.max_turns)));
    let tokens = known(|view| Some(grouped(view.total.total_tokens())));
    let cost = known(|view| {
        let cost = view.total.known_cost()?;
        (!view.total.is_none()).then(|| cost.to_string())
    });
    let age = row.age(top.now).map(|age| Span(age).to_string());
    let age = age.unwrap_or_default().replace(' ', "");
    [
        row.listed.key.name.to_string(),
        row.state().1.to_owned(),
        known(|view| Some(view.profile.as_ref()?.to_string())),
        format!("{turn:>6}"),
        known(|view| Some(view.signal?.to_string())),
        format!("{tokens:>9}"),
        format!("{cost:>9}"),
        format!("{age:>6}"),
        known(|view| view.question.clone()),
    ]
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let (mut rows, mut row) = (Vec::new(), String::new());
    for line in harmless(text).replace('\t', "  ").lines() {
        for c in line.chars() {
            if row.width() + c.width().unwrap_or(0) > width {
                rows.push(mem::take(&mut row));
            }
            row.push(c);
        }
        rows.push(mem::take(&mut row));
    }
    rows
}

fn footer(top: &Top, width: usize) -> Line<'static> {
    let text = match (&top.prompt, &top.notice) {
        (None, None) => return Line::from(KEYS).dim(),
        (None, Some(notice)) => notice.clone(),
        (Some(Prompt::Steer(key, text)), _) => format!("steer {}: {text}_", key.name),
        (Some(Prompt::Read(..)), _) if !top.seen => "read it to its end: PgDn".to_owned(),
        (Some(Prompt::Read(_, Some(Action::Do(what, _)))), _) => format!("{what}? [y/n]"),
        (Some(Prompt::Read(..)), _) => "Esc back".to_owned(),
    };
    let line = Line::from(one_line(&text)).bold();
    // What is typed is at the end.
    match line.width() > width {
        true => line.right_aligned(),
        false => line,
    }
}
