//! The built-in prompts of Oracle, as texts.
//!
//! A package contains no files from outside of its folder, so this folder is a package.

/// Who answers, and how a conversation goes.
pub const BASE: &str = include_str!("oracle/base.md");
/// The signals by which a model reports its state.
pub const SIGNALS: &str = include_str!("oracle/signals.md");
/// How tools are used.
pub const TOOLS: &str = include_str!("oracle/tools-reference.md");
/// Questions about code.
pub const CODE: &str = include_str!("oracle/code-analysis.md");
/// Small talk and questions without sources.
pub const CONVERSATION: &str = include_str!("oracle/conversation.md");
/// Documentation and actions.
pub const DOCS: &str = include_str!("oracle/documentation.md");
/// Research in several steps.
pub const RESEARCH: &str = include_str!("oracle/research.md");
