//! What the table shows and what a key means. Pure: keys, text and snapshots in, actions out.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use ratatui::{
    crossterm::event::{
        KeyCode::{self, Backspace, Char, Down, End, Enter, Esc, Home, PageDown, PageUp, Up},
        KeyEvent, KeyModifiers,
    },
    widgets::TableState,
};
use serde_json::{Value, json};

use super::feed::{Row, Snapshot};
use crate::{
    actor::{Approval, SessionState},
    cli::CliError,
    control::{Answer, Verb},
    model::{Event, ProfileName, SessionKey, Timestamp, ToolCall, Usage, words},
};

words! {
    /// Order of the table: `activity` shows first what needs a person, then what runs.
    #[derive(Default)]
    pub(super) enum Order {
        #[default]
        Activity = "activity",
        Name = "name",
        Tokens = "tokens",
        Cost = "cost",
        Age = "age",
    }
}

/// What the loop does for a key: leave, suspend, or execute a verb, with its description.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Leave,
    Suspend,
    Do(String, Verb),
}

/// A description, with the answer to its verb.
type Told = (String, Result<Answer, CliError>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Page {
    #[default]
    Table,
    Details,
    Help,
}

/// What the last line asks for: a filter, a message to a session, or a confirmation. If that is
/// about a call, the call is shown.
pub(super) enum Prompt {
    Filter,
    Steer(SessionKey, String),
    Confirm(Action, Option<Arc<ToolCall>>),
}

#[derive(Default)]
pub(super) struct Top {
    pub(super) coloured: bool,
    pub(super) now: Timestamp,
    pub(super) snapshot: Snapshot,
    /// Why the snapshot is old, if it is.
    pub(super) lost: Option<String>,
    pub(super) order: Order,
    pub(super) filter: String,
    pub(super) page: Page,
    /// Last events of the session whose details are shown.
    pub(super) events: Vec<Event>,
    pub(super) prompt: Option<Prompt>,
    /// The result of the last command, or its refusal.
    pub(super) notice: Option<Result<String, String>>,
    pub(super) selected: Option<SessionKey>,
    pub(super) table: TableState,
    /// Lines for a table or a text.
    pub(super) height: usize,
    /// First line of a text on the screen.
    pub(super) scroll: usize,
    /// Whether the last line has been on the screen.
    pub(super) seen: bool,
}

impl Row {
    /// Its urgency, from 0 for the most urgent, and its state in a word.
    pub(super) fn state(&self) -> (u8, &str) {
        match (self.listed.state, self.view.as_deref()) {
            (SessionState::Closed, _) => (5, "closed"),
            (SessionState::Quarantined, _) => (3, "quarantined"),
            (_, Some(view)) if !view.calls.is_empty() => (0, "approval"),
            (_, Some(view)) if view.paused => (1, "paused"),
            (SessionState::Running, Some(view)) if view.query.is_some() => (2, &view.state),
            (SessionState::Running, _) => (2, "running"),
            (SessionState::Waiting, _) => (1, "waiting"),
            (SessionState::Suspended, _) => (3, "suspended"),
            (SessionState::Idle, _) => (4, "idle"),
        }
    }

    /// The age of its query, else of its last record.
    pub(super) fn age(&self, now: Timestamp) -> Option<Duration> {
        let query = self.view.as_ref().and_then(|view| view.since);
        Some(now.since(query.or(self.listed.updated)?))
    }

    pub(super) fn used(&self) -> Usage {
        let view = self.view.as_ref();
        view.map(|view| view.total).unwrap_or_default()
    }

    fn matches(&self, filter: &str) -> bool {
        let (name, state, view) = (&self.listed.key.name, self.state().1, self.view.as_ref());
        let profile = view.and_then(|view| view.profile.as_ref());
        let profile = profile.map_or("", ProfileName::as_str);
        let question = view.and_then(|view| view.question.as_deref());
        let text = format!("{name} {state} {profile} {}", question.unwrap_or_default());
        filter.is_empty() || text.to_lowercase().contains(&filter.to_lowercase())
    }
}

impl Top {
    /// The rows that pass the filter, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        let rows = self.snapshot.rows.iter();
        rows.filter(|row| row.matches(&self.filter))
    }

    pub(super) fn row(&self) -> Option<&Row> {
        self.rows().nth(self.table.selected()?)
    }

    pub(super) fn take(&mut self, read: Result<Snapshot, CliError>) -> Option<Action> {
        match read {
            Ok(snapshot) => (self.snapshot, self.lost) = (snapshot, None),
            Err(why) => self.lost = Some(why.to_string()),
        }
        self.arrange();
        None
    }

    /// Takes the answer to a command.
    pub(super) fn tell(&mut self, (what, answer): Told) -> Option<Action> {
        match answer {
            Ok(Answer::Events { events }) => self.events = events,
            Ok(_) => self.notice = Some(Ok(format!("{what}: done"))),
            Err(why) => self.notice = Some(Err(format!("{what}: {why}"))),
        }
        None
    }

    /// Sorts the rows. The selection stays with its session, or in its place if that is gone.
    fn arrange(&mut self) {
        let (order, now) = (self.order, self.now);
        self.snapshot.rows.sort_by_cached_key(|row| {
            let age = row.age(now).unwrap_or_default();
            let most = match order {
                Order::Tokens => row.used().total_tokens().into(),
                Order::Cost => row.used().cost.0.into(),
                Order::Age => age.as_millis(),
                Order::Activity | Order::Name => 0,
            };
            let latest = (order == Order::Activity).then(|| (row.state().0, age));
            (Reverse(most), latest, row.listed.key.name.clone())
        });
        let is_it = |row: &Row| Some(&row.listed.key) == self.selected.as_ref();
        let place = self.rows().position(is_it).or(self.table.selected());
        self.select(place.unwrap_or_default());
    }

    fn select(&mut self, place: usize) {
        let place = place.min(self.rows().count().saturating_sub(1));
        self.table.select(Some(place));
        self.selected = self.row().map(|row| row.listed.key.clone());
    }

    /// The text that is being typed.
    fn text(&mut self) -> Option<&mut String> {
        match &mut self.prompt {
            Some(Prompt::Filter) => Some(&mut self.filter),
            Some(Prompt::Steer(_, text)) => Some(text),
            Some(Prompt::Confirm(..)) | None => None,
        }
    }

    /// Takes pasted text, but never for keys.
    pub(super) fn paste(&mut self, pasted: &str) -> Option<Action> {
        self.text()?.push_str(pasted);
        None
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Action> {
        self.notice = None;
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        match (self.prompt.take(), key.code) {
            (_, Char('c')) if is_control => return Some(Action::Leave),
            (prompt, Char(key)) if is_control => {
                self.prompt = prompt;
                return (key == 'z').then_some(Action::Suspend);
            }
            (None, code) => return self.command(code),
            (Some(Prompt::Confirm(action, call)), Char('y')) if self.seen || call.is_none() => {
                return Some(action);
            }
            (Some(Prompt::Steer(session, text)), Enter) if !text.trim().is_empty() => {
                return action("steer", &session, json!({ "text": text }));
            }
            (Some(Prompt::Filter), Esc) => self.filter.clear(),
            (Some(Prompt::Confirm(..)), Char('n')) | (Some(_), Esc | Enter) => {}
            (prompt, code) => {
                self.prompt = prompt;
                match (self.text(), code) {
                    (Some(text), Char(c)) => text.push(c),
                    (Some(text), Backspace) => {
                        text.pop();
                    }
                    (_, code) => self.go(code),
                }
            }
        }
        self.arrange();
        None
    }

    fn command(&mut self, code: KeyCode) -> Option<Action> {
        match (code, self.page) {
            (Char('q') | Esc, Page::Table) => return Some(Action::Leave),
            (Char('q') | Esc, _) => self.show(Page::Table),
            (Char('?'), _) => self.show(Page::Help),
            (Char('/'), _) => self.prompt = Some(Prompt::Filter),
            (Char('o'), _) => {
                let mut orders = Order::ALL.into_iter().cycle();
                orders.find(|order| *order == self.order);
                self.order = orders.next().unwrap_or_default();
            }
            (Enter, _) => {
                self.show(Page::Details);
                return action("tail", &self.row()?.listed.key, json!({}));
            }
            (Char(key @ ('p' | 'r' | 'i' | 's' | 'a' | 'd')), _) => return self.act(key),
            (code, _) => self.go(code),
        }
        self.arrange();
        None
    }

    fn show(&mut self, page: Page) {
        (self.page, self.scroll) = (page, 0);
    }

    /// Moves the selection, or scrolls the text.
    fn go(&mut self, code: KeyCode) {
        let is_text = self.page != Page::Table || self.prompt.is_some();
        let selected = self.table.selected().unwrap_or_default();
        let from = if is_text { self.scroll } else { selected };
        let to = match code {
            Up | Char('k') => from.saturating_sub(1),
            Down | Char('j') => from + 1,
            PageUp => from.saturating_sub(self.height),
            PageDown => from + self.height,
            Home => 0,
            End => usize::MAX / 2,
            _ => return,
        };
        match is_text {
            true => self.scroll = to,
            false => self.select(to),
        }
    }

    fn act(&mut self, key: char) -> Option<Action> {
        let Row { listed, view } = self.row()?.clone();
        let query = view.as_ref().and_then(|view| view.query);
        let waiting = view.and_then(|view| view.calls.first().cloned());
        let (verb, more, call) = match (key, waiting) {
            ('p', _) => return action("pause", &listed.key, json!({})),
            ('r', _) => return action("resume", &listed.key, json!({})),
            ('i', _) => ("interrupt", json!({ "query": query }), None),
            ('s', _) => {
                self.prompt = Some(Prompt::Steer(listed.key, String::new()));
                return None;
            }
            (key, Some(Approval { call, token, .. })) => {
                let verb = if key == 'a' { "approve" } else { "deny" };
                (verb, json!({ "call": call.id, "token": token }), Some(call))
            }
            (_, None) => {
                self.notice = Some(Err("no call of it waits for approval".to_owned()));
                return None;
            }
        };
        (self.scroll, self.seen) = (0, false);
        self.prompt = Some(Prompt::Confirm(action(verb, &listed.key, more)?, call));
        None
    }
}

/// A verb on a session, with more fields.
fn action(verb: &str, session: &SessionKey, mut fields: Value) -> Option<Action> {
    let what = format!("{verb} {}", session.name);
    (fields["verb"], fields["session"]) = (verb.into(), session.to_string().into());
    Some(Action::Do(what, serde_json::from_value(fields).ok()?))
}
