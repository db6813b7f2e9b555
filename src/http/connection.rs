//! One connection, HTTP/1.1 or HTTP/2, and the watch over it.
//!
//! hyper has no head time-out before it knows the version, and its HTTP/1 time-out also ends idle
//! connections. So one watch for both versions observes the bytes and the requests in flight.
//!
//! **Invariant:** a connection ends when its head is late, when it is idle for too long, and when
//! its client stops reading.

use std::{
    collections::BTreeMap,
    fmt, io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, http::Version, response::Response};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};
use tower::Service as _;

use super::{Host, cluster::Forwarded};
use crate::config::Server as Settings;

/// Maximum length of a head, and size of a connection's send buffer.
const BUFFER: usize = 64 << 10;
/// `llm::http::node_client` has room for as many.
const STREAMS: u32 = 128;
const PING: Duration = Duration::from_secs(20);
const GRACE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub(super) enum Peer {
    At(SocketAddr),
    /// The user of this process, on a Unix socket.
    Owner,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(address) => address.fmt(f),
            Self::Owner => f.write_str("local"),
        }
    }
}

impl Peer {
    pub(super) const fn address(self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(address),
            Self::Owner => None,
        }
    }
}

/// Serves a connection until it ends or `ending` resolves.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    router: Router,
    host: &Host,
    ending: impl Future<Output = ()>,
) {
    let mut ending = pin!(ending);
    let _counted = peer.address().map(|_| host.shared.connections.token());
    let activity = Activity::new();
    let io = TokioIo::new(Watched {
        stream,
        activity: activity.clone(),
    });
    let served = {
        let activity = activity.clone();
        service_fn(move |request: Request<Incoming>| {
            let version = request.version();
            let in_flight = activity.begin(version);
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            let answer = router.clone().call(request);
            async move {
                answer.await.map(|response: Response| {
                    // Another node sees to its own clients; its other streams must not end with one of
                    // them. On HTTP/1 the socket shows whether the client reads.
                    let is_of_node = response.extensions().get::<Forwarded>().is_some();
                    response.map(|body| Sent {
                        body,
                        in_flight,
                        is_watched: version == Version::HTTP_2 && !is_of_node,
                    })
                })
            }
        })
    };
    let builder = builder();
    let mut connection = pin!(builder.serve_connection(io, served));
    let mut draining = false;
    loop {
        let wake = match activity.next_step(&host.settings) {
            Step::Wait(until) => until,
            Step::Close(until) => {
                connection.as_mut().graceful_shutdown();
                until
            }
            Step::End => return,
            Step::Cut => {
                tracing::info!(from = %peer, "closed a connection: the client does not read its \
                                              responses");
                return;
            }
        };
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(from = %peer, %error, "a connection failed");
                }
                return;
            }
            () = ending.as_mut(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep_until(wake) => {}
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // hyper's time-out would also end idle connections.
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

/// Written by a connection's socket and requests, read by the watch. Clones share it.
#[derive(Debug, Clone)]
struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    in_flight: usize,
    /// On HTTP/2, bytes arrive that belong to no request.
    is_http2: bool,
    /// When the first byte of an incomplete head arrived.
    head: Option<Instant>,
    idle: Instant,
    /// Since when the client has read nothing.
    stuck: Option<Instant>,
    /// HTTP/2 streams that yielded a frame and have not been polled since: their windows are full.
    waiting: BTreeMap<u64, Instant>,
    next: u64,
    /// When the grace period of a shutdown ends.
    closing: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Check again at this time.
    Wait(Instant),
    /// Idle or late: begin a graceful shutdown, and check again then.
    Close(Instant),
    End,
    Cut,
}

impl Activity {
    fn new() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(State {
            in_flight: 0,
            is_http2: false,
            head: Some(now),
            idle: now,
            stuck: None,
            waiting: BTreeMap::new(),
            next: 0,
            closing: None,
        })))
    }

    fn received(&self) {
        let mut state = self.0.lock();
        if state.in_flight == 0 && !state.is_http2 {
            state.head.get_or_insert_with(Instant::now);
        }
    }

    /// Records whether the client read something or the socket is full.
    fn sent(&self, something: bool) {
        let mut state = self.0.lock();
        if something {
            state.stuck = None;
        } else {
            state.stuck.get_or_insert_with(Instant::now);
        }
    }

    fn begin(&self, version: Version) -> InFlight {
        let mut state = self.0.lock();
        state.is_http2 |= version == Version::HTTP_2;
        state.in_flight += 1;
        state.head = None;
        state.next += 1;
        InFlight {
            activity: self.clone(),
            number: state.next,
        }
    }

    fn next_step(&self, settings: &Settings) -> Step {
        let mut state = self.0.lock();
        let now = Instant::now();
        let stuck = state.waiting.values().copied().chain(state.stuck).min();
        let stuck = stuck.map(|since| since + settings.write_timeout);
        let is_busy = state.in_flight > 0;
        if stuck.is_some_and(|until| until <= now) {
            return Step::Cut;
        }
        if let Some(until) = &mut state.closing {
            // Requests that crossed the shutdown are still answered.
            if is_busy {
                *until = now + GRACE;
            }
            return match *until <= now {
                true => Step::End,
                false => Step::Wait(*until),
            };
        }
        if is_busy {
            let until = stuck.unwrap_or(now + settings.write_timeout);
            return Step::Wait(until.min(now + LOOK));
        }
        let head = state.head.map(|since| since + settings.header_timeout);
        let idle = state.idle + settings.idle_timeout;
        let next = head.into_iter().chain(stuck).fold(idle, Instant::min);
        match next <= now {
            true => Step::Close(*state.closing.insert(now + GRACE)),
            // Arriving bytes do not wake the watch.
            false => Step::Wait(next.min(now + LOOK)),
        }
    }
}

#[derive(Debug)]
struct InFlight {
    activity: Activity,
    number: u64,
}

impl InFlight {
    fn resume(&self) {
        self.activity.0.lock().waiting.remove(&self.number);
    }

    fn await_client(&self) {
        let mut state = self.activity.0.lock();
        state.waiting.insert(self.number, Instant::now());
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.activity.0.lock();
        state.waiting.remove(&self.number);
        state.idle = Instant::now();
        state.in_flight -= 1;
    }
}

struct Sent {
    body: Body,
    in_flight: InFlight,
    is_watched: bool,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.is_watched {
            return Pin::new(&mut self.body).poll_frame(context);
        }
        self.in_flight.resume();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(_)) = &polled {
            self.in_flight.await_client();
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

struct Watched<S> {
    stream: S,
    activity: Activity,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if into.filled().len() > before {
            self.activity.received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.activity.sent(written.is_ready());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn wait(seconds: u64) -> Step {
        Step::Wait(Instant::now() + Duration::from_secs(seconds))
    }

    fn closes() -> Step {
        Step::Close(Instant::now() + GRACE)
    }

    /// Uses the default time-outs: 10 s for a head, 120 s idle, 30 s for a write.
    fn next(activity: &Activity) -> Step {
        activity.next_step(&Settings::default())
    }

    #[tokio::test(start_paused = true)]
    async fn request_head_has_a_deadline_on_every_request() {
        let activity = Activity::new();
        assert_eq!(next(&activity), wait(5), "nothing has come yet");
        pass(9).await;
        activity.received();
        assert_eq!(next(&activity), wait(1), "a byte does not help");
        drop(activity.begin(Version::HTTP_11));
        assert_eq!(next(&activity), wait(5), "answered");
        pass(100).await;
        activity.received();
        assert_eq!(next(&activity), wait(5));
        pass(5).await;
        activity.received();
        pass(5).await;
        assert_eq!(next(&activity), closes());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_is_closed_and_a_busy_one_is_not() {
        let activity = Activity::new();
        let (one, other) = (
            activity.begin(Version::HTTP_11),
            activity.begin(Version::HTTP_11),
        );
        pass(1_000).await;
        assert_eq!(next(&activity), wait(5));
        drop(one);
        assert_eq!(next(&activity), wait(5), "the other one is worked on");
        drop(other);
        pass(119).await;
        assert_eq!(next(&activity), wait(1));
        pass(1).await;
        assert_eq!(next(&activity), closes());
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_client_is_cut_off_and_a_slow_one_is_not() {
        let activity = Activity::new();
        let _in_flight = activity.begin(Version::HTTP_11);
        activity.sent(false);
        pass(28).await;
        activity.sent(false);
        assert_eq!(next(&activity), wait(2), "still the same stop");
        activity.sent(true);
        assert_eq!(next(&activity), wait(5));
        activity.sent(false);
        pass(30).await;
        assert_eq!(next(&activity), Step::Cut);
    }

    #[tokio::test(start_paused = true)]
    async fn longest_stalled_stream_decides_the_cut() {
        let activity = Activity::new();
        let (one, other) = (
            activity.begin(Version::HTTP_11),
            activity.begin(Version::HTTP_11),
        );
        one.await_client();
        pass(20).await;
        other.await_client();
        pass(6).await;
        assert_eq!(next(&activity), wait(4));
        one.resume();
        assert_eq!(next(&activity), wait(5));
        pass(24).await;
        assert_eq!(next(&activity), Step::Cut);
        drop(other);
        assert_eq!(next(&activity), wait(5), "it has gone");
    }

    #[tokio::test(start_paused = true)]
    async fn http2_bytes_between_requests_start_no_head_deadline() {
        let activity = Activity::new();
        assert_eq!(next(&activity), wait(5), "before the first one");
        drop(activity.begin(Version::HTTP_2));
        pass(60).await;
        // A ping's acknowledgement or a window update.
        activity.received();
        assert_eq!(next(&activity), wait(5), "it only rests");
        pass(60).await;
        assert_eq!(next(&activity), closes());
    }

    #[tokio::test(start_paused = true)]
    async fn request_that_arrives_while_closing_is_answered() {
        let activity = Activity::new();
        drop(activity.begin(Version::HTTP_2));
        pass(120).await;
        assert_eq!(next(&activity), closes());
        let late = activity.begin(Version::HTTP_2);
        for _ in 0..5 {
            pass(1).await;
            assert_eq!(next(&activity), wait(1));
        }
        drop(late);
        assert_eq!(next(&activity), wait(1), "it may be on its way");
        pass(1).await;
        assert_eq!(next(&activity), Step::End);
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_client_is_cut_off_while_closing() {
        let activity = Activity::new();
        pass(10).await;
        assert_eq!(next(&activity), closes());
        let _late = activity.begin(Version::HTTP_11);
        activity.sent(false);
        pass(30).await;
        assert_eq!(next(&activity), Step::Cut);
    }
}
