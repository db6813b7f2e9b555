//! Sessions as children of a host's actors.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    actor::{
        AskError, Deletion, Frames, Progress,
        port::{MAX_PENDING_EVENTS, MAX_PENDING_REQUESTS, PortEvent, PortMsg},
    },
    journal::Only,
    kernel::Command,
    llm::Scripted,
    model::{Seq, Submission},
    testkit::{TestOracle, TestSession, TestSystem},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent, rpc::CallResult};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::done;

/// Forwards the events it receives and the ends of its children.
struct Host;

enum HostInput {
    PortEvent(PortEvent),
    Ended(Option<String>),
}

impl Actor for Host {
    type Msg = PortEvent;
    type State = UnboundedSender<HostInput>;
    type Arguments = UnboundedSender<HostInput>;

    async fn pre_start(
        &self,
        _: ActorRef<PortEvent>,
        told: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(told)
    }

    async fn handle(
        &self,
        _: ActorRef<PortEvent>,
        heard: PortEvent,
        told: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(told.send(HostInput::PortEvent(heard))?)
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<PortEvent>,
        event: SupervisionEvent,
        told: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorTerminated(_, _, why) = event {
            let _ = told.send(HostInput::Ended(why));
        }
        Ok(())
    }
}

struct Hosted {
    system: TestSystem,
    session: TestSession,
    host: ActorRef<PortEvent>,
    port: ActorRef<PortMsg>,
    told: UnboundedReceiver<HostInput>,
}

impl Hosted {
    async fn new(script: Scripted, after: Seq) -> Self {
        let system = TestOracle::new(script).start().await.unwrap();
        let session = system.session("s").unwrap();
        let (sender, told) = unbounded_channel();
        let (host, _) = Actor::spawn(None, Host, sender).await.unwrap();
        let port = session
            .start_under(&host, after, Frames::No, |heard| heard)
            .await;
        let (port, _) = port.unwrap();
        Self {
            system,
            session,
            host,
            port,
            told,
        }
    }

    async fn next_event(&mut self) -> (u64, String) {
        match self.told.recv().await.unwrap() {
            HostInput::PortEvent(heard) => record_of(&heard),
            HostInput::Ended(why) => panic!("it has ended: {why:?}"),
        }
    }

    async fn until_the_end(&mut self) -> Vec<u64> {
        let mut seqs = Vec::new();
        loop {
            let (seq, kind) = self.next_event().await;
            seqs.push(seq);
            if kind == "query.finished" {
                return seqs;
            }
        }
    }

    async fn end(&mut self) -> Option<String> {
        loop {
            if let HostInput::Ended(why) = self.told.recv().await.unwrap() {
                return why;
            }
        }
    }
}

fn record_of(heard: &PortEvent) -> (u64, String) {
    assert_eq!(heard.session.name.as_str(), "s");
    match &heard.progress {
        Progress::Record(record) => (record.seq.0, record.kind().to_owned()),
        _ => panic!("no text was asked for"),
    }
}

fn greeting() -> Scripted {
    Scripted::new().reply(done("Hello.")).reply(done("Again."))
}

#[tokio::test(start_paused = true)]
async fn port_answers_in_order_and_delivers_every_event_once() {
    let mut hosted = Hosted::new(greeting(), Seq(0)).await;
    let ask = |reply| PortMsg::Ask(Submission::new("how is the code?"), reply);
    let CallResult::Success(Ok(answer)) = hosted.port.call(ask, None).await.unwrap() else {
        panic!("it was not answered")
    };
    assert_eq!(answer.text, "Hello.");
    let seqs = hosted.until_the_end().await;
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());

    let submit = |reply| PortMsg::Submit(Submission::new("and now?"), reply);
    let CallResult::Success(Ok(query)) = hosted.port.call(submit, None).await.unwrap() else {
        panic!("it was not taken")
    };
    assert_eq!(query, answer.query.next());
    let more = hosted.until_the_end().await;
    assert_eq!(more[0], seqs.len() as u64 + 1, "and goes on where it was");

    let pause = |reply| PortMsg::Do(Command::Pause, reply);
    let paused = hosted.port.call(pause, None).await.unwrap();
    assert!(matches!(paused, CallResult::Success(Ok(_))));
    let mut heard = hosted.next_event().await.1;
    // It may have been passivated and reactivated first, which are events too.
    while heard == "session.passivated" || heard == "session.revived" {
        heard = hosted.next_event().await.1;
    }
    assert_eq!(heard, "control.paused");
}

#[tokio::test(start_paused = true)]
async fn stopped_port_leaves_the_session_to_the_next_port() {
    let mut hosted = Hosted::new(greeting(), Seq(0)).await;
    let question = PortMsg::Tell(Submission::new("how is the code?"));
    hosted.port.cast(question).unwrap();
    let seen = hosted.until_the_end().await;
    hosted.port.stop(Some("enough".into()));
    assert_eq!(hosted.end().await.as_deref(), Some("enough"));
    hosted.session.ask("and now?").await.unwrap();

    let after = Seq(*seen.last().unwrap());
    let next = hosted
        .session
        .start_under(&hosted.host, after, Frames::No, |heard| heard);
    next.await.unwrap();
    assert_eq!(hosted.next_event().await.0, after.0 + 1);
}

#[tokio::test(start_paused = true)]
async fn port_reports_why_its_event_stream_ended() {
    let mut hosted = Hosted::new(greeting(), Seq(0)).await;
    hosted.session.ask("how is the code?").await.unwrap();
    hosted.until_the_end().await;
    let deletion = hosted
        .system
        .oracle()
        .delete(hosted.session.key(), Only::WhenIdle)
        .await;
    let _: Deletion = deletion.unwrap();
    let why = hosted.end().await.unwrap();
    assert!(why.contains("was deleted"), "{why}");

    let Hosted {
        system, mut told, ..
    } = Hosted::new(greeting(), Seq(0)).await;
    system.shut_down(Duration::ZERO).await;
    let HostInput::Ended(Some(why)) = told.recv().await.unwrap() else {
        panic!("nothing was recorded")
    };
    assert_eq!(why, AskError::Stopped.to_string());
}

/// The host holds the events it receives, so that no more are sent.
#[tokio::test(start_paused = true)]
async fn slow_parent_catches_up_from_the_journal() {
    let script = (0..29).fold(Scripted::new(), |script, n| {
        script.reply(format!(
            "More.\n<signal type=\"need_turn\"><reason>Still have to look at {n}</reason></signal>"
        ))
    });
    let mut hosted = Hosted::new(script.reply(done("Fine.")), Seq(0)).await;
    let answer = hosted.session.ask("how is the code?").await.unwrap();
    assert_eq!(answer.turns, 30);
    let all = hosted.session.kinds().await.unwrap().len();
    assert!(all > MAX_PENDING_EVENTS + 20, "{all}");

    let mut kept = Vec::new();
    for _ in 0..MAX_PENDING_EVENTS {
        kept.push(hosted.told.recv().await.unwrap());
    }
    oracle_agent::testkit::advance_time(Duration::from_secs(60)).await;
    assert!(
        hosted.told.is_empty(),
        "no more than {MAX_PENDING_EVENTS} at a time"
    );
    kept.clear();
    let rest = hosted.until_the_end().await;
    assert_eq!(rest[0], MAX_PENDING_EVENTS as u64 + 1);
}

#[tokio::test(start_paused = true)]
async fn port_refuses_requests_beyond_its_queue() {
    let hosted = Hosted::new(greeting(), Seq(0)).await;
    let port = Arc::new(hosted.port);
    let asked = (0..3 * MAX_PENDING_REQUESTS).map(|_| {
        let port = Arc::clone(&port);
        async move {
            let pause = |reply| PortMsg::Do(Command::Pause, reply);
            port.call(pause, None).await.unwrap().unwrap()
        }
    });
    let answers = futures_util::future::join_all(asked).await;
    let refused = answers
        .iter()
        .filter(|answer| matches!(answer, Err(AskError::Busy { .. })));
    let (refused, taken) = (
        refused.count(),
        answers.iter().filter(|answer| answer.is_ok()).count(),
    );
    assert_eq!(refused + taken, 3 * MAX_PENDING_REQUESTS);
    assert!(
        refused > 0 && taken >= MAX_PENDING_REQUESTS,
        "{taken} taken, {refused} refused"
    );
}
