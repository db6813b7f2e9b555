//! After a crash every acknowledged record is there, even if the end of the log is not.

use futures_util::FutureExt as _;

use super::*;

/// Frequent checkpoints of a small log, so that a crash meets every state of it.
fn tidy(directory: &Path) -> Sqlite {
    let tuning = Tuning {
        long_log: 8,
        look_after: 3,
        ..Tuning::default()
    };
    Sqlite::open_tuned(directory, Box::new(|why| panic!("{why}")), tuning).unwrap()
}

#[tokio::test]
async fn acknowledged_records_survive_a_crash_at_any_moment() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = tidy(&directory);
    let mut ends = [
        journal.claim(key("a")).await.unwrap(),
        journal.claim(key("b")).await.unwrap(),
    ];
    let mut written = [vec![], vec![]];
    for number in 0..40_usize {
        let which = number % 2;
        let text = format!("{number} {}", "filler ".repeat(number * 20));
        ends[which] = say(&journal, ends[which], &[&text]).await;
        written[which].push(text);
        let crashed = fresh.crashed(&directory);
        let revived = open(&crashed);
        for (end, written) in ends.iter().zip(&written) {
            assert_eq!(
                texts(&revived, end.sid).await.as_ref(),
                Ok(written),
                "{number}"
            );
        }
        let again = revived.claim(key("a")).await.unwrap();
        assert!(again.epoch > ends[0].epoch, "an epoch was given twice");
        assert_eq!(revived.inspect().verify(), Ok(vec![]), "{number}");
    }
    drop(journal);
    let journal = open(&directory);
    for (end, written) in ends.iter().zip(&written) {
        assert_eq!(
            texts(&journal, end.sid).await.as_ref(),
            Ok(written),
            "closed"
        );
    }
}

/// A frame of the log: its header and a page.
const FRAME: usize = 24 + 4_096;

#[tokio::test]
async fn truncated_last_frame_loses_only_the_last_append() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = open(&directory);
    let by = journal.claim(key("a")).await.unwrap();
    let by = say(&journal, by, &["one", "two", "three"]).await;
    let crashed = fresh.crashed(&directory);
    drop(journal);
    let (path, log) = (crashed.join("journal.db"), crashed.join("journal.db-wal"));
    let (database, whole) = (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    assert_eq!(
        (whole.len() - 32) % FRAME,
        0,
        "the log has only whole frames"
    );
    // Every cut in the header and at the ends, and some within the page; all of them take long.
    let all = std::env::var("ORACLE_LONG_TESTS").is_ok_and(|value| value == "1");
    let wanted = |cut: &usize| all || *cut <= 40 || cut.is_multiple_of(101) || *cut >= FRAME - 8;
    for cut in (0..=FRAME).filter(wanted) {
        let left = &whole[..whole.len() - cut];
        fs::write(&path, &database).unwrap();
        fs::write(&log, left).unwrap();
        let journal = open(&crashed);
        let want = match cut {
            0 => &["one", "two", "three"][..],
            _ => &["one", "two"],
        };
        assert_eq!(texts(&journal, by.sid).await.unwrap(), want, "cut by {cut}");
        let again = journal.claim(key("a")).await.unwrap();
        assert_eq!(again.last, Seq(want.len() as u64), "cut by {cut}");
        say(&journal, again, &["next"]).await;
        if cut.is_multiple_of(50) {
            assert_eq!(journal.inspect().verify(), Ok(vec![]), "cut by {cut}");
        }
    }
}

#[tokio::test]
async fn dropped_append_is_atomic() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = open(&directory);
    let by = journal.claim(key("a")).await.unwrap();
    let append = Append {
        records: vec![steering("one"), steering("two")],
        ..one(by, "")
    };
    let answer = journal.append(append.clone()).now_or_never();
    assert_eq!(
        answer, None,
        "it was answered before it can have been durable"
    );
    // A repetition resolves the doubt.
    assert_eq!(journal.append(append).await, Ok(Seq(2)));
    drop(journal);
    let journal = open(&directory);
    assert_eq!(texts(&journal, by.sid).await.unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn dropping_the_last_handle_flushes_the_queue() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = open(&directory);
    let by = journal.claim(key("a")).await.unwrap();
    for number in 0..20 {
        let by = Claim {
            last: Seq(number),
            ..by
        };
        let append = journal.append(one(by, &number.to_string()));
        assert_eq!(append.now_or_never(), None, "{number}");
    }
    drop(journal);
    let journal = open(&directory);
    assert_eq!(texts(&journal, by.sid).await.unwrap().len(), 20);
}
