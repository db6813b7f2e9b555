//! What the table shows and what a key means. Pure: keys, text and snapshots in, actions out.

use std::time::Duration;

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
    actor::SessionState,
    cli::{CliResult, progress::described, text::standing},
    control::{Answer, Verb},
    model::{SessionKey, Timestamp},
};

/// What the loop does for a key: leave, suspend, or execute a verb, with its description.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    Leave,
    Suspend,
    Do(String, Verb),
}

pub(super) enum Prompt {
    /// A text, and what `y` does once its end has been on the screen.
    Read(String, Option<Action>),
    /// A message to a session.
    Steer(SessionKey, String),
}

#[derive(Default)]
pub(super) struct Top {
    pub(super) coloured: bool,
    pub(super) now: Timestamp,
    pub(super) snapshot: Snapshot,
    /// Why the snapshot is old, if it is.
    pub(super) lost: Option<String>,
    pub(super) prompt: Option<Prompt>,
    /// The result of the last command, or its refusal.
    pub(super) notice: Option<String>,
    pub(super) table: TableState,
    /// Lines for a table or a text.
    pub(super) height: usize,
    /// First line of a text on the screen.
    pub(super) scroll: usize,
    /// Whether the last line of the text has been on the screen.
    pub(super) seen: bool,
}

impl Row {
    /// Its urgency, from 0 for the most urgent, and its state in a word.
    pub(super) fn state(&self) -> (u8, &'static str) {
        let (listed, view) = (self.listed.state, self.view.as_deref());
        let read = view.map(|view| view.state);
        let read = read.filter(|read| listed == SessionState::Suspended && read.awaits_person());
        let state = match read.unwrap_or(listed) {
            SessionState::Idle if view.is_some_and(|view| view.paused) => SessionState::Paused,
            state => state,
        };
        let calls = view.map_or(0, |view| view.calls.len());
        (state.urgency(calls), state.as_str())
    }

    /// The age of its query, else of its last record.
    pub(super) fn age(&self, now: Timestamp) -> Option<Duration> {
        let query = self.view.as_ref().and_then(|view| view.since);
        Some(now.since(query.or(self.listed.updated)?))
    }

    fn details(&self) -> Option<String> {
        let view = self.view.as_deref()?;
        let question = view.question.as_deref().unwrap_or_default();
        let mut lines = vec![format!("{}: {question}", view.key)];
        lines.extend(standing(view));
        lines.extend(view.calls.iter().map(|waiting| described(&waiting.call)));
        Some(lines.join("\n"))
    }
}

impl Top {
    pub(super) fn row(&self) -> Option<&Row> {
        self.snapshot.rows.get(self.table.selected()?)
    }

    /// Takes a snapshot: first what needs a person, then what runs, then the latest. The selection
    /// stays with its session, or in its place if that is gone.
    pub(super) fn take(&mut self, read: CliResult<Snapshot>) -> Option<Action> {
        let selected = self.row().map(|row| row.listed.key.clone());
        match read {
            Ok(snapshot) => (self.snapshot, self.lost) = (snapshot, None),
            Err(why) => self.lost = Some(why.to_string()),
        }
        let (rows, now) = (&mut self.snapshot.rows, self.now);
        rows.sort_by_cached_key(|row| (row.state().0, row.age(now), row.listed.key.name.clone()));
        let is_it = |row: &Row| Some(&row.listed.key) == selected.as_ref();
        let place = rows.iter().position(is_it).or(self.table.selected());
        self.table.select(Some(place.unwrap_or_default()));
        None
    }

    /// Takes the answer to a command.
    pub(super) fn tell(&mut self, what: String, done: CliResult<Answer>) -> Option<Action> {
        let result = done.map_or_else(|why| why.to_string(), |_| "done".to_owned());
        self.notice = Some(what + ": " + &result);
        None
    }

    /// Takes pasted text, but never for keys.
    pub(super) fn paste(&mut self, pasted: &str) -> Option<Action> {
        if let Some(Prompt::Steer(_, text)) = &mut self.prompt {
            text.push_str(pasted);
        }
        None
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Option<Action> {
        self.notice = None;
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        match (&mut self.prompt, key.code) {
            (_, Char('c')) if is_control => return Some(Action::Leave),
            (_, Char('z')) if is_control => return Some(Action::Suspend),
            (_, Char(_)) if is_control => {}
            (None, Char('q') | Esc) => return Some(Action::Leave),
            (None, Char('s')) => {
                self.prompt = Some(Prompt::Steer(self.row()?.listed.key.clone(), String::new()));
            }
            (None, Char(key @ ('p' | 'r' | 'i' | 'a' | 'd'))) => return self.act(key),
            (None, Enter) => self.read(self.row()?.details()?, None),
            (Some(_), Esc) | (Some(Prompt::Read(..)), Char('n' | 'q') | Enter) => {
                self.prompt = None;
            }
            (Some(Prompt::Read(_, action @ Some(_))), Char('y')) if self.seen => {
                let action = action.take();
                self.prompt = None;
                return action;
            }
            (Some(Prompt::Steer(session, text)), Enter) if !text.trim().is_empty() => {
                let steer = action("steer", session, json!({ "text": text }));
                self.prompt = None;
                return steer;
            }
            (Some(Prompt::Steer(_, text)), Char(c)) => text.push(c),
            (Some(Prompt::Steer(_, text)), Backspace) => {
                text.pop();
            }
            (_, code) => self.go(code),
        }
        None
    }

    fn read(&mut self, text: String, action: Option<Action>) {
        (self.scroll, self.seen) = (0, false);
        self.prompt = Some(Prompt::Read(text, action));
    }

    /// Moves the selection, or scrolls the text.
    fn go(&mut self, code: KeyCode) {
        let place = match self.prompt {
            Some(_) => &mut self.scroll,
            None => self.table.selected_mut().get_or_insert_default(),
        };
        *place = match code {
            Up | Char('k') => place.saturating_sub(1),
            Down | Char('j') => place.saturating_add(1),
            PageUp => place.saturating_sub(self.height),
            PageDown => place.saturating_add(self.height),
            Home => 0,
            End => usize::MAX,
            _ => *place,
        };
    }

    fn act(&mut self, key: char) -> Option<Action> {
        let row = self.row()?.clone();
        let (session, view) = (&row.listed.key, row.view.as_ref());
        let query = view.and_then(|view| view.query);
        let (verb, more, text) = match (key, view.and_then(|view| view.calls.first())) {
            ('p', _) => return action("pause", session, json!({})),
            ('r', _) => return action("resume", session, json!({})),
            ('i', _) => ("interrupt", json!({ "query": query }), row.details()?),
            (key, Some(waiting)) => {
                let verb = if key == 'a' { "approve" } else { "deny" };
                let more = json!({ "call": waiting.call.id, "token": waiting.token });
                (verb, more, described(&waiting.call))
            }
            (_, None) => {
                self.notice = Some("no call of it waits for approval".to_owned());
                return None;
            }
        };
        self.read(text, Some(action(verb, session, more)?));
        None
    }
}

/// A verb on a session, with more fields.
fn action(verb: &str, session: &SessionKey, mut fields: Value) -> Option<Action> {
    let what = format!("{verb} {}", session.name);
    (fields["verb"], fields["session"]) = (verb.into(), session.to_string().into());
    Some(Action::Do(what, serde_json::from_value(fields).ok()?))
}
