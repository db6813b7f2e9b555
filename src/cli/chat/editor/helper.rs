//! The helper of rustyline: completes commands and handles Enter and Ctrl-Z.

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
        if self.0.swap(false, Ordering::Relaxed) {
            return Ok((at.saturating_sub(1), vec!["\n".to_owned()]));
        }
        Ok((0, line.get(..at).map_or_else(Vec::new, commands)))
    }
}

/// Completions of `begun`. A command with an argument ends in a space.
fn commands(begun: &str) -> Vec<String> {
    if !begun.starts_with('/') {
        return Vec::new();
    }
    let named = command::names().filter(|known| known.0.starts_with(begun));
    let named = named.map(|(name, has_argument)| match has_argument {
        false => name.to_owned(),
        true => format!("{name} "),
    });
    named.collect()
}

impl Hinter for Helper {
    type Hint = String;
}

/// Does not draw characters without width, so that pasted or stored text cannot control the
/// terminal.
impl Highlighter for Helper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned(visible(line))
    }
}

impl Validator for Helper {}

impl rustyline::Helper for Helper {}

/// The text before and after the cursor when Ctrl-Z was pressed. A lock, because rustyline owns the
/// key handlers.
pub(super) type Suspended = Arc<Mutex<Option<(String, String)>>>;

/// Whether the backslash before the cursor becomes a new line. No rustyline command replaces it and
/// moves the cursor; a completion does.
pub(super) type Continued = Arc<AtomicBool>;

/// Sends a complete message on Enter, and begins a new line in an incomplete one.
pub(super) struct EnterKey(pub(super) Continued);

impl ConditionalEventHandler for EnterKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext<'_>) -> Option<Cmd> {
        match on_enter(at.line(), at.pos()) {
            Enter::Sends => None,
            Enter::ContinuesLine => Some(Cmd::Newline),
            Enter::ReplacesBackslash => {
                self.0.store(true, Ordering::Relaxed);
                Some(Cmd::Complete)
            }
        }
    }
}

fn on_enter(text: &str, cursor: usize) -> Enter {
    let (before, behind) = text.split_at_checked(cursor).unwrap_or((text, ""));
    let ends_a_line = behind.is_empty() || behind.starts_with('\n');
    if ends_a_line && is_continued(before) {
        return Enter::ReplacesBackslash;
    }
    match enter(text) {
        Enter::ContinuesLine => Enter::ContinuesLine,
        Enter::Sends | Enter::ReplacesBackslash => Enter::Sends,
    }
}

/// Restores the terminal on Ctrl-Z before the process stops. With several threads, rustyline's own
/// handler runs on for a moment and takes the terminal again.
pub(super) struct SuspendKey(pub(super) Suspended);

impl ConditionalEventHandler for SuspendKey {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, at: &EventContext<'_>) -> Option<Cmd> {
        let (before, behind) = at.line().split_at_checked(at.pos())?;
        *self.0.lock() = Some((before.to_owned(), behind.to_owned()));
        Some(Cmd::Interrupt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_complete_from_their_prefix() {
        for (begun, completed) in [
            ("/q", vec!["/quit"]),
            ("/re", vec!["/resume "]),
            ("/co", vec!["/cost", "/compact"]),
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
        assert_eq!(commands("/").len(), command::names().count());
    }

    #[test]
    fn enter_replaces_only_the_backslash_before_the_cursor() {
        for (name, before, behind, does) in [
            ("whole", "one", "", Enter::Sends),
            ("at the end", "one\\", "", Enter::ReplacesBackslash),
            (
                "in an earlier line",
                "one\\",
                "\ntwo",
                Enter::ReplacesBackslash,
            ),
            ("of a paste", "one\\\ntwo", "", Enter::Sends),
            ("in the middle", "one\\", "two", Enter::Sends),
            ("behind the cursor", "one", "\\", Enter::Sends),
            ("two of them", "C:\\\\", "", Enter::Sends),
            ("an open fence", "```\ncode", "", Enter::ContinuesLine),
            (
                "in an open fence",
                "```\na\\",
                "\nb",
                Enter::ReplacesBackslash,
            ),
        ] {
            let text = format!("{before}{behind}");
            assert_eq!(on_enter(&text, before.len()), does, "{name}");
        }
    }
}
