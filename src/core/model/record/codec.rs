//! Records as versioned JSON. The time and the type are not part of it; they are kept beside it.
//!
//! A reply's message is stored whole. A long text of it that the same append repeats, in the reply's
//! own record or in a later one such as the query's end, is stored as its place.
//!
//! **Invariant:** a record of another version or an unknown type is an error that names it, never
//! skipped or guessed.

use std::sync::Arc;

use memchr::memmem;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Fact, QueryFact, Record, SignalFact, ToolFact, TurnFact};
use crate::model::{
    id::{QueryId, Turn},
    message::{Message, Part},
    time::Timestamp,
};

/// The version that is written. Raise it when a fact's fields change their meaning.
pub const VERSION: u32 = 3;

/// The oldest version that is read: it has the time and the type as well.
const OLDEST: u32 = 2;

/// Minimum bytes of a text that is stored as a place. Searching for a shorter one saves too little.
const LONG: usize = 64;

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
    /// It repeats a text that its reply does not have.
    #[error("the record repeats a text that is not in its reply")]
    TextNotInReply,
}

/// Where a text is in a reply's message: how many records back the reply is (0 for the record
/// itself), the number of the part, and the start and the length in bytes.
type Place = (u64, usize, usize, usize);

#[derive(Debug, Serialize, Deserialize)]
struct Body<P> {
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<QueryId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<Turn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    row: Option<u8>,
    #[serde(default, rename = "text", skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
    payload: P,
}

struct Payload<'a>(&'a Fact);

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_payload(serializer)
    }
}

/// Encodes the records of one append, in order.
#[derive(Debug, Default)]
pub struct Encoder<'a> {
    reply: Option<&'a Message>,
    /// How many records back the reply is.
    back: u64,
}

impl<'a> Encoder<'a> {
    /// Encodes the next record, without its time and its type, as one line of JSON.
    ///
    /// # Errors
    /// When JSON cannot represent one of its numbers, which no decided record has.
    pub fn encode(&mut self, record: &'a Record) -> Result<String, serde_json::Error> {
        self.back += 1;
        if let Some(message) = reply(&record.fact) {
            (self.reply, self.back) = (Some(message), 0);
        }
        let place = self.place(&record.fact);
        let without = place.map(|_| with_text(record.fact.clone(), ""));
        serde_json::to_string(&Body {
            v: VERSION,
            query: record.query,
            turn: record.turn,
            row: record.row,
            place,
            payload: Payload(without.as_ref().unwrap_or(&record.fact)),
        })
    }

    fn place(&self, fact: &Fact) -> Option<Place> {
        let text = repeated(fact).filter(|text| text.len() >= LONG)?;
        let finder = memmem::Finder::new(text);
        let mut parts = self.reply?.parts.iter().map(part_text).enumerate();
        parts.find_map(|(part, whole)| {
            let start = finder.find(whole?.as_bytes())?;
            Some((self.back, part, start, text.len()))
        })
    }
}

/// A record's JSON, still without its time, its type and a text that is stored as a place.
#[derive(Debug)]
pub struct Encoded<'a>(Body<&'a RawValue>);

impl<'a> Encoded<'a> {
    /// Reads what [`Encoder::encode`] or an earlier version wrote.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn read(json: &'a str) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        let body = serde_json::from_str::<Body<_>>(json);
        // Another version may have other fields.
        let v = match &body {
            Ok(body) => Some(body.v),
            Err(_) => serde_json::from_str(json).ok().map(|Versioned { v }| v),
        };
        match v.filter(|v| !(OLDEST..=VERSION).contains(v)) {
            Some(v) => Err(DecodeError::Version(v)),
            None => Ok(Self(body?)),
        }
    }

    /// Distance, in records, to the earlier reply that holds a text of this record. `None` if no
    /// other record is needed.
    pub fn back(&self) -> Option<u64> {
        self.0.place.map(|(back, ..)| back).filter(|&back| back > 0)
    }

    /// Completes the record with its time, its type and the text in `earlier`, which is the record
    /// that [`Self::back`] asks for.
    ///
    /// # Errors
    /// See [`DecodeError`]; a caller must not continue past an unreadable record.
    pub fn decode(
        self,
        at: Timestamp,
        kind: &str,
        earlier: Option<&Record>,
    ) -> Result<Record, DecodeError> {
        let Body { query, turn, .. } = self.0;
        let read = Fact::read(kind, self.0.payload.get());
        let mut fact = read.ok_or_else(|| DecodeError::UnknownKind(kind.to_owned()))??;
        if let Some((back, part, start, length)) = self.0.place {
            let source = match back {
                0 => Some(&fact),
                _ => earlier.map(|record| &record.fact),
            };
            let message = source.and_then(reply);
            let whole = message.and_then(|message| part_text(message.parts.get(part)?));
            let text = whole.and_then(|whole| whole.get(start..start.checked_add(length)?));
            // Only a fact with such a text can take it.
            let text = text.filter(|_| repeated(&fact).is_some());
            let text = text.ok_or(DecodeError::TextNotInReply)?.to_owned();
            fact = with_text(fact, &text);
        }
        let mut record = Record::new(at, query, turn, fact);
        record.row = self.0.row;
        Ok(record)
    }
}

fn reply(fact: &Fact) -> Option<&Message> {
    match fact {
        Fact::Turn(TurnFact::Replied(replied)) => Some(&replied.message),
        _ => None,
    }
}

fn part_text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        Part::ToolCall(call) => Some(&call.arguments),
        _ => None,
    }
}

/// The text of a fact that its reply may have too.
fn repeated(fact: &Fact) -> Option<&str> {
    Some(match fact {
        Fact::Turn(TurnFact::Replied(replied)) => &replied.text,
        Fact::Signal(SignalFact::Emitted(signal)) => &signal.raw_xml,
        Fact::Signal(SignalFact::Rejected(rejection)) => &rejection.raw_xml,
        Fact::Tool(ToolFact::Requested(requested)) => &requested.call.arguments,
        Fact::Query(QueryFact::Finished(finished)) => &finished.answer,
        _ => return None,
    })
}

/// Replaces what [`repeated`] returns.
fn with_text(mut fact: Fact, text: &str) -> Fact {
    match &mut fact {
        Fact::Turn(TurnFact::Replied(replied)) => replied.text = text.into(),
        Fact::Signal(SignalFact::Emitted(signal)) => Arc::make_mut(signal).raw_xml = text.into(),
        Fact::Signal(SignalFact::Rejected(rejection)) => rejection.raw_xml = text.into(),
        Fact::Tool(ToolFact::Requested(requested)) => {
            Arc::make_mut(&mut requested.call).arguments = text.into();
        }
        Fact::Query(QueryFact::Finished(finished)) => finished.answer = text.into(),
        _ => {}
    }
    fact
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Attempt, By, CallId, Limits, NanoUsd, Outcome, Role, StopReason, ToolCall, Usage,
        record::{
            Accepted, AgentFact, ChildCancel, ChildStart, Ending, InboxPosition, QueryFinished,
            Replied, SignalPresence, ToolRequested,
        },
        signal::Rejection,
    };

    const AT: Timestamp = Timestamp::from_millis(1_767_225_600_000);

    fn encode(record: &Record) -> String {
        Encoder::default().encode(record).unwrap()
    }

    fn decode(kind: &str, json: &str) -> Result<Record, DecodeError> {
        Encoded::read(json)?.decode(AT, kind, None)
    }

    fn round_trip(record: &Record) -> String {
        let json = encode(record);
        assert_eq!(&decode(record.fact.kind(), &json).unwrap(), record);
        json
    }

    fn record(fact: impl Into<Fact>) -> Record {
        Record::new(AT, Some(QueryId(1)), None, fact)
    }

    fn finished(answer: &str) -> Record {
        record(QueryFact::Finished(QueryFinished {
            outcome: Outcome::Answered,
            answer: answer.into(),
            turns: 2,
            usage: Usage::default(),
            cut: None,
            unverified: false,
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
        let within = old.replace("{}}}", "{},\"row\":11}}");
        assert_eq!(decode("query.finished", &within).unwrap(), finished("yes"));
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
        let mut by_row = finished("yes");
        by_row.row = Some(11);
        let json = round_trip(&by_row);
        assert!(json.contains(r#""query":1,"row":11,"payload""#), "{json}");
        round_trip(&record(QueryFact::Finished(QueryFinished {
            outcome: Outcome::Failed {
                code: "context".into(),
                detail: "too long".into(),
            },
            answer: String::new(),
            turns: 2,
            usage: Usage::default(),
            cut: None,
            unverified: false,
        })));
    }

    /// A reply with a visible text, a rejected signal and a call, and what follows it.
    fn append() -> Vec<Record> {
        let visible = "It is défini in the second file, at line 12, behind the table of keys.";
        let raw_xml = format!("<signal type=\"done\">\n{}</signal>", " ".repeat(64));
        let call = ToolCall {
            id: CallId::new("c"),
            name: "look".into(),
            arguments: format!(r#"{{"query":"{}"}}"#, "key ".repeat(20)),
        };
        let text = Part::text(format!("Well. {visible}\n\n{raw_xml}"));
        let replied = Replied {
            attempt: Attempt(1),
            message: Arc::new(Message {
                role: Role::Assistant,
                parts: vec![text, Part::ToolCall(call.clone())],
            }),
            text: visible.into(),
            signal: SignalPresence::Rejected,
            stop: StopReason::ToolCalls,
            usage: Usage::default(),
            estimated: false,
            cache_miss: None,
            cut: None,
            reports: 0,
            model: "p/m".into(),
        };
        let reason = "no such type".into();
        let call = Arc::new(call);
        let emitted = serde_json::json!({
            "type": "need_turn", "fields": {"reason": "more"}, "confidence": 0.5,
            "raw_xml": raw_xml, "timestamp": AT,
        });
        let emitted = Fact::read("signal.emitted", &emitted.to_string());
        let emitted = emitted.unwrap().unwrap();
        vec![
            record(TurnFact::Replied(replied)),
            record(emitted),
            record(SignalFact::Rejected(Rejection { reason, raw_xml })),
            record(ToolFact::Requested(ToolRequested { call })),
            finished(visible),
            finished("short"),
            finished(&format!("{visible} And more.")),
        ]
    }

    #[test]
    fn texts_of_a_reply_are_kept_once() {
        let (records, mut encoder) = (append(), Encoder::default());
        let lines: Vec<_> = records
            .iter()
            .map(|record| encoder.encode(record).unwrap())
            .collect();
        let places = [Some(0), None, None, None, None, None, None];
        let backs = [None, Some(1), Some(2), Some(3), Some(4), None, None];
        for (index, (record, line)) in records.iter().zip(&lines).enumerate() {
            let encoded = Encoded::read(line).unwrap();
            assert_eq!(encoded.back(), backs[index], "{line}");
            let shortened = places[index].or(backs[index]).is_some();
            assert_eq!(shortened, line.contains(r#""text":["#), "{line}");
            let reply = encoded.back().map(|_| &records[0]);
            let read = encoded.decode(AT, record.fact.kind(), reply);
            assert_eq!(&read.unwrap(), record, "{line}");
        }
        // Without the reply, a record stands for itself.
        records
            .iter()
            .skip(1)
            .for_each(|record| drop(round_trip(record)));
    }

    #[test]
    fn place_outside_of_the_reply_is_refused() {
        let records = append();
        let fields = r#""payload":{"outcome":"answered","answer":"","turns":2,"usage":{}}}"#;
        let last = usize::MAX;
        for (place, reply, reads) in [
            ([1, 0, 0, 5], Some(&records[0]), true),
            ([1, 0, 0, 5], Some(&records[1]), false),
            ([1, 0, 0, 5], None, false),
            ([0, 0, 0, 5], None, false),
            ([1, 2, 0, 5], Some(&records[0]), false),
            ([1, 0, 0, 999], Some(&records[0]), false),
            ([1, 0, 5, last], Some(&records[0]), false),
            ([1, 0, last, 5], Some(&records[0]), false),
            // Within the character `é`.
            ([1, 0, 0, 14], Some(&records[0]), false),
        ] {
            let line = format!(r#"{{"v":3,"query":1,"text":{place:?},{fields}"#);
            let read = Encoded::read(&line)
                .unwrap()
                .decode(AT, "query.finished", reply);
            match reads {
                true => assert_eq!(read.unwrap(), finished("Well.")),
                false => {
                    let error = read.unwrap_err();
                    assert!(
                        matches!(error, DecodeError::TextNotInReply),
                        "{place:?}: {error}"
                    );
                }
            }
        }
        let other = r#"{"v":3,"query":1,"text":[1,0,0,5],"payload":{"by":"local"}}"#;
        let read = Encoded::read(other).unwrap();
        let read = read.decode(AT, "control.paused", Some(&records[0]));
        assert!(matches!(read.unwrap_err(), DecodeError::TextNotInReply));
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
            (
                "query.accepted",
                r#"{"v":4,"text":{}}"#.to_owned(),
                "has version 4, but this version of Oracle reads 2 to 3",
            ),
            ("query.accepted", line(2), "missing field `text`"),
            ("query.accepted", "{".to_owned(), "cannot read the record"),
        ] {
            let error = decode(kind, &json).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
