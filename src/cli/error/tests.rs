//! Messages and exit codes of errors.

use std::io::ErrorKind;

use super::*;
use crate::{
    cli::{
        Args,
        terminal::{Device, OutputStream, Recording},
    },
    kernel::Refusal,
};

/// Exit code, standard output and standard error.
fn reported(stop: CliError) -> (u8, String, String) {
    let (mut terminal, recording) = Recording::terminal("", Device::Other);
    let code = stop.report(&mut terminal);
    (code, recording.out(), recording.err())
}

#[test]
fn each_stop_has_its_message_and_exit_code() {
    let broken = || io::Error::from(ErrorKind::BrokenPipe);
    let full = || io::Error::from(ErrorKind::StorageFull);
    let busy = || AskError::Refused(Refusal::Busy);
    let busy_text = "oracle: the session is running a query: wait for its end, queue the message, \
                     or interrupt the query\n";
    let full_text = "oracle: cannot write to standard output: no storage space\n";
    for (name, stop, code, err) in [
        ("usage", CliError::usage("no"), 2, "oracle: no\n"),
        (
            "several",
            CliError::all(["a", "b"]),
            2,
            "oracle: a\noracle: b\n",
        ),
        (
            "lines",
            CliError::usage("a\nb"),
            2,
            "oracle: a\noracle: b\n",
        ),
        ("failed", CliError::failed("no"), 1, "oracle: no\n"),
        ("nobody reads", broken().into(), 0, ""),
        ("no room", full().into(), 1, full_text),
        ("busy", busy().into(), 5, busy_text),
        (
            "interrupted twice",
            CliError::Interrupted,
            130,
            "oracle: interrupted\n",
        ),
        (
            "stopped",
            AskError::Stopped.into(),
            1,
            "oracle: the session stopped before it answered and may have recorded the message: check it before you repeat the message, or use an idempotency key\n",
        ),
    ] {
        let want = (code, String::new(), err.to_owned());
        assert_eq!(reported(stop), want, "{name}");
    }
}

#[test]
fn help_exits_zero_and_a_usage_error_does_not() {
    let typed = |line: &[&str]| {
        let line = std::iter::once("oracle").chain(line.iter().copied());
        reported(Args::read(line.map(Into::into)).unwrap_err())
    };
    let version = format!("oracle {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(typed(&["--version"]), (0, version, String::new()));
    let (code, out, err) = typed(&["chat", "--help"]);
    assert!(code == 0 && out.contains("Usage: oracle chat") && err.is_empty());
    let (code, out, err) = typed(&["chat", "--nope"]);
    assert!(code == 2 && out.is_empty());
    assert!(
        err.starts_with("oracle: unexpected argument '--nope' found\n"),
        "{err}"
    );
}

#[test]
fn closed_output_does_not_fail_help() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (mut terminal, recording) = Recording::terminal("", Device::Other);
    terminal.out = OutputStream::new(Closed, Device::Other);
    let help = Args::read(["oracle", "--help"].map(Into::into)).unwrap_err();
    assert_eq!(
        (help.report(&mut terminal), recording.err()),
        (0, String::new())
    );
    terminal.err = OutputStream::new(Closed, Device::Other);
    assert_eq!(
        CliError::usage("nobody hears this").report(&mut terminal),
        2
    );
}
