//! Crash points: at an append of a journal, before it lands, or after it and before its reply; of a
//! process also in a model's stream or in a tool call.
//!
//! Nothing becomes durable between two appends, so no other points of a journal matter.

use std::{
    fmt, process,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{StreamExt, future::BoxFuture, stream};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::{
    Panics,
    intercept::{InterceptedCall, InterceptedJournal, Operation},
};
use crate::{
    journal::{Journal, JournalFuture},
    llm::{Backend, Delta, DeltaStream, Request},
    model::{Capabilities, Record, Sid, ToolSpec, words},
    tool::{Tool, ToolContext, ToolError, ToolOutput},
};

words! {
    /// When to crash.
    pub enum Side {
        /// Before the append lands.
        Before = "before",
        /// After it landed, before the reply.
        After = "after",
    }
}

/// A crash point at an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendPoint {
    /// When to crash.
    pub side: Side,
    /// Type of a record in the append; `None` for any append.
    pub kind: Option<String>,
    /// Number of the append over all sessions, from 1.
    pub number: u64,
}

impl AppendPoint {
    /// Creates the point at the append with this number.
    pub const fn at(side: Side, number: u64) -> Self {
        let kind = None;
        Self { side, kind, number }
    }

    fn matches_call(&self, call: &InterceptedCall) -> bool {
        let has = |kind: &String| {
            let mut records = call.records.iter();
            records.any(|record| record.fact.kind() == kind)
        };
        call.operation == Operation::Append && self.kind.as_ref().is_none_or(has)
    }
}

impl fmt::Display for AppendPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_deref().unwrap_or("*");
        write!(f, "{}:{kind}:{}", self.side, self.number)
    }
}

/// What crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashTarget {
    /// The system: all writes hang, and the test aborts it after [`CrashingJournal::crashed`].
    System,
    /// The appending actor, once.
    Actor,
    /// The process.
    Process,
}

/// Session and record types of an append.
pub type AppendedKinds = (Sid, Vec<&'static str>);

/// A journal with a crash point. Clones share the counts.
#[derive(Clone)]
pub struct CrashingJournal {
    inner: Arc<dyn Journal>,
    /// With `None`, the journal only counts.
    point: Option<AppendPoint>,
    target: CrashTarget,
    counted: Arc<AtomicU64>,
    crashed: Arc<watch::Sender<bool>>,
    landed: Arc<Mutex<Vec<AppendedKinds>>>,
}

impl CrashingJournal {
    /// Wraps a journal.
    pub fn new(inner: Arc<dyn Journal>, point: Option<AppendPoint>, target: CrashTarget) -> Self {
        Self {
            inner,
            point,
            target,
            counted: Arc::default(),
            crashed: Arc::new(watch::Sender::new(false)),
            landed: Arc::default(),
        }
    }

    /// Whether the crash point was reached.
    pub fn has_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Waits for the crash point.
    pub async fn crashed(&self) {
        // Cannot close, because `self` holds the sender.
        let _ = self.crashed.subscribe().wait_for(|crashed| *crashed).await;
    }

    /// Appends that landed.
    pub fn landed(&self) -> Vec<AppendedKinds> {
        self.landed.lock().clone()
    }

    fn crash_side(&self, call: &InterceptedCall) -> Option<Side> {
        let point = self.point.as_ref();
        let point = point.filter(|point| point.matches_call(call))?;
        let number = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        (number == point.number).then_some(point.side)
    }

    async fn crash(&self) {
        self.crashed.send_replace(true);
        match self.target {
            CrashTarget::System => std::future::pending().await,
            CrashTarget::Actor => Panics::times(1).panic_if_due(),
            CrashTarget::Process => process::abort(),
        }
    }
}

impl InterceptedJournal for CrashingJournal {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        call: InterceptedCall,
        done: impl FnOnce() -> JournalFuture<'a, T> + Send + 'a,
    ) -> JournalFuture<'a, T> {
        Box::pin(async move {
            let is_write = matches!(call.operation, Operation::Claim | Operation::Append);
            if is_write && self.target == CrashTarget::System && self.has_crashed() {
                std::future::pending::<()>().await;
            }
            let crashing = self.crash_side(&call);
            if crashing == Some(Side::Before) {
                self.crash().await;
            }
            let answer = done().await?;
            if crashing == Some(Side::After) {
                self.crash().await;
            }
            Ok(answer)
        })
    }

    fn on_appended(&self, sid: Sid, records: &[Arc<Record>]) {
        let kinds = records.iter().map(|record| record.fact.kind());
        self.landed.lock().push((sid, kinds.collect()));
    }
}

/// A crash point: `after:turn.replied:3` (the third append with such a record, or with `*` for any
/// type), `during:stream:3` or `during:tool:1`.
#[derive(Debug, Clone)]
pub enum CrashPoint {
    /// At an append.
    Append(AppendPoint),
    /// After a piece of a model's text, counted over all replies.
    Stream(Countdown),
    /// Between a tool's work and its result, counted over all calls.
    Tool(Countdown),
}

/// Counts down to one event. Clones share the count.
#[derive(Debug, Clone)]
pub struct Countdown(Arc<AtomicU64>);

impl Countdown {
    fn new(number: u64) -> Self {
        Self(Arc::new(AtomicU64::new(number)))
    }

    fn is_due(&self) -> bool {
        let (order, less) = (Ordering::Relaxed, |left: u64| left.checked_sub(1));
        self.0.fetch_update(order, order, less) == Ok(1)
    }
}

/// The error for an invalid crash point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a point is written as `before:KIND:NUMBER` or `after:KIND:NUMBER`, with `*` for any kind, or as \
     `during:stream:NUMBER` or `during:tool:NUMBER`"
)]
pub struct CrashPointError;

impl FromStr for CrashPoint {
    type Err = CrashPointError;

    fn from_str(text: &str) -> Result<Self, CrashPointError> {
        let parts: Vec<&str> = text.split(':').collect();
        let [when, kind, number] = parts[..] else {
            return Err(CrashPointError);
        };
        let number = number.parse().map_err(|_| CrashPointError)?;
        let side = match (when, kind) {
            ("during", "stream") => return Ok(Self::Stream(Countdown::new(number))),
            ("during", "tool") => return Ok(Self::Tool(Countdown::new(number))),
            _ => Side::ALL.into_iter().find(|side| side.as_str() == when),
        };
        Ok(Self::Append(AppendPoint {
            side: side.ok_or(CrashPointError)?,
            kind: (kind != "*").then(|| kind.to_owned()),
            number,
        }))
    }
}

impl CrashPoint {
    /// Wraps the journal if the point is at an append.
    pub fn in_journal(&self, journal: Arc<dyn Journal>) -> Arc<dyn Journal> {
        let Self::Append(point) = self else {
            return journal;
        };
        let (point, target) = (Some(point.clone()), CrashTarget::Process);
        Arc::new(CrashingJournal::new(journal, point, target))
    }

    /// Wraps the model if the point is in a stream.
    pub fn in_stream(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        let Self::Stream(due) = self else {
            return inner;
        };
        let due = due.clone();
        Arc::new(CrashAfter { inner, due })
    }

    /// Wraps the tool if the point is in a tool call.
    pub fn in_tool(&self, inner: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let Self::Tool(due) = self else {
            return inner;
        };
        let due = due.clone();
        Arc::new(CrashAfter { inner, due })
    }
}

struct CrashAfter<T> {
    inner: T,
    due: Countdown,
}

impl Backend for CrashAfter<Arc<dyn Backend>> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.inner.capabilities(model)
    }

    fn call(&self, request: Request) -> DeltaStream {
        let deltas = (self.inner.call(request), self.due.clone(), false);
        let next = async |(mut deltas, due, was_due): (DeltaStream, Countdown, bool)| {
            if was_due {
                process::abort();
            }
            let piece = deltas.next().await?;
            let is_due = matches!(piece, Ok(Delta::Text(_))) && due.is_due();
            Some((piece, (deltas, due, is_due)))
        };
        stream::unfold(deltas, next).boxed()
    }
}

impl Tool for CrashAfter<Arc<dyn Tool>> {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let is_due = self.due.is_due();
        let call = self.inner.call(arguments, context);
        Box::pin(async move {
            let given = call.await;
            if is_due {
                process::abort();
            }
            given
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crash_point_parses_as_append_stream_or_tool() {
        let point = |text: &str| text.parse::<CrashPoint>();
        let turn = AppendPoint {
            kind: Some("turn.replied".into()),
            ..AppendPoint::at(Side::After, 3)
        };
        for (text, expected) in [
            ("after:turn.replied:3", turn),
            ("before:*:12", AppendPoint::at(Side::Before, 12)),
        ] {
            assert_eq!(expected.to_string(), text);
            let is_same = |point| matches!(point, CrashPoint::Append(point) if point == expected);
            assert!(point(text).is_ok_and(is_same), "{text}");
        }
        assert!(matches!(
            point("during:stream:1"),
            Ok(CrashPoint::Stream(_))
        ));
        assert!(matches!(point("during:tool:2"), Ok(CrashPoint::Tool(_))));
        for text in [
            "",
            "after:turn.replied",
            "after:*:x",
            "after:*:1:2",
            "during:stream",
            "during:sleep:1",
            "during:*:1",
            "during:tool:x",
            "during:tool:1:2",
        ] {
            assert!(point(text).is_err(), "{text}");
        }
    }

    #[test]
    fn countdown_fires_once() {
        let countdown = Countdown::new(2);
        let due: Vec<_> = (0..4).map(|_| countdown.clone().is_due()).collect();
        assert_eq!(due, [false, true, false, false]);
    }
}
