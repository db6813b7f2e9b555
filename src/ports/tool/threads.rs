//! `thread_search`: searches earlier conversations of the tenant through the port [`Threads`].
//!
//! **Invariants:** a call searches only its session's tenant; it does not find its own query; the
//! result's size is bounded.

#[cfg(test)]
mod tests;

use std::{fmt::Write as _, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use super::{
    FnTool, ToolContext, ToolError, ToolOutput, arguments,
    function::cancelled_error,
    text::{counted, on_one_line, quoted, shortened},
};
use crate::model::{
    Fault, FaultClass, QueryId, Seq, SessionName, TenantId, Timestamp, Utterance, tool::ToolNeed,
};

/// Maximum number of places per call.
const MAX_PLACES: u32 = 20;
const DEFAULT_PLACES: u32 = 8;
/// Longest excerpt shown, in characters.
const EXCERPT: usize = 300;
/// Numbers of hits requested in turn, until enough are relevant.
const SEARCH_LIMITS: [usize; 3] = [64, 512, 4_096];

/// A statement in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadHit {
    /// The session, within the tenant.
    pub session: SessionName,
    /// Its position in the log.
    pub seq: Seq,
    /// Its time.
    pub at: Timestamp,
    /// Its query, if any; not part of its JSON, which models read.
    #[serde(skip)]
    pub query: Option<QueryId>,
    /// Its kind.
    pub said: Utterance,
    /// The text around the matching words.
    pub excerpt: String,
}

/// Port to the stored conversations.
pub trait Threads: Send + Sync + 'static {
    /// Returns up to `limit` places where all of these words occur in the tenant's conversations,
    /// latest first.
    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ThreadHit>, Fault>>;
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ThreadArguments {
    /// Words that were all said in one message.
    query: String,
    /// Only in this session.
    session: Option<String>,
    /// Most places.
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u32>,
}

#[derive(Default)]
struct ThreadHits {
    places: Vec<ThreadHit>,
    more: bool,
    whole: bool,
}

/// The tool `thread_search` over these conversations, with a deadline per search.
pub fn thread_search(threads: Arc<dyn Threads>, deadline: Duration) -> FnTool {
    let description = format!(
        "Finds what was asked, said and answered in earlier conversations (past sessions, previous \
         chats), the latest {DEFAULT_PLACES} by default; they may be wrong or outdated."
    );
    let spec = arguments::spec::<ThreadArguments>("thread_search", description, ToolNeed::General);
    let spec = spec.rare();
    FnTool::new(spec, move |arguments: ThreadArguments, context| {
        let threads = Arc::clone(&threads);
        async move {
            let (session, limit) = arguments.checked()?;
            let (words, of) = (&*arguments.query, session.as_ref());
            let searched = timeout(deadline, search(&*threads, words, of, limit, &context)).await;
            let searched = searched.map_err(|_| {
                for_model!(
                    "the search over earlier conversations took too long: search for rarer words, \
                     or continue without it"
                )
            });
            let found = searched?.map_err(failed)?;
            let text = report(words, of, &context.session.name, &found);
            let data = json!({ "places": found.places, "more": found.more });
            Ok(ToolOutput::new(text, &data))
        }
    })
}

impl ThreadArguments {
    /// The session to search, if it is only one, and the number of places.
    fn checked(&self) -> Result<(Option<SessionName>, usize), ToolError> {
        if !self.query.contains(char::is_alphanumeric) {
            refuse!("`query` contains no word: use words that were said");
        }
        let limit = self.limit.unwrap_or(DEFAULT_PLACES);
        if !(1..=MAX_PLACES).contains(&limit) {
            refuse!("`limit` is {limit}, the range is 1 to {MAX_PLACES}: add words instead");
        }
        let session = self.session.as_deref().map(SessionName::new).transpose();
        // The name is not repeated, because it may be long.
        let session = session.map_err(|_| {
            for_model!(
                "`session` is not a session name: use one that a search has shown, or omit it"
            )
        })?;
        Ok((session, limit as usize))
    }
}

async fn search(
    threads: &dyn Threads,
    words: &str,
    of: Option<&SessionName>,
    limit: usize,
    context: &ToolContext,
) -> Result<ThreadHits, Fault> {
    let is_own = |place: &ThreadHit| {
        place.session == context.session.name && place.query == Some(context.query)
    };
    let asked_for =
        |place: &ThreadHit| of.is_none_or(|session| place.session == *session) && !is_own(place);
    let mut found = ThreadHits::default();
    for reach in SEARCH_LIMITS {
        let tenant = context.session.tenant.clone();
        let places = threads.search(tenant, words.to_owned(), reach).await?;
        found.whole = places.len() < reach;
        found.places = places.into_iter().filter(asked_for).collect();
        found.more = found.places.len() > limit;
        found.places.truncate(limit);
        if found.whole || found.more {
            break;
        }
    }
    Ok(found)
}

fn failed(fault: Fault) -> ToolError {
    match fault.class {
        FaultClass::Retryable { .. }
        | FaultClass::Unavailable { .. }
        | FaultClass::Overloaded { .. } => for_model!(
            "earlier conversations are currently not searchable: try again later, or continue \
             without them",
        ),
        FaultClass::Cancelled => cancelled_error(),
        FaultClass::Permanent | FaultClass::Bug => ToolError::Internal(fault),
    }
}

/// Formats the results of `query`, as seen from the session `here`.
fn report(query: &str, of: Option<&SessionName>, here: &SessionName, found: &ThreadHits) -> String {
    if found.places.is_empty() {
        return nothing(query, of, found.whole);
    }
    let mut text = String::new();
    for place in &found.places {
        let _ = writeln!(text, "{}", line(place, here));
    }
    let count = counted(found.places.len() as u64, "place");
    let _ = match (found.more, found.whole) {
        (true, _) => write!(
            text,
            "\n{count} shown, the latest first; there are more: add words, name a session, or raise limit"
        ),
        (false, true) => write!(text, "\nall found: {count}, the latest first"),
        (false, false) => write!(
            text,
            "\n{count} shown, the latest first; older ones were not searched: add words"
        ),
    };
    text
}

fn line(place: &ThreadHit, here: &SessionName) -> String {
    let (session, seq, at) = (&place.session, place.seq, place.at);
    let is_here = session == here;
    let this = if is_here { " (this session)" } else { "" };
    let who = match place.said {
        Utterance::Question => "the user asked",
        Utterance::Addition => "added while it was answered",
        Utterance::Answer => "Oracle answered",
    };
    let excerpt = shortened(&on_one_line(&place.excerpt), EXCERPT);
    format!("{session}{this}, event {seq}, {at}, {who}: {excerpt}")
}

fn nothing(query: &str, of: Option<&SessionName>, whole: bool) -> String {
    let query = quoted(query);
    let place = match of {
        Some(session) => format!("in the session {session}"),
        None => "in an earlier conversation".to_owned(),
    };
    let older = match whole {
        true => "",
        false => " among the latest places with these words",
    };
    format!(
        "No message has all words of {query} {place}{older}. Whole words are compared: try fewer \
         words, other forms, or other words."
    )
}
