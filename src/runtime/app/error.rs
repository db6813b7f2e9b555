//! Errors of the composition root.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::providers::ProviderError;
use crate::{
    actor::StartError,
    config::{NotAllowed, PricesError},
    llm::{SetupError, script::ScriptError},
    model::ProfileName,
    prompt,
    query::{LexiconError, WeightsError},
    tool::RegistryError,
};

/// The reason why a system could not be built, with a remedy.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The project folder cannot be opened.
    #[cfg(feature = "project")]
    #[error(transparent)]
    Project(#[from] crate::tool::RootError),
    /// The notes folder cannot be opened.
    #[cfg(feature = "project")]
    #[error("cannot use the notes folder `{path}`: {reason}; check `notes.dir`")]
    NotesFolder {
        /// The path as configured.
        path: PathBuf,
        /// The operating system's error.
        reason: io::ErrorKind,
    },
    /// The prompts are invalid.
    #[error(transparent)]
    Prompt(#[from] prompt::Error),
    /// A file that the configuration names cannot be read.
    #[error("cannot read the {what} `{path}`: {source}; check {keys}")]
    File {
        /// Purpose of the file.
        what: &'static str,
        /// The path as configured.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
        /// The keys that may name the file.
        keys: &'static str,
    },
    /// The price list is invalid.
    #[error(transparent)]
    Prices(#[from] PricesError),
    /// The lexicon is invalid.
    #[error(transparent)]
    Lexicon(#[from] LexiconError),
    /// The weights are invalid.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// Two tools have one name, or a name is invalid.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// The script of a scripted model cannot be read.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A provider's address, key or file is missing or invalid.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The search service has no key, or one that cannot be sent.
    #[cfg(feature = "web")]
    #[error(
        "`web.search` has no valid key: set the environment variable {0} to it, or name another one \
         with `web.key_env`"
    )]
    SearchKey(String),
    /// The build has no tools for the web.
    #[cfg(not(feature = "web"))]
    #[error("`[web]` asks for tools that this build lacks: build it with `--features web`")]
    NoWeb,
    /// The client of a provider cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A chain of models is invalid.
    #[error("invalid model chain: use {0}")]
    Models(#[from] NotAllowed),
    /// No back end serves a model of a chain.
    #[error("unknown model `{model}`: choose a model of {known} with `model.chain` or `--model`")]
    UnknownModel {
        /// The model as configured.
        model: String,
        /// The known names.
        known: String,
    },
    /// There is a budget of money, and the price of a model that spends from it is unknown.
    #[error(
        "the price of the model `{model}` is unknown, so that no budget of money can count it: set \
         its `input` and `output` in `[[providers.models]]` or in the file of `budget.prices` (0 if it is free), or remove the budget"
    )]
    UnknownPrice {
        /// The model as configured.
        model: String,
    },
    /// A profile names a tool that does not exist.
    #[error(
        "profile `{profile}` names the unknown tool `{tool}`: use {known} in its `tools` and \
         `attachable`"
    )]
    UnknownTool {
        /// The profile that names it.
        profile: ProfileName,
        /// The tool as configured.
        tool: String,
        /// The known names.
        known: String,
    },
    /// A model of the server's interface names a profile that does not exist.
    #[error(
        "`server.models` names the unknown profile `{profile}` for `{model}`: use `oracle` or the name of one of the `[[profiles]]`"
    )]
    UnknownProfile {
        /// The model's name.
        model: String,
        /// The profile as configured.
        profile: ProfileName,
    },
    /// A profile has the name of a model in `server.models`.
    #[error("`server.models` has the name of the profile `{0}`: choose another name")]
    AliasOfProfile(String),
    /// An MCP server cannot be used as configured.
    #[error("the MCP server `{name}` cannot be used: {why}")]
    McpServer {
        /// Its name.
        name: String,
        /// What to do, or what is wrong.
        why: String,
    },
    /// The actors did not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl BuildError {
    pub(super) fn file(
        what: &'static str,
        keys: &'static str,
        path: &Path,
    ) -> impl Fn(io::Error) -> Self {
        move |source| Self::File {
            what,
            path: path.to_path_buf(),
            source,
            keys,
        }
    }
}
