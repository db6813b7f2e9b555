//! Errors of prompts.
//!
//! Faults of files are found together when files are read. Composition can fail for the budget, or
//! for a template that fails on particular values.

use std::fmt::{self, Display};

use super::segment::SegmentId;

/// An error of this room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The overlay folder cannot be listed.
    #[error(
        "prompt folder `{folder}` cannot be read ({reason}): make it a folder that you may read, \
         or take it out of the configuration to use the built-in prompts"
    )]
    Folder {
        /// The folder.
        folder: String,
        /// The system's reason.
        reason: String,
    },
    /// Invalid files, all of them.
    #[error("{}", lines(.0))]
    Files(Vec<Broken>),
    /// A template failed on a query's values.
    #[error("{0}")]
    Template(Broken),
    /// A required segment does not fit, even with bare tool names.
    #[error(
        "PromptBudgetExceeded: the required segment `{segment}` of {tokens} tokens does not fit: with the {used} tokens \
         before it, it exceeds the token budget of `{budget}`; shorten `{file}` or raise the budget"
    )]
    PromptBudgetExceeded {
        /// The segment.
        segment: SegmentId,
        /// Its file.
        file: String,
        /// Its size in tokens.
        tokens: u64,
        /// Tokens before it.
        used: u64,
        /// The budget in tokens.
        budget: u64,
    },
}

impl Error {
    /// Whether a shorter tool list may help.
    pub(super) const fn is_over_budget(&self) -> bool {
        matches!(self, Self::PromptBudgetExceeded { .. })
    }
}

/// A fault with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The file's name if built in, else its path.
    pub file: String,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The fault.
    pub fault: FileFault,
}

/// A fault of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// Unknown name.
    #[error(
        "unknown prompt file: use base.md, signals.md, tools-reference.md, code-analysis.md, \
         documentation.md, research.md or conversation.md, or move it elsewhere"
    )]
    UnknownName,
    /// Not readable.
    #[error("cannot be read ({0}): make it a readable file, or remove it to use the built-in one")]
    Unreadable(String),
    /// Not UTF-8.
    #[error("not UTF-8: save it as UTF-8")]
    NotUtf8,
    /// Blank.
    #[error("empty: write a prompt, or remove it to use the built-in one")]
    Empty,
    /// A syntax error.
    #[error("syntax error ({0}): write literal braces as `{{{{ \"{{{{\" }}}}`")]
    Syntax(String),
    /// An unknown variable.
    #[error(
        "unknown variable `{0}`: use project_name, project_context, max_turns, tools or query_type"
    )]
    UnknownVariable(String),
    /// An unknown attribute.
    #[error(
        "undefined value: a tool has name, summary and needed, and no variable has other parts"
    )]
    Undefined,
    /// The work limit is exceeded.
    #[error("too much work for a prompt: simplify its loops")]
    OutOfFuel,
    /// A required segment rendered blank.
    #[error("renders to nothing, but this segment is required: give it text for every query")]
    Blank,
    /// Another failure.
    #[error("{0}: correct the expression")]
    Failed(String),
}

impl Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "`{}` line {line}: {}", self.file, self.fault),
            None => write!(f, "`{}`: {}", self.file, self.fault),
        }
    }
}

fn lines<T: Display>(problems: &[T]) -> String {
    problems
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
