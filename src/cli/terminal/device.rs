//! What is on the other end of a stream, as far as writing to it depends on that.

use std::io::IsTerminal;

use crate::cli::Environment;

/// Columns of a terminal that does not say how many it has.
const WIDTH: usize = 80;

/// Terminals that can do nothing but text, or whose ways are not known to the editor of `oracle chat`.
const DUMB: [&str; 3] = ["dumb", "cons25", "emacs"];

/// What is on the other end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// A person at a terminal.
    Terminal {
        /// How many columns it has.
        width: usize,
        /// What may be used to write to it.
        style: Style,
    },
    /// A file, a pipe or another program.
    Other,
}

/// What may be used to write to a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Colours too.
    Coloured,
    /// No colours, as the person wishes.
    Plain,
    /// Nothing but text: the terminal can do no more.
    Dumb,
}

impl Style {
    /// By the environment: no colours with a `NO_COLOR` that is not empty.
    #[must_use]
    pub fn wanted(environment: &Environment) -> Self {
        let says = |name| environment.get(name).filter(|value| !value.is_empty());
        if says("TERM").is_some_and(|term| DUMB.iter().any(|dumb| term.eq_ignore_ascii_case(dumb)))
        {
            Self::Dumb
        } else if says("NO_COLOR").is_some() {
            Self::Plain
        } else {
            Self::Coloured
        }
    }
}

impl Device {
    pub(super) fn of(stream: &impl IsTerminal, style: Style) -> Self {
        if !stream.is_terminal() {
            return Self::Other;
        }
        Self::Terminal {
            width: columns(),
            style,
        }
    }

    /// Whether a person is there.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Terminal { .. })
    }
}

pub(super) fn columns() -> usize {
    let size = terminal_size::terminal_size();
    size.map_or(WIDTH, |(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_by_the_wish_of_the_person_and_the_terminal() {
        for (name, environment, style) in [
            ("nothing said", [("", ""), ("", "")], Style::Coloured),
            (
                "a terminal",
                [("TERM", "xterm"), ("NO_COLOR", "")],
                Style::Coloured,
            ),
            (
                "no colours",
                [("TERM", "xterm"), ("NO_COLOR", "1")],
                Style::Plain,
            ),
            ("dumb", [("TERM", "dumb"), ("NO_COLOR", "1")], Style::Dumb),
            ("Emacs", [("TERM", "emacs"), ("NO_COLOR", "")], Style::Dumb),
            (
                "cons25",
                [("TERM", "cons25"), ("NO_COLOR", "")],
                Style::Dumb,
            ),
        ] {
            assert_eq!(Style::wanted(&environment.into()), style, "{name}");
        }
    }
}
