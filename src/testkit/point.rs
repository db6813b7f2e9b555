//! Crash points of a process: at an append ([`AppendPoint`]), in a model's stream or in a tool call.

use std::{
    process,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use futures_util::{StreamExt, future::BoxFuture, stream};
use serde_json::Value;

use super::{AppendPoint, CrashTarget, CrashingJournal, Side};
use crate::{
    journal::Journal,
    llm::{Backend, Delta, DeltaStream, Request},
    model::{Capabilities, ToolSpec},
    tool::{Tool, ToolContext, ToolError, ToolOutput},
};

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
        let less = |left: u64| left.checked_sub(1);
        self.0.fetch_update(Relaxed, Relaxed, less) == Ok(1)
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
