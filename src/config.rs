//! Configuration (spec 13): what can be set, by whom, and what is wrong with it.
//!
//! A [`Config`] is plain data: one struct a section, every value of a type that has no bad values,
//! every default spelt out. [`load`] lays file, environment and command line over the defaults and
//! reports all that is wrong at once. `config/oracle.toml` says in words what each key does and is
//! tested to be the default.
//!
//! This room reads no environment and no clock, and opens no file but the one it is told to. It
//! knows no other room: each has settings of its own, and the composition root maps these to
//! those. Secrets are not configuration and have no key here; only where one is to be found has.

mod check;
mod environment;
mod file;
mod keys;
mod list;
mod load;
mod part;
mod preset;
mod prices;
mod problem;
mod process;
mod profile;
mod provider;
mod query;
mod secret;
mod server;
mod show;
mod tenants;
mod value;

use serde::{Deserialize, Serialize};

pub use file::File;
pub use load::{Loaded, Setting, Sources, load};
pub use part::{Model, Notes, Prompt, Query, Tools};
pub use preset::{Because, Choice, PRESETS, Preset};
pub use prices::{Prices, PricesError};
pub use problem::{Origin, Problem};
pub use process::{Actors, Data, NoDataDirectory, Session, Supervisor};
pub use profile::Profile;
pub use provider::{Dialect, Provider, ProviderModel, Stream};
pub use query::{Budget, Delegation, Fallback, OnMissingSignal, Oracle, Turn};
pub use secret::may_be_secret;
pub use server::Server;
pub use tenants::{Named, OfTenant, Tenants};
pub use value::{
    Address, BaseUrl, Count, FilePath, Form, HeaderName, HeaderValue, HostName, Instructions,
    ModelChain, ModelName, NotAllowed, OneLine, OneModel, ProviderName, Rate, Share, Span, Text,
    ToolName, Usd, VariableName, WebOrigin,
};

/// All that can be set, by section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Turns, and when to warn.
    pub oracle: Oracle,
    /// Tokens and money of a query and of a session.
    pub budget: Budget,
    /// When to doubt the model.
    pub fallback: Fallback,
    /// What follows a turn.
    pub turn: Turn,
    /// Handing work to sub-agents.
    pub delegation: Delegation,
    /// What the model is told.
    pub prompt: Prompt,
    /// What a query is taken for.
    pub query: Query,
    /// What tools may use.
    pub tools: Tools,
    /// What is written down, and where.
    pub notes: Notes,
    /// Who is asked, how often and how long.
    pub model: Model,
    /// One conversation.
    pub session: Session,
    /// Who watches over the conversations.
    pub supervisor: Supervisor,
    /// Shared actors.
    pub actors: Actors,
    /// What is served over HTTP, and how much of it.
    pub server: Server,
    /// What a tenant may have of it.
    pub tenants: Tenants,
    /// Where things are kept.
    pub data: Data,
    /// Kinds of conversations besides the one that the sections describe.
    pub profiles: Vec<Profile>,
    /// Servers of models besides the built-in presets.
    pub providers: Vec<Provider>,
}

impl Config {
    /// Checks what no single value can get wrong; for a configuration made in code. [`load`] has
    /// done it.
    ///
    /// # Errors
    /// All pairs of values that do not go together.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let problems = check::clashes(self, |_| Some(Origin::Code));
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}
