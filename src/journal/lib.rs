//! The journals of Oracle on disk, [`Sqlite`] and [`Postgres`]. The port that they implement, its
//! contract and the journal in memory are re-exported here.

#![cfg_attr(
    not(feature = "sqlite"),
    allow(
        dead_code,
        unused_imports,
        reason = "helpers of modules that are left out"
    )
)]

use crate as journal;
use oracle_core::model;
#[cfg(feature = "sqlite")]
use oracle_ports::disk;
#[cfg(test)]
use oracle_ports::testkit;

#[cfg(all(feature = "postgres", any(test, feature = "testkit")))]
#[doc(hidden)]
pub mod cluster;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub mod copy;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod row;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod verify;

pub use oracle_ports::journal::*;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use verify::{Problem, Stats};
