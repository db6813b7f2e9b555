//! Builds a running system from a configuration and a project. The only module that names concrete
//! back ends and tools; a host can replace each of them.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    config::{Config, Environment, NoDataDirectory, Prices},
    prompt::{Composer, Prompts, ToolLine, Variables},
    query::{Classifier, Lexicon, Weights},
};

mod builder;
mod error;
#[cfg(feature = "mcp")]
mod mcp;
mod profiles;
#[cfg(feature = "project")]
mod project;
#[doc(hidden)]
pub mod providers;
mod reload;
mod settings;
mod threads;
mod web;

pub use builder::Builder;
pub use error::BuildError;
#[cfg(feature = "project")]
pub use project::project_variables;
pub use providers::ProviderError;
#[doc(hidden)]
pub use providers::Providers;
pub use threads::JournalThreads;

#[doc(hidden)]
pub fn variables(
    config: &Config,
    project_name: String,
    tools: impl Iterator<Item = ToolLine>,
) -> Result<Variables, BuildError> {
    Ok(Variables {
        sub_agents: Vec::new(),
        project_name,
        project_context: project_context(config)?,
        max_turns: Some(config.oracle.max_turns),
        tools: tools.collect(),
    })
}

/// The text about the project that goes into every prompt.
#[doc(hidden)]
pub fn project_context(config: &Config) -> Result<String, BuildError> {
    let Some(path) = &config.prompt.context else {
        return Ok(String::new());
    };
    let unreadable = BuildError::file("project's context", "`prompt.context`", path);
    fs::read_to_string(path).map_err(unreadable)
}

#[doc(hidden)]
pub fn project_name(folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let name = real.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The configured price list, completed by the table in the data directory, if it is newer, and by
/// the built-in one.
#[doc(hidden)]
pub fn prices(config: &Config, environment: &Environment) -> Result<Prices, BuildError> {
    let folder = data_directory(config, environment).ok();
    let stored = folder.and_then(|folder| fs::read_to_string(folder.join(TABLE)).ok());
    let tables = Prices::builtin().updated(stored.unwrap_or_default());
    let Some(path) = &config.budget.prices else {
        return Ok(tables);
    };
    let unreadable = BuildError::file("price list", "`budget.prices`", path);
    let text = fs::read_to_string(path).map_err(unreadable)?;
    Ok(Prices::parse(&text, &path.display().to_string())?.or(tables))
}

/// The file in the data directory that `oracle models update` stores.
#[doc(hidden)]
pub const TABLE: &str = "models.toml";

#[doc(hidden)]
pub fn data_directory(
    config: &Config,
    environment: &Environment,
) -> Result<PathBuf, NoDataDirectory> {
    let [xdg, home] = ["XDG_DATA_HOME", "HOME"].map(|name| environment.get(name));
    config.data.directory(xdg, home)
}

/// Builds the classifier of a configuration.
///
/// # Errors
/// When the lexicon or the weights cannot be read or are invalid.
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
            let bytes = bytes_of(path, Weights::MAX_BYTES).map_err(unreadable)?;
            Weights::parse(&bytes, &path.display().to_string())?
        }
    };
    Ok(Classifier::new(&lexicon).with_weights(Arc::new(weights)))
}

fn lexicon(path: &Path) -> Result<Lexicon, BuildError> {
    let keys = "`query.lexicon` and `query.lexicon_overlay`";
    let unreadable = BuildError::file("lexicon", keys, path);
    let text = text_of(path, Lexicon::MAX_BYTES).map_err(unreadable)?;
    Ok(Lexicon::parse(&text, &path.display().to_string())?)
}

/// Reads a text of at most `most` bytes.
#[doc(hidden)]
pub fn text_of(path: &Path, most: usize) -> io::Result<String> {
    let bytes = bytes_of(path, most)?;
    if bytes.len() > most {
        let why = format!("it is larger than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    String::from_utf8(bytes).map_err(not_text)
}

/// Reads at most `most + 1` bytes of a file, so that the caller can tell that it is too long.
fn bytes_of(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Builds the composer of a configuration.
///
/// # Errors
/// When the prompts cannot be read or are invalid.
pub fn composer(config: &Config) -> Result<Composer, BuildError> {
    let prompts = match &config.prompt.dir {
        None => Prompts::builtin()?,
        Some(folder) => Prompts::with_overlay(folder.as_path())?,
    };
    Ok(Composer::new(prompts, config.prompt.token_budget))
}
