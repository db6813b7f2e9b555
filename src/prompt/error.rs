//! Why there are no prompts, or no prompt.
//!
//! Faults of files are found when the files are read, all at once; what is left for composition is
//! a budget that is too small and a template that only fails on particular values.

use std::fmt::{self, Display};

use super::{segment::SegmentId, settings::OutOfRange};

/// What can go wrong in this room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The folder that should overlay the built-in files cannot be listed. Start or reload is
    /// refused.
    #[error(
        "prompt folder `{folder}` cannot be read ({reason}): make it a folder that you may read, \
         or take it out of the configuration to use the built-in prompts"
    )]
    Folder {
        /// The folder.
        folder: String,
        /// What the system says.
        reason: String,
    },
    /// Files that are not usable, all of them. Start or reload is refused.
    #[error("{}", lines(.0))]
    Files(Vec<Broken>),
    /// Settings out of range, all of them. Start or reload is refused.
    #[error("{}", lines(.0))]
    Settings(Vec<OutOfRange>),
    /// A template failed on the values of this query.
    #[error("{0}")]
    Template(Broken),
    /// A required segment does not fit, even with the tool list cut to bare names. The query fails.
    #[error(
        "PromptBudgetExceeded: the required segment `{segment}` of {tokens} tokens does not fit: with the {used} tokens \
         before it, it exceeds the token budget of `{budget}`; shorten `{file}` or raise the budget"
    )]
    PromptBudgetExceeded {
        /// Which segment.
        segment: SegmentId,
        /// Its file.
        file: String,
        /// Its size in tokens.
        tokens: u64,
        /// The size of what stands before it, in tokens.
        used: u64,
        /// The budget in tokens.
        budget: u64,
    },
}

impl Error {
    /// Whether a shorter list of tools may help.
    pub(super) const fn is_over_budget(&self) -> bool {
        matches!(self, Self::PromptBudgetExceeded { .. })
    }
}

/// A file that cannot be used, and where it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The file: its name if built in, else its path.
    pub file: String,
    /// The line, from 1, where there is one.
    pub line: Option<usize>,
    /// What is wrong.
    pub fault: FileFault,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// Its name is none of the seven.
    #[error(
        "unknown prompt file: use base.md, signals.md, tools-reference.md, code-analysis.md, \
         documentation.md, research.md or conversation.md, or move it elsewhere"
    )]
    UnknownName,
    /// The system does not let it be read.
    #[error("cannot be read ({0}): make it a readable file, or remove it to use the built-in one")]
    Unreadable(String),
    /// It holds bytes that are no UTF-8.
    #[error("not UTF-8: save it as UTF-8")]
    NotUtf8,
    /// It holds nothing but white space.
    #[error("empty: write a prompt, or remove it to use the built-in one")]
    Empty,
    /// It is not a template.
    #[error("syntax error ({0}): write literal braces as `{{{{ \"{{{{\" }}}}`")]
    Syntax(String),
    /// It uses a name that is none of the variables.
    #[error(
        "unknown variable `{0}`: use project_name, project_context, max_turns, tools or query_type"
    )]
    UnknownVariable(String),
    /// It uses something of a variable that is not there.
    #[error(
        "undefined value: a tool has name, summary and needed, and no variable has other parts"
    )]
    Undefined,
    /// It works too long.
    #[error("too much work for a prompt: simplify its loops")]
    OutOfFuel,
    /// A required segment came out blank.
    #[error("renders to nothing, but this segment is required: give it text for every query")]
    Blank,
    /// It fails in another way.
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

/// One line each.
fn lines<T: Display>(problems: &[T]) -> String {
    problems
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}
