//! Invariants that hold after every step of every conversation.
//!
//! The audit receives each record after its decision and evolves a second session from the records
//! alone, decoded from JSON. That session must equal the one that decides.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use oracle_agent::{
    kernel::{Effect, IdleState, Phase, Policy, Session},
    model::{
        Attempt, CallId, Message, Part, QueryId, Record, Role, SessionName, StopReason, Timestamp,
        Turn, Usage,
        record::{
            AgentFact, BudgetFact, ControlFact, Fact, LlmFact, QueryFact, TurnFact, TurnStarted,
            codec::{Encoded, Encoder},
        },
    },
    signal::{self, Finding},
};

/// What the records say of one query.
#[derive(Debug, Clone, Default)]
struct Seen {
    finished: bool,
    /// Whether the last reply goes on when it is sent back.
    paused: bool,
    question: String,
    /// Replies so far, inherited ones included.
    turns: u32,
    allowed: u32,
    attempt: Attempt,
    /// Compactions begun, and the last attempt of any.
    compactions: u32,
    compaction: Attempt,
    /// Usage of replies and children, inherited usage included.
    usage: Usage,
    /// Children that work, and those of them that were cancelled.
    children: BTreeSet<SessionName>,
    cancelled: BTreeSet<SessionName>,
}

/// Checks a session against a replica built from its records.
#[derive(Clone)]
pub(super) struct Audit {
    replayed: Session,
    queries: BTreeMap<QueryId, Seen>,
    last: Timestamp,
    /// Children that were just cancelled and must be informed.
    to_tell: Vec<SessionName>,
}

/// The records of one append, encoded and decoded.
pub(super) fn stored(append: &[Record]) -> Vec<Record> {
    let mut encoder = Encoder::default();
    let numbered = append.iter().enumerate();
    let stored = numbered.map(|(number, record)| {
        let line = encoder.encode(record).unwrap();
        let encoded = Encoded::read(&line).unwrap();
        let earlier = encoded.back().map(|back| number - back as usize);
        let earlier = earlier.map(|number| &append[number]);
        let kind = record.fact.kind();
        encoded.decode(record.at, kind, earlier).unwrap()
    });
    stored.collect()
}

impl Audit {
    pub(super) fn new(policy: Arc<Policy>) -> Self {
        Self {
            replayed: Session::new(policy),
            queries: BTreeMap::new(),
            last: Timestamp::from_millis(0),
            to_tell: Vec::new(),
        }
    }

    pub(super) fn replayed(&self) -> Session {
        self.replayed.clone()
    }

    /// `stored` is the record as the journal returns it.
    pub(super) fn record(&mut self, record: &Record, stored: &Record, live: &Session) {
        assert_eq!(stored, record, "the codec keeps every record");
        self.replayed.evolve(stored);
        assert_eq!(&self.replayed, live, "replay is the same after {stored:?}");
        assert!(record.at >= self.last, "time does not run backwards");
        self.last = record.at;
        if let Fact::Turn(TurnFact::Started(started)) = &record.fact {
            measured(started, live);
        }
        self.number(record, live);
    }

    fn number(&mut self, record: &Record, live: &Session) {
        let Some(id) = record.query else { return };
        if let Some(accepted) = record.accepted() {
            let next = self.queries.keys().max().map_or(QueryId(1), |id| id.next());
            assert_eq!(id, next, "queries are numbered without gaps");
            let from = accepted.continues.map(|from| &self.queries[&from]);
            let seen = Seen {
                turns: from.map_or(0, |from| from.turns),
                usage: from.map_or_else(Usage::default, |from| from.usage),
                allowed: accepted.limits.max_turns,
                question: accepted.text.clone(),
                ..Seen::default()
            };
            self.queries.insert(id, seen);
            return;
        }
        let seen = self.queries.get_mut(&id).expect("an accepted query");
        assert!(!seen.finished, "nothing follows the end: {record:?}");
        match &record.fact {
            Fact::Turn(TurnFact::Started(started)) => {
                assert!(seen.children.is_empty(), "no turn while a child works");
                assert_eq!(record.turn, Some(Turn(seen.turns)), "turns count on");
                assert_eq!(started.attempt, Attempt(1));
                assert!(seen.turns < seen.allowed, "no turn beyond the budget");
                seen.attempt = started.attempt;
            }
            Fact::Turn(TurnFact::Restarted(restarted)) => {
                assert_eq!(record.turn, Some(Turn(seen.turns)));
                assert_eq!(restarted.attempt, seen.attempt.next(), "attempts count on");
                seen.attempt = restarted.attempt;
            }
            Fact::Turn(TurnFact::Replied(replied)) => {
                assert_eq!(record.turn, Some(Turn(seen.turns)));
                assert_eq!(replied.attempt, seen.attempt, "only the last try counts");
                seen.turns += 1;
                seen.paused = replied.stop == StopReason::Paused;
                seen.usage += replied.usage;
            }
            Fact::Budget(BudgetFact::ContextCompacting(compacting)) => {
                assert_eq!(record.turn, Some(Turn(seen.turns)), "before a turn");
                assert_eq!(compacting.attempt, seen.compaction.next(), "tries count on");
                assert!(compacting.number <= 2, "twice a query at most");
                assert!(!compacting.messages.is_empty());
                seen.compaction = compacting.attempt;
                let again = compacting.again.is_some();
                let number = seen.compactions + u32::from(!again);
                assert_eq!(compacting.number, number, "compactions count on");
                seen.compactions = number;
            }
            Fact::Budget(BudgetFact::ContextCompacted(compacted)) => {
                assert_eq!(
                    compacted.attempt, seen.compaction,
                    "only the last try counts"
                );
                seen.usage += compacted.usage;
            }
            Fact::Budget(BudgetFact::ContextCompactionFailed(failed)) => {
                assert_eq!(failed.attempt, seen.compaction, "only the last try counts");
                seen.usage += failed.usage;
            }
            Fact::Llm(LlmFact::Retried(retried)) => seen.usage += retried.usage,
            Fact::Llm(LlmFact::FailedOver(failed)) => seen.usage += failed.usage,
            Fact::Llm(LlmFact::Failed(failed)) => seen.usage += failed.usage,
            Fact::Llm(LlmFact::Waiting(_) | LlmFact::Admitted(_)) => {}
            Fact::Llm(
                LlmFact::CircuitOpened(_)
                | LlmFact::CircuitClosed(_)
                | LlmFact::RateLimited(_)
                | LlmFact::RateLimitCleared(_),
            ) => {
                panic!("of a provider, not of a session");
            }
            Fact::Control(ControlFact::BudgetSet(set)) => {
                seen.allowed = set.limits.max_turns;
            }
            Fact::Agent(AgentFact::DelegationStarted(start)) => {
                let policy = live.policy();
                let most = policy.delegation.max_parallel as usize;
                assert!(seen.children.len() < most, "a bounded number at a time");
                assert!(seen.children.insert(start.child.clone()), "a new child");
                let may = start.tools.iter().flat_map(|names| names.iter());
                let has = |name: &String| policy.own_tools().any(|own| own.name == *name);
                assert!(may.into_iter().all(has), "no tool that its parent lacks");
            }
            Fact::Agent(AgentFact::DelegationCancelled(cancel)) => {
                assert!(seen.children.contains(&cancel.child), "a child that works");
                let once = seen.cancelled.insert(cancel.child.clone());
                assert!(once, "taken back once");
                self.to_tell.push(cancel.child.clone());
            }
            Fact::Agent(AgentFact::DelegationFinished(end)) => {
                assert!(seen.children.remove(&end.child), "a child that works");
                seen.usage += end.usage;
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                assert_eq!(finished.turns, seen.turns, "the end tells the turns");
                assert_eq!(finished.usage, seen.usage, "and all that was used");
                let reason = finished.outcome.reason().unwrap_or_default();
                let gave_up = ["crash", "stall", "process_death", "budget_violated"];
                assert!(
                    seen.children.is_subset(&seen.cancelled)
                        && (seen.children.is_empty() || gave_up.contains(&reason)),
                    "no child is left behind: {finished:?}"
                );
                seen.finished = true;
            }
            Fact::Session(_)
            | Fact::Query(
                QueryFact::Accepted(_) | QueryFact::Classified(_) | QueryFact::AnswerRejected(_),
            )
            | Fact::Signal(_)
            | Fact::Tool(_)
            | Fact::Approval(_)
            | Fact::Budget(
                BudgetFact::IterationWarning(_)
                | BudgetFact::IterationExceeded(_)
                | BudgetFact::TokensWarning(_)
                | BudgetFact::TokensExceeded(_)
                | BudgetFact::CostWarning(_)
                | BudgetFact::CostExceeded(_)
                | BudgetFact::ContextWarning(_)
                | BudgetFact::ContextExceeded(_),
            )
            | Fact::Agent(
                AgentFact::LoopDetected(_)
                | AgentFact::FallbackTriggered(_)
                | AgentFact::CapabilityRequested(_)
                | AgentFact::ToolsAdded(_)
                | AgentFact::DelegationRecommended(_)
                | AgentFact::DelegationProgressed(_)
                | AgentFact::EscalationRaised(_),
            )
            | Fact::Supervisor(_)
            | Fact::Llm(LlmFact::Estimated(_) | LlmFact::Used(_) | LlmFact::PrefixBroken(_))
            | Fact::Control(_) => {}
            _ => panic!("a fact that is not audited: {record:?}"),
        }
    }

    pub(super) fn step(&mut self, live: &Session, effects: &[Effect]) {
        for told in mem::take(&mut self.to_tell) {
            let cancels = |effect: &Effect| matches!(effect, Effect::CancelChild { child, .. } if *child == told);
            assert!(effects.iter().any(cancels), "{told} is told: {effects:?}");
        }
        let open = self.queries.values().filter(|seen| !seen.finished).count();
        let running = match live.phase() {
            Phase::Idle => 0,
            Phase::Running(_) => 1,
            Phase::Quarantined(aside) => usize::from(aside.before.is_some()),
        };
        assert_eq!(open, running + live.waiting(), "no accepted query is lost");
        if *live.phase() == Phase::Idle {
            assert_eq!(live.waiting(), 0, "an idle session takes up what waits");
        }
        if let Some(resting) = live.resting() {
            let kept = IdleState::from_bytes(&resting.to_bytes().unwrap()).unwrap();
            let rested = Session::rested(Arc::new(live.policy().clone()), kept);
            assert_eq!(rested, *live, "a snapshot says all that the records do");
        }
        let messages = live.transcript().messages();
        conversation_is_whole(messages, live);
        foreign_text_is_data(messages);
        estimate_is_right(messages, live);
        let calls = effects.iter().filter(|effect| match effect {
            Effect::CallModel { .. } => true,
            Effect::Prepare(_)
            | Effect::Compact { .. }
            | Effect::AbortModel
            | Effect::RetryAt { .. }
            | Effect::RunTool { .. }
            | Effect::AbortTools
            | Effect::StartChild { .. }
            | Effect::SyncChildPause { .. }
            | Effect::CancelChild { .. } => false,
        });
        let calls = calls.count();
        let compacts = |effect: &&Effect| matches!(effect, Effect::Compact { .. });
        let all = calls + effects.iter().filter(compacts).count();
        assert!(all <= 1, "one call of a model at a time: {effects:?}");
        if let Phase::Running(query) = live.phase() {
            question_is_there(messages, &self.queries[&query.id].question);
        }
        if calls == 1 {
            let last = messages.last().map(|message| message.role);
            let paused =
                matches!(live.phase(), Phase::Running(query) if self.queries[&query.id].paused);
            assert!(
                paused || last != Some(Role::Assistant),
                "the model has the last word"
            );
            assert!(open_calls(messages).is_empty(), "results before the call");
        }
    }
}

/// Each call is answered in the next message, in order; only a running turn may have open calls.
fn conversation_is_whole(messages: &[Arc<Message>], live: &Session) {
    for (index, message) in messages.iter().enumerate() {
        let asked: Vec<&CallId> = message.calls().map(|call| &call.id).collect();
        let mut distinct = asked.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), asked.len(), "calls of a reply differ");
        if asked.is_empty() || index + 1 == messages.len() {
            continue;
        }
        let next = &messages[index + 1];
        let answered: Vec<&CallId> = next.results().map(|result| &result.call).collect();
        assert_eq!((next.role, answered), (Role::Tool, asked), "results follow");
    }
    for (index, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            let asks = index.checked_sub(1).map(|before| &messages[before]);
            let asks = asks.is_some_and(|asks| asks.calls().next().is_some());
            assert!(asks, "no result without a call");
        }
    }
    if *live.phase() == Phase::Idle {
        assert!(
            open_calls(messages).is_empty(),
            "an ended query owes nothing"
        );
    }
}

/// The current question stays verbatim through any compaction.
fn question_is_there(messages: &[Arc<Message>], question: &str) {
    let question = signal::escape(question);
    let asked = |message: &Arc<Message>| {
        message.role == Role::User && message.texts().any(|text| *text == *question)
    };
    assert!(messages.iter().any(asked), "{question:?} is gone");
}

fn open_calls(messages: &[Arc<Message>]) -> Vec<&CallId> {
    let last = messages.last().into_iter();
    last.flat_map(|message| message.calls().map(|call| &call.id))
        .collect()
}

/// A signal counts in the model's own reply only.
fn foreign_text_is_data(messages: &[Arc<Message>]) {
    for message in messages.iter().filter(|one| one.role != Role::Assistant) {
        let results = message.results().map(|result| result.content.as_str());
        for text in message.texts().chain(results) {
            let finding = signal::read(text, Timestamp::default()).finding;
            assert!(matches!(finding, Finding::Nothing), "a signal in {text:?}");
        }
    }
}

/// A turn's estimate matches what it sends: the prompt of 100 tokens, the tools, the conversation.
/// Escaping may change it a little.
fn measured(started: &TurnStarted, live: &Session) {
    let Some(estimate) = started.token_estimate else {
        return;
    };
    let query = live.query().expect("a running query");
    let (all, is_task) = (query.tools(&live.policy().tools), query.options().is_task);
    let tools = all.iter().map(|tool| {
        (format!("{}{}{}", tool.name, tool.description, tool.schema))
            .chars()
            .count()
    });
    let told = live
        .instructions()
        .map(|text| Session::system(&Arc::from(""), Some(text)));
    let told = told.map_or(0, |told| told.chars().count() as u64 / 4);
    let own = match is_task {
        true => 0,
        false => 100 + tools.sum::<usize>() as u64 / 4,
    };
    let sent = live.transcript().token_estimate() + told + own;
    assert!(estimate.abs_diff(sent) < 30, "{estimate}, and it is {sent}");
}

fn estimate_is_right(messages: &[Arc<Message>], live: &Session) {
    let size = |part: &Part| match part {
        Part::Text { text } => text.chars().count(),
        Part::ToolCall(call) => call.name.len() + call.arguments.chars().count(),
        Part::ToolResult(result) => result.content.chars().count(),
        Part::Image(_) => 4_000,
        Part::Opaque(opaque) => opaque.body.len(),
    };
    let parts = messages.iter().flat_map(|message| &message.parts);
    let chars: usize = parts.map(size).sum();
    assert_eq!(live.transcript().token_estimate(), (chars / 4) as u64);
}
