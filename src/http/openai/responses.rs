//! `/v1/responses`: answers that the server keeps, so that a client sends only what is new.
//!
//! A response is a part of a query: from a question, or from the results of the client's tools, to
//! the answer or to calls of these tools. Responses that continue one another share a session; one
//! that continues an older response begins a fork of its session. A conversation is a session too.

mod conversations;
mod id;
mod request;
mod response;

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use utoipa_axum::routes;
use uuid::Uuid;

use self::{
    id::{
        Holds, RESPONSES, ResponseId, WithId, holds_responses, unknown_conversation,
        unknown_response,
    },
    request::{Continues, ParsedResponse, ResponseRequest, field_of},
    response::EventWriter,
};
use super::{
    answering::{Begun, End, Tally, Wanted},
    asked::{AnswerHeaders, SESSION},
    completions::SHOULD_RETRY,
    models,
    stream::Writer,
};
use crate::{
    actor::{Answer, AskError, Detail, Oracle, Progress, SessionFilter, SessionHandle, Watch},
    http::{Begins, Caller, Host, Problem, Route, RouteGroup, StreamText, extract::Path, sse},
    journal::{Entry, Only},
    kernel::Refusal,
    model::{
        BusyPolicy, By, ForkPoint, QueryId, Seq, TenantId, Timestamp,
        record::{Fact, QueryFact, ToolFact},
    },
};
use oracle_control::{Code, check_session};

/// Interval between two searches for responses whose time is over.
const INTERVAL: Duration = Duration::from_secs(3_600);
/// Tenants or sessions read at a time by such a search.
const PAGE: usize = 256;

pub(super) fn routes() -> Vec<Route> {
    use RouteGroup::{Messages, Others};
    let revocation = || sse::last_event(Some("error"), &Problem::no_key().body());
    let conversation = routes!(conversations::show, conversations::delete);
    vec![
        Route::post(Messages, Begins::Session, routes!(create)).revocation(revocation),
        Route::post(Messages, Begins::Session, routes!(conversations::create)),
        Route::without_post(Others, routes!(show)),
        Route::without_post(Others, conversation),
    ]
}

#[cfg(any(test, feature = "testkit"))]
pub(super) fn accepts(body: &[u8]) -> bool {
    ParsedResponse::read(body).is_ok()
}

/// Creates a response.
#[utoipa::path(post, path = "/v1/responses", tag = "openai",
    params(
        ("Idempotency-Key" = Option<String>, Header, max_length = 256,
            description = "Deduplicates retries of a request that begins a conversation."),
    ),
    request_body = ResponseRequest,
    responses(
        (status = 200, description = "The response; a stream of events if `stream` is true.", content(
            (response::Response = "application/json"), (Object = "text/event-stream")
        )),
    )
)]
async fn create(
    State(host): State<Host>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let request = ParsedResponse::read(&body)?;
    drop(body);
    let chosen = models::find(&host, &caller.0, &request.asked.model)?;
    let mut headers = AnswerHeaders::read(&headers)?;
    if headers.session.take().is_some() {
        let what = "use `previous_response_id` or `conversation` instead";
        return Err(Problem::bad(SESSION.as_str().to_owned(), what));
    }
    // Before any lookup; the capacity is reserved on submission, so that a slow lookup holds none.
    host.check_capacity(0)?;
    let wanted = Wanted {
        host: &host,
        caller: &caller,
        asked: &request.asked,
        chosen,
        headers,
        own: None,
        detail: match (request.asked.stream, request.asked.text(&host)) {
            (true, StreamText::Turns) => Detail::Text,
            _ => Detail::Events,
        },
        field: "input",
        parameter: field_of,
    };
    let mut begun = begin(&request, wanted).await?;
    let (begins, at) = beginning(&mut begun.watch).await?;
    let key = begun.session.handle.key().clone();
    let (id, options) = (ResponseId::new(&key.name, begins), &request.asked.options);
    let instructions = request.asked.instructions.filter(|text| !text.is_empty());
    let mut response = response::Response::new(id, seconds(at), request.asked.model, options, &key);
    response.instructions = instructions;
    response.previous_response_id = request.previous;
    response.metadata = request.metadata;
    response.store = begun.session.memory.is_none();
    if request.asked.stream {
        // Some clients refuse events that OpenAI does not have.
        let has_progress = request.asked.stream_text.is_some();
        let events = EventWriter::begin(response, has_progress, &begun).events(begun);
        return Ok(sse::response(events));
    }
    let end = begun.end().await?;
    if let Some(problem) = end.failure() {
        return Ok(([(SHOULD_RETRY, "false")], problem).into_response());
    }
    Ok(Json(response.end(&key, &end, 0)).into_response())
}

/// Finds the session, submits the question or returns the results, and follows the query.
async fn begin(request: &ParsedResponse, mut wanted: Wanted<'_>) -> Result<Begun, Problem> {
    let (host, caller) = (wanted.host, wanted.caller);
    if !request.asked.store && wanted.headers.key.is_some() {
        let what = "a response that is not kept cannot be found again: omit it, or `store: false`";
        return Err(Problem::bad("idempotency-key", what));
    }
    let needs_one = request.asked.store || wanted.chosen.asks_people;
    let own = wanted.headers.own_session(needs_one);
    wanted.own = own.map(id::session_of_responses);
    let id = match &request.continues {
        Continues::Nothing => return wanted.begin().await,
        Continues::Conversation(id) => {
            let id = id::read_conversation(id, &caller.0.tenant);
            let name = id::conversation(id.ok_or_else(unknown_conversation)?);
            let session = host.oracle.session_by_key(caller.session(name.clone()));
            // The first response opens the session.
            if session.last().await?.is_some() {
                check_model(&wanted, &session).await?;
            }
            wanted.headers.session = Some(name);
            return wanted.begin().await;
        }
        Continues::Response(id) => *id,
    };
    let before = find(host, caller, id, request.field).await?;
    wanted.chosen.check(&request.asked, field_of)?;
    check_model(&wanted, &before.session).await?;
    // A retry begins a branch: that the last question has the same text proves nothing here.
    wanted.headers.again = false;
    let returns = !request.asked.conversation.results.is_empty();
    let (has_results, waits) = before.results().await?;
    if !returns && has_results {
        let what = "the calls of this response have results: continue the response after them";
        return Err(Problem::bad(request.field, what));
    }
    if returns || before.is_last {
        wanted.headers.session = Some(before.session.key().name.clone());
        // A message to a response that waits for results cancels the wait. If another message was
        // faster, this one is only queued, and does not cancel that one's query.
        wanted.headers.busy = match waits {
            true => BusyPolicy::Queue,
            false => BusyPolicy::Reject,
        };
        let mut first = wanted.clone();
        first.own = None;
        match first.begin().await {
            Ok(begun) if returns || begun.watch.query() == before.query.next() => return Ok(begun),
            // Another request was faster, so this one begins a branch.
            Ok(Begun { session, watch, .. }) => {
                match session.handle.cancel(Some(watch.query())).await {
                    Ok(())
                    | Err(AskError::Refused(
                        Refusal::NothingRunning | Refusal::OtherRunning { .. },
                    )) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Err(problem) if problem.code() == Code::Busy.as_str() && !returns => {}
            Err(problem) => return Err(problem),
        }
    }
    let branch = branch(host, caller, &before, request.field).await?;
    wanted.headers.session = Some(branch.key().name.clone());
    wanted.headers.busy = BusyPolicy::Queue;
    let begun = wanted.begin().await;
    if begun.is_err() {
        // Nothing continues it.
        let _ = host.oracle.delete(branch.key(), Only::WhenIdle).await;
    }
    begun
}

/// Begins a session with the conversation up to a response.
async fn branch(
    host: &Host,
    caller: &Caller,
    after: &Stored,
    field: &'static str,
) -> Result<SessionHandle, Problem> {
    let (query, turn) = (after.query, None);
    let point = ForkPoint { query, turn };
    let into = id::session_of_responses(Uuid::now_v7());
    let room = host.reserve_session(&caller.session(into.clone())).await?;
    let oracle = host.oracle.acting(caller.by());
    let forked = oracle.fork(after.session.key(), point, into).await;
    room.settle(&forked);
    forked.map_err(|error| match error {
        AskError::Refused(Refusal::NoSuchTurn { .. }) => {
            let what = "the response has not ended: continue it after its end";
            Problem::bad(field, what)
        }
        error => error.into(),
    })
}

/// A session keeps its profile.
async fn check_model(wanted: &Wanted<'_>, session: &SessionHandle) -> Result<(), Problem> {
    check_session(&wanted.caller.0, session).await?;
    let profile = session.profile_name().await?;
    if profile == wanted.chosen.profile {
        return Ok(());
    }
    let what = format!(
        "the conversation was begun with the model `{profile}`: use it, or send the conversation \
         as `input`"
    );
    Err(Problem::bad("model", what))
}

fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis() / 1_000).unwrap_or_default()
}

/// A stored response.
struct Stored {
    session: SessionHandle,
    query: QueryId,
    /// Whether a further response can follow it in its session.
    is_last: bool,
    begins: Entry,
}

impl Stored {
    /// Whether the calls of the response have results, and whether they wait for them.
    async fn results(&self) -> Result<(bool, bool), AskError> {
        let records = self.session.query_records(self.query).await?;
        let later = records.iter().filter(|entry| entry.seq > self.begins.seq);
        let (mut has_some, mut waits) = (false, false);
        for entry in later {
            match entry.record.fact {
                Fact::Tool(ToolFact::Returned(_)) => has_some = true,
                Fact::Tool(ToolFact::HandedOver(_)) => waits = true,
                Fact::Query(QueryFact::Finished(_)) => waits = false,
                _ => {}
            }
        }
        Ok((has_some, waits))
    }
}

async fn find(
    host: &Host,
    caller: &Caller,
    id: ResponseId,
    field: &'static str,
) -> Result<Stored, Problem> {
    let unknown = || unknown_response(field);
    let name = id.session().ok_or_else(unknown)?;
    let oracle = host.oracle.acting(caller.by());
    let session = oracle.session_by_key(caller.session(name));
    let before = Seq(id.begins.0.checked_sub(1).ok_or_else(unknown)?);
    let page = match session.page(before, 1).await {
        Err(AskError::NoSession(_)) => return Err(unknown()),
        page => page?,
    };
    check_session(&caller.0, &session).await?;
    let begins = page.entries.into_iter().next().ok_or_else(unknown)?;
    if !begins_response(&begins.record.fact) {
        return Err(unknown());
    }
    let query = begins.record.query.ok_or_else(unknown)?;
    let last = session.last_message().await?.map(|(query, _)| query);
    Ok(Stored {
        is_last: id.holds == Holds::Responses && last == Some(query),
        session,
        query,
        begins,
    })
}

const fn begins_response(fact: &Fact) -> bool {
    use {Fact::Query, Fact::Tool, QueryFact::Accepted, ToolFact::Returned};
    matches!(fact, Query(Accepted(_)) | Tool(Returned(_)))
}

/// Reads up to the record where the response begins.
async fn beginning(watch: &mut Watch) -> Result<(Seq, Timestamp), Problem> {
    let query = watch.query();
    while let Some(progress) = watch.try_next().await? {
        if let Progress::Record(record) = progress
            && record.query == Some(query)
            && begins_response(&record.fact)
        {
            return Ok((record.seq, record.at));
        }
    }
    Err(AskError::Stopped.into())
}

/// Returns a stored response.
#[utoipa::path(get, path = "/v1/responses/{id}", tag = "openai",
    params(WithId),
    responses((status = 200, body = response::Response))
)]
async fn show(
    State(host): State<Host>,
    caller: Caller,
    Path(WithId { id }): Path<WithId>,
) -> Result<Json<response::Response>, Problem> {
    let id = ResponseId::read(&id).ok_or_else(|| unknown_response("id"))?;
    let stored = find(&host, &caller, id, "id").await?;
    let key = stored.session.key().clone();
    let records = stored.session.query_records(stored.query).await?;
    // Results may leave the options of the question as they are.
    let so_far = records.iter().take_while(|entry| entry.seq <= id.begins);
    let options = so_far.filter_map(|entry| match &entry.record.fact {
        Fact::Query(QueryFact::Accepted(accepted)) => accepted.options.as_deref(),
        Fact::Tool(ToolFact::Returned(returned)) => returned.options.as_deref(),
        _ => None,
    });
    let options = options.last().cloned().unwrap_or_default();
    let created = seconds(stored.begins.record.at);
    let model = stored.session.profile_name().await?.to_string();
    let response = response::Response::new(id, created, model, &options, &key);
    let (mut tally, continues) = (Tally::default(), stored.begins.record.turn.is_some());
    for entry in records.iter().filter(|entry| entry.seq > id.begins) {
        let mut end = tally.add(&entry.record);
        if let Some(finished) = entry.record.finished() {
            let mut answer = Answer::new(stored.query, finished.clone());
            if continues {
                answer.usage = tally.usage;
            }
            end = Some(End::from(answer));
        }
        if let Some(end) = end {
            return Ok(Json(response.end(&key, &end, 0)));
        }
    }
    Ok(Json(response))
}

/// Deletes the sessions of responses that were not continued for `server.responses_kept`, again and
/// again, until the server ends.
pub(crate) async fn delete_old_responses(host: Host) {
    let oracle = host.oracle.acting(By::oracle());
    loop {
        let kept = i64::try_from(host.settings.responses_kept.as_millis()).unwrap_or(i64::MAX);
        let until = oracle.clock().now().as_millis().saturating_sub(kept);
        let until = Timestamp::from_millis(until);
        if let Err(error) = delete_before(&oracle, until).await {
            tracing::warn!(%error, "cannot delete responses whose time is over: trying again in an hour");
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = host.drain().begun() => return,
        }
    }
}

async fn delete_before(oracle: &Oracle, until: Timestamp) -> Result<(), AskError> {
    let mut after = None;
    loop {
        let page = oracle.stored_tenants(after, PAGE).await?;
        for tenant in page.tenants {
            delete_of(oracle, &tenant, until).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

async fn delete_of(oracle: &Oracle, tenant: &TenantId, until: Timestamp) -> Result<(), AskError> {
    let filter = SessionFilter {
        prefix: Some(RESPONSES.to_owned()),
        lasting: true,
        ..SessionFilter::default()
    };
    let mut after = None;
    loop {
        let page = oracle.list(tenant, &filter, after, PAGE).await?;
        for session in page.sessions {
            let is_old = session.updated.is_some_and(|updated| updated < until);
            if !is_old || !holds_responses(&session.key.name) {
                continue;
            }
            // Also one whose query still waits for the results of calls.
            if let Err(error) = oracle.delete(&session.key, Only::Always).await {
                tracing::warn!(session = %session.key, %error, "cannot delete an old response");
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
