//! `oracle serve`: a long-lived system and its HTTP server.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures_util::future::{Fuse, FusedFuture as _, FutureExt as _};

use super::{
    CliError, CliResult, Interrupts, Options, Signals,
    context::{CommandContext, find},
    ctl::output,
    rlimits,
    runtime::on_runtime,
    terminal::Terminal,
};
use crate::{
    access::{KeyFile, Keyring},
    actor::{Changes, ReloadError},
    control::socket::Socket,
    http::{AuthMode, BindError, Host, HostParts, Listener, LocalServer, Server},
};
use oracle_config::{Config, Environment, Problem, Setting};

const SYSTEM_FAILED: &str = "a service failed too often, so the server exits; its log names the service \
                       (-v for more); acknowledged messages are stored and continue after the next \
                       start";

/// Time to close control channel and journal after the server; by default, a whole shutdown takes
/// half a minute at most.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(4);

/// `oracle serve`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ServeArgs {
    /// Address to listen on, or a port of this machine alone; port 0 picks a free port [default:
    /// 127.0.0.1:7770]
    #[arg(long, value_name = "[IP:]PORT")]
    pub listen: Option<String>,
}

impl ServeArgs {
    /// The configuration keys that the command line sets.
    fn settings(&self) -> Vec<Setting> {
        let listen = self.listen.as_ref().map(|value| {
            let address = match value.rsplit_once(':') {
                None if value.parse::<u16>().is_ok() => format!("127.0.0.1:{value}"),
                Some(("" | "localhost", port)) => format!("127.0.0.1:{port}"),
                _ => value.clone(),
            };
            Setting::new("--listen", "server.listen", &address)
        });
        listen.into_iter().collect()
    }
}

pub(super) fn run(args: &ServeArgs, context: CommandContext<'_>) -> CliResult {
    let (more, environment) = (args.settings(), context.environment);
    let loaded = &context.load_with([&[], &more])?;
    let config = &loaded.config;
    let settings = config.server.clone();
    rlimits::forbid_core_dumps();
    if let Some(few) = rlimits::raise_descriptors(settings.max_connections, model_calls(config)) {
        context.terminal.say(few);
    }
    let (builder, storage) = context.prepare(config)?;
    let folder = storage.folder.clone();
    let terminal = context.terminal;
    let options = context.options.clone();
    let builder = builder.reads(reading(options, environment.clone(), folder.clone(), more));
    on_runtime(Box::pin(async {
        let (mut ends, mut hangups) = (Interrupts::listen_to_machine(), Signals::hangups());
        let keys = Keyring::open(KeyFile::within(&folder)).map_err(CliError::failed)?;
        let auth = match keys.is_guarded() {
            true => AuthMode::Keys,
            false => AuthMode::Open,
        };
        // Bound first, so that a process that finds the address taken opens no journal.
        let listener = Listener::bind(&settings, auth).map_err(|error| match error {
            // Only an address in use is no wrong setting: it may be free later.
            BindError::Taken { .. } => CliError::failed(error),
            _ => CliError::usage(error),
        })?;
        let (stored, cluster) = storage.open_to_serve(config, environment).await?;
        let journal = stored.journal();
        let mut system = builder.journal(Arc::clone(&journal)).start().await?;
        let oracle = system.oracle().clone();
        let host = Host::new(HostParts {
            oracle: system.oracle().clone(),
            journal,
            settings,
            keys: Arc::new(keys),
        });
        if let Some(cluster) = cluster {
            host.join(cluster);
        }
        let server = Server::start(listener, host.clone());
        let why = (loaded.choice.chain.models(), &*loaded.model_choice_reason());
        let (address, guarded) = (server.address(), auth == AuthMode::Keys);
        started(address, why, &folder, guarded, terminal);
        #[cfg(feature = "page")]
        announce_page(address, &KeyFile::within(&folder), guarded, terminal);
        // The server runs without the control channel if its socket fails.
        let socket = Socket::within(&folder).await;
        let socket = socket.inspect_err(|error| terminal.say(error));
        if let Ok(socket) = &socket
            && let Err(error) = stored.announce(socket.path())
        {
            terminal.say(format_args!(
                "other processes cannot find the control socket: {error}; check the data directory"
            ));
        }
        let control = socket.map(|socket| LocalServer::start(socket, host.clone()));
        let mut reload = pin!(Fuse::terminated());
        loop {
            tokio::select! {
                () = ends.pressed() => break,
                () = oracle.shutdown_requested() => break,
                () = system.ended() => return Err(CliError::failed(SYSTEM_FAILED)),
                // A hangup during a reload is handled after it.
                () = hangups.come(), if reload.is_terminated() => {
                    let oracle = oracle.clone();
                    reload.set(async move { oracle.reload().await }.fuse());
                }
                reloaded = reload.as_mut() => report_reload(&reloaded, terminal),
            }
        }
        // The reload holds the journal too.
        reload.set(Fuse::terminated());
        terminal.say("shutting down: waiting for running queries to finish");
        let end = async {
            server.shut_down(system).await;
            drop((oracle, host));
            let tidied = async {
                if let Ok(control) = control {
                    control.close().await;
                }
                stored.close().await;
            };
            // Everything acknowledged is durable; the next start cleans up.
            if tokio::time::timeout(SHUTDOWN_GRACE, tidied).await.is_err() {
                tracing::warn!("the journal was not closed cleanly within {SHUTDOWN_GRACE:?}");
            }
        };
        ends.or_interrupted(Box::pin(end)).await
    }))
}

/// For reloads: reads the file again; environment and command line stay.
fn reading(
    options: Options,
    environment: Environment,
    folder: PathBuf,
    more: Vec<Setting>,
) -> impl Fn() -> Result<Config, Vec<String>> + Send + Sync {
    move || {
        let (_, loaded) = find(&options, &environment, [&[], &more]);
        // The keyring refreshes itself; a reload only reports that the keys cannot be read.
        let keys = KeyFile::within(&folder).read().err();
        let keys = keys.map(|error| error.to_string());
        let invalid = loaded.as_ref().err().into_iter().flatten();
        let problems: Vec<String> = invalid.map(Problem::to_string).chain(keys).collect();
        match loaded {
            Ok(loaded) if problems.is_empty() => Ok(loaded.config),
            _ => Err(problems),
        }
    }
}

fn model_calls(config: &Config) -> usize {
    let all = config.actors.model_concurrency;
    let providers = config.providers.iter();
    let own = providers.map(|one| one.concurrency.unwrap_or(all));
    own.sum::<usize>() + all
}

/// Prints a started server's addresses, its models and why they were chosen, and its data
/// directory.
fn started(
    address: SocketAddr,
    (models, because): (&[String], &str),
    data: &Path,
    needs_keys: bool,
    terminal: &mut Terminal,
) {
    let (models, data) = (models.join(", then "), data.display());
    terminal.say(format_args!("listening on http://{address}"));
    terminal.say(format_args!("using {models}, {because}"));
    terminal.say(format_args!("data directory: {data}"));
    terminal.say(match needs_keys {
        true => "every request needs a key",
        false => "requests need no key; run `oracle keys create` to require keys",
    });
}

/// Prints where the supervision page is. Only a terminal gets the link that signs in, because logs
/// are kept.
#[cfg(feature = "page")]
fn announce_page(address: SocketAddr, keys: &KeyFile, needs_keys: bool, terminal: &mut Terminal) {
    let key = match needs_keys {
        true => None,
        false => keys.admin_key().ok(),
    };
    let page = format!("supervision page: http://{address}/");
    match key {
        None => terminal.say(page),
        Some(key) if terminal.err_is_terminal() => {
            terminal.say(format_args!("{page}#key={}", key.reveal()));
        }
        Some(_) => {
            terminal.say(format_args!(
                "{page}; sign in with the key in admin.key in the data directory"
            ));
        }
    }
}

/// Prints the result of a reload.
fn report_reload(reloaded: &Result<Changes, ReloadError>, terminal: &mut Terminal) {
    match reloaded {
        Ok(Changes { changed, waiting }) => {
            let text = output::reloaded(changed, waiting);
            terminal.say(format_args!("reloaded the configuration: {text}"));
        }
        Err(error) => terminal.say(error),
    }
}
