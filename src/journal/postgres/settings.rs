//! Where the database is, and how connections to it behave.

use std::{fmt, str::FromStr as _, time::Duration};

use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use rustls::ClientConfig;
use secrecy::{ExposeSecret as _, SecretString};
use tokio_postgres::config::{Config, Host, SslMode, TargetSessionAttrs};

use super::{
    client::Connector,
    error::{Failed, OpenError, describe},
    schema,
};

/// Deadline of connecting, and of a server that has stopped answering (half of a lease).
const UNREACHABLE: Duration = Duration::from_secs(5);

/// Oldest server, as `server_version_num`.
const MIN_VERSION: i32 = 140_000;
/// Deadline of a free connection.
const CONNECTION: Duration = Duration::from_secs(5);

/// PostgreSQL's options of each connection; the statements are too short for further processes or a
/// compiler. A URL's own `options` follow, so they take precedence, except over [`SYNTAX`].
const OPTIONS: &str = "-c statement_timeout=10s -c lock_timeout=1s \
                       -c idle_in_transaction_session_timeout=5s -c tcp_user_timeout=5s \
                       -c max_parallel_workers_per_gather=0 -c jit=off \
                       -c oracle.keeps_settings=on";

/// What the statements are written for, whatever the role or the database prefers.
const SYNTAX: &str = "-c standard_conforming_strings=on";

/// How to reach the database of a journal, and where other nodes reach this one.
#[derive(Clone)]
pub struct Settings {
    /// `postgresql://USER@HOST:PORT/DATABASE`, with parameters as in libpq's URLs; several hosts may
    /// be separated by commas.
    pub url: SecretString,
    /// Password, unless the URL has one.
    pub password: Option<SecretString>,
    /// TLS with the trusted authorities, for servers on other machines, or if the URL's `sslmode`
    /// asks for it.
    pub tls: Option<ClientConfig>,
    /// Connections that write, 1 or 2: a second one helps only if the disk is fast.
    pub writers: usize,
    /// Connections that read.
    pub readers: usize,
    /// The URL at which other nodes reach this one's server, with the proof that it has the cluster's
    /// key (`oracle_agent::http::ClusterKey::proven`). A live node with the same URL is taken for an
    /// earlier process at this address, which has ended.
    pub node_url: Option<String>,
    /// Whether this node adopts the unfinished sessions of dead ones. Only a system that recovers
    /// queries should: adopted sessions wait for it.
    pub adopts: bool,
}

impl Settings {
    /// Settings of a database, with one connection that writes and two that read.
    pub fn new(url: impl Into<SecretString>) -> Self {
        Self {
            url: url.into(),
            password: None,
            tls: None,
            writers: 1,
            readers: 2,
            node_url: None,
            adopts: true,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("writers", &self.writers)
            .field("readers", &self.readers)
            .field("node_url", &self.node_url)
            .finish_non_exhaustive()
    }
}

/// A database to connect to.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) config: Config,
    pub(super) tls: Option<ClientConfig>,
}

impl Target {
    pub(super) fn of(settings: &Settings) -> Result<Self, OpenError> {
        let refused = |why: &dyn fmt::Display| OpenError::Url(why.to_string());
        let url = settings.url.expose_secret();
        if !url.starts_with("postgresql://") && !url.starts_with("postgres://") {
            return Err(refused(&"it does not begin with postgresql://"));
        }
        // tokio-postgres does not know libpq's modes that verify.
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let of_mode = |pair: &&str| pair.starts_with("sslmode=");
        let (modes, rest): (Vec<&str>, Vec<&str>) = query.split('&').partition(of_mode);
        let url = format!("{place}?{}", rest.join("&"));
        let mut config = Config::from_str(&url).map_err(|error| refused(&describe(&error)))?;
        let mut hosts = config.get_hosts().iter();
        let mut addresses = config.get_hostaddrs().iter();
        let is_local = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        };
        let local = hosts.all(is_local) && addresses.all(|address| address.is_loopback());
        let mode = modes.last().and_then(|pair| pair.strip_prefix("sslmode="));
        let is_off = match mode {
            None => local,
            Some("disable") => true,
            Some("require" | "verify-ca" | "verify-full") => false,
            Some(other) => {
                let why = format!("`sslmode={other}`: use `verify-full`, or `disable` without TLS");
                return Err(refused(&why));
            }
        };
        if let Some(password) = &settings.password {
            config.password(password.expose_secret());
        }
        let own = config.get_options().unwrap_or_default();
        config
            .options(format!("{OPTIONS} {own} {SYNTAX}"))
            .application_name("oracle")
            .connect_timeout(UNREACHABLE)
            .tcp_user_timeout(UNREACHABLE)
            .keepalives_idle(UNREACHABLE / 2)
            .keepalives_interval(UNREACHABLE / 5)
            .keepalives_retries(2)
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .ssl_mode(if is_off {
                SslMode::Disable
            } else {
                SslMode::Require
            });
        let tls = match &settings.tls {
            _ if is_off => None,
            Some(tls) => {
                let mut tls = tls.clone();
                tls.alpn_protocols = vec![b"postgresql".to_vec()];
                Some(tls)
            }
            None => return Err(refused(&"the server needs TLS, and none is set up")),
        };
        Ok(Self { config, tls })
    }
}

pub(super) fn pool(settings: &Settings, size: usize) -> Result<Pool, OpenError> {
    let Target { config, tls } = Target::of(settings)?;
    let recycling = ManagerConfig {
        recycling_method: RecyclingMethod::Fast,
    };
    let manager = Manager::from_connect(config, Connector(tls), recycling);
    let pool = Pool::builder(manager)
        .max_size(size)
        .runtime(Runtime::Tokio1)
        .timeouts(Timeouts {
            wait: Some(CONNECTION),
            create: Some(CONNECTION),
            recycle: Some(CONNECTION),
        });
    pool.build()
        .map_err(|error| OpenError::Database(error.to_string()))
}

/// Takes a connection, and checks the version and the settings of the server.
pub(super) async fn connect(pool: &Pool) -> Result<Client, OpenError> {
    let client = pool.get().await.map_err(Failed::from)?;
    let sql =
        "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
        current_setting('server_encoding'), current_setting('synchronous_commit'),
        current_setting('fsync'), current_setting('oracle.keeps_settings', true) IS NOT NULL";
    let row = client.query_one(sql, &[]).await?;
    let setting = |index: usize| row.get::<_, String>(index);
    if !is_supported(row.get(0)) {
        return Err(OpenError::OldServer(setting(1)));
    }
    if !row.get::<_, bool>(5) {
        return Err(OpenError::Pooler("it ignores `options`".to_owned()));
    }
    let refused = |name, found, want| Err(OpenError::Setting { name, found, want });
    if setting(2) != "UTF8" {
        return refused("server_encoding", setting(2), "`UTF8`");
    }
    if setting(3) == "off" {
        return refused("synchronous_commit", setting(3), "`on`");
    }
    if setting(4) == "off" {
        tracing::warn!("the database has `fsync = off`: it loses records when its machine dies");
    }
    Ok(client)
}

/// A connection to an existing journal, for statements that may take long.
pub(super) async fn inspecting(settings: &Settings) -> Result<Client, OpenError> {
    let client = connect(&pool(settings, 1)?).await?;
    match schema::layout(&**client).await? {
        schema::LAYOUT => {}
        0 => return Err(OpenError::Absent),
        older => return Err(OpenError::Older(older)),
    }
    client.batch_execute("SET statement_timeout = 0").await?;
    Ok(client)
}

pub(super) const fn is_supported(version: i32) -> bool {
    version >= MIN_VERSION
}
