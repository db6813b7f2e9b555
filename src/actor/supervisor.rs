//! Supervisor: the root. Starts the services and the shards, and replaces those that fail.
//!
//! Linked under its [`keeper`], and not under a host's actor, which has the [`root`] of the system below it. A
//! service (classifier, composer, gateway, bus) that
//! fails is replaced in its place in the pool; so is a shard, whose sessions the new one brings back.
//! If one keeps failing within a short time, or the supervisor itself does, the system ends: better that
//! than to limp.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio_util::sync::CancellationToken;

use super::{
    approvals::Approvals,
    bus::{BusActor, BusHandle},
    clock::Clock,
    deletion::Deletions,
    depths::Gauges,
    ephemeral::{Ephemerals, Split, UsageLog},
    gateway::{Board, GatewayActor, GatewayArgs, GatewayMsg},
    habits::Habits,
    handle::{Oracle, Router},
    ledger::Ledger,
    letters,
    message::local_messages,
    meter::Meter,
    pool::Pool,
    profile::{Profiles, Shelf},
    recovery::Whom,
    reload::Source,
    services::{All, Services},
    shard::Roster,
    system_log::{SystemLog, Unwritten},
    task::Task,
    workers::{self, WorkerActor, Workers},
};
use crate::{
    access::Tenants, journal::Journal, llm::Backend, model::By, prompt::Composer,
    query::QueryClassifier,
};

mod keeper;
mod replacing;
mod root;
mod settings;
mod shards;
mod system;

use replacing::{Deaths, Replacing};
pub use settings::{Recovery, SystemSettings};
use shards::Death;
pub use system::{StartError, System};

/// What a system is made of.
pub struct SystemArgs {
    /// How large and how patient.
    pub settings: SystemSettings,
    /// Time.
    pub clock: Clock,
    /// Where records become durable.
    pub journal: Arc<dyn Journal>,
    /// The models, by provider.
    pub backends: Vec<Arc<dyn Backend>>,
    /// What sessions of a kind share.
    pub profiles: Profiles,
    /// Says what kind of question one is.
    pub classifier: Arc<dyn QueryClassifier>,
    /// The prompts, ready to compose.
    pub composer: Arc<Composer>,
}

pub(super) enum SupervisorMsg {
    /// The pause before a service is replaced is over.
    Replace(Replacing),
}
local_messages!(SupervisorMsg);

/// Which actor is which, so that it can be replaced.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Classifier(usize),
    Composer(usize),
    Bus(usize),
    Gateway(String),
    Shard(usize),
}

/// The gateways, by provider.
pub(super) type Gateways = Arc<HashMap<String, Pool<GatewayMsg>>>;

pub(super) struct SupervisorActor;

pub(super) struct SupervisorState {
    args: SystemArgs,
    services: Services,
    gateways: Gateways,
    places: HashMap<ActorId, Place>,
    deaths: HashMap<Place, Deaths>,
    log: SystemLog,
    /// Writes the log, reads letters from other processes, brings back what was cut off; all end with the
    /// supervisor.
    tasks: Vec<Task>,
    /// Bring back what a shard's death has cut off.
    orphans: HashMap<usize, Task>,
}

impl SupervisorActor {
    pub(super) fn gateways(args: &SystemArgs) -> Gateways {
        let pool = || Pool::new(1, args.settings.mailbox_capacity);
        let provider = |backend: &Arc<dyn Backend>| (backend.provider().to_owned(), pool());
        Arc::new(args.backends.iter().map(provider).collect())
    }

    pub(super) fn services(args: &SystemArgs) -> Services {
        let settings = &args.settings;
        let capacity = settings.mailbox_capacity;
        let bus = BusHandle::new(Pool::new(settings.buses, capacity));
        let ephemerals = Arc::<Ephemerals>::default();
        let journal: Arc<dyn Journal> = Arc::new(Split {
            durable: Arc::clone(&args.journal),
            ephemerals: Arc::clone(&ephemerals),
        });
        let usage = UsageLog {
            journal: Arc::clone(&args.journal),
            bus: bus.clone(),
            clock: args.clock.clone(),
            deadline: settings.timeouts.append,
            writer: OnceLock::new(),
        };
        let profiles = Shelf::new(args.profiles.clone());
        let shards = settings.shards.clamp(1, 64);
        let rosters = (0..shards).map(|_| Roster::default());
        let router = Router {
            shards: Pool::new(shards, capacity),
            bus: bus.clone(),
            ledger: Ledger::default(),
            journal: Arc::clone(&journal),
            ephemerals,
            profiles: profiles.clone(),
            acknowledge: settings.timeouts.acknowledge,
            subscriber_capacity: settings.subscriber_capacity,
            draining: Arc::default(),
            rosters: rosters.collect(),
            approvals: Approvals::default(),
            ended: CancellationToken::new(),
        };
        let board = |backend: &Arc<dyn Backend>| {
            let provider = backend.provider();
            (
                provider.to_owned(),
                Board::new(provider, args.clock.clone()),
            )
        };
        Services::new(All {
            clock: args.clock.clone(),
            journal,
            classifier: Workers::new("classifier", Pool::new(settings.classifiers, capacity)),
            composer: Workers::new("composer", Pool::new(settings.composers, capacity)),
            bus,
            usage: Arc::new(usage),
            router,
            profiles,
            meter: Meter::default(),
            habits: Habits::default(),
            providers: Arc::new(args.backends.iter().map(board).collect()),
            timeouts: settings.timeouts,
            tenants: Tenants::new(settings.tenants.clone()),
        })
    }

    fn oracle(services: &Services, gateways: &Gateways, log: SystemLog) -> Oracle {
        Oracle {
            router: services.router.clone(),
            gauges: Gauges::new(services, gateways),
            meter: services.meter.clone(),
            providers: Arc::clone(&services.providers),
            tenants: services.tenants.clone(),
            clock: services.clock.clone(),
            log,
            usage: Arc::clone(&services.usage),
            deletions: Deletions::default(),
            told_to_end: CancellationToken::new(),
            source: Source::default(),
            by: By::local(),
        }
    }
}

impl Actor for SupervisorActor {
    type Msg = SupervisorMsg;
    type State = SupervisorState;
    type Arguments = (SystemArgs, Services, Gateways, (SystemLog, Unwritten));

    async fn pre_start(
        &self,
        me: ActorRef<SupervisorMsg>,
        (args, services, gateways, (log, unwritten)): Self::Arguments,
    ) -> Result<SupervisorState, ActorProcessingErr> {
        let (places, deaths) = (HashMap::new(), HashMap::new());
        let (journal, bus) = (Arc::clone(&args.journal), services.bus.clone());
        let deadline = args.settings.timeouts.append;
        let writer = unwritten.write(journal, bus, deadline);
        let mut state = SupervisorState {
            args,
            services,
            gateways,
            places,
            deaths,
            log,
            tasks: vec![writer],
            orphans: HashMap::new(),
        };
        for place in state.all_places() {
            state.start(&me.get_cell(), place).await?;
        }
        state.tasks.extend(state.read_letters());
        if let Recovery::AtStart { .. } = state.args.settings.recovery {
            let recovery = state.recover(Whom::All);
            state.tasks.push(recovery);
        }
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<SupervisorMsg>,
        message: SupervisorMsg,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        let SupervisorMsg::Replace(replacing) = message;
        state.put_back(&me.get_cell(), replacing).await
    }

    /// Overridden, because the default would stop the system with the first service that fails.
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SupervisorMsg>,
        event: SupervisionEvent,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, error) => {
                let why = Death::Fault(error.to_string());
                state.replace(&me, &cell, why).await?;
            }
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                let why = Death::Stopped(reason.unwrap_or_else(|| "it stopped".into()));
                state.replace(&me, &cell, why).await?;
            }
            // Nothing to do for the others, which ractor may add to.
            _ => {}
        }
        Ok(())
    }
}

impl SupervisorState {
    /// Everything that has to run, services before those that use them.
    fn all_places(&self) -> Vec<Place> {
        let services = &self.services;
        let mut places = Vec::new();
        places.extend((0..services.classifier.pool.size()).map(Place::Classifier));
        places.extend((0..services.composer.pool.size()).map(Place::Composer));
        places.extend((0..services.bus.buses().size()).map(Place::Bus));
        let providers = self
            .args
            .backends
            .iter()
            .map(|backend| backend.provider().to_owned());
        places.extend(providers.map(Place::Gateway));
        places.extend((0..services.router.shards.size()).map(Place::Shard));
        places
    }

    fn read_letters(&self) -> Option<Task> {
        let letters = self.services.journal.letters()?.receive();
        let router = self.services.router.clone();
        Some(Task::spawn(letters::read(letters, router)))
    }

    async fn start(&mut self, me: &ActorCell, place: Place) -> Result<(), ActorProcessingErr> {
        let me = me.clone();
        let id = match &place {
            Place::Classifier(index) => {
                let worker = workers::classifier(Arc::clone(&self.args.classifier));
                let (actor, _) = Actor::spawn_linked(None, WorkerActor::NEW, worker, me).await?;
                let id = actor.get_id();
                self.services.classifier.pool.put(*index, actor);
                id
            }
            Place::Composer(index) => {
                let worker = workers::composer(Arc::clone(&self.args.composer));
                let (actor, _) = Actor::spawn_linked(None, WorkerActor::NEW, worker, me).await?;
                let id = actor.get_id();
                self.services.composer.pool.put(*index, actor);
                id
            }
            Place::Bus(index) => {
                let depth = self.services.bus.buses().depth(*index);
                let (actor, _) = Actor::spawn_linked(None, BusActor, depth, me).await?;
                let id = actor.get_id();
                self.services.bus.buses().put(*index, actor);
                id
            }
            Place::Gateway(provider) => self.start_gateway(me, provider).await?,
            Place::Shard(index) => self.start_shard(me, *index, Vec::new()).await?,
        };
        self.places.insert(id, place);
        Ok(())
    }

    async fn start_gateway(
        &self,
        me: ActorCell,
        provider: &str,
    ) -> Result<ActorId, ActorProcessingErr> {
        let mut backends = self.args.backends.iter();
        let backend = backends.find(|backend| backend.provider() == provider);
        let board = self.services.providers.get(provider);
        let (Some(backend), Some(pool), Some(board)) =
            (backend, self.gateways.get(provider), board)
        else {
            return Err(format!("there is no backend for the provider `{provider}`").into());
        };
        let args = GatewayArgs {
            backend: Arc::clone(backend),
            settings: self.args.settings.of_provider(provider),
            ledger: self.services.router.ledger.clone(),
            clock: self.args.clock.clone(),
            depth: pool.depth(0),
            board: board.clone(),
            log: self.log.clone(),
        };
        let (actor, _) = Actor::spawn_linked(None, GatewayActor, args, me).await?;
        let id = actor.get_id();
        pool.put(0, actor);
        Ok(id)
    }
}

#[cfg(test)]
mod tests;
