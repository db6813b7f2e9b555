//! `thread_search`: what was said in earlier conversations of the same tenant.
//!
//! It searches questions, words put in while they were answered, and answers; not what tools brought.
//! Where conversations are kept it does not know: whoever has them implements [`Threads`].
//!
//! **Invariants:** a call searches the tenant of its own session and no other; the query that calls is
//! no hit of its own search; the size of a result is bounded, whatever was said.

mod report;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::{Tool, ToolContext, ToolError, ToolOutput, arguments, blocking::withdrawn};
use crate::model::{
    Fault, FaultClass, QueryId, Seq, SessionName, TenantId, Timestamp, Utterance,
    tool::{ToolNeed, ToolSpec},
};

use settings::MOST_PLACES;
pub use settings::ThreadSearchSettings;

/// How many hits are asked for, one number after the other, until enough of them are wanted.
const REACH: [usize; 3] = [64, 512, 4_096];

/// Something that was said in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// In which session of the tenant.
    pub session: SessionName,
    /// Where in its log.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// In which query, if in any.
    pub query: Option<QueryId>,
    /// As what.
    pub said: Utterance,
    /// What stands around the words found.
    pub excerpt: String,
}

/// The conversations that there are: a port.
pub trait Threads: Send + Sync + 'static {
    /// Up to `limit` places where somebody of this tenant said all of these words, the latest first.
    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Said>, Fault>>;
}

/// The tool `thread_search`.
pub struct ThreadSearch {
    spec: ToolSpec,
    threads: Arc<dyn Threads>,
    settings: ThreadSearchSettings,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Words that must all have been said in one message or answer: whole words, in any case and
    /// order.
    query: String,
    /// Only what was said in the session of this name. Default: in all of them.
    #[serde(default)]
    #[schemars(with = "String")]
    session: Option<String>,
    /// Most places to show.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 20))]
    limit: Option<u32>,
}

/// A call, understood.
struct Wanted {
    words: String,
    session: Option<SessionName>,
    limit: usize,
}

/// What a search brought.
struct Found {
    places: Vec<Said>,
    /// Whether more are known than are shown.
    more: bool,
    /// Whether all that was said was looked at.
    whole: bool,
}

impl ThreadSearch {
    /// A tool over these conversations. Check the settings first
    /// ([`ThreadSearchSettings::validate`]).
    #[must_use]
    pub fn new(threads: Arc<dyn Threads>, settings: ThreadSearchSettings) -> Self {
        Self {
            spec: Self::declared(settings),
            threads,
            settings,
        }
    }

    /// What it declares of itself, also where there are no conversations to search.
    #[must_use]
    pub fn declared(settings: ThreadSearchSettings) -> ToolSpec {
        let description = format!(
            "Finds what was asked and answered in earlier conversations with the user. Each place \
             comes with its session, its event number, its time and who said it, the latest first, \
             {} at most unless limit says otherwise. What was said earlier may have been wrong then \
             or be out of date now.",
            settings.places
        );
        arguments::reading::<Arguments>("thread_search", description, ToolNeed::General)
    }
}

impl Tool for ThreadSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (threads, settings) = (Arc::clone(&self.threads), self.settings);
        Box::pin(async move {
            let arguments: Arguments = arguments::arguments(arguments)?;
            let wanted = arguments.wanted(settings)?;
            let searched = timeout(settings.deadline, search(&*threads, &wanted, &context));
            let found = tokio::select! {
                biased;
                () = context.cancelled.cancelled() => return Err(withdrawn()),
                searched = searched => searched.map_err(|_| too_slow())?.map_err(failed)?,
            };
            let (of, here) = (wanted.session.as_ref(), &context.session.name);
            Ok(report::report(&wanted.words, of, here, &found).into())
        })
    }
}

impl Arguments {
    fn wanted(self, settings: ThreadSearchSettings) -> Result<Wanted, ToolError> {
        if !self.query.contains(char::is_alphanumeric) {
            return Err(ToolError::tell(
                "`query` has no word in it: give words that were said",
            ));
        }
        let limit = self.limit.unwrap_or(settings.places);
        if !(1..=MOST_PLACES).contains(&limit) {
            return Err(ToolError::Tell(format!(
                "`limit` is {limit}, allowed is 1 to {MOST_PLACES}: add words instead"
            )));
        }
        let session = self.session.as_deref().map(SessionName::new).transpose();
        // Such a name is not repeated: it may be long.
        let session = session.map_err(|_| {
            ToolError::tell(
                "`session` is no name of a session: take one that a search has shown, or leave it out",
            )
        })?;
        Ok(Wanted {
            words: self.query,
            session,
            limit: limit as usize,
        })
    }
}

/// Asks for more hits as long as too few of those that came are wanted.
async fn search(
    threads: &dyn Threads,
    wanted: &Wanted,
    context: &ToolContext,
) -> Result<Found, Fault> {
    let is_own =
        |place: &Said| place.session == context.session.name && place.query == Some(context.query);
    let asked_for = |place: &Said| {
        let session = wanted.session.as_ref();
        session.is_none_or(|session| place.session == *session) && !is_own(place)
    };
    let mut found = Found {
        places: Vec::new(),
        more: false,
        whole: true,
    };
    for reach in REACH {
        let tenant = context.session.tenant.clone();
        let places = threads.search(tenant, wanted.words.clone(), reach).await?;
        found.whole = places.len() < reach;
        found.places = places.into_iter().filter(asked_for).collect();
        found.more = found.places.len() > wanted.limit;
        found.places.truncate(wanted.limit);
        if found.whole || found.more {
            break;
        }
    }
    Ok(found)
}

fn too_slow() -> ToolError {
    ToolError::tell(
        "the search over earlier conversations took too long: search for rarer words, or go on without it",
    )
}

fn failed(fault: Fault) -> ToolError {
    match fault.class {
        FaultClass::Retryable { .. }
        | FaultClass::Unavailable { .. }
        | FaultClass::Overloaded { .. } => ToolError::tell(
            "earlier conversations cannot be searched at the moment: try again later, or go on without them",
        ),
        FaultClass::Cancelled => withdrawn(),
        FaultClass::Permanent | FaultClass::Bug => ToolError::Broken(fault),
    }
}
