//! The models of Oracle: those behind an API ([`Remote`]), in three dialects, and two without a
//! network, [`Offline`] and [`Scripted`]. The port that they implement is re-exported here.
//!
//! A backend makes one attempt and reports its outcome; it has no session logic and no retries.

use crate as llm;
use oracle_core::{model, signal};
#[cfg(test)]
use oracle_ports::testkit;

mod anthropic;
#[cfg(test)]
mod conformance;
mod decode;
mod dialect;
mod estimate;
mod fault;
mod forms;
mod http;
mod json_cache;
mod lenient;
pub mod offline;
mod openai;
mod pieces;
mod prefixes;
mod provider;
mod reading;
mod remote;
mod responses;
pub mod script;
pub mod scripted;
mod secrets;
#[doc(hidden)]
pub mod sse;
mod wire;

pub use oracle_ports::llm::*;

pub use dialect::Dialect;
pub use estimate::{estimate_tokens, estimate_usage};
pub use http::SetupError;
pub use offline::{OFFLINE, Offline};
pub use provider::{ModelSettings, ProviderSettings, Streaming};
pub use remote::Remote;
pub use scripted::Scripted;

#[cfg(any(test, feature = "testkit"))]
#[doc(hidden)]
pub use {dialect::encode, reading::decode};
#[doc(hidden)]
pub use {
    fault::cause,
    http::{client_builder, node_client, plain_client, trusted},
    lenient::mended,
    provider::is_local,
    remote::nearest,
};
