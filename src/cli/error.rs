//! Errors of commands, and how they are reported.
//!
//! **Invariant:** reporting never fails; if standard error is closed as well, the exit code
//! remains.

use std::{
    fmt::Display,
    io::{self, Write},
};

use super::{exit, terminal::Terminal};
use crate::{actor::AskError, app::BuildError, control::Refused};

/// The result of a command.
pub type CliResult<T = ()> = Result<T, CliError>;

/// Why a command ends before its work is done.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Help or the version was requested, or the command line is invalid.
    #[error(transparent)]
    CommandLine(clap::Error),
    /// Problems, one per line.
    #[error("{}", lines.join("\n"))]
    Problems {
        /// The exit code.
        code: u8,
        /// Each problem with its remedy.
        lines: Vec<String>,
    },
    /// The system refused a request or did not reply.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Ctrl-C was pressed a second time.
    #[error("interrupted")]
    Interrupted,
    /// Standard output is closed, so no message is needed.
    #[error("standard output is closed")]
    Closed,
}

impl CliError {
    /// An error in input or configuration; each line of the text is a problem.
    pub fn usage(problem: impl Display) -> Self {
        Self::all([problem])
    }

    /// Several errors in input or configuration.
    pub fn all<T: Display>(problems: impl IntoIterator<Item = T>) -> Self {
        Self::with_code(exit::USAGE, problems)
    }

    /// An error with these problems in input or configuration, if there are any.
    pub(crate) fn if_any(problems: Vec<String>) -> CliResult {
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Self::all(problems)),
        }
    }

    /// An error because a result cannot be serialized.
    pub fn no_json(error: serde_json::Error) -> Self {
        Self::failed(format_args!("cannot write the result as JSON: {error}"))
    }

    /// A failure of the operation.
    pub fn failed(problem: impl Display) -> Self {
        Self::with_code(exit::FAILED, [problem])
    }

    /// A conflict with something in progress.
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

    /// Reports the error and returns the exit code.
    pub fn report(self, terminal: &mut Terminal) -> u8 {
        terminal.keep_live();
        match self {
            Self::CommandLine(error) => command_line(&error, terminal),
            Self::Problems { code, lines } => {
                for line in lines {
                    terminal.say(line);
                }
                code
            }
            Self::Refused(Refused { code, message, .. }) => {
                terminal.say(message);
                exit::of_code(code)
            }
            Self::Interrupted => {
                terminal.say("interrupted");
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
            Err(error) => CliError::from(error).report(terminal),
        };
    }
    // Without arguments it is the help, which already names the program.
    match text.strip_prefix("error: ") {
        Some(problem) => terminal.say(problem.trim_end()),
        None => terminal.note(text.trim_end()),
    }
    exit::USAGE
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::failed(format_args!("cannot write to standard output: {error}"))
    }
}

/// Every build error is a configuration error, except that of starting actors.
impl From<BuildError> for CliError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Start(_) => Self::failed(error),
            _ => Self::usage(error),
        }
    }
}

impl From<AskError> for CliError {
    fn from(error: AskError) -> Self {
        Self::Refused(error.into())
    }
}

#[cfg(test)]
mod tests;
