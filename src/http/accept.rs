//! Listens, accepts connections up to a cap, and owns them.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use axum::{Router, middleware::from_fn};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, TcpStream, UnixStream},
    task::JoinSet,
};
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

use super::{
    Host,
    connection::{self, Peer},
    overload,
};
use crate::{access::network_of, config::Server as Settings};
use oracle_control::socket::Socket;

const BACKLOG: u32 = 1_024;
/// Bound on the kernel's buffer for one client, which otherwise grows to megabytes.
const SEND_BUFFER: u32 = 256 << 10;
/// Keep-alive probes detect clients that lost their network.
const ALIVE: Duration = Duration::from_secs(60);
const ASK: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);
/// Connections beyond the cap, for the essential routes; any further ones are closed.
const SPARE: usize = 64;
const SHORT: Duration = Duration::from_secs(5);

/// Whether clients need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// A key is required.
    Keys,
    /// No key is required, because there are none.
    Open,
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another server listens on the address.
    #[error(
        "address {address} is already in use: stop the other server, or choose another address \
         with `--listen` or `server.listen`"
    )]
    Taken {
        /// The address.
        address: SocketAddr,
    },
    /// The configuration requires keys, and there are none.
    #[error(
        "`server.require_keys` is set, but there are no keys: create one with `oracle keys \
         create`"
    )]
    Keyless,
    /// The address is reachable from other machines, and there are no keys.
    #[error(
        "{address} is reachable from other machines, but there are no keys: create one with \
         `oracle keys create`, or listen on 127.0.0.1"
    )]
    Unguarded {
        /// The address.
        address: SocketAddr,
    },
    /// The operating system refuses the address.
    #[error(
        "cannot listen on {address} ({source}): choose an address of this machine and a permitted \
         port with `--listen` or `server.listen`"
    )]
    Refused {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// A bound address.
#[derive(Debug)]
pub struct Listener {
    pub(super) tcp: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds the configured address.
    ///
    /// # Errors
    /// If the address is taken or refused, or would be open to other machines without keys.
    pub fn bind(settings: &Settings, auth: AuthMode) -> Result<Self, BindError> {
        let address = settings.listen;
        if auth == AuthMode::Open && settings.require_keys {
            return Err(BindError::Keyless);
        }
        if auth == AuthMode::Open && !address.ip().to_canonical().is_loopback() {
            return Err(BindError::Unguarded { address });
        }
        Self::listen(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::Taken { address },
            _ => BindError::Refused { address, source },
        })
    }

    fn listen(address: SocketAddr) -> io::Result<Self> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // A restart need not wait for old connections.
        socket.set_reuseaddr(true)?;
        // Each connection inherits both.
        socket.set_send_buffer_size(SEND_BUFFER)?;
        let asked = TcpKeepalive::new().with_time(ALIVE).with_interval(ASK);
        SockRef::from(&socket).set_tcp_keepalive(&asked)?;
        socket.bind(address)?;
        let tcp = socket.listen(BACKLOG)?;
        let address = tcp.local_addr()?;
        Ok(Self { tcp, address })
    }

    /// The bound address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

pub(super) trait Accept: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
}

impl Accept for Listener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, Peer)> {
        let (tcp, address) = self.tcp.accept().await?;
        let _ = tcp.set_nodelay(true);
        Ok((tcp, Peer::At(address)))
    }
}

impl Accept for Socket {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, Peer)> {
        Ok((Self::accept(self).await?, Peer::Owner))
    }
}

/// Accepts up to `most` connections at a time until `ending`, and returns the remaining ones.
pub(super) async fn accept<A: Accept>(
    from: A,
    most: usize,
    router: Router,
    host: Host,
    ending: CancellationToken,
) -> JoinSet<()> {
    let (mut connections, mut spare) = (JoinSet::new(), JoinSet::new());
    let mut crowd = ConnectionLimiter::new(host.settings.max_connections_per_address);
    let essential = router.clone().layer(from_fn(overload::serve_beyond_cap));
    loop {
        let accepted = tokio::select! {
            () = ending.cancelled() => return connections,
            Some(ended) = connections.join_next() => {
                // The body of a response can panic too.
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection failed because of an internal error");
                }
                continue;
            }
            Some(_) = spare.join_next() => continue,
            accepted = from.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection: check `ulimit -n`");
                if !of_one_connection(&error) {
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            }
        };
        let (host, ending) = (host.clone(), ending.clone());
        let serve = |router| async move {
            connection::serve(stream, peer, router, &host, ending.cancelled()).await;
        };
        match crowd.try_acquire(peer) {
            Ok(one) if connections.len() < most => {
                let served = serve(router.clone());
                connections.spawn(async move {
                    served.await;
                    drop(one);
                });
            }
            _ if spare.len() < SPARE => {
                let served = tokio::time::timeout(SHORT, serve(essential.clone()));
                spare.spawn(async move { drop(served.await) });
            }
            _ => {}
        }
    }
}

/// Whether the error concerns one connection only, so that the next accept may succeed.
fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

#[derive(Debug)]
struct ConnectionLimiter {
    most: usize,
    places: HashMap<IpAddr, TaskTracker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TooMany;

impl ConnectionLimiter {
    fn new(most: usize) -> Self {
        let places = HashMap::new();
        Self { most, places }
    }

    /// Counts a connection. Loopback is exempt, because proxies connect from there.
    fn try_acquire(&mut self, peer: Peer) -> Result<Option<TaskTrackerToken>, TooMany> {
        let from = peer.address().map(|address| address.ip());
        let Some(from) = from.filter(|from| !from.to_canonical().is_loopback()) else {
            return Ok(None);
        };
        if self.places.len() == self.places.capacity() {
            self.places.retain(|_, place| !place.is_empty());
        }
        let place = self.places.entry(network_of(from)).or_default();
        match place.len() < self.most {
            true => Ok(Some(place.token())),
            false => Err(TooMany),
        }
    }
}

#[cfg(test)]
mod tests;
