//! Systems below the actors of a host.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::journal::{Journal, Memory};

/// A host's actor: reports the events of its children, and restarts a system that failed.
struct Host;

struct HostState {
    heard: UnboundedSender<String>,
    restart: Box<dyn Fn() -> TestOracle + Send + Sync>,
    systems: UnboundedSender<System>,
}

enum HostMsg {
    Start,
}
local_messages!(HostMsg);

impl HostState {
    async fn start(&self, me: &ActorRef<HostMsg>) {
        let args = (self.restart)().args().unwrap();
        let system = System::start_under(args, me.get_cell(), Duration::ZERO).await;
        let _ = self.systems.send(system.unwrap());
    }
}

impl Actor for Host {
    type Msg = HostMsg;
    type State = HostState;
    type Arguments = HostState;

    async fn pre_start(
        &self,
        _: ActorRef<HostMsg>,
        state: HostState,
    ) -> Result<HostState, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<HostMsg>,
        HostMsg::Start: HostMsg,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        state.start(&me).await;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<HostMsg>,
        event: SupervisionEvent,
        state: &mut HostState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(_) => drop(state.heard.send("started".into())),
            SupervisionEvent::ActorTerminated(_, _, reason) => {
                let _ = state.heard.send(format!("ended: {reason:?}"));
            }
            SupervisionEvent::ActorFailed(_, error) => {
                let _ = state.heard.send(format!("failed: {error}"));
                state.start(&me).await;
            }
            _ => {}
        }
        Ok(())
    }
}

struct Hosted {
    host: ActorRef<HostMsg>,
    heard: UnboundedReceiver<String>,
    systems: UnboundedReceiver<System>,
    journal: Arc<dyn Journal>,
}

impl Hosted {
    /// A host whose systems share one journal.
    async fn new(oracle: impl Fn() -> TestOracle + Send + Sync + 'static) -> Self {
        let journal: Arc<dyn Journal> = Arc::new(Memory::new());
        let (heard, hears) = unbounded_channel();
        let (systems, started) = unbounded_channel();
        let kept = Arc::clone(&journal);
        let restart = Box::new(move || oracle().journal(Arc::clone(&kept)));
        let state = HostState {
            heard,
            restart,
            systems,
        };
        let (host, _) = Actor::spawn(None, Host, state).await.unwrap();
        let mut hosted = Self {
            host,
            heard: hears,
            systems: started,
            journal,
        };
        hosted.host.cast(HostMsg::Start).unwrap();
        assert_eq!(hosted.next_event().await, "started");
        hosted
    }

    async fn next_event(&mut self) -> String {
        self.heard.recv().await.unwrap()
    }

    async fn system(&mut self) -> System {
        self.systems.recv().await.unwrap()
    }

    async fn log(&self, name: &str) -> Vec<String> {
        let key = SessionKey::local(SessionName::new(name).unwrap());
        let known = self.journal.find(key).await.unwrap().unwrap();
        let entries = self.journal.read(known.sid, Seq(0), 100).await.unwrap();
        let kinds = entries.iter().map(|entry| entry.record.fact.kind());
        kinds.map(str::to_owned).collect()
    }
}

fn answering() -> TestOracle {
    TestOracle::new(Scripted::new().reply(DONE))
}

/// A tool that never returns, so that a query runs when its system ends.
fn slow() -> TestTool {
    TestTool::new("slow").hangs().repeatable()
}

async fn busy() -> (Hosted, System) {
    let tool = slow();
    let same = tool.clone();
    let mut hosted = Hosted::new(move || TestOracle::new(look()).tool(same.clone())).await;
    let system = hosted.system().await;
    begins(system.oracle(), &tool).await;
    (hosted, system)
}

async fn begins(oracle: &Oracle, tool: &TestTool) {
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let question = Submission::new("look it up");
    oracle.session_by_key(key).submit(question).await.unwrap();
    while tool.started() == 0 {
        tokio::task::yield_now().await;
    }
}

fn is_answered(answer: Result<Answer, AskError>) -> bool {
    answer.unwrap().outcome == Outcome::Answered
}

#[tokio::test(start_paused = true)]
async fn host_is_notified_of_shutdown() {
    let (mut hosted, system) = busy().await;
    system.shut_down(Duration::ZERO).await;
    assert_eq!(hosted.next_event().await, "ended: Some(\"shut down\")");
    assert_eq!(hosted.log("s").await.last().unwrap(), "session.passivated");
}

#[tokio::test(start_paused = true)]
async fn stopped_or_killed_host_shuts_its_system_down_gracefully() {
    type End = fn(&ActorRef<HostMsg>);
    let ends: [(&str, End); 2] = [
        ("stopped", |host| host.stop(None)),
        ("killed", |host| host.kill()),
    ];
    for (name, end) in ends {
        let (hosted, mut system) = busy().await;
        end(&hosted.host);
        system.ended().await;
        let left = ask(system.oracle(), "t").await;
        assert!(matches!(left, Err(AskError::Stopped)), "{name}");
        assert_eq!(
            hosted.log("s").await.last().unwrap(),
            "session.passivated",
            "{name}: what ran left in order, to go on later"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_the_child_waits_for_the_system_to_end() {
    let (mut hosted, system) = busy().await;
    system.cell().stop_and_wait(None, None).await.unwrap();
    assert!(system.oracle().has_ended());
    assert_eq!(hosted.next_event().await, "ended: None");
    assert_eq!(hosted.log("s").await.last().unwrap(), "session.passivated");
}

#[tokio::test(start_paused = true)]
async fn killing_the_child_still_shuts_the_system_down_gracefully() {
    let (hosted, mut system) = busy().await;
    system.cell().kill();
    system.ended().await;
    assert!(system.oracle().has_ended());
    assert_eq!(hosted.log("s").await.last().unwrap(), "session.passivated");
}

#[tokio::test(start_paused = true)]
async fn host_restarts_a_failed_system_over_the_same_journal() {
    let (tool, script) = (slow(), look());
    let same = tool.clone();
    let mut hosted = Hosted::new(move || {
        let oracle = TestOracle::new(script.clone()).tool(same.clone());
        oracle.settings(|settings| settings.replacements = 0)
    })
    .await;
    let first = hosted.system().await;
    begins(first.oracle(), &tool).await;
    kill(&first.oracle().router().shards);
    let why = hosted.next_event().await;
    assert!(why.starts_with("failed: Shard("), "{why}");
    assert!(first.oracle().has_ended());
    assert_eq!(hosted.next_event().await, "started");

    // The query that was cut off is recovered without a request.
    let second = hosted.system().await;
    while tool.started() < 2 {
        tokio::task::yield_now().await;
    }
    let log = hosted.log("s").await;
    assert!(log.contains(&"supervisor.restarted".to_owned()), "{log:?}");
    second.oracle().shut_down();
    assert_eq!(
        hosted.next_event().await,
        "ended: Some(\"shut down\")",
        "told to end, it does"
    );
}

#[tokio::test(start_paused = true)]
async fn system_does_not_start_under_a_stopped_host() {
    let (host, ended) = {
        let mut hosted = Hosted::new(answering).await;
        hosted.system().await.shut_down(Duration::ZERO).await;
        hosted.host.stop_and_wait(None, None).await.unwrap();
        (hosted.host.get_cell(), hosted.journal)
    };
    let oracle = answering().journal(ended);
    let started = System::start_under(oracle.args().unwrap(), host, Duration::ZERO).await;
    assert!(started.is_err());
}

#[tokio::test(start_paused = true)]
async fn standalone_system_can_be_linked_to_a_host_later() {
    let hosted = Hosted::new(answering).await;
    let mut later = System::start(answering().args().unwrap()).await.unwrap();
    later.cell().link(hosted.host.get_cell());
    assert!(is_answered(ask(later.oracle(), "s").await));
    hosted.host.stop(None);
    later.ended().await;
    assert!(later.oracle().has_ended());
}
