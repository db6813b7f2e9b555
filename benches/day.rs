//! A recorded day: 200 sessions of 20 queries each, against the strict mock model in each dialect.
//! Shows which share of the possible prefixes was read from the provider's cache: the possible
//! prefix of a request is all that the one before it of its session had.
//!
//! The questions are those of `tests/data/queries_dev.tsv`; each brings the script of its replies:
//! calls of the project's tools with and without a text, answers with and without a signal, a limit
//! on turns. Sessions pause longer than they stay in memory. The seed is fixed.
//!
//! | variable | |
//! |---|---|
//! | `ORACLE_BENCH_SESSIONS` | sessions (200) |
//! | `ORACLE_BENCH_ONLY` | one dialect: `anthropic`, `openai` or `responses` |
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{collections::BTreeMap, error::Error, fs, ops::AddAssign, path::Path, time::Duration};

use oracle_agent::{
    actor::{Oracle, SessionHandle},
    config::Config,
    llm::{Dialect, Streaming},
    mock::{Mock, Settings},
    model::{Limits, QueryClassification, QueryId, Seq, SessionName, Submission},
    query::{Classifier, Lexicon, QueryClassifier, QueryContext, Weights},
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

#[path = "common/remote.rs"]
mod remote;
#[path = "common/tree.rs"]
mod tree;

type BenchResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

const QUERIES: u64 = 20;
/// Sessions on one mock model, whose cache holds so many.
const AT_ONCE: u64 = 25;
const FILES: usize = 120;
/// How long a session stays in memory.
const IDLE: Duration = Duration::from_secs(1);

const DIALECTS: [(Dialect, &str); 3] = [
    (Dialect::Anthropic, "claude-sonnet-5-5"),
    (Dialect::OpenAi, "gpt-oss-120b"),
    (Dialect::Responses, "gpt-6.1-terra"),
];

#[tokio::main]
async fn main() -> BenchResult<()> {
    let only = std::env::var("ORACLE_BENCH_ONLY").ok();
    let sessions = std::env::var("ORACLE_BENCH_SESSIONS").ok();
    let sessions = sessions.map_or(Ok(200), |number| number.parse::<u64>())?;
    let project = tempfile::tempdir()?;
    tree::write(project.path(), FILES)?;
    let mut files = Vec::new();
    list(project.path(), project.path(), &mut files)?;
    let rows = include_str!("../tests/data/queries_dev.tsv").lines();
    let rows = rows.filter_map(|row| Some(row.split_once('\t')?.1));
    let rows = rows.chain([tree::QUESTION]);
    let (rows, files): (Vec<&str>, Vec<String>) = (rows.collect(), files);
    for (dialect, model) in DIALECTS {
        if only.as_ref().is_some_and(|only| *only != dialect.as_str()) {
            continue;
        }
        let mut figures = Figures::default();
        for first in (0..sessions).step_by(AT_ONCE as usize) {
            let several = first..sessions.min(first + AT_ONCE);
            figures += part(several, (dialect, model), project.path(), &rows, &files).await?;
        }
        println!("{} ({model}): {figures}", dialect.as_str());
    }
    Ok(())
}

fn list(root: &Path, folder: &Path, files: &mut Vec<String>) -> BenchResult<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else {
            files.push(path.strip_prefix(root)?.display().to_string());
        }
    }
    Ok(())
}

/// Classifies a question without its script.
struct Unscripted(Classifier);

impl QueryClassifier for Unscripted {
    fn classify(&self, query: &str, context: QueryContext<'_>) -> QueryClassification {
        let question = query
            .split_once('\n')
            .map_or(query, |(_, question)| question);
        self.0.classify(question, context)
    }

    fn is_immediate(&self) -> bool {
        true
    }
}

/// Runs some of the sessions, at once, with a system and a model of their own.
async fn part(
    sessions: std::ops::Range<u64>,
    (dialect, model): (Dialect, &str),
    project: &Path,
    rows: &[&str],
    files: &[String],
) -> BenchResult<Figures> {
    let mock = Mock::start(Settings {
        strict: true,
        keep: 1,
        ..Settings::default()
    });
    let mock = mock.await?;
    let path = if dialect == Dialect::Anthropic {
        ""
    } else {
        "/v1"
    };
    let remote = remote::remote(&format!("{}{path}", mock.url()), dialect, Streaming::Always)?;
    let mut config = Config::default();
    config.session.idle_timeout = IDLE;
    let classifier = Classifier::new(&Lexicon::builtin()?).with_weights(Weights::builtin()?.into());
    let system = Oracle::builder()
        .config(config)
        .project(project)
        .backend(remote)
        .model(format!("server/{model}"))
        .classifier(Unscripted(classifier))
        .start()
        .await?;
    let mut running = JoinSet::new();
    for number in sessions {
        let mut chance = Chance(number);
        let queries = (0..QUERIES).map(|_| query(&mut chance, rows, files));
        let queries: Vec<_> = queries.collect();
        let name = SessionName::new(&format!("s{number}"))?;
        let session = system.oracle().session_by_key(name);
        running.spawn(async move { talk(&session, queries).await });
    }
    let mut figures = Figures::default();
    while let Some(talked) = running.join_next().await {
        figures += talked??;
    }
    figures.refused = mock.stats().status.get(&400).copied().unwrap_or(0);
    system.shut_down(Duration::from_secs(1)).await;
    mock.shut_down().await;
    Ok(figures)
}

async fn talk(session: &SessionHandle, queries: Vec<Query>) -> BenchResult<Figures> {
    let mut figures = Figures::default();
    for query in queries {
        if query.pauses {
            tokio::time::sleep(IDLE * 2).await;
        }
        let answer = session.answer(query.asked).await?;
        let outcome = answer.outcome.name().to_owned();
        *figures.outcomes.entry(outcome).or_default() += 1;
    }
    let mut before: Option<(QueryId, u64)> = None;
    for entry in session.records(Seq(0)).await? {
        let (Some(replied), Some(query)) = (entry.record.replied(), entry.record.query) else {
            continue;
        };
        let usage = replied.usage;
        if let Some((last, possible)) = before.replace((query, usage.input_tokens)) {
            let share = &mut figures.shares[usize::from(last == query)];
            share.requests += 1;
            share.possible += possible;
            share.read += usage.cached_tokens.min(possible);
        }
    }
    Ok(figures)
}

#[derive(Default)]
struct Figures {
    /// Of the first requests of queries, and of the others.
    shares: [Share; 2],
    outcomes: BTreeMap<String, u64>,
    /// Requests that the model refused.
    refused: u64,
}

#[derive(Default, Clone, Copy)]
struct Share {
    requests: u64,
    possible: u64,
    read: u64,
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.possible += other.possible;
        self.read += other.read;
    }
}

impl AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        for (share, other) in self.shares.iter_mut().zip(other.shares) {
            *share += other;
        }
        for (outcome, number) in other.outcomes {
            *self.outcomes.entry(outcome).or_default() += number;
        }
        self.refused += other.refused;
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = self.read as f64 * 100.0 / self.possible.max(1) as f64;
        let (requests, possible) = (self.requests, self.possible / 1_000_000);
        write!(
            f,
            "{percent:.1} % of {possible} million tokens in {requests} requests"
        )
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [first, others] = self.shares;
        let mut all = first;
        all += others;
        let (outcomes, refused) = (&self.outcomes, self.refused);
        write!(
            f,
            "{all}\n  first requests of queries: {first}\n  others: {others}\n"
        )?;
        write!(
            f,
            "  queries by outcome: {outcomes:?}; requests refused: {refused}"
        )
    }
}

/// A `SplitMix64` generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// In so many cases of a hundred.
    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn text(&mut self, words: usize) -> String {
        const WORDS: [&str; 12] = [
            "the", "handler", "reads", "a", "record", "and", "checks", "its", "budget", "before",
            "each", "call",
        ];
        let words: Vec<&str> = (0..words).map(|_| *self.of(&WORDS)).collect();
        words.join(" ")
    }
}

/// A question, with the script of its replies.
struct Query {
    asked: Submission,
    /// Whether its session was idle for a while before it.
    pauses: bool,
}

fn query(chance: &mut Chance, rows: &[&str], files: &[String]) -> Query {
    let question = *chance.of(rows);
    // A third of the questions needs no tool.
    let calling = if chance.is(33) {
        0
    } else {
        1 + chance.below(4)
    };
    let mut turns: Vec<Value> = (0..calling)
        .map(|turn| calls(chance, turn, files))
        .collect();
    let words = 40 + chance.below(300);
    let answer = chance.text(words);
    let signal = "<signal type=\"context_sufficient\"><sources_found>2</sources_found>\
                  <confidence>0.9</confidence></signal>";
    let whole = json!({"reply": format!("{answer}\n{signal}")});
    if chance.is(10) {
        turns.extend([json!({"reply": answer}), json!({"reply": signal})]);
    } else {
        turns.push(whole.clone());
    }
    // If the runtime asks for more.
    turns.extend(vec![whole; 4]);
    let script = json!({"turns": turns});
    let limit = chance
        .is(8)
        .then(|| Limits::turns(calling as u32 + 1).into());
    Query {
        asked: Submission {
            limits: limit,
            ..Submission::new(format!("mock: {script}\n{question}"))
        },
        pauses: chance.is(5),
    }
}

/// A turn with tool calls; half of these have no text.
fn calls(chance: &mut Chance, turn: usize, files: &[String]) -> Value {
    let call = |chance: &mut Chance| match chance.below(20) {
        0 => json!({"name": "file_read", "arguments": {"path": "src/missing.rs"}}),
        1..=6 => json!({"name": "code_search", "arguments": {"query": chance.text(1)}}),
        _ => json!({"name": "file_read", "arguments": {"path": chance.of(files)}}),
    };
    let calls: Vec<Value> = (0..1 + chance.below(2)).map(|_| call(chance)).collect();
    let mut reply = json!({"tool_calls": calls});
    if chance.is(50) {
        let (said, reason) = (chance.text(20), chance.text(6));
        reply["reply"] = format!(
            "{said}\n<signal type=\"need_turn\"><reason>step {turn}: {reason}</reason>\
             <confidence>0.8</confidence></signal>"
        )
        .into();
    }
    reply
}
