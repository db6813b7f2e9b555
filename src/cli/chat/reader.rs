//! The source of messages: an editor on a capable terminal, else lines of standard input.

use std::{io, path::PathBuf};

use super::editor::Editor;
use crate::cli::{
    ask::Format,
    multiline::{Enter, enter},
    terminal::{Style, Terminal},
    text::cleaned,
    user::{self, Keyboard, TerminalUser},
};

#[derive(Debug)]
pub(super) enum ReaderEvent {
    Message(String),
    Cleared,
    Suspended,
    NotUtf8,
    End,
    Failed(io::Error),
}

pub(super) enum Reader {
    Lines(MessageLines),
    Editor(Editor),
}

impl Reader {
    pub(super) fn new(history: PathBuf, terminal: &mut Terminal) -> Self {
        // The editor draws on the terminal even if other streams are redirected.
        if let Some(Style::Coloured | Style::Plain) = terminal.input.style() {
            match Editor::new(history) {
                Ok(editor) => return Self::Editor(editor),
                Err(error) => {
                    terminal.say(format_args!("line editing is unavailable: {error}"));
                }
            }
        }
        let user = terminal.input.is_terminal();
        Self::Lines(MessageLines::new(user::Lines::read(), user))
    }

    pub(super) fn prompt(&self, terminal: &mut Terminal) {
        if let Self::Lines(_) = self {
            terminal.prompt("> ");
        }
    }

    /// Handles Ctrl-C while no query runs. An open editor clears its text on its own; a signal then
    /// came from elsewhere or just before.
    pub(super) fn pressed(&mut self, terminal: &mut Terminal) {
        const NOTHING: &str = "no question is running; press Ctrl-D to exit";
        match self {
            Self::Lines(lines) => {
                lines.begun.clear();
                terminal.note("");
                terminal.note(NOTHING);
            }
            Self::Editor(editor) => editor.show(&format!("{NOTHING}\n")),
        }
    }

    /// The user during a query, if questions can be shown and answers typed.
    pub(super) fn user(&mut self, format: Format, terminal: &Terminal) -> TerminalUser<'_> {
        let asks = format == Format::Text && terminal.err_is_terminal();
        match self {
            Self::Lines(lines) if asks && lines.user => TerminalUser::Lines(&mut lines.lines),
            Self::Lines(_) => TerminalUser::Absent,
            Self::Editor(_) => {
                Keyboard::taking_all(asks).map_or(TerminalUser::Absent, TerminalUser::Keys)
            }
        }
    }

    pub(super) fn begin_with(&mut self, text: String) {
        if let Self::Editor(editor) = self {
            editor.begin_with(text);
        }
    }

    /// Waits for a message; also returns a problem with the history file.
    pub(super) async fn typed(&mut self) -> (ReaderEvent, Option<String>) {
        match self {
            Self::Lines(lines) => (lines.typed().await, None),
            Self::Editor(editor) => editor.typed().await,
        }
    }
}

pub(super) struct MessageLines {
    lines: user::Lines,
    user: bool,
    begun: String,
}

impl MessageLines {
    const fn new(lines: user::Lines, user: bool) -> Self {
        Self {
            lines,
            user,
            begun: String::new(),
        }
    }

    async fn typed(&mut self) -> ReaderEvent {
        loop {
            let line = match self.lines.next().await {
                // The input ended within a message.
                None if !self.begun.is_empty() => return self.whole(),
                None => return ReaderEvent::End,
                Some(Err(error)) => return ReaderEvent::Failed(error),
                Some(Ok(line)) => line,
            };
            let Ok(line) = String::from_utf8(line) else {
                return ReaderEvent::NotUtf8;
            };
            if !self.user {
                return ReaderEvent::Message(line);
            }
            self.begun.push_str(line.trim_end_matches('\r'));
            match enter(&self.begun) {
                Enter::Sends => return self.whole(),
                Enter::ReplacesBackslash => drop(self.begun.pop()),
                Enter::ContinuesLine => {}
            }
            self.begun.push('\n');
        }
    }

    fn whole(&mut self) -> ReaderEvent {
        ReaderEvent::Message(cleaned(&std::mem::take(&mut self.begun)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages that these lines form.
    async fn messages(user: bool, lines: &[&str]) -> Vec<String> {
        let mut lines = MessageLines::new(user::Lines::of_texts(lines), user);
        let mut messages = Vec::new();
        loop {
            match lines.typed().await {
                ReaderEvent::Message(message) => messages.push(message),
                ReaderEvent::End => return messages,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn escape_sequences_are_removed_from_a_pasted_message() {
        for (pasted, want) in [
            ("\x1b[1;31merror\x1b[0m: x", "error: x"),
            ("\u{9b}2Ja", "a"),
            (
                "\x1b]8;;https://example.org\x07link\x1b]8;;\x1b\\ b",
                "link b",
            ),
            ("\x1b(Ba\x1b=b\x1b", "ab"),
            ("a[0m", "a[0m"),
            ("\x1b]open\nnext", "open\nnext"),
            ("é\x1b[Kü", "éü"),
        ] {
            assert_eq!(cleaned(pasted), want, "{pasted:?}");
        }
    }

    #[tokio::test]
    async fn terminal_input_continues_over_lines_and_piped_input_does_not() {
        let lines = [
            "one\\",
            "two",
            "```",
            "code",
            "",
            "```",
            "\x07a\tb\u{9b}",
            "open\\",
        ];
        let want = ["one\ntwo", "```\ncode\n\n```", "a\tb", "open\n"];
        assert_eq!(messages(true, &lines).await, want);
        assert_eq!(messages(false, &lines).await, lines);
    }
}
