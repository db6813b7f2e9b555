//! The table of faults between a model and the user, and what both see of them.
//!
//! Each fault runs in both dialects: once, permanently, and permanently with another model in the
//! chain. A row holds the expected result; the snapshot holds what the log says of it.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use oracle_agent::{
    llm::{Dialect, Streaming},
    mock::{Fault, FaultKind},
};
use tokio::net::TcpSocket;

use super::play::{Came, Deadlines, Play, QUESTION, TRIES, play};

/// Number of failures, and whether another model is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Once,
    /// Once, with a reply that is no stream.
    Whole,
    Ever,
    Spare,
}

/// Rows that run concurrently; most of them wait.
const AT_A_TIME: usize = 24;
/// With a permanent fault: long enough for a second attempt on a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);
const MODES: [Mode; 4] = [Mode::Once, Mode::Whole, Mode::Ever, Mode::Spare];
const DIALECTS: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];

/// The effect of a fault.
#[derive(Debug, Clone, Copy)]
enum Want {
    /// Invisible to the client.
    Nothing,
    /// The call is retried; a permanent fault ends the query or fails over.
    Again(&'static str),
    /// The server is unavailable or limits the rate: the call is retried until patience ends, or
    /// fails over.
    Waits(&'static str),
    /// A retry is pointless: the query ends, or fails over.
    Final(&'static str),
    /// The query ends with this code, without failover.
    Ends(&'static str),
    /// So many tool calls run, and then there is an answer.
    Runs(usize),
    /// A tool call is refused with this code, which the model reads.
    Refuses(&'static str),
    /// A turn without an answer; another turn follows, up to the limit.
    Turn,
}

use Want::{Again, Ends, Final, Nothing, Refuses, Runs, Turn, Waits};

/// The mock's faults with the same effect in both dialects.
const ROWS: &[(&str, Want)] = &[
    ("400", Final("bad_request")),
    ("401", Final("unauthorized")),
    ("403", Final("forbidden")),
    ("404", Final("model_not_found")),
    ("408", Again("request_timeout")),
    ("409", Again("conflict")),
    ("413", Final("too_large")),
    ("422", Final("bad_request")),
    ("429", Waits("rate_limited")),
    ("500", Again("server_error")),
    ("502", Waits("overloaded")),
    ("503", Waits("overloaded")),
    ("504", Waits("overloaded")),
    ("529", Waits("overloaded")),
    ("retry-seconds=1", Waits("rate_limited")),
    ("retry-date=1", Waits("rate_limited")),
    ("retry-ms=50", Waits("rate_limited")),
    ("should-retry", Final("bad_request")),
    ("should-not-retry", Final("server_error")),
    ("quota", Final("quota")),
    ("context", Final("context")),
    ("html", Waits("overloaded")),
    ("error-200", Again("server_error")),
    ("stall-headers", Final("headers_timeout")),
    ("hang-up", Waits("hung_up")),
    ("error-first", Again("server_error")),
    ("error-late", Again("server_error")),
    ("cut", Again("cut")),
    ("stall", Again("stall")),
    ("no-mark", Nothing),
    ("no-end", Again("cut")),
    ("comments-only=50", Final("stall")),
    ("comments", Nothing),
    ("slow=1000", Final("stall")),
    ("slow=5", Final("total_timeout")),
    ("out-of-order", Nothing),
    ("bom", Nothing),
    ("crlf", Nothing),
    ("json", Nothing),
    ("empty-choices", Again("empty_reply")),
    ("empty-text", Turn),
    ("reasoning", Nothing),
    ("reasoning-content", Nothing),
    ("reasoning-only", Turn),
    ("refusal", Ends("refusal")),
    ("content-filter", Ends("content_filter")),
    ("length", Turn),
    ("no-usage", Nothing),
    ("finish-empty", Nothing),
    ("finish-missing", Nothing),
    ("finish-stop", Runs(2)),
    ("finish-with-last", Nothing),
    ("calls", Runs(2)),
    ("call-cut", Refuses("broken_arguments")),
    ("call-no-index", Runs(2)),
    ("call-same-index", Runs(2)),
    ("call-object", Runs(1)),
    ("call-unknown", Refuses("unknown_tool")),
    // Not the mock's: no server, no such name, no TLS.
    ("refused", Waits("connect")),
    ("dns", Waits("dns")),
    ("tls", Final("tls")),
];

/// Effects that differ in one dialect.
const EXCEPTIONS: &[(&str, Dialect, Want)] = &[
    // A message without content is valid.
    ("empty-choices", Dialect::Anthropic, Turn),
    // Reported by a status without a distinct code.
    ("content-filter", Dialect::Anthropic, Final("bad_request")),
];

/// Effects that differ for a reply that is no stream.
const OF_WHOLES: &[(&str, Want)] = &[
    // Its headers come when it is complete.
    ("stall-headers", Final("stall")),
    // Nothing precedes it either.
    ("stall", Final("stall")),
];

fn exception(fault: &str, dialect: Dialect, mode: Mode) -> Option<Want> {
    let mut wholes = OF_WHOLES.iter().filter(|_| mode == Mode::Whole);
    let whole = wholes.find(|row| row.0 == fault).map(|row| row.1);
    let mut own = EXCEPTIONS.iter();
    whole.or_else(|| Some(own.find(|row| (row.0, row.1) == (fault, dialect))?.2))
}

/// Faults with tests of their own.
const OTHERS: [FaultKind; 3] = [FaultKind::Duplicate, FaultKind::Split, FaultKind::HugeLine];

/// Short for the faults that wait for one, and long enough for the retry.
fn deadlines(fault: &str) -> Deadlines {
    let seconds = Duration::from_secs;
    match fault {
        "stall-headers" => Deadlines {
            connect: seconds(1),
            headers: seconds(5),
            first_token: seconds(7),
            ..Deadlines::FAR
        },
        // A whole reply sends nothing before it is complete.
        "stall" => Deadlines {
            first_token: seconds(6),
            idle: seconds(6),
            ..Deadlines::FAR
        },
        "comments-only=50" | "slow=1000" => Deadlines {
            first_token: seconds(6),
            ..Deadlines::FAR
        },
        "slow=5" => Deadlines {
            total: seconds(6),
            ..Deadlines::FAR
        },
        _ => Deadlines::FAR,
    }
}

/// Reserves a port without listening on it, until the socket is dropped.
fn closed() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

fn address(fault: &str, closed: &TcpSocket) -> Option<String> {
    match fault {
        "refused" => Some(format!("http://{}", closed.local_addr().unwrap())),
        // Longer than a DNS label may be, so it never resolves.
        "dns" => Some(format!("http://{}.invalid", "name".repeat(16))),
        _ => None,
    }
}

async fn come(fault: &str, dialect: Dialect, mode: Mode) -> Came {
    let closed = closed();
    let address = address(fault, &closed);
    let faults = match (fault.parse::<Fault>(), mode) {
        (Err(_), _) => Vec::new(),
        (Ok(_), Mode::Once | Mode::Whole) => vec![format!("{fault}@1")],
        (Ok(_), Mode::Ever | Mode::Spare) => vec![fault.to_owned()],
    };
    let mut played = Play::new(dialect, &faults);
    if mode == Mode::Whole {
        played.streaming = Streaming::Never;
    }
    played.address = address;
    played.deadlines = deadlines(fault);
    if mode == Mode::Ever {
        played.patience = PATIENCE;
    }
    played.spare = mode == Mode::Spare;
    played.tls = fault == "tls";
    play(&name(fault, dialect, mode), &played).await
}

fn name(fault: &str, dialect: Dialect, mode: Mode) -> String {
    format!("{fault}, {dialect:?}, {mode:?}")
}

fn is_played(fault: &str, dialect: Dialect, mode: Mode) -> bool {
    match (fault, mode) {
        // A retry would fail in the same way.
        ("refused" | "dns" | "tls", Mode::Once | Mode::Whole) => false,
        // A whole reply may be there in time.
        ("slow=5", Mode::Whole) => false,
        // Waiting takes real time, and a permanent fault has the same effect in all modes.
        (_, Mode::Ever | Mode::Spare) if deadlines(fault) != Deadlines::FAR => {
            (dialect, mode) == (Dialect::OpenAi, Mode::Ever)
        }
        _ => true,
    }
}

fn check(name: &str, want: Want, mode: Mode, reaches: bool, came: &Came) {
    let end = (&*came.outcome, came.reason.as_deref());
    let whole = ("answered", None);
    let codes = came.codes();
    let [first, second] = came.requests;
    let tries = if reaches { u64::from(TRIES) } else { 0 };
    match (want, mode) {
        (Nothing, _) => {
            assert_eq!((end, &*codes), (whole, &[][..]), "{name}");
            assert_eq!((first, second), (1, 0), "{name}");
        }
        (Again(code) | Waits(code), Mode::Once | Mode::Whole) => {
            assert_eq!(end, whole, "{name}");
            assert_eq!(codes, [("llm.retried", code)], "{name}");
            assert_eq!((first, second), (2, 0), "{name}");
        }
        (Waits(code), Mode::Ever) => {
            assert_eq!(end.0, "failed", "{name}");
            assert_eq!(codes, [("llm.retried", code)], "{name}");
            assert!(first >= tries && second == 0, "{name}: {first}");
        }
        (Again(code), Mode::Ever) => {
            assert_eq!(end, ("failed", Some(code)), "{name}");
            assert_eq!(codes, [("llm.retried", code)], "{name}");
            assert_eq!((first, second), (tries, 0), "{name}");
        }
        (Again(code) | Waits(code), Mode::Spare) => {
            assert_eq!(end, whole, "{name}");
            let told = [("llm.retried", code), ("llm.failed_over", code)];
            assert_eq!(codes, told, "{name}");
            assert_eq!((first, second), (tries, 1), "{name}");
        }
        (Final(code) | Ends(code), Mode::Once | Mode::Whole | Mode::Ever)
        | (Ends(code), Mode::Spare) => {
            assert_eq!(end, ("failed", Some(code)), "{name}");
            assert_eq!(codes, [], "{name}");
            assert_eq!((first, second), (tries.min(1), 0), "{name}");
        }
        (Final(code), Mode::Spare) => {
            assert_eq!(end, whole, "{name}");
            assert_eq!(codes, [("llm.failed_over", code)], "{name}");
            assert_eq!((first, second), (tries.min(1), 1), "{name}");
        }
        (Runs(calls), Mode::Once | Mode::Whole) => {
            assert_eq!(end, whole, "{name}");
            assert_eq!((came.ran.len(), &*codes), (calls, &[][..]), "{name}");
            assert_eq!((first, second), (2, 0), "{name}");
        }
        (Refuses(why), Mode::Once | Mode::Whole) => {
            assert_eq!(end, whole, "{name}");
            assert_eq!(codes, [("tool.refused", why)], "{name}");
            assert_eq!((first, second), (2, 0), "{name}");
        }
        (Turn, Mode::Once | Mode::Whole) => {
            assert_eq!((end, &*codes), (whole, &[][..]), "{name}");
            assert_eq!((first, second), (2, 0), "{name}");
        }
        // Repeats up to the last turn, which has no tools; there is no failover.
        (Runs(_) | Refuses(_), Mode::Ever | Mode::Spare) => {
            assert_eq!(end, whole, "{name}");
            assert_eq!((first, second), (3, 0), "{name}");
        }
        (Turn, Mode::Ever | Mode::Spare) => assert_eq!(second, 0, "{name}"),
    }
    // Another turn may start with our guidance, which the mock repeats.
    let only_asked = !matches!(
        (want, mode),
        (Turn, _) | (Runs(_) | Refuses(_), Mode::Ever | Mode::Spare)
    );
    if end == whole && only_asked {
        assert_eq!(came.text.trim(), QUESTION, "{name}");
    }
    assert!(came.most_often() <= 1, "{name}: text is doubled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_has_the_outcome_of_the_table() {
    let every = ROWS
        .iter()
        .flat_map(|(fault, want)| DIALECTS.map(|dialect| (*fault, *want, dialect)))
        .flat_map(|(fault, want, dialect)| MODES.map(|mode| (fault, want, dialect, mode)))
        .filter(|(fault, _, dialect, mode)| is_played(fault, *dialect, *mode));
    let runs = every.map(async |(fault, want, dialect, mode)| {
        let came = AssertUnwindSafe(come(fault, dialect, mode)).catch_unwind();
        let came = came.await.ok()?;
        let want = exception(fault, dialect, mode).unwrap_or(want);
        let reaches = fault.parse::<Fault>().is_ok();
        let name = name(fault, dialect, mode);
        let checked = AssertUnwindSafe(|| check(&name, want, mode, reaches, &came));
        catch_unwind(checked).ok()?;
        let line = match (want, mode) {
            // The number of attempts depends on time.
            (Waits(_), Mode::Ever) => format!("{}, when patience ended", came.outcome),
            _ => came.line(),
        };
        Some((fault, format!("{dialect:?}"), mode, line))
    });
    let runs: Vec<_> = stream::iter(runs)
        .buffer_unordered(AT_A_TIME)
        .collect()
        .await;
    let failed = runs.iter().filter(|run| run.is_none()).count();
    assert_eq!(failed, 0, "rows are not as the table says, see above");
    let mut runs: Vec<_> = runs.into_iter().flatten().collect();
    let mut table = String::new();
    for (fault, _) in ROWS {
        let _ = writeln!(table, "{fault}");
        for mode in MODES {
            let mut of: Vec<_> = runs
                .extract_if(.., |run| (run.0, run.2) == (*fault, mode))
                .collect();
            of.sort();
            let same = of.windows(2).all(|two| two[0].3 == two[1].3);
            if same && of.len() == DIALECTS.len() {
                of.truncate(1);
                of[0].1 = "both".to_owned();
            }
            for (_, dialect, _, line) in of {
                let mode = format!("{mode:?}").to_lowercase();
                let _ = writeln!(table, "  {mode:<5} {dialect:<9} {line}");
            }
        }
    }
    insta::assert_snapshot!("faults", table);
}

/// A test of its own: it keeps the processor busy enough to exceed other tests' deadlines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_line_is_not_read_to_its_end() {
    let came = come("huge-line", Dialect::OpenAi, Mode::Once).await;
    check("huge-line", Again("too_much"), Mode::Once, true, &came);
}

#[test]
fn every_mock_fault_has_a_row() {
    let rows = ROWS.iter().filter_map(|row| row.0.parse::<Fault>().ok());
    let rows: BTreeSet<_> = rows.map(|fault| fault.kind).chain(OTHERS).collect();
    let all = FaultKind::ALL.iter().copied().collect();
    assert_eq!(rows, all);
}
