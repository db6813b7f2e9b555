//! Mailboxes of shared actors, with a count of pending messages.
//!
//! Ractor's mailboxes are unbounded, so admission happens before the cast: at the bound, messages
//! from outside are refused; consequences of admitted work are counted but always accepted. Each
//! message carries a guard.
//!
//! **Invariant:** a count is the number of messages that were sent and neither taken nor dropped,
//! over an actor and its predecessors.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ractor::{ActorRef, RpcReplyPort, rpc::CallResult};

/// Default bound of a mailbox: a fraction of a second's work for the fastest actor.
pub(super) const CAPACITY: usize = 65_536;

pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Depth(Arc<Gauge>);

#[derive(Debug)]
struct Gauge {
    waiting: AtomicUsize,
    most: usize,
}

impl Depth {
    pub(super) fn new(most: usize) -> Self {
        let waiting = AtomicUsize::new(0);
        Self(Arc::new(Gauge { waiting, most }))
    }

    pub(super) fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// Counts a message; at the bound, returns the number of those that wait.
    pub(super) fn admit(&self) -> Result<DepthGuard, usize> {
        let most = self.0.most;
        let one_more = |waiting| (waiting < most).then_some(waiting + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let admitted = self.0.waiting.fetch_update(set, fetch, one_more);
        admitted.map(|_| DepthGuard(self.clone()))
    }

    pub(super) fn count(&self) -> DepthGuard {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        DepthGuard(self.clone())
    }
}

#[derive(Debug)]
pub(super) struct DepthGuard(Depth);

impl Drop for DepthGuard {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) struct Counted<M> {
    message: M,
    waiting: DepthGuard,
}

impl<M> Counted<M> {
    pub(super) fn taken(self) -> M {
        drop(self.waiting);
        self.message
    }
}

#[cfg(feature = "cluster")]
impl<M: std::any::Any + Send> ractor::Message for Counted<M> {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// From outside: refused at the bound.
    IfRoom,
    /// A consequence of admitted work: never refused.
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// With the number of messages that wait.
    Full(usize),
    Timeout,
    Stopped,
}

pub(super) struct Mailbox<M> {
    actor: ActorRef<Counted<M>>,
    depth: Depth,
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Self {
        let (actor, depth) = (self.actor.clone(), self.depth.clone());
        Self { actor, depth }
    }
}

impl<M: Send + 'static> Mailbox<M> {
    pub(super) const fn new(actor: ActorRef<Counted<M>>, depth: Depth) -> Self {
        Self { actor, depth }
    }

    pub(super) const fn actor(&self) -> &ActorRef<Counted<M>> {
        &self.actor
    }

    /// Sends a message, which is lost if the actor has ended.
    pub(super) fn cast(&self, message: M) {
        let _ = self.actor.cast(counted(message, self.depth.count()));
    }

    /// Sends a message below the bound, or else returns it with the number of those that wait. The
    /// message is lost if the actor has ended.
    pub(super) fn offer(&self, message: M) -> Result<(), (usize, M)> {
        match self.depth.admit() {
            Ok(waiting) => {
                let _ = self.actor.cast(counted(message, waiting));
                Ok(())
            }
            Err(waiting) => Err((waiting, message)),
        }
    }

    pub(super) async fn ask<T: Send + 'static>(
        &self,
        message: impl FnOnce(RpcReplyPort<T>) -> M,
        admission: Admission,
        within: Duration,
    ) -> Result<T, Unanswered> {
        let waiting = match admission {
            Admission::IfRoom => self.depth.admit().map_err(Unanswered::Full)?,
            Admission::Always => self.depth.count(),
        };
        let message = |reply| counted(message(reply), waiting);
        match self.actor.call(message, Some(within)).await {
            Ok(CallResult::Success(answer)) => Ok(answer),
            Ok(CallResult::Timeout) => Err(Unanswered::Timeout),
            Ok(CallResult::SenderError) | Err(_) => Err(Unanswered::Stopped),
        }
    }

    pub(super) fn cast_after(&self, pause: Duration, message: impl FnOnce() -> M + Send + 'static) {
        let depth = self.depth.clone();
        let message = move || counted(message(), depth.count());
        drop(self.actor.send_after(pause, message));
    }
}

pub(super) const fn counted<M>(message: M, waiting: DepthGuard) -> Counted<M> {
    Counted { message, waiting }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_counts_as_waiting_until_received_or_dropped() {
        let depth = Depth::new(2);
        let first = counted("first", depth.admit().unwrap());
        let second = counted("second", depth.admit().unwrap());
        let full = depth.admit().unwrap_err();
        assert_eq!(full, 2);
        let fact = counted("a fact", depth.count());
        assert_eq!(
            depth.waiting(),
            3,
            "what must not be refused is counted too"
        );
        assert_eq!(depth.admit().unwrap_err(), 3);
        assert_eq!(first.taken(), "first");
        drop((second, fact));
        assert_eq!(depth.waiting(), 0);
        assert!(depth.admit().is_ok());
        assert_eq!(depth.waiting(), 0, "an admission that was not used");
    }
}
