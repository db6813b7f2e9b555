//! Another order of the same events: pauses, chosen by a seed, at every port.
//!
//! Under a paused clock the order in which tasks run is always the same. A pause of some yields or
//! milliseconds lets others run first. No pause is long enough for a time-out.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt, future::BoxFuture, stream};
use oracle_agent::{
    journal::{Error, Journal},
    llm::{Backend, DeltaStream, Request},
    model::ToolSpec,
    testkit::{InterceptedCall, InterceptedJournal, advance_time},
    tool::{Tool, ToolContext, ToolError, ToolOutput},
};
use serde_json::Value;

use super::Dice;

/// The pauses of one run. Clones share the seed's state.
#[derive(Clone, Default)]
pub(super) struct Order(Option<Arc<Mutex<Dice>>>);

impl Order {
    pub(super) fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(Mutex::new(Dice(seed)))))
    }

    pub(super) async fn pause(&self) {
        let Some(dice) = &self.0 else { return };
        let (kind, length) = {
            let mut dice = dice.lock().unwrap();
            (dice.below(5), dice.below(40) + 1)
        };
        match kind {
            0 => advance_time(Duration::from_millis(length)).await,
            1 => {
                for _ in 0..length / 8 {
                    tokio::task::yield_now().await;
                }
            }
            _ => {}
        }
    }

    pub(super) const fn around<T>(self, inner: T) -> Ordered<T> {
        Ordered { inner, order: self }
    }
}

/// A port with pauses before and after each call.
#[derive(Clone)]
pub(super) struct Ordered<T> {
    inner: T,
    order: Order,
}

impl InterceptedJournal for Ordered<Arc<dyn Journal>> {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        _: InterceptedCall,
        done: impl FnOnce() -> BoxFuture<'a, Result<T, Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Error>> {
        Box::pin(async move {
            self.order.pause().await;
            let answer = done().await;
            self.order.pause().await;
            answer
        })
    }
}

impl<B: Backend> Backend for Ordered<B> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn call(&self, request: Request) -> DeltaStream {
        let deltas = (self.inner.call(request), self.order.clone());
        let next = async |(mut deltas, order): (DeltaStream, Order)| {
            order.pause().await;
            let delta = deltas.next().await?;
            Some((delta, (deltas, order)))
        };
        stream::unfold(deltas, next).boxed()
    }
}

impl<T: Tool> Tool for Ordered<T> {
    fn spec(&self) -> &ToolSpec {
        self.inner.spec()
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (order, call) = (self.order.clone(), self.inner.call(arguments, context));
        Box::pin(async move {
            order.pause().await;
            let output = call.await;
            order.pause().await;
            output
        })
    }
}
