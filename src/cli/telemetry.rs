//! The log on standard error, for diagnosis, and the export of spans (feature `otel`).
//!
//! The module `cli` reports to users about their own commands; results never pass through here.

use std::{
    ffi::OsStr,
    io::{self, Write},
};

use parking_lot::Mutex;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
#[cfg(not(feature = "otel"))]
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{
    EnvFilter, Layer as _, fmt::writer::BoxMakeWriter, layer::SubscriberExt as _,
};

use crate::model::visible;

#[cfg(feature = "otel")]
mod otel;

const QUIET: &str = "ractor=warn,rmcp=off";
const MOST_LINES: usize = 16_384;

/// The background writer, and the guard whose drop flushes it. A lock, because the process may end
/// in any thread.
static BACKGROUND: Mutex<Option<(NonBlocking, WorkerGuard)>> = Mutex::new(None);

/// The thread that writes the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogWriter {
    /// The thread that logs; it blocks until the line is written.
    Blocking,
    /// A background thread, so that a server never waits for a slow reader. Lines beyond the buffer
    /// are dropped, and the end of the log reports their number.
    Background,
}

/// The running log. Dropping it flushes pending spans for up to three seconds, and pending lines for
/// up to a second.
#[derive(Debug)]
#[must_use = "dropping it ends the log"]
pub struct LogGuard {
    #[cfg(feature = "otel")]
    export: Option<otel::Export>,
}

/// Starts the log. `filter` is the value of `RUST_LOG`; if it is empty, `verbosity` selects the
/// level: 0 for warnings, 1 for info, 2 for debug, more for everything. Invalid parts of `filter`
/// are reported on standard error and ignored. Only the first call in a process has an effect.
pub fn start(verbosity: u8, filter: Option<&OsStr>, writer: LogWriter) -> LogGuard {
    let filter = directives(verbosity, filter.and_then(OsStr::to_str), writer);
    // However detailed the log is, it does not ask for content in exported spans.
    #[cfg(feature = "otel")]
    let filter = format!("{filter},{}=off", crate::actor::trace::CONTENT);
    let writer = match writer {
        LogWriter::Background => BoxMakeWriter::new(background(Readable(io::stderr()))),
        LogWriter::Blocking => BoxMakeWriter::new(|| Readable(io::stderr())),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        // Reporting them would panic if standard error is closed.
        .log_internal_errors(false)
        .with_filter(EnvFilter::builder().parse_lossy(filter));
    let subscriber = tracing_subscriber::registry().with(lines);
    #[cfg(not(feature = "otel"))]
    let _ = subscriber.try_init();
    LogGuard {
        #[cfg(feature = "otel")]
        export: otel::start(subscriber),
    }
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        #[cfg(feature = "otel")]
        drop(self.export.take());
        finish(None);
    }
}

/// Writes lines whose hidden characters are escaped.
struct Readable<W>(W);

impl<W: Write> Write for Readable<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0
            .write_all(visible::escaped(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes the reason for an abrupt end to standard error, after the pending lines. A slow reader
/// does not keep the process from ending.
pub fn write_final_line(text: &str) {
    if !finish(Some(text)) {
        // If standard error is closed, there is no other output.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

fn background(out: impl Write + Send + 'static) -> NonBlocking {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(MOST_LINES);
    let (writer, guard) = builder.thread_name("log").finish(out);
    *BACKGROUND.lock() = Some((writer.clone(), guard));
    writer
}

/// Ends the background writer within about a second; returns false if there is none.
fn finish(last: Option<&str>) -> bool {
    let background = BACKGROUND.lock().take();
    let Some((mut writer, guard)) = background else {
        return false;
    };
    let lost = writer.error_counter().dropped_lines();
    let lost =
        (lost > 0).then(|| format!("oracle: {lost} lines of the log were dropped: log less"));
    for line in lost.as_deref().into_iter().chain(last) {
        // Never fails: a line beyond the buffer is dropped.
        let _ = writer.write_all(format!("{line}\n").as_bytes());
    }
    drop(guard);
    true
}

fn directives(verbosity: u8, filter: Option<&str>, writer: LogWriter) -> String {
    if let Some(filter) = filter.filter(|filter| !filter.trim().is_empty()) {
        // The URL of an MCP server may contain a secret, and rmcp logs it.
        return format!("rmcp=off,{filter}");
    }
    let level = match verbosity {
        // `ask` and `chat` show waits for a model in their status line.
        0 if writer == LogWriter::Blocking => "warn,oracle_runtime::actor::gateway=error",
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
    fn log_filter_of_the_environment_overrides_the_option() {
        for (verbosity, filter, want) in [
            (0, None, "warn,ractor=warn,rmcp=off"),
            (1, None, "info,ractor=warn,rmcp=off"),
            (2, None, "debug,ractor=warn,rmcp=off"),
            (3, None, "trace,ractor=warn,rmcp=off"),
            (u8::MAX, None, "trace,ractor=warn,rmcp=off"),
            (0, Some(""), "warn,ractor=warn,rmcp=off"),
            (1, Some(" "), "info,ractor=warn,rmcp=off"),
            (2, Some("ractor=trace"), "rmcp=off,ractor=trace"),
            (0, Some("rmcp=trace"), "rmcp=off,rmcp=trace"),
        ] {
            let found = directives(verbosity, filter, LogWriter::Background);
            assert_eq!(found, want, "{verbosity} {filter:?}");
        }
        let own = "warn,oracle_runtime::actor::gateway=error,ractor=warn,rmcp=off";
        assert_eq!(directives(0, None, LogWriter::Blocking), own);
        assert_eq!(
            directives(1, None, LogWriter::Blocking),
            "info,ractor=warn,rmcp=off"
        );
    }

    #[test]
    fn hidden_characters_of_a_line_are_escaped() {
        let mut written = Vec::new();
        let line = "\x1b[2mwarn\x1b[0m said=\u{202e}a\u{9b}\n";
        Readable(&mut written).write_all(line.as_bytes()).unwrap();
        let shown = "\x1b[2mwarn\x1b[0m said=\\u202ea\\u009b\n";
        assert_eq!(String::from_utf8(written).unwrap(), shown);
    }

    /// There is one background writer per process, so these cases share a test.
    #[test]
    fn log_writer_flushes_at_exit_and_never_blocks() {
        let (sent, read) = std::sync::mpsc::channel();
        let mut writer = background(Sent(sent));
        for number in 0..1_000 {
            writeln!(writer, "line {number}").unwrap();
        }
        write_final_line("that was all");
        writeln!(writer, "too late").unwrap();
        drop(writer);
        let told: String = read.iter().collect();
        assert_eq!(told.lines().count(), 1_001);
        assert!(told.ends_with("line 999\nthat was all\n"), "{told}");

        let (sent, _stuck) = std::sync::mpsc::sync_channel(0);
        let mut writer = background(Stuck(sent));
        for _ in 0..=2 * MOST_LINES {
            writeln!(writer, "never read").unwrap();
        }
        assert!(writer.error_counter().dropped_lines() > 0);
        write_final_line("nobody reads this");
    }

    struct Sent(std::sync::mpsc::Sender<String>);

    impl Write for Sent {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let _ = self.0.send(text);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Stuck(std::sync::mpsc::SyncSender<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.send(());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
