//! `thread_search` over the journal's conversations.

use std::sync::Arc;

use futures_util::{FutureExt, TryFutureExt, future::BoxFuture};

use crate::{
    journal::{Error, Hit, Journal},
    model::{Fault, FaultCode, TenantId},
    tool::{ThreadHit, Threads},
};

/// Adapts a journal to [`Threads`], for hosts that build their own tools.
pub struct JournalThreads(Arc<dyn Journal>);

impl JournalThreads {
    /// Adapts this journal.
    pub const fn new(journal: Arc<dyn Journal>) -> Self {
        Self(journal)
    }
}

impl Threads for JournalThreads {
    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ThreadHit>, Fault>> {
        let found = self.0.search(tenant, words, limit);
        found
            .map_ok(|hits| hits.into_iter().map(thread_hit).collect())
            .map_err(|error| fault(&error))
            .boxed()
    }
}

fn thread_hit(hit: Hit) -> ThreadHit {
    ThreadHit {
        session: hit.key.name,
        seq: hit.seq,
        at: hit.at,
        query: hit.query,
        said: hit.said,
        excerpt: hit.excerpt,
    }
}

fn fault(error: &Error) -> Fault {
    let detail = error.to_string();
    match error {
        Error::Unavailable(_) => Fault::retryable(FaultCode::JournalUnavailable, detail),
        Error::Broken(_) => Fault::permanent(FaultCode::JournalBroken, detail),
        _ => Fault::permanent(FaultCode::JournalRefused, detail),
    }
}
