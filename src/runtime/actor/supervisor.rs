//! Supervisor: the root. Starts the services and the shards, and replaces those that fail.
//!
//! It is linked below no other actor, because ractor ends linked children with their parent,
//! without a graceful shutdown ([`system`]). A service (classifier,
//! composer, gateway, bus) that fails is replaced in its pool; so is a shard, whose running queries
//! are recovered from the journal. If one keeps failing within a short time, or the supervisor fails, the system ends.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, OnceLock, atomic::AtomicUsize},
    time::Duration,
};

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, Message, SupervisionEvent};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    approvals::Approvals,
    bus::{BusActor, BusHandle},
    classifier::{ClassifierActor, ClassifierArgs, HostClassifier},
    clock::Clock,
    composer::ComposerActor,
    deadline::APPEND_DEADLINE,
    gateway::{GatewayActor, GatewayArgs, SharedStatus},
    handle::{Deletions, Oracle, Servers, Source},
    journal_router::{Ephemerals, JournalRouter},
    ledger::Ledger,
    mailbox::Counted,
    message::local_messages,
    meter::Meter,
    pool::Pool,
    profile::{ProfileStore, Profiles},
    recovery::{RecoveryScope, RecoveryTask},
    router::SessionRouter,
    services::{All, Services},
    settings::{Recovery, SystemSettings},
    shard::{SWEEP, ShardActor, ShardArgs},
    signal_tracker::SignalTracker,
    system_log::SystemLog,
    task::Task,
    usage_log::UsageLog,
};
use crate::{
    access::Tenants,
    journal::Journal,
    llm::Backend,
    model::{By, SessionName},
    query::QueryClassifier,
};

mod system;

pub use system::{StartError, System};

/// How long a death counts against [`SystemSettings::replacements`].
const WINDOW: Duration = Duration::from_secs(600);
/// A death within this time after the last one is followed by a pause.
const SOON: Duration = Duration::from_secs(60);
/// Average pause after the first such death; doubles with each consecutive one.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest average pause: no longer than the time after which callers retry.
const LONGEST: Duration = Duration::from_millis(500);

/// Components of a system.
pub struct SystemArgs {
    /// Sizes, limits and deadlines.
    pub settings: SystemSettings,
    /// Source of time and entropy.
    pub clock: Clock,
    /// Store of durable records.
    pub journal: Arc<dyn Journal>,
    /// Model back ends, one per provider.
    pub backends: Vec<Arc<dyn Backend>>,
    /// Prompt values, tools and policies of the sessions.
    pub profiles: Profiles,
    /// Classifier of queries.
    pub classifier: Arc<dyn QueryClassifier>,
    /// Path of the project folder, which sessions record when they are opened.
    pub project: Option<Arc<str>>,
}

pub(super) enum SupervisorMsg {
    /// The pause before a service is replaced is over.
    Replace(ChildRole),
}
local_messages!(SupervisorMsg);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum ChildRole {
    Bus(usize),
    Classifier,
    Composer,
    Gateway(String),
    Shard(usize),
}

pub(super) struct SupervisorActor;

pub(super) struct SupervisorState {
    args: SystemArgs,
    classifier: Arc<HostClassifier>,
    services: Services,
    places: HashMap<ActorId, ChildRole>,
    deaths: HashMap<ChildRole, Deaths>,
    log: SystemLog,
    /// Writer of the log, and running recoveries; they end with the supervisor.
    tasks: Vec<Task>,
}

impl SupervisorActor {
    pub(super) fn services(args: &SystemArgs) -> Services {
        let settings = &args.settings;
        let capacity = settings.mailbox_capacity;
        let bus = BusHandle::new(Pool::new(settings.buses, capacity));
        let ephemerals = Arc::<Ephemerals>::default();
        let journal: Arc<dyn Journal> = Arc::new(JournalRouter {
            durable: Arc::clone(&args.journal),
            ephemerals: Arc::clone(&ephemerals),
        });
        let (log, _writer) = Self::log(args, SessionName::usage(), bus.clone());
        let router = SessionRouter {
            shards: Pool::new(settings.shards.clamp(1, 64), capacity),
            bus,
            ledger: Ledger::default(),
            journal,
            ephemerals,
            profiles: ProfileStore::new(args.profiles.clone()),
            subscriber_capacity: settings.subscriber_capacity,
            draining: Arc::default(),
            approvals: Approvals::default(),
            ended: CancellationToken::new(),
        };
        let providers = || args.backends.iter().map(|backend| backend.provider());
        let gateway = |provider: &str| (provider.to_owned(), Pool::new(1, capacity));
        let status = |provider: &str| {
            let status = SharedStatus::new(provider, args.clock.clone());
            (provider.to_owned(), status)
        };
        Arc::new(All {
            clock: args.clock.clone(),
            classifier: Pool::new(1, capacity),
            composer: Pool::new(1, capacity),
            usage: Arc::new(UsageLog { log, _writer }),
            router,
            gateways: Arc::new(providers().map(gateway).collect()),
            meter: Meter::default(),
            signal_tracker: SignalTracker::default(),
            providers: Arc::new(providers().map(status).collect()),
            tool_deadline: settings.tool_deadline,
            tenants: Tenants::new(settings.tenants.clone(), settings.max_live_bytes),
            nodes: Arc::new(AtomicUsize::new(1)),
            project: args.project.clone(),
            failure: OnceLock::new(),
        })
    }

    pub(super) fn log(args: &SystemArgs, name: SessionName, bus: BusHandle) -> (SystemLog, Task) {
        let (clock, journal) = (args.clock.clone(), Arc::clone(&args.journal));
        SystemLog::start(name, clock, journal, bus, APPEND_DEADLINE)
    }

    fn oracle(services: &Services, log: SystemLog) -> Oracle {
        Oracle {
            services: services.clone(),
            log,
            deletions: Deletions::default(),
            shutdown: CancellationToken::new(),
            source: Source::default(),
            servers: Servers::default(),
            by: By::local(),
        }
    }
}

impl Actor for SupervisorActor {
    type Msg = SupervisorMsg;
    type State = SupervisorState;
    type Arguments = (SystemArgs, Services, (SystemLog, Task));

    async fn pre_start(
        &self,
        me: ActorRef<SupervisorMsg>,
        (args, services, (log, writer)): Self::Arguments,
    ) -> Result<SupervisorState, ActorProcessingErr> {
        let mut state = SupervisorState {
            classifier: HostClassifier::new(Arc::clone(&args.classifier)),
            args,
            services,
            places: HashMap::new(),
            deaths: HashMap::new(),
            log,
            tasks: vec![writer],
        };
        for role in state.all_roles() {
            state.start(&me.get_cell(), role).await?;
        }
        if let Recovery::AtStart { .. } = state.args.settings.recovery {
            let recovery = state.recover(RecoveryScope::All);
            state.tasks.push(recovery);
        }
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<SupervisorMsg>,
        SupervisorMsg::Replace(role): SupervisorMsg,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        state.start(&me.get_cell(), role).await
    }

    /// Overridden, because by default the first service that fails would stop the system.
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SupervisorMsg>,
        event: SupervisionEvent,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        let (gone, why) = match event {
            SupervisionEvent::ActorFailed(cell, error) => (cell, error.to_string()),
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                (cell, reason.unwrap_or_else(|| "it stopped".into()))
            }
            _ => return Ok(()),
        };
        let replaced = state.replace(&me, &gone, why).await;
        if let Err(error) = &replaced {
            let _ = state.services.failure.set(error.to_string());
        }
        replaced
    }
}

impl SupervisorState {
    /// All actors of the system, services before those that use them.
    fn all_roles(&self) -> Vec<ChildRole> {
        let services = &self.services;
        let mut places = Vec::new();
        places.extend((0..services.router.bus.buses.size()).map(ChildRole::Bus));
        places.extend([ChildRole::Classifier, ChildRole::Composer]);
        places.extend(services.gateways.keys().cloned().map(ChildRole::Gateway));
        places.extend((0..services.router.shards.size()).map(ChildRole::Shard));
        places
    }

    async fn start(&mut self, me: &ActorCell, role: ChildRole) -> Result<(), ActorProcessingErr> {
        let services = &self.services;
        let id = match &role {
            ChildRole::Bus(index) => {
                let pool = &services.router.bus.buses;
                put(pool, *index, BusActor, pool.depth(*index), me).await?
            }
            ChildRole::Classifier => {
                let pool = &services.classifier;
                let args = ClassifierArgs {
                    host: Arc::clone(&self.classifier),
                    depth: pool.depth(0),
                };
                put(pool, 0, ClassifierActor, args, me).await?
            }
            ChildRole::Composer => put(&services.composer, 0, ComposerActor, (), me).await?,
            ChildRole::Gateway(provider) => {
                let (pool, args) = self.gateway(provider)?;
                put(pool, 0, GatewayActor, args, me).await?
            }
            ChildRole::Shard(index) => {
                let shards = services.router.shards.clone();
                // Sessions of the previous shard, which died with it.
                let ledger = &services.router.ledger;
                let cut_off = ledger.take(|key| shards.index_of(key) == *index);
                let id = put(&shards, *index, ShardActor, self.shard(*index), me).await?;
                if !cut_off.is_empty() {
                    self.tasks.retain(|task| !task.is_over());
                    let recovery = self.recover(RecoveryScope::These(cut_off));
                    self.tasks.push(recovery);
                }
                id
            }
        };
        self.places.insert(id, role);
        Ok(())
    }

    fn gateway(
        &self,
        provider: &str,
    ) -> Result<(&Pool<super::protocol::GatewayMsg>, GatewayArgs), ActorProcessingErr> {
        let mut backends = self.args.backends.iter();
        let backend = backends.find(|backend| backend.provider() == provider);
        let pool = self.services.gateways.get(provider);
        let status = self.services.providers.get(provider);
        let (Some(backend), Some(pool), Some(status)) = (backend, pool, status) else {
            return Err(format!("no backend for provider `{provider}`").into());
        };
        let args = GatewayArgs {
            backend: Arc::clone(backend),
            settings: self.args.settings.of_provider(provider),
            shards: self.services.router.shards.clone(),
            clock: self.args.clock.clone(),
            depth: pool.depth(0),
            status: status.clone(),
            log: self.log.clone(),
            usage: Arc::clone(&self.services.usage),
            nodes: Arc::clone(&self.services.nodes),
        };
        Ok((pool, args))
    }

    fn shard(&self, index: usize) -> ShardArgs {
        let shards = &self.services.router.shards;
        let settings = &self.args.settings;
        let number = |of| u32::try_from(of).unwrap_or(u32::MAX);
        ShardArgs {
            settings: settings.clone(),
            sweeps_from: SWEEP * number(index) / number(shards.size()),
            services: self.services.clone(),
            depth: shards.depth(index),
        }
    }

    fn recover(&self, scope: RecoveryScope) -> Task {
        let recovering = RecoveryTask {
            router: self.services.router.clone(),
            clock: self.args.clock.clone(),
            concurrency: match self.args.settings.recovery {
                Recovery::AtStart { concurrency } => concurrency,
                Recovery::OnDemand => Recovery::CONCURRENCY,
            },
            scope,
        };
        Task::spawn(recovering.run())
    }

    async fn replace(
        &mut self,
        me: &ActorRef<SupervisorMsg>,
        gone: &ActorCell,
        why: String,
    ) -> Result<(), ActorProcessingErr> {
        let Some(role) = self.places.remove(&gone.get_id()) else {
            return Ok(());
        };
        let deaths = self.deaths.entry(role.clone()).or_default();
        let (times, pause) = deaths.count(Instant::now());
        tracing::error!(?role, %why, times, ?pause, "replacing a failed service");
        let most = usize::try_from(self.args.settings.replacements).unwrap_or(usize::MAX);
        if times > most {
            let often = format!("{role:?} failed {times} times in {WINDOW:?}");
            return Err(format!("{often}; last error: {why}").into());
        }
        if pause.is_zero() {
            return self.start(&me.get_cell(), role).await;
        }
        let pause = self.args.clock.spread(pause);
        drop(me.send_after(pause, || SupervisorMsg::Replace(role)));
        Ok(())
    }
}

async fn put<M, A>(
    pool: &Pool<M>,
    index: usize,
    actor: A,
    args: A::Arguments,
    me: &ActorCell,
) -> Result<ActorId, ActorProcessingErr>
where
    M: Send + 'static,
    Counted<M>: Message,
    A: Actor<Msg = Counted<M>>,
{
    let (actor, _) = Actor::spawn_linked(None, actor, args, me.clone()).await?;
    let id = actor.get_id();
    pool.put(index, actor);
    Ok(id)
}

/// Deaths in one role. The first in a while is answered at once. Each that follows soon after
/// another is answered after a growing pause, so that a transient cause may pass and no actor
/// restarts in a busy loop.
#[derive(Debug, Default)]
struct Deaths {
    at: VecDeque<Instant>,
    /// Consecutive deaths that followed soon after another.
    soon: u32,
}

impl Deaths {
    /// Counts a death; returns the number that counts, and the pause before the replacement.
    fn count(&mut self, now: Instant) -> (usize, Duration) {
        let since = |at: &Instant| now.saturating_duration_since(*at);
        self.soon = match self.at.back() {
            Some(last) if since(last) < SOON => self.soon.saturating_add(1),
            _ => 0,
        };
        while self.at.front().is_some_and(|first| since(first) >= WINDOW) {
            self.at.pop_front();
        }
        self.at.push_back(now);
        let doubled = |times: u32| LONGEST.min(PAUSE * (1 << times.min(10)));
        let pause = self.soon.checked_sub(1).map_or(Duration::ZERO, doubled);
        (self.at.len(), pause)
    }
}

#[cfg(test)]
mod tests;
