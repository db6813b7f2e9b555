//! Deletions whose answer is lost with the process that had the journal.

use futures_util::StreamExt as _;
use tokio_util::codec::FramedRead;

use super::{
    office::Office,
    wire::{Call, PROTOCOL, Request, codec},
    *,
};
use crate::journal::Sqlite;

/// Says who it is, takes one call of a deletion, and does it; ends without an answer.
async fn dies_after_deleting(listener: UnixListener, journal: Sqlite) {
    let stream = greets(&listener, PROTOCOL).await;
    let mut asked = FramedRead::new(stream, codec());
    let frame = asked.next().await.unwrap().unwrap();
    let Request { call, .. } = serde_json::from_slice(&frame).unwrap();
    let Call::Delete { sid, epoch } = call else {
        panic!("a deletion was to be asked for");
    };
    journal.delete(sid, epoch).await.unwrap();
}

#[tokio::test]
async fn a_deletion_that_was_done_before_the_owner_died_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Sqlite::open(folder.path(), Box::new(|why| panic!("{why}"))).unwrap();
    let claim = journal.claim(key("s")).await.unwrap();
    let listener = UnixListener::bind(folder.path().join("journal.sock")).unwrap();
    let deletes = async {
        let user = open(folder.path()).await;
        let deleted = user.delete(claim.sid, claim.epoch).await;
        (user, deleted)
    };
    let ((), (user, deleted)) = tokio::join!(dies_after_deleting(listener, journal), deletes);
    assert_eq!(deleted, Ok(()));
    assert_eq!((user.owner(), user.find(key("s")).await), (None, Ok(None)));
    let unknown = Error::Unknown { sid: claim.sid };
    assert_eq!(user.delete(claim.sid, claim.epoch).await, Err(unknown));
}

#[tokio::test]
async fn nobody_has_a_session_that_was_found_gone_when_it_was_to_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    let office = Arc::new(Office::new(Arc::default(), Duration::ZERO));
    let _server = Server::listen_for(&path, Arc::new(Memory::new()), office).unwrap();
    let (back, other) = (
        Remote::connect(&path).await.unwrap(),
        Remote::connect(&path).await.unwrap(),
    );
    let claim = Claim {
        sid: crate::model::Sid(99),
        epoch: crate::model::Epoch(1),
        last: Seq(0),
    };
    let held = back.call(Call::Hold(vec![(key("s"), claim)])).await;
    held.unwrap().unwrap();
    let taken = other.claim(key("s")).await;
    assert!(matches!(taken, Err(Error::Elsewhere { .. })), "{taken:?}");
    let unknown = Error::Unknown { sid: claim.sid };
    assert_eq!(back.delete(claim.sid, claim.epoch).await, Err(unknown));
    other.claim(key("s")).await.unwrap();
}
