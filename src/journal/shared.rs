//! One journal for several processes of a person: the one that has it open serves it to the others on
//! a Unix socket.
//!
//! What goes over the socket is the port itself, a call and its answer, so that a process at the far
//! end has its own actors, project, models and terminal and shares nothing but the records. Fencing
//! keeps two processes from one session. The socket is for the owner of the data directory alone
//! (mode 0600), and a line that breaks is an error of every call under way: whether an append
//! landed is then open, as the port has it.

mod address;
mod client;
mod guests;
mod inbox;
mod office;
mod server;
mod store;
mod way;
mod wire;

pub use client::{ConnectError, Remote};
pub use server::{ServeError, Server};
pub use store::Shared;

#[cfg(test)]
mod tests;
