//! What is ours of the editing: commands that are completed, and what Enter and Ctrl-Z do.

use std::borrow::Cow;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use rustyline::{
    Cmd, ConditionalEventHandler, Context, Event, EventContext, RepeatCount, completion::Completer,
    highlight::Highlighter, hint::Hinter, validate::Validator,
};

use crate::cli::{
    chat::command,
    multiline::{Enter, enter, is_continued},
    text::visible,
};

pub(super) struct Helper(pub(super) Continued);

impl Completer for Helper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        if self.0.0.swap(false, Ordering::Relaxed) {
            return Ok((at.saturating_sub(1), vec!["\n".to_owned()]));
        }
        Ok((0, line.get(..at).map_or_else(Vec::new, commands)))
    }
}

/// The commands that begin like this. One that takes something gets the space before it.
fn commands(begun: &str) -> Vec<String> {
    if !begun.starts_with('/') {
        return Vec::new();
    }
    let named = command::ALL
        .iter()
        .filter(|known| known.0.starts_with(begun));
    let named = named.map(|(name, argument, _)| match *argument {
        "" => (*name).to_owned(),
        _ => format!("{name} "),
    });
    named.collect()
}

impl Hinter for Helper {
    type Hint = String;
}

/// What has no width is not drawn, whoever put it into a paste or into the history: the terminal is not to obey it.
impl Highlighter for Helper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned(visible(line))
    }
}

impl Validator for Helper {}

impl rustyline::Helper for Helper {}

/// What was typed when Ctrl-Z was pressed, before the cursor and behind it. A lock, because rustyline owns the
/// keys.
#[derive(Clone, Default)]
pub(super) struct Suspended(Arc<Mutex<Option<(String, String)>>>);

impl Suspended {
    pub(super) fn is_some(&self) -> bool {
        self.0.lock().is_some()
    }

    pub(super) fn taken(&self) -> Option<(String, String)> {
        self.0.lock().take()
    }
}

/// Whether the backslash before the cursor is to become a new line. No command does that and moves the cursor
/// behind it, but a completion does.
#[derive(Clone, Default)]
pub(super) struct Continued(Arc<AtomicBool>);

/// Enter: sends what is whole, and begins a new line in what is not.
pub(super) struct EnterKey(pub(super) Continued);

impl ConditionalEventHandler for EnterKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext<'_>) -> Option<Cmd> {
        match on_enter(at.line(), at.pos()) {
            Enter::Sends => None,
            Enter::GoesOn => Some(Cmd::Newline),
            Enter::ReplacesTheBackslash => {
                self.0.0.store(true, Ordering::Relaxed);
                Some(Cmd::Complete)
            }
        }
    }
}

fn on_enter(text: &str, cursor: usize) -> Enter {
    let (before, behind) = text.split_at_checked(cursor).unwrap_or((text, ""));
    let ends_a_line = behind.is_empty() || behind.starts_with('\n');
    if ends_a_line && is_continued(before) {
        return Enter::ReplacesTheBackslash;
    }
    match enter(text) {
        Enter::GoesOn => Enter::GoesOn,
        Enter::Sends | Enter::ReplacesTheBackslash => Enter::Sends,
    }
}

/// Ctrl-Z: gives the terminal back before the program is stopped. Rustyline's own way goes on for a moment
/// where there are other threads, and takes the terminal again.
pub(super) struct SuspendKey(pub(super) Suspended);

impl ConditionalEventHandler for SuspendKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext<'_>) -> Option<Cmd> {
        let (before, behind) = at.line().split_at_checked(at.pos())?;
        *self.0.0.lock() = Some((before.to_owned(), behind.to_owned()));
        Some(Cmd::Interrupt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_completed_from_their_beginnings() {
        for (begun, completed) in [
            ("/q", vec!["/quit"]),
            ("/re", vec!["/resume "]),
            ("/w", vec!["/why "]),
            ("/x", vec![]),
            ("q", vec![]),
            ("where /q", vec![]),
            ("/why ", vec![]),
            ("/why 1", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(commands(begun), completed, "{begun:?}");
        }
        assert_eq!(commands("/").len(), command::ALL.len());
    }

    #[test]
    fn enter_replaces_the_backslash_before_it_and_no_other() {
        for (name, before, behind, does) in [
            ("whole", "one", "", Enter::Sends),
            ("at the end", "one\\", "", Enter::ReplacesTheBackslash),
            (
                "in an earlier line",
                "one\\",
                "\ntwo",
                Enter::ReplacesTheBackslash,
            ),
            ("of a paste", "one\\\ntwo", "", Enter::Sends),
            ("in the middle", "one\\", "two", Enter::Sends),
            ("behind the cursor", "one", "\\", Enter::Sends),
            ("two of them", "C:\\\\", "", Enter::Sends),
            ("an open fence", "```\ncode", "", Enter::GoesOn),
            (
                "in an open fence",
                "```\na\\",
                "\nb",
                Enter::ReplacesTheBackslash,
            ),
        ] {
            let text = format!("{before}{behind}");
            assert_eq!(on_enter(&text, before.len()), does, "{name}");
        }
    }
}
