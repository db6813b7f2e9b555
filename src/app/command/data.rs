//! The data directory of a command, and the journal in it.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use crate::{
    cli::{Environment, Stop, exit},
    config::Config,
    journal::{
        Sqlite,
        sqlite::{Inspection, OpenError},
    },
    telemetry,
};

/// Where things are kept (spec 13).
pub(super) fn directory(config: &Config, environment: &Environment) -> Result<PathBuf, Stop> {
    let xdg = environment.get("XDG_DATA_HOME").map(OsStr::new);
    let home = environment.get("HOME").map(OsStr::new);
    config.data.directory(xdg, home).map_err(Stop::usage)
}

/// The journal there, which other commands may use at the same time.
pub(super) fn journal(folder: &Path) -> Result<Sqlite, OpenError> {
    Sqlite::open(folder, Box::new(broken))
}

/// Looks into the journal there, whoever has it.
pub(super) fn inspect(folder: &Path) -> Result<Inspection, OpenError> {
    Inspection::open(folder)
}

/// Whether nothing was ever kept there. Whoever only looks must not make what is missing.
pub(super) fn is_empty(folder: &Path) -> bool {
    matches!(Inspection::open(folder), Err(OpenError::Absent { .. }))
}

/// What was said to be durable must be. From a journal that cannot be trusted nothing more is acknowledged:
/// the process ends at once, and the next one starts from what is there.
fn broken(why: &str) {
    telemetry::last_words(&format!(
        "oracle: the journal cannot be trusted any more, so this process ends: {why}"
    ));
    std::process::exit(i32::from(exit::BROKEN));
}

/// A folder that cannot be used is to be named otherwise; else the command did nothing wrong: the place is
/// taken, or not in order.
impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::File { .. } => Self::usage(error),
            error => Self::failed(error),
        }
    }
}
