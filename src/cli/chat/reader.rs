//! The source of messages: an editor on a capable terminal, else lines of standard input.

use std::io;

use super::{ChatRequest, editor::Editor};
use crate::cli::{
    ask::Format,
    multiline::{Enter, enter},
    person::{self, Keyboard, Person},
    terminal::{Style, Terminal},
    text::cleaned,
};

#[derive(Debug)]
pub(super) enum Typed {
    Message(String),
    Cleared,
    Suspended,
    NotUtf8,
    End,
    Failed(io::Error),
}

pub(super) enum Reader {
    Lines(Lines),
    Editor(Editor),
}

impl Reader {
    pub(super) fn new(request: &ChatRequest, terminal: &mut Terminal) -> Self {
        let person = terminal.input.is_terminal();
        match terminal.input.style() {
            // The editor draws on the terminal even if other streams are redirected.
            Some(Style::Coloured | Style::Plain) => match Editor::new(request.history.clone()) {
                Ok(editor) => Self::Editor(editor),
                Err(error) => {
                    let without = "messages are read without an editor";
                    terminal.note(&format!("oracle: {without}: {error}"));
                    Self::Lines(Lines::read(person))
                }
            },
            Some(Style::Dumb) | None => Self::Lines(Lines::read(person)),
        }
    }

    pub(super) fn prompt(&self, terminal: &mut Terminal) {
        match self {
            Self::Lines(_) => terminal.prompt("> "),
            Self::Editor(_) => {}
        }
    }

    /// Handles Ctrl-C while no query runs. An open editor clears its text on its own; a signal then
    /// came from elsewhere or just before.
    pub(super) fn pressed(&mut self, terminal: &mut Terminal) {
        const NOTHING: &str = "nothing is running; Ctrl-D leaves";
        match self {
            Self::Lines(lines) => {
                lines.begun.clear();
                terminal.note("");
                terminal.note(NOTHING);
            }
            Self::Editor(editor) => editor.show(&format!("{NOTHING}\n")),
        }
    }

    /// The person during a query, if questions can be shown and answers typed.
    pub(super) fn person(&mut self, format: Format, terminal: &Terminal) -> Person<'_> {
        let asks = format == Format::Text && terminal.err_is_terminal();
        match self {
            Self::Lines(lines) if asks && lines.person => Person::Lines(&mut lines.lines),
            Self::Lines(_) => Person::Nobody,
            Self::Editor(_) => Keyboard::taking_all(asks).map_or(Person::Nobody, Person::Keys),
        }
    }

    pub(super) fn begin_with(&mut self, text: String) {
        match self {
            Self::Lines(_) => {}
            Self::Editor(editor) => editor.begin_with(text),
        }
    }

    /// Waits for a message; also returns a problem with the history file.
    pub(super) async fn typed(&mut self) -> (Typed, Option<String>) {
        match self {
            Self::Lines(lines) => (lines.typed().await, None),
            Self::Editor(editor) => editor.typed().await,
        }
    }
}

pub(super) struct Lines {
    lines: person::Lines,
    person: bool,
    begun: String,
}

impl Lines {
    const fn new(lines: person::Lines, person: bool) -> Self {
        Self {
            lines,
            person,
            begun: String::new(),
        }
    }

    fn read(person: bool) -> Self {
        Self::new(person::Lines::read(), person)
    }

    async fn typed(&mut self) -> Typed {
        loop {
            let line = match self.lines.next().await {
                // The input ended within a message.
                None if !self.begun.is_empty() => return self.whole(),
                None => return Typed::End,
                Some(Err(error)) => return Typed::Failed(error),
                Some(Ok(line)) => line,
            };
            let Ok(line) = String::from_utf8(line) else {
                return Typed::NotUtf8;
            };
            if !self.person {
                return Typed::Message(line);
            }
            self.begun.push_str(line.trim_end_matches('\r'));
            match enter(&self.begun) {
                Enter::Sends => return self.whole(),
                Enter::ReplacesTheBackslash => drop(self.begun.pop()),
                Enter::GoesOn => {}
            }
            self.begun.push('\n');
        }
    }

    fn whole(&mut self) -> Typed {
        Typed::Message(cleaned(&std::mem::take(&mut self.begun)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages that these lines form.
    async fn messages(person: bool, lines: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(person::Lines::given(lines), person);
        let mut messages = Vec::new();
        loop {
            match lines.typed().await {
                Typed::Message(message) => messages.push(message),
                Typed::End => return messages,
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
