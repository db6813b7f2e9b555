//! Where the journal is: the data directory, or a database.

#[cfg(feature = "postgres")]
use std::path::Path;
use std::{path::PathBuf, sync::Arc};

#[cfg(feature = "postgres")]
use secrecy::{ExposeSecret as _, SecretString};

#[cfg(feature = "postgres")]
use super::runtime::on_runtime;
use super::{CliError, CliResult, exit};
#[cfg(feature = "server")]
use crate::http::Cluster;
#[cfg(all(feature = "postgres", feature = "server"))]
use crate::http::ClusterKey;
#[cfg(feature = "postgres")]
use crate::llm;
use crate::{app, telemetry};
#[cfg(feature = "postgres")]
use oracle_config::Database;
use oracle_config::{Config, Environment};
use oracle_journal::{
    self as journal, Journal, Problem, Sqlite, Stats,
    copy::Usages,
    sqlite::{self, Inspection, OpenError},
};
#[cfg(feature = "postgres")]
use oracle_journal::{Postgres, postgres};

/// An interrupted command waits no longer for the database.
#[cfg(feature = "postgres")]
const SIGN_OFF: std::time::Duration = std::time::Duration::from_secs(1);

/// Characters of a cluster's key, as 16 bytes in hexadecimal digits.
#[cfg(all(feature = "postgres", feature = "server"))]
const SHORTEST_KEY: usize = 32;

pub(super) fn directory(config: &Config, environment: &Environment) -> CliResult<PathBuf> {
    app::data_directory(config, environment).map_err(CliError::usage)
}

/// Where a configuration has its data.
pub(super) struct Storage {
    /// The data directory, with the journal unless that is in a database.
    pub(super) folder: PathBuf,
    #[cfg(feature = "postgres")]
    database: Option<postgres::Settings>,
}

impl Storage {
    pub(super) fn of(config: &Config, environment: &Environment) -> CliResult<Self> {
        let folder = directory(config, environment)?;
        #[cfg(not(feature = "postgres"))]
        if config.journal.url.is_some() {
            let why = "`journal.url`: this program was built without the feature `postgres`";
            return Err(CliError::usage(why));
        }
        Ok(Self {
            folder,
            #[cfg(feature = "postgres")]
            database: database(&config.journal, environment)?,
        })
    }

    #[cfg(feature = "bench")]
    pub(super) fn within(folder: PathBuf) -> Self {
        Self {
            folder,
            #[cfg(feature = "postgres")]
            database: None,
        }
    }

    /// A data directory, or the database at a URL.
    pub(super) fn at(place: &str, config: &Config, environment: &Environment) -> CliResult<Self> {
        let mut config = config.clone();
        config.journal.url = place.contains("://").then(|| place.to_owned());
        config.data.dir = Some(place.into());
        Self::of(&config, environment)
    }

    pub(super) fn verify(&self) -> CliResult<Vec<Problem>> {
        #[cfg(feature = "postgres")]
        if let Some(settings) = &self.database {
            return on_runtime(async { Ok(Postgres::verify(settings).await?) });
        }
        Ok(Inspection::open(&self.folder)?.verify()?)
    }

    pub(super) fn stats(&self) -> CliResult<Stats> {
        #[cfg(feature = "postgres")]
        if let Some(settings) = &self.database {
            return on_runtime(async { Ok(Postgres::stats(settings).await?) });
        }
        Ok(Inspection::open(&self.folder)?.stats()?)
    }

    /// Returns the layout before and after.
    pub(super) fn migrate(&self) -> CliResult<(i32, i32)> {
        #[cfg(feature = "postgres")]
        if let Some(settings) = &self.database {
            return on_runtime(async { Ok(Postgres::migrate(settings).await?) });
        }
        let why = "the journal is not in PostgreSQL, so there is nothing to migrate: set \
                   `journal.url`";
        Err(CliError::usage(why))
    }

    /// What a process writes meanwhile would not be copied.
    pub(super) fn must_be_unused(&self, place: &str) -> CliResult {
        let users = sqlite::processes(&self.folder).unwrap_or_default();
        let Some(by) = users.first() else {
            return Ok(());
        };
        let why = "end it, or copy a backup";
        Err(CliError::failed(format_args!(
            "`{place}` is open in {by}: {why}"
        )))
    }

    /// `None` without a journal: commands that only read must not create one.
    pub(super) fn existing(self) -> Option<Self> {
        #[cfg(feature = "postgres")]
        if self.database.is_some() {
            return Some(self);
        }
        let is_absent = matches!(Inspection::open(&self.folder), Err(OpenError::Absent(_)));
        (!is_absent).then_some(self)
    }

    /// Opens the journal for a server, which continues the unfinished queries of others.
    /// In a cluster, also returns how the server reaches the other nodes.
    #[cfg(feature = "server")]
    pub(super) async fn open_to_serve(
        &self,
        config: &Config,
        environment: &Environment,
    ) -> CliResult<(Stored, Option<Cluster>)> {
        #[cfg(feature = "postgres")]
        if let Some(settings) = &self.database {
            let url = config.cluster.url.as_deref();
            let key = url.map(|url| cluster_key(url, config, environment));
            let member = key.transpose()?.zip(url);
            let settings = postgres::Settings {
                node_url: member.as_ref().map(|(key, url)| key.proven(url)),
                adopts: true,
                ..settings.clone()
            };
            let journal = Postgres::open(&settings).await?;
            let nodes = Arc::new(journal.clone());
            let cluster = |(key, url): (_, &str)| Cluster::new(nodes, key, url.to_owned());
            let cluster = member.map(cluster).transpose().map_err(CliError::failed)?;
            return Ok((Stored::Postgres(journal), cluster));
        }
        let _ = (config, environment);
        Ok((self.open().await?, None))
    }

    /// Opens the journal for a command.
    pub(super) async fn open(&self) -> CliResult<Stored> {
        #[cfg(feature = "postgres")]
        if let Some(settings) = &self.database {
            return Ok(Stored::Postgres(Postgres::open(settings).await?));
        }
        let journal = Sqlite::open(&self.folder, Box::new(broken))?;
        Ok(Stored::Sqlite(journal))
    }
}

/// An open journal. Clones share it.
#[derive(Clone)]
pub(super) enum Stored {
    Sqlite(Sqlite),
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
}

impl Stored {
    pub(super) fn journal(&self) -> Arc<dyn Journal> {
        match self {
            Self::Sqlite(journal) => Arc::new(journal.clone()),
            #[cfg(feature = "postgres")]
            Self::Postgres(journal) => Arc::new(journal.clone()),
        }
    }

    pub(super) fn usages(&self) -> &dyn Usages {
        match self {
            Self::Sqlite(journal) => journal,
            #[cfg(feature = "postgres")]
            Self::Postgres(journal) => journal,
        }
    }

    /// Publishes the control socket for other processes that share the directory.
    #[cfg(feature = "server")]
    pub(super) fn announce(&self, socket: &std::path::Path) -> std::io::Result<()> {
        match self {
            Self::Sqlite(journal) => journal.announce(socket),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Ends the ownership of sessions although the system still runs. SQLite's ends with the process.
    pub(super) async fn sign_off(self) {
        #[cfg(feature = "postgres")]
        if let Self::Postgres(journal) = self {
            let _ = tokio::time::timeout(SIGN_OFF, journal.close()).await;
        }
    }

    pub(super) async fn close(self) {
        match self {
            Self::Sqlite(journal) => journal.close().await,
            #[cfg(feature = "postgres")]
            Self::Postgres(journal) => journal.close().await,
        }
    }
}

#[cfg(feature = "postgres")]
fn database(config: &Database, environment: &Environment) -> CliResult<Option<postgres::Settings>> {
    let Some(url) = &config.url else {
        return Ok(None);
    };
    let password = secret(
        "the password of the database",
        (&config.password_env, &config.password_file),
        environment,
    )?;
    let authorities = config.ca_file.as_deref().map(read).transpose()?;
    let tls = llm::trusted(authorities.as_deref());
    let tls = tls.map_err(|why| CliError::usage(format_args!("`journal.ca_file`: {why}")))?;
    Ok(Some(postgres::Settings {
        password,
        tls: Some(tls),
        writers: config.writers,
        readers: config.readers,
        adopts: false,
        ..postgres::Settings::new(url.clone())
    }))
}

/// Ends the process at once: a broken journal may acknowledge nothing more, and the next start
/// recovers from what is durable.
fn broken(why: &str) {
    let error = journal::Error::Broken(why.to_owned());
    telemetry::write_final_line(&format!("oracle: {error}"));
    std::process::exit(i32::from(exit::BROKEN));
}

#[cfg(feature = "postgres")]
fn read(path: &Path) -> CliResult<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let path = path.display();
        CliError::usage(format_args!(
            "cannot read `{path}`: {error}; check `[journal]` and `[cluster]`"
        ))
    })
}

/// A secret from an environment variable or a file; `None` if neither is named.
#[cfg(feature = "postgres")]
fn secret(
    what: &str,
    (variable, file): (&Option<String>, &Option<PathBuf>),
    environment: &Environment,
) -> CliResult<Option<SecretString>> {
    if let Some(variable) = variable {
        match environment.get(variable).and_then(|value| value.to_str()) {
            Some(value) => return Ok(Some(value.trim().into())),
            None if file.is_some() => {}
            None => {
                return Err(CliError::usage(format_args!(
                    "{what} is missing: set the environment variable {variable}"
                )));
            }
        }
    }
    let Some(path) = file else { return Ok(None) };
    Ok(Some(String::from_utf8_lossy(&read(path)?).trim().into()))
}

/// The key of the cluster, for the node at a URL.
#[cfg(all(feature = "postgres", feature = "server"))]
fn cluster_key(url: &str, config: &Config, environment: &Environment) -> CliResult<ClusterKey> {
    let place = (&config.cluster.key_env, &config.cluster.key_file);
    let missing = || {
        let why = "the cluster has no key: set `cluster.key_env` or `cluster.key_file`";
        CliError::usage(why)
    };
    let key = secret("the key of the cluster", place, environment)?.ok_or_else(missing)?;
    if key.expose_secret().len() < SHORTEST_KEY {
        return Err(CliError::usage(format_args!(
            "the key of the cluster has fewer than {SHORTEST_KEY} characters: make one with \
             `openssl rand -hex 32`"
        )));
    }
    if url.starts_with("http://") {
        tracing::warn!(
            url,
            "other nodes reach this one without TLS: the network must be private"
        );
    }
    Ok(ClusterKey::new(&key))
}

#[cfg(feature = "postgres")]
impl From<postgres::OpenError> for CliError {
    fn from(error: postgres::OpenError) -> Self {
        match error {
            postgres::OpenError::Url(_) => Self::usage(error),
            error => Self::failed(error),
        }
    }
}

/// An unusable folder is a wrong setting; with the other errors the command line is correct.
impl From<OpenError> for CliError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::File { .. } => Self::usage(error),
            error => Self::failed(error),
        }
    }
}
