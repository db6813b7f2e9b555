//! Watches the requests of tests' systems: each must extend the one before it of its session, or a
//! record between them says why not ([`prefix`]).

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Weak},
};

use futures_util::{StreamExt as _, future, stream};
use parking_lot::Mutex;

use super::prefix;
use crate::{
    journal::Journal,
    kernel::CallToken,
    llm::{Backend, Delta, DeltaStream, Request, ToolChoice},
    model::{
        Attempt, Capabilities, Message, Record, Role, Seq, Sid,
        record::{Fact, TurnFact},
    },
};

tokio::task_local! {
    static CALL: (Sid, CallToken);
}

/// Runs a backend's call for a turn of a session.
pub(crate) fn calling<T>(sid: Sid, token: CallToken, call: impl FnOnce() -> T) -> T {
    CALL.sync_scope((sid, token), call)
}

/// What was sent, over all systems on one journal.
struct Watch {
    journal: Weak<dyn Journal>,
    /// The last request of each session to each model.
    sent: Mutex<HashMap<(Sid, String), Sent>>,
    broken: Mutex<Vec<String>>,
}

struct Sent {
    token: CallToken,
    request: Request,
    reply: Option<Arc<Message>>,
}

static WATCHES: Mutex<Vec<Arc<Watch>>> = Mutex::new(Vec::new());

/// The watch over a journal.
fn over(journal: &Arc<dyn Journal>) -> Arc<Watch> {
    let mut all = WATCHES.lock();
    all.retain(|watch| watch.journal.strong_count() > 0);
    let is_same =
        |watch: &&Arc<Watch>| std::ptr::addr_eq(watch.journal.as_ptr(), Arc::as_ptr(journal));
    if let Some(known) = all.iter().find(is_same) {
        return Arc::clone(known);
    }
    let watch = Arc::new(Watch {
        journal: Arc::downgrade(journal),
        sent: Mutex::default(),
        broken: Mutex::default(),
    });
    all.push(Arc::clone(&watch));
    watch
}

/// Fails the test at its end if a request was wrong.
#[doc(hidden)]
pub struct Verdict(Arc<Watch>);

impl Verdict {
    /// Judges what is sent for the sessions of a journal.
    pub fn of(journal: &Arc<dyn Journal>) -> Self {
        Self(over(journal))
    }
}

impl Drop for Verdict {
    fn drop(&mut self) {
        let broken = mem::take(&mut *self.0.broken.lock());
        let is_told = broken.is_empty() || std::thread::panicking();
        let broken = broken.get(..3).unwrap_or(&broken).join("\n");
        assert!(
            is_told,
            "requests that do not extend those before them:\n{broken}"
        );
    }
}

/// Watches a backend.
pub(super) fn watched(inner: Arc<dyn Backend>, journal: &Arc<dyn Journal>) -> Arc<dyn Backend> {
    Arc::new(Watched {
        inner,
        watch: over(journal),
    })
}

struct Watched {
    inner: Arc<dyn Backend>,
    watch: Arc<Watch>,
}

impl Backend for Watched {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.inner.capabilities(model)
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn call(&self, request: Request) -> DeltaStream {
        let reply = self.inner.call(request.clone());
        let Ok((sid, token)) = CALL.try_with(|call| *call) else {
            return reply;
        };
        if is_summary(&request) {
            return reply;
        }
        let watch = Arc::clone(&self.watch);
        let key = (sid, format!("{}/{}", self.provider(), request.model));
        let sent = Sent {
            token,
            request: request.clone(),
            reply: None,
        };
        let before = watch.sent.lock().insert(key.clone(), sent);
        let differing = before.filter(|before| {
            let (request_before, reply) = (&before.request, before.reply.as_ref());
            prefix::continues(self.provider(), request_before, reply, &request).is_err()
        });
        let judge = {
            let (watch, key) = (Arc::clone(&watch), key.clone());
            async move {
                if let Some(before) = differing {
                    watch.judge(&key, &before, &request, token).await;
                }
            }
        };
        let reply = reply.inspect(move |piece| {
            if let Ok(Delta::Done(reply)) = piece
                && let Some(sent) = watch.sent.lock().get_mut(&key)
                && sent.token == token
            {
                let parts = reply.parts.clone();
                sent.reply = Some(Arc::new(Message::new(Role::Assistant, parts)));
            }
        });
        let judged = stream::once(judge).filter_map(|()| future::ready(None));
        judged.chain(reply).boxed()
    }
}

impl Watch {
    /// A request differs from the one before it: looks for the reason. A reply counts as it was
    /// recorded, without what was no part of its text.
    async fn judge(&self, key: &(Sid, String), before: &Sent, request: &Request, token: CallToken) {
        let (sid, model) = key;
        let Some(journal) = self.journal.upgrade() else {
            return;
        };
        let log = journal.read(*sid, Seq(0), usize::MAX).await;
        let log = log.unwrap_or_default();
        let log: Vec<_> = log.iter().map(|entry| &*entry.record).collect();
        // An ephemeral session is in a journal that this watch cannot read.
        let Some(begun) = log.iter().position(|record| begins(record, before.token)) else {
            return;
        };
        let provider = model.split('/').next().unwrap_or_default();
        let sent = (before.token.query, &before.request);
        if let Err(what) = prefix::follows(provider, sent, request, &log, begun + 1) {
            let what = format!("{sid}: {token:?} after {:?}: {what}", before.token);
            self.broken.lock().push(what);
        }
    }
}

/// Whether the record is the beginning of this attempt.
fn begins(record: &Record, token: CallToken) -> bool {
    let attempt: Attempt = match &record.fact {
        Fact::Turn(TurnFact::Started(started)) => started.attempt,
        Fact::Turn(TurnFact::Restarted(restarted)) => restarted.attempt,
        _ => return false,
    };
    let of = (Some(token.query), Some(token.turn));
    (record.query, record.turn) == of && attempt == token.attempt
}

/// Whether the request asks for a summary, which is beside the conversation.
fn is_summary(request: &Request) -> bool {
    let [first] = request.messages.as_slice() else {
        return false;
    };
    first.role == Role::User && request.tools.is_empty() && request.tool_choice == ToolChoice::None
}
