//! The listener: accepts connections up to a cap, and owns them.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use parking_lot::Mutex;
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
};

use super::{
    Host, Settings,
    connection::{self, Peer},
};
use crate::access::place_of;

const BACKLOG: u32 = 1_024;
/// Bound on what the kernel buffers for one client; without it, megabytes.
const SEND_BUFFER: u32 = 256 << 10;
/// Keep-alive probes find clients that lost their network.
const ALIVE: Duration = Duration::from_secs(60);
const ASK: Duration = Duration::from_secs(15);
/// Pause after a failed accept.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// Connections beyond the cap, for a refusal or the essential routes; more are closed.
pub(super) const SPARE: usize = 64;
/// How long a spare connection may last.
pub(super) const SHORT: Duration = Duration::from_secs(5);
/// How long a refusal by address may take.
const REFUSAL: Duration = Duration::from_secs(1);

/// Whether clients need a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// They do.
    Keys,
    /// They do not: there are no keys.
    Open,
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another server listens there.
    #[error(
        "{address} is taken: another server listens there, so end that one, or listen elsewhere by \
         `--listen` or `server.listen`"
    )]
    Taken {
        /// The address.
        address: SocketAddr,
    },
    /// Keys are required, and there are none.
    #[error(
        "there are no keys, and `server.require_keys` says that there have to be: make one by `oracle keys \
         create`"
    )]
    Keyless,
    /// Reachable from other machines, without keys.
    #[error(
        "{address} can be reached from other machines, and there are no keys: make one by `oracle keys \
         create`, or listen on 127.0.0.1"
    )]
    Unguarded {
        /// The address.
        address: SocketAddr,
    },
    /// The system does not allow it.
    #[error(
        "{address} cannot be listened on ({source}): name an address of this machine and a port that \
         you may use, by `--listen` or `server.listen`"
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
    /// Binds the address.
    ///
    /// # Errors
    /// When it is taken or refused, or would be open to other machines without keys.
    pub fn bind(settings: &Settings, door: Door) -> Result<Self, BindError> {
        let address = settings.listen;
        if door == Door::Open && settings.require_keys {
            return Err(BindError::Keyless);
        }
        if door == Door::Open && !address.ip().to_canonical().is_loopback() {
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
        // A restart need not wait for old connections. On Windows it would let two servers listen.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        // Both are inherited by each connection.
        socket.set_send_buffer_size(SEND_BUFFER)?;
        let asked = TcpKeepalive::new().with_time(ALIVE).with_interval(ASK);
        SockRef::from(&socket).set_tcp_keepalive(&asked)?;
        socket.bind(address)?;
        let tcp = socket.listen(BACKLOG)?;
        let address = tcp.local_addr()?;
        Ok(Self { tcp, address })
    }

    /// The bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts connections until the drain begins, and returns those that are left.
pub(super) async fn accept(
    listener: Listener,
    router: Router,
    essential: Router,
    host: Host,
) -> JoinSet<()> {
    let (settings, drain) = (&host.settings, host.drain());
    let (mut connections, mut spare) = (JoinSet::new(), JoinSet::new());
    let crowd = Crowd::new(settings.max_connections_per_address);
    loop {
        host.overload().connected(connections.len());
        tokio::select! {
            () = drain.begun() => return connections,
            Some(ended) = connections.join_next() => {
                // The body of a response can panic too.
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection ended by a mistake of the server's own");
                }
            }
            Some(_) = spare.join_next() => {}
            accepted = listener.tcp.accept() => match accepted {
                Ok((tcp, address)) => {
                    let has_room = connections.len() < settings.max_connections;
                    match crowd.enter(address.ip()) {
                        Ok(one) if has_room => {
                            let _ = tcp.set_nodelay(true);
                            let (router, host) = (router.clone(), host.clone());
                            // Before the connection can read the count.
                            host.overload().connected(connections.len() + 1);
                            connections.spawn(async move {
                                served(tcp, address, router, host).await;
                                drop(one);
                            });
                        }
                        Ok(_) | Err(_) if spare.len() >= SPARE => drop(tcp),
                        Ok(_) => {
                            let served = served(tcp, address, essential.clone(), host.clone());
                            spare.spawn(cut(SHORT, served));
                        }
                        Err(TooMany) => {
                            spare.spawn(cut(REFUSAL, refuse(tcp)));
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    if !of_one_connection(&error) {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            },
        }
    }
}

async fn served(tcp: TcpStream, address: SocketAddr, router: Router, host: Host) {
    let begun = host.drain().begun();
    connection::serve(tcp, Peer::At(address), router, &host, begun).await;
}

/// Whether the next accept may well succeed.
fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

pub(super) async fn cut(within: Duration, what: impl Future<Output = ()>) {
    let _ = tokio::time::timeout(within, what).await;
}

/// Refuses a client whose address has too many connections, before it sends anything.
async fn refuse(mut tcp: TcpStream) {
    const BODY: &str = "{\"error\":{\"message\":\"there are as many connections from your address as \
        `server.max_connections_per_address` allows: try again\",\"type\":\"server_error\",\"param\":null,\
        \"code\":\"overloaded\"}}";
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
        content-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let told = async {
        tcp.write_all(answer.as_bytes()).await?;
        tcp.shutdown().await?;
        // Closed with unread bytes, the refusal could be lost.
        let mut unread = [0; 1_024];
        while tcp.read(&mut unread).await? > 0 {}
        Ok::<(), io::Error>(())
    };
    let _ = told.await;
}

/// Connections by address.
#[derive(Debug)]
struct Crowd {
    most: usize,
    places: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A counted connection.
#[derive(Debug)]
struct One {
    place: IpAddr,
    places: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Crowd {
    fn new(most: usize) -> Self {
        let places = Arc::default();
        Self { most, places }
    }

    /// One more from there. Loopback is not counted: proxies are there.
    fn enter(&self, from: IpAddr) -> Result<Option<One>, TooMany> {
        let place = place_of(from);
        if from.to_canonical().is_loopback() {
            return Ok(None);
        }
        let mut places = self.places.lock();
        let count = places.entry(place).or_default();
        if *count >= self.most {
            return Err(TooMany);
        }
        *count += 1;
        let places = Arc::clone(&self.places);
        Ok(Some(One { place, places }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TooMany;

impl Drop for One {
    fn drop(&mut self) {
        let mut places = self.places.lock();
        if let Some(count) = places.get_mut(&self.place) {
            *count -= 1;
            if *count == 0 {
                places.remove(&self.place);
            }
        }
    }
}

#[cfg(test)]
mod tests;
