//! Startup time of the program: `oracle --version`; the first progress line and the answer of
//! `oracle ask` over a small project, with a new and with a used data directory.
//!
//! The offline model answers, so that only program and disk are measured. `TMPDIR` chooses the
//! disk, `ORACLE_BENCH_RUNS` the number of runs (200).
#![expect(clippy::print_stdout, reason = "its figures are its output")]

use std::{
    error::Error,
    fmt, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use tokio::time::Instant;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

const FILES: [(&str, &str); 3] = [
    ("README.md", "# Shop\n\nInvoices are parsed and uploaded.\n"),
    (
        "parser.rs",
        "/// Reads one invoice from text.\npub fn parse_invoice(text: &str) -> Option<u64> {\n    \
         text.trim().parse().ok()\n}\n",
    ),
    (
        "retry.rs",
        "/// Waits longer after every failed upload.\npub fn retry_upload(n: u32) -> u64 {\n    \
         100 << n\n}\n",
    ),
];

fn main() -> Done<()> {
    let runs = std::env::var("ORACLE_BENCH_RUNS");
    let runs = runs.ok().and_then(|number| number.parse().ok());
    let runs: usize = runs.unwrap_or(200);
    let project = tempfile::tempdir()?;
    for (name, text) in FILES {
        fs::write(project.path().join(name), text)?;
    }
    // An unmeasured run loads the program into memory.
    version(project.path())?;
    let mut versions = Times::default();
    for _ in 0..runs {
        versions.0.push(version(project.path())?);
    }
    println!("oracle --version: {versions}");
    let used = tempfile::tempdir()?;
    ask(project.path(), used.path())?;
    let new = measured(runs, || {
        let data = tempfile::tempdir()?;
        ask(project.path(), data.path())
    })?;
    let warm = measured(runs, || ask(project.path(), used.path()))?;
    for (name, asked) in [("new", new), ("used", warm)] {
        println!(
            "oracle ask, {name} data directory, first progress line: {}",
            asked.first
        );
        println!(
            "oracle ask, {name} data directory, answer: {}",
            asked.answer
        );
        println!(
            "oracle ask, {name} data directory, end of the process: {}",
            asked.end
        );
    }
    Ok(())
}

/// Runs the program without any environment, and with no Ollama to find.
fn oracle(project: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oracle"));
    command
        .env_clear()
        .env("OLLAMA_HOST", "127.0.0.1:1")
        .current_dir(project)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}

fn version(project: &Path) -> Done<Duration> {
    let began = Instant::now();
    let output = oracle(project).arg("--version").output()?;
    let took = began.elapsed();
    match output.status.success() {
        true => Ok(took),
        false => Err("`oracle --version` failed".into()),
    }
}

/// Times since the start of a run.
struct Asked<T> {
    first: T,
    answer: T,
    end: T,
}

fn measured(runs: usize, run: impl Fn() -> Done<Asked<Duration>>) -> Done<Asked<Times>> {
    let mut all = Asked {
        first: Times::default(),
        answer: Times::default(),
        end: Times::default(),
    };
    for _ in 0..runs {
        let asked = run()?;
        all.first.0.push(asked.first);
        all.answer.0.push(asked.answer);
        all.end.0.push(asked.end);
    }
    Ok(all)
}

/// The first line of output is the first progress, the last one the answer.
fn ask(project: &Path, data: &Path) -> Done<Asked<Duration>> {
    let began = Instant::now();
    let mut command = oracle(project);
    command.args(["ask", "--model", "offline", "--json", "--events"]);
    command.arg("--data-dir").arg(data);
    let mut child = command.arg("where is parse_invoice implemented?").spawn()?;
    let out = child.stdout.take().ok_or("no standard output")?;
    let (mut first, mut answer) = (None, began.elapsed());
    let mut last = String::new();
    for line in BufReader::new(out).lines() {
        last = line?;
        answer = began.elapsed();
        first.get_or_insert(answer);
    }
    let status = child.wait()?;
    if !status.success() || !last.contains("parser.rs") {
        return Err(format!("`oracle ask` ended with {status}: {last}").into());
    }
    let first = first.ok_or("no line")?;
    let end = began.elapsed();
    Ok(Asked { first, answer, end })
}

#[derive(Default)]
struct Times(Vec<Duration>);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
            sorted.get(index).copied().unwrap_or_default()
        };
        write!(f, "median {:.1?}, p99 {:.1?}", at(50), at(99))
    }
}
