//! The listener: takes connections as long as there is room for them, and owns them.

use std::{io, net::SocketAddr, time::Duration};

use axum::Router;
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

mod crowd;

use crowd::{Crowd, TooMany};

/// Connections that the machine keeps for us until we take them.
const BACKLOG: u32 = 1_024;
/// What the machine may hold of what is sent to one client; without a bound it would be megabytes.
const SEND_BUFFER: u32 = 256 << 10;
/// After so long without a word the machine asks whether a client is still there; one that lost its network
/// would keep its place for ever.
const ALIVE: Duration = Duration::from_secs(60);
/// How often it asks then. Systems give up after some eight to ten times.
const ASK: Duration = Duration::from_secs(15);
/// Pause after the machine could not give us a connection.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// Connections beyond all others, of those who are told that there is no room, or ask how the server stands;
/// more are only closed.
pub(super) const SPARE: usize = 64;
/// How long such a one may last.
pub(super) const SHORT: Duration = Duration::from_secs(5);
/// How long it may take to tell an address that it has too many.
const REFUSAL: Duration = Duration::from_secs(1);

/// Who has to show a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Everybody: there are keys.
    Keys,
    /// Nobody: whoever can reach the address is let in.
    Open,
}

/// The server cannot listen where it should.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else listens there.
    #[error(
        "{address} is taken: another server listens there, so end that one, or listen elsewhere by \
         `--listen` or `server.listen`"
    )]
    Taken {
        /// Where.
        address: SocketAddr,
    },
    /// Keys are required, and there are none.
    #[error(
        "there are no keys, and `server.require_keys` says that there have to be: make one by `oracle keys \
         create`"
    )]
    Keyless,
    /// Other machines could reach it, and nobody would have to show a key.
    #[error(
        "{address} can be reached from other machines, and there are no keys: make one by `oracle keys \
         create`, or listen on 127.0.0.1"
    )]
    Unguarded {
        /// Where.
        address: SocketAddr,
    },
    /// The machine does not allow it.
    #[error(
        "{address} cannot be listened on ({source}): name an address of this machine and a port that \
         you may use, by `--listen` or `server.listen`"
    )]
    Refused {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// An address that is ours, before anything is served there.
#[derive(Debug)]
pub struct Listener {
    pub(super) tcp: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes the address.
    ///
    /// # Errors
    /// When it cannot be had, or would be open to other machines.
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
        // So that a server that is started again need not wait for the connections of the last one. On
        // Windows it would mean that two can listen.
        #[cfg(unix)]
        socket.set_reuseaddr(true)?;
        // Both are handed on to each connection.
        socket.set_send_buffer_size(SEND_BUFFER)?;
        let asked = TcpKeepalive::new().with_time(ALIVE).with_interval(ASK);
        SockRef::from(&socket).set_tcp_keepalive(&asked)?;
        socket.bind(address)?;
        let tcp = socket.listen(BACKLOG)?;
        let address = tcp.local_addr()?;
        Ok(Self { tcp, address })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Takes connections until the server begins to end, and gives back those that are left then.
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
                // The body of an answer can panic too.
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
                            // Slower without, and right all the same.
                            let _ = tcp.set_nodelay(true);
                            let (router, host) = (router.clone(), host.clone());
                            // Before it can ask how many there are.
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

/// Whether the next one may well be taken.
fn of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// Does it, but no longer than this.
pub(super) async fn cut(within: Duration, what: impl Future<Output = ()>) {
    // Whoever is late is cut off.
    let _ = tokio::time::timeout(within, what).await;
}

/// Tells a client that its address has too many connections, before it has asked for anything.
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
        // Closed with something unread, the answer could be lost on its way.
        let mut unread = [0; 1_024];
        while tcp.read(&mut unread).await? > 0 {}
        Ok::<(), io::Error>(())
    };
    // Whether it heard or not, it is not served.
    let _ = told.await;
}

#[cfg(test)]
mod tests;
