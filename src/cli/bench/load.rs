//! The load: queries to a target, and when they are sent.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout_at},
};
use uuid::Uuid;

use super::{BenchArgs, SimulatedModel, tally::Tally};
use crate::{
    actor::Oracle,
    cli::CliResult,
    control::{Client, ClientError, Code, QueryEnd, Refused},
    model::SessionName,
};

const QUESTION: &str = "Where is the session token checked, and what happens if it has expired?";
/// Most queries in flight on schedule; the process would run out of memory or descriptors.
const IN_FLIGHT: usize = 50_000;
/// Time to finish for queries that have begun when the measurement ends.
const DRAIN: Duration = Duration::from_secs(30);
/// Longest time that a query may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// Pause of a session after a refusal, so that refusals do not become the load.
const PAUSE: Duration = Duration::from_millis(100);

/// What is measured.
#[derive(Clone)]
pub(super) enum Target {
    /// A system of this process.
    System {
        /// The system.
        oracle: Oracle,
        /// Its model, if that is the simulated one, whose time is known.
        model: Option<SimulatedModel>,
    },
    /// A server.
    Server(Arc<Client>),
}

impl Target {
    /// Checks that a server can be reached. Its metrics need an admin's key, the load does not.
    pub(super) async fn check(&self) -> CliResult {
        let Self::Server(client) = self else {
            return Ok(());
        };
        match client.metrics().await {
            Err(ClientError::Refused(refused)) if refused.code == Code::AdminOnly => Ok(()),
            reached => Ok(reached.map(drop)?),
        }
    }

    pub(super) fn model_latency(&self) -> Option<Duration> {
        match self {
            Self::System { model, .. } => model.map(|model| model.latency),
            Self::Server(_) => None,
        }
    }

    /// Asks in a session and waits for the end. An error is its code, or the HTTP status.
    async fn ask(&self, session: &SessionName) -> Result<QueryEnd, String> {
        let code = |refused: Refused| refused.code.as_str().to_owned();
        match self {
            Self::System { oracle, .. } => {
                let session = oracle.session(session).map_err(|error| error.to_string())?;
                let answer = session.answer(QUESTION).await;
                let answer = answer.map_err(|error| code(error.into()))?;
                Ok(QueryEnd {
                    outcome: answer.outcome.name().to_owned(),
                    reason: answer.outcome.reason().map(str::to_owned),
                    turns: answer.turns,
                })
            }
            Self::Server(client) => {
                let end = client.ask(session, QUESTION, PATIENCE).await;
                end.map_err(|error| match error {
                    ClientError::Refused(refused) => code(refused),
                    ClientError::Http { status, .. } => format!("http_{status}"),
                    ClientError::Silent { .. } => "timeout".to_owned(),
                    _ => "connection".to_owned(),
                })
            }
        }
    }
}

/// When queries count: those that are due between `from` and `to`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) start: Instant,
    pub(super) from: Instant,
    pub(super) to: Instant,
}

impl Window {
    pub(super) fn after(warm_up: Duration, duration: Duration) -> Self {
        let start = Instant::now();
        let from = start + warm_up;
        let to = from + duration;
        Self { start, from, to }
    }
}

/// Sends the load until the window closes, and waits for the queries in flight.
pub(super) async fn run(args: &BenchArgs, target: &Target, window: Window, tally: Tally) -> Tally {
    let load = Arc::new(Load {
        target: target.clone(),
        run: Uuid::now_v7().simple().to_string(),
        sessions: args.sessions.get().into(),
        queries: args.queries.get().into(),
        window,
        tally: Mutex::new(tally),
    });
    let mut tasks = JoinSet::new();
    match args.rate {
        Some(rate) => load.on_schedule(rate.get(), &mut tasks).await,
        None => {
            for slot in 0..load.sessions {
                tasks.spawn(Arc::clone(&load).repeat(slot));
            }
        }
    }
    while let Ok(Some(_)) = timeout_at(window.to + DRAIN, tasks.join_next()).await {}
    let mut tally = load.tally.lock().clone();
    tally.unfinished = tasks.len() as u64;
    tally
}

struct Load {
    target: Target,
    /// In the names of the sessions, so that no run meets the sessions of another.
    run: String,
    sessions: u64,
    queries: u64,
    window: Window,
    tally: Mutex<Tally>,
}

impl Load {
    async fn on_schedule(self: &Arc<Self>, rate: u32, tasks: &mut JoinSet<()>) {
        for number in 0.. {
            let due = self.window.start + Duration::from_secs_f64(number as f64 / f64::from(rate));
            if due >= self.window.to {
                return;
            }
            sleep_until(due).await;
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= IN_FLIGHT {
                self.tally.lock().unsent += u64::from(due >= self.window.from);
                continue;
            }
            let load = Arc::clone(self);
            tasks.spawn(async move {
                load.ask(number % load.sessions, number / load.sessions, due)
                    .await;
            });
        }
    }

    async fn repeat(self: Arc<Self>, slot: u64) {
        let mut number = 0;
        while Instant::now() < self.window.to {
            if !self.ask(slot, number, Instant::now()).await {
                sleep(PAUSE).await;
            }
            number += 1;
        }
    }

    /// Returns whether the query ended.
    async fn ask(&self, slot: u64, number: u64, due: Instant) -> bool {
        let generation = number / self.queries;
        let end = match SessionName::new(&format!("bench-{}-{slot}-{generation}", self.run)) {
            Ok(session) => self.target.ask(&session).await,
            Err(error) => Err(error.to_string()),
        };
        let (now, has_ended) = (Instant::now(), end.is_ok());
        let is_in = |at: Instant| (self.window.from..self.window.to).contains(&at);
        let mut tally = self.tally.lock();
        if let (Ok(end), true) = (&end, is_in(now)) {
            tally.completed += 1;
            tally.turns += u64::from(end.turns);
        }
        if is_in(due) {
            tally.add(now - due, end);
        }
        has_ended
    }
}
