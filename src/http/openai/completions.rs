//! `POST /v1/chat/completions`.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use uuid::Uuid;

use super::{
    brief::{self, Brief},
    ending, models,
    place::{self, Asker, Placed},
    request::{Asked, ChatRequest},
    shapes::{Choice, Chunk, Completion, FinishReason, Head, Told},
    stream::{self, Story},
    wishes::{SESSION, Wishes},
};
use crate::{
    actor::{Detail, SessionHandle, Watch},
    http::{Caller, Host, Problem, door::Farewell, problem::ProblemBody},
    model::{BusyPolicy, SessionName, Submission},
};

/// The query that answers.
const QUERY: HeaderName = HeaderName::from_static("x-oracle-query");

/// Answers a conversation's last message.
///
/// The conversation is named by `X-Oracle-Session`, `X-OpenWebUI-Chat-Id`, `X-Conversation-Id` or
/// `metadata.session_id`, in that order; without any it is one of its own and forgotten afterwards.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai",
    params(
        ("X-Oracle-Session" = Option<SessionName>, Header, description = "The conversation, by its session's name."),
        ("X-OpenWebUI-Chat-Id" = Option<String>, Header, description = "The conversation, as Open WebUI names it."),
        ("X-Conversation-Id" = Option<String>, Header, description = "The conversation."),
        ("X-Oracle-History" = Option<String>, Header, pattern = "^(full|tail)?$",
            description = "`full` (the default) where the messages are the whole conversation, `tail` where they are new."),
        ("X-Oracle-Busy" = Option<BusyPolicy>, Header,
            description = "What to do if the session is busy: `queue` (the default), `reject`, `interrupt` or `steer`."),
        ("X-Oracle-Progress" = Option<String>, Header, pattern = "^(0|1|true|false)?$",
            description = "`1` tells what goes on as `reasoning_content`, `0` does not."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256,
            description = "Makes a repeated request one question of the conversation that is named; without one it is ignored."),
    ),
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer; a stream of pieces where one was asked for.", content(
            (Completion = "application/json"), (Chunk<'static> = "text/event-stream")
        )),
        (status = "4XX", body = ProblemBody),
        (status = "5XX", body = ProblemBody),
    )
)]
pub(super) async fn create(
    State(host): State<Host>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let asked = Asked::read(&body)?;
    drop(body);
    let profile = models::find(&host, &asked.model)?;
    let wishes = Wishes::read(&headers, &asked)?;
    // Before anything is looked up; what it does is counted when it is done.
    drop(host.room_for_a_query()?);
    let asker = Asker {
        host: &host,
        caller: &caller,
        profile: &profile,
    };
    let (session, watch, brief) = match &wishes.chat {
        Some(chat) if !asked.is_task() => {
            let _turn = host.chats().turn(&caller.session(chat.clone())).await?;
            let placed = asker.place(chat, &asked, &wishes).await?;
            let (session, watch) = ask(&host, placed, &asked, &wishes, None).await?;
            (session, watch, None)
        }
        Some(_) | None => {
            let session = asker.brief_session(brief::name());
            let mut brief = Brief::new(session.clone(), host.clone())?;
            let placed = Placed::Ask(session, place::import(&asked, &asked.past));
            let (session, watch) = ask(&host, placed, &asked, &wishes, Some(&mut brief)).await?;
            (session, watch, Some(brief))
        }
    };
    let told = [
        (
            SESSION,
            HeaderValue::from_str(session.key().name.as_str()).ok(),
        ),
        (QUERY, Some(HeaderValue::from(watch.query().0))),
    ];
    let head = Head::new(Uuid::now_v7(), asked.model);
    let drain = host.drain().clone();
    let mut response = match asked.stream {
        Some(options) => {
            let progress = wishes.progress.unwrap_or(host.settings.progress);
            let story = Story {
                head,
                options,
                progress,
                session,
                drain,
                _brief: brief,
            };
            streamed(story, watch)
        }
        None => {
            let answered = tokio::select! {
                answered = whole(head, &session, watch) => answered,
                () = drain.over() => Err(Problem::ends()),
            };
            // Gone before its answer is, as far as the client can tell.
            drop(brief);
            answered.unwrap_or_else(IntoResponse::into_response)
        }
    };
    let told = told
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    response.headers_mut().extend(told);
    Ok(response)
}

/// Asks, unless it was asked before, and follows.
async fn ask(
    host: &Host,
    placed: Placed,
    asked: &Asked,
    wishes: &Wishes,
    mut brief: Option<&mut Brief>,
) -> Result<(SessionHandle, Watch), Problem> {
    // Text as it arrives may have to be taken back, so nobody is told of it.
    let detail = match asked.stream {
        Some(_) => Detail::Events,
        None => Detail::End,
    };
    match placed {
        Placed::Follow(session, query) => {
            let watch = session.watch_for(query, detail).await?;
            Ok((session, watch))
        }
        Placed::Ask(session, import) => {
            let submission = Submission {
                busy: wishes.busy,
                idempotency_key: wishes.key.clone(),
                ..Submission::new(asked.question.clone()).with(import)
            };
            let room = host.room_for_a_message(session.key()).await?;
            if let Some(brief) = &mut brief {
                brief.asks();
            }
            let watch = session.ask_for(submission, detail).await;
            if let Some(brief) = brief {
                brief.heard(&watch);
            }
            room.settle(&watch);
            let watch = watch.map_err(|error| Problem::of_asking(error, "messages", "messages"))?;
            Ok((session, watch))
        }
    }
}

fn streamed(story: Story, watch: Watch) -> Response {
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/event-stream; charset=utf-8"),
        ),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // So that proxies hand on each piece when it comes.
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    let farewell = Extension(Farewell(|why| stream::event_of(&why.body())));
    (headers, farewell, stream::body(story, watch)).into_response()
}

/// The answer in one piece.
async fn whole(head: Head, session: &SessionHandle, watch: Watch) -> Result<Response, Problem> {
    let answer = watch.answer().await?;
    if let Some(problem) = ending::problem(&answer.outcome) {
        return Ok(ending::respond(problem));
    }
    let reason = FinishReason::of(&answer.outcome).unwrap_or(FinishReason::Stop);
    let text = answer.outcome.readable(&answer.text, answer.turns);
    let completion = Completion {
        head,
        object: "chat.completion",
        oracle: Told::of(session.key(), &answer),
        usage: answer.usage.into(),
        choices: [Choice::new(text, reason)],
    };
    Ok(Json(completion).into_response())
}
