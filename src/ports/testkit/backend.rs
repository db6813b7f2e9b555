//! Models for tests.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::{StreamExt, stream};

use super::Panics;
use crate::llm::{Backend, Delta, DeltaStream, Request};

/// A model that counts streams: opened, open, most open at a time, and dropped early. Clones share
/// the counts.
#[derive(Debug, Clone)]
pub struct Probe<B> {
    inner: B,
    panics: Panics,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    opened: AtomicUsize,
    open: AtomicUsize,
    most: AtomicUsize,
    dropped: AtomicUsize,
}

impl<B: Backend> Probe<B> {
    /// Wraps a model.
    pub fn new(inner: B) -> Self {
        Self {
            inner,
            panics: Panics::default(),
            counts: Arc::default(),
        }
    }

    /// Panics instead of making the call while panics are due.
    #[must_use]
    pub fn panics(mut self, panics: Panics) -> Self {
        self.panics = panics;
        self
    }

    /// Calls made.
    pub fn opened(&self) -> usize {
        self.counts.opened.load(Ordering::Relaxed)
    }

    /// Calls in flight.
    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::Relaxed)
    }

    /// Most calls in flight at a time.
    pub fn most(&self) -> usize {
        self.counts.most.load(Ordering::Relaxed)
    }

    /// Calls dropped before their end.
    pub fn dropped(&self) -> usize {
        self.counts.dropped.load(Ordering::Relaxed)
    }
}

impl<B: Backend> Backend for Probe<B> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn call(&self, request: Request) -> DeltaStream {
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
        self.panics.panic_if_due();
        let open = self.counts.open.fetch_add(1, Ordering::Relaxed) + 1;
        self.counts.most.fetch_max(open, Ordering::Relaxed);
        let running = Running {
            counts: Arc::clone(&self.counts),
            ended: false,
        };
        let stream = self.inner.call(request);
        // Yields between pieces, as a network would.
        let pieces = stream::unfold((stream, running), |(mut stream, mut running)| async move {
            tokio::task::yield_now().await;
            let piece = stream.next().await;
            running.ended = matches!(piece, None | Some(Err(_) | Ok(Delta::Done(_))));
            piece.map(|piece| (piece, (stream, running)))
        });
        pieces.boxed()
    }
}

struct Running {
    counts: Arc<Counts>,
    ended: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, Ordering::Relaxed);
        if !self.ended {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A model that is silent for the first calls, then the wrapped one. Clones share the count.
#[derive(Debug, Clone)]
pub struct SilentBackend<B> {
    inner: B,
    calls: usize,
    made: Arc<AtomicUsize>,
}

impl<B: Backend> SilentBackend<B> {
    /// Wraps a model, silent for the first `calls` calls.
    pub fn new(calls: usize, inner: B) -> Self {
        let made = Arc::default();
        Self { inner, calls, made }
    }
}

impl<B: Backend> Backend for SilentBackend<B> {
    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn call(&self, request: Request) -> DeltaStream {
        if self.made.fetch_add(1, Ordering::Relaxed) < self.calls {
            return stream::pending().boxed();
        }
        self.inner.call(request)
    }
}
