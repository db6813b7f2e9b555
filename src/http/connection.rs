//! One connection, HTTP/1.1 or HTTP/2, and the watch over it.
//!
//! hyper has a time-out for heads, but none before it knows the version, and the one for HTTP/1 also ends
//! connections that only rest; so the watch is ours, and the same for both: it sees when bytes come and go,
//! and how many requests are worked on.
//!
//! **Invariant:** a connection ends when its head is late, when it rests for too long, and when its client
//! takes nothing of what it is sent; whatever it then held is let go of.

use std::{
    convert::Infallible,
    fmt,
    io::{self, IoSlice},
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
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
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::Service as _;
use watch::{Doings, InWork, Limits, Step, Watch};

use super::Host;

mod watch;

/// Most of a head, and of what waits to be sent on a connection besides what streams hold.
const BUFFER: usize = 64 << 10;
/// Most requests at a time on one connection of HTTP/2.
const STREAMS: u32 = 128;
/// How often a client of HTTP/2 is asked whether it is there.
const PING: Duration = Duration::from_secs(20);

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Peer {
    /// A client at this address.
    At(SocketAddr),
    /// The user whose process this is, on a Unix socket.
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

/// All that is served, as a connection calls it.
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
        let version = request.version();
        let in_work = self.doings.begin(version);
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(self.peer);
        let answer = self.router.clone().call(request);
        let sent = move |body| Sent {
            body,
            in_work,
            version,
        };
        Box::pin(async move { Ok(answer.await?.map(sent)) })
    }
}

/// Serves a connection to its end, or until it is told to end.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    router: Router,
    host: &Host,
    ending: impl Future<Output = ()>,
) {
    let limits = Limits::from(&host.settings);
    let mut ending = pin!(ending);
    let doings = Arc::new(Doings::new());
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&doings)));
    let served = Served {
        router,
        doings: Arc::clone(&doings),
        peer,
    };
    let builder = builder();
    let mut connection = pin!(builder.serve_connection(io, served));
    let (mut watch, mut draining) = (Watch::new(doings, limits), false);
    loop {
        let wake = match watch.step() {
            Step::Wait(until) => until,
            Step::Close(until) => {
                connection.as_mut().graceful_shutdown();
                until
            }
            Step::End => return,
            Step::Cut => {
                tracing::info!(from = %peer, "cut off: it takes nothing of what it is sent");
                return;
            }
        };
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(from = %peer, %error, "a connection ended with a fault");
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

/// A socket that tells when bytes come and go.
struct Watched<S> {
    stream: S,
    doings: Arc<Doings>,
}

impl<S> Watched<S> {
    const fn new(stream: S, doings: Arc<Doings>) -> Self {
        Self { stream, doings }
    }

    fn written(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.doings.sent(written.is_ready());
        written
    }
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
            self.doings.received();
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
        self.written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
