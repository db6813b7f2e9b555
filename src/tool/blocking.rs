//! Runs blocking work of tools, with a concurrency limit, a deadline and cancellation.
//!
//! **Invariants:** a permit is held until its thread has ended, so that stuck work cannot pile up;
//! dropping the future of a call fires its token.

use std::{sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{FnTool, ToolError, ToolOutput};
use crate::model::{Fault, FaultClass, FaultCode, ToolSpec};

/// Time that work may take to notice its deadline.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct BlockingRunner {
    permits: Arc<Semaphore>,
    deadline: Duration,
}

impl BlockingRunner {
    /// Allows `concurrent` calls at a time, each stopped after `deadline`.
    pub(super) fn new(concurrent: usize, deadline: Duration) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(concurrent)),
            deadline,
        }
    }

    /// A tool whose calls run this work.
    pub(super) fn tool<A: DeserializeOwned + Send + 'static>(
        self,
        spec: ToolSpec,
        work: impl Fn(A, &CancellationToken) -> Result<ToolOutput, ToolError> + Send + Sync + 'static,
    ) -> FnTool {
        let work = Arc::new(work);
        FnTool::new(spec, move |wanted: A, _| {
            let (blocking, work) = (self.clone(), Arc::clone(&work));
            async move { blocking.run(move |stop| work(wanted, stop)).await }
        })
    }

    /// Waits for a permit.
    pub(super) async fn permit(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        let permit = timeout(self.deadline, Arc::clone(&self.permits).acquire_owned()).await;
        let Ok(permit) = permit else {
            refuse!("too many calls of this tool are running: try again, or continue without it");
        };
        permit.map_err(|closed| internal_error(&closed))
    }

    /// Runs `work` on a blocking thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let permit = self.permit().await?;
        let stop = CancellationToken::new();
        let _stops_when_dropped = stop.clone().drop_guard();
        let token = stop.clone();
        let mut running = spawn_blocking(move || {
            let _permit = permit;
            work(&token)
        });
        let mut done = timeout(self.deadline, &mut running).await;
        if done.is_err() {
            stop.cancel();
            done = timeout(GRACE, running).await;
        }
        let Ok(done) = done else {
            refuse!("the file system did not answer in time: try a smaller part of the project");
        };
        done.map_err(|panic| internal_error(&panic))?
    }
}

fn internal_error(what: &dyn std::error::Error) -> ToolError {
    ToolError::Internal(Fault {
        class: FaultClass::Bug,
        code: FaultCode::ToolPanicked,
        detail: what.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        model::ToolNeed,
        testkit::tool_context,
        tool::{Tool, arguments, function::cancelled_error},
    };

    const SOON: Duration = Duration::from_millis(1);
    const LATE: Duration = Duration::from_secs(60);

    fn until_stopped(stop: &CancellationToken) -> Result<ToolOutput, ToolError> {
        while !stop.is_cancelled() {
            std::thread::yield_now();
        }
        Ok("as far as I got".into())
    }

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}

    /// A tool whose calls end when they are stopped.
    fn tool(blocking: &BlockingRunner) -> FnTool {
        let spec = arguments::spec::<Nothing>("t", String::new(), ToolNeed::General);
        let tool = blocking.clone();
        tool.tool(spec, |_: Nothing, stop| until_stopped(stop))
    }

    #[tokio::test]
    async fn call_returns_partial_results_at_the_deadline() {
        let blocking = BlockingRunner::new(1, SOON);
        assert_eq!(
            blocking.run(until_stopped).await,
            Ok("as far as I got".into())
        );
    }

    #[tokio::test]
    async fn a_cancelled_call_ends_at_once_and_stops_its_work() {
        for (name, cancel_first) in [("before", true), ("during", false)] {
            let blocking = BlockingRunner::new(1, LATE);
            let context = tool_context();
            let cancelled = context.cancelled.clone();
            let mut call = tool(&blocking).call(json!({}), context);
            if cancel_first {
                cancelled.cancel();
            } else {
                assert!(futures_util::poll!(&mut call).is_pending());
                cancelled.cancel();
            }
            assert_eq!(call.await, Err(cancelled_error()), "{name}");
            // The permit is released, so the thread has ended.
            assert!(blocking.permits.acquire().await.is_ok(), "{name}");
        }
    }

    #[tokio::test]
    async fn dropped_call_stops_its_work() {
        let blocking = BlockingRunner::new(1, LATE);
        let mut call = Box::pin(blocking.run(until_stopped));
        assert!(futures_util::poll!(&mut call).is_pending());
        drop(call);
        assert!(blocking.permits.acquire().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn call_without_a_permit_is_reported_as_busy() {
        let blocking = BlockingRunner::new(1, LATE);
        let _all = blocking.permits.acquire().await;
        let error = blocking.run(until_stopped).await.unwrap_err().to_string();
        assert!(
            error.starts_with("too many calls of this tool are running"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_panic_is_a_fault_of_the_tool() {
        let blocking = BlockingRunner::new(1, LATE);
        let result = blocking.run::<()>(|_| panic!("boom")).await;
        let Err(ToolError::Internal(fault)) = result else {
            panic!("{result:?}")
        };
        assert_eq!(
            (fault.class, fault.code),
            (FaultClass::Bug, FaultCode::ToolPanicked)
        );
    }
}
