//! Drives a session without a shell: the caller decides when an effect completes, and every step is
//! audited.

use std::sync::Arc;

use oracle_agent::{
    journal::StatusTracker,
    kernel::{
        CallToken, Command, CommandReply as Heard, Decision, DecisionContext, Effect, InFlight,
        IssuedCommand, Policy, Refusal, Report, ReturnedResult, Session,
    },
    llm::{Request, ToolChoice},
    model::{
        AnswerOptions, ApprovalToken, By, CallId, Fault, Message, Outcome, ProfileName,
        QueryClassification, QueryId, QueryType, Record, Reply, Role, Seq, SessionKey, SessionName,
        Submission, Timestamp, ToolCall, ToolResult, ToolStatus, Usage,
        record::{
            AgentFact, ApprovalVerdict, ChildEnd, ChildProgress, Classified, Fact,
            FallbackTriggered, Forked, LoopDetected, Opened, Quarantined, QueryFact, QueryFinished,
            RestartCause, SessionFact, ToolFact, TurnFact, TurnMode, TurnStarted,
        },
    },
};

use super::{
    audit::{Audit, stored},
    script,
};

/// A session under test, with its log and the state that a shell would keep.
#[derive(Clone)]
pub(super) struct Play {
    pub(super) session: Session,
    pub(super) log: Vec<Record>,
    pub(super) effects: Vec<Effect>,
    audit: Audit,
    /// Index of the last step's first record.
    step: usize,
    now: i64,
    /// Reported progress of the running call.
    pub(super) in_flight: InFlight,
    /// The model is known to give no signals.
    pub(super) unsignalled: bool,
    call: Option<(CallToken, TurnMode, Arc<str>)>,
    /// The last attempt at a summary: token, model and text.
    compaction: Option<(CallToken, Arc<str>, Arc<str>)>,
    /// What was sent to models, after so many records.
    pub(super) sent: Vec<(usize, Request)>,
}

impl Play {
    pub(super) fn new(policy: Policy) -> Self {
        let opened = Opened {
            key: SessionKey::local(SessionName::new("talk").unwrap()),
            profile: ProfileName::oracle(),
            project: None,
            parent: None,
        };
        Self::opened(policy, opened)
    }

    pub(super) fn opened(policy: Policy, opened: Opened) -> Self {
        let policy = Arc::new(policy);
        let mut play = Self {
            session: Session::new(Arc::clone(&policy)),
            log: Vec::new(),
            effects: Vec::new(),
            audit: Audit::new(policy),
            step: 0,
            now: 0,
            in_flight: InFlight::Unsent,
            unsignalled: false,
            call: None,
            compaction: None,
            sent: Vec::new(),
        };
        play.now += 1_000;
        let opening = play
            .session
            .opening(opened, Decision::nothing(), play.now());
        play.apply(opening);
        play
    }

    pub(super) fn asked(policy: Policy) -> Self {
        let mut play = Self::new(policy);
        play.ask(script::QUESTION);
        play
    }

    pub(super) fn now(&self) -> DecisionContext {
        DecisionContext {
            call: self.in_flight,
            unsignalled: self.unsignalled,
            ..DecisionContext::at(Timestamp::from_millis(self.now))
        }
    }

    pub(super) fn command(&mut self, order: impl Into<IssuedCommand>) -> Result<Heard, Refusal> {
        self.now += 1_000;
        let decision = self.session.decide(order, self.now())?;
        let heard = decision.reply;
        self.apply(decision);
        if self.session.is_paused() {
            self.nothing_starts();
        }
        Ok(heard)
    }

    /// Lets time pass.
    pub(super) const fn passes(&mut self, millis: i64) -> &mut Self {
        self.now += millis;
        self
    }

    /// Answers the waiting call of this id.
    pub(super) fn answers(
        &mut self,
        call: &str,
        verdict: ApprovalVerdict,
    ) -> Result<Heard, Refusal> {
        let waiting = self.session.waiting_calls();
        let waiting =
            waiting.map(|(query, turn, call, _)| (call.approval_token(query, turn), call));
        let token = waiting.filter(|(_, waits)| &*waits.id.0 == call);
        let token = token.map(|(token, _)| token).next();
        self.command(Command::AnswerApproval {
            call: CallId::new(call),
            token: token.unwrap_or_else(|| ApprovalToken("none".into())),
            verdict,
            reason: None,
        })
    }

    pub(super) fn report(&mut self, report: Report) -> &mut Self {
        self.now += 1_000;
        let recovers = matches!(report, Report::Restarted { .. });
        let decision = self.session.observe(report.clone(), self.now());
        if !self.session.may_begin(&report) {
            let now = DecisionContext {
                allowance: script::nothing_left(),
                ..self.now()
            };
            let without_budget = self.session.observe(report.clone(), now);
            assert_eq!(without_budget, decision, "the budgets count: {report:?}");
        }
        self.apply(decision);
        // A recovery continues what ran when the pause began.
        if self.session.is_paused() && !recovers {
            self.nothing_starts();
        }
        self
    }

    fn apply(&mut self, decision: Decision) {
        self.step = self.log.len();
        let mut tracker = StatusTracker {
            open: self.session.open_queries(),
            ..StatusTracker::default()
        };
        decision
            .records
            .iter()
            .for_each(|record| tracker.evolve(&record.fact));
        let stored = stored(&decision.records);
        for (record, stored) in decision.records.into_iter().zip(&stored) {
            self.session.evolve(&record);
            self.audit.record(&record, stored, &self.session);
            self.log.push(record);
        }
        assert_eq!(tracker.open, self.session.open_queries(), "foreseen");
        self.effects = decision.effects;
        self.audit.step(&self.session, &self.effects);
        for effect in &self.effects {
            if let Effect::CallModel {
                token, model, mode, ..
            } = effect
            {
                self.call = Some((*token, *mode, Arc::clone(model)));
                self.sent.push((self.log.len(), self.request(model)));
            }
            if let Effect::Compact {
                token, model, text, ..
            } = effect
            {
                self.compaction = Some((*token, Arc::clone(model), Arc::clone(text)));
            }
        }
    }

    /// The request that a session's actor makes now. Names of segments stand for the prompt.
    fn request(&self, model: &str) -> Request {
        let query = self.session.query().expect("a running query");
        let prompt = self.log.iter().rev().find_map(|record| match &record.fact {
            Fact::Query(QueryFact::Classified(Classified { prompt, .. })) => {
                Some(prompt.segments_included.join(", "))
            }
            _ => None,
        });
        let prompt = Arc::from(prompt.unwrap_or_default());
        let instructions = self.session.all_instructions();
        Request {
            model: model.trim_start_matches("p/").into(),
            system: match query.options().is_task {
                true => instructions.unwrap_or_default(),
                false => Session::system(&prompt, instructions.as_deref()),
            },
            messages: Arc::clone(self.session.transcript().messages()),
            tools: query.tools(&self.session.policy().tools),
            tool_choice: ToolChoice::Auto,
            options: query.shared_options().cloned(),
            instead_of: None,
        }
    }

    /// Goes on as a copy of the session.
    pub(super) fn fork(&mut self) -> &mut Self {
        let last = self.finishes().last().map(|(query, _)| *query);
        let running = self.session.unfinished().map(|query| query.id);
        let forked = Forked {
            key: SessionKey::local(SessionName::new("other").unwrap()),
            parent: SessionName::new("talk").unwrap(),
            seq: Seq(self.log.len() as u64),
            query: running.or(last).unwrap_or(QueryId(0)),
            turn: None,
        };
        let decision = self.session.forked(forked, By::default(), self.now());
        self.apply(decision);
        self
    }

    /// A paused session starts no call, tool or new child.
    fn nothing_starts(&self) {
        let starts = self.effects.iter().any(|effect| match effect {
            Effect::CallModel { .. } | Effect::Compact { .. } | Effect::RunTool { .. } => true,
            Effect::StartChild { .. } => self.kinds().contains(&"delegation.started"),
            Effect::Prepare(_)
            | Effect::AbortModel
            | Effect::RetryAt { .. }
            | Effect::AbortTools
            | Effect::SyncChildPause { .. }
            | Effect::CancelChild { .. } => false,
        });
        assert!(!starts, "paused, and yet {:?}", self.effects);
    }

    /// Restarts the session from its records.
    pub(super) fn restart(&mut self, cause: RestartCause) -> &mut Self {
        self.session = self.audit.replayed();
        let detail = "lost".to_owned();
        self.report(Report::Restarted { cause, detail });
        self.go_on()
    }

    /// Reactivates the session in a new process.
    pub(super) fn reboot(&mut self) -> &mut Self {
        self.session = self.audit.replayed();
        let decision = self.session.awake(self.now());
        self.apply(decision);
        self.go_on()
    }

    /// Passivates the session and reactivates it for a message.
    pub(super) fn revive(&mut self) -> &mut Self {
        let decision = self.session.leave(self.now());
        self.apply(decision);
        self.reboot()
    }

    /// Decides what the state owes, as part of the previous step.
    fn go_on(&mut self) -> &mut Self {
        let (step, mut effects) = (self.step, self.effects.clone());
        let decision = self.session.resume(self.now());
        self.apply(decision);
        self.step = step;
        // An effect that is owed twice is performed once.
        let more = self
            .effects
            .iter()
            .filter(|effect| !effects.contains(effect));
        let more: Vec<_> = more.cloned().collect();
        effects.extend(more);
        self.effects = effects;
        self
    }

    /// Quarantines the session, as after a crash without a query.
    pub(super) fn set_aside(&mut self, reason: &str) -> &mut Self {
        let fact = SessionFact::Quarantined(Quarantined {
            reason: reason.to_owned(),
        });
        let record = Record::new(self.now().at, None, None, fact);
        self.apply(Decision {
            records: vec![record],
            ..Decision::nothing()
        });
        self
    }
}

impl Play {
    pub(super) fn submit(&mut self, submission: Submission) -> Result<Heard, Refusal> {
        self.command(Command::Submit(submission))
    }

    pub(super) fn ask(&mut self, text: &str) -> &mut Self {
        self.ask_as(QueryType::Code, text)
    }

    pub(super) fn ask_as(&mut self, query_type: QueryType, text: &str) -> &mut Self {
        self.submit(Submission::new(text)).unwrap();
        self.prepare(query_type)
    }

    pub(super) fn prepare(&mut self, query_type: QueryType) -> &mut Self {
        let query = self.running();
        let classification = QueryClassification::new(query_type, 0.9, Vec::new());
        let told: Vec<_> = self.session.told_types().collect();
        let is_known = told.is_empty() || told.contains(&query_type);
        let segment = (!is_known).then(|| format!("For questions about {query_type}."));
        let result = Ok(Classified {
            classification,
            prompt: script::prompt(told.first().copied().unwrap_or(query_type)),
            fallback: false,
            segment,
            formatted: false,
        });
        self.report(Report::Prepared { query, result })
    }

    pub(super) fn says(&mut self, text: &str) -> &mut Self {
        self.replies(script::reply(text, Vec::new()))
    }

    pub(super) fn calls(&mut self, text: &str, calls: Vec<ToolCall>) -> &mut Self {
        self.replies(script::reply(text, calls))
    }

    pub(super) fn replies(&mut self, reply: Reply) -> &mut Self {
        let token = self.token();
        self.report(Report::ModelReplied { token, reply })
    }

    pub(super) fn fails(&mut self, fault: Fault) -> &mut Self {
        self.fails_at(fault, Usage::default())
    }

    /// A failed attempt that the provider counted all the same.
    pub(super) fn fails_at(&mut self, fault: Fault, usage: Usage) -> &mut Self {
        let token = self.token();
        self.report(Report::ModelFailed {
            token,
            fault,
            usage,
        })
    }

    pub(super) fn summarises(&mut self, text: &str) -> &mut Self {
        self.summarised(script::reply(text, Vec::new()))
    }

    pub(super) fn summarised(&mut self, reply: Reply) -> &mut Self {
        let token = self.compaction_token();
        self.report(Report::Compacted { token, reply })
    }

    pub(super) fn no_summary(&mut self, fault: Fault) -> &mut Self {
        self.no_summary_at(fault, Usage::default())
    }

    pub(super) fn no_summary_at(&mut self, fault: Fault, usage: Usage) -> &mut Self {
        let token = self.compaction_token();
        self.report(Report::CompactionFailed {
            token,
            fault,
            usage,
        })
    }

    pub(super) fn ok(&mut self, call: &str, content: &str) -> &mut Self {
        self.ends(call, ToolStatus::Ok, content)
    }

    pub(super) fn ends(&mut self, call: &str, status: ToolStatus, content: &str) -> &mut Self {
        let CallToken { query, turn, .. } = self.token();
        let result = ToolResult::new(CallId::new(call), status, content);
        self.report(Report::ToolEnded {
            query,
            turn,
            result,
        })
    }

    pub(super) fn child_ends(&mut self, outcome: Outcome, answer: &str, usage: Usage) -> &mut Self {
        let query = self.session.query().expect("a running query");
        let child = query.step.running_children().next();
        let child = child.expect("a child").child.clone();
        self.child_ended(child, outcome, answer, usage)
    }

    pub(super) fn child_progresses(&mut self, child: &SessionName, turns: u32) -> &mut Self {
        let (query, child) = (self.running(), child.clone());
        let progress = ChildProgress {
            child,
            turns,
            tokens: u64::from(turns) * 100,
            signal: None,
            reason: None,
        };
        self.report(Report::ChildProgressed { query, progress })
    }

    pub(super) fn child_ended(
        &mut self,
        child: SessionName,
        outcome: Outcome,
        answer: &str,
        usage: Usage,
    ) -> &mut Self {
        let query = self.running();
        let end = ChildEnd {
            child,
            outcome,
            answer: answer.into(),
            usage,
        };
        self.report(Report::ChildEnded { query, end })
    }

    /// The calls of the caller's tools that were handed over last.
    pub(super) fn handed_over(&self) -> Vec<ToolCall> {
        let handed = self.log.iter().rev().find_map(|record| match &record.fact {
            Fact::Tool(ToolFact::HandedOver(handed)) => Some(handed.calls.clone()),
            _ => None,
        });
        handed.expect("calls that were handed over")
    }

    pub(super) fn returns(
        &mut self,
        results: Vec<(String, String)>,
        options: Option<Arc<AnswerOptions>>,
    ) -> Result<Heard, Refusal> {
        let results = results.into_iter().map(|(call, content)| ReturnedResult {
            call: CallId::new(&call),
            content,
        });
        let results = results.collect();
        self.command(Command::ReturnResults {
            results,
            options,
            instructions: None,
        })
    }

    pub(super) fn uses(&mut self, text: &str, call: ToolCall, content: &str) -> &mut Self {
        let id = call.id.to_string();
        self.calls(text, vec![call]).ok(&id, content)
    }
}

impl Play {
    pub(super) fn running(&self) -> QueryId {
        self.session.query().expect("a running query").id
    }

    pub(super) fn token(&self) -> CallToken {
        self.call.as_ref().expect("a call").0
    }

    pub(super) fn mode(&self) -> TurnMode {
        self.call.as_ref().expect("a call").1
    }

    pub(super) fn model(&self) -> &str {
        &self.call.as_ref().expect("a call").2
    }

    pub(super) fn compaction_token(&self) -> CallToken {
        self.compaction.as_ref().expect("a compaction").0
    }

    pub(super) fn compaction(&self) -> (&str, &str) {
        let (_, model, text) = self.compaction.as_ref().expect("a compaction");
        (model, text)
    }

    pub(super) fn kinds(&self) -> Vec<&'static str> {
        self.log[self.step..]
            .iter()
            .map(|record| record.fact.kind())
            .collect()
    }

    pub(super) fn count(&self, kind: &str) -> usize {
        let same = |record: &&Record| record.fact.kind() == kind;
        self.log.iter().filter(same).count()
    }

    /// Types and rows of the records that have one.
    pub(super) fn rows(&self) -> Vec<(&'static str, u8)> {
        let row = |record: &Record| Some((record.fact.kind(), record.row?));
        let rows = self.log.iter().filter_map(row);
        rows.collect()
    }

    pub(super) fn turn(&self) -> &TurnStarted {
        let started = self.log.iter().rev().find_map(|record| {
            let Fact::Turn(TurnFact::Started(started)) = &record.fact else {
                return None;
            };
            Some(started)
        });
        started.expect("a started turn")
    }

    pub(super) fn guidance(&self) -> Vec<&str> {
        self.turn().guidance.iter().map(String::as_str).collect()
    }

    pub(super) fn finishes(&self) -> Vec<(QueryId, &QueryFinished)> {
        let ends = self.log.iter();
        ends.filter_map(|record| Some((record.query?, record.finished()?)))
            .collect()
    }

    pub(super) fn finished(&self) -> &QueryFinished {
        self.finishes().last().expect("a finished query").1
    }

    pub(super) fn outcome(&self) -> &Outcome {
        &self.finished().outcome
    }

    pub(super) fn answer(&self) -> &str {
        &self.finished().answer
    }

    pub(super) fn end(&self) -> Option<(&str, &str)> {
        if self.session.query().is_some() {
            return None;
        }
        let outcome = self.outcome();
        Some((outcome.name(), outcome.reason().unwrap_or("")))
    }

    fn agent(&self) -> impl Iterator<Item = &AgentFact> {
        self.log.iter().filter_map(|record| {
            let Fact::Agent(fact) = &record.fact else {
                return None;
            };
            Some(fact)
        })
    }

    pub(super) fn fallbacks(&self) -> Vec<&FallbackTriggered> {
        let all = self.agent().filter_map(|fact| {
            let AgentFact::FallbackTriggered(fallback) = fact else {
                return None;
            };
            Some(fallback)
        });
        all.collect()
    }

    pub(super) fn loops(&self) -> Vec<&LoopDetected> {
        let all = self.agent().filter_map(|fact| {
            let AgentFact::LoopDetected(found) = fact else {
                return None;
            };
            Some(found)
        });
        all.collect()
    }

    pub(super) fn messages(&self) -> &[Arc<Message>] {
        self.session.transcript().messages()
    }

    pub(super) fn roles(&self) -> Vec<Role> {
        self.messages().iter().map(|message| message.role).collect()
    }

    /// Returns ids, statuses and contents of the latest tool results.
    pub(super) fn results(&self) -> Vec<(String, ToolStatus, String)> {
        let last = self.messages().iter().rfind(|one| one.role == Role::Tool);
        let results = last.expect("a message of results").results();
        results
            .map(|result| {
                (
                    result.call.to_string(),
                    result.status,
                    result.content.clone(),
                )
            })
            .collect()
    }
}
