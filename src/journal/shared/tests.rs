//! The socket: the contract holds through it, and a line that breaks is told.

use std::{os::unix::fs::PermissionsExt, path::Path, sync::Arc, time::Duration};

use tokio::{
    io::AsyncWriteExt,
    net::{UnixListener, UnixStream},
    runtime::Handle,
    task::{JoinSet, block_in_place},
    time::Instant,
};

use super::{
    wire::{Hello, PROTOCOL},
    *,
};
use crate::{
    journal::{
        Append, Claim, Error, Journal, Memory, Standing, conformance,
        faulty::{Failure, Faulty, Operation, Plan},
    },
    model::{
        By, Record, Seq, SessionKey, SessionName, TenantId, Timestamp,
        command::Author,
        record::{ControlFact, Steered},
    },
};

mod deletion;
mod letters;

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

fn words(text: String) -> Arc<Record> {
    Arc::new(Record {
        at: Timestamp::from_millis(0),
        query: None,
        turn: None,
        fact: ControlFact::Steered(Steered {
            text,
            author: Author::User,
            by: By::local(),
            idempotency_key: None,
        })
        .into(),
    })
}

/// Takes a connection, and says who it is by this protocol.
async fn greets(listener: &UnixListener, protocol: u32) -> UnixStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let hello = serde_json::to_vec(&Hello { protocol, pid: 7 }).unwrap();
    let length = u32::try_from(hello.len()).unwrap();
    stream.write_all(&length.to_be_bytes()).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    stream
}

/// The far end of a journal of its own.
struct Far {
    remote: Remote,
    _server: Server,
    _folder: tempfile::TempDir,
}

/// Everything goes through the socket.
impl std::ops::Deref for Far {
    type Target = Remote;
    fn deref(&self) -> &Remote {
        &self.remote
    }
}

async fn far(journal: impl Journal) -> Far {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    let server = Server::listen(&path, Arc::new(journal)).unwrap();
    Far {
        remote: Remote::connect(&path).await.unwrap(),
        _server: server,
        _folder: folder,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_at_the_far_end_of_a_socket_keeps_the_contract() {
    // Kept to the end: the suite takes only the far ends.
    let folder = tempfile::tempdir().unwrap();
    let servers = std::sync::Mutex::new(Vec::new());
    let make = || {
        let mut servers = servers.lock().unwrap();
        let path = folder.path().join(format!("{}.sock", servers.len()));
        servers.push(Server::listen(&path, Arc::new(Memory::new())).unwrap());
        block_in_place(|| Handle::current().block_on(Remote::connect(&path)).unwrap())
    };
    conformance::check(make, 0..4).await.unwrap();
}

#[tokio::test]
async fn the_socket_is_for_its_owner_and_goes_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    std::fs::write(&path, "left by a process that died").unwrap();
    std::fs::create_dir(folder.path().join("journal.new")).unwrap();
    std::fs::write(folder.path().join("journal.new/s"), "likewise").unwrap();
    let server = Server::listen(&path, Arc::new(Memory::new())).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let remote = Remote::connect(&path).await.unwrap();
    assert_eq!(remote.pid(), std::process::id());
    drop(server);
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing is left of it"
    );
    let gone = Remote::connect(&path).await.unwrap_err();
    assert!(
        gone.to_string()
            .starts_with("nobody shares a journal there"),
        "{gone}"
    );
}

#[tokio::test]
async fn what_was_closed_has_let_go_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let kept = Arc::downgrade(&journal);
    let server = Server::listen(&path, journal).unwrap();
    let remote = Remote::connect(&path).await.unwrap();
    remote.claim(key("s")).await.unwrap();
    server.close(Instant::now() + Duration::from_secs(60)).await;
    assert_eq!(kept.strong_count(), 0);
}

#[tokio::test]
async fn a_line_that_breaks_fails_the_calls_under_way_and_all_later_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    // Says who it is, takes one call, and hangs up.
    let listener = UnixListener::bind(&path).unwrap();
    let dies = async {
        let stream = greets(&listener, PROTOCOL).await;
        stream.readable().await.unwrap();
    };
    let asks = async {
        let remote = Remote::connect(&path).await.unwrap();
        let under_way = remote.find(key("s")).await.unwrap_err();
        let later = remote.claim(key("s")).await.unwrap_err();
        (under_way, later)
    };
    let ((), (under_way, later)) = tokio::join!(dies, asks);
    let gone = Error::Unavailable("process 7, which has it open, is gone".into());
    assert_eq!((under_way, later), (gone.clone(), gone));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_answer_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    // Says who it is, and is stopped.
    let listener = UnixListener::bind(&path).unwrap();
    let (_stream, remote) = tokio::join!(greets(&listener, PROTOCOL), Remote::connect(&path));
    let remote = remote.unwrap();
    let asked = Instant::now();
    let silent = remote.find(key("s")).await.unwrap_err();
    assert!(asked.elapsed() < Duration::from_secs(30));
    assert_eq!(
        silent.to_string(),
        "the journal is not available: process 7, which has it open, did not answer within 20s: if it is \
         stopped, let it go on (`kill -CONT 7`), else end it, and try again"
    );
    assert_eq!(remote.waiting(), 0);
}

#[tokio::test]
async fn another_protocol_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (_stream, refused) = tokio::join!(greets(&listener, 99), Remote::connect(&path));
    let said = format!(
        "process 7 shares its journal by protocol 99, this program speaks {PROTOCOL}: end it, or use the \
         same version"
    );
    assert_eq!(refused.unwrap_err().to_string(), said);
}

#[tokio::test(start_paused = true)]
async fn who_listens_and_says_nothing_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let silent = Remote::connect(&path).await.unwrap_err();
    assert_eq!(
        silent.to_string(),
        "whoever listens there did not answer within 5s"
    );
}

#[tokio::test]
async fn large_records_travel_in_pages() {
    let far = far(Memory::new()).await;
    let claim = far.claim(key("s")).await.unwrap();
    let records: Vec<_> = (0..9).map(|_| words("x".repeat(1 << 20))).collect();
    let append = Append {
        sid: claim.sid,
        epoch: claim.epoch,
        after: Seq(0),
        records: records.clone(),
        leaves: Standing::Busy,
    };
    assert_eq!(far.append(append).await, Ok(Seq(9)));
    let all = far.read(claim.sid, Seq(0), 100).await.unwrap();
    assert_eq!(all.len(), 9);
    assert!(
        all.iter()
            .zip(&records)
            .all(|(entry, sent)| entry.record == *sent)
    );
    let some = far.read(claim.sid, Seq(2), 6).await.unwrap();
    assert_eq!(
        some.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(),
        [3, 4, 5, 6, 7, 8]
    );
}

#[tokio::test]
async fn the_journals_own_errors_arrive_as_they_are() {
    let plan = Plan::new().fail(Operation::List, 1, Failure::NotDone);
    let far = far(Faulty::new(Memory::new(), plan)).await;
    let failed = far.list(TenantId::local(), None, 3).await.unwrap_err();
    assert_eq!(
        failed,
        Error::Unavailable("list number 1 fails by plan".into())
    );
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_nothing_behind() {
    let far = far(Memory::new()).await;
    for _ in 0..3 {
        let given_up = far.find(key("s"));
        let at_once = tokio::time::timeout(Duration::ZERO, given_up).await;
        assert!(at_once.is_err() || at_once.unwrap().is_ok());
    }
    assert_eq!(far.find(key("s")).await, Ok(None));
    assert_eq!(far.waiting(), 0);
}

async fn open(folder: &Path) -> Shared {
    Shared::open(folder, |why| panic!("{why}")).await.unwrap()
}

fn one(claim: Claim, after: u64, text: &str) -> Append {
    Append {
        sid: claim.sid,
        epoch: claim.epoch,
        after: Seq(after),
        records: vec![words(text.to_owned())],
        leaves: Standing::Resting,
    }
}

#[tokio::test]
async fn the_second_to_open_a_directory_uses_the_firsts_journal_and_inherits_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).await;
    let second = open(folder.path()).await;
    assert_eq!(
        (first.owner(), second.owner()),
        (None, Some(std::process::id()))
    );
    let claim = second.claim(key("s")).await.unwrap();
    second
        .append(one(claim, 0, "through the first"))
        .await
        .unwrap();
    let known = first.find(key("s")).await.unwrap().unwrap();
    assert_eq!((known.sid, known.last), (claim.sid, Seq(1)));
    drop(first);
    second.append(one(claim, 1, "on its own")).await.unwrap();
    assert_eq!(second.owner(), None);
    let third = open(folder.path()).await;
    let log = third.read(claim.sid, Seq(0), 10).await.unwrap();
    assert_eq!(log.len(), 2);
}

#[tokio::test]
async fn what_is_closed_leaves_a_tidy_directory_and_refuses_calls() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (open(folder.path()).await, open(folder.path()).await);
    let claim = second.claim(key("s")).await.unwrap();
    first.close().await;
    let closed = first.find(key("s")).await;
    assert_eq!(closed, Err(Error::Unavailable("it was closed".into())));
    second.append(one(claim, 0, "on its own")).await.unwrap();
    second.close().await;
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["guests", "journal.db", "lock"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_journal_changes_hands_nothing_is_lost_or_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let mut owner = Some(open(folder.path()).await);
    let users = [open(folder.path()).await, open(folder.path()).await];
    let mut writers = JoinSet::new();
    for (user, name) in users.into_iter().zip(["a", "b"]) {
        writers.spawn(async move {
            let claim = user.claim(key(name)).await.unwrap();
            for number in 0..300 {
                let append = one(claim, number, &number.to_string());
                assert_eq!(user.append(append).await, Ok(Seq(number + 1)));
            }
            (user, claim)
        });
    }
    let known = || async {
        let found = owner.as_ref().unwrap().find(key("a")).await.unwrap();
        found.map_or(0, |known| known.last.0)
    };
    while known().await < 20 {
        tokio::task::yield_now().await;
    }
    drop(owner.take());
    let users = writers.join_all().await;
    assert!(
        users.iter().any(|(user, _)| user.owner().is_none()),
        "one of the two has it"
    );
    for (user, claim) in users {
        let log = user.read(claim.sid, Seq(0), 1_000).await.unwrap();
        let said: Vec<_> = log.iter().map(|entry| entry.record.clone()).collect();
        let expected: Vec<_> = (0..300).map(|number| words(number.to_string())).collect();
        assert_eq!(said, expected);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_directory_with_a_long_path_is_shared_too() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(120)).join("e".repeat(120));
    let first = open(&deep).await;
    let second = open(&deep).await;
    assert_eq!(
        (first.owner(), second.owner()),
        (None, Some(std::process::id()))
    );
}

#[tokio::test]
async fn a_socket_that_cannot_be_made_is_named() {
    let path = Path::new("/nowhere/at/all/journal.sock");
    let error = Server::listen(path, Arc::new(Memory::new())).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("the journal cannot be shared on `/nowhere"),
        "{text}"
    );
}
