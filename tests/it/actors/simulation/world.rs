//! Runs one scenario over one journal, from life to life.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oracle_agent::{
    actor::AskError,
    journal::Journal,
    kernel::{Command, Refusal},
    llm::Request,
    model::{Event, Seq, Submission, tool::ToolRepeat},
    testkit::{
        AppendPoint, CrashTarget, CrashingJournal, TestOracle, TestSession, TestSystem, TestTool,
        advance_time,
    },
    tool::Tool,
};

use super::{
    check::{Ended, all_ended, audited, finished_calls, logs},
    order,
    scenario::{Act, Order, Scenario},
};
use crate::actors::family::Family;

const SESSION: &str = "s";
const PAUSE: Duration = Duration::from_millis(250);
/// Number of attempts before the test fails: hours of paused time.
const PATIENCE: usize = 100_000;

/// The state of a scenario that outlives its systems.
pub(super) struct World {
    scenario: Scenario,
    journal: Arc<dyn Journal>,
    family: Family,
    tools: Vec<TestTool>,
    /// For each life and tool: results recorded and calls made at its end.
    stands: Vec<BTreeMap<String, (usize, usize)>>,
    deaths: usize,
    order: order::Order,
    /// Label for failed assertions.
    name: String,
}

pub(super) struct Came {
    pub(super) ends: Vec<Ended>,
    pub(super) requests: Vec<Request>,
    pub(super) runs: BTreeMap<String, usize>,
    /// Tools that are safe to repeat, so that a call without a known result may run again.
    pub(super) repeatable: Vec<String>,
    pub(super) deaths: usize,
    pub(super) stands: Vec<BTreeMap<String, (usize, usize)>>,
    /// All records, times included.
    pub(super) trace: Vec<String>,
}

impl World {
    pub(super) fn new(scenario: &Scenario, journal: Arc<dyn Journal>, name: String) -> Self {
        Self {
            journal,
            family: (scenario.script)(),
            tools: (scenario.tools)(),
            scenario: scenario.clone(),
            stands: Vec::new(),
            deaths: 0,
            order: order::Order::default(),
            name,
        }
    }

    pub(super) fn in_order(self, order: order::Order) -> Self {
        Self { order, ..self }
    }

    /// Runs one life: until the scenario ends, or until `doom` if it is a system's death.
    pub(super) async fn live(
        &mut self,
        doom: Option<AppendPoint>,
        death: CrashTarget,
    ) -> CrashingJournal {
        let doomed = CrashingJournal::new(Arc::clone(&self.journal), doom, death);
        let system = self.start(doomed.clone()).await;
        self.nothing_is_forgotten(&system).await;
        tokio::select! {
            biased;
            () = doomed.crashed(), if death == CrashTarget::System => {}
            () = self.act(&system) => {}
        }
        system.die().await;
        self.deaths += usize::from(doomed.has_crashed());
        let logs = logs(&self.journal).await;
        let stand = |tool: &TestTool| {
            let name = name_of(tool);
            let stand = (finished_calls(&logs, &name), tool.started());
            (name, stand)
        };
        self.stands.push(self.tools.iter().map(stand).collect());
        doomed
    }

    async fn start(&self, journal: CrashingJournal) -> TestSystem {
        let order = || self.order.clone();
        let journal: Arc<dyn Journal> = Arc::new(journal);
        let oracle = TestOracle::new(order().around(self.family.clone()))
            .models(self.scenario.models)
            .policy(self.scenario.policy)
            .journal(Arc::new(order().around(journal)))
            .store(&self.journal);
        let tools = self.tools.iter().map(|tool| order().around(tool.clone()));
        let oracle = tools.fold(oracle, TestOracle::tool);
        oracle.start().await.unwrap()
    }

    /// Checks that a recovered session's counters are at least those of its log.
    async fn nothing_is_forgotten(&self, system: &TestSystem) {
        for (known, log) in logs(&self.journal).await {
            let (_, counted) = audited(&known, &log, &self.name);
            let session = system.session(known.key.name.as_str()).unwrap();
            let Ok(view) = session.view().await else {
                continue;
            };
            let Some(counted) = view.query.and_then(|query| counted.get(&query)) else {
                continue;
            };
            assert!(view.turns >= counted.turns, "{}: turns", self.name);
            let tokens = view.usage.total_tokens();
            assert!(tokens >= counted.tokens, "{}: tokens", self.name);
        }
    }

    /// Repeats the clients' actions that are not recorded yet, and waits for all answers.
    async fn act(&self, system: &TestSystem) {
        let session = system.session(SESSION).unwrap();
        for act in (self.scenario.acts)() {
            self.order.pause().await;
            match act {
                Act::Submit(submission) => self.submit(&session, submission).await,
                Act::Order { after, nth, order } => {
                    let after = self.wait_for(&session, after, nth).await;
                    self.order(&session, &after, order).await;
                }
            }
        }
        self.all_is_answered(&session).await;
    }

    async fn submit(&self, session: &TestSession, submission: Submission) {
        for _ in 0..PATIENCE {
            match session.submit(submission.clone()).await {
                Ok(_) => return,
                Err(error) => self.meet(session, error).await,
            }
        }
        panic!("{}: the message is not taken", self.name);
    }

    async fn order(&self, session: &TestSession, after: &Event, order: Order) {
        let (left, times) = order.leaves();
        for _ in 0..PATIENCE {
            if self.find(session, left, times).await.is_some() {
                return;
            }
            if let Err(error) = session.command(order.command(after)).await {
                self.meet(session, error).await;
            }
        }
        panic!("{}: the order is not taken", self.name);
    }

    /// Retries after a crash, and releases a quarantined session.
    async fn meet(&self, session: &TestSession, error: AskError) {
        match error {
            AskError::Stopped | AskError::Timeout(_) => {}
            AskError::Refused(Refusal::Quarantined(_)) => {
                let _ = session.command(Command::Release).await;
            }
            other => panic!("{}: {other}\n{}", self.name, session.lines().await.unwrap()),
        }
        advance_time(PAUSE).await;
    }

    async fn find(&self, session: &TestSession, kind: &str, nth: usize) -> Option<Event> {
        let events = session.events(Seq(0)).await.unwrap();
        let mut found = events.into_iter().filter(|event| event.kind == kind);
        found.nth(nth - 1)
    }

    async fn wait_for(&self, session: &TestSession, kind: &str, nth: usize) -> Event {
        for _ in 0..PATIENCE {
            if let Some(event) = self.find(session, kind, nth).await {
                return event;
            }
            self.release(session).await;
            advance_time(PAUSE).await;
        }
        let lines = session.lines().await.unwrap();
        panic!("{}: no {kind} in\n{lines}", self.name);
    }

    async fn all_is_answered(&self, session: &TestSession) {
        let count = async |kind: &str| {
            let kinds = session.kinds().await.unwrap();
            kinds.iter().filter(|found| *found == kind).count()
        };
        for _ in 0..PATIENCE {
            if count("query.accepted").await == count("query.finished").await {
                return;
            }
            self.release(session).await;
            advance_time(PAUSE).await;
        }
        let lines = session.lines().await.unwrap();
        panic!("{}: no end in\n{lines}", self.name);
    }

    async fn release(&self, session: &TestSession) {
        if let Ok(view) = session.view().await
            && view.quarantine.is_some()
        {
            let _ = session.command(Command::Release).await;
        }
    }

    /// Submits every message again under its key: the answer is the recorded one, and no query
    /// begins.
    async fn ask_again(&self) -> Vec<Ended> {
        let system = self
            .start(CrashingJournal::new(
                self.journal.clone(),
                None,
                CrashTarget::System,
            ))
            .await;
        let session = system.session(SESSION).unwrap();
        let mut ends = Vec::new();
        for (known, log) in logs(&self.journal).await {
            let ended = audited(&known, &log, &self.name).0;
            all_ended(&known, &log, &ended, &self.name);
            ends.extend(ended);
        }
        for act in (self.scenario.acts)() {
            let Act::Submit(submission) = act else {
                continue;
            };
            let key = submission.idempotency_key.clone();
            let answer = session.answer(submission).await;
            let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", self.name));
            let ended = ends
                .iter()
                .find(|ended| ended.key == key)
                .expect(&self.name);
            let told = (answer.query, answer.text, answer.turns);
            let recorded = (ended.query, ended.answer.clone(), ended.turns);
            assert_eq!(told, recorded, "{}", self.name);
        }
        system.die().await;
        ends
    }

    pub(super) async fn end(self) -> Came {
        let ends = self.ask_again().await;
        let mut trace = Vec::new();
        for (known, log) in logs(&self.journal).await {
            assert_eq!(
                audited(&known, &log, &self.name).0.len(),
                ends.iter()
                    .filter(|end| end.session == known.key.name.as_str())
                    .count(),
                "{}: nothing new begins",
                self.name
            );
            let lines = log.iter().map(|entry| format!("{} {:?}", known.sid, entry));
            trace.extend(lines);
        }
        let runs = self
            .tools
            .iter()
            .map(|tool| (name_of(tool), tool.started()));
        let is_safe = |tool: &&TestTool| tool.spec().repeat == ToolRepeat::Safe;
        let repeatable = self.tools.iter().filter(is_safe);
        Came {
            ends,
            requests: self.family.parent().requests(),
            runs: runs.collect(),
            repeatable: repeatable.map(name_of).collect(),
            deaths: self.deaths,
            stands: self.stands,
            trace,
        }
    }
}

fn name_of(tool: &TestTool) -> String {
    tool.spec().name.clone()
}
