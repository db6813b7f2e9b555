//! Actors that die from outside, which only a test in this module can cause.

use std::time::Duration;

use ractor::{Actor, ActorRef};
use tokio_util::sync::DropGuard;

use super::*;
use crate::{
    actor::{
        Answer, AskError,
        live_session::{ChargeResult, tests::live},
        outcome::Failed,
        profile::Opening,
        protocol::{Activation, Caller, Failover, GatewayMsg, SessionMsg, ShardMsg, Ticket},
        services::Gateways,
        session::{SessionActor, SessionShell},
    },
    kernel::{CallToken, DelegationPolicy},
    llm::{Request, Scripted, ToolChoice},
    model::{
        Attempt, Fault, Outcome, QueryId, Reply, Seq, SessionKey, SessionName, Sid, Submission,
        Turn, Usage, record::Fact,
    },
    testkit::{TestOracle, TestTool, advance_time},
};

mod depths;
mod gateways;
mod hosts;
mod shards;

const DONE: &str = "Fine.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
                    <confidence>0.9</confidence></signal>";

struct Parts {
    supervisor: ActorRef<SupervisorMsg>,
    services: Services,
    oracle: Oracle,
    gateways: Gateways,
}

/// Starts a system like [`start`], and keeps its parts.
async fn parts(oracle: TestOracle) -> Parts {
    let args = oracle.args().unwrap();
    let services = SupervisorActor::services(&args);
    let gateways = Arc::clone(&services.gateways);
    let bus = services.router.bus.clone();
    let (log, writer) = SupervisorActor::log(&args, SessionName::system(), bus);
    let oracle = SupervisorActor::oracle(&services, log.clone());
    let state = (args, services.clone(), (log, writer));
    let (supervisor, _) = Actor::spawn(None, SupervisorActor, state).await.unwrap();
    Parts {
        supervisor,
        services,
        oracle,
        gateways,
    }
}

fn kill<M: Send + 'static>(pool: &Pool<M>) {
    for index in 0..pool.size() {
        pool.at(index).unwrap().actor().kill();
    }
}

async fn ask(oracle: &Oracle, name: &str) -> Result<Answer, AskError> {
    let key = SessionKey::local(SessionName::new(name).unwrap());
    let watch = oracle
        .session_by_key(key)
        .ask(Submission::new("look it up"))
        .await?;
    let patience = Duration::from_secs(3_600);
    tokio::time::timeout(patience, watch.answer())
        .await
        .unwrap()
}

fn look() -> Scripted {
    Scripted::new()
        .calls("Looking.", [("slow", serde_json::json!({}))])
        .reply(DONE)
}

#[tokio::test(start_paused = true)]
async fn crashed_service_is_replaced() {
    type Kill = fn(&Parts);
    let services: [(&str, Kill); 3] = [
        ("buses", |parts| kill(&parts.services.router.bus.buses)),
        ("gateways", |parts| parts.gateways.values().for_each(kill)),
        ("shards", |parts| kill(&parts.services.router.shards)),
    ];
    for (name, kill) in services {
        let tool = TestTool::new("slow").hangs().repeatable();
        let parts = parts(TestOracle::new(look()).tool(tool.clone())).await;
        let running = {
            let oracle = parts.oracle.clone();
            async move { ask(&oracle, "running").await }
        };
        let trouble = async {
            while tool.started() == 0 {
                tokio::task::yield_now().await;
            }
            kill(&parts);
        };
        let (running, ()) = tokio::join!(running, trouble);
        assert_eq!(
            running.unwrap().outcome,
            Outcome::Answered,
            "{name}: the one that ran"
        );
        let next = ask(&parts.oracle, "next").await;
        assert_eq!(
            next.unwrap().outcome,
            Outcome::Answered,
            "{name}: the next one"
        );
        parts.supervisor.stop(None);
    }
}

#[tokio::test(start_paused = true)]
async fn query_retries_a_service_that_crashed() {
    let parts = parts(TestOracle::new(Scripted::new().reply(DONE))).await;
    // Killed before the message is submitted, so that it finds them dead or being replaced.
    parts.gateways.values().for_each(kill);
    let answer = ask(&parts.oracle, "s").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Answered);
}

#[tokio::test(start_paused = true)]
async fn repeated_service_crashes_stop_the_system() {
    let oracle = TestOracle::new(Scripted::new().reply(DONE));
    let parts = parts(oracle.settings(|settings| settings.replacements = 2)).await;
    for _ in 0..3 {
        kill(&parts.services.router.bus.buses);
        // The third one is not replaced.
        advance_time(Duration::from_secs(1)).await;
    }
    while parts.supervisor.get_status() != ractor::ActorStatus::Stopped {
        tokio::task::yield_now().await;
    }
    let error = ask(&parts.oracle, "s").await.unwrap_err();
    assert!(matches!(error, AskError::Stopped), "{error}");
}

#[tokio::test(start_paused = true)]
async fn occasional_service_crashes_never_exhaust_the_restart_limit() {
    let oracle = TestOracle::new(Scripted::new().reply(DONE));
    let parts = parts(oracle.settings(|settings| settings.replacements = 2)).await;
    for _ in 0..20 {
        kill(&parts.services.router.bus.buses);
        advance_time(Duration::from_secs(301)).await;
    }
    let answer = ask(&parts.oracle, "s").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Answered);
}

struct Waits {
    answer: tokio::sync::oneshot::Receiver<Result<Reply, Failed>>,
    _call: DropGuard,
}

impl Waits {
    async fn fault(self) -> Fault {
        self.answer.await.unwrap().unwrap_err().fault
    }
}

fn ticket(sid: Sid, turn: u32) -> (Box<Ticket>, Waits) {
    let (told, answer) = tokio::sync::oneshot::channel();
    let (caller, _call) = Caller::new(&Meter::default(), move |answer| drop(told.send(answer)));
    let request = Request {
        model: "test".into(),
        system: "".into(),
        messages: Arc::default(),
        tools: Arc::default(),
        tool_choice: ToolChoice::None,
        options: None,
        instead_of: None,
    };
    let token = CallToken {
        query: QueryId(1),
        turn: Turn(turn),
        attempt: Attempt(1),
    };
    let ticket = Ticket {
        sid,
        key: SessionKey::local(SessionName::new("s").unwrap()),
        token,
        patience: Duration::from_secs(600),
        outage: Duration::from_secs(300),
        failover: Failover::Impossible,
        within: Duration::MAX,
        session: None,
        model: "scripted/test".into(),
        request,
        caller,
        show: None,
        metered: None,
        live: Arc::new(live()),
        call_progress: Arc::default(),
    };
    (Box::new(ticket), Waits { answer, _call })
}

#[tokio::test(start_paused = true)]
async fn call_of_a_query_that_does_not_run_is_refused() {
    let script = Scripted::new().reply(DONE);
    let parts = parts(TestOracle::new(script.clone())).await;
    let (call, waits) = ticket(Sid(77), 0);
    let gateway = parts.gateways["scripted"].any().unwrap();
    gateway.cast(GatewayMsg::Call(call));
    assert_eq!(waits.fault().await.code.as_str(), "not_live");
    assert_eq!(script.requests().len(), 0, "nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn ledger_ends_a_session_that_exceeds_its_turn_budget() {
    let tool = TestTool::new("slow").hangs();
    let oracle = TestOracle::new(look())
        .tool(tool.clone())
        .policy(|policy| policy.limits.max_turns = 3);
    let parts = parts(oracle).await;
    let running = {
        let oracle = parts.oracle.clone();
        async move { ask(&oracle, "s").await.unwrap() }
    };
    let rogue = async {
        while tool.started() == 0 {
            tokio::task::yield_now().await;
        }
        // A fourth turn, which the kernel would never start.
        let (mut call, _waits) = ticket(Sid(1), 3);
        call.live = parts.services.router.ledger.get(&call.key).unwrap();
        let gateway = parts.gateways["scripted"].any().unwrap();
        gateway.cast(GatewayMsg::Call(call));
    };
    let (answer, ()) = tokio::join!(running, rogue);
    let Outcome::Failed { code, detail } = answer.outcome else {
        panic!("{:?}", answer.outcome);
    };
    assert_eq!(code.as_str(), "budget_violated");
    assert_eq!(detail, "4 turns were started, but only 3 are allowed");
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let live = parts.services.router.ledger.get(&key).unwrap();
    assert_eq!(live.charge(QueryId(1), Turn(0)), ChargeResult::NotLive);
}

/// A parent that waits for its child, which waits for its model.
async fn delegating() -> (Parts, Scripted) {
    let wish = "<signal type=\"delegation_recommended\"><reason>It is long</reason>\
                <scope>Read the rest of it</scope></signal>";
    let script = Scripted::new().reply(wish).stall("Reading");
    let oracle = TestOracle::new(script.clone()).policy(|policy| {
        policy.limits.max_turns = 3;
        policy.delegation = DelegationPolicy {
            max_depth: 1,
            max_children: 1,
            max_parallel: 1,
            default_tokens: 5_000,
        };
    });
    (parts(oracle).await, script)
}

async fn child_end(oracle: &Oracle) -> (Outcome, Usage) {
    let key = SessionKey::local(SessionName::new("~s.1.1").unwrap());
    let child = oracle.session_by_key(key);
    loop {
        for entry in child.records(Seq(0)).await.unwrap() {
            if let Some(finished) = entry.record.finished() {
                return (finished.outcome.clone(), finished.usage);
            }
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn query_over_budget_cancels_its_child_first() {
    let (parts, script) = delegating().await;
    let running = {
        let oracle = parts.oracle.clone();
        async move { ask(&oracle, "s").await.unwrap() }
    };
    let rogue = async {
        while script.requests().len() < 3 {
            tokio::task::yield_now().await;
        }
        let (mut call, _waits) = ticket(Sid(1), 3);
        call.live = parts.services.router.ledger.get(&call.key).unwrap();
        let gateway = parts.gateways["scripted"].any().unwrap();
        gateway.cast(GatewayMsg::Call(call));
    };
    let (answer, ()) = tokio::join!(running, rogue);
    assert_eq!(answer.outcome.reason(), Some("budget_violated"));
    let (outcome, used) = child_end(&parts.oracle).await;
    assert_eq!(outcome, Outcome::Cancelled);
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let log = parts
        .oracle
        .session_by_key(key)
        .records(Seq(0))
        .await
        .unwrap();
    let own = log.iter().find_map(|entry| entry.record.replied());
    let mut all = own.unwrap().usage;
    all += used;
    assert_eq!(answer.usage, all, "the child's use counts");
    assert_eq!(parts.oracle.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn quarantine_cancels_the_running_child() {
    let (parts, script) = delegating().await;
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let session = parts.oracle.session_by_key(key.clone());
    session.submit(Submission::new("look it up")).await.unwrap();
    while script.requests().len() < 3 {
        tokio::task::yield_now().await;
    }
    let shards = &parts.services.router.shards;
    let state = SessionShell::new(
        key.clone(),
        (Opening::default(), None),
        shards.at(shards.index_of(&key)).unwrap(),
        Duration::from_secs(300),
        Arc::new(live()),
        parts.services.clone(),
    );
    let (again, _) = Actor::spawn(None, SessionActor, state).await.unwrap();
    let reason = "it crashed while coming to life".to_owned();
    let activation = Activation::Quarantine { reason };
    let first = None;
    again
        .cast(SessionMsg::Activate { activation, first })
        .unwrap();
    assert_eq!(child_end(&parts.oracle).await.0, Outcome::Cancelled);
}

#[test]
fn restart_back_off_grows_with_recent_crashes_only() {
    let start = Instant::now();
    let mut deaths = Deaths::default();
    let mut at = |seconds| {
        let (times, pause) = deaths.count(start + Duration::from_secs(seconds));
        (times, pause.as_millis())
    };
    let soon = [0, 1, 2, 3, 4, 5, 6].map(&mut at);
    let pauses = [0, 50, 100, 200, 400, 500, 500];
    let expected = pauses.map({
        let mut times = 0;
        move |pause| {
            times += 1;
            (times, pause)
        }
    });
    assert_eq!(soon, expected);
    assert_eq!(at(66), (8, 0), "a minute later it is the first again");
    assert_eq!(at(603), (5, 0), "those of the first four seconds are over");
    for day in 1..1_000 {
        assert_eq!(at(86_400 * day), (1, 0), "one a day");
    }
}
