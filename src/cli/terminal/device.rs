//! The device behind a stream, as far as output depends on it.

use std::io::IsTerminal;

use crate::cli::Environment;

/// Columns and rows of a terminal that does not report them.
const SIZE: (usize, usize) = (80, 24);

/// Terminals that support text only, or that rustyline does not support.
const DUMB: [&str; 3] = ["dumb", "cons25", "emacs"];

/// The device behind a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// A terminal.
    Terminal {
        /// The width in columns.
        width: usize,
        /// The supported style.
        style: Style,
    },
    /// A file, a pipe or another program.
    Other,
}

/// Styles of terminal output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Cursor movement and colours.
    Coloured,
    /// No colours, by the user's choice.
    Plain,
    /// Plain text only.
    Dumb,
}

impl Style {
    /// The style that the environment selects: no colours if `NO_COLOR` is set and not empty, or if
    /// `CLICOLOR` is 0.
    pub fn wanted(environment: &Environment) -> Self {
        let value = |name| environment.get(name).filter(|value| !value.is_empty());
        if value("TERM").is_some_and(|term| DUMB.iter().any(|dumb| term.eq_ignore_ascii_case(dumb)))
        {
            Self::Dumb
        } else if value("NO_COLOR").is_some() || value("CLICOLOR").is_some_and(|it| it == "0") {
            Self::Plain
        } else {
            Self::Coloured
        }
    }

    /// Makes text dim, where the style has colours.
    pub(crate) fn dim(self, text: &str) -> String {
        if self != Self::Coloured || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[2m{}\x1b[0m", text.replace("\x1b[0m", "\x1b[0;2m"))
    }
}

/// Columns for coloured answers in files and pipes, if `CLICOLOR_FORCE` asks for them.
pub(super) fn forced_columns(environment: &Environment) -> Option<usize> {
    let force = environment.get("CLICOLOR_FORCE");
    let is_forced = force.is_some_and(|force| !force.is_empty() && force != "0");
    let columns = environment.get("COLUMNS").and_then(|it| it.to_str());
    let columns = columns.and_then(|columns| columns.parse().ok());
    (is_forced && Style::wanted(environment) == Style::Coloured)
        .then(|| columns.filter(|columns| *columns > 0).unwrap_or(SIZE.0))
}

impl Device {
    pub(super) fn of(stream: &impl IsTerminal, style: Style) -> Self {
        if !stream.is_terminal() {
            return Self::Other;
        }
        Self::Terminal {
            width: size().0,
            style,
        }
    }

    /// Whether it is a terminal.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Terminal { .. })
    }
}

/// The columns and rows of the terminal.
pub(super) fn size() -> (usize, usize) {
    terminal_size::terminal_size().map_or(SIZE, |(width, height)| (width.0.into(), height.0.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_follows_no_color_and_term() {
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
        let off = [("TERM", "xterm"), ("CLICOLOR", "0")];
        assert_eq!(Style::wanted(&off.into()), Style::Plain);
    }

    #[test]
    fn colours_are_forced_by_clicolor_force() {
        for (name, environment, columns) in [
            ("nothing said", [("", ""), ("", "")], None),
            ("forced", [("CLICOLOR_FORCE", "1"), ("", "")], Some(80)),
            ("not forced", [("CLICOLOR_FORCE", "0"), ("", "")], None),
            (
                "of a size",
                [("CLICOLOR_FORCE", "1"), ("COLUMNS", "60")],
                Some(60),
            ),
            (
                "no size",
                [("CLICOLOR_FORCE", "1"), ("COLUMNS", "0")],
                Some(80),
            ),
            (
                "refused",
                [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
                None,
            ),
        ] {
            assert_eq!(forced_columns(&environment.into()), columns, "{name}");
        }
    }
}
