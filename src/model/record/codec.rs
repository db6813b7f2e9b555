//! Records as JSON, with versions and upcasters.
//!
//! **Invariant:** what an older Oracle wrote is either read as what it meant or refused by name;
//! it is never skipped and never guessed.

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

/// The version that this Oracle writes. Raise it when a fact's fields change their meaning, and
/// add an [`Upcaster`] that turns the old payload into the new one.
pub const VERSION: u32 = 2;

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The bytes are not the JSON of a record of a known type.
    #[error("the record is not readable: {0}")]
    Json(#[from] serde_json::Error),
    /// A type that this Oracle does not know; a newer one may.
    #[error("the record type `{kind}` is unknown; was it written by a newer version?")]
    UnknownKind {
        /// The type found.
        kind: String,
    },
    /// A version later than [`VERSION`].
    #[error("the record has version {found}, this program reads up to {VERSION}: use a newer one")]
    Newer {
        /// The version found.
        found: u32,
    },
}

/// Turns the payload of one type from version `from` into that of `from + 1`.
#[derive(Debug, Clone, Copy)]
pub struct Upcaster {
    /// The record type.
    pub kind: &'static str,
    /// The version it reads.
    pub from: u32,
    /// The change.
    pub change: fn(Value) -> Value,
}

/// All changes so far, oldest first.
///
/// 1 → 2: what people did says who did it.
const UPCASTERS: &[Upcaster] = &[
    by_unknown("control.paused"),
    by_unknown("control.resumed"),
    by_unknown("control.cancelled"),
    by_unknown("control.finished"),
    by_unknown("control.steered"),
    by_unknown("control.budget_set"),
];

const fn by_unknown(kind: &'static str) -> Upcaster {
    Upcaster {
        kind,
        from: 1,
        change: |mut payload| {
            if let Value::Object(fields) = &mut payload {
                fields.insert("by".to_owned(), "unknown".into());
            }
            payload
        },
    }
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

/// A record as one line of JSON.
///
/// # Errors
/// Only if a number in it is not representable, which no record that was decided has.
pub fn encode(record: &Record) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Versioned { v: VERSION, record })
}

/// Reads a record of this version or an older one.
///
/// # Errors
/// See [`DecodeError`]; the caller stops at it (spec 10: never afresh over unreadable records).
pub fn decode(json: &str) -> Result<Record, DecodeError> {
    decode_with(json, VERSION, UPCASTERS)
}

fn decode_with(json: &str, current: u32, upcasters: &[Upcaster]) -> Result<Record, DecodeError> {
    let Stored {
        v,
        at,
        query,
        turn,
        kind,
        mut payload,
    } = serde_json::from_str(json)?;
    if v > current {
        return Err(DecodeError::Newer { found: v });
    }
    for version in v..current {
        let fits = |up: &&Upcaster| up.kind == kind && up.from == version;
        if let Some(up) = upcasters.iter().find(fits) {
            payload = (up.change)(payload);
        }
    }
    Ok(Record {
        at,
        query,
        turn,
        fact: fact(kind, payload)?,
    })
}

fn fact(kind: String, payload: Value) -> Result<Fact, DecodeError> {
    fn read<F: DeserializeOwned + Into<Fact>>(
        kind: String,
        payload: Value,
    ) -> Result<Fact, DecodeError> {
        // By hand: the macro would copy the payload.
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
    match FAMILIES
        .iter()
        .find(|(kinds, _)| kinds.contains(&kind.as_str()))
    {
        Some((_, read)) => read(kind, payload),
        None => Err(DecodeError::UnknownKind { kind }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        By, Limits, NanoUsd, Outcome, Usage,
        record::{Accepted, ChildCancel, ChildStart, Ending, Finished, Place, Steered},
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
    fn a_record_reads_back_as_it_was() {
        let accepted = record(QueryFact::Accepted(Accepted {
            text: "where?".into(),
            limits: Limits::turns(5),
            idempotency_key: None,
            continues: None,
            place: Place::Back,
        }));
        let json = encode(&accepted).unwrap();
        assert_eq!(
            json,
            r#"{"v":2,"at":"2026-01-01T00:00:00.000Z","query":1,"type":"query.accepted","payload":{"text":"where?","limits":{"max_turns":5},"idempotency_key":null,"place":"back"}}"#
        );
        assert_eq!(decode(&json).unwrap(), accepted);
        let finished = record(QueryFact::Finished(Finished {
            outcome: Outcome::Failed {
                code: "context".into(),
                detail: "too long".into(),
            },
            answer: String::new(),
            turns: 2,
            usage: Usage::default(),
        }));
        assert_eq!(decode(&encode(&finished).unwrap()).unwrap(), finished);
    }

    #[test]
    fn a_delegation_from_before_children_had_cost_budgets_reads_as_one_without() {
        let old = r#"{"v":1,"at":"2026-01-01T00:00:00.000Z","query":1,"type":"delegation.started","payload":{"child":"talk.1.1","scope":"all of src","max_tokens":4000}}"#;
        let start = ChildStart {
            child: "talk.1.1".parse().unwrap(),
            scope: "all of src".into(),
            max_tokens: Some(4_000),
            max_cost: None,
        };
        let read = record(AgentFact::DelegationStarted(start.clone()));
        assert_eq!(decode(old).unwrap(), read);
        let now = old.replacen(r#""v":1"#, r#""v":2"#, 1);
        assert_eq!(encode(&read).unwrap(), now, "and nothing new is said of it");
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
    fn how_a_query_is_to_end_reads_back_as_it_was() {
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
    fn old_payloads_go_through_every_upcaster_in_order() {
        fn renamed(mut payload: Value) -> Value {
            let text = payload["words"].take();
            serde_json::json!({ "text": text, "whose": payload["whose"].take(), "by": "me" })
        }
        fn author(mut payload: Value) -> Value {
            let (text, author) = (payload["text"].take(), payload["whose"].take());
            serde_json::json!({ "text": text, "author": author, "by": payload["by"].take() })
        }
        let steps = [
            Upcaster {
                kind: "control.steered",
                from: 1,
                change: renamed,
            },
            Upcaster {
                kind: "control.steered",
                from: 2,
                change: author,
            },
        ];
        let old = r#"{"v":1,"at":"2026-01-01T00:00:00.000Z","query":1,"type":"control.steered","payload":{"words":"hi","whose":"user"}}"#;
        let steered = Steered {
            text: "hi".into(),
            author: crate::model::command::Author::User,
            by: By::new("me"),
            idempotency_key: None,
        };
        assert_eq!(
            decode_with(old, 3, &steps).unwrap(),
            record(ControlFact::Steered(steered))
        );
    }

    #[test]
    fn what_people_did_before_it_was_said_who_reads_as_done_by_somebody_unknown() {
        let payloads = [
            ("control.paused", "{}"),
            ("control.resumed", "{}"),
            ("control.cancelled", "{}"),
            ("control.finished", "{}"),
            ("control.steered", r#"{"text":"hi","author":"user"}"#),
            ("control.budget_set", r#"{"limits":{"max_turns":5}}"#),
        ];
        for (kind, payload) in payloads {
            let old = format!(
                r#"{{"v":1,"at":"2026-01-01T00:00:00.000Z","type":"{kind}","payload":{payload}}}"#
            );
            let read = decode(&old).unwrap();
            let now: Value = serde_json::from_str(&encode(&read).unwrap()).unwrap();
            assert_eq!(
                (&now["v"], &now["payload"]["by"]),
                (&2.into(), &"unknown".into()),
                "{kind}"
            );
            assert_eq!(decode(&now.to_string()).unwrap(), read, "{kind}");
        }
        assert_eq!(UPCASTERS.len(), payloads.len());
    }

    #[test]
    fn what_cannot_be_read_is_refused_by_name() {
        let line = |v: u32, kind: &str| {
            format!(r#"{{"v":{v},"at":"2026-01-01T00:00:00Z","type":"{kind}","payload":{{}}}}"#)
        };
        for (json, says) in [
            (
                line(1, "query.eaten"),
                "record type `query.eaten` is unknown",
            ),
            (
                line(9, "query.accepted"),
                "has version 9, this program reads up to 2",
            ),
            (line(1, "query.accepted"), "missing field `text`"),
            ("{".to_owned(), "not readable"),
        ] {
            let error = decode(&json).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
