//! State of a session actor, and the step that every input takes.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, LazyLock},
    thread::available_parallelism,
    time::Duration,
};

use ractor::{ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};
use tracing::Instrument as _;

use super::{
    prepare::{HeldDecision, Preparation},
    standing,
    work::Work,
};
use crate::{
    actor::{
        deadline::{APPEND_DEADLINE, within},
        error::AskError,
        live_session::LiveSession,
        mailbox::Mailbox,
        profile::{Opening, Profile, Profiles},
        protocol::{Acknowledged, CommandRequest, SessionMsg, ShardMsg, Viewed},
        replay::{Replayed, SHORT},
        services::Services,
        status::SessionView,
        task::Task,
        trace::{Origin, QueryTrace},
    },
    journal::{self, Append, Claim, Entry, Journal, Snapshot},
    kernel::{Decision, DecisionContext, IssuedCommand, Query, Refusal, Report, Session},
    model::{
        AnswerOptions, By, CallId, Charge, Day, DayUsage, Period, QueryId, Record, Seq, SessionKey,
        SessionName, ToolSpec, Usage,
        record::{Fact, QueryFact},
    },
    prompt::ComposedPrompt,
};

/// Work of checks that a decision may do here, which takes about two milliseconds.
const QUICK_WORK: usize = 2_000_000;
/// Deadline of a decision that needs more, with the time that it waits for its turn.
const DECISION_DEADLINE: Duration = Duration::from_secs(60);
/// Such decisions of this process take half of its cores at most.
static LONG_DECISIONS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    Arc::new(Semaphore::new((cores / 2).max(1)))
});

pub(in crate::actor) struct SessionShell {
    pub(super) key: SessionKey,
    pub(super) opening: Opening,
    pub(super) shard: Mailbox<ShardMsg>,
    /// Idle time until passivation, which the shard's sweep enforces. If it is zero, or the session
    /// is closed, the session requests it as soon as its query ends.
    idle_timeout: Duration,
    pub(super) live: Arc<LiveSession>,
    pub(super) services: Services,
    pub(super) profile: Profile,
    pub(super) profiles: Arc<Profiles>,
    pub(super) session: Session,
    /// The claim for appends; `None` before the first record.
    pub(super) claim: Option<Claim>,
    pub(super) last: Seq,
    /// Where the log ended at an earlier start for the same reason.
    pub(super) last_attempt_seq: Option<Seq>,
    pub(super) kept: Seq,
    pub(super) keeping: Option<Task>,
    /// The prompt that was composed last.
    pub(super) head: Option<Arc<ComposedPrompt>>,
    /// The query that is being prepared.
    pub(super) preparation: Option<Box<Preparation>>,
    /// Number of the last question to the classifier or the composer.
    pub(super) asked: u64,
    /// Commands that wait for a held decision.
    pub(super) backlog: VecDeque<CommandRequest>,
    /// The tools that a query with options offered last.
    pub(super) offered: Option<OfferedTools>,
    pub(super) work: Option<Work>,
    pub(super) tools: HashMap<CallId, Task>,
    /// Followed to their ends, which may come after the end of the query.
    pub(super) children: HashMap<SessionName, Task>,
    /// Children that are told of a pause or its end.
    pub(super) pauses: HashMap<SessionName, Task>,
    /// Refusal to all callers if the session cannot be claimed or read.
    pub(super) unclaimed: Option<journal::Error>,
    /// Start of the running turn, in monotonic microseconds; `None` for a turn that is not
    /// measured.
    pub(super) turn_began: Option<u64>,
    /// Messages of the conversation that were weighed, and their bytes.
    pub(super) weighed: (usize, usize),
    /// What the command in hand was sent for.
    pub(super) origin: Option<Origin>,
    /// Spans of the queries that run or wait in the inbox.
    pub(super) traces: BTreeMap<QueryId, QueryTrace>,
}

/// Tools, and what they follow from.
pub(super) struct OfferedTools {
    pub own: Arc<[ToolSpec]>,
    pub options: Arc<AnswerOptions>,
    pub offered: Arc<[ToolSpec]>,
}

impl SessionShell {
    pub(in crate::actor) fn new(
        key: SessionKey,
        (opening, last_attempt_seq): (Opening, Option<Seq>),
        shard: Mailbox<ShardMsg>,
        idle_timeout: Duration,
        live: Arc<LiveSession>,
        services: Services,
    ) -> Self {
        let profiles = services.router.profiles.now();
        let new = Replayed::new(opening, &profiles);
        Self {
            key,
            opening: new.opening,
            shard,
            idle_timeout,
            live,
            services,
            profile: new.profile,
            profiles,
            session: new.session,
            claim: None,
            last: new.last,
            last_attempt_seq,
            kept: Seq(0),
            keeping: None,
            head: None,
            preparation: None,
            asked: 0,
            backlog: VecDeque::new(),
            offered: None,
            work: None,
            tools: HashMap::new(),
            children: HashMap::new(),
            pauses: HashMap::new(),
            unclaimed: None,
            turn_began: None,
            weighed: (0, 0),
            origin: None,
            traces: BTreeMap::new(),
        }
    }

    pub(super) fn moment(&self) -> DecisionContext {
        let policy = &self.profile.policy;
        DecisionContext {
            call: self.live.call_progress().read(),
            unsignalled: self.services.signal_tracker.ignores_reminders(policy),
            ..self.services.clock.moment()
        }
    }

    /// The moment of a decision that may begin a query or a turn of this caller.
    pub(super) async fn moment_with_budgets(
        &self,
        by: &By,
    ) -> Result<DecisionContext, journal::Error> {
        let mut now = self.moment();
        let (first_of_month, _) = Period::Month.around(Day::of(now.at));
        for (payer, budgets) in self.services.tenants.budgets(&self.key.tenant, by) {
            let journal = &self.services.router.journal;
            let usage = journal.usage(payer.clone(), first_of_month);
            let usage = within(APPEND_DEADLINE, usage).await?;
            budgets.tighten(&mut now.allowance, &payer, &usage, now.at);
        }
        Ok(now)
    }

    /// Handles the commands that arrived, unless a decision is held. A message waits for that one;
    /// another command does not.
    pub(super) async fn handle_backlog(
        &mut self,
        me: &ActorRef<SessionMsg>,
    ) -> Result<(), ActorProcessingErr> {
        loop {
            if self.holds() {
                if self.backlog.iter().all(CommandRequest::is_message) {
                    return Ok(());
                }
                self.hurry(me).await?;
            }
            let Some(request) = self.backlog.pop_front() else {
                // An idle session keeps no memory for it: a kilobyte.
                self.backlog.shrink_to_fit();
                return Ok(());
            };
            self.live.take();
            // An unacknowledged message must not run after its caller has given up.
            if !(request.is_message() && request.reply.is_closed()) {
                self.command(me, request).await?;
            }
        }
    }

    async fn command(
        &mut self,
        me: &ActorRef<SessionMsg>,
        request: CommandRequest,
    ) -> Result<(), ActorProcessingErr> {
        let is_message = request.is_message();
        let CommandRequest {
            opening,
            origin,
            order,
            reply,
        } = request;
        let decided = self.decide(&opening, order, is_message).await;
        let mut decision = match decided {
            Ok(decision) => decision,
            Err(error) => {
                let _ = reply.send(Err(error));
                return Ok(());
            }
        };
        let begins = is_message && self.session.query().is_none();
        let begun = begins.then(|| decision.take_preparation()).flatten();
        let Some(begun) = begun else {
            return self.commit(me, decision, (origin, reply)).await;
        };
        let held = HeldDecision {
            decision,
            origin,
            reply,
        };
        self.prepare(me, begun, Some(held));
        Ok(())
    }

    /// Decides on a command. The budgets of a message that begins a query are read again once it is
    /// prepared.
    async fn decide(
        &mut self,
        opening: &Opening,
        order: IssuedCommand,
        is_message: bool,
    ) -> Result<Decision, AskError> {
        if let Some(error) = &self.unclaimed {
            return Err(refused(error));
        }
        self.check_opening(opening)?;
        self.renew(opening);
        let payer = match is_message {
            true => order.by.clone(),
            false => self.session.payer(),
        };
        let now = self.moment_with_budgets(&payer).await?;
        Ok(self.opening(self.session.decide(order, now)?))
    }

    /// Carries out the decision about a command, and answers it.
    pub(super) async fn commit(
        &mut self,
        me: &ActorRef<SessionMsg>,
        decision: Decision,
        (origin, reply): (Origin, RpcReplyPort<Acknowledged>),
    ) -> Result<(), ActorProcessingErr> {
        let (before, answer) = (self.last, decision.reply_after(self.last));
        let span = origin.span.clone();
        self.origin = Some(origin);
        let recorded = self.step(me, decision).instrument(span.clone()).await;
        self.origin = None;
        let Err(error) = recorded else {
            // The command is durable, even if the caller has given up.
            let _ = reply.send(Ok(answer));
            return Ok(());
        };
        if self.last != before {
            // The command is durable; only what follows it is not.
            let _ = reply.send(Ok(answer));
            return Err(error);
        }
        // Another process may just have created the session.
        if let Some(why @ (journal::Error::Owned { .. } | journal::Error::Full)) =
            error.downcast_ref()
        {
            let _ = reply.send(Err(AskError::from(why.clone())));
        }
        if !is_full(&error) {
            return Err(error);
        }
        // Nothing was recorded, so the session has not changed.
        self.services.router.ledger.warn(|more| {
            span.in_scope(|| {
                tracing::warn!(session = %self.key, %error, more, "cannot record a message");
            });
        });
        self.show(self.services.clock.monotonic_millis());
        Ok(())
    }

    /// Only its parent creates a sub-agent's session, and a parent has no other one.
    fn check_opening(&self, opening: &Opening) -> Result<(), Refusal> {
        let (is_new, opened) = (self.last == Seq(0), &self.opening.parent);
        let is_it = |parent| opened.as_ref().is_some_and(|opened| opened.is(parent));
        match &opening.parent {
            None if is_new && self.key.name.is_sub_agent() => Err(Refusal::NothingRunning),
            Some(parent) if !is_new && !is_it(parent) => Err(Refusal::AlreadyOpen),
            _ => Ok(()),
        }
    }

    pub(super) async fn report(
        &mut self,
        me: &ActorRef<SessionMsg>,
        report: Report,
    ) -> Result<(), ActorProcessingErr> {
        if let Report::ToolEnded { result, .. } = &report {
            self.tools.remove(&result.call);
        }
        let now = match self.session.may_begin(&report) {
            true => self.moment_with_budgets(&self.session.payer()).await?,
            false => self.moment(),
        };
        let decision = self.observed(report, now).await?;
        self.step(me, decision).await
    }

    /// Decides about a report. A decision whose checks need more than [`QUICK_WORK`] is made again on
    /// a thread for such work. After the deadline, it stays the one that could not check: the kernel's
    /// bound ends the thread's work soon afterwards, and nobody waits for it.
    async fn observed(
        &self,
        report: Report,
        now: DecisionContext,
    ) -> Result<Decision, ActorProcessingErr> {
        let has_format = |query: &Query| !query.options().format.is_text();
        let replied = matches!(report, Report::ModelReplied { .. });
        let may_check = replied || self.session.query().is_some_and(has_format);
        let again = may_check.then(|| report.clone());
        let work = QUICK_WORK;
        let quick = DecisionContext { work, ..now };
        let decision = self.session.observe(report, quick);
        let Some(report) = again.filter(|_| decision.is_short_of_work) else {
            return Ok(decision);
        };
        let session = self.session.clone();
        let decided = async {
            let turn = Arc::clone(&LONG_DECISIONS).acquire_owned().await?;
            let decide = move || {
                let _turn = turn;
                session.observe(report, now)
            };
            Ok::<_, ActorProcessingErr>(spawn_blocking(decide).await?)
        };
        let decided = timeout(DECISION_DEADLINE, decided).await;
        decided.unwrap_or(Ok(decision))
    }

    pub(super) fn view(&self, reply: RpcReplyPort<Viewed>) {
        let view = match &self.unclaimed {
            Some(why) => Err(refused(why)),
            // Nothing is recorded.
            None if self.last == Seq(0) => Ok(None),
            None => {
                let view = SessionView::of(self.key.clone(), &self.session, self.last);
                let state = self.state();
                Ok(Some(SessionView { state, ..view }))
            }
        };
        let _ = reply.send(view);
    }

    /// Adopts the opening of a command while nothing is recorded, and reloaded profiles while no
    /// query runs: a query ends with the profile that it began with.
    fn renew(&mut self, opening: &Opening) {
        let now = self.services.router.profiles.now();
        let opens = self.last == Seq(0) && *opening != self.opening;
        if opens {
            self.opening = opening.clone();
        }
        let is_old = opens || !Arc::ptr_eq(&now, &self.profiles);
        if self.session.query().is_some() || !is_old {
            return;
        }
        self.profile = now.of(&self.opening);
        self.head = None;
        self.session.adopt(Arc::clone(&self.profile.policy));
        self.profiles = now;
    }

    /// Carries out a decision.
    pub(super) async fn step(
        &mut self,
        me: &ActorRef<SessionMsg>,
        decision: Decision,
    ) -> Result<(), ActorProcessingErr> {
        let (records, effects) = (decision.records, decision.effects);
        let ran = self.session.query().map(|query| query.id);
        let was_closed = self.session.is_closed();
        // A query that cannot be prepared begins and ends at once.
        let ends = |record: &Record| matches!(record.fact, Fact::Query(QueryFact::Finished(_)));
        let has_ended = records.iter().any(ends);
        let (mut moved, mut entries) = (!effects.is_empty(), Vec::new());
        if !records.is_empty() {
            let began = self.services.clock.monotonic_micros();
            let records: Vec<_> = records.into_iter().map(Arc::new).collect();
            let taken = self.append(records.clone(), began).await?;
            self.track_signals(&records);
            for record in &records {
                self.session.evolve(record);
            }
            let runs = self.session.query().map(|query| query.id);
            if let Some(query) = runs.filter(|_| ran != runs) {
                tracing::info!(session = %self.key, %query, "query started");
            }
            moved |= ran != runs || records.iter().any(|record| moves(record, runs));
            self.count(&records, began, taken);
            self.trace(&records);
            entries = Entry::numbered(self.last, records);
            self.last = entries.last().map_or(self.last, |last| last.seq);
        }
        let now = self.services.clock.monotonic_millis();
        if moved {
            self.live.beat(now);
        }
        // Before the records are published, so that a client that sees an event finds the call, and
        // before the effects, so that a model call is charged to its query.
        self.show(now);
        if !entries.is_empty() {
            self.services.router.bus.publish(&self.key, entries);
            self.keep();
        }
        if self.session.query().is_none() {
            (self.work, self.offered) = (None, None);
            // New ones, because maps that were used keep their memory.
            (self.tools, self.pauses) = (HashMap::new(), HashMap::new());
            if self.traces.is_empty() {
                self.traces = BTreeMap::new();
            }
            let is_closed = self.session.is_closed();
            let ended = ran.is_some() || has_ended || is_closed != was_closed;
            if ended && (is_closed || self.idle_timeout.is_zero()) {
                let (key, actor) = (self.key.clone(), me.get_id());
                self.shard.cast(ShardMsg::BecameIdle { key, actor });
            }
        }
        for effect in effects {
            self.perform(me, effect);
        }
        Ok(())
    }

    /// Appends records: the one deliberate await of a handler, bounded, and fatal to the actor on
    /// failure. Takes the step's start, and returns the end, in monotonic microseconds.
    async fn append(
        &mut self,
        records: Vec<Arc<Record>>,
        began: u64,
    ) -> Result<u64, ActorProcessingErr> {
        let leaves = standing::left(&self.session, &records);
        let charges = self.charges(&records);
        let (journal, meter) = (&self.services.router.journal, &self.services.meter);
        let _waits = meter.append();
        let appended = async {
            let Some(claim) = self.claim else {
                return journal.begin(self.key.clone(), records, leaves).await;
            };
            let by = Claim {
                last: self.last,
                ..claim
            };
            let new = Append::new(by, records, leaves);
            let append = Append { charges, ..new };
            journal.append(append).await.map(|_| claim)
        };
        let appended = within(APPEND_DEADLINE, appended).await;
        if let Err(
            journal::Error::Unavailable(_) | journal::Error::Full | journal::Error::Broken(_),
        ) = appended
        {
            meter.not_committed();
        }
        self.claim = Some(appended?);
        if !self.key.name.is_ephemeral() {
            self.services.router.ledger.appended();
        }
        let now = self.services.clock.monotonic_micros();
        meter.committed(Duration::from_micros(now.saturating_sub(began)));
        Ok(now)
    }

    /// The usage in records of the running query. That of ephemeral sessions is counted with the
    /// records in the log of usage.
    fn charges(&self, records: &[Arc<Record>]) -> Vec<Charge> {
        let usage: Usage = records.iter().map(|record| record.usage()).sum();
        let is_charged = !usage.is_none() && !self.key.name.is_ephemeral();
        let Some(last) = records.last().filter(|_| is_charged) else {
            return Vec::new();
        };
        let usage = DayUsage::new(last.at, &usage, &Usage::default());
        Charge::of(&self.key.tenant, &self.session.payer(), usage)
    }

    /// Saves a snapshot if one is due. A snapshot is optional, because the records suffice for a
    /// replay. The distance between two grows with the log, so that their cost per turn stays
    /// constant.
    fn keep(&mut self) {
        let Some(claim) = self.claim.filter(|_| is_due(self.kept, self.last)) else {
            return;
        };
        let Some(resting) = self.session.resting() else {
            return;
        };
        let (seq, journal) = (self.last, Arc::clone(&self.services.router.journal));
        self.kept = seq;
        self.keeping = Some(Task::spawn(async move {
            // Large for a long conversation, so not encoded on a thread that others need.
            let written = tokio::task::spawn_blocking(move || resting.to_bytes()).await;
            let Ok(Ok(body)) = written else {
                return;
            };
            let body = body.into();
            if let Err(error) = save(&*journal, claim, Snapshot { seq, body }).await {
                tracing::warn!(%error, "cannot save a snapshot");
            }
        }));
    }
}

/// What callers learn when the session cannot be claimed or read: the shard quarantines the latter.
fn refused(error: &journal::Error) -> AskError {
    match error {
        journal::Error::Unreadable { .. } => Refusal::Quarantined(error.to_string()).into(),
        error => error.clone().into(),
    }
}

pub(super) fn is_full(error: &ActorProcessingErr) -> bool {
    matches!(error.downcast_ref(), Some(journal::Error::Full))
}

/// Whether a record is progress of the running query. Commands are not: a client that repeats one
/// every minute must not hide a stall.
fn moves(record: &Record, runs: Option<QueryId>) -> bool {
    runs.is_some()
        && record.query == runs
        && !matches!(record.fact, Fact::Control(_) | Fact::Session(_))
}

/// Saves a snapshot within a deadline, because it occupies memory until then.
async fn save(
    journal: &dyn Journal,
    claim: Claim,
    snapshot: Snapshot,
) -> Result<(), journal::Error> {
    let saved = journal.save(claim.sid, claim.epoch, snapshot);
    within(APPEND_DEADLINE, saved).await
}

/// Due when the log has grown by a quarter, and by [`SHORT`] records.
const fn is_due(kept: Seq, last: Seq) -> bool {
    let since = last.0 - kept.0;
    since >= SHORT && since * 4 >= kept.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        journal::Memory,
        model::{SessionKey, SessionName},
        testkit::{Obstacle, ObstructedJournal},
    };

    #[tokio::test(start_paused = true)]
    async fn silent_snapshot_store_times_out() {
        let journal = ObstructedJournal::new(Arc::new(Memory::new()));
        let key = SessionKey::local(SessionName::new("s").unwrap());
        let claim = journal.claim(key).await.unwrap();
        journal.set(Obstacle::SilentSnapshots);
        let (seq, body) = (Seq(1), Vec::new().into());
        let saved = save(&journal, claim, Snapshot { seq, body });
        let saved = tokio::time::timeout(2 * APPEND_DEADLINE, saved).await;
        let silent = journal::Error::Unavailable("no answer within 10s".into());
        assert_eq!(saved, Ok(Err(silent)));
    }

    #[test]
    fn snapshot_intervals_grow_with_the_journal() {
        let (mut kept, mut at) = (Seq(0), Vec::new());
        for last in (1..6_000).map(Seq) {
            if is_due(kept, last) {
                kept = last;
                at.push(last.0);
            }
        }
        assert_eq!(at[..6], [256, 512, 768, 1_024, 1_280, 1_600]);
        let apart = |two: &[u64]| (two[1] - two[0]) * 4 >= two[0];
        assert!(at.windows(2).all(apart), "{at:?}");
        assert!(at.len() < 16, "{at:?}");
    }
}
