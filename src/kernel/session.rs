//! The state of a session: which inputs fit which phase, and how records change it.

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    attach, calls, capability, compaction,
    context::Calibration,
    control, delegation,
    draft::Draft,
    effect::Decision,
    fork, guard,
    history::Transcript,
    import,
    inbox::{self, Queued},
    input::{Command, DecisionContext, IssuedCommand, Refusal, Report},
    keys::Keys,
    phase::Step,
    policy::Policy,
    query::{Inheritance, Query},
    restart::{self, Quarantine},
    retry, turn_end,
};
use crate::model::{
    AnswerOptions, By, FaultCode, Import, Outcome, ProfileName, QueryId, Record, SessionKey,
    SignalType, Timestamp, ToolCall, Turn, Usage,
    record::{
        Accepted, AddedTool, AgentFact, ControlFact, Ending, Fact, InboxPosition, LlmFact, Noted,
        Opened, QueryFact, SessionFact, Steered, TurnFact, TurnMode,
    },
};

/// Phase of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Phase {
    /// No query runs.
    #[default]
    Idle,
    /// A query runs.
    Running(Box<Query>),
    /// Quarantined until an operator releases it.
    Quarantined(Quarantine),
}

/// State of a session, replayed from its records.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    #[serde(skip)]
    pub(super) rules: Rules,
    pub(super) opened: Option<Arc<Opened>>,
    #[serde(skip)]
    pub(super) phase: Phase,
    pub(super) paused: bool,
    pub(super) closed: bool,
    /// Tools that were attached or found.
    pub(super) joined: Vec<AddedTool>,
    pub(super) has_left: bool,
    pub(super) transcript: Transcript,
    /// The application's instructions, escaped.
    pub(super) instructions: Option<Arc<str>>,
    #[serde(skip)]
    pub(super) inbox: VecDeque<Queued>,
    pub(super) last_query: QueryId,
    pub(super) last_question: Option<Arc<str>>,
    pub(super) last_end: Option<Arc<LastEnd>>,
    /// State of the last query, if it was forced.
    pub(super) forced: Option<Inheritance>,
    pub(super) keys: Keys,
    pub(super) usage: Usage,
    pub(super) calibration: Calibration,
}

/// How the last query ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastEnd {
    /// Its outcome.
    pub outcome: Outcome,
    /// Its last signal.
    pub signal: Option<SignalType>,
}

/// Not part of the state: sessions that differ only in their policy are equal.
#[derive(Clone)]
pub(super) struct Rules {
    pub policy: Arc<Policy>,
    /// Estimated on demand, once for all copies.
    pub tool_tokens: Arc<OnceLock<u64>>,
}

impl From<Arc<Policy>> for Rules {
    fn from(policy: Arc<Policy>) -> Self {
        Self {
            policy,
            tool_tokens: Arc::default(),
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Arc::new(Policy::new(Vec::new(), Arc::default())).into()
    }
}

impl PartialEq for Rules {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rules")
    }
}

impl Session {
    /// Creates a session without records.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self {
            rules: policy.into(),
            ..Self::default()
        }
    }

    /// Decides on a command.
    ///
    /// # Errors
    /// Returns a [`Refusal`], and nothing changes.
    pub fn decide(
        &self,
        order: impl Into<IssuedCommand>,
        now: DecisionContext,
    ) -> Result<Decision, Refusal> {
        let IssuedCommand { by, command } = order.into();
        if let (Phase::Quarantined(aside), false) = (&self.phase, command == Command::Release) {
            return Err(Refusal::Quarantined(aside.reason.clone()));
        }
        if self.closed && command.begins_something() {
            return Err(Refusal::Closed);
        }
        match command {
            Command::Submit(submission) => inbox::submit(self, submission, by, now),
            Command::Continue(limits) => inbox::continue_last(self, limits, by, now),
            Command::Cancel { query } => self.cancel(query, by, now),
            Command::Steer { text, author } => {
                let steered = Steered {
                    text,
                    author,
                    by,
                    idempotency_key: None,
                };
                match self.draft(now) {
                    Some(draft) => control::steer(draft, steered),
                    None => inbox::steer_late(self, steered, now),
                }
            }
            Command::Pause if self.paused => Ok(Decision::nothing()),
            Command::Resume if !self.paused => Ok(Decision::nothing()),
            Command::Pause => {
                let paused = self.note(ControlFact::Paused(by.into()), now);
                Ok(self.and_then(paused, now, delegation::sync_pause))
            }
            Command::Resume => {
                let resumed = self.note(ControlFact::Resumed(by.into()), now);
                Ok(self.and_then(resumed, now, control::resume))
            }
            Command::Release => Ok(self.release(by, now)),
            Command::FinishNow => Ok(control::finish_now(self.running(now)?, by)),
            Command::SetBudget(limits) => {
                let current = self.query().map(|query| query.limits);
                let current = current.unwrap_or(self.policy().limits);
                let limits = inbox::checked(limits.resolve(current), self.policy())?;
                Ok(control::set_budget(self.running(now)?, limits, by))
            }
            Command::AnswerApproval {
                call,
                token,
                verdict,
                reason,
            } => {
                let draft = control::approval_of(self.running(now)?, &call, &token)?;
                Ok(calls::answered(draft, call, verdict, reason, by))
            }
            Command::ReturnResults {
                results,
                options,
                instructions,
            } => {
                let import = Import {
                    instructions,
                    ..Import::default()
                };
                let Some(brought) = import::check(self, Some(import.into()))? else {
                    return calls::returned(self.running(now)?, results, options, by);
                };
                let noted = self.note(SessionFact::Imported(brought), now);
                let then = self.after(&noted);
                Ok(noted.and(calls::returned(then.running(now)?, results, options, by)?))
            }
            Command::Restart => Ok(self.note(ControlFact::Restarted(by.into()), now)),
            Command::AttachTool { tool } => attach::attach(self, tool, by, now),
            Command::Close => Ok(self.close(by, now)),
        }
    }

    /// Decides on an event. A stale event decides nothing.
    pub fn observe(&self, report: Report, now: DecisionContext) -> Decision {
        let Phase::Running(query) = &self.phase else {
            return Decision::nothing();
        };
        let draft = Draft::new(self, query, now);
        let runs = query.step.pause().is_none();
        let calls = |token| runs && matches!(query.step_of(token), Some(Step::Calling { .. }));
        let compacts =
            |token| runs && matches!(query.step_of(token), Some(Step::Compacting { .. }));
        match report {
            Report::Prepared { query: id, result }
                if id == query.id && query.step == Step::Preparing =>
            {
                guard::prepared(draft, result)
            }
            Report::ModelReplied { token, reply } if calls(token) => {
                turn_end::replied(draft, token.attempt, reply)
            }
            Report::ModelFailed {
                token,
                fault,
                usage,
            } if calls(token) => retry::failed(draft, token, fault, usage),
            Report::CallWaits { token, waiting } if calls(token) || compacts(token) => {
                draft.noted(LlmFact::Waiting(waiting))
            }
            Report::CallAdmitted { token, waited } if calls(token) || compacts(token) => {
                retry::admitted(draft, token.attempt, waited)
            }
            Report::RetryDue { token } => match query.step_of(token) {
                Some(Step::AwaitingGrant(_)) => capability::proceed(draft),
                Some(_) => retry::due(draft),
                None => Decision::nothing(),
            },
            Report::Compacted { token, reply } if compacts(token) => {
                compaction::replied(draft, reply)
            }
            Report::CompactionFailed {
                token,
                fault,
                usage,
            } if compacts(token) => compaction::try_failed(draft, fault, usage),
            Report::ToolEnded {
                query: id,
                turn,
                result,
            } if (query.id, query.turn) == (id, turn) => calls::ended(draft, result),
            Report::ChildEnded { query: id, end }
                if id == query.id && query.awaits_child(&end.child) =>
            {
                delegation::ended(draft, end)
            }
            Report::ChildProgressed {
                query: id,
                progress,
            } if id == query.id && query.takes(&progress) => {
                draft.noted(AgentFact::DelegationProgressed(progress))
            }
            Report::BudgetViolated { query: id, detail } if id == query.id => {
                let code = FaultCode::BudgetViolated;
                control::end(draft, Ending::Failed { code, detail })
            }
            Report::Restarted { cause, detail } => restart::restarted(draft, cause, detail),
            _ => Decision::nothing(),
        }
    }

    /// Returns the effects that the state owes after a replay.
    pub fn resume(&self, now: DecisionContext) -> Decision {
        let draft = self.draft(now);
        draft.map_or_else(Decision::nothing, restart::owed)
    }

    /// Prepends the record that opens a new session to the decision `then`.
    pub fn opening(&self, opened: Opened, then: Decision, now: DecisionContext) -> Decision {
        self.note(SessionFact::Opened(opened), now).and(then)
    }

    /// The queue is emptied first, so that no message follows the running query.
    fn close(&self, by: By, now: DecisionContext) -> Decision {
        if self.closed {
            return Decision::nothing();
        }
        let decision = self.note(ControlFact::Closed(by.clone().into()), now);
        let decision = decision.and(self.note(SessionFact::Closed(Noted {}), now));
        let waiting = self.inbox.iter().map(|queued| queued.id);
        let withdrawn = waiting.map(|id| inbox::withdraw(id, now));
        let decision = withdrawn.fold(decision, Decision::and);
        self.and_then(decision, now, |draft| control::cancel_running(draft, by))
    }

    fn cancel(
        &self,
        query: Option<QueryId>,
        by: By,
        now: DecisionContext,
    ) -> Result<Decision, Refusal> {
        match query {
            Some(id) if self.inbox.iter().any(|queued| queued.id == id) => {
                Ok(inbox::withdraw(id, now))
            }
            Some(id) if self.query().is_none_or(|query| query.id != id) => {
                Err(Refusal::NothingRunning)
            }
            _ => Ok(control::cancel_running(self.running(now)?, by)),
        }
    }

    pub(super) fn and_then(
        &self,
        decision: Decision,
        now: DecisionContext,
        next: impl FnOnce(Draft<'_>) -> Decision,
    ) -> Decision {
        match self.after(&decision).draft(now) {
            Some(draft) => decision.and(next(draft)),
            None => decision,
        }
    }

    /// The session once a decision's records are durable.
    pub fn after(&self, decision: &Decision) -> Self {
        let mut then = self.clone();
        for record in &decision.records {
            then.evolve(record);
        }
        then
    }

    pub(super) fn note(&self, fact: impl Into<Fact>, now: DecisionContext) -> Decision {
        let query = self.query().map(|query| query.id);
        Decision::of(Record::new(now.at, query, None, fact))
    }

    fn running(&self, now: DecisionContext) -> Result<Draft<'_>, Refusal> {
        self.draft(now).ok_or(Refusal::NothingRunning)
    }

    pub(super) fn draft(&self, now: DecisionContext) -> Option<Draft<'_>> {
        self.query().map(|query| Draft::new(self, query, now))
    }

    /// Applies a durable record. Nothing else changes a session.
    pub fn evolve(&mut self, record: &Record) {
        self.has_left = matches!(record.fact, Fact::Session(SessionFact::Passivated(_)));
        match &record.fact {
            Fact::Session(SessionFact::Opened(opened)) => {
                self.opened = Some(Arc::new(opened.clone()));
            }
            Fact::Session(SessionFact::Imported(import)) => import::take_in(self, import),
            Fact::Session(SessionFact::Quarantined(why)) => {
                self.phase = mem::replace(&mut self.phase, Phase::Idle).quarantined(why);
            }
            Fact::Session(SessionFact::Released(_)) => {
                self.phase = mem::replace(&mut self.phase, Phase::Idle).released();
                self.begin_next(record.at);
            }
            Fact::Session(SessionFact::Forked(forked)) => fork::take_in(self, forked),
            Fact::Session(SessionFact::Closed(_)) => self.closed = true,
            Fact::Query(QueryFact::Accepted(accepted)) => {
                self.accept(record.query, Arc::new(accepted.clone()), record.at);
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                self.finish(record.query, &finished.outcome, record.at);
            }
            Fact::Control(ControlFact::Paused(_)) => self.paused = true,
            Fact::Control(ControlFact::Resumed(_)) => self.paused = false,
            Fact::Control(ControlFact::ToolAttached(attached)) => {
                attach::take_in(self, attached);
            }
            Fact::Agent(AgentFact::ToolsAdded(added)) => {
                added.tools.iter().for_each(|tool| attach::add(self, tool));
            }
            _ => self.evolve_query(record),
        }
    }

    fn evolve_query(&mut self, record: &Record) {
        let Phase::Running(query) = &mut self.phase else {
            return;
        };
        // Valid until the reply is part of the conversation.
        if let Fact::Turn(TurnFact::Replied(replied)) = &record.fact
            && let Some(sent) = query.sent.filter(|_| !replied.estimated)
        {
            self.calibration.learn(sent, replied.usage.input_tokens);
        }
        if let Fact::Control(ControlFact::Steered(steered)) = &record.fact
            && let Some(key) = &steered.idempotency_key
        {
            self.keys.remember(key, query.id, &steered.text, None);
        }
        self.transcript.evolve(query, record);
    }

    fn accept(&mut self, query: Option<QueryId>, accepted: Arc<Accepted>, at: Timestamp) {
        let id = query.unwrap_or(self.last_query.next());
        self.last_query = self.last_query.max(id);
        if let Some(key) = &accepted.idempotency_key {
            let options = accepted.options.as_deref();
            self.keys.remember(key, id, &accepted.text, options);
        }
        let place = accepted.place;
        if place == InboxPosition::Front {
            self.move_late_keys(id, &accepted);
        }
        let options = accepted.options.as_deref();
        let size = accepted.text.len() + options.map_or(0, AnswerOptions::bytes);
        let queued = Queued { id, accepted, size };
        match place {
            InboxPosition::Front => self.inbox.push_front(queued),
            InboxPosition::Back => self.inbox.push_back(queued),
        }
        self.begin_next(at);
    }

    /// The keys of words that came too late name the query that the words became.
    fn move_late_keys(&mut self, id: QueryId, accepted: &Accepted) {
        let Phase::Running(query) = &self.phase else {
            return;
        };
        if accepted.idempotency_key.is_some() || query.late_text() != accepted.text {
            return;
        }
        for late in query.late_steers() {
            if let Some(key) = &late.idempotency_key {
                self.keys.remember(key, id, &late.text, None);
            }
        }
    }

    fn begin_next(&mut self, at: Timestamp) {
        if self.phase != Phase::Idle {
            return;
        }
        let Some(Queued { id, accepted, size }) = self.inbox.pop_front() else {
            return;
        };
        let forced = self.forced.take();
        let from = forced.filter(|from| accepted.continues == Some(from.query));
        let mut query = Query::new(id, &accepted, from.as_ref());
        query.since = at;
        query.bytes = size;
        let options = accepted.options.as_deref();
        self.transcript
            .begin(&accepted.text, options.unwrap_or(&AnswerOptions::default()));
        // The prompt does not name tools that joined.
        query.steers.extend(attach::joined_tools(self));
        self.phase = Phase::Running(Box::new(query));
    }

    fn finish(&mut self, id: Option<QueryId>, outcome: &Outcome, at: Timestamp) {
        match &self.phase {
            Phase::Running(query) if Some(query.id) == id => {
                self.usage += query.own_usage();
                self.last_question = Some(Arc::clone(&query.text));
                let signal = query.signals.last_signal().map(|signal| signal.kind());
                self.last_end = Some(Arc::new(LastEnd {
                    outcome: outcome.clone(),
                    signal,
                }));
                let is_forced = matches!(outcome, Outcome::Forced { .. });
                self.forced = is_forced.then(|| query.inheritance());
                // A reply that was asked for a signal alone, and has none, is no part of the
                // conversation.
                let current = &query.current;
                let replied = current.stop.is_some() && current.signal.is_none();
                if query.mode == TurnMode::Signal && replied {
                    self.transcript.drop_reply();
                }
                self.transcript.end(outcome);
                self.phase = Phase::Idle;
                self.begin_next(at);
            }
            // A queued message was cancelled.
            _ => self.inbox.retain(|queued| Some(queued.id) != id),
        }
    }

    /// Current phase.
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Running query, if any.
    pub fn query(&self) -> Option<&Query> {
        match &self.phase {
            Phase::Running(query) => Some(query),
            _ => None,
        }
    }

    /// Whether new model and tool calls are held back.
    pub const fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether the session is closed.
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// The conversation as the model gets it.
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Instructions of the application, escaped.
    pub const fn instructions(&self) -> Option<&Arc<str>> {
        self.instructions.as_ref()
    }

    /// Pending approvals: query, turn, call and time of the request.
    pub fn waiting_calls(
        &self,
    ) -> impl Iterator<Item = (QueryId, Turn, &Arc<ToolCall>, Timestamp)> {
        self.query().into_iter().flat_map(|query| {
            query.approvals.iter().filter_map(|(call, since)| {
                Some((query.id, query.turn, &query.step.slot(call)?.call, *since))
            })
        })
    }

    /// Tenant and name, once the session is open.
    pub fn key(&self) -> Option<&SessionKey> {
        self.opened.as_deref().map(|opened| &opened.key)
    }

    /// Number of queued messages.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// About how many bytes its texts take. `weighed` is how many messages were weighed before, and
    /// their bytes.
    pub fn bytes(&self, weighed: &mut (usize, usize)) -> usize {
        let messages = self.transcript.messages();
        // Those that a summary or a failed query has removed are not known.
        if messages.len() < weighed.0 {
            *weighed = (0, 0);
        }
        let new = messages.iter().skip(weighed.0);
        weighed.1 += new.map(|message| message.bytes()).sum::<usize>();
        weighed.0 = messages.len();
        let texts = [&self.last_question, &self.instructions].into_iter();
        let texts: usize = texts.flatten().map(|text| text.len()).sum();
        let waiting: usize = self.inbox.iter().map(|queued| queued.size).sum();
        weighed.1 + texts + waiting + self.query().map_or(0, Query::bytes)
    }

    /// Number of accepted messages whose queries have not finished: those that wait, and the query
    /// that runs or was interrupted by the quarantine.
    pub fn open_queries(&self) -> usize {
        self.inbox.len() + usize::from(self.unfinished().is_some())
    }

    pub(super) fn depth(&self) -> u32 {
        let opened = self.opened.as_deref();
        let parent = opened.and_then(|opened| opened.parent.as_ref());
        parent.map_or(0, |parent| parent.depth)
    }

    /// The policy that the session runs under.
    pub fn policy(&self) -> &Policy {
        &self.rules.policy
    }

    /// How long the running query has waited for a model that is down (`outage`) or overloaded.
    pub(crate) fn waited(&self, now: Timestamp, outage: bool) -> Duration {
        let refusals = self.query().map(|query| query.refusals);
        refusals.unwrap_or_default().lasting(now, outage)
    }

    pub(super) const fn next_query(&self) -> QueryId {
        self.last_query.next()
    }

    /// Profile, once the session is open.
    pub fn profile(&self) -> Option<&ProfileName> {
        self.opened.as_deref().map(|opened| &opened.profile)
    }

    /// The question of the running query, or of the last one.
    pub fn question(&self) -> Option<&str> {
        let last = self.last_question.as_deref();
        self.query().map(|query| &*query.text).or(last)
    }

    /// How the last query that has ended did.
    pub fn last_end(&self) -> Option<&LastEnd> {
        self.last_end.as_deref()
    }

    /// Usage of all queries, the running one included.
    pub fn total_usage(&self) -> Usage {
        let mut total = self.usage;
        total += self.query().map(Query::own_usage).unwrap_or_default();
        total
    }

    /// Usage of all ended queries.
    pub const fn usage_before(&self) -> Usage {
        self.usage
    }
}
