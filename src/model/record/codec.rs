//! Records as versioned JSON. The time and the type are not part of it; they are kept beside it.
//!
//! **Invariant:** a record of another version or an unknown type is an error that names it, never
//! skipped or guessed.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{
    AgentFact, ApprovalFact, BudgetFact, ControlFact, Fact, LlmFact, QueryFact, Record,
    SessionFact, SignalFact, SupervisorFact, ToolFact, TurnFact,
};
use crate::model::{
    id::{QueryId, Turn},
    time::Timestamp,
};

/// The version that is written. Raise it when a fact's fields change their meaning.
pub const VERSION: u32 = 3;

/// The oldest version that is read: it has the time and the type as well.
const OLDEST: u32 = 2;

/// A record cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The text is not JSON, or its payload does not fit its type.
    #[error("cannot read the record: {0}")]
    Json(#[from] serde_json::Error),
    /// Its type is unknown.
    #[error("the record type `{0}` is unknown: use a newer version of Oracle")]
    UnknownKind(String),
    /// Its version is not one of those that are read.
    #[error(
        "the record has version {0}, but this version of Oracle reads {OLDEST} to {VERSION}: use \
         the version that wrote it"
    )]
    Version(u32),
}

#[derive(Serialize, Deserialize)]
struct Body<P> {
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<QueryId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<Turn>,
    payload: P,
}

struct Payload<'a>(&'a Fact);

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_payload(serializer)
    }
}

/// Encodes a record, without its time and its type, as one line of JSON.
///
/// # Errors
/// When JSON cannot represent one of its numbers, which no decided record has.
pub fn encode(record: &Record) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Body {
        v: VERSION,
        query: record.query,
        turn: record.turn,
        payload: Payload(&record.fact),
    })
}

/// Decodes a record of this time and type.
///
/// # Errors
/// See [`DecodeError`]; a caller must not continue past an unreadable record.
pub fn decode(at: Timestamp, kind: &str, json: &str) -> Result<Record, DecodeError> {
    let body: Body<&RawValue> = serde_json::from_str(json)?;
    if !(OLDEST..=VERSION).contains(&body.v) {
        return Err(DecodeError::Version(body.v));
    }
    Ok(Record {
        at,
        query: body.query,
        turn: body.turn,
        fact: fact(kind, body.payload.get())?,
    })
}

fn fact(kind: &str, payload: &str) -> Result<Fact, DecodeError> {
    type Read = fn(&str, &str) -> Option<serde_json::Result<Fact>>;
    const FAMILIES: &[Read] = &[
        SessionFact::read,
        QueryFact::read,
        TurnFact::read,
        SignalFact::read,
        ToolFact::read,
        ApprovalFact::read,
        BudgetFact::read,
        AgentFact::read,
        LlmFact::read,
        SupervisorFact::read,
        ControlFact::read,
    ];
    let read = FAMILIES.iter().find_map(|read| read(kind, payload));
    Ok(read.ok_or_else(|| DecodeError::UnknownKind(kind.to_owned()))??)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        By, Limits, NanoUsd, Outcome, Usage,
        record::{Accepted, ChildCancel, ChildStart, Ending, InboxPosition, QueryFinished},
    };

    const AT: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    fn decode(kind: &str, json: &str) -> Result<Record, DecodeError> {
        super::decode(AT, kind, json)
    }

    fn round_trip(record: &Record) -> String {
        let json = encode(record).unwrap();
        assert_eq!(&decode(record.fact.kind(), &json).unwrap(), record);
        json
    }

    fn record(fact: impl Into<Fact>) -> Record {
        Record {
            at: AT,
            query: Some(QueryId(1)),
            turn: None,
            fact: fact.into(),
        }
    }

    fn finished(answer: &str) -> Record {
        record(QueryFact::Finished(QueryFinished {
            outcome: Outcome::Answered,
            answer: answer.into(),
            turns: 2,
            usage: Usage::default(),
            cut: None,
        }))
    }

    #[test]
    fn records_of_version_2_are_read() {
        let old = r#"{"v":2,"at":"2026-01-01T00:00:00.000Z","query":1,"turn":null,"type":"query.doubted","payload":{"model":"p/m"}}"#;
        let read = decode("query.doubted", old).unwrap();
        assert!(matches!(read.fact, Fact::Query(QueryFact::Doubted(_))));
        assert_eq!(read.at, AT);
        let old = r#"{"v":2,"at":"2026-01-01T00:00:00.000Z","query":1,"type":"query.finished","payload":{"outcome":"answered","answer":"yes","turns":2,"usage":{}}}"#;
        assert_eq!(decode("query.finished", old).unwrap(), finished("yes"));
    }

    #[test]
    fn records_round_trip() {
        let accepted = record(QueryFact::Accepted(Accepted {
            text: "where?".into(),
            limits: Limits::turns(5),
            idempotency_key: None,
            continues: None,
            place: InboxPosition::Back,
            by: By::local(),
            options: None,
        }));
        assert_eq!(
            round_trip(&accepted),
            r#"{"v":3,"query":1,"payload":{"text":"where?","limits":{"max_turns":5},"idempotency_key":null,"place":"back"}}"#
        );
        let Fact::Query(QueryFact::Accepted(by_key)) = accepted.fact else {
            panic!("another fact");
        };
        let by = By::new("ci");
        let json = round_trip(&record(QueryFact::Accepted(Accepted { by, ..by_key })));
        assert!(json.contains(r#""place":"back","by":"ci""#), "{json}");
        round_trip(&record(QueryFact::Finished(QueryFinished {
            outcome: Outcome::Failed {
                code: "context".into(),
                detail: "too long".into(),
            },
            answer: String::new(),
            turns: 2,
            usage: Usage::default(),
            cut: None,
        })));
    }

    #[test]
    fn delegation_record_without_cost_budget_round_trips() {
        let old = r#"{"v":2,"at":"2026-01-01T00:00:00.000Z","query":1,"type":"delegation.started","payload":{"child":"talk.1.1","scope":"all of src","max_tokens":4000}}"#;
        let new = r#"{"v":3,"query":1,"payload":{"child":"talk.1.1","scope":"all of src","max_tokens":4000}}"#;
        let start = ChildStart {
            child: "talk.1.1".parse().unwrap(),
            scope: "all of src".into(),
            max_tokens: Some(4_000),
            max_cost: None,
            profile: None,
            tools: None,
        };
        let read = record(AgentFact::DelegationStarted(start.clone()));
        assert_eq!(decode(read.fact.kind(), old).unwrap(), read);
        assert_eq!(round_trip(&read), new);
        let max_cost = Some(NanoUsd(5));
        let new = record(AgentFact::DelegationStarted(ChildStart {
            max_cost,
            ..start
        }));
        let json = round_trip(&new);
        assert!(json.contains(r#""max_tokens":4000,"max_cost":5"#), "{json}");
    }

    #[test]
    fn query_endings_round_trip() {
        let failed = Ending::Failed {
            code: "crash".into(),
            detail: "thrice".into(),
        };
        for (ending, json) in [
            (Ending::Cancelled, r#"{"child":"c","ending":"cancelled"}"#),
            (Ending::Finished, r#"{"child":"c","ending":"finished"}"#),
            (
                failed,
                r#"{"child":"c","ending":"failed","code":"crash","detail":"thrice"}"#,
            ),
        ] {
            let child = "c".parse().unwrap();
            let cancel = AgentFact::DelegationCancelled(ChildCancel { child, ending });
            let line = round_trip(&record(cancel));
            assert!(line.contains(json), "{line}");
        }
    }

    #[test]
    fn unknown_record_type_or_version_is_refused() {
        let line = |v: u32| format!(r#"{{"v":{v},"payload":{{}}}}"#);
        for (kind, json, says) in [
            (
                "query.eaten",
                line(3),
                "record type `query.eaten` is unknown",
            ),
            (
                "query.accepted",
                line(4),
                "has version 4, but this version of Oracle reads 2 to 3",
            ),
            (
                "query.accepted",
                line(1),
                "has version 1, but this version of Oracle reads 2 to 3",
            ),
            ("query.accepted", line(2), "missing field `text`"),
            ("query.accepted", "{".to_owned(), "cannot read the record"),
        ] {
            let error = decode(kind, &json).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
