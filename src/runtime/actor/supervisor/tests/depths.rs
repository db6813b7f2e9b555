//! Full mailboxes: which messages are refused, which are not, and that every count returns to zero.

use futures_util::{
    TryStreamExt as _,
    future::{join, join_all},
};

use super::*;
use crate::actor::{
    QueueDepths,
    mailbox::{Depth, DepthGuard},
};

const CAPACITY: usize = 3;

/// A system with one actor of each kind and small mailboxes.
async fn small(script: Scripted) -> Parts {
    let oracle = TestOracle::new(script).settings(|settings| {
        settings.mailbox_capacity = CAPACITY;
        (settings.shards, settings.buses) = (1, 1);
    });
    let parts = parts(oracle).await;
    settled(&parts).await;
    parts
}

fn total(depths: &QueueDepths) -> usize {
    let QueueDepths {
        shards,
        buses,
        gateways,
        classifiers,
        composers,
    } = depths;
    let numbered = [shards, buses, classifiers, composers];
    let numbered = numbered.into_iter().flatten();
    numbered.chain(gateways.values()).sum()
}

async fn settled(parts: &Parts) {
    while total(&parts.oracle.depths()) > 0 {
        tokio::task::yield_now().await;
    }
}

fn fill(depth: &Depth) -> Vec<DepthGuard> {
    let waiting = (0..CAPACITY).map(|_| depth.admit().unwrap()).collect();
    assert!(depth.admit().is_err());
    waiting
}

fn session(parts: &Parts, name: &str) -> crate::actor::SessionHandle {
    let key = SessionKey::local(SessionName::new(name).unwrap());
    parts.oracle.session_by_key(key)
}

#[tokio::test(start_paused = true)]
async fn full_shard_refuses_submissions_until_it_has_capacity() {
    let parts = small(Scripted::new().reply(DONE)).await;
    // All are sent before the shard runs.
    let sessions = ["a", "b", "c", "d", "e"].map(|name| session(&parts, name));
    let submitted = sessions
        .iter()
        .map(|session| session.submit(Submission::new("look it up")));
    let submitted = join_all(submitted).await;
    let taken = |result: &Result<QueryId, AskError>| match result {
        Ok(_) => true,
        Err(AskError::Busy { waiting, .. }) => {
            assert_eq!(*waiting, CAPACITY);
            false
        }
        Err(error) => panic!("{error}"),
    };
    let submitted: Vec<bool> = submitted.iter().map(taken).collect();
    assert_eq!(submitted, [true, true, true, false, false]);
    settled(&parts).await;
    assert_eq!(
        sessions[3].events(Seq(0)).await.unwrap(),
        [],
        "not recorded"
    );
    let answer = ask(&parts.oracle, "d").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Answered);

    settled(&parts).await;
    let views = join_all(sessions[..4].iter().map(|session| session.view())).await;
    let busy = |view: &Result<_, AskError>| matches!(view, Err(AskError::Busy { .. }));
    let busy: Vec<bool> = views.iter().map(busy).collect();
    assert_eq!(busy, [false, false, false, true]);
    settled(&parts).await;
    assert!(sessions[3].view().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn mailbox_depths_are_reported_per_actor() {
    let parts = small(Scripted::new().reply(DONE)).await;
    let none = parts.oracle.depths();
    let gateways = [("scripted".to_owned(), 0)].into();
    let empty = QueueDepths {
        shards: vec![0],
        buses: vec![0],
        gateways,
        classifiers: vec![0],
        composers: vec![0],
    };
    assert_eq!(none, empty);
    let _shard = fill(&parts.services.router.shards.depth(0));
    let _bus = parts.services.router.bus.buses.depth(0).count();
    let _gateway = parts.gateways["scripted"].depth(0).count();
    let _classifier = parts.services.classifier.depth(0).count();
    let depths = parts.oracle.depths();
    assert_eq!(
        (&*depths.shards, &*depths.buses),
        (&[CAPACITY][..], &[1][..])
    );
    assert_eq!(depths.gateways["scripted"], 1);
    assert_eq!(depths.classifiers, [1]);
    assert_eq!(total(&depths), CAPACITY + 3);
}

#[tokio::test(start_paused = true)]
async fn model_call_to_a_full_gateway_is_retried() {
    let script = Scripted::new().reply(DONE);
    let parts = small(script.clone()).await;
    let full = fill(&parts.gateways["scripted"].depth(0));
    let room = async {
        while !retried(&parts).await {
            tokio::task::yield_now().await;
        }
        assert_eq!(script.requests().len(), 0, "nothing was sent");
        drop(full);
    };
    let (answer, ()) = join(ask(&parts.oracle, "s"), room).await;
    assert_eq!(answer.unwrap().outcome, Outcome::Answered);
    settled(&parts).await;
}

async fn retried(parts: &Parts) -> bool {
    let events = session(parts, "s").events(Seq(0)).await.unwrap();
    let fault = |event: &crate::model::Event| event.payload["fault"]["code"] == "queue_full";
    events
        .iter()
        .any(|event| event.kind == "llm.retried" && fault(event))
}

#[tokio::test(start_paused = true)]
async fn full_bus_drops_text_but_no_records() {
    use crate::actor::Progress;

    for (name, room) in [("room", true), ("full", false)] {
        let parts = small(Scripted::new().reply(DONE)).await;
        let full = (!room).then(|| fill(&parts.services.router.bus.buses.depth(0)));
        let asked = Submission::new("look it up");
        let mut watch = session(&parts, "s").ask(asked).await.unwrap();
        let (mut frames, mut ended) = (0, false);
        while let Some(progress) = watch.try_next().await.unwrap() {
            match progress {
                Progress::Frame(_) => frames += 1,
                Progress::Record(record) => ended |= record.kind() == "query.finished",
                Progress::Call(_) => {}
            }
        }
        assert_eq!((frames > 0, ended), (room, true), "{name}");
        drop(full);
        settled(&parts).await;
    }
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_crashed_actor_leave_its_depth() {
    let parts = small(Scripted::new().reply(DONE)).await;
    let sessions = ["a", "b", "c"].map(|name| session(&parts, name));
    let submitted = sessions
        .iter()
        .map(|session| session.submit(Submission::new("look it up")));
    let killed = async {
        assert_eq!(parts.oracle.depths().shards, [CAPACITY]);
        kill(&parts.services.router.shards);
    };
    let (submitted, ()) = join(join_all(submitted), killed).await;
    assert!(
        submitted
            .iter()
            .all(|one| matches!(one, Err(AskError::Stopped)))
    );
    settled(&parts).await;
    assert_eq!(
        ask(&parts.oracle, "a").await.unwrap().outcome,
        Outcome::Answered
    );
}
