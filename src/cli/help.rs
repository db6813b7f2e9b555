//! Long help texts: examples, then details.

pub(super) const ABOUT: &str = "Durable conversations with LLM agents about your project";

pub(super) const TOP: &str = include_str!("help/top.txt").trim_ascii_end();

pub(super) const TOP_SHORT: &str = include_str!("help/top_short.txt").trim_ascii_end();

pub(super) const ASK: &str = include_str!("help/ask.txt").trim_ascii_end();

pub(super) const CHAT: &str = include_str!("help/chat.txt").trim_ascii_end();

#[cfg(feature = "mcp")]
pub(super) const MCP: &str = include_str!("help/mcp.txt").trim_ascii_end();

pub(super) const SERVE: &str = include_str!("help/serve.txt").trim_ascii_end();

pub(super) const KEYS: &str = include_str!("help/keys.txt").trim_ascii_end();

pub(super) const CTL: &str = include_str!("help/ctl.txt").trim_ascii_end();

pub(super) const SESSIONS: &str = include_str!("help/sessions.txt").trim_ascii_end();

pub(super) const USAGE: &str = include_str!("help/usage.txt").trim_ascii_end();

pub(super) const JOURNAL: &str = include_str!("help/journal.txt").trim_ascii_end();

pub(super) const CLASSIFY: &str = include_str!("help/classify.txt").trim_ascii_end();

pub(super) const SIGNAL: &str = include_str!("help/signal.txt").trim_ascii_end();

pub(super) const PROMPT: &str = include_str!("help/prompt.txt").trim_ascii_end();

pub(super) const REPLAY: &str = include_str!("help/replay.txt").trim_ascii_end();

#[cfg(feature = "mock")]
pub(super) const MOCK_MODEL: &str = include_str!("help/mock_model.txt").trim_ascii_end();

pub(super) const CONFIG: &str = include_str!("help/config.txt").trim_ascii_end();

#[cfg(feature = "bench")]
pub(super) const BENCH: &str = include_str!("help/bench.txt").trim_ascii_end();

pub(super) const MODELS: &str = include_str!("help/models.txt").trim_ascii_end();

pub(super) const DOCTOR: &str = include_str!("help/doctor.txt").trim_ascii_end();

pub(super) const COMPLETIONS: &str = include_str!("help/completions.txt").trim_ascii_end();

pub(super) const MAN: &str = include_str!("help/man.txt").trim_ascii_end();

#[cfg(feature = "tui")]
pub(super) const TOP_TABLE: &str = include_str!("help/top_table.txt").trim_ascii_end();
