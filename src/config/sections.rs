//! The sections whose settings belong to no single room below: plain values, with their defaults.
//!
//! What each key may be set to is in [`super::schema`].

use std::{
    ffi::OsStr,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use jiff::fmt::serde::unsigned_duration::friendly::compact as span;
use serde::{Deserialize, Serialize};

use super::value::{ModelChain, usd};
use crate::{
    kernel::{BasisPoints, OnMissingSignal, share},
    model::NanoUsd,
};

/// `[oracle]`: turns, and when to warn. These keys have environment variables of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Oracle {
    /// Most turns of a query.
    pub max_turns: u32,
    /// Share of the turns at which a query is warned of.
    #[serde(with = "share")]
    pub iteration_warning_threshold: BasisPoints,
    /// Share of a token or cost budget at which a query is warned of.
    #[serde(with = "share")]
    pub token_warning_threshold: BasisPoints,
    /// Share of the context window at which a query is warned of.
    #[serde(with = "share")]
    pub context_warning_threshold: BasisPoints,
}

impl Default for Oracle {
    fn default() -> Self {
        Self {
            max_turns: 30,
            iteration_warning_threshold: BasisPoints::new(7_000),
            token_warning_threshold: BasisPoints::new(8_000),
            context_warning_threshold: BasisPoints::new(7_000),
        }
    }
}

/// `[budget]`: what a query and a session may use besides turns; a key that is not set limits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Most tokens of a query, sent and received.
    pub max_tokens: Option<u64>,
    /// Most money of a query, in US dollars.
    #[serde(with = "usd")]
    pub max_cost_usd: Option<NanoUsd>,
    /// Most tokens of all queries of a session together.
    pub session_max_tokens: Option<u64>,
    /// Most money of all queries of a session together, in US dollars.
    #[serde(with = "usd")]
    pub session_max_cost_usd: Option<NanoUsd>,
    /// A price list whose entries come before the built-in ones.
    pub prices: Option<PathBuf>,
}

/// `[turn]`: what follows a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// What a reply without a signal leads to.
    pub on_missing_signal: OnMissingSignal,
}

/// `[prompt]`: what the model is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prompt {
    /// A folder whose files replace the built-in segments of the same name.
    pub dir: Option<PathBuf>,
    /// A file about the project for every model; its first 2,000 tokens are used.
    pub context: Option<PathBuf>,
    /// Further instructions for every model.
    pub instructions: Option<String>,
    /// Most tokens of a composed prompt, estimated.
    pub token_budget: u64,
}

impl Default for Prompt {
    fn default() -> Self {
        Self {
            dir: None,
            context: None,
            instructions: None,
            token_budget: 8_000,
        }
    }
}

/// `[query]`: how queries are classified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// A lexicon that replaces the built-in one.
    pub lexicon: Option<PathBuf>,
    /// A lexicon that is laid over it.
    pub lexicon_overlay: Option<PathBuf>,
    /// Learned weights that replace the built-in ones.
    pub weights: Option<PathBuf>,
    /// Below this confidence of the classifier a model is asked; never, if it is not set.
    #[serde(with = "share::optional")]
    pub second_opinion_below: Option<BasisPoints>,
    /// Which model, as `provider/model`; the first of the chain, if it is not set.
    pub second_opinion_model: Option<String>,
    /// How long to wait for it; then the classifier's result stands.
    #[serde(with = "span::required")]
    pub second_opinion_deadline: Duration,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            lexicon: None,
            lexicon_overlay: None,
            weights: None,
            second_opinion_below: None,
            second_opinion_model: None,
            second_opinion_deadline: Duration::from_secs(5),
        }
    }
}

/// `[tools]`: what tools may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// How long one call may take.
    #[serde(with = "span::required")]
    pub call_deadline: Duration,
    /// How long one search may take; a search over files ends after a minute at the latest, with what it
    /// has.
    #[serde(with = "span::required")]
    pub search_deadline: Duration,
    /// Most calls of one turn that run at the same time.
    pub max_parallel: usize,
    /// Largest file that is searched, in bytes.
    pub max_file_bytes: u64,
    /// Tokens of a map of the project where a call names no number.
    pub map_tokens: u32,
    /// The tools of a conversation; all but those of `attachable`, if it is not set.
    pub only: Option<Vec<String>>,
    /// Tools that can be given to a conversation later, one by one.
    pub attachable: Vec<String>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            call_deadline: Duration::from_secs(30),
            search_deadline: Duration::from_secs(10),
            max_parallel: 8,
            max_file_bytes: 1_048_576,
            map_tokens: 2_000,
            only: None,
            attachable: Vec::new(),
        }
    }
}

/// `[notes]`: which notes there are, and whether more may be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Notes {
    /// The folder of the notes; a relative path starts at the project. The project, if it is not set.
    pub dir: Option<PathBuf>,
    /// Whether notes may be written; a person approves each one.
    pub write: bool,
    /// Most notes that are kept ready to be searched.
    pub max_files: usize,
    /// Most bytes of notes that are kept ready.
    pub max_bytes: u64,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            dir: None,
            write: false,
            max_files: 20_000,
            max_bytes: 67_108_864,
        }
    }
}

/// `[model]`: which models are asked, how often and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// The models, the first choice first. Where it is not set, the keys in the environment decide: see
    /// [`Config::choice`](super::Config::choice).
    pub chain: Option<ModelChain>,
    /// Most tries of a turn with one model before the next of the chain.
    pub attempts: u32,
    /// How long a query waits for a server that is away and has no replacement; five minutes, if it is
    /// not set, and ten seconds for `ask` at a terminal.
    #[serde(with = "span::optional")]
    pub patience: Option<Duration>,
    /// Of a try: until there is a connection.
    #[serde(with = "span::required")]
    pub connect_deadline: Duration,
    /// From there until the headers of the answer.
    #[serde(with = "span::required")]
    pub headers_deadline: Duration,
    /// From the start of a try until the first token.
    #[serde(with = "span::required")]
    pub first_token_deadline: Duration,
    /// Between two tokens.
    #[serde(with = "span::required")]
    pub idle_deadline: Duration,
    /// For a whole try.
    #[serde(with = "span::required")]
    pub total_deadline: Duration,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            chain: None,
            attempts: 3,
            patience: None,
            connect_deadline: Duration::from_secs(10),
            headers_deadline: Duration::from_secs(60),
            first_token_deadline: Duration::from_secs(60),
            idle_deadline: Duration::from_secs(60),
            total_deadline: Duration::from_secs(600),
        }
    }
}

/// `[session]`: one conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Session {
    /// Most messages that are pending while a query runs; more are refused.
    pub inbox_capacity: usize,
    /// A session is passivated after this time without work.
    #[serde(with = "span::required")]
    pub idle_timeout: Duration,
    /// With more live sessions than this, those that are idle longest are passivated.
    pub max_live: usize,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            inbox_capacity: 32,
            idle_timeout: Duration::from_secs(300),
            max_live: 50_000,
        }
    }
}

/// `[supervisor]`: stalls, restarts and recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Supervisor {
    /// A session without progress for this long is stalled; longer than every model and tool deadline.
    #[serde(with = "span::required")]
    pub stall_limit: Duration,
    /// Crashes and stalls that fail a query.
    pub max_crashes: u32,
    /// Deaths of the process that fail a query.
    pub max_process_deaths: u32,
    /// Queries that may run at a time while others are still to be recovered after a start.
    pub recovery_concurrency: usize,
    /// Number of shards.
    pub shards: usize,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self {
            stall_limit: Duration::from_secs(900),
            max_crashes: 3,
            max_process_deaths: 10,
            recovery_concurrency: 32,
            shards: 16,
        }
    }
}

/// `[actors]`: actors that all sessions share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Actors {
    /// Number of classifiers.
    pub classifiers: usize,
    /// Number of composers.
    pub composers: usize,
    /// Most model calls of one provider at the same time.
    pub model_concurrency: usize,
    /// Most queued model calls of one provider; more are refused with a hint when to retry.
    pub model_queue: usize,
}

impl Default for Actors {
    fn default() -> Self {
        Self {
            classifiers: 2,
            composers: 2,
            model_concurrency: 64,
            model_queue: 1_024,
        }
    }
}

/// `[server]`: how the HTTP server listens, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Where it listens; port 0 is a free one.
    pub listen: SocketAddr,
    /// How long a graceful shutdown may take.
    #[serde(with = "span::required")]
    pub drain_deadline: Duration,
    /// How long a request's head may take to arrive.
    #[serde(with = "span::required")]
    pub header_timeout: Duration,
    /// How long a request's body may take to arrive.
    #[serde(with = "span::required")]
    pub body_timeout: Duration,
    /// A connection without a request for this long is closed.
    #[serde(with = "span::required")]
    pub idle_timeout: Duration,
    /// A client that reads nothing of a response for this long is cut off.
    #[serde(with = "span::required")]
    pub write_timeout: Duration,
    /// Most connections at a time.
    pub max_connections: usize,
    /// Most connections at a time from one address, except this machine's own.
    pub max_connections_per_address: usize,
    /// Most requests at a time, streams among them.
    pub max_requests: usize,
    /// Most queries at a time; beyond it new messages are refused.
    pub max_queries: usize,
    /// Most pending messages and queued model calls; beyond it new messages are refused.
    pub max_backlog: usize,
    /// Largest body of a request, in bytes.
    pub max_body: usize,
    /// Whether it only serves where there are keys.
    pub require_keys: bool,
    /// Host names of the server, besides `localhost` and its address.
    pub allowed_hosts: Vec<String>,
    /// Origins whose web pages may send requests, as browsers send them.
    pub allowed_origins: Vec<String>,
    /// Wrong keys that an address may show in a minute.
    pub wrong_keys_per_minute: u64,
    /// Whether chats over OpenAI's interface show progress as reasoning, unless a request says otherwise.
    pub progress: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7770)),
            drain_deadline: Duration::from_secs(25),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(120),
            write_timeout: Duration::from_secs(30),
            max_connections: 10_000,
            max_connections_per_address: 1_000,
            max_requests: 10_000,
            max_queries: 20_000,
            max_backlog: 1_000,
            max_body: 8 << 20,
            require_keys: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            wrong_keys_per_minute: 10,
            progress: false,
        }
    }
}

/// `[data]`: where things are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Data {
    /// The folder of the journal; see [`Data::directory`] for the default.
    pub dir: Option<PathBuf>,
}

/// There is no place for data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no folder for data: neither `XDG_DATA_HOME` nor `HOME` is set, so set `data.dir`")]
pub struct NoDataDirectory;

impl Data {
    /// The folder that is set, else `oracle` in `$XDG_DATA_HOME`, else in `$HOME/.local/share`. As
    /// the XDG rules have it, an empty or relative `XDG_DATA_HOME` is as good as none.
    ///
    /// # Errors
    /// If neither is set.
    pub fn directory(
        &self,
        xdg_data_home: Option<&OsStr>,
        home: Option<&OsStr>,
    ) -> Result<PathBuf, NoDataDirectory> {
        if let Some(dir) = &self.dir {
            return Ok(dir.clone());
        }
        let absolute = |path: &OsStr| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
        let data = xdg_data_home.and_then(absolute);
        let in_home = || Some(home.and_then(absolute)?.join(".local/share"));
        let data = data.or_else(in_home).ok_or(NoDataDirectory)?;
        Ok(data.join("oracle"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_lives_where_it_is_told_to() {
        let set = Data {
            dir: Some("here".into()),
        };
        let default = Data::default();
        for (name, data, xdg, home, want) in [
            ("set", &set, "/x", "/h", Some("here")),
            ("xdg", &default, "/x", "/h", Some("/x/oracle")),
            ("home", &default, "", "/h", Some("/h/.local/share/oracle")),
            ("relative xdg", &default, "x", "", None),
        ] {
            let got = data.directory(Some(OsStr::new(xdg)), Some(OsStr::new(home)));
            let want = want.map(PathBuf::from).ok_or(NoDataDirectory);
            assert_eq!(got, want, "{name}");
        }
        assert_eq!(default.directory(None, None), Err(NoDataDirectory));
    }
}
