//! One connection, HTTP/1.1 or HTTP/2, and the watch over it.
//!
//! hyper has a time-out for heads, but none before it knows the version, and the one for HTTP/1 also ends
//! connections that only rest; so the watch is ours, and the same for both: it sees when bytes come and go,
//! and how many requests are worked on.
//!
//! **Invariant:** a connection ends when its head is late, when it rests for too long, and when its client
//! takes nothing of what it is sent; whatever it then held is let go of.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, http::Version, response::Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{net::TcpStream, time::Instant};
use tower::Service as _;

use super::{drain::Drain, settings::Settings, socket::Watched};

/// Most of a head, and of what waits to be sent on a connection besides what streams hold.
const BUFFER: usize = 64 << 10;
/// Most requests at a time on one connection of HTTP/2.
const STREAMS: u32 = 128;
/// How often a client of HTTP/2 is asked whether it is there.
const PING: Duration = Duration::from_secs(20);
/// How long a connection that is to end gets for its last words.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked whether the client of a busy connection takes what it is sent.
const LOOK: Duration = Duration::from_secs(5);

/// Who is on the other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    /// Where it is.
    pub(super) address: SocketAddr,
}

/// What is going on on a connection: written by its socket and its requests, read by its watch. Times are
/// milliseconds since it was accepted, from 1; 0 is none.
#[derive(Debug)]
pub(super) struct Doings {
    accepted: Instant,
    in_work: AtomicUsize,
    /// When the first byte came that no request has been made of.
    head: AtomicU64,
    /// Since when nothing is worked on.
    rests: AtomicU64,
    /// Since when the client takes nothing.
    stuck: AtomicU64,
    /// Streams of HTTP/2 that gave something and were not asked for more, since when: the socket may have room
    /// and they none. A lock, because each is another task's; held for one step in a small map.
    waiting: Mutex<BTreeMap<u64, u64>>,
    next: AtomicU64,
}

impl Doings {
    fn new() -> Self {
        Self {
            accepted: Instant::now(),
            in_work: AtomicUsize::new(0),
            // Whoever connects has something to say.
            head: AtomicU64::new(1),
            rests: AtomicU64::new(1),
            stuck: AtomicU64::new(0),
            waiting: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u64 {
        let millis = self.accepted.elapsed().as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// Bytes have come.
    pub(super) fn received(&self) {
        if self.in_work.load(Ordering::Relaxed) == 0 && self.head.load(Ordering::Relaxed) == 0 {
            self.head.store(self.now(), Ordering::Relaxed);
        }
    }

    /// The client has taken something, or there is no room for more.
    pub(super) fn sent(&self, something: bool) {
        if something {
            self.stuck.store(0, Ordering::Relaxed);
        } else if self.stuck.load(Ordering::Relaxed) == 0 {
            self.stuck.store(self.now(), Ordering::Relaxed);
        }
    }

    fn begin(self: &Arc<Self>) -> InWork {
        self.in_work.fetch_add(1, Ordering::Relaxed);
        self.head.store(0, Ordering::Relaxed);
        InWork {
            doings: Arc::clone(self),
            number: self.next.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        // Nothing in it can be left half done.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done about it, and else when to look again.
    fn judge(&self, limits: &Limits) -> Verdict {
        let passed = |at: u64| Duration::from_millis(self.now().saturating_sub(at));
        let since = |mark: &AtomicU64| match mark.load(Ordering::Relaxed) {
            0 => None,
            at => Some(passed(at)),
        };
        let rest = |limit: Duration, passed: Duration| limit.saturating_sub(passed);
        let longest = self.waiting().values().copied().min();
        let stuck = since(&self.stuck).max(longest.map(passed));
        let stuck = stuck.map(|passed| rest(limits.write, passed));
        if stuck.is_some_and(|rest| rest.is_zero()) {
            return Verdict::Cut;
        }
        if self.in_work.load(Ordering::Relaxed) > 0 {
            return Verdict::Look(stuck.unwrap_or(limits.write).min(LOOK));
        }
        let head = since(&self.head).map(|passed| rest(limits.head, passed));
        let idle = since(&self.rests).map(|passed| rest(limits.idle, passed));
        let next = head.into_iter().chain(idle).chain(stuck).min();
        match next.unwrap_or(limits.idle) {
            Duration::ZERO => Verdict::Close,
            next => Verdict::Look(next.max(Duration::from_millis(1))),
        }
    }
}

/// A request that is worked on, until all of its answer is sent.
#[derive(Debug)]
pub(super) struct InWork {
    doings: Arc<Doings>,
    number: u64,
}

impl InWork {
    /// Its stream is asked for more.
    fn asked(&self) {
        self.doings.waiting().remove(&self.number);
    }

    /// Its stream has given something.
    fn gave(&self) {
        let now = self.doings.now();
        self.doings.waiting().insert(self.number, now);
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        let doings = &self.doings;
        doings.waiting().remove(&self.number);
        doings.rests.store(doings.now(), Ordering::Relaxed);
        doings.in_work.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer.
struct Sent {
    body: Body,
    in_work: InWork,
    version: Version,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.version != Version::HTTP_2 {
            // Its socket tells as much.
            return Pin::new(&mut self.body).poll_frame(context);
        }
        self.in_work.asked();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(_)) = &polled {
            self.in_work.gave();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// All is well; look again after this.
    Look(Duration),
    /// It has nothing to do here.
    Close,
    /// Nobody takes what is sent.
    Cut,
}

/// How patient a connection is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    head: Duration,
    idle: Duration,
    write: Duration,
}

impl From<&Settings> for Limits {
    fn from(settings: &Settings) -> Self {
        Self {
            head: settings.header_timeout,
            idle: settings.idle_timeout,
            write: settings.write_timeout,
        }
    }
}

/// The router, as a connection calls it.
struct Served {
    router: Router,
    doings: Arc<Doings>,
    peer: Peer,
}

impl hyper::service::Service<Request<Incoming>> for Served {
    type Response = Response<Sent>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (in_work, version) = (self.doings.begin(), request.version());
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer.clone());
        // A router is always ready.
        let answer = self.router.clone().call(request);
        let sent = move |body| Sent {
            body,
            in_work,
            version,
        };
        Box::pin(async move { Ok(answer.await?.map(sent)) })
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(
    tcp: TcpStream,
    address: SocketAddr,
    router: Router,
    limits: Limits,
    drain: Drain,
) {
    let doings = Arc::new(Doings::new());
    let io = TokioIo::new(Watched::new(tcp, Arc::clone(&doings)));
    let served = Served {
        router,
        doings: Arc::clone(&doings),
        peer: Peer { address },
    };
    let builder = builder();
    let mut connection = pin!(builder.serve_connection(io, served));
    let (mut draining, mut last_words) = (false, None);
    loop {
        let wake = match (last_words, doings.judge(&limits)) {
            (Some(deadline), _) => deadline,
            (None, Verdict::Look(next)) => Instant::now() + next,
            (None, Verdict::Close) => {
                connection.as_mut().graceful_shutdown();
                *last_words.insert(Instant::now() + GRACE)
            }
            (None, Verdict::Cut) => {
                tracing::info!(from = %address, "cut off: it takes nothing of what it is sent");
                return;
            }
        };
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(from = %address, %error, "a connection ended with a fault");
                }
                return;
            }
            () = drain.begun(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep_until(wake) => {
                if last_words.is_some_and(|deadline| deadline <= Instant::now()) {
                    return;
                }
            }
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // See the module.
        .header_read_timeout(None)
        .max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(BUFFER as u32)
        .max_send_buf_size(BUFFER)
        .initial_stream_window_size(BUFFER as u32)
        .initial_connection_window_size(4 * BUFFER as u32)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(120),
        write: Duration::from_secs(30),
    };

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn look(seconds: u64) -> Verdict {
        Verdict::Look(Duration::from_secs(seconds))
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_has_to_come_in_time_whether_it_is_the_first_or_not() {
        let doings = Arc::new(Doings::new());
        assert_eq!(doings.judge(&LIMITS), look(10), "nothing has come yet");
        pass(9).await;
        doings.received();
        assert_eq!(doings.judge(&LIMITS), look(1), "a byte does not help");
        drop(doings.begin());
        assert_eq!(doings.judge(&LIMITS), look(120), "answered");
        pass(100).await;
        doings.received();
        assert_eq!(doings.judge(&LIMITS), look(10));
        pass(5).await;
        doings.received();
        pass(5).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_rests_is_closed_and_one_that_works_is_not() {
        let doings = Arc::new(Doings::new());
        let (one, other) = (doings.begin(), doings.begin());
        pass(1_000).await;
        assert_eq!(doings.judge(&LIMITS), look(5));
        drop(one);
        assert_eq!(doings.judge(&LIMITS), look(5), "the other one is worked on");
        drop(other);
        pass(119).await;
        assert_eq!(doings.judge(&LIMITS), look(1));
        pass(1).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_cut_off_and_who_takes_something_is_not() {
        let doings = Arc::new(Doings::new());
        let _in_work = doings.begin();
        doings.sent(false);
        pass(28).await;
        doings.sent(false);
        assert_eq!(doings.judge(&LIMITS), look(2), "still the same stop");
        doings.sent(true);
        assert_eq!(doings.judge(&LIMITS), look(5));
        doings.sent(false);
        pass(30).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Cut);
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_streams_on_a_connection_the_one_that_waits_longest_counts() {
        let doings = Arc::new(Doings::new());
        let (one, other) = (doings.begin(), doings.begin());
        one.gave();
        pass(20).await;
        other.gave();
        pass(6).await;
        assert_eq!(doings.judge(&LIMITS), look(4));
        one.asked();
        assert_eq!(doings.judge(&LIMITS), look(5));
        pass(24).await;
        assert_eq!(doings.judge(&LIMITS), Verdict::Cut);
        drop(other);
        assert_eq!(doings.judge(&LIMITS), look(5), "it has gone");
    }
}
