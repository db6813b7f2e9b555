//! One connection, HTTP/1.1 or HTTP/2, and the watch over it.
//!
//! hyper has no time-out for heads before it knows the version, and its HTTP/1 time-out also ends idle
//! connections; so one watch for both versions sees when bytes come and go and how many requests are in flight.
//!
//! **Invariant:** a connection ends when its head is late, when it is idle for too long, and when its client takes
//! nothing of what it is sent.

use std::{
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
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::Service as _;
use watch::{Doings, InWork, Limits, Step, Watch};

use super::Host;

mod watch;

/// Longest head, and the send buffer of a connection.
const BUFFER: usize = 64 << 10;
const STREAMS: u32 = 128;
const PING: Duration = Duration::from_secs(20);

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Peer {
    /// A client at this address.
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

/// The body of a response.
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
            // Its socket shows as much.
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

/// Serves a connection until it ends or `ending` resolves.
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
    let served = {
        let doings = Arc::clone(&doings);
        service_fn(move |request: Request<Incoming>| {
            let version = request.version();
            let in_work = doings.begin(version);
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            let answer = router.clone().call(request);
            async move {
                let sent = |body| Sent {
                    body,
                    in_work,
                    version,
                };
                answer.await.map(|response: Response| response.map(sent))
            }
        })
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

/// A socket that reports when bytes come and go.
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
