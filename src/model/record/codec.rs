//! Records as versioned JSON.
//!
//! **Invariant:** a record of another version or an unknown type is an error that names it, never
//! skipped or guessed.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    AgentFact, ApprovalFact, BudgetFact, ControlFact, Fact, LlmFact, QueryFact, Record,
    SessionFact, SignalFact, SupervisorFact, ToolFact, TurnFact,
};
use crate::model::{
    id::{QueryId, Turn},
    time::Timestamp,
};

/// The version that is written and read. Raise it when a fact's fields change their meaning.
pub const VERSION: u32 = 2;

/// A record cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The text is not JSON, or its payload does not fit its type.
    #[error("cannot read the record: {0}")]
    Json(#[from] serde_json::Error),
    /// Its type is unknown.
    #[error("the record type `{0}` is unknown: use a newer version of Oracle")]
    UnknownKind(String),
    /// Its version is not [`VERSION`].
    #[error(
        "the record has version {0}, but this version of Oracle reads {VERSION}: use the \
         version that wrote it"
    )]
    Version(u32),
}

#[derive(Serialize)]
struct Versioned<'a> {
    v: u32,
    #[serde(flatten)]
    record: &'a Record,
}

#[derive(Deserialize)]
struct Stored {
    v: u32,
    at: Timestamp,
    #[serde(default)]
    query: Option<QueryId>,
    #[serde(default)]
    turn: Option<Turn>,
    #[serde(rename = "type")]
    kind: String,
    payload: Value,
}

/// Encodes a record as one line of JSON.
///
/// # Errors
/// When JSON cannot represent one of its numbers, which no decided record has.
pub fn encode(record: &Record) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Versioned { v: VERSION, record })
}

/// Decodes a record.
///
/// # Errors
/// See [`DecodeError`]; a caller must not continue past an unreadable record.
pub fn decode(json: &str) -> Result<Record, DecodeError> {
    let stored: Stored = serde_json::from_str(json)?;
    if stored.v != VERSION {
        return Err(DecodeError::Version(stored.v));
    }
    Ok(Record {
        at: stored.at,
        query: stored.query,
        turn: stored.turn,
        fact: fact(stored.kind, stored.payload)?,
    })
}

fn fact(kind: String, payload: Value) -> Result<Fact, DecodeError> {
    fn read<F: DeserializeOwned + Into<Fact>>(
        kind: String,
        payload: Value,
    ) -> Result<Fact, DecodeError> {
        // `json!` would copy the payload.
        let tagged = [("type", Value::String(kind)), ("payload", payload)];
        let tagged = tagged.map(|(name, value)| (name.to_owned(), value));
        Ok(serde_json::from_value::<F>(Value::from_iter(tagged))?.into())
    }
    type Read = fn(String, Value) -> Result<Fact, DecodeError>;
    const FAMILIES: &[(&[&str], Read)] = &[
        (SessionFact::KINDS, read::<SessionFact>),
        (QueryFact::KINDS, read::<QueryFact>),
        (TurnFact::KINDS, read::<TurnFact>),
        (SignalFact::KINDS, read::<SignalFact>),
        (ToolFact::KINDS, read::<ToolFact>),
        (ApprovalFact::KINDS, read::<ApprovalFact>),
        (BudgetFact::KINDS, read::<BudgetFact>),
        (AgentFact::KINDS, read::<AgentFact>),
        (LlmFact::KINDS, read::<LlmFact>),
        (SupervisorFact::KINDS, read::<SupervisorFact>),
        (ControlFact::KINDS, read::<ControlFact>),
    ];
    let mut families = FAMILIES.iter();
    match families.find(|(kinds, _)| kinds.contains(&kind.as_str())) {
        Some((_, read)) => read(kind, payload),
        None => Err(DecodeError::UnknownKind(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        By, Limits, NanoUsd, Outcome, Usage,
        record::{Accepted, ChildCancel, ChildStart, Ending, InboxPosition, QueryFinished},
    };

    fn record(fact: impl Into<Fact>) -> Record {
        let at = Timestamp::from_millis(1_767_225_600_000);
        Record {
            at,
            query: Some(QueryId(1)),
            turn: None,
            fact: fact.into(),
        }
    }

    #[test]
    fn retired_records_are_read() {
        let doubted = r#"{"v":2,"at":"2026-01-01T00:00:00.000Z","query":1,"turn":null,"type":"query.doubted","payload":{"model":"p/m"}}"#;
        let record = decode(doubted).unwrap();
        assert!(matches!(record.fact, Fact::Query(QueryFact::Doubted(_))));
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
        let json = encode(&accepted).unwrap();
        assert_eq!(
            json,
            r#"{"v":2,"at":"2026-01-01T00:00:00.000Z","query":1,"type":"query.accepted","payload":{"text":"where?","limits":{"max_turns":5},"idempotency_key":null,"place":"back"}}"#
        );
        assert_eq!(decode(&json).unwrap(), accepted);
        let Fact::Query(QueryFact::Accepted(by_key)) = accepted.fact else {
            panic!("another fact");
        };
        let by = By::new("ci");
        let by_key = record(QueryFact::Accepted(Accepted { by, ..by_key }));
        let json = encode(&by_key).unwrap();
        assert!(json.contains(r#""place":"back","by":"ci""#), "{json}");
        assert_eq!(decode(&json).unwrap(), by_key);
        let finished = record(QueryFact::Finished(QueryFinished {
            outcome: Outcome::Failed {
                code: "context".into(),
                detail: "too long".into(),
            },
            answer: String::new(),
            turns: 2,
            usage: Usage::default(),
            cut: None,
        }));
        assert_eq!(decode(&encode(&finished).unwrap()).unwrap(), finished);
    }

    #[test]
    fn delegation_record_without_cost_budget_round_trips() {
        let old = r#"{"v":2,"at":"2026-01-01T00:00:00.000Z","query":1,"type":"delegation.started","payload":{"child":"talk.1.1","scope":"all of src","max_tokens":4000}}"#;
        let start = ChildStart {
            child: "talk.1.1".parse().unwrap(),
            scope: "all of src".into(),
            max_tokens: Some(4_000),
            max_cost: None,
            profile: None,
            tools: None,
        };
        let read = record(AgentFact::DelegationStarted(start.clone()));
        assert_eq!(decode(old).unwrap(), read);
        assert_eq!(encode(&read).unwrap(), old);
        let max_cost = Some(NanoUsd(5));
        let new = record(AgentFact::DelegationStarted(ChildStart {
            max_cost,
            ..start
        }));
        let json = encode(&new).unwrap();
        assert!(json.contains(r#""max_tokens":4000,"max_cost":5"#), "{json}");
        assert_eq!(decode(&json).unwrap(), new);
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
            let line = encode(&record(cancel.clone())).unwrap();
            assert!(line.contains(json), "{line}");
            assert_eq!(decode(&line).unwrap(), record(cancel));
        }
    }

    #[test]
    fn unknown_record_type_or_version_is_refused() {
        let line = |v: u32, kind: &str| {
            format!(r#"{{"v":{v},"at":"2026-01-01T00:00:00Z","type":"{kind}","payload":{{}}}}"#)
        };
        for (json, says) in [
            (
                line(2, "query.eaten"),
                "record type `query.eaten` is unknown",
            ),
            (
                line(9, "query.accepted"),
                "has version 9, but this version of Oracle reads 2",
            ),
            (
                line(1, "query.accepted"),
                "has version 1, but this version of Oracle reads 2",
            ),
            (line(2, "query.accepted"), "missing field `text`"),
            ("{".to_owned(), "cannot read the record"),
        ] {
            let error = decode(&json).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
