//! Records for the checks.

use std::sync::Arc;

use crate::model::{
    By, Limits, Outcome, ProfileName, QueryId, Record, SessionKey, SessionName, Timestamp, Turn,
    Usage,
    command::Author,
    record::{
        Accepted, BudgetFact, ControlFact, Fact, InboxPosition, IterationWarning, Opened, Parent,
        QueryFact, QueryFinished, SessionFact, Steered,
    },
};

pub(super) fn numbered(number: u64) -> Arc<Record> {
    steered(format!("words {number}"))
}

pub(super) fn all_numbered(numbers: &[u64]) -> Vec<Arc<Record>> {
    numbers.iter().copied().map(numbered).collect()
}

pub(super) fn steered(text: String) -> Arc<Record> {
    record(ControlFact::Steered(Steered {
        text,
        author: Author::User,
        by: By::local(),
        idempotency_key: None,
    }))
}

fn accepted(text: &str) -> Accepted {
    Accepted {
        text: text.to_owned(),
        limits: Limits::turns(5),
        idempotency_key: None,
        continues: None,
        place: InboxPosition::Back,
        by: By::default(),
        options: None,
    }
}

/// A question, a record without text, and the answer.
pub(super) fn talk(question: &str, answer: &str) -> Vec<Arc<Record>> {
    let finished = QueryFinished {
        outcome: Outcome::Answered,
        answer: answer.to_owned(),
        turns: 1,
        usage: Usage::default(),
        cut: None,
        unverified: false,
    };
    vec![
        record(QueryFact::Accepted(accepted(question))),
        record(ControlFact::Paused(By::local().into())),
        record(QueryFact::Finished(finished)),
    ]
}

pub(super) fn opened(key: &SessionKey, parent: Option<&str>) -> Result<Arc<Record>, String> {
    let parent = parent.map(SessionName::new).transpose();
    let parent = parent.map_err(|error| error.to_string())?;
    let opened = Opened {
        key: key.clone(),
        profile: ProfileName::oracle(),
        project: None,
        parent: parent.map(|session| Parent {
            session,
            query: QueryId(1),
            depth: 1,
            tools: None,
        }),
    };
    Ok(record(SessionFact::Opened(opened)))
}

/// Values that an encoding could lose: absent fields, empty and large texts, every kind of
/// character, numbers without a short decimal, times before 1970.
pub(super) fn awkward(key: &SessionKey) -> Result<Vec<Arc<Record>>, String> {
    let accepted = Accepted {
        limits: Limits {
            max_turns: 100,
            max_tokens: Some(i64::MAX as u64),
            max_cost: None,
        },
        idempotency_key: Some(String::new()),
        continues: Some(QueryId(u32::MAX)),
        place: InboxPosition::Front,
        ..accepted("\0 \u{1} \" \\ \n \r\n \u{7f} \u{2028} é 漢 \u{1f600} \u{fffd}")
    };
    let warning = IterationWarning {
        turn: 1,
        max_turns: 3,
        percentage: 100.0 / 3.0,
        remaining: 2,
    };
    let paused = ControlFact::Paused(By::local().into());
    let early = Record::new(Timestamp::from_millis(-1), None, None, paused);
    Ok(vec![
        opened(key, None)?,
        record(QueryFact::Accepted(accepted)),
        record(BudgetFact::IterationWarning(warning)),
        steered(String::new()),
        steered("0123456789abcdef".repeat(16 * 1024)),
        Arc::new(early),
    ])
}

fn record(fact: impl Into<Fact>) -> Arc<Record> {
    let at = Timestamp::from_millis(1_767_225_600_123);
    Arc::new(Record::new(at, Some(QueryId(1)), Some(Turn(0)), fact))
}
