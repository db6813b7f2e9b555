//! Errors of prompts. Faults of files are reported together when the files are read; composition
//! fails on the budget or on a template that rejects particular values.

use super::segment::SegmentId;

/// An error in prompt files or composition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The overlay folder cannot be listed.
    #[error(
        "cannot read the prompt folder `{folder}` ({reason}): make it readable, or remove it from \
         the configuration to use the built-in prompts"
    )]
    Folder {
        /// Path of the folder.
        folder: String,
        /// Reason given by the system.
        reason: String,
    },
    /// All invalid files.
    #[error("{}", lines(.0))]
    Files(Vec<BrokenFile>),
    /// A template failed on a query's values.
    #[error("{0}")]
    Template(BrokenFile),
    /// A required segment does not fit, even with bare tool names.
    #[error(
        "PromptBudgetExceeded: the required segment `{segment}` of {tokens} tokens does not fit: with the {used} tokens \
         before it, it exceeds the token budget of `{budget}`; shorten `{file}` or raise the budget"
    )]
    PromptBudgetExceeded {
        /// Required segment.
        segment: SegmentId,
        /// File of the segment.
        file: String,
        /// Tokens of the segment.
        tokens: u64,
        /// Tokens before the segment.
        used: u64,
        /// Token budget.
        budget: u64,
    },
}

/// A fault with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{file}`{}: {fault}", .line.map(|line| format!(" line {line}")).unwrap_or_default())]
pub struct BrokenFile {
    /// Name of a built-in file, or path of another.
    pub file: String,
    /// Line number, from 1.
    pub line: Option<usize>,
    /// Kind of fault.
    pub fault: FileFault,
}

/// Kinds of faults in prompt files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// Unknown file name.
    #[error(
        "unknown prompt file: use base.md, signals.md, tools-reference.md, code-analysis.md, \
         documentation.md, research.md or conversation.md, or move it elsewhere"
    )]
    UnknownName,
    /// Unreadable file.
    #[error("cannot be read ({0}): make it a readable file, or remove it to use the built-in one")]
    Unreadable(String),
    /// Invalid UTF-8.
    #[error("not UTF-8: save it as UTF-8")]
    NotUtf8,
    /// Blank file.
    #[error("empty: write a prompt, or remove it to use the built-in one")]
    Empty,
    /// Syntax error.
    #[error("syntax error ({0}): write literal braces as `{{{{ \"{{{{\" }}}}`")]
    Syntax(String),
    /// Unknown variable.
    #[error(
        "unknown variable `{0}`: use project_name, project_context, max_turns, tools or query_type"
    )]
    UnknownVariable(String),
    /// Unknown attribute.
    #[error(
        "undefined value: a tool has name, summary and needed, and no variable has other parts"
    )]
    Undefined,
    /// Exceeded work limit.
    #[error("too expensive to render: simplify its loops")]
    OutOfFuel,
    /// Blank rendering of a required segment.
    #[error("renders to nothing, but this segment is required: give it text for every query")]
    Blank,
    /// Any other failure.
    #[error("{0}: correct the expression")]
    Failed(String),
}

fn lines(problems: &[BrokenFile]) -> String {
    let lines: Vec<String> = problems.iter().map(BrokenFile::to_string).collect();
    lines.join("\n")
}
