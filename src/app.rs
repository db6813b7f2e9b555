//! The composition root: from a configuration and a project to a running system. The only room that
//! names concrete back ends, tools and journals; what a host brings itself takes their place.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use crate::{
    config::{Config, Prices},
    prompt::{Composer, Prompts, ToolLine, Variables},
    query::{Classifier, Lexicon, Weights},
};

mod builder;
#[cfg(feature = "cli")]
pub mod command;
mod error;
mod profiles;
#[cfg(feature = "project")]
mod project;
mod providers;
mod reload;
mod settings;
mod threads;

pub use builder::Builder;
pub use error::BuildError;
#[cfg(feature = "project")]
pub use project::project_variables;
pub use providers::ProviderError;
pub use threads::JournalThreads;

fn variables(
    config: &Config,
    project_name: String,
    tools: impl Iterator<Item = ToolLine>,
) -> Result<Variables, BuildError> {
    Ok(Variables {
        project_name,
        project_context: project_context(config)?,
        max_turns: Some(config.oracle.max_turns),
        tools: tools.collect(),
    })
}

/// What every model is to know of the project.
fn project_context(config: &Config) -> Result<String, BuildError> {
    let Some(path) = &config.prompt.context else {
        return Ok(String::new());
    };
    let unreadable = BuildError::file("project's context", "`prompt.context`", path);
    fs::read_to_string(path).map_err(unreadable)
}

/// The last part of the folder's real path.
fn project_name(folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    real.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The price list that a configuration asks for.
fn prices(config: &Config) -> Result<Prices, BuildError> {
    let builtin = Prices::builtin()?;
    let Some(path) = &config.budget.prices else {
        return Ok(builtin);
    };
    let unreadable = BuildError::file("price list", "`budget.prices`", path);
    let text = fs::read_to_string(path).map_err(unreadable)?;
    Ok(Prices::parse(&text, &path.display().to_string())?.or(builtin))
}

/// The classifier that a configuration asks for.
///
/// # Errors
/// When the lexicon or the weights cannot be read or are not in order.
pub fn classifier(config: &Config) -> Result<Classifier, BuildError> {
    let lexicon = match &config.query.lexicon {
        None => Lexicon::builtin()?,
        Some(path) => lexicon(path.as_path())?,
    };
    let lexicon = match &config.query.lexicon_overlay {
        None => lexicon,
        Some(path) => lexicon.extended_with(self::lexicon(path.as_path())?),
    };
    let weights = match &config.query.weights {
        None => Weights::builtin()?,
        Some(path) => {
            let unreadable = BuildError::file("weights", "`query.weights`", path);
            let bytes = bytes_of(path, Weights::MOST_BYTES).map_err(unreadable)?;
            Weights::parse(&bytes, &path.display().to_string())?
        }
    };
    Ok(Classifier::new(&lexicon).with_weights(Arc::new(weights)))
}

/// A file of words and phrases.
fn lexicon(path: &Path) -> Result<Lexicon, BuildError> {
    let keys = "`query.lexicon` and `query.lexicon_overlay`";
    let unreadable = BuildError::file("lexicon", keys, path);
    let bytes = bytes_of(path, Lexicon::MOST_BYTES).map_err(&unreadable)?;
    if bytes.len() > Lexicon::MOST_BYTES {
        let most = Lexicon::MOST_BYTES;
        let why = format!("it is longer than {most} bytes");
        return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, why)));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        unreadable(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not UTF-8",
        ))
    })?;
    Ok(Lexicon::parse(&text, &path.display().to_string())?)
}

/// What a file holds, and no more than a byte over `most`, by which it is seen to be too long.
fn bytes_of(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The composer that a configuration asks for.
///
/// # Errors
/// When the prompts are not in order.
pub fn composer(config: &Config) -> Result<Composer, BuildError> {
    let prompts = match &config.prompt.dir {
        None => Prompts::builtin()?,
        Some(folder) => Prompts::with_overlay(folder.as_path())?,
    };
    Ok(Composer::new(prompts, config.prompt.token_budget))
}
