//! Blocking work behind a tool: bounded in number, ended by a deadline or a cancelled query.
//!
//! **Invariants:** a permit is held until its thread is really done, so stuck work cannot pile up;
//! when the answer is no longer wanted (cancelled, or its future dropped) the work's token fires.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::{sync::Semaphore, task::spawn_blocking, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{ToolContext, ToolError, ToolOutput, arguments};
use crate::model::{Fault, FaultClass};

/// How long work may take to notice that its deadline has passed.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Blocking {
    permits: Arc<Semaphore>,
    deadline: Duration,
}

impl Blocking {
    /// At most `concurrent` at a time, each told to stop after `deadline`.
    pub(super) fn new(concurrent: usize, deadline: Duration) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(concurrent)),
            deadline,
        }
    }

    /// Answers a call of a tool: reads its arguments and runs `work` ([`Self::run`]).
    pub(super) fn call<A: DeserializeOwned + Send + 'static>(
        &self,
        arguments: Value,
        context: ToolContext,
        work: impl FnOnce(A, &CancellationToken) -> Result<ToolOutput, ToolError> + Send + 'static,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let blocking = self.clone();
        Box::pin(async move {
            let wanted: A = arguments::arguments(arguments)?;
            blocking.run(context, move |stop| work(wanted, stop)).await
        })
    }

    /// Runs `work` on a thread of its own.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        context: ToolContext,
        work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let cancelled = &context.cancelled;
        let permit = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Err(withdrawn()),
            permit = Arc::clone(&self.permits).acquire_owned() => permit.map_err(|closed| bug(&closed))?,
            () = sleep(self.deadline) => return Err(ToolError::tell(
                "too many calls of this tool are running: try again, or go on without it",
            )),
        };
        let stop = cancelled.child_token();
        let _stops_when_dropped = stop.clone().drop_guard();
        let told = stop.clone();
        let mut done = spawn_blocking(move || {
            let _permit = permit;
            work(&told)
        });
        tokio::select! {
            biased;
            () = cancelled.cancelled() => return Err(withdrawn()),
            result = &mut done => return result.map_err(|panic| bug(&panic))?,
            () = sleep(self.deadline) => stop.cancel(),
        }
        tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(withdrawn()),
            result = done => result.map_err(|panic| bug(&panic))?,
            () = sleep(GRACE) => Err(ToolError::tell(
                "the file system did not answer in time: try a smaller part of the project",
            )),
        }
    }
}

pub(super) fn withdrawn() -> ToolError {
    ToolError::tell("the call was cancelled before it was done")
}

fn bug(what: &dyn std::error::Error) -> ToolError {
    let class = FaultClass::Bug;
    ToolError::Broken(Fault {
        class,
        code: "tool_panicked".to_owned(),
        detail: what.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallId, QueryId, SessionKey, SessionName};

    const SOON: Duration = Duration::from_millis(1);
    const LATE: Duration = Duration::from_secs(60);

    fn context() -> ToolContext {
        ToolContext {
            call: CallId::new("call"),
            session: SessionKey::local(SessionName::new("s").unwrap()),
            query: QueryId(1),
            cancelled: CancellationToken::new(),
        }
    }

    fn until_stopped(stop: &CancellationToken) -> Result<&'static str, ToolError> {
        while !stop.is_cancelled() {
            std::thread::yield_now();
        }
        Ok("as far as I got")
    }

    #[tokio::test]
    async fn what_was_found_by_the_deadline_counts() {
        let blocking = Blocking::new(1, SOON);
        assert_eq!(
            blocking.run(context(), until_stopped).await,
            Ok("as far as I got")
        );
    }

    #[tokio::test]
    async fn a_cancelled_call_ends_at_once_and_stops_its_work() {
        for (name, cancel_first) in [("before", true), ("during", false)] {
            let blocking = Blocking::new(1, LATE);
            let context = context();
            let cancelled = context.cancelled.clone();
            let mut call = Box::pin(blocking.run(context, until_stopped));
            if cancel_first {
                cancelled.cancel();
            } else {
                assert!(futures_util::poll!(&mut call).is_pending());
                cancelled.cancel();
            }
            assert_eq!(call.await, Err(withdrawn()), "{name}");
            // The permit comes back, so the thread has ended.
            assert!(blocking.permits.acquire().await.is_ok(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_stops() {
        let blocking = Blocking::new(1, LATE);
        let mut call = Box::pin(blocking.run(context(), until_stopped));
        assert!(futures_util::poll!(&mut call).is_pending());
        drop(call);
        assert!(blocking.permits.acquire().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_gets_no_turn_says_so() {
        let blocking = Blocking::new(1, LATE);
        let _all = blocking.permits.acquire().await;
        let error = blocking
            .run(context(), until_stopped)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("too many calls of this tool are running"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_panic_is_a_fault_of_the_tool() {
        let blocking = Blocking::new(1, LATE);
        let result = blocking.run::<()>(context(), |_| panic!("boom")).await;
        let Err(ToolError::Broken(fault)) = result else {
            panic!("{result:?}")
        };
        assert_eq!(
            (fault.class, fault.code.as_str()),
            (FaultClass::Bug, "tool_panicked")
        );
    }
}
