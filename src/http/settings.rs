//! How the server listens, and how much it takes on.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// How the server listens, and how much it takes on. The configuration's `[server]` says what each means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where it listens; port 0 is a free one.
    pub listen: SocketAddr,
    /// How long its end may take.
    pub drain_deadline: Duration,
    /// How long a request's head may take to arrive.
    pub header_timeout: Duration,
    /// How long a request's body may take to arrive.
    pub body_timeout: Duration,
    /// A connection without a request for this long is closed.
    pub idle_timeout: Duration,
    /// A client that takes nothing of what it is sent for this long is cut off.
    pub write_timeout: Duration,
    /// Most connections at a time.
    pub max_connections: usize,
    /// Most connections at a time from one address, except this machine's own.
    pub max_connections_per_address: usize,
    /// Most requests at a time, streams among them.
    pub max_requests: usize,
    /// With so many queries running no more are taken.
    pub max_queries: usize,
    /// With so many messages and calls of models waiting their turn no more messages are taken.
    pub max_backlog: usize,
    /// Largest body of a request, in bytes.
    pub max_body: usize,
    /// Whether it only serves where there are keys.
    pub require_keys: bool,
    /// Names that it is asked for by, besides `localhost` and its address.
    pub allowed_hosts: Vec<String>,
    /// Web pages that may ask it, as browsers say them.
    pub allowed_origins: Vec<String>,
    /// Wrong keys that an address may show in a minute.
    pub wrong_keys_per_minute: u64,
    /// Whether chats over OpenAI's interface are told what goes on, unless they say otherwise.
    pub progress: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7770)),
            drain_deadline: Duration::from_secs(25),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(120),
            write_timeout: Duration::from_secs(30),
            max_connections: 10_000,
            max_connections_per_address: 1_000,
            max_requests: 10_000,
            max_queries: 20_000,
            max_backlog: 1_000,
            max_body: 8 << 20,
            require_keys: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            wrong_keys_per_minute: 10,
            progress: false,
        }
    }
}
