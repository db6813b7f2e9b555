//! The control channel, with which an operator or a supervising system manages sessions.
//!
//! A [`Controller`] answers a [`Verb`] with [`Answer`] or [`Refused`], and a [`Watching`] with a
//! stream of [`Update`]. The transports are [`port`] (actor messages) and HTTP, also on the Unix
//! [`socket`] of the data directory, whose other end is [`Client`]. All of them give the same
//! answers.
//!
//! A verb that only reads leaves no trace. Any other leaves a `control.*` event that names the
//! caller, in the session's log or in `system`.
//!
//! ```
//! # mod oracle_agent { pub use oracle_runtime::actor; pub use oracle_control as control; pub use oracle_core::model; }
//! use oracle_agent::{
//!     actor::Oracle,
//!     control::{Answer, Controller, Verb},
//!     model::{Principal, SessionName},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let system = Oracle::builder().start().await?;
//! system.oracle().session("s")?.answer("hello").await?;
//!
//! let control = Controller::new(system.oracle().clone());
//! let session = SessionName::new("s")?.into();
//! control.carry_out(&Principal::local(), Verb::Pause { session }).await?;
//!
//! // As it comes over HTTP, or from the command line.
//! let verb = Verb::from_json(br#"{"verb": "inspect", "session": "s"}"#)?;
//! let Answer::Session { session } = control.carry_out(&Principal::local(), verb).await? else {
//!     panic!("`inspect` is answered with a session");
//! };
//! assert!(session.paused);
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant:** only `fork` creates a session.

#[cfg(test)]
use crate as control;
use oracle_core::{kernel, model};
use oracle_llm as llm;
use oracle_ports::{disk, journal};
use oracle_runtime::actor;

mod answer;
mod client;
mod controller;
mod follow;
#[doc(hidden)]
pub mod limits;
pub mod port;
#[doc(hidden)]
pub mod question;
mod refused;
pub mod socket;
mod subject;
#[doc(hidden)]
pub mod verb;

pub use answer::{Accepted, Answer, Update, WireUpdate};
pub use client::{Client, ClientError, Events, QueryEnd, SessionUpdate, TextFrame};
pub use controller::Controller;
pub use follow::Follow;
pub use refused::{Code, Refused};
pub use subject::Subject;
pub use verb::{Verb, Watching};

#[doc(hidden)]
pub use {
    client::{events, wire_update},
    controller::{check_profile, check_session},
    follow::EventSelector,
};
