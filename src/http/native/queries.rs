//! `/api/sessions/{id}/queries`: the queries of a session with classification, prompt, signals and
//! outcome.

use axum::{Json as Answer, http::StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::{InSession, OwnSession, limit};
use crate::{
    actor::{QueryAccount, SubAgent},
    http::{
        Caller, Problem,
        extract::{Path, Query},
    },
    journal::Entry,
    model::{
        Limits, QueryClassification, QueryId, Seq, SessionName, Timestamp, Turn, Usage,
        record::{Fact, SignalFact},
    },
};
use oracle_control::check_session;

/// Summary of a query.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QueryBrief {
    /// The session.
    session: SessionName,
    /// The query.
    query: QueryId,
    /// The number of its `query.accepted` event.
    seq: Seq,
    /// When it was accepted.
    at: Timestamp,
    /// The question; in a list its first 1,000 bytes.
    text: String,
    /// `waiting`, `running` or `finished`.
    state: &'static str,
    /// The outcome: `answered`, `partial`, `stuck`, `forced`, `escalated`, `cancelled` or `failed`.
    outcome: Option<&'static str>,
    /// The reason for the outcome, if there is one.
    reason: Option<String>,
    /// Whether its signal counts sources although none of its calls found any; left out if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unverified: bool,
    /// When it ended.
    finished_at: Option<Timestamp>,
    /// Number of completed turns.
    turns: u32,
    /// Its usage; sub-agents are included once it has ended.
    usage: Usage,
}

/// A query in full.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QueryObject {
    #[serde(flatten)]
    brief: QueryBrief,
    /// Its budgets.
    limits: Limits,
    /// The idempotency key of its message.
    idempotency_key: Option<String>,
    /// The forced query that this one continues.
    continues: Option<QueryId>,
    /// Its classification; null until classified.
    classification: Option<QueryClassification>,
    /// The composed prompt; null until composed.
    prompt: Option<PromptObject>,
    /// The model's signals, in order.
    signals: Vec<SignalObject>,
    /// The answer; null until the query has ended.
    answer: Option<String>,
    /// The complete outcome, tagged by its kind.
    end: Option<Value>,
    /// Its sub-agents, in order.
    sub_agents: Vec<SubAgent>,
}

/// A composed prompt.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Prompt)]
struct PromptObject {
    /// SHA-256 of the text, in hex.
    hash: String,
    /// The included segments, in order.
    segments: Vec<String>,
    /// Estimated number of tokens.
    token_estimate: u64,
    /// Segments that were omitted or cut.
    warnings: Vec<String>,
}

/// A signal of the model, or a rejected block.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Signal)]
struct SignalObject {
    /// The number of its event.
    seq: Seq,
    /// The turn, from 0.
    turn: Option<Turn>,
    /// Its type and fields; null if it was rejected.
    signal: Option<Value>,
    /// Why it was rejected.
    rejected: Option<String>,
    /// The block as received.
    raw_xml: String,
}

impl SignalObject {
    fn of(entry: &Entry) -> Option<Self> {
        let (signal, rejected, raw_xml) = match &entry.record.fact {
            Fact::Signal(SignalFact::Emitted(signal)) => {
                let mut value = serde_json::to_value(&**signal).unwrap_or_default();
                if let Value::Object(fields) = &mut value {
                    fields.remove("raw_xml");
                }
                (Some(value), None, &signal.raw_xml)
            }
            Fact::Signal(SignalFact::Rejected(rejection)) => {
                let reason = rejection.reason.clone();
                (None, Some(reason), &rejection.raw_xml)
            }
            _ => return None,
        };
        Some(Self {
            seq: entry.seq,
            turn: entry.record.turn,
            signal,
            rejected,
            raw_xml: raw_xml.clone(),
        })
    }
}

fn brief(session: &SessionName, account: &mut QueryAccount) -> QueryBrief {
    let finished = account.finished.as_ref();
    let outcome = finished.map(|(_, finished)| &finished.outcome);
    let state = match (finished, account.begun) {
        (Some(_), _) => "finished",
        (None, true) => "running",
        (None, false) => "waiting",
    };
    let reason = outcome.and_then(|outcome| outcome.reason());
    QueryBrief {
        session: session.clone(),
        query: account.query,
        seq: account.seq,
        at: account.at,
        text: std::mem::take(&mut account.text),
        state,
        outcome: outcome.map(|outcome| outcome.name()),
        reason: reason.map(str::to_owned),
        unverified: finished.is_some_and(|(_, finished)| finished.unverified),
        finished_at: finished.map(|(at, _)| *at),
        turns: account.turns,
        usage: account.usage,
    }
}

/// Selects a page of queries.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct QueriesParams {
    /// The `next` of the previous page.
    after: Option<u64>,
    /// Page size.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u16>,
}

/// A page of queries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QueriesPage {
    /// The queries, in order of acceptance.
    queries: Vec<QueryBrief>,
    /// The `after` of the next page; null on the last page.
    next: Option<Seq>,
}

/// Lists the queries of a session, in order of acceptance.
#[utoipa::path(get, path = "/api/sessions/{id}/queries", tag = "queries",
    params(InSession, QueriesParams),
    responses((status = 200, body = QueriesPage))
)]
pub(super) async fn list(
    OwnSession(session): OwnSession,
    Query(wanted): Query<QueriesParams>,
) -> Result<Answer<QueriesPage>, Problem> {
    let limit = limit(wanted.limit, 50, 200)?;
    let after = Seq(wanted.after.unwrap_or(0));
    let page = session.queries(after, limit).await?;
    let brief = |mut account| brief(&session.key().name, &mut account);
    Ok(Answer(QueriesPage {
        queries: page.queries.into_iter().map(brief).collect(),
        next: page.next,
    }))
}

/// The path parameters of a query.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OneQuery {
    /// The session's name.
    #[serde(rename = "id")]
    #[param(inline)]
    _id: SessionName,
    /// The query's number.
    query: u32,
}

/// Returns a query with its classification, prompt, signals, outcome, usage and answer.
#[utoipa::path(get, path = "/api/sessions/{id}/queries/{query}", tag = "queries",
    params(OneQuery),
    responses((status = 200, body = QueryObject))
)]
pub(super) async fn show(
    OwnSession(session): OwnSession,
    Path(OneQuery { query, .. }): Path<OneQuery>,
) -> Result<Answer<QueryObject>, Problem> {
    let name = &session.key().name;
    let mut account = session.account(QueryId(query)).await?.ok_or_else(|| {
        let what = format!("session `{name}` has no query {query}");
        Problem::new(StatusCode::NOT_FOUND, "no_query", what).of("query")
    })?;
    let brief = brief(name, &mut account);
    let classified = account.classified.map(|of| (of.classification, of.prompt));
    let (classification, prompt) = classified.unzip();
    let finished = account.finished.map(|(_, of)| (of.answer, of.outcome));
    let (answer, end) = finished.unzip();
    let signals = account.signals.iter().filter_map(SignalObject::of);
    Ok(Answer(QueryObject {
        brief,
        limits: account.limits,
        idempotency_key: account.idempotency_key,
        continues: account.continues,
        classification,
        prompt: prompt.map(|prompt| PromptObject {
            hash: prompt.hash,
            segments: prompt.segments_included,
            token_estimate: prompt.token_estimate,
            warnings: prompt.warnings,
        }),
        signals: signals.collect(),
        answer,
        end: end.and_then(|outcome| serde_json::to_value(outcome).ok()),
        sub_agents: session.sub_agents(QueryId(query)).await?,
    }))
}

/// Cancels a query that runs, or that waits in the inbox.
#[utoipa::path(post, path = "/api/sessions/{id}/queries/{query}/cancel", tag = "queries",
    params(OneQuery),
    responses(
        (status = 200, description = "It ends as `cancelled`.", body = Value),
    )
)]
pub(super) async fn cancel(
    Caller(caller): Caller,
    OwnSession(session): OwnSession,
    Path(OneQuery { query, .. }): Path<OneQuery>,
) -> Result<Answer<Value>, Problem> {
    check_session(&caller, &session).await?;
    session.cancel(Some(QueryId(query))).await?;
    Ok(Answer(json!({})))
}
