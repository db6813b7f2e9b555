//! Why a command ends before its work is done, and how that is told.
//!
//! **Invariant:** telling never fails: where standard error is closed too, the exit code is what
//! remains.

use std::{
    fmt::Display,
    io::{self, Write},
};

use super::{exit, terminal::Terminal};
use crate::{actor::AskError, control::Refused};

/// Why a command ends before its work is done.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// Help or the version was asked for, or the command line was not understood.
    #[error(transparent)]
    CommandLine(clap::Error),
    /// This is wrong, a line each.
    #[error("{}", lines.join("\n"))]
    Problems {
        /// The exit code.
        code: u8,
        /// What is wrong, and what to do about it.
        lines: Vec<String>,
    },
    /// The system did not take or answer a request.
    #[error(transparent)]
    Refused(Refused),
    /// Ctrl-C was pressed a second time.
    #[error("interrupted")]
    Interrupted,
    /// Nobody reads standard output any more: no need to say anything.
    #[error("standard output is closed")]
    Closed,
}

impl Stop {
    /// Something typed, read or configured is wrong; a text of several lines is several problems.
    #[must_use]
    pub fn usage(problem: impl Display) -> Self {
        Self::all([problem])
    }

    /// Several things typed, read or configured are wrong.
    #[must_use]
    pub fn all<T: Display>(problems: impl IntoIterator<Item = T>) -> Self {
        Self::with_code(exit::USAGE, problems)
    }

    /// A result has no form in JSON.
    #[must_use]
    pub fn no_json(error: serde_json::Error) -> Self {
        Self::failed(format_args!(
            "the result cannot be written as JSON: {error}"
        ))
    }

    /// It was tried, and failed.
    #[must_use]
    pub fn failed(problem: impl Display) -> Self {
        Self::with_code(exit::FAILED, [problem])
    }

    /// It cannot be done while something else goes on.
    #[must_use]
    pub fn busy(problem: impl Display) -> Self {
        Self::with_code(exit::BUSY, [problem])
    }

    pub(super) fn with_code<T: Display>(code: u8, problems: impl IntoIterator<Item = T>) -> Self {
        let text = |problem: T| problem.to_string();
        let lines = problems.into_iter().map(text).collect::<Vec<_>>();
        let lines = lines.iter().flat_map(|text| text.lines());
        Self::Problems {
            code,
            lines: lines.map(str::to_owned).collect(),
        }
    }

    /// Tells it and gives the exit code.
    pub fn tell(self, terminal: &mut Terminal) -> u8 {
        match self {
            Self::CommandLine(error) => command_line(&error, terminal),
            Self::Problems { code, lines } => {
                for line in lines {
                    terminal.err.say(line);
                }
                code
            }
            Self::Refused(Refused { code, message, .. }) => {
                terminal.err.say(message);
                exit::of_code(code)
            }
            Self::Interrupted => {
                terminal.err.say("interrupted");
                exit::CANCELLED
            }
            Self::Closed => exit::DONE,
        }
    }
}

fn command_line(error: &clap::Error, terminal: &mut Terminal) -> u8 {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return match terminal.out.write_all(text.as_bytes()) {
            Ok(()) => exit::DONE,
            Err(error) => Stop::from(error).tell(terminal),
        };
    }
    // Without arguments it is the help, which names the program by itself.
    match text.strip_prefix("error: ") {
        Some(problem) => terminal.err.say(problem.trim_end()),
        None => terminal.note(text.trim_end()),
    }
    exit::USAGE
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::failed(format_args!("standard output cannot be written: {error}"))
    }
}

impl From<AskError> for Stop {
    fn from(error: AskError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

#[cfg(test)]
mod tests;
