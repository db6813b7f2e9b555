//! A shard driven message by message, in an order that the test chooses.

use std::sync::Arc;

use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

use super::{
    lifecycle::{Live, Slot},
    *,
};
use crate::{
    actor::{
        protocol::{Acknowledged, CommandRequest},
        supervisor::{SupervisorActor, SystemArgs},
        trace::Origin,
    },
    journal::Memory,
    kernel::{Command, CommandReply},
    llm::Scripted,
    model::{
        AnswerOptions, QueryClassification, QueryId, Seq, SessionName, SessionState, Submission,
        record::{Fact, QueryFact, RestartCause},
    },
    prompt::ComposedPrompt,
    query::{QueryClassifier, QueryContext},
    testkit::{Obstacle, ObstructedJournal, PanickingPolicy, Panics, TestOracle, TestTool},
};

const DONE: &str = "Fine.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
                    <confidence>0.9</confidence></signal>";

enum RelayInput {
    Message(Counted<ShardMsg>),
    Event(SupervisionEvent),
}

/// Takes the shard's place as an actor, and records its inputs.
struct Relay;

impl Actor for Relay {
    type Msg = Counted<ShardMsg>;
    type State = UnboundedSender<RelayInput>;
    type Arguments = UnboundedSender<RelayInput>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        to: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(to)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        to: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _ = to.send(RelayInput::Message(message));
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        to: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _ = to.send(RelayInput::Event(event));
        Ok(())
    }
}

struct Bench {
    relay: ActorRef<Counted<ShardMsg>>,
    state: ShardState,
    depth: Depth,
    heard: UnboundedReceiver<RelayInput>,
}

fn key() -> SessionKey {
    SessionKey::local(SessionName::new("s").unwrap())
}

impl Bench {
    async fn new(oracle: TestOracle) -> Self {
        Self::of(oracle.args().unwrap()).await
    }

    async fn of(args: SystemArgs) -> Self {
        let services = SupervisorActor::services(&args);
        let settings = args.settings.clone();
        let log = SupervisorActor::log(&args, SessionName::system(), services.router.bus.clone());
        let system = (args, services.clone(), log);
        // Provides the services that sessions need; its own shards stay idle.
        let _system = Actor::spawn(None, SupervisorActor, system).await.unwrap();
        let (to, heard) = unbounded_channel();
        let (relay, _) = Actor::spawn(None, Relay, to).await.unwrap();
        let depth = Depth::new(100);
        let me = Mailbox::new(relay.clone(), depth.clone());
        let args = ShardArgs {
            settings,
            sweeps_from: Duration::ZERO,
            services,
            depth,
        };
        let depth = args.depth.clone();
        let state = ShardState::new(me, args);
        Self {
            relay,
            state,
            depth,
            heard,
        }
    }

    async fn hear(&mut self, heard: RelayInput) {
        let relay = self.relay.clone();
        match heard {
            RelayInput::Message(message) => {
                let heard = ShardActor.handle(relay, message, &mut self.state).await;
                heard.unwrap();
            }
            RelayInput::Event(event) => {
                let state = &mut self.state;
                let heard = ShardActor.handle_supervisor_evt(relay, event, state).await;
                heard.unwrap();
            }
        }
    }

    async fn say(&mut self, message: ShardMsg) {
        let counted = self.depth.count();
        let message = crate::actor::mailbox::counted(message, counted);
        self.hear(RelayInput::Message(message)).await;
    }

    async fn until(&mut self, there: impl Fn(Option<&Slot>) -> bool) {
        while !there(self.state.slots.get(&key())) {
            self.next().await;
        }
    }

    async fn next(&mut self) {
        let patience = Duration::from_secs(24 * 3_600);
        let heard = tokio::time::timeout(patience, self.heard.recv());
        let heard = heard.await.unwrap().unwrap();
        self.hear(heard).await;
    }

    async fn submit(&mut self, text: &str) -> oneshot::Receiver<Acknowledged> {
        self.command(Command::Submit(Submission::new(text))).await
    }

    async fn command(&mut self, command: Command) -> oneshot::Receiver<Acknowledged> {
        let (reply, answer) = oneshot::channel();
        let message = ShardMsg::Ask {
            key: key(),
            request: Box::new(SessionMsg::Command(CommandRequest {
                opening: Box::default(),
                origin: Origin::current(),
                order: command.into(),
                reply: reply.into(),
            })),
        };
        self.say(message).await;
        answer
    }

    async fn park(&mut self) -> oneshot::Receiver<()> {
        let (done, parked) = oneshot::channel();
        let done = done.into();
        self.say(ShardMsg::Park { done }).await;
        parked
    }

    /// Marks the session as asked to leave, without asking it.
    fn mark_asked_to_leave(&mut self) -> ActorId {
        let gone = self.state.ending(&key(), None);
        gone.unwrap().get_id()
    }

    fn activation(&self) -> Option<&Activation> {
        match self.slot()? {
            Slot::Live(Live { start, .. }) | Slot::BackingOff { start, .. } => {
                Some(&start.activation)
            }
        }
    }

    fn live(&self) -> Option<&Live> {
        self.slot().and_then(Slot::live)
    }

    fn ending(&self) -> Option<&Option<Activation>> {
        self.live()?
            .ending
            .as_ref()
            .map(|ending| &ending.killed_for)
    }

    fn is_quarantined(&self) -> bool {
        self.state.ledger.quarantined(&key()).is_some()
    }

    fn slot(&self) -> Option<&Slot> {
        self.state.slots.get(&key())
    }
}

fn resting(slot: Option<&Slot>) -> bool {
    matches!(slot, Some(Slot::BackingOff { .. }))
}

/// A session that crashes a number of times, with long pauses before its restarts.
async fn crashing(times: u32) -> Bench {
    let panics = Panics::times(times);
    let oracle = TestOracle::new(Scripted::new().reply(DONE));
    let oracle = oracle
        .policy(move |policy| policy.turn = Arc::new(PanickingPolicy(panics)))
        .settings(|settings| settings.restart_pause = Duration::from_secs(3_600));
    Bench::new(oracle).await
}

#[tokio::test(start_paused = true)]
async fn stale_back_off_timer_does_not_end_a_later_pause() {
    let mut bench = crashing(2).await;
    let _answer = bench.submit("what?").await;
    bench.until(resting).await;
    let Some(Slot::BackingOff { rest: first, .. }) = bench.slot() else {
        panic!("it crashed");
    };
    let first = *first;
    // A request ends the pause; then the session crashes again.
    let _answer = bench.submit("are you there?").await;
    bench.until(resting).await;
    let rest = first;
    bench.say(ShardMsg::Revive { key: key(), rest }).await;
    assert!(resting(bench.slot()), "set for the pause before");
    let rest = first + 1;
    bench.say(ShardMsg::Revive { key: key(), rest }).await;
    let actor = |bench: &Bench| bench.live().map(|live| live.actor.get_id());
    let before = actor(&bench);
    assert!(before.is_some(), "its own timer ends it");
    bench.say(ShardMsg::Revive { key: key(), rest }).await;
    assert_eq!(actor(&bench), before, "a live session is not started");
}

/// A session whose query runs until it is stopped.
async fn busy() -> Bench {
    let mut bench = Bench::new(TestOracle::new(Scripted::new().stall("Half an"))).await;
    let answer = bench.submit("what?").await;
    bench.until(live).await;
    answer.await.unwrap().unwrap();
    while bench.state.services.meter.running() == 0 {
        bench.next().await;
    }
    bench
}

fn live(slot: Option<&Slot>) -> bool {
    let live = slot.and_then(Slot::live);
    live.is_some_and(|live| live.ending.is_none())
}

#[tokio::test(start_paused = true)]
async fn backing_off_session_is_not_revived_after_shutdown() {
    let mut bench = crashing(1).await;
    let _answer = bench.submit("what?").await;
    bench.until(resting).await;
    let parked = bench.park().await;
    assert!(bench.slot().is_none());
    parked.await.unwrap();
    bench
        .say(ShardMsg::Revive {
            key: key(),
            rest: 1,
        })
        .await;
    let refused = bench.submit("and?").await;
    assert!(bench.slot().is_none() && refused.await.is_err());
    assert_eq!(bench.state.services.meter.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn backing_off_or_quarantined_session_is_handed_over_at_once() {
    for anyway in [false, true] {
        let mut rests = crashing(1).await;
        let _answer = rests.submit("what?").await;
        rests.until(resting).await;
        let mut aside = busy().await;
        aside.state.quarantine(key(), "unreadable".into());
        for bench in [&mut rests, &mut aside] {
            let (left, heard) = oneshot::channel();
            let (key, gone) = (key(), Some(left.into()));
            bench.say(ShardMsg::Leave { key, anyway, gone }).await;
            assert_eq!(heard.await, Ok(()));
            assert!(bench.slot().is_none());
            assert_eq!(bench.state.services.meter.running(), 0);
            assert!(!bench.is_quarantined());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_a_starting_session_to_record_its_requests() {
    let mut bench = Bench::new(TestOracle::new(Scripted::new().stall("Half an"))).await;
    let answer = bench.submit("what?").await;
    let mut parked = bench.park().await;
    assert!(parked.try_recv().is_err(), "it has not left yet");
    bench.until(|slot| slot.is_none()).await;
    parked.await.unwrap();
    assert!(
        answer.await.unwrap().is_ok(),
        "what it had been handed is durable"
    );
}

#[tokio::test(start_paused = true)]
async fn shutdown_asks_a_staying_session_again() {
    let mut bench = busy().await;
    let actor = bench.mark_asked_to_leave();
    let mut parked = bench.park().await;
    bench.say(ShardMsg::Stays { key: key(), actor }).await;
    assert!(bench.ending().is_some());
    assert!(parked.try_recv().is_err(), "it has not left yet");
    bench.until(|slot| slot.is_none()).await;
    parked.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn messages_during_passivation_are_queued_up_to_a_bound() {
    let mut bench = busy().await;
    let actor = bench.mark_asked_to_leave();
    let waits = bench.command(Command::Cancel { query: None }).await;
    let other = bench.relay.get_id();
    bench
        .say(ShardMsg::Stays {
            key: key(),
            actor: other,
        })
        .await;
    assert!(bench.ending().is_some(), "it is not it");
    let mut waiting = Vec::new();
    for _ in 1..WAITING {
        waiting.push(bench.command(Command::Pause).await);
    }
    let refused = bench.submit("one too many").await.await.unwrap();
    let full = Refusal::InboxFull { waiting: WAITING };
    assert_eq!(refused.unwrap_err(), full.into());
    bench.say(ShardMsg::Stays { key: key(), actor }).await;
    assert!(live(bench.slot()));
    assert!(waits.await.unwrap().is_ok());
    for waited in waiting {
        assert!(waited.await.unwrap().is_ok());
    }
    bench.say(ShardMsg::Stays { key: key(), actor }).await;
    assert!(live(bench.slot()), "who lives stays");
}

#[tokio::test(start_paused = true)]
async fn queue_of_a_session_stuck_in_its_journal_is_bounded() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = TestOracle::new(Scripted::new().stall("Half an"));
    let mut bench = Bench::new(oracle.journal(Arc::new(journal.clone()))).await;
    let answer = bench.submit("what?").await;
    answer.await.unwrap().unwrap();
    journal.set(Obstacle::SilentAppends);
    let hangs = bench.command(Command::Pause).await;
    while journal.hits() == 0 {
        tokio::task::yield_now().await;
    }
    let mut waiting = Vec::new();
    for _ in 0..WAITING {
        waiting.push(bench.command(Command::Resume).await);
    }
    let refused = bench.submit("one too many").await.await.unwrap();
    let full = Refusal::InboxFull { waiting: WAITING };
    assert_eq!(refused.unwrap_err(), full.into());
    journal.set(Obstacle::None);
    bench.until(resting).await;
    assert!(hangs.await.is_err(), "its append was never answered");
    for waited in waiting {
        assert!(waited.await.is_err(), "it fell with its session");
    }
    let next = bench.command(Command::Resume).await;
    assert!(next.await.unwrap().is_ok(), "the next one has room");
}

#[tokio::test(start_paused = true)]
async fn abandoned_submission_is_not_run() {
    let mut bench = busy().await;
    drop(bench.submit("and?").await);
    let next = bench.submit("or?").await.await.unwrap();
    let reply = next.unwrap();
    let is_second = matches!(reply, CommandReply::Query { query, .. } if query == QueryId(2));
    assert!(is_second, "{reply:?}");
}

#[tokio::test(start_paused = true)]
async fn quarantine_survives_a_shard_restart_until_released() {
    let mut bench = busy().await;
    bench.state.quarantine(key(), "unreadable".into());
    let args = ShardArgs {
        settings: bench.state.settings.clone(),
        sweeps_from: Duration::ZERO,
        services: bench.state.services.clone(),
        depth: bench.depth.clone(),
    };
    bench.state = ShardState::new(bench.state.me.clone(), args);
    let reason = || "unreadable".to_owned();
    let refused = bench.submit("and?").await.await.unwrap().unwrap_err();
    assert_eq!(refused, Refusal::Quarantined(reason()).into());
    let released = bench.command(Command::Release).await;
    assert_eq!(bench.activation(), Some(&Activation::Again));
    assert!(released.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn session_that_ignores_a_kill_is_quarantined() {
    let limit = Duration::from_secs(900);
    let mut bench = busy().await;
    // The shard does not see the end of the actor from here on, as if it blocked its thread.
    bench.mark_asked_to_leave();
    let waits = bench.submit("and?").await;
    tokio::time::advance(limit - Duration::from_secs(1)).await;
    bench.say(ShardMsg::Sweep).await;
    assert_eq!(bench.ending(), Some(&None));
    tokio::time::advance(Duration::from_secs(1)).await;
    bench.say(ShardMsg::Sweep).await;
    let cause = RestartCause::Stall;
    let detail = "no progress for 900s".to_owned();
    let stall = Activation::Restart { cause, detail };
    assert_eq!(bench.ending(), Some(&Some(stall)));
    tokio::time::advance(limit).await;
    bench.say(ShardMsg::Sweep).await;
    let refused = waits.await.unwrap().unwrap_err();
    let reason = "it was killed but did not end within 900s".to_owned();
    assert_eq!(refused, Refusal::Quarantined(reason).into());
    assert!(bench.slot().is_none() && bench.is_quarantined());
    assert_eq!(bench.state.services.meter.running(), 0);
    // A late end has no consequences.
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    while let Ok(heard) = bench.heard.try_recv() {
        bench.hear(heard).await;
    }
    assert!(bench.slot().is_none() && bench.is_quarantined());
}

/// A session that waits for a person.
async fn asking() -> Bench {
    let script = Scripted::new().calls("May I?", [("deploy", serde_json::json!({}))]);
    let tool = TestTool::new("deploy").needs_approval();
    let mut bench = Bench::new(TestOracle::new(script).tool(tool)).await;
    let answer = bench.submit("what?").await;
    answer.await.unwrap().unwrap();
    let asks = |slot: Option<&Slot>| match slot {
        Some(Slot::Live(live)) => live.session.idle_for(0).is_some(),
        _ => false,
    };
    while !asks(bench.slot()) {
        // Not every step of the session reaches the shard.
        let heard = tokio::time::timeout(Duration::from_millis(1), bench.heard.recv()).await;
        if let Ok(Some(heard)) = heard {
            bench.hear(heard).await;
        }
    }
    assert_eq!(bench.state.services.meter.running(), 1);
    bench
}

#[tokio::test(start_paused = true)]
async fn stuck_session_awaiting_approval_is_not_charged_a_restart() {
    let mut bench = asking().await;
    bench.mark_asked_to_leave();
    tokio::time::advance(Duration::from_secs(900)).await;
    bench.say(ShardMsg::Sweep).await;
    bench.until(resting).await;
    assert_eq!(bench.activation(), Some(&Activation::Again));
}

/// A classifier that never answers.
struct Hangs;

impl QueryClassifier for Hangs {
    fn classify(&self, _: &str, _: QueryContext<'_>) -> QueryClassification {
        loop {
            std::thread::park();
        }
    }
}

/// A session that holds a message, and the answer to its caller. The clock stands still.
async fn holding() -> (Bench, oneshot::Receiver<Acknowledged>) {
    let oracle = TestOracle::new(Scripted::new().stall("Half an"));
    let mut args = oracle.args().unwrap();
    args.classifier = Arc::new(Hangs);
    let mut bench = Bench::of(args).await;
    let answer = bench.submit("what?").await;
    let state = |bench: &Bench| bench.live().unwrap().session.state();
    for _ in 0..100_000 {
        if state(&bench) == SessionState::Preparing {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(state(&bench), SessionState::Preparing);
    assert_eq!(bench.state.services.meter.running(), 1);
    (bench, answer)
}

#[tokio::test(start_paused = true)]
async fn shutdown_records_every_held_message_that_its_caller_awaits() {
    let (mut bench, left) = holding().await;
    drop(left);
    let awaited = [bench.submit("and?").await, bench.submit("or?").await];
    let parked = bench.park().await;
    bench.until(|slot| slot.is_none()).await;
    parked.await.unwrap();
    for (number, answer) in (1..).zip(awaited) {
        let reply = answer.await.unwrap().unwrap();
        let is_it = matches!(reply, CommandReply::Query { query, .. } if query == QueryId(number));
        assert!(is_it, "{number}: {reply:?}");
    }
    assert_eq!(bench.state.services.meter.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn killed_session_answers_nothing_about_a_held_message_and_counts_nothing() {
    let (mut bench, answer) = holding().await;
    bench.state.end_for(&key(), bench.state.stall());
    bench.until(resting).await;
    let services = bench.state.services.clone();
    assert!(answer.await.is_err(), "it fell with its session");
    assert_eq!(services.meter.running(), 0);
    bench.until(live).await;
    let again = bench.submit("what?").await;
    assert!(again.await.unwrap().is_ok());
    assert_eq!(services.meter.0.accepted.get(), 1, "the second one");
}

#[tokio::test(start_paused = true)]
async fn hurried_task_of_a_client_has_no_prompt() {
    let mut bench = Bench::new(TestOracle::new(Scripted::new().stall("Half an"))).await;
    bench.command(Command::Resume).await.await.unwrap().unwrap();
    let options = AnswerOptions {
        is_task: true,
        ..AnswerOptions::default()
    };
    let title = Submission {
        options: Some(Arc::new(options)),
        ..Submission::new("a title, please")
    };
    let accepted = bench.command(Command::Submit(title)).await;
    // Handled before the session learns that the task needs no preparation.
    let paused = bench.command(Command::Pause).await;
    accepted.await.unwrap().unwrap();
    paused.await.unwrap().unwrap();
    let journal = &bench.state.services.router.journal;
    let known = journal.find(key()).await.unwrap().unwrap();
    let log = journal.read(known.sid, Seq(0), 100).await.unwrap();
    let classified = log.iter().find_map(|entry| match &entry.record.fact {
        Fact::Query(QueryFact::Classified(classified)) => Some(classified),
        _ => None,
    });
    let classified = classified.unwrap();
    assert_eq!(classified.prompt, ComposedPrompt::default().summary());
    assert!(!classified.fallback, "a task has no type to find");
}
