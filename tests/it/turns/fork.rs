//! Sessions that begin as a copy of another one's records.

use std::sync::Arc;

use oracle_agent::{
    journal::{SessionStatus, StatusTracker},
    kernel::{Command, DecisionContext, Phase, Session},
    model::{
        By, Outcome, QueryId, Record, Seq, SessionKey, SessionName, Submission, Timestamp, Turn,
        record::{Fact, Forked, TurnFact},
    },
};

use super::{play::Play, script::*, steps};

fn key() -> SessionKey {
    SessionKey::local(SessionName::new("other").unwrap())
}

/// Forks after these records and returns the new session with its whole log.
fn fork(records: &[Record], query: u32, turn: Option<u32>) -> (Session, Vec<Record>) {
    let mut session = Session::new(Arc::new(policy()));
    records.iter().for_each(|record| session.evolve(record));
    let forked = Forked {
        key: key(),
        parent: SessionName::new("talk").unwrap(),
        seq: Seq(records.len() as u64),
        query: QueryId(query),
        turn: turn.map(Turn),
    };
    let now = DecisionContext::at(Timestamp::from_millis(9_000_000));
    let decision = session.forked(forked, By::new("anna"), now);
    assert!(decision.effects.is_empty(), "nobody does anything for it");
    decision
        .records
        .iter()
        .for_each(|record| session.evolve(record));
    let log = [records, &decision.records].concat();
    (session, log)
}

fn is_whole(session: &Session, log: &[Record], name: &str) {
    assert_eq!(
        (session.phase(), session.waiting()),
        (&Phase::Idle, 0),
        "{name}"
    );
    assert!(!session.is_paused() && !session.is_closed(), "{name}");
    assert_eq!(session.key(), Some(&key()), "{name}");
    let mut tracker = StatusTracker::default();
    log.iter().for_each(|record| tracker.evolve(&record.fact));
    assert_eq!(tracker.status(), SessionStatus::Idle, "{name}");
    let accepted = log.iter().filter(|record| record.accepted().is_some());
    for query in accepted.map(|record| record.query) {
        let ends = log
            .iter()
            .filter(|record| record.query == query && record.finished().is_some());
        assert_eq!(ends.count(), 1, "{name}: {query:?}");
    }
    let rested = session.resting().unwrap().to_bytes().unwrap();
    let rested = oracle_agent::kernel::IdleState::from_bytes(&rested).unwrap();
    assert_eq!(
        Session::rested(Arc::new(policy()), rested),
        *session,
        "{name}"
    );
}

fn up_to_end(log: &[Record], query: u32) -> &[Record] {
    let end = log
        .iter()
        .position(|record| record.finished().is_some() && record.query == Some(QueryId(query)));
    &log[..=end.unwrap()]
}

fn texts(session: &Session) -> Vec<String> {
    let messages = session.transcript().messages().iter();
    messages.map(|message| message.texts().collect()).collect()
}

#[test]
fn fork_cuts_an_unfinished_query_in_every_step() {
    for (name, play) in steps::each() {
        let (session, log) = fork(&play.log, 0, None);
        is_whole(&session, &log, name);
        assert_eq!(texts(&session), Vec::<String>::new(), "{name}: never asked");
        // A fork inside it keeps what was complete.
        let (session, log) = fork(&play.log, 1, Some(0));
        is_whole(&session, &log, name);
        let last = log.last().unwrap();
        assert!(
            last.finished().is_some() && last.query == Some(QueryId(1)),
            "{name}"
        );
        assert_eq!(texts(&session)[0], QUESTION, "{name}");
    }
}

#[test]
fn fork_at_the_end_of_a_query_drops_later_ones() {
    let mut play = Play::asked(policy());
    let keyed = |key: &str, text: &str| Submission {
        idempotency_key: Some(key.into()),
        ..Submission::new(text)
    };
    play.submit(keyed("2", "second")).unwrap();
    play.submit(keyed("3", "third")).unwrap();
    play.command(Command::Pause).unwrap();
    play.says(&format!("One. {}", done()));
    play.command(Command::Resume).unwrap();
    let (session, log) = fork(up_to_end(&play.log, 1), 1, None);
    is_whole(&session, &log, "the second and the third waited");
    assert_eq!(
        texts(&session),
        [QUESTION.to_owned(), format!("One. {}", done())]
    );
    // The keys are not copied, and query numbers are not reused.
    let again = Command::Submit(keyed("2", "something else"));
    let decision = session
        .decide(again, DecisionContext::at(Timestamp::from_millis(1)))
        .unwrap();
    assert_eq!(decision.records[0].query, Some(QueryId(4)));
}

#[test]
fn fork_of_a_session_that_was_closed_meanwhile_is_open() {
    let mut play = Play::asked(policy());
    play.command(Command::Close).unwrap();
    play.says(&format!("One. {}", done()));
    let (session, log) = fork(up_to_end(&play.log, 1), 1, None);
    is_whole(&session, &log, "closed");
}

#[test]
fn fork_after_a_turn_keeps_its_messages_and_usage() {
    let mut play = Play::asked(policy());
    play.says(&format!("Read a. {}", need("more to read")));
    play.says(&format!("Read b. {}", need("still more to read")));
    play.says(&format!("Good. {}", done()));
    let second = play.log.iter().position(|record| {
        matches!(record.fact, Fact::Turn(TurnFact::Started(_))) && record.turn == Some(Turn(1))
    });
    let (session, log) = fork(&play.log[..second.unwrap()], 1, Some(0));
    is_whole(&session, &log, "after the first turn");
    assert_eq!(
        texts(&session)[1..],
        [format!("Read a. {}", need("more to read"))]
    );
    let end = log.last().unwrap().finished().unwrap();
    assert_eq!((&end.outcome, end.turns), (&Outcome::Cancelled, 1));
    assert_eq!(session.usage_before(), end.usage);
}
