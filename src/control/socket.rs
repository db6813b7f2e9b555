//! The control channel for the local operator: a Unix socket in the data directory, which nobody but its
//! owner may use. Whoever can connect is an administrator of the system.
//!
//! One JSON object a line. A request is a [`Verb`](super::Verb), answered with `{"ok": …}` or
//! `{"refused": …}`, one after the other; or `{"watch": {…}}`, answered with `{"watching": {}}` and then
//! `{"seen": …}` for as long as the line stands.

mod client;
mod server;
mod wire;

pub use client::{Client, ClientError, Watched};
pub use server::{ServeError, Server};

/// The socket's name in a data directory.
pub const NAME: &str = "control.sock";
