//! Crash points of a process: at an append ([`AppendPoint`]), in a model's stream or in a tool call.

use std::{
    process,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use futures_util::{StreamExt, future::BoxFuture, stream};
use serde_json::Value;

use super::{AppendPoint, CrashPointError, CrashTarget, CrashingJournal};
use crate::{
    journal::Journal,
    llm::{Backend, Delta, DeltaStream, Request},
    model::{Capabilities, ToolSpec},
    tool::{Tool, ToolContext, ToolError, ToolOutput},
};

/// A crash point, written as a [`AppendPoint`], `during:stream:3` or `during:tool:1`.
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
        let before = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        before == Ok(1)
    }
}

impl FromStr for CrashPoint {
    type Err = CrashPointError;

    fn from_str(text: &str) -> Result<Self, CrashPointError> {
        let Some(during) = text.strip_prefix("during:") else {
            return text.parse().map(Self::Append);
        };
        let (work, number) = during.split_once(':').ok_or(CrashPointError)?;
        let countdown = Countdown::new(number.parse().map_err(|_| CrashPointError)?);
        match work {
            "stream" => Ok(Self::Stream(countdown)),
            "tool" => Ok(Self::Tool(countdown)),
            _ => Err(CrashPointError),
        }
    }
}

impl CrashPoint {
    /// Wraps the journal if the point is at an append.
    pub fn in_journal(&self, journal: Arc<dyn Journal>) -> Arc<dyn Journal> {
        match self {
            Self::Append(point) => Arc::new(CrashingJournal::new(
                journal,
                Some(point.clone()),
                CrashTarget::Process,
            )),
            Self::Stream(_) | Self::Tool(_) => journal,
        }
    }

    /// Wraps the model if the point is in a stream.
    pub fn in_stream(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        match self {
            Self::Stream(due) => {
                let due = due.clone();
                Arc::new(CrashAfter { inner, due })
            }
            Self::Append(_) | Self::Tool(_) => inner,
        }
    }

    /// Wraps the tool if the point is in a tool call.
    pub fn in_tool(&self, inner: Arc<dyn Tool>) -> Arc<dyn Tool> {
        match self {
            Self::Tool(due) => {
                let due = due.clone();
                Arc::new(CrashAfter { inner, due })
            }
            Self::Append(_) | Self::Stream(_) => inner,
        }
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
        let append = point("after:turn.replied:3");
        assert!(matches!(append, Ok(CrashPoint::Append(point)) if point.number == 3));
        assert!(matches!(
            point("during:stream:1"),
            Ok(CrashPoint::Stream(_))
        ));
        assert!(matches!(point("during:tool:2"), Ok(CrashPoint::Tool(_))));
        for text in [
            "",
            "during:stream",
            "during:sleep:1",
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
