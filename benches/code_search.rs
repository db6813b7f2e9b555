//! Latency of `code_search` over 5,000 and 50,000 files, called as a tool: the first question,
//! which builds the index, with its memory; warm questions; detecting changed files; literals and
//! patterns, which scan the files. Prints figures and checks none. An argument sets another number
//! of files or names a folder to search.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop where it failed"
)]
#![expect(clippy::disallowed_methods, reason = "real time is what is measured")]
#![expect(clippy::print_stdout, reason = "a measurement shows its figures")]

use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use oracle_agent::testkit::tool_context;
use oracle_agent::tool::{CodeSearchSettings, FnTool, ProjectRoot, Tool as _, code_search};
use serde_json::json;
use tokio::runtime::Runtime;

#[path = "common/tree.rs"]
mod tree;

const SIZES: [usize; 2] = [5_000, 50_000];
/// Repetitions of each warm question.
const ROUNDS: usize = 30;
/// Repetitions of building the index.
const TIMES: usize = 3;
/// Longer than the index trusts its last check of a small project's files.
const LATER: Duration = Duration::from_millis(1_100);

/// Common, rare, misspelt and unknown words, a name, and another language.
const QUESTIONS: [&str; 6] = [
    tree::QUESTION,
    "which handler of the gateway reads a record from the journal window?",
    "what is the zizizi of a ververlim?",
    "hwo is the sesion bugdet of an actr sotred?",
    "decide_what_the_session_budget_is",
    "Wo wird das Budget einer Sitzung festgelegt?",
];
const LINES: [(&str, &str, &str); 4] = [
    ("a rare literal", "session_budget", "literal"),
    ("a literal without match", "nowhere_to_be_found", "literal"),
    ("a literal that is everywhere", "value", "literal"),
    ("a pattern", r"fn \w+_budget", "regex"),
];

fn main() {
    let wanted = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with("--"));
    let sizes = match wanted.as_deref().map(str::parse) {
        None => SIZES.to_vec(),
        Some(Ok(files)) => vec![files],
        Some(Err(_)) => {
            return measure(Path::new(&wanted.unwrap_or_default()), "the folder", false);
        }
    };
    for files in sizes {
        let folder = tempfile::tempdir().unwrap();
        let bytes = tree::write(folder.path(), files).unwrap();
        let name = format!("{files} files, {} MB", bytes / 1_000_000);
        measure(folder.path(), &name, true);
    }
}

fn measure(folder: &Path, name: &str, is_ours: bool) {
    println!("{name}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let mut first = Times::default();
    let (tool, before) = (search_in(folder), resident());
    first.take(|| call(&runtime, &tool, tree::QUESTION, "words"));
    let taken = resident().saturating_sub(before) / 1_000;
    for _ in 1..TIMES {
        let another = search_in(folder);
        first.take(|| call(&runtime, &another, tree::QUESTION, "words"));
    }
    println!("  first question, which makes the index: {first}");
    println!("  memory that this takes: about {taken} MB");

    let mut warm = Times::default();
    for question in QUESTIONS {
        let mut one = Times::default();
        for _ in 0..ROUNDS {
            one.take(|| call(&runtime, &tool, question, "words"));
        }
        println!("  warm, {question:?}: {one}");
        warm.0.extend(one.0);
    }
    println!("  warm, all of them: {warm}");

    let mut later = Times::default();
    for _ in 0..TIMES {
        sleep(LATER);
        later.take(|| call(&runtime, &tool, tree::QUESTION, "words"));
    }
    println!("  a second later, nothing changed: {later}");
    if is_ours {
        let mut seen = Times::default();
        for time in 0..TIMES {
            let word = ["quetzal", "ocelot", "axolotl"][time % 3];
            fs::write(
                folder.join("src/changed.rs"),
                format!("fn find_the_{word}() {{}}\n"),
            )
            .unwrap();
            sleep(LATER);
            let question = format!("where is the {word} found?");
            seen.take(|| until_seen(&runtime, &tool, &question));
        }
        println!("  a second later, one file changed, until that is seen: {seen}");
    }
    for (name, query, mode) in LINES {
        let mut times = Times::default();
        for _ in 0..TIMES {
            times.take(|| call(&runtime, &tool, query, mode));
        }
        println!("  {name}: {times}");
    }
}

fn until_seen(runtime: &Runtime, tool: &FnTool, question: &str) {
    while !call(runtime, tool, question, "words").starts_with("src/changed.rs") {
        sleep(Duration::from_millis(5));
    }
}

fn search_in(folder: &Path) -> FnTool {
    let root = ProjectRoot::open(folder).unwrap();
    let settings = CodeSearchSettings {
        deadline: Duration::from_secs(60),
        ..CodeSearchSettings::default()
    };
    code_search(root, settings)
}

fn call(runtime: &Runtime, tool: &FnTool, query: &str, mode: &str) -> String {
    runtime
        .block_on(tool.call(json!({"query": query, "mode": mode}), tool_context()))
        .unwrap()
        .text
}

/// Resident memory of this process in kB; 0 outside Linux.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or("");
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap_or_default()
}

#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn take<T>(&mut self, work: impl FnOnce() -> T) {
        let start = Instant::now();
        let made = work();
        self.0.push(start.elapsed());
        drop(made);
    }

    fn at(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (middle, late) = (self.at(50), self.at(99));
        write!(f, "p50 {middle:.1?}, p99 {late:.1?}")
    }
}
