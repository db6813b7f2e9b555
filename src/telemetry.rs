//! The log: what goes to standard error for those who look into the program.
//!
//! Not what people are told about their own command: that is the room `cli`. Results never pass
//! through here.

use std::{ffi::OsStr, io};

use tracing_subscriber::EnvFilter;

/// ractor tells of every actor that starts and ends.
const QUIET: &str = "ractor=warn";

/// Starts the log. `filter` is what `RUST_LOG` says; where it says nothing, `verbosity` counts: 0
/// for warnings, 1 for info, 2 for debug, more for everything. Parts of `filter` that mean nothing
/// are named on standard error and left out. Only the first call in a process has an effect.
pub fn start(verbosity: u8, filter: Option<&OsStr>) {
    let filter = directives(verbosity, filter.and_then(OsStr::to_str));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::builder().parse_lossy(filter))
        .with_writer(io::stderr)
        // It would panic where standard error is closed.
        .log_internal_errors(false)
        .try_init();
}

fn directives(verbosity: u8, filter: Option<&str>) -> String {
    if let Some(filter) = filter.filter(|filter| !filter.trim().is_empty()) {
        return filter.to_owned();
    }
    let level = match verbosity {
        0 => "warn",
        1 => "info",
        2 => "debug",
        3.. => "trace",
    };
    format!("{level},{QUIET}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_wins_over_the_option() {
        for (verbosity, filter, want) in [
            (0, None, "warn,ractor=warn"),
            (1, None, "info,ractor=warn"),
            (2, None, "debug,ractor=warn"),
            (3, None, "trace,ractor=warn"),
            (u8::MAX, None, "trace,ractor=warn"),
            (0, Some(""), "warn,ractor=warn"),
            (1, Some(" "), "info,ractor=warn"),
            (2, Some("ractor=trace"), "ractor=trace"),
        ] {
            assert_eq!(
                directives(verbosity, filter),
                want,
                "{verbosity} {filter:?}"
            );
        }
    }
}
