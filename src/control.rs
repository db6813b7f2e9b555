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

mod answer;
#[cfg(any(feature = "cli", feature = "server"))]
mod client;
mod controller;
mod follow;
pub(crate) mod limits;
pub mod port;
#[cfg(any(feature = "cli", feature = "server"))]
pub(crate) mod question;
mod refused;
#[cfg(any(feature = "cli", feature = "server"))]
pub mod socket;
mod subject;
pub(crate) mod verb;

pub use answer::{Accepted, Answer, Update, WireUpdate};
#[cfg(any(feature = "cli", feature = "server"))]
pub use client::{Client, ClientError, Events, QueryEnd, SessionUpdate, TextFrame};
#[cfg(feature = "server")]
pub(crate) use client::{events, wire_update};
pub use controller::Controller;
pub(crate) use controller::{check_profile, check_session};
#[cfg(feature = "server")]
pub(crate) use follow::EventSelector;
pub use follow::Follow;
pub use refused::{Code, Refused};
pub use subject::Subject;
pub use verb::{Verb, Watching};
