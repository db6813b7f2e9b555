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
    /// The folder of notes cannot be opened.
    #[cfg(feature = "project")]
    #[error("the folder of notes `{path}` cannot be used: {reason}; check `notes.dir`")]
    NotesFolder {
        /// As configured.
        path: PathBuf,
        /// The failure of the system.
        reason: io::ErrorKind,
    },
    /// Notes would be written to all of the project.
    #[cfg(feature = "project")]
    #[error(
        "the folder of notes `{path}` is the project, or holds it, and with `notes.write` all of the project \
         could be written to; set `notes.dir` to a folder for notes alone, in the project or elsewhere, or \
         `notes.write` to false"
    )]
    NotesInProject {
        /// As configured.
        path: PathBuf,
    },
    /// The prompts are not in order.
    #[error(transparent)]
    Prompt(#[from] prompt::Error),
    /// A file that the configuration names cannot be read.
    #[error("the {what} `{path}` cannot be read: {source}; check {keys}")]
    File {
        /// Its purpose.
        what: &'static str,
        /// As configured.
        path: PathBuf,
        /// The failure of the system.
        source: io::Error,
        /// The keys that may name it.
        keys: &'static str,
    },
    /// The price list is not in order.
    #[error(transparent)]
    Prices(#[from] PricesError),
    /// The lexicon is not in order.
    #[error(transparent)]
    Lexicon(#[from] LexiconError),
    /// The weights are not in order.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// Two tools of one name, or a name that cannot be one.
    #[error(transparent)]
    Tools(#[from] RegistryError),
    /// The script of a scripted model cannot be played.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A provider of the chain cannot be called.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// A provider of the chain cannot be called with what is configured for it.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A chain is too long, or a name has not the form `provider/model`.
    #[error("the models to ask: allowed is {0}")]
    Models(#[from] NotAllowed),
    /// No back end serves a model of a chain.
    #[error(
        "nobody here serves the model `{model}`: choose a model of {known}, by `model.chain` or `--model`"
    )]
    UnknownModel {
        /// As configured.
        model: String,
        /// The names that are known.
        known: String,
    },
    /// A profile names a tool that does not exist.
    #[error(
        "the profile `{profile}` names the tool `{tool}`, and there is none: there is {known}; check its \
         tools and `attachable`"
    )]
    UnknownTool {
        /// The profile that names it.
        profile: ProfileName,
        /// As configured.
        tool: String,
        /// The names that are known.
        known: String,
    },
    /// The actors did not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl BuildError {
    /// A file for this purpose cannot be read; one of these keys names it.
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
