//! A shard message by message: what a test lets it hear, and in which order.

use std::sync::Arc;

use tokio::sync::{
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    oneshot,
};

use super::{slot::Going, *};
use crate::{
    actor::{
        session::{Acknowledged, SessionMsg},
        supervisor::{SupervisorActor, SystemSettings},
        system_log::SystemLog,
    },
    journal::Memory,
    kernel::{Command, Reply},
    llm::Scripted,
    model::{SessionName, Submission, record::RestartCause},
    testkit::{Obstacle, Obstructed, Panics, Shaky, TestOracle, TestTool},
};

const DONE: &str = "Fine.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
                    <confidence>0.9</confidence></signal>";

/// What reaches a shard.
enum Heard {
    Message(Counted<ShardMsg>),
    Event(SupervisionEvent),
}

/// Stands where the shard would, and passes on what it hears.
struct Relay;

impl Actor for Relay {
    type Msg = Counted<ShardMsg>;
    type State = UnboundedSender<Heard>;
    type Arguments = UnboundedSender<Heard>;

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
        let _ = to.send(Heard::Message(message));
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        to: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let _ = to.send(Heard::Event(event));
        Ok(())
    }
}

struct Bench {
    relay: ActorRef<Counted<ShardMsg>>,
    state: ShardState,
    heard: UnboundedReceiver<Heard>,
}

fn key() -> SessionKey {
    SessionKey::local(SessionName::new("s").unwrap())
}

impl Bench {
    async fn new(oracle: TestOracle) -> Self {
        let args = oracle.args().unwrap();
        let services = SupervisorActor::services(&args);
        let SystemSettings {
            stall_limit,
            sweep,
            max_restarts,
            restart_pause,
            idle_timeout,
            max_live,
            ..
        } = args.settings;
        let gateways = SupervisorActor::gateways(&args);
        let log = SystemLog::of_system(args.clock.clone());
        let system = (args, services.clone(), Arc::clone(&gateways), log);
        // The services that sessions need; its own shards have nothing to do.
        let _system = Actor::spawn(None, SupervisorActor, system).await.unwrap();
        let (to, heard) = unbounded_channel();
        let (relay, _) = Actor::spawn(None, Relay, to).await.unwrap();
        let depth = Depth::new(100);
        let me = Mailbox::new(relay.clone(), depth.clone());
        let args = ShardArgs {
            settings: ShardSettings {
                stall_limit,
                sweep,
                sweeps_from: Duration::ZERO,
                max_restarts,
                restart_pause,
                idle_timeout,
                max_live,
            },
            ledger: services.router.ledger.clone(),
            services,
            roster: Roster::default(),
            booked: Vec::new(),
            gateways,
            depth,
        };
        let state = ShardState::new(me, args);
        Self {
            relay,
            state,
            heard,
        }
    }

    /// Lets the shard hear this.
    async fn hear(&mut self, heard: Heard) {
        let relay = self.relay.clone();
        match heard {
            Heard::Message(message) => {
                let heard = ShardActor.handle(relay, message, &mut self.state).await;
                heard.unwrap();
            }
            Heard::Event(event) => {
                let state = &mut self.state;
                let heard = ShardActor.handle_supervisor_evt(relay, event, state).await;
                heard.unwrap();
            }
        }
    }

    async fn say(&mut self, message: ShardMsg) {
        let counted = self.state.args.depth.count();
        let message = crate::actor::mailbox::counted(message, counted);
        self.hear(Heard::Message(message)).await;
    }

    /// Lets it hear what comes, until its session has such a place.
    async fn until(&mut self, there: impl Fn(Option<&Slot>) -> bool) {
        while !there(self.state.slots.get(&key())) {
            self.next().await;
        }
    }

    /// Lets it hear what comes next.
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
        let message = ShardMsg::Command {
            key: key(),
            opening: Box::default(),
            order: Box::new(command.into()),
            reply: reply.into(),
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

    /// As if it had been asked to leave, and had not heard of it yet.
    fn asked_to_leave(&mut self) -> ActorId {
        let gone = self.state.let_go_of(key(), Going::Asked);
        gone.unwrap().get_id()
    }

    /// The shard that comes after this one.
    fn replaced(&mut self, fault: Option<&str>) {
        let args = &self.state.args;
        args.roster.bereave(fault);
        let args = ShardArgs {
            settings: args.settings,
            services: args.services.clone(),
            ledger: args.ledger.clone(),
            roster: args.roster.clone(),
            booked: args.ledger.cut_off(|_| true),
            gateways: Arc::clone(&args.gateways),
            depth: args.depth.clone(),
        };
        self.state = ShardState::new(self.state.me.clone(), args);
    }

    fn activation(&self) -> Option<&Activation> {
        match self.slot()? {
            Slot::Live { start, .. } | Slot::Going { start, .. } | Slot::Resting { start, .. } => {
                Some(&start.activation)
            }
            Slot::Quarantined { .. } => None,
        }
    }

    fn slot(&self) -> Option<&Slot> {
        self.state.slots.get(&key())
    }
}

fn resting(slot: Option<&Slot>) -> bool {
    matches!(slot, Some(Slot::Resting { .. }))
}

/// A session that crashes so many times, and is brought back after an hour.
async fn crashing(times: u32) -> Bench {
    let panics = Panics::times(times);
    let oracle = TestOracle::new(Scripted::new().reply(DONE));
    let oracle = oracle
        .policy(move |policy| policy.turn = Arc::new(Shaky(panics)))
        .settings(|settings| settings.restart_pause = Duration::from_secs(3_600));
    Bench::new(oracle).await
}

#[tokio::test(start_paused = true)]
async fn a_timer_that_was_set_for_an_earlier_pause_does_not_end_a_later_one() {
    let mut bench = crashing(2).await;
    let _answer = bench.submit("what?").await;
    bench.until(resting).await;
    let Some(Slot::Resting { rest: first, .. }) = bench.slot() else {
        panic!("it crashed");
    };
    let first = *first;
    // What comes in ends the pause; and then it crashes again.
    let _answer = bench.submit("are you there?").await;
    bench.until(resting).await;
    let rest = first;
    bench.say(ShardMsg::Revive { key: key(), rest }).await;
    assert!(resting(bench.slot()), "set for the pause before");
    let rest = first + 1;
    bench.say(ShardMsg::Revive { key: key(), rest }).await;
    let Some(Slot::Live { actor, .. }) = bench.slot() else {
        panic!("its own timer ends it");
    };
    let actor = actor.get_id();
    bench.say(ShardMsg::Revive { key: key(), rest }).await;
    let now = bench.slot().and_then(Slot::actor);
    assert_eq!(now, Some(actor), "who lives is not brought to life");
}

/// A session that runs a query for as long as it is let.
async fn busy() -> Bench {
    let mut bench = Bench::new(TestOracle::new(Scripted::new().stall("Half an"))).await;
    let answer = bench.submit("what?").await;
    bench.until(live).await;
    answer.await.unwrap().unwrap();
    while bench.state.args.ledger.live() == 0 {
        bench.next().await;
    }
    bench
}

fn live(slot: Option<&Slot>) -> bool {
    matches!(slot, Some(Slot::Live { .. }))
}

#[tokio::test(start_paused = true)]
async fn who_rests_when_the_end_comes_does_not_come_back() {
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
    assert_eq!(bench.state.args.ledger.live(), 0);
    assert!(!bench.state.args.roster.is_waiting(&key()));
}

#[tokio::test(start_paused = true)]
async fn who_rests_or_is_set_aside_leaves_at_once_for_another_process() {
    for anyway in [false, true] {
        let mut rests = crashing(1).await;
        let _answer = rests.submit("what?").await;
        rests.until(resting).await;
        let mut aside = busy().await;
        aside.state.quarantine(key(), "unreadable".into());
        for bench in [&mut rests, &mut aside] {
            let key = key();
            bench.say(ShardMsg::Leave { key, anyway }).await;
            assert!(bench.slot().is_none());
            assert_eq!(bench.state.args.ledger.live(), 0);
            bench.replaced(None);
            assert!(bench.slot().is_none(), "the next shard knows of it no more");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_to_life_when_the_end_comes_leaves_in_order_first() {
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
async fn who_stays_when_the_end_comes_is_told_of_it() {
    let mut bench = busy().await;
    let actor = bench.asked_to_leave();
    let mut parked = bench.park().await;
    bench.say(ShardMsg::Stays { key: key(), actor }).await;
    assert!(matches!(bench.slot(), Some(Slot::Going { .. })));
    assert!(parked.try_recv().is_err(), "it has not left yet");
    bench.until(|slot| slot.is_none()).await;
    parked.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_comes_in_on_the_way_out_waits_up_to_a_bound_and_is_handed_to_who_stays() {
    let mut bench = busy().await;
    let actor = bench.asked_to_leave();
    let waits = bench.command(Command::Cancel { query: None }).await;
    let other = bench.relay.get_id();
    bench
        .say(ShardMsg::Stays {
            key: key(),
            actor: other,
        })
        .await;
    assert!(
        matches!(bench.slot(), Some(Slot::Going { .. })),
        "it is not it"
    );
    let mut waiting = Vec::new();
    for _ in 1..work::WAITING {
        waiting.push(bench.command(Command::Pause).await);
    }
    let refused = bench.submit("one too many").await.await.unwrap();
    let full = Refusal::InboxFull {
        waiting: work::WAITING,
    };
    assert_eq!(refused.unwrap_err(), full);
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
async fn what_waits_for_one_that_hangs_in_its_journal_has_a_bound() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
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
    for _ in 0..work::WAITING {
        waiting.push(bench.command(Command::Resume).await);
    }
    let refused = bench.submit("one too many").await.await.unwrap();
    let full = Refusal::InboxFull {
        waiting: work::WAITING,
    };
    assert_eq!(refused.unwrap_err(), full);
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
async fn a_question_that_its_asker_gave_up_is_not_asked() {
    let mut bench = busy().await;
    drop(bench.submit("and?").await);
    let next = bench.submit("or?").await.await.unwrap();
    let reply = next.unwrap();
    let is_second = matches!(reply, Reply::Query { query, .. } if query == QueryId(2));
    assert!(is_second, "{reply:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_former_actor_said_last_does_not_count() {
    let mut bench = busy().await;
    let (former, sid) = (bench.relay.get_id(), Sid(1));
    let told = |actor| ShardMsg::Running {
        sid,
        key: key(),
        actor,
        running: None,
    };
    bench.say(told(former)).await;
    assert_eq!(bench.state.args.ledger.live(), 1);
    let now = bench.slot().and_then(Slot::actor).unwrap();
    bench.say(told(now)).await;
    assert_eq!(bench.state.args.ledger.live(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_next_shard_finds_whom_the_one_before_has_left_behind() {
    let mut bench = busy().await;
    bench.replaced(None);
    assert_eq!(bench.activation(), Some(&Activation::Orphaned));
    assert_eq!(bench.state.args.ledger.live(), 0, "nobody works on it");
    bench
        .say(ShardMsg::Revive {
            key: key(),
            rest: 1,
        })
        .await;
    assert!(
        resting(bench.slot()),
        "a timer of the shard before means nothing to it"
    );
    bench.state.settle();
    assert!(bench.slot().is_none(), "the journal knows of nothing to do");
    assert!(!bench.state.args.roster.is_waiting(&key()));
}

#[tokio::test(start_paused = true)]
async fn what_was_to_be_recorded_of_a_session_is_not_lost_with_its_shard() {
    let mut bench = busy().await;
    let (cause, detail) = (RestartCause::Stall, "no progress".to_owned());
    let stall = Activation::Restart { cause, detail };
    bench.state.end_for(&key(), stall.clone());
    bench.replaced(None);
    assert_eq!(bench.activation(), Some(&stall), "killed, and not gone yet");
    assert_eq!(bench.state.args.roster.owed(), [key()]);
    bench.state.settle();
    assert_eq!(
        bench.activation(),
        Some(&stall),
        "it is owed, whatever runs"
    );
    let view = bench.submit("and?").await;
    assert!(view.await.unwrap().is_ok());
    let mut crashed = crashing(1).await;
    let _answer = crashed.submit("what?").await;
    crashed.until(resting).await;
    let before = crashed.activation().cloned();
    crashed.replaced(Some("boom"));
    assert_eq!(crashed.activation(), before.as_ref(), "in its pause");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_set_aside_stays_so_in_the_next_shard_and_its_release_counts_for_nothing() {
    let mut bench = busy().await;
    bench.state.quarantine(key(), "unreadable".into());
    bench.replaced(None);
    let reason = || "unreadable".to_owned();
    let refused = bench.submit("and?").await.await.unwrap().unwrap_err();
    assert_eq!(refused, Refusal::Quarantined { reason: reason() });
    let released = bench.command(Command::Release).await;
    assert_eq!(bench.activation(), Some(&Activation::Again));
    assert!(released.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_crashes_charges_whom_it_worked_for_and_nobody_else() {
    for (name, at_work, expected) in [
        ("for it", Some(key()), RestartCause::Crash),
        ("for nobody", None, RestartCause::ProcessDeath),
    ] {
        let mut bench = busy().await;
        bench.state.args.roster.works_for(at_work);
        bench.replaced(Some("boom"));
        let found = match bench.activation() {
            Some(Activation::Restart { cause, .. }) => *cause,
            Some(Activation::Orphaned) => RestartCause::ProcessDeath,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found, expected, "{name}");
    }
    let mut killed = busy().await;
    killed.state.args.roster.works_for(Some(key()));
    killed.replaced(None);
    assert_eq!(
        killed.activation(),
        Some(&Activation::Orphaned),
        "it was killed"
    );
}

#[tokio::test(start_paused = true)]
async fn shards_that_crash_by_themselves_in_a_row_charge_a_query_once() {
    let mut bench = busy().await;
    let mut seen = Vec::new();
    for fault in [Some("boom"), Some("boom"), Some("boom"), None, Some("boom")] {
        bench.replaced(fault);
        seen.push(bench.activation().cloned().unwrap());
        bench.state.revive(key(), 0).await.unwrap();
        while bench.state.args.ledger.live() == 0 {
            bench.next().await;
        }
    }
    let orphaned = || Activation::Orphaned;
    let expected = [
        orphaned(),
        Activation::Again,
        Activation::Again,
        // Killed, and then the first crash again.
        orphaned(),
        orphaned(),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn one_that_its_shard_cannot_even_set_aside_is_set_aside_by_the_next_one() {
    let mut bench = Bench::new(TestOracle::new(Scripted::new())).await;
    let roster = bench.state.args.roster.clone();
    let _answer = bench.submit("what?").await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        roster.works_for(Some(key()));
        bench.replaced(Some("boom"));
        seen.push(bench.activation().cloned());
        if bench.activation().is_some() {
            bench.state.revive(key(), 0).await.unwrap();
        }
    }
    let reason = "it crashed while coming to life: its shard crashed while it worked for it: boom";
    let reason = reason.to_owned();
    let quarantine = Activation::Quarantine { reason };
    assert_eq!(seen, [Some(quarantine), None, None]);
    assert!(matches!(bench.slot(), Some(Slot::Quarantined { .. })));
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_end_when_it_is_killed_is_set_aside_and_who_waits_is_told() {
    let limit = Duration::from_secs(900);
    let mut bench = busy().await;
    // Its end is not heard of from here on, as if it blocked its thread.
    bench.asked_to_leave();
    let waits = bench.submit("and?").await;
    tokio::time::advance(limit - Duration::from_secs(1)).await;
    bench.say(ShardMsg::Sweep).await;
    let why = |bench: &Bench| match bench.slot() {
        Some(Slot::Going { why, .. }) => why.clone(),
        _ => panic!("it has not ended"),
    };
    assert_eq!(why(&bench), Going::Asked);
    tokio::time::advance(Duration::from_secs(1)).await;
    bench.say(ShardMsg::Sweep).await;
    let cause = RestartCause::Stall;
    let detail = "no progress for 900s".to_owned();
    let stall = Activation::Restart { cause, detail };
    assert_eq!(why(&bench), Going::Killed(stall));
    tokio::time::advance(limit).await;
    bench.say(ShardMsg::Sweep).await;
    let refused = waits.await.unwrap().unwrap_err();
    let reason = "it was killed, and did not end within 900s".to_owned();
    assert_eq!(refused, Refusal::Quarantined { reason });
    assert!(matches!(bench.slot(), Some(Slot::Quarantined { .. })));
    assert_eq!(bench.state.args.ledger.live(), 0);
    // When it ends after all, nothing follows.
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    while let Ok(heard) = bench.heard.try_recv() {
        bench.hear(heard).await;
    }
    assert!(matches!(bench.slot(), Some(Slot::Quarantined { .. })));
}

/// A session that waits for a person.
async fn asking() -> Bench {
    let script = Scripted::new().calls("May I?", [("deploy", serde_json::json!({}))]);
    let tool = TestTool::new("deploy").needs_approval();
    let mut bench = Bench::new(TestOracle::new(script).tool(tool)).await;
    let answer = bench.submit("what?").await;
    answer.await.unwrap().unwrap();
    let asks = |slot: Option<&Slot>| match slot {
        Some(Slot::Live { pulse, .. }) => pulse.idle_for(0).is_some(),
        _ => false,
    };
    while !asks(bench.slot()) {
        // Not all that it does is heard of.
        let heard = tokio::time::timeout(Duration::from_millis(1), bench.heard.recv()).await;
        if let Ok(Some(heard)) = heard {
            bench.hear(heard).await;
        }
    }
    assert_eq!(bench.state.args.ledger.live(), 1);
    bench
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_for_a_person_and_does_not_leave_is_not_charged_for_that() {
    let mut bench = asking().await;
    bench.asked_to_leave();
    tokio::time::advance(Duration::from_secs(900)).await;
    bench.say(ShardMsg::Sweep).await;
    bench.until(resting).await;
    assert_eq!(bench.activation(), Some(&Activation::Again));
    let booked = bench.state.args.ledger.count_restart(Sid(1));
    assert_eq!(booked, Some((QueryId(1), 1)), "the first that counts");
}

#[tokio::test(start_paused = true)]
async fn who_leaves_memory_with_a_query_takes_its_restarts_along() {
    let mut bench = asking().await;
    let (ledger, query) = (bench.state.args.ledger.clone(), QueryId(1));
    assert_eq!(ledger.count_restart(Sid(1)), Some((query, 1)));
    bench.state.ask_to_leave(key(), SessionMsg::Passivate);
    bench.until(|slot| slot.is_none()).await;
    assert_eq!(ledger.live(), 0);
    let paused = bench.command(Command::Pause).await;
    paused.await.unwrap().unwrap();
    while ledger.live() == 0 {
        bench.next().await;
    }
    bench.state.end_for(&key(), bench.state.stall());
    bench.until(resting).await;
    assert_eq!(ledger.count_restart(Sid(1)), Some((query, 3)));
}

#[test]
fn refusals_count_in_a_row_and_while_the_query_does_not_get_on() {
    let mut start = Start::on_demand(Opening::default());
    let one = QueryId(1);
    let times = [(one, 0), (one, 0), (one, 1), (one, 1), (QueryId(2), 1)];
    let times = times.map(|(query, turns)| start.count_refusal(query, turns));
    assert_eq!(times, [1, 2, 1, 2, 1]);
}
