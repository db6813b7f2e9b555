//! Which process has which session, letters between them, and processes of another version.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::mpsc,
    task::JoinSet,
};
use tokio_util::{bytes::Bytes, codec::FramedWrite};

use super::{key, one, open};
use crate::{
    journal::{
        Append, Claim, Delivery, Error, Journal, LETTERS, Memory, Only, Posted, Said, Sqlite,
        Standing,
        shared::{
            Server, Shared,
            office::{Line, Office, Party},
            wire::{Call, PROTOCOL, Request, codec},
        },
    },
    model::{Epoch, Seq, Sid},
};

const WITHIN: Duration = Duration::from_secs(60);

/// Answers each letter by what is given for it, for as long as it is kept.
fn reading(shared: &Shared, answer: impl Fn(Delivery) + Send + 'static) -> JoinSet<()> {
    let mut letters = shared.letters().unwrap().receive();
    let mut reader = JoinSet::new();
    reader.spawn(async move {
        while let Some(letter) = letters.recv().await {
            answer(letter);
        }
    });
    reader
}

async fn post(from: &Shared, body: &str) -> Posted {
    let letters = from.letters().unwrap();
    let posted = letters.post(key("s"), body.into(), WITHIN).await;
    posted.unwrap()
}

#[tokio::test]
async fn letters_find_the_process_that_has_the_session_and_its_answers_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let owner = open(folder.path()).await;
    let (one, two) = (open(folder.path()).await, open(folder.path()).await);
    for (has, asks) in [(&owner, &one), (&one, &owner), (&one, &two)] {
        has.claim(key("s")).await.unwrap();
        let process = Some(std::process::id());
        let refused = asks.claim(key("s")).await;
        assert_eq!(refused, Err(Error::Elsewhere { process }));
        assert_eq!(post(has, "to myself").await, Posted::Nobody);
        let _reader = reading(has, |letter| {
            assert_eq!(letter.key, key("s"));
            let answer = [b"heard: ", &letter.body[..]].concat();
            letter.answer.send(Said::Answer(answer)).unwrap();
        });
        let answered = Posted::Answered(b"heard: hi".to_vec());
        assert_eq!(post(asks, "hi").await, answered);
        has.letters().unwrap().let_go(&key("s"));
        // It is told to the owner on the way of the next call.
        has.find(key("s")).await.unwrap();
        assert_eq!(post(asks, "hi").await, Posted::Nobody);
        let taken = asks.claim(key("s")).await.unwrap();
        assert!(taken.epoch > Epoch(1));
        asks.letters().unwrap().let_go(&key("s"));
        asks.find(key("s")).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_is_free_when_its_process_has_it_no_more_or_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let owner = open(folder.path()).await;
    let guest = open(folder.path()).await;
    guest.claim(key("s")).await.unwrap();
    let not_here = reading(&guest, |letter| letter.answer.send(Said::NotHere).unwrap());
    assert_eq!(post(&owner, "hi").await, Posted::Nobody);
    owner.claim(key("s")).await.unwrap();
    drop(not_here);
    owner.letters().unwrap().let_go(&key("s"));

    guest.claim(key("s")).await.unwrap();
    let dies = reading(&guest, drop);
    assert_eq!(
        post(&owner, "hi").await,
        Posted::Lost,
        "it may have been read"
    );
    drop(dies);
    assert!(
        owner.claim(key("s")).await.is_err(),
        "it has it all the same"
    );
    guest.close().await;
    while owner.claim(key("s")).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_does_not_answer_a_letter_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let owner = open(folder.path()).await;
    let guest = open(folder.path()).await;
    owner.claim(key("s")).await.unwrap();
    let kept = Arc::new(std::sync::Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    let _reader = reading(&owner, move |letter| keeps.lock().unwrap().push(letter));
    let letters = guest.letters().unwrap();
    let posted = letters.post(key("s"), b"hi".to_vec(), Duration::from_millis(1));
    let process = Some(std::process::id());
    assert_eq!(posted.await, Ok(Posted::Silent { process }));
}

#[tokio::test]
async fn who_has_too_many_letters_is_not_taken_for_silent() {
    let folder = tempfile::tempdir().unwrap();
    let owner = open(folder.path()).await;
    let guest = open(folder.path()).await;
    let third = open(folder.path()).await;
    for (has, asks) in [(&owner, &guest), (&guest, &owner)] {
        has.claim(key("s")).await.unwrap();
        // They arrive, and nobody reads them.
        let unread = has.letters().unwrap().receive();
        let mut waiting = JoinSet::new();
        for _ in 0..LETTERS {
            let asks = asks.clone();
            waiting.spawn(async move { post(&asks, "hi").await });
        }
        while unread.len() < LETTERS {
            tokio::task::yield_now().await;
        }
        assert_eq!(post(&third, "one more").await, Posted::Full);
        drop(unread);
        has.letters().unwrap().let_go(&key("s"));
        has.find(key("s")).await.unwrap();
        let came = waiting.join_all().await;
        assert!(came.iter().all(|came| *came == Posted::Lost), "{came:?}");
    }
}

#[tokio::test]
async fn sessions_stay_with_their_processes_when_the_journal_changes_hands() {
    let folder = tempfile::tempdir().unwrap();
    let owner = open(folder.path()).await;
    let users = [open(folder.path()).await, open(folder.path()).await];
    let busy = |claim: Claim| Append {
        leaves: Standing::Busy,
        ..one(claim, 0, "asked")
    };
    for (user, name) in users.iter().zip(["a", "b"]) {
        let claim = user.claim(key(name)).await.unwrap();
        user.append(busy(claim)).await.unwrap();
    }
    drop(owner);
    let process = Some(std::process::id());
    let elsewhere = Err(Error::Elsewhere { process });
    // At once: whoever has it has not said so yet, perhaps.
    assert_eq!(users[0].claim(key("b")).await, elsewhere);
    assert_eq!(users[1].claim(key("a")).await, elsewhere);
    let third = open(folder.path()).await;
    assert_eq!(third.claim(key("a")).await, elsewhere);
}

#[tokio::test]
async fn calls_do_not_wait_behind_letters() {
    let folder = tempfile::tempdir().unwrap();
    let owner = open(folder.path()).await;
    let guest = open(folder.path()).await;
    owner.claim(key("s")).await.unwrap();
    let unread = owner.letters().unwrap().receive();
    let mut waiting = JoinSet::new();
    for _ in 0..LETTERS {
        let guest = guest.clone();
        waiting.spawn(async move { post(&guest, "hi").await });
    }
    while unread.len() < LETTERS {
        tokio::task::yield_now().await;
    }
    guest.find(key("s")).await.unwrap();
    assert_eq!(post(&guest, "one more").await, Posted::Full);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_takes_no_answers_is_cut_off_and_what_it_had_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    let journal = Memory::new();
    let claim = journal.claim(key("large")).await.unwrap();
    let large = one(claim, 0, &"x".repeat(1 << 22));
    journal.append(large).await.unwrap();
    let office = Arc::new(Office::new(Arc::default(), Duration::ZERO));
    let _server = Server::listen_for(&path, Arc::new(journal), Arc::clone(&office)).unwrap();
    let stream = UnixStream::connect(&path).await.unwrap();
    let mut asks = FramedWrite::new(stream, codec());
    let read = Call::Read {
        sid: claim.sid,
        after: Seq(0),
        limit: 1,
    };
    let claim = Call::Claim {
        key: key("s"),
        only: Only::Always,
    };
    for (id, call) in (0..).zip([claim, read]) {
        let request = serde_json::to_vec(&Request { id, call }).unwrap();
        asks.send(Bytes::from(request)).await.unwrap();
    }
    while office.holder(&key("s")).is_none() {
        tokio::task::yield_now().await;
    }
    for _ in 0..120 {
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(office.holder(&key("s")), None);
}

/// Two processes that use a journal.
fn guests() -> (Arc<Office>, [Line; 2]) {
    let office = Arc::new(Office::new(Arc::default(), Duration::ZERO));
    let line = || office.join(None, mpsc::channel(1).0);
    let lines = [line(), line()];
    (office, lines)
}

#[tokio::test]
async fn a_call_that_outlives_its_line_leaves_nothing_to_the_process_that_is_gone() {
    let (office, [gone, there]) = guests();
    let (late, asks) = (Party::Guest(gone.number()), Party::Guest(there.number()));
    drop(gone);
    let journal = Memory::new();
    let claim = journal.claim(key("s")).await.unwrap();
    office.hold(late, [(key("s"), claim)]);
    assert_eq!(office.holder(&key("s")), None);
    let refused = office.claim(late, key("s"), Only::Always, &journal).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    let claimed = office.claim(asks, key("s"), Only::Always, &journal);
    claimed.await.unwrap();
}

#[test]
fn of_two_that_say_they_have_a_session_it_is_the_one_that_claimed_it_last() {
    let claim = |sid, epoch| Claim {
        sid: Sid(sid),
        epoch: Epoch(epoch),
        last: Seq(0),
    };
    // Claimed again by another; deleted, and made anew by another.
    for (old, new) in [((1, 3), (1, 4)), ((1, 3), (2, 1))] {
        let (old, new) = (claim(old.0, old.1), claim(new.0, new.1));
        for newer_first in [false, true] {
            let (office, [one, two]) = guests();
            let (loses, wins) = (Party::Guest(one.number()), Party::Guest(two.number()));
            let mut said = [(loses, old), (wins, new)];
            if newer_first {
                said.reverse();
            }
            for (by, claim) in said {
                office.hold(by, [(key("s"), claim)]);
            }
            assert_eq!(office.holder(&key("s")).map(|held| held.by), Some(wins));
        }
    }
}

#[tokio::test]
async fn what_is_closed_while_the_journal_changes_hands_keeps_nothing() {
    for pauses in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let owner = open(folder.path()).await;
        let user = open(folder.path()).await;
        let calls = user.clone();
        let mut calling = JoinSet::new();
        calling.spawn(async move { calls.find(key("s")).await });
        drop(owner);
        for _ in 0..pauses {
            tokio::task::yield_now().await;
        }
        user.close().await;
        let closed = Error::Unavailable("it was closed".into());
        let called = calling.join_next().await.unwrap().unwrap();
        assert!(
            called == Ok(None) || called == Err(closed.clone()),
            "{called:?}"
        );
        assert_eq!(user.claim(key("s")).await, Err(closed));
        // The directory is free.
        let next = open(folder.path()).await;
        assert_eq!(next.owner(), None);
        next.close().await;
    }
}

/// Has the directory, says that it speaks this protocol, and answers each call by this.
async fn impostor(folder: &Path, protocol: u32, answer: &'static str) -> (Sqlite, JoinSet<()>) {
    let journal = Sqlite::open(folder, Box::new(|why| panic!("{why}"))).unwrap();
    let listener = UnixListener::bind(folder.join("journal.sock")).unwrap();
    let mut served = JoinSet::new();
    served.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut frames = tokio_util::codec::Framed::new(stream, codec());
            let hello = format!(r#"{{"protocol":{protocol},"pid":7,"of":"another version"}}"#);
            frames.send(Bytes::from(hello)).await.unwrap();
            while let Some(Ok(_)) = frames.next().await {
                frames.send(Bytes::from(answer)).await.unwrap();
            }
        }
    });
    (journal, served)
}

#[tokio::test]
async fn a_directory_in_use_by_another_version_says_so_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let _impostor = impostor(folder.path(), 99, "").await;
    let refused = Shared::open(folder.path(), |why| panic!("{why}")).await;
    let said = refused.err().unwrap().to_string();
    assert!(
        said.contains("in use by process 7, which runs another version"),
        "{said}"
    );
    assert!(said.contains("use the same version"), "{said}");
}

#[tokio::test]
async fn who_sends_more_than_was_asked_for_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let answer = r#"{"answer":{"id":0,"answer":{"Ok":{"read":{"records":[
        {"v":1,"at":"2026-01-01T00:00:00.000Z","type":"control.paused","payload":{}},
        {"v":1,"at":"2026-01-01T00:00:00.000Z","type":"control.resumed","payload":{}}],"more":true}}}}}"#;
    let _impostor = impostor(folder.path(), PROTOCOL, answer).await;
    let shared = open(folder.path()).await;
    let read = shared.read(Sid(1), Seq(0), 1).await.unwrap();
    assert_eq!(
        read.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        [Seq(1)]
    );
}

#[tokio::test]
async fn a_record_of_a_kind_that_only_the_other_version_knows_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let answer = r#"{"answer":{"id":0,"answer":{"Ok":{"read":{"records":[{"v":1,
        "at":"2026-01-01T00:00:00.000Z","type":"query.dreamt","payload":{}}],"more":false}}}}}"#;
    let _impostor = impostor(folder.path(), PROTOCOL, answer).await;
    let shared = open(folder.path()).await;
    let error = shared.read(Sid(1), Seq(0), 10).await.unwrap_err();
    let Error::Unreadable { seq, why, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(seq, Seq(1));
    let named = "the record type `query.dreamt` is unknown; was it written by a newer version?";
    assert_eq!(why, named);
}
