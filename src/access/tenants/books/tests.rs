//! What is let in, what is not, and when there is room again.

use super::*;

const NOW: Duration = Duration::from_secs(100);

#[test]
fn requests_and_tokens_are_so_many_in_a_minute() {
    let mut books = Books::new(Limits {
        requests_per_minute: Some(2),
        tokens_per_minute: Some(600),
        ..Limits::default()
    });
    books.request(NOW).unwrap();
    books.request(NOW).unwrap();
    let over = books.request(NOW).unwrap_err();
    let retry_after = Duration::from_secs(30);
    assert_eq!(
        over,
        Over::Requests {
            limit: 2,
            retry_after
        }
    );
    assert_eq!(
        (over.code(), over.retry_after()),
        ("rate_limited", retry_after)
    );
    books.message(NOW).unwrap();
    books.used(NOW, 599);
    books.message(NOW).unwrap();
    books.used(NOW, 601);
    let over = books.message(NOW).unwrap_err();
    assert_eq!(over.code(), "rate_limited");
    assert!(
        over.retry_after() > Duration::from_secs(60),
        "what was too much is paid back"
    );
    books.message(NOW + over.retry_after()).unwrap();
}

#[test]
fn messages_that_are_handed_in_count_as_waiting() {
    let queued = Some(2);
    let mut books = Books::new(Limits {
        queued,
        ..Limits::default()
    });
    books.message(NOW).unwrap();
    books.message(NOW).unwrap();
    let over = books.message(NOW).unwrap_err();
    assert_eq!(over, Over::Queued { limit: 2 });
    books.handed_in();
    books.waits(0, 1);
    assert_eq!(books.message(NOW), Err(over));
    books.waits(1, 0);
    books.message(NOW).unwrap();
}

#[test]
fn queries_that_run_and_those_that_are_handed_in_are_so_many() {
    let queries = Some(2);
    let mut books = Books::new(Limits {
        queries,
        ..Limits::default()
    });
    books.message(NOW).unwrap();
    books.runs(true);
    let over = books.message(NOW).unwrap_err();
    assert_eq!(over, Over::Queries { limit: 2 });
    assert_eq!(over.code(), "too_many_queries");
    books.handed_in();
    books.message(NOW).unwrap();
    books.runs(false);
    books.message(NOW).unwrap();
}

#[test]
fn limits_change_and_what_was_used_stays_used() {
    let limits = |requests, tokens, queued, sessions| Limits {
        requests_per_minute: requests,
        tokens_per_minute: tokens,
        queued,
        sessions,
        ..Limits::default()
    };
    let mut books = Books::new(limits(Some(1), None, None, Some(9)));
    books.counted(NOW, 5);
    books.request(NOW).unwrap();
    books.message(NOW).unwrap();
    books.limit(limits(Some(1), Some(7), Some(1), Some(5)));
    assert!(books.request(NOW).is_err(), "that limit is as before");
    assert_eq!(books.message(NOW), Err(Over::Queued { limit: 1 }));
    let full = Decided::Full(Over::Sessions { limit: 5 });
    assert_eq!(books.room_for_session(NOW), full);
    books.limit(limits(Some(2), None, None, None));
    books.request(NOW).unwrap();
    books.message(NOW).unwrap();
    assert_eq!(books.room_for_session(NOW), Decided::Unlimited);
    books.limit(limits(None, None, None, Some(9)));
    assert_eq!(books.room_for_session(NOW), Decided::Count { most: 9 });
}

#[test]
fn sessions_are_counted_once_and_again_when_there_is_no_room() {
    let sessions = Some(2);
    let mut books = Books::new(Limits {
        sessions,
        ..Limits::default()
    });
    let full = Decided::Full(Over::Sessions { limit: 2 });
    let count = Decided::Count { most: 2 };
    assert_eq!(books.room_for_session(NOW), count);
    assert_eq!(books.room_meanwhile(), None, "nobody has counted yet");
    books.counted(NOW, 0);
    assert_eq!(books.room_for_session(NOW), Decided::Taken);
    assert_eq!(books.room_for_session(NOW), Decided::Taken);
    assert_eq!(books.room_for_session(NOW), full, "both are being opened");
    books.not_opened();
    assert_eq!(books.room_for_session(NOW), Decided::Taken);
    books.opened();
    books.opened();
    assert_eq!(books.room_for_session(NOW), full);
    let later = NOW + RECOUNT;
    assert_eq!(books.room_for_session(later), count);
    books.counts(later);
    books.counted(later, 1);
    assert_eq!(
        books.room_for_session(later),
        Decided::Taken,
        "one was deleted"
    );
    books.not_opened();
    let much_later = later + STALE;
    assert_eq!(books.room_for_session(much_later), count, "by sub-agents");
    let meanwhile = [(); 2].map(|()| books.room_meanwhile());
    assert_eq!(meanwhile, [Some(Decided::Taken), Some(full)]);
    let mut free = Books::new(Limits::default());
    assert_eq!(free.room_for_session(NOW), Decided::Unlimited);
}

#[test]
fn a_session_of_which_nobody_heard_counts_until_it_is_sure_what_became_of_it() {
    let sessions = Some(1);
    let mut books = Books::new(Limits {
        sessions,
        ..Limits::default()
    });
    books.counted(NOW, 0);
    assert_eq!(books.room_for_session(NOW), Decided::Taken);
    books.lost(NOW);
    let full = Decided::Full(Over::Sessions { limit: 1 });
    assert_eq!(books.room_for_session(NOW), full);
    let later = NOW + RECOUNT;
    assert_eq!(books.room_for_session(later), Decided::Count { most: 1 });
    books.counts(later);
    let sure = NOW + UNSURE;
    books.counted(sure, 0);
    assert_eq!(
        books.room_for_session(sure),
        Decided::Count { most: 1 },
        "it may have come after that count began"
    );
    assert_eq!(books.room_meanwhile(), Some(full));
    books.counts(sure);
    books.counted(sure, 0);
    assert_eq!(books.room_for_session(sure), Decided::Taken, "it never was");
}

#[test]
fn what_is_opened_while_others_are_counted_is_not_forgotten() {
    let sessions = Some(3);
    let mut books = Books::new(Limits {
        sessions,
        ..Limits::default()
    });
    books.counted(NOW, 0);
    for _ in 0..3 {
        assert_eq!(books.room_for_session(NOW), Decided::Taken);
    }
    books.opened();
    books.counts(NOW);
    books.opened();
    books.opened();
    books.counted(NOW, 1);
    let full = Decided::Full(Over::Sessions { limit: 3 });
    assert_eq!(books.room_for_session(NOW), full);
}

#[test]
fn requests_are_so_many_at_a_time() {
    let requests = Some(1);
    let mut books = Books::new(Limits {
        requests,
        ..Limits::default()
    });
    books.request(NOW).unwrap();
    let over = books.request(NOW).unwrap_err();
    assert_eq!(over, Over::AtOnce { limit: 1 });
    books.answered();
    books.request(NOW).unwrap();
}
