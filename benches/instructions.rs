//! Instructions of the hot path, each against a limit. They do not depend on the machine's load, so
//! a count over its limit is a regression.
//!
//! The benchmark runs itself under valgrind: each case twice, with the same set-up and another number
//! of rounds. The difference of the two counts is the cost of the rounds, in all threads. Needs
//! valgrind; `cargo bench --bench instructions -- sqlite` runs the cases with that word.
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{
    error::Error,
    hint::black_box,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, ExitCode, Output},
    sync::Arc,
    thread,
};

use oracle_agent::{
    actor::SessionHandle,
    journal::{Journal, Memory, Sqlite},
    kernel::Report,
    llm::{Dialect, Streaming},
    model::{
        CallId, Import, ImportedMessage, Seq, Speaker, Submission, ToolCall, record::codec::Encoder,
    },
    query::{Classifier, Lexicon, QueryContext, Weights},
    signal,
    testkit::{TestOracle, TestSession, TestTool},
};

/// As in the `oracle` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "common/remote.rs"]
mod remote;
#[path = "common/script.rs"]
mod script;
#[path = "common/steps.rs"]
mod steps;

use remote::remote;
use script::{DONE, MORE, Script, TURNS};

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

struct Case {
    name: &'static str,
    run: fn(usize) -> BenchResult<()>,
    /// In the shorter of the two runs; the longer one has twice as many.
    rounds: usize,
    /// What a round has of what is counted.
    items: usize,
    /// Instructions per item: a tenth over the count when it was last set.
    limit: u64,
}

const fn case(
    name: &'static str,
    limit: u64,
    (rounds, items): (usize, usize),
    run: fn(usize) -> BenchResult<()>,
) -> Case {
    Case {
        name,
        run,
        rounds,
        items,
        limit,
    }
}

/// Instructions per turn, unless the name says what else.
const CASES: &[Case] = &[
    case("memory, whole", 169_000, QUERIES, |n| {
        queries(Stored::Memory, Seen::Answer, n)
    }),
    case("memory, streamed", 326_000, QUERIES, |n| {
        queries(Stored::Memory, Seen::All, n)
    }),
    case("sqlite, whole", 590_000, QUERIES, |n| {
        queries(Stored::Sqlite, Seen::Answer, n)
    }),
    case("sqlite, streamed", 770_000, QUERIES, |n| {
        queries(Stored::Sqlite, Seen::All, n)
    }),
    case("openai, after 1 KB", 439_000, (20, 1), |n| {
        history(Dialect::OpenAi, 1 << 10, n)
    }),
    case("openai, after 10 KB", 456_000, (20, 1), |n| {
        history(Dialect::OpenAi, 10 << 10, n)
    }),
    case("openai, after 100 KB", 625_000, (20, 1), |n| {
        history(Dialect::OpenAi, 100 << 10, n)
    }),
    case("openai, after 1 MB", 2_440_000, (20, 1), |n| {
        history(Dialect::OpenAi, 1 << 20, n)
    }),
    case("anthropic, after 1 KB", 453_000, (20, 1), |n| {
        history(Dialect::Anthropic, 1 << 10, n)
    }),
    case("anthropic, after 1 MB", 2_590_000, (20, 1), |n| {
        history(Dialect::Anthropic, 1 << 20, n)
    }),
    case("session's turn 10", 464_000, (20, 1), |n| later(10, n)),
    case("session's turn 100", 532_000, (20, 1), |n| later(100, n)),
    case("session's turn 1,000", 1_150_000, (20, 1), |n| {
        later(1_000, n)
    }),
    case("kernel: a reply", 67_100, (100, 1), kernel),
    case("signal of a reply", 40_400, (100, 1), signals),
    case("classification", 132_000, (100, 1), classification),
    case(
        "encoding of a turn's records",
        46_400,
        (50, TURNS),
        encoding,
    ),
];
const QUERIES: (usize, usize) = (50, TURNS);

fn main() -> BenchResult<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [run, name, rounds] = &arguments[..]
        && run == "run"
    {
        let case = CASES.iter().find(|case| case.name == name);
        let case = case.ok_or_else(|| format!("no case `{name}`"))?;
        (case.run)(rounds.parse()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let words: Vec<&String> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let is_chosen = |case: &&Case| words.iter().all(|word| case.name.contains(&***word));
    let mut over = 0;
    println!("{:<30} {:>12} {:>12}", "instructions", "counted", "limit");
    for case in CASES.iter().filter(is_chosen) {
        let (few, many) = (count(case, case.rounds)?, count(case, 2 * case.rounds)?);
        let counted = many.saturating_sub(few) / (case.rounds * case.items) as u64;
        let is_over = counted > case.limit;
        let verdict = if is_over { "  OVER" } else { "" };
        println!(
            "{:<30} {counted:>12} {:>12}{verdict}",
            case.name, case.limit
        );
        over += usize::from(is_over);
    }
    if over > 0 {
        println!(
            "{over} over the limit: find what the change added, or raise the limit and say why"
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Instructions of a whole run, in all threads.
fn count(case: &Case, rounds: usize) -> BenchResult<u64> {
    let output = Command::new("valgrind")
        .args([
            "--tool=cachegrind",
            "--cache-sim=no",
            "--cachegrind-out-file=/dev/null",
        ])
        .arg(std::env::current_exe()?)
        .args(["run", case.name, &rounds.to_string()])
        .output()
        .map_err(|error| format!("cannot run valgrind (apt-get install valgrind): {error}"))?;
    let Output { status, stderr, .. } = output;
    let said = String::from_utf8_lossy(&stderr);
    let counted = said.lines().find_map(|line| line.split_once("refs:"));
    let counted = counted.filter(|_| status.success());
    let (_, counted) = counted.ok_or_else(|| format!("{}: {status}\n{said}", case.name))?;
    Ok(counted.trim().replace(',', "").parse()?)
}

fn on_one_thread<T>(work: impl Future<Output = BenchResult<T>>) -> BenchResult<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

#[derive(Clone, Copy)]
enum Stored {
    Memory,
    Sqlite,
}

#[derive(Clone, Copy)]
enum Seen {
    Answer,
    All,
}

/// Queries of three turns, each in a new session, with a model in the process.
fn queries(stored: Stored, seen: Seen, rounds: usize) -> BenchResult<()> {
    let directory = tempfile::tempdir()?;
    let journal: Arc<dyn Journal> = match stored {
        Stored::Memory => Arc::new(Memory::new()),
        Stored::Sqlite => {
            let broken = Box::new(|why: &str| eprintln!("broken: {why}"));
            Arc::new(Sqlite::open(directory.path(), broken)?)
        }
    };
    on_one_thread(async {
        let pieces = match seen {
            Seen::Answer => 1,
            Seen::All => 20,
        };
        let oracle = TestOracle::new(Script { pieces }).journal(journal);
        let oracle = oracle.tool(TestTool::new("look").answers("a is there"));
        let oracle = oracle.start().await?;
        for number in 0..=rounds {
            ask(&oracle.session(&format!("s{number}"))?, seen, TURNS).await?;
        }
        Ok(())
    })
}

async fn ask(session: &TestSession, seen: Seen, turns: usize) -> BenchResult<()> {
    let question = Submission::new("Where is the function a defined?");
    let answer = match seen {
        Seen::Answer => session.answer(question).await?,
        Seen::All => {
            SessionHandle::ask(session, question)
                .await?
                .answer()
                .await?
        }
    };
    match answer.turns as usize == turns {
        true => Ok(()),
        false => Err(format!("{} turns, {:?}", answer.turns, answer.outcome).into()),
    }
}

/// Queries of one turn in a session that began with so many bytes, with a model over HTTP.
fn history(dialect: Dialect, bytes: usize, rounds: usize) -> BenchResult<()> {
    on_one_thread(async {
        let session = session_over_http(dialect).await?;
        let import = Import {
            instructions: None,
            messages: conversation(bytes),
        };
        session
            .answer(Submission::new("Go on.").with(import))
            .await?;
        for _ in 0..rounds {
            ask(&session, Seen::Answer, 1).await?;
        }
        Ok(())
    })
}

/// Queries of one turn after so many others.
fn later(before: usize, rounds: usize) -> BenchResult<()> {
    on_one_thread(async {
        let session = session_over_http(Dialect::OpenAi).await?;
        for _ in 0..before + rounds {
            ask(&session, Seen::Answer, 1).await?;
        }
        Ok(())
    })
}

async fn session_over_http(dialect: Dialect) -> BenchResult<TestSession> {
    let remote = remote(&serve(dialect)?, dialect, Streaming::Never)?;
    let oracle = TestOracle::new(remote).start().await?;
    let session = oracle.session("s")?;
    // The system lives as long as the process.
    std::mem::forget(oracle);
    Ok(session)
}

/// Questions, tool calls, results of a kilobyte and answers.
fn conversation(bytes: usize) -> Vec<ImportedMessage> {
    const RESULT: &str =
        "    if let Some(found) = table.get(\"key\") {\n        return Ok(found);\n    }\n";
    let exchange = |number: usize| {
        let id = CallId::new(&format!("call_{number}"));
        let call = ToolCall {
            id: id.clone(),
            name: "look".into(),
            arguments: format!("{{\"query\":\"key {number}\",\"path\":\"src/table.rs\"}}"),
        };
        let mut asks = ImportedMessage::new(Speaker::Assistant, "Let me look.");
        asks.calls.push(call);
        let mut result = ImportedMessage::new(Speaker::Tool, RESULT.repeat(13));
        result.call = Some(id);
        let question = ImportedMessage::new(Speaker::User, "Where is the key looked up?");
        [
            question,
            asks,
            result,
            ImportedMessage::new(Speaker::Assistant, "In `table.rs`."),
        ]
    };
    (0..bytes >> 10).flat_map(exchange).collect()
}

/// Gives every request the same answer, by threads that read no request.
fn serve(dialect: Dialect) -> BenchResult<String> {
    let text = serde_json::to_string(DONE)?;
    let body = match dialect {
        Dialect::OpenAi | Dialect::Responses => format!(
            "{{\"choices\":[{{\"index\":0,\"finish_reason\":\"stop\",\"message\":{{\"role\":\"assistant\",\
             \"content\":{text}}}}}],\"usage\":{{\"prompt_tokens\":900,\"completion_tokens\":40}}}}"
        ),
        Dialect::Anthropic => format!(
            "{{\"type\":\"message\",\"role\":\"assistant\",\"stop_reason\":\"end_turn\",\"content\":\
             [{{\"type\":\"text\",\"text\":{text}}}],\"usage\":{{\"input_tokens\":900,\"output_tokens\":40}}}}"
        ),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || answer_all(&stream, &answer));
        }
    });
    Ok(url)
}

fn answer_all(mut stream: &TcpStream, answer: &str) -> BenchResult<()> {
    let mut reader = BufReader::new(stream);
    let mut body = Vec::new();
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse()?;
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        stream.write_all(answer.as_bytes())?;
    }
}

/// A decision on a reply and the records that follow.
fn kernel(rounds: usize) -> BenchResult<()> {
    let waiting: Option<Vec<_>> = (0..200).map(|_| steps::session_at(5)).collect();
    let waiting = waiting.ok_or("no session")?;
    for (mut session, token) in waiting.into_iter().take(rounds) {
        let report = Report::ModelReplied {
            token,
            reply: steps::reply(5, &[]),
        };
        let decision = session.observe(report, steps::NOW);
        black_box(steps::apply(&mut session, decision));
    }
    Ok(())
}

fn signals(rounds: usize) -> BenchResult<()> {
    let reply = "The store keeps every turn, and the index says where to look. ".repeat(16) + MORE;
    for _ in 0..rounds {
        black_box(signal::read(black_box(&reply), steps::NOW.at));
    }
    Ok(())
}

fn classification(rounds: usize) -> BenchResult<()> {
    let classifier =
        Classifier::new(&Lexicon::builtin()?).with_weights(Arc::new(Weights::builtin()?));
    let question = "Could you tell me where the retry handler decides whether a failed payment is \
                    tried again, and which config key sets the limit?";
    for _ in 0..rounds {
        black_box(classifier.classify(black_box(question), QueryContext::Fresh));
    }
    Ok(())
}

/// The records of a query of three turns, as the journal keeps them.
fn encoding(rounds: usize) -> BenchResult<()> {
    let records = on_one_thread(async {
        let oracle = TestOracle::new(Script { pieces: 1 });
        let oracle = oracle.tool(TestTool::new("look").answers("a is there"));
        let oracle = oracle.start().await?;
        let session = oracle.session("s")?;
        ask(&session, Seen::Answer, TURNS).await?;
        Ok(session.records(Seq(0)).await?)
    })?;
    for _ in 0..rounds {
        let mut encoder = Encoder::default();
        for entry in &records {
            black_box(encoder.encode(&entry.record)?);
        }
    }
    Ok(())
}
