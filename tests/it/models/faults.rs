//! The table of faults: what goes wrong between a model and the user, and what both see of it.
//!
//! Each fault once, for ever, and for ever with another model in the chain; in both dialects. What is
//! expected of a row stands in it; all that the log says of it, in the snapshot.

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

/// How often it goes wrong, and who else could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Once,
    /// Once, with a reply that is asked for as a whole.
    Whole,
    Ever,
    Spare,
}

/// Rows that are played at the same time; most of them wait.
const AT_A_TIME: usize = 24;
const MODES: [Mode; 4] = [Mode::Once, Mode::Whole, Mode::Ever, Mode::Spare];
const DIALECTS: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];

/// What comes of a fault.
#[derive(Debug, Clone, Copy)]
enum Want {
    /// Nobody notices.
    Nothing,
    /// The call is tried again; a fault that stays ends the query or goes to the next model.
    Again(&'static str),
    /// The server is away or limits the rate: the call is tried again until patience ends, or goes to the
    /// next model.
    Waits(&'static str),
    /// Trying again is no use: the query ends, or goes to the next model.
    Final(&'static str),
    /// A reply that ends the query, with this code; another model is not asked.
    Ends(&'static str),
    /// So many calls of tools run, and then there is an answer.
    Runs(usize),
    /// A call of a tool is refused for this; the model reads why.
    Refuses(&'static str),
    /// A turn without an answer; another turn follows, up to the limit.
    Turn,
}

use Want::{Again, Ends, Final, Nothing, Refuses, Runs, Turn, Waits};

/// The faults of the mock that mean the same in both dialects, and what comes of them.
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
    ("stall-headers", Waits("headers_timeout")),
    ("hang-up", Waits("hung_up")),
    ("error-first", Again("server_error")),
    ("error-late", Again("server_error")),
    ("cut", Again("cut")),
    ("stall", Again("stall")),
    ("no-mark", Nothing),
    ("no-end", Again("cut")),
    ("comments-only=50", Again("stall")),
    ("comments", Nothing),
    ("slow=1000", Again("stall")),
    ("slow=5", Again("total_timeout")),
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
    // Not the mock's: no server, no such name, no TLS there.
    ("refused", Waits("connect")),
    ("dns", Waits("dns")),
    ("tls", Final("tls")),
];

/// Where a dialect is not like the other.
const EXCEPTIONS: &[(&str, Dialect, Want)] = &[
    // A message without content is one all the same.
    ("empty-choices", Dialect::Anthropic, Turn),
    // Told by a status, and by no code that would tell it from others.
    ("content-filter", Dialect::Anthropic, Final("bad_request")),
];

/// Where a reply that is no stream is not like one.
const OF_WHOLES: &[(&str, Want)] = &[
    // Its headers come when all of it is there.
    ("stall-headers", Again("stall")),
];

fn exception(fault: &str, dialect: Dialect, mode: Mode) -> Option<Want> {
    let mut wholes = OF_WHOLES.iter().filter(|_| mode == Mode::Whole);
    let whole = wholes.find(|row| row.0 == fault).map(|row| row.1);
    let mut own = EXCEPTIONS.iter();
    whole.or_else(|| Some(own.find(|row| (row.0, row.1) == (fault, dialect))?.2))
}

/// Those that have tests of their own.
const OTHERS: [FaultKind; 3] = [FaultKind::Duplicate, FaultKind::Split, FaultKind::HugeLine];

/// Short for what waits for them, and long enough for the try after it.
fn deadlines(fault: &str) -> Deadlines {
    let seconds = Duration::from_secs;
    match fault {
        "stall-headers" => Deadlines {
            connect: seconds(1),
            headers: seconds(5),
            first_token: seconds(7),
            ..Deadlines::FAR
        },
        // Of a whole reply nothing is there before all of it.
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

/// A port at which nobody listens. Nobody else gets it as long as this lives.
fn closed() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket
}

/// Where a row's server is, if it is not the mock.
fn address(fault: &str, closed: &TcpSocket) -> Option<String> {
    match fault {
        "refused" => Some(format!("http://{}", closed.local_addr().unwrap())),
        // Longer than a name may be, so that no resolver has it.
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
    played.spare = mode == Mode::Spare;
    played.tls = fault == "tls";
    play(&name(fault, dialect, mode), &played).await
}

fn name(fault: &str, dialect: Dialect, mode: Mode) -> String {
    format!("{fault}, {dialect:?}, {mode:?}")
}

fn is_played(fault: &str, dialect: Dialect, mode: Mode) -> bool {
    match (fault, mode) {
        // What is not there now will not be there at the next try either.
        ("refused" | "dns" | "tls", Mode::Once | Mode::Whole) => false,
        // A whole reply may be there in time.
        ("slow=5", Mode::Whole) => false,
        // Waiting takes time: what follows from a fault that stays is the same for all.
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
        // It goes on so until the last turn, which is answered without tools; another model is not asked.
        (Runs(_) | Refuses(_), Mode::Ever | Mode::Spare) => {
            assert_eq!(end, whole, "{name}");
            assert_eq!((first, second), (3, 0), "{name}");
        }
        (Turn, Mode::Ever | Mode::Spare) => assert_eq!(second, 0, "{name}"),
    }
    // Another turn may be asked for with words of ours, which come back too.
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
async fn every_fault_ends_as_the_table_says() {
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
            // How often it is tried is a matter of time.
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

/// By itself: it keeps the processor so busy that deadlines of others would pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_of_very_many_bytes_is_not_read_to_its_end() {
    let came = come("huge-line", Dialect::OpenAi, Mode::Once).await;
    check("huge-line", Again("too_much"), Mode::Once, true, &came);
}

#[test]
fn every_fault_of_the_mock_has_its_row() {
    let rows = ROWS.iter().filter_map(|row| row.0.parse::<Fault>().ok());
    let rows: BTreeSet<_> = rows.map(|fault| fault.kind).chain(OTHERS).collect();
    let all = FaultKind::ALL.iter().copied().collect();
    assert_eq!(rows, all);
}
