//! Texts that an append repeats are kept once, and read wherever a reader begins.

use rusqlite::Connection;

use super::*;
use crate::model::{
    Attempt, Message, Outcome, QueryId, Role, StopReason, Turn, Usage,
    record::{Fact, QueryFact, QueryFinished, Replied, SignalPresence, TurnFact},
};

const ANSWER: &str = "The index is in the second file, behind the table that holds every key.";

fn record(fact: impl Into<Fact>) -> Arc<Record> {
    let at = Timestamp::from_millis(1_767_225_600_000);
    Arc::new(Record::new(at, Some(QueryId(1)), Some(Turn(0)), fact))
}

fn finished(answer: &str) -> Arc<Record> {
    record(QueryFact::Finished(QueryFinished {
        outcome: Outcome::Answered,
        answer: answer.into(),
        turns: 1,
        usage: Usage::default(),
        cut: None,
        unverified: false,
    }))
}

fn answered() -> Vec<Arc<Record>> {
    let replied = Replied {
        attempt: Attempt(1),
        message: Arc::new(Message::text(Role::Assistant, format!("Well. {ANSWER}"))),
        text: ANSWER.into(),
        signal: SignalPresence::Absent,
        stop: StopReason::EndTurn,
        usage: Usage::default(),
        estimated: false,
        cache_miss: None,
        cut: None,
        reports: 0,
        model: "p/m".into(),
    };
    let replied = record(TurnFact::Replied(replied));
    vec![
        steering("first"),
        replied,
        steering("between"),
        finished(ANSWER),
    ]
}

async fn appended(journal: &Sqlite) -> Claim {
    let by = journal.claim(key("a")).await.unwrap();
    let append = Append {
        records: answered(),
        ..one(by, "")
    };
    let last = journal.append(append).await.unwrap();
    Claim { last, ..by }
}

/// Changes the bodies of closed journal's records, by their numbers.
fn rewrite(directory: &Path, change: impl Fn(u64, String) -> String) {
    let connection = Connection::open(directory.join("journal.db")).unwrap();
    let mut rows = connection
        .prepare("SELECT seq, epoch, at, kind, body FROM record")
        .unwrap();
    let mut rows = rows.query(()).unwrap();
    let sql = "UPDATE record SET body = ?1, sum = ?2 WHERE seq = ?3";
    while let Some(row) = rows.next().unwrap() {
        let number = |index| row.get::<_, i64>(index).unwrap().cast_unsigned();
        let (seq, epoch) = (Seq(number(0)), Epoch(number(1)));
        let (kind, body): (String, String) = (row.get(3).unwrap(), row.get(4).unwrap());
        let body = change(seq.0, body);
        let place = crate::journal::row::Place {
            sid: Sid(1),
            seq,
            epoch,
        };
        let sum = place.sum(row.get(2).unwrap(), kind.as_bytes(), body.as_bytes());
        let seq = number(0).cast_signed();
        connection.execute(sql, (body, sum, seq)).unwrap();
    }
}

#[tokio::test]
async fn answer_is_read_wherever_a_reader_begins() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = open(&directory);
    let by = appended(&journal).await;
    let bytes = fs::read(directory.join("journal.db-wal")).unwrap();
    assert_eq!(memchr::memmem::find_iter(&bytes, ANSWER).count(), 1);
    let whole = Entry::numbered(Seq(0), answered());
    for after in 0..4 {
        for limit in 1..=4 {
            let read = journal.read(by.sid, Seq(after), limit).await.unwrap();
            let want = whole.iter().skip(after.try_into().unwrap()).take(limit);
            assert!(read.iter().eq(want), "{limit} after {after}");
        }
    }
    let found = journal
        .search(TenantId::local(), "index table".into(), 9)
        .await;
    assert_eq!(found.unwrap()[0].excerpt, ANSWER);
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
}

#[tokio::test]
async fn repetition_in_other_groups_is_recognized() {
    let fresh = Fresh::new();
    let journal = fresh.journal();
    let by = appended(&journal).await;
    for (from, to) in [(0, 4), (0, 2), (2, 4), (3, 4)] {
        let append = |records| Append {
            after: Seq(from as u64),
            records,
            ..one(by, "")
        };
        let part = answered()[from..to].to_vec();
        let answer = journal.append(append(part.clone())).await;
        assert_eq!(answer, Ok(Seq(to as u64)), "{from} to {to}");
        let mut other = part;
        other.pop();
        other.push(finished("another"));
        let answer = journal.append(append(other)).await;
        assert!(matches!(answer, Err(Error::Conflict { .. })), "{answer:?}");
    }
    assert_eq!(journal.read(by.sid, Seq(0), 9).await.unwrap().len(), 4);
}

#[tokio::test]
async fn records_of_version_2_stay_readable() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let by = appended(&open(&directory)).await;
    rewrite(&directory, |seq, _| {
        let record = &answered()[usize::try_from(seq).unwrap() - 1];
        let mut old = serde_json::to_value(record).unwrap();
        old["v"] = 2.into();
        old.to_string()
    });
    let journal = open(&directory);
    let read = journal.read(by.sid, Seq(0), 9).await.unwrap();
    assert_eq!(read, Entry::numbered(Seq(0), answered()));
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
}

#[tokio::test]
async fn record_whose_reply_does_not_have_its_text_is_named() {
    for (name, place, says) in [
        (
            "outside",
            "[2,0,6,999]",
            "the record repeats a text that is not in its reply",
        ),
        (
            "no reply",
            "[1,0,0,5]",
            "the record repeats a text that is not in its reply",
        ),
        (
            "before the log",
            "[9,0,0,5]",
            "the record repeats a text that is not in its reply",
        ),
        (
            "a reply that is damaged",
            "[2,0,0,5]",
            "its checksum does not match",
        ),
    ] {
        let fresh = Fresh::new();
        let directory = fresh.directory();
        let by = appended(&open(&directory)).await;
        let bytes = ANSWER.len();
        rewrite(&directory, |seq, body| match seq {
            4 => body.replace(&format!("[2,0,6,{bytes}]"), place),
            _ => body,
        });
        let seq = match name {
            "a reply that is damaged" => {
                damage::flip(&directory, ANSWER);
                Seq(2)
            }
            _ => Seq(4),
        };
        let journal = open(&directory);
        let (sid, why) = (by.sid, says.to_owned());
        let unreadable = Error::Unreadable { sid, seq, why };
        let read = journal.read(sid, Seq(3), 1).await;
        assert_eq!(read, Err(unreadable), "{name}");
        assert_eq!(journal.read(sid, Seq(2), 1).await.unwrap().len(), 1);
        let found = journal
            .search(TenantId::local(), "index table".into(), 9)
            .await;
        assert_eq!(found, Ok(vec![]), "{name}");
        let problems = journal.inspect().verify().unwrap();
        let problems: Vec<_> = problems
            .iter()
            .map(|problem| (problem.seq, &*problem.what))
            .collect();
        match name {
            "a reply that is damaged" => {
                let of_reply = "record 2 of session 1 cannot be read: its checksum does not match; \
                                run `oracle journal verify`";
                assert_eq!(problems, [(Some(Seq(2)), says), (Some(Seq(4)), of_reply)]);
            }
            _ => assert_eq!(problems, [(Some(Seq(4)), says)], "{name}"),
        }
    }
}
