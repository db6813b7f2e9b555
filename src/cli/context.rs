//! What every command is given, and what it makes of that: the configuration, and a builder of a
//! system.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    CliError, CliResult, Options,
    ollama::with_local_model,
    storage::{self, Storage},
    terminal::Terminal,
};
use crate::{actor::Oracle, app::Builder};
use oracle_config::{
    self as config, Config, ConfigFile, Environment, Loaded, Problem, Setting, Sources,
};

pub(super) struct CommandContext<'a> {
    pub options: &'a Options,
    pub environment: &'a Environment,
    pub terminal: &'a mut Terminal,
}

impl CommandContext<'_> {
    pub(super) fn load(&self) -> CliResult<Loaded> {
        self.load_with([&[], &[]])
    }

    /// Loads the configuration, with settings before and after those of the options.
    pub(super) fn load_with(&self, more: [&[Setting]; 2]) -> CliResult<Loaded> {
        let (_, loaded) = find(self.options, self.environment, more);
        loaded.map_err(CliError::all)
    }

    /// Loads the configuration, with the model of a running Ollama if no other one is chosen.
    pub(super) fn load_with_local_model(&mut self) -> CliResult<Loaded> {
        let (loaded, environment) = (self.load()?, self.environment);
        Ok(with_local_model(loaded, environment, self.terminal))
    }

    /// The data directory.
    pub(super) fn directory(&self) -> CliResult<PathBuf> {
        storage::directory(&self.load()?.config, self.environment)
    }

    /// A builder with the settings that all commands have in common.
    pub(super) fn builder(&self, config: &Config) -> Builder {
        Oracle::builder()
            .config(config.clone())
            .environment(self.environment.pairs().iter().cloned())
            .project(&self.options.project)
    }

    /// A builder of a system with MCP servers, and where its data is.
    pub(super) fn prepare(&self, config: &Config) -> CliResult<(Builder, Storage)> {
        let storage = Storage::of(config, self.environment)?;
        let builder = self.builder(config);
        #[cfg(feature = "mcp")]
        let builder = match std::env::current_exe() {
            Ok(program) => builder.mcp_pins(&storage.folder).mcp_guard(program),
            Err(_) => builder.mcp_pins(&storage.folder),
        };
        // The point at which the process kills itself, for tests of recovery.
        #[cfg(feature = "testkit")]
        let builder = match self.environment.get("ORACLE_TESTKIT_DIE") {
            Some(point) => {
                builder.crash_at(point.to_string_lossy().parse().map_err(CliError::usage)?)
            }
            None => builder,
        };
        Ok((builder, storage))
    }
}

/// Loads the configuration, with settings before and after those of the options. A file named by an
/// option has to exist; the default one does not. Also returns which file was read.
pub(super) fn find(
    options: &Options,
    environment: &Environment,
    [before, after]: [&[Setting]; 2],
) -> (Option<PathBuf>, Result<Loaded, Vec<Problem>>) {
    let named = options.config.clone();
    let file = named.or_else(|| usual_file(environment).filter(|path| !is_missing(path)));
    let read = file.as_deref().map(ConfigFile::read).transpose();
    let sources = Sources {
        file: read.clone().unwrap_or_default(),
        environment: environment.pairs().to_vec(),
        options: [before, &options.settings(), after].concat(),
    };
    let loaded = config::load(&sources);
    // The other sources are still checked, to report all problems at once.
    let loaded = match read {
        Ok(_) => loaded,
        Err(problem) => Err([vec![problem], loaded.err().unwrap_or_default()].concat()),
    };
    (file, loaded)
}

/// The default configuration file. By the XDG rules, an empty or relative `XDG_CONFIG_HOME` counts
/// as unset.
pub(super) fn usual_file(environment: &Environment) -> Option<PathBuf> {
    let folder = |name| {
        let path = environment.get(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    folder("XDG_CONFIG_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".config")))
        .map(|folder| folder.join("oracle/oracle.toml"))
}

fn is_missing(path: &Path) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    let error = fs::metadata(path).err();
    error.is_some_and(|error| matches!(error.kind(), NotFound | NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_config_path_follows_xdg() {
        for (name, environment, want) in [
            (
                "xdg",
                [("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")],
                Some("/x/oracle/oracle.toml"),
            ),
            (
                "empty xdg",
                [("XDG_CONFIG_HOME", ""), ("HOME", "/h")],
                Some("/h/.config/oracle/oracle.toml"),
            ),
            (
                "relative xdg",
                [("XDG_CONFIG_HOME", "x"), ("HOME", "/h")],
                Some("/h/.config/oracle/oracle.toml"),
            ),
            ("nothing", [("XDG_CONFIG_HOME", ""), ("HOME", "")], None),
        ] {
            let got = usual_file(&environment.into());
            assert_eq!(got, want.map(PathBuf::from), "{name}");
        }
    }
}
