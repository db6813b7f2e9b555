//! Events: projections of records for clients.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    id::{QueryId, Seq, SessionName, Turn},
    outcome::Outcome,
    record::{
        AgentFact, BudgetFact, Compacted, Fact, FallbackAction, FallbackTriggered, LlmFact,
        QueryFact, QueryFinished, Record, SessionFact,
    },
    time::Timestamp,
};

/// Maximum length of a text in an event, in bytes; longer ones become references.
pub const INLINE_LIMIT: usize = 16 * 1024;

words! {
    /// The severity of an event.
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        /// Normal operation.
        Info = "info",
        /// An operator may want to react.
        Warning = "warning",
        /// A failure.
        Error = "error",
    }
}

/// The origin of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The session.
    Session,
    /// The supervisor.
    Supervisor,
    /// A gateway.
    Gateway,
    /// A control command.
    Control,
}

/// An event of a session, made from a journal record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// The event's number in the session's log.
    pub seq: Seq,
    /// The session.
    pub session: SessionName,
    /// The query.
    pub query: Option<QueryId>,
    /// The turn, from 0.
    pub turn: Option<Turn>,
    /// The row of the decision table that led to it (docs/protocol.md).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u8>,
    /// The time of the record.
    pub at: Timestamp,
    /// The type, such as `turn.started`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The origin.
    pub source: Source,
    /// The severity.
    pub severity: Severity,
    /// The data.
    pub payload: Value,
}

impl Event {
    /// Projects a record to its event; long texts become references.
    pub fn of(session: &SessionName, seq: Seq, record: &Record) -> Self {
        let mut event = Self::with_whole_texts(session, seq, record);
        by_reference(&mut event.payload, seq);
        event
    }

    /// Projects a record to its event with all texts in full, for exports.
    pub fn with_whole_texts(session: &SessionName, seq: Seq, record: &Record) -> Self {
        let tagged = serde_json::to_value(&record.fact).unwrap_or_default();
        let mut payload = match tagged {
            Value::Object(mut tagged) => tagged.remove("payload").unwrap_or_default(),
            _ => Value::Null,
        };
        match (&record.fact, &mut payload) {
            (Fact::Query(QueryFact::Finished(finished)), Value::Object(fields)) => {
                let reason = finished.outcome.reason().map(str::to_owned);
                fields.insert("reason".to_owned(), reason.into());
            }
            // A path on the server is nothing for its clients.
            (Fact::Session(SessionFact::Opened(_)), Value::Object(fields)) => {
                fields.remove("project");
            }
            _ => {}
        }
        Self {
            seq,
            session: session.clone(),
            query: record.query,
            turn: record.turn,
            row: record.row,
            at: record.at,
            kind: record.fact.kind().to_owned(),
            source: record.fact.source(),
            severity: record.fact.severity(),
            payload,
        }
    }
}

/// Replaces long texts by their record and length.
fn by_reference(value: &mut Value, seq: Seq) {
    match value {
        Value::String(text) if text.len() > INLINE_LIMIT => {
            *value = serde_json::json!({ "ref": { "seq": seq, "bytes": text.len() } });
        }
        Value::Array(items) => items.iter_mut().for_each(|item| by_reference(item, seq)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| by_reference(field, seq)),
        _ => {}
    }
}

impl Fact {
    /// The origin of the fact.
    pub const fn source(&self) -> Source {
        match self {
            Self::Session(
                SessionFact::Quarantined(_) | SessionFact::Passivated(_) | SessionFact::Revived(_),
            )
            | Self::Supervisor(_) => Source::Supervisor,
            Self::Llm(_) => Source::Gateway,
            Self::Control(_)
            | Self::Session(
                SessionFact::Released(_) | SessionFact::Forked(_) | SessionFact::Closed(_),
            ) => Source::Control,
            _ => Source::Session,
        }
    }

    /// The severity of the fact.
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Session(SessionFact::Quarantined(_))
            | Self::Budget(
                BudgetFact::IterationExceeded(_)
                | BudgetFact::TokensExceeded(_)
                | BudgetFact::CostExceeded(_)
                | BudgetFact::ContextExceeded(_),
            )
            | Self::Agent(AgentFact::LoopDetected(_))
            | Self::Query(QueryFact::Finished(QueryFinished {
                outcome: Outcome::Failed { .. },
                ..
            })) => Severity::Error,
            Self::Budget(
                BudgetFact::IterationWarning(_)
                | BudgetFact::TokensWarning(_)
                | BudgetFact::CostWarning(_)
                | BudgetFact::ContextWarning(_)
                | BudgetFact::ContextCompacted(Compacted { cut: Some(_), .. })
                | BudgetFact::ContextCompactionFailed(_),
            )
            | Self::Agent(
                AgentFact::EscalationRaised(_)
                | AgentFact::FallbackTriggered(FallbackTriggered {
                    action: FallbackAction::Escalate,
                    ..
                }),
            )
            | Self::Llm(
                LlmFact::Retried(_)
                | LlmFact::FailedOver(_)
                | LlmFact::PrefixBroken(_)
                | LlmFact::Failed(_)
                | LlmFact::CircuitOpened(_)
                | LlmFact::RateLimited(_),
            )
            | Self::Supervisor(_) => Severity::Warning,
            _ => Severity::Info,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        By, Limits, ProfileName, SessionKey,
        record::{Accepted, InboxPosition, Opened},
    };

    fn event(text: &str) -> Event {
        let accepted = Accepted {
            text: text.into(),
            limits: Limits::turns(5),
            idempotency_key: None,
            continues: None,
            place: InboxPosition::Back,
            by: By::local(),
            options: None,
        };
        let at = Timestamp::from_millis(1_767_225_600_000);
        let record = Record::new(at, Some(QueryId(2)), None, QueryFact::Accepted(accepted));
        Event::of(&SessionName::new("s").unwrap(), Seq(7), &record)
    }

    #[test]
    fn event_envelope_matches_the_documented_format() {
        assert_eq!(
            serde_json::to_value(event("why?")).unwrap(),
            serde_json::json!({
                "seq": 7, "session": "s", "query": 2, "turn": null,
                "at": "2026-01-01T00:00:00.000Z", "type": "query.accepted",
                "source": "session", "severity": "info",
                "payload": {
                    "text": "why?", "limits": { "max_turns": 5 }, "idempotency_key": null,
                    "place": "back",
                },
            })
        );
    }

    #[test]
    fn event_of_a_new_session_does_not_name_the_project_folder() {
        let opened = SessionFact::Opened(Opened {
            key: SessionKey::local(SessionName::new("s").unwrap()),
            profile: ProfileName::oracle(),
            project: Some("/home/anna/project".into()),
            parent: None,
        });
        let record = Record::new(Timestamp::from_millis(0), None, None, opened);
        let event = Event::of(&SessionName::new("s").unwrap(), Seq(1), &record);
        let event = serde_json::to_string(&event).unwrap();
        assert!(!event.contains("anna"), "{event}");
    }

    #[test]
    fn long_bodies_are_replaced_by_references() {
        let fits = "x".repeat(INLINE_LIMIT);
        assert_eq!(event(&fits).payload["text"], fits);
        let long = format!("{fits}x");
        let reference = serde_json::json!({ "ref": { "seq": 7, "bytes": long.len() } });
        assert_eq!(event(&long).payload["text"], reference);
    }
}
