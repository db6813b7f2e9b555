//! The section of `oracle serve` (spec 14).

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use serde::{Deserialize, Serialize};

use super::value::{Address, Count, HostName, SECOND, Span, WebOrigin};

/// `[server]`: how `oracle serve` listens, and how much it takes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Server {
    /// Where it listens.
    pub listen: Address,
    /// How long its end may take, from the signal to the exit.
    pub drain_deadline: Span<{ SECOND }, { 3_600 * SECOND }>,
    /// How long a request's head may take to arrive.
    pub header_timeout: Span<100, { 600 * SECOND }>,
    /// How long a request's body may take to arrive.
    pub body_timeout: Span<100, { 3_600 * SECOND }>,
    /// A connection without a request for this long is closed.
    pub idle_timeout: Span<{ SECOND }, { 24 * 3_600 * SECOND }>,
    /// A stream of which nothing is read for this long is cut.
    pub write_timeout: Span<100, { 3_600 * SECOND }>,
    /// Most connections at a time.
    pub max_connections: Count<1, 1_000_000>,
    /// Most of them from one address, except this machine's own.
    pub max_connections_per_address: Count<1, 1_000_000>,
    /// Most requests at a time that are worked on, streams among them.
    pub max_requests: Count<1, 1_000_000>,
    /// Most queries at a time; with more of them new messages are refused.
    pub max_queries: Count<1, 10_000_000>,
    /// Most messages, and calls of models, that wait their turn; with more of them new messages are refused.
    pub max_backlog: Count<1, 1_000_000>,
    /// Largest body of a request, in bytes.
    pub max_body: Count<1_024, 1_073_741_824>,
    /// Whether it only serves where there are keys.
    pub require_keys: bool,
    /// Names that the server is asked for by, besides its address.
    pub allowed_hosts: Vec<HostName>,
    /// Web pages that may ask it.
    pub allowed_origins: Vec<WebOrigin>,
    /// Wrong keys that an address may show in a minute.
    pub wrong_keys_per_minute: Count<1, 1_000_000>,
    /// Whether chats over OpenAI's interface are told what goes on, as reasoning.
    pub progress: bool,
}

impl Default for Server {
    fn default() -> Self {
        let listen = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7770);
        Self {
            listen: Address::new(SocketAddr::V4(listen)),
            drain_deadline: Span::of::<{ 25 * SECOND }>(),
            header_timeout: Span::of::<{ 10 * SECOND }>(),
            body_timeout: Span::of::<{ 60 * SECOND }>(),
            idle_timeout: Span::of::<{ 120 * SECOND }>(),
            write_timeout: Span::of::<{ 30 * SECOND }>(),
            max_connections: Count::of::<10_000>(),
            max_connections_per_address: Count::of::<1_000>(),
            max_requests: Count::of::<10_000>(),
            max_queries: Count::of::<20_000>(),
            max_backlog: Count::of::<1_000>(),
            max_body: Count::of::<8_388_608>(),
            require_keys: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            wrong_keys_per_minute: Count::of::<10>(),
            progress: false,
        }
    }
}
