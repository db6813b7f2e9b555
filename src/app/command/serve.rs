//! `oracle serve`: a system that lasts, and a server before it.

use std::sync::Arc;

use super::{
    super::settings,
    data, descriptors,
    run::{lasting, on_runtime},
};
use crate::{
    access::{KeyFile, Keyring},
    cli::{
        Args, Environment, Stop, exit,
        serve::{Ends, Started},
        terminal::Terminal,
    },
    config::{Config, Count, Loaded},
    control::{Controller, socket},
    http::{BindError, Door, Host, Listener, Server, Shares},
    journal::Journal,
    model::ProfileName,
};

/// Why a system ends that nobody told to.
const GAVE_UP: &str = "a part of the system failed too often, so all of it ended: its log says which \
    (-v for more); what was acknowledged is kept, and goes on with the next start";

/// `oracle serve`.
pub(super) fn serve(
    args: &Args,
    loaded: &Loaded,
    environment: &Environment,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let config = &loaded.config;
    let settings = settings::server(config);
    if let Err(few) = descriptors::raise(descriptors_of(config)) {
        terminal.err.say(few);
    }
    let (builder, folder) = lasting(config, args, environment)?;
    on_runtime(Box::pin(async {
        let mut ends = Ends::listen();
        let keys = Keyring::open(KeyFile::within(&folder)).map_err(Stop::failed)?;
        let door = match keys.is_guarded() {
            true => Door::Keys,
            false => Door::Open,
        };
        // First of all: whoever finds the place taken is to have changed nothing.
        let listener = Listener::bind(&settings, door).map_err(not_there)?;
        let shared = data::journal(&folder).await?;
        let journal: Arc<dyn Journal> = Arc::new(shared.clone());
        let mut system = builder.journal(shared.clone()).start().await?;
        let oracle = system.oracle().clone();
        let host = Host::new(Shares {
            oracle: system.oracle().clone(),
            journal,
            profiles: vec![ProfileName::oracle()],
            settings,
            keys: Arc::new(keys),
        });
        let server = Server::start(listener, host);
        let started = Started {
            address: server.address(),
            models: loaded.choice.chain.models(),
            because: &loaded.why_these_models(),
            data: &folder,
            needs_keys: door == Door::Keys,
        };
        started.tell(terminal);
        let (at, controller) = (folder.join(socket::NAME), Controller::new(oracle.clone()));
        let control = socket::Server::listen(&at, controller).await;
        // Conversations go on without it.
        let control = control.inspect_err(|error| terminal.err.say(error));
        tokio::select! {
            () = ends.told() => {}
            () = oracle.told_to_end() => {}
            () = system.ended() => return Err(Stop::failed(GAVE_UP)),
        }
        terminal.err.say("ends: lets queries come to their ends");
        let end = async {
            server.shut_down(system).await;
            if let Ok(control) = control {
                control.close().await;
            }
            shared.close().await;
        };
        ends.unless_again(Box::pin(end)).await?;
        Ok(exit::DONE)
    }))
}

/// Where it cannot listen, something is configured wrongly; a place that is taken may be free later.
fn not_there(error: BindError) -> Stop {
    match error {
        BindError::Taken { .. } => Stop::failed(error),
        BindError::Keyless | BindError::Unguarded { .. } | BindError::Refused { .. } => {
            Stop::usage(error)
        }
    }
}

fn descriptors_of(config: &Config) -> u64 {
    let all = config.actors.model_concurrency;
    let own = |concurrency: Option<Count<1, 10_000>>| concurrency.unwrap_or(all).size();
    let providers = config.providers.iter();
    let calls = providers.map(|provider| own(provider.concurrency));
    descriptors::needed(
        config.server.max_connections.size(),
        calls.sum::<usize>() + all.size(),
    )
}
