//! The log: what goes to standard error for those who look into the program.
//!
//! Not what people are told about their own command: that is the room `cli`. Results never pass
//! through here.

use std::{
    ffi::OsStr,
    io::{self, Write as _},
    sync::OnceLock,
    time::Duration,
};

use tracing_subscriber::{EnvFilter, fmt::writer::BoxMakeWriter};

mod aside;

use aside::Aside;

/// ractor tells of every actor that starts and ends.
const QUIET: &str = "ractor=warn";
/// How long the end of the process waits for what is still to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The one of this process, where it has one.
static ASIDE: OnceLock<Aside> = OnceLock::new();

/// Who writes the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Whoever logs, and waits until it is written.
    Own,
    /// A thread beside the program: who serves many waits for nobody who reads the log. Where that one is too slow,
    /// lines are dropped, and the log says how many.
    Aside,
}

/// The log. What was logged until it is dropped is written, if somebody reads it within a second.
#[derive(Debug)]
#[must_use = "dropping it ends the log"]
pub struct Log(());

/// Starts the log. `filter` is what `RUST_LOG` says; where it says nothing, `verbosity` counts: 0
/// for warnings, 1 for info, 2 for debug, more for everything. Parts of `filter` that mean nothing
/// are named on standard error and left out. Only the first call in a process has an effect.
pub fn start(verbosity: u8, filter: Option<&OsStr>, writer: Writer) -> Log {
    let filter = directives(verbosity, filter.and_then(OsStr::to_str), writer);
    let writer = match writer {
        // Without a thread for it, it is written as it comes.
        Writer::Aside => Aside::to(io::stderr()).ok(),
        Writer::Own => None,
    };
    let writer = match writer {
        Some(aside) => BoxMakeWriter::new(ASIDE.get_or_init(|| aside).clone()),
        None => BoxMakeWriter::new(io::stderr),
    };
    let _ = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::builder().parse_lossy(filter))
        .with_writer(writer)
        // It would panic where standard error is closed.
        .log_internal_errors(false)
        .try_init();
    Log(())
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some(aside) = ASIDE.get() {
            aside.finish(LAST_WORDS);
        }
    }
}

/// Says on standard error why the process ends at once, after all that was logged. Whoever does not read it does
/// not keep the process from ending.
pub fn last_words(text: &str) {
    match ASIDE.get() {
        Some(aside) => {
            aside.say(text);
            aside.finish(LAST_WORDS);
        }
        // Whether or not anybody reads it.
        None => drop(writeln!(io::stderr(), "{text}")),
    }
}

fn directives(verbosity: u8, filter: Option<&str>, writer: Writer) -> String {
    if let Some(filter) = filter.filter(|filter| !filter.trim().is_empty()) {
        return filter.to_owned();
    }
    let level = match verbosity {
        // `ask` and `chat` show waits for a model in their status line.
        0 if writer == Writer::Own => "warn,oracle_agent::actor::gateway=error",
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
            let found = directives(verbosity, filter, Writer::Aside);
            assert_eq!(found, want, "{verbosity} {filter:?}");
        }
        let own = "warn,oracle_agent::actor::gateway=error,ractor=warn";
        assert_eq!(directives(0, None, Writer::Own), own);
        assert_eq!(directives(1, None, Writer::Own), "info,ractor=warn");
    }
}
