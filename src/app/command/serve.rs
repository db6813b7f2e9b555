//! `oracle serve`: a long-lived system and its HTTP server.

use std::{path::PathBuf, pin::pin, sync::Arc, time::Duration};

use futures_util::future::{Fuse, FusedFuture as _, FutureExt as _};

use super::{
    More, descriptors, find, kept,
    run::{on_runtime, prepared},
};
use crate::{
    access::{KeyFile, Keyring},
    cli::{
        Args, Environment, Interrupts, Signals, Stop, exit,
        serve::{started, tell_reloaded},
        terminal::Terminal,
    },
    config::Config,
    control::socket::Socket,
    http::{BindError, Door, Host, Listener, LocalServer, Server, Shares},
    journal::Journal,
};

const GAVE_UP: &str = "a part of the system failed too often, so all of it ended: its log says which \
    (-v for more); what was acknowledged is kept, and goes on with the next start";

/// Time to close control channel and journal after the server; by default, a whole shutdown takes
/// half a minute at most.
const TIDYING: Duration = Duration::from_secs(4);

pub(super) fn serve(
    args: &Args,
    more: &More,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let loaded = &find(args, environment, more.clone())
        .loaded
        .map_err(Stop::all)?;
    let config = &loaded.config;
    let settings = config.server.clone();
    if let Some(few) = descriptors::raise(settings.max_connections, model_calls(config)) {
        terminal.err.say(few);
    }
    let (builder, folder) = prepared(config, args, environment)?;
    let builder = builder.reads(reading(
        args.clone(),
        environment.clone(),
        folder.clone(),
        more.clone(),
    ));
    on_runtime(Box::pin(async {
        let (mut ends, mut hangups) = (Interrupts::listen_to_machine(), Signals::hangups());
        let keys = Keyring::open(KeyFile::within(&folder)).map_err(Stop::failed)?;
        let door = match keys.is_guarded() {
            true => Door::Keys,
            false => Door::Open,
        };
        // Bound first, so that a process that finds the address taken has changed nothing.
        let listener = Listener::bind(&settings, door).map_err(not_there)?;
        let kept = kept::open(&folder)?;
        let journal: Arc<dyn Journal> = Arc::new(kept.clone());
        let mut system = builder.journal(kept.clone()).start().await?;
        let oracle = system.oracle().clone();
        let host = Host::new(Shares {
            oracle: system.oracle().clone(),
            journal,
            settings,
            keys: Arc::new(keys),
        });
        let server = Server::start(listener, host.clone());
        let models = loaded.choice.chain.models();
        let why = (models, &*loaded.why_these_models());
        let guarded = door == Door::Keys;
        started(server.address(), why, &folder, guarded, terminal);
        // The server runs without the control channel if its socket fails.
        let socket = Socket::within(&folder).await;
        let socket = socket.inspect_err(|error| terminal.err.say(error));
        if let Ok(socket) = &socket
            && let Err(error) = kept.announce(socket.path())
        {
            terminal.err.say(format_args!(
                "other processes do not find the control channel: {error}"
            ));
        }
        let control = socket.map(|socket| LocalServer::start(socket, host.clone()));
        let mut reload = pin!(Fuse::terminated());
        loop {
            tokio::select! {
                () = ends.pressed() => break,
                () = oracle.shutdown_requested() => break,
                () = system.ended() => return Err(Stop::failed(GAVE_UP)),
                // A hangup during a reload is handled after it.
                () = hangups.come(), if reload.is_terminated() => {
                    let oracle = oracle.clone();
                    reload.set(async move { oracle.reload().await }.fuse());
                }
                reloaded = reload.as_mut() => tell_reloaded(&reloaded, terminal),
            }
        }
        // The reload holds the journal too.
        reload.set(Fuse::terminated());
        terminal.err.say("ends: lets queries come to their ends");
        let end = async {
            server.shut_down(system).await;
            drop((oracle, host));
            let tidied = async {
                if let Ok(control) = control {
                    control.close().await;
                }
                kept.close().await;
            };
            // Everything acknowledged is durable; the next start cleans up.
            if tokio::time::timeout(TIDYING, tidied).await.is_err() {
                tracing::warn!("the journal was not closed in order within {TIDYING:?}");
            }
        };
        ends.unless_pressed(Box::pin(end)).await?;
        Ok(exit::DONE)
    }))
}

/// For reloads: reads the file again; environment and command line stay.
fn reading(
    args: Args,
    environment: Environment,
    folder: PathBuf,
    more: More,
) -> impl Fn() -> Result<Config, Vec<String>> + Send + Sync {
    move || {
        let loaded = find(&args, &environment, more.clone()).loaded;
        // The keyring refreshes itself; a reload only reports that the keys cannot be read.
        let keys = KeyFile::within(&folder).read().err();
        let keys = keys.map(|error| error.to_string());
        match (loaded, keys) {
            (Ok(loaded), None) => Ok(loaded.config),
            (Ok(_), Some(keys)) => Err(vec![keys]),
            (Err(problems), keys) => {
                let problems = problems.iter().map(ToString::to_string);
                Err(problems.chain(keys).collect())
            }
        }
    }
}

/// Only an address in use is no wrong setting: it may be free later.
fn not_there(error: BindError) -> Stop {
    match error {
        BindError::Taken { .. } => Stop::failed(error),
        BindError::Keyless | BindError::Unguarded { .. } | BindError::Refused { .. } => {
            Stop::usage(error)
        }
    }
}

fn model_calls(config: &Config) -> usize {
    let all = config.actors.model_concurrency;
    let own = config
        .providers
        .iter()
        .map(|one| one.concurrency.unwrap_or(all));
    own.sum::<usize>() + all
}
