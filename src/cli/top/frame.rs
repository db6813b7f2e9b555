//! Draws the table, a session's details, a call and the help. Pure, but for what it notes about the
//! lines that are on the screen.
//!
//! **Invariant:** no text of a model, a user or a server reaches the terminal without `harmless`.

use std::{collections::BTreeMap, mem};

use ratatui::{
    prelude::{Constraint, Frame, Layout, Line, Modifier, Rect, Style, Stylize as _},
    widgets::{Paragraph, Row as Cells, Table},
};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{
    feed::Row,
    state::{Action, Page, Prompt, Top},
};
use crate::{
    cli::{
        terminal::harmless,
        text::{event_line, grouped, standing},
    },
    model::{NanoUsd, SignalType, Span, ToolCall, Usage},
};

const HELP: &str = include_str!("help.txt");
const KEYS: &str = "q quit  ? help  Enter details  p pause  r resume  i interrupt  s steer  \
                    a approve  d deny  / filter  o order";

/// Columns: head, width (0 for the rest), and the width of the screen from which on it is shown.
const COLUMNS: [(&str, u16, u16); 9] = [
    ("SESSION", 0, 0),
    ("STATE", 11, 0),
    ("PROFILE", 7, 80),
    ("  TURN", 6, 0),
    ("SIGNAL", 12, 72),
    ("TOKENS", 6, 50),
    ("     COST", 9, 60),
    ("  AGE", 5, 0),
    ("QUESTION", 0, 100),
];

pub(super) fn draw(top: &mut Top, frame: &mut Frame<'_>) {
    let parts = [
        Constraint::Length(2),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [head, body, foot] = Layout::vertical(parts).areas(frame.area());
    top.height = usize::from(body.height).saturating_sub(1).max(1);
    frame.render_widget(Paragraph::new(header(top)), head);
    match (&top.prompt, top.page) {
        (Some(Prompt::Confirm(_, Some(call))), _) => text(top, frame, body, &described(call)),
        (_, Page::Table) => table(top, frame, body),
        (_, Page::Details) => text(top, frame, body, &details(top)),
        (_, Page::Help) => text(top, frame, body, HELP),
    }
    frame.render_widget(footer(top, foot.width.into()), foot);
}

/// Text of others in one line.
fn plain(text: &str) -> String {
    harmless(text).replace(['\n', '\t'], " ")
}

/// The look of a state, by its urgency.
fn look(top: &Top, urgency: u8) -> Style {
    let look = match urgency {
        0 => Style::new().yellow().bold(),
        1 => Style::new().yellow(),
        2 => Style::new().green(),
        3 => Style::new().red(),
        _ => Style::new().dim(),
    };
    let fg = look.fg.filter(|_| top.coloured);
    Style { fg, ..look }
}

fn header(top: &Top) -> Vec<Line<'static>> {
    let (rows, time) = (&top.snapshot.rows, top.now.to_string());
    let (mut states, mut used) = (BTreeMap::<_, usize>::new(), Usage::default());
    for row in rows {
        *states.entry(row.state()).or_default() += 1;
        used += row.used();
    }
    let time = time.get(11..19).unwrap_or_default();
    let mut first = format!("{time}  servers: {}", top.snapshot.servers.len());
    for ((_, state), count) in states {
        first += &format!("  {}: {count}", plain(state));
    }
    let (tokens, cost, order) = (grouped(used.total_tokens()), cost(used.cost), top.order);
    let mut second = format!("tokens: {tokens}  cost: {cost}  order: {order}");
    let read = rows.iter().filter(|row| row.view.is_some()).count();
    if read < rows.len() {
        second += &format!("  ({read} of {} sessions read)", rows.len());
    }
    if !top.filter.is_empty() {
        second += &format!("  filter: {} ({})", plain(&top.filter), top.rows().count());
    }
    let lost = |why| plain(&format!("connection lost, retrying: {why}"));
    let lost = top.lost.as_ref().map(lost);
    let lost = lost.map(|lost| Line::styled(lost, look(top, 3)));
    vec![Line::from(first).bold(), lost.unwrap_or(second.into())]
}

fn table(top: &mut Top, frame: &mut Frame<'_>, area: Rect) {
    let shown = COLUMNS.map(|(_, _, from)| area.width >= from);
    let widths = COLUMNS.iter().zip(shown).filter(|(_, shown)| *shown);
    let widths = widths.map(|((_, width, _), _)| match width {
        0 => Constraint::Fill(1),
        width => Constraint::Length(*width),
    });
    let pick = |cells: [Line<'static>; 9]| {
        let cells = cells.into_iter().zip(shown);
        Cells::new(cells.filter_map(|(cell, shown)| shown.then_some(cell)))
    };
    let table = Table::new(top.rows().map(|row| pick(cells(top, row))), widths)
        .header(pick(COLUMNS.map(|(head, ..)| head.into())).bold())
        .row_highlight_style(Modifier::REVERSED);
    let mut state = top.table;
    frame.render_stateful_widget(table, area, &mut state);
    top.table = state;
}

fn cells(top: &Top, row: &Row) -> [Line<'static>; 9] {
    let (view, (urgency, state)) = (row.view.as_deref(), row.state());
    let text = |cell: Option<String>| cell.map_or_else(|| "-".into(), |cell| plain(&cell));
    let turns = view.and_then(|view| Some(format!("{}/{}", view.turns, view.limits?.max_turns)));
    let age = row.age(top.now).map(|age| Span(age).to_string());
    let age = age.map(|age| age.replace("min", "m").replace(' ', ""));
    [
        row.listed.key.name.to_string().into(),
        Line::styled(plain(state), look(top, urgency)),
        text(view.and_then(|view| Some(view.profile.as_ref()?.to_string()))).into(),
        format!("{:>6}", text(turns)).into(),
        text(view.and_then(|view| Some(view.signal?.to_string()))).into(),
        format!("{:>6}", tokens(row.used().total_tokens())).into(),
        format!("{:>9}", cost(row.used().cost)).into(),
        format!("{:>5}", text(age)).into(),
        text(view.and_then(|view| view.question.clone())).into(),
    ]
}

/// Tokens in at most six characters, below a trillion.
fn tokens(count: u64) -> String {
    match count {
        0 => "-".to_owned(),
        1..100_000 => count.to_string(),
        100_000..100_000_000 => format!("{}k", count / 1_000),
        _ => format!("{}M", count / 1_000_000),
    }
}

/// Without a price, nothing is known.
fn cost(cost: NanoUsd) -> String {
    match cost {
        NanoUsd(0) => "-".to_owned(),
        cost => cost.to_string(),
    }
}

fn details(top: &Top) -> String {
    let Some(view) = top.row().and_then(|row| row.view.as_deref()) else {
        return "this session is gone, or could not be read yet".to_owned();
    };
    let mut text = format!("{:<15}{}\n", "session", view.key);
    let mut line = |label: &str, value: &str| {
        text += &format!("{label:<15}{}\n", value.replace('\n', "\n  "));
    };
    line("question", view.question.as_deref().unwrap_or("-"));
    line("last signal", view.signal.map_or("-", SignalType::as_str));
    for (label, value) in standing(view) {
        line(label, &value);
    }
    for waiting in &view.calls {
        line("to approve", &described(&waiting.call));
    }
    line("", "");
    let events = top.events.iter().rev();
    for event in events.filter(|event| event.session == view.key.name) {
        line("event", &event_line(event));
    }
    text
}

/// A call with all its arguments.
fn described(call: &ToolCall) -> String {
    let arguments = call.parsed().ok();
    let pretty = arguments.and_then(|value| serde_json::to_string_pretty(&value).ok());
    format!(
        "{}\n{}",
        call.name,
        pretty.as_ref().unwrap_or(&call.arguments)
    )
}

/// Draws a text, and below it how much of it is not on the screen.
fn text(top: &mut Top, frame: &mut Frame<'_>, area: Rect, text: &str) {
    let lines = wrapped(text, area.width.into());
    let most = lines.len().saturating_sub(top.height);
    top.scroll = top.scroll.min(most);
    top.seen |= top.scroll == most;
    let lines = lines.into_iter().skip(top.scroll).take(top.height);
    let mut lines: Vec<Line<'_>> = lines.map(Line::from).collect();
    if top.scroll < most {
        lines.push(Line::from(format!("{} more lines: PgDn", most - top.scroll)).dim());
    }
    frame.render_widget(Paragraph::new(lines), area);
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
    let typed = match (&top.prompt, &top.notice) {
        (_, Some(Ok(done))) => return Line::styled(plain(done), look(top, 2)),
        (_, Some(Err(why))) => return Line::styled(plain(why), look(top, 3)),
        (None, None) => return Line::from(KEYS).dim(),
        (Some(Prompt::Filter), None) => format!("filter: {}_", top.filter),
        (Some(Prompt::Steer(key, text)), None) => format!("steer {}: {text}_", key.name),
        (Some(Prompt::Confirm(Action::Do(what, _), call)), None) => match call {
            Some(_) if !top.seen => format!("{what}? read the call to its end: PgDn"),
            _ => format!("{what}? [y/n]"),
        },
        (Some(Prompt::Confirm(..)), None) => String::new(),
    };
    let line = Line::from(plain(&typed)).bold();
    // What is typed is at the end.
    if line.width() > width {
        line.right_aligned()
    } else {
        line
    }
}
