//! The figures of the system and of the server, for Prometheus.
//!
//! Nobody is asked for them: they are read where they stand. Names and labels are part of the interface;
//! nothing in them tells of a session or of a tenant.

use std::fmt;

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, text},
    registry::Registry,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{Admin, Host, Problem, problem::ProblemBody};
use crate::actor::{Count, Figures};

mod sheet;

use sheet::Sheet;

/// What Prometheus reads best.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn routes() -> OpenApiRouter<Host> {
    OpenApiRouter::new().routes(routes!(metrics))
}

/// Figures since the start of the process, in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "health", responses(
    (status = 200, body = str, content_type = "application/openmetrics-text"),
    (status = 403, description = "The key is not of the role `admin`.", body = ProblemBody),
    (status = "4XX", body = ProblemBody),
    (status = "5XX", body = ProblemBody),
))]
async fn metrics(State(host): State<Host>, _: Admin) -> Response {
    match written(&host) {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(fmt::Error) => Problem::bug("metrics").into_response(),
    }
}

fn written(host: &Host) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("oracle");
    registry.register_collector(Box::new(Read {
        figures: host.oracle.figures(),
        requests: host.overload().in_work(),
        connections: host.overload().connections(),
        answers: host.overload().answers(),
    }));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The figures of one moment.
#[derive(Debug)]
struct Read {
    figures: Figures,
    requests: usize,
    connections: usize,
    answers: Vec<Count>,
}

impl Collector for Read {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut sheet = Sheet::new(encoder);
        let figures = &self.figures;
        sheet.gauges(
            "sessions_live",
            "Sessions in memory, by what they are at",
            "state",
            &figures.live,
        )?;
        sheet.tally(
            "sessions",
            "What happened in the lives of sessions",
            "event",
            &figures.sessions,
        )?;
        sheet.gauge(
            "messages_waiting",
            "Messages that wait in sessions in memory, behind the query that runs",
            figures.waiting,
        )?;
        sheet.count(
            "messages_accepted",
            "Messages that were accepted",
            figures.accepted,
        )?;
        sheet.count(
            "turns",
            "Turns whose reply is durable, at whichever try",
            figures.turns,
        )?;
        sheet.tally("queries", "Queries that ended", "outcome", &figures.queries)?;
        sheet.tally(
            "signals",
            "Signals of models, and those that were rejected",
            "type",
            &figures.signals,
        )?;
        sheet.tally(
            "fallbacks",
            "What the fallback said",
            "action",
            &figures.fallbacks,
        )?;
        sheet.tally(
            "budgets",
            "Budgets that were warned of or spent",
            "event",
            &figures.budgets,
        )?;
        sheet.count("loops", "Loops that ended a query", figures.loops)?;
        sheet.tally(
            "restarts",
            "Sessions that were brought back",
            "cause",
            &figures.restarts,
        )?;
        sheet.tally("tool_calls", "Tool calls", "event", &figures.tools)?;
        sheet.tally(
            "model_calls",
            "Calls of models that ended",
            "result",
            &figures.calls,
        )?;
        sheet.tally(
            "model_calls_repeated",
            "Calls of models that were made again",
            "how",
            &figures.repeated,
        )?;
        sheet.tally(
            "tokens",
            "Tokens of calls, as far as they are known",
            "kind",
            &figures.tokens,
        )?;
        sheet.times(
            "turn",
            "Turns of one call, until the reply was durable",
            &figures.turn,
        )?;
        sheet.times(
            "turn_queued",
            "Of these turns, the wait for the gateway",
            &figures.queued,
        )?;
        sheet.times("turn_model", "Of these turns, the model", &figures.model)?;
        sheet.times(
            "turn_own",
            "Of these turns, the rest, the journal included",
            &figures.own,
        )?;
        sheet.times(
            "journal_commit",
            "Making records durable, as sessions see it",
            &figures.commit,
        )?;
        sheet.gauge(
            "journal_waiting",
            "Sessions that wait for the journal to make something durable",
            figures.appends,
        )?;
        sheet.count(
            "journal_failures",
            "What the journal did not make durable",
            figures.failed_commits,
        )?;
        sheet.depths(&figures.depths)?;
        sheet.providers(&figures.providers)?;
        sheet.gauge("http_connections", "Connections", self.connections)?;
        sheet.gauge(
            "http_requests_in_work",
            "Requests that are worked on, streams among them",
            self.requests,
        )?;
        sheet.tally(
            "http_answers",
            "Answers, by the class of their status, and clients that left before theirs",
            "status",
            &self.answers,
        )
    }
}
