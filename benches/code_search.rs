//! How long `code_search` takes over 5,000 files of 4 KB, as the tool is called. Prints figures and
//! asserts nothing about them.
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop where it failed"
)]

use std::{fmt::Write as _, fs};

use divan::Bencher;
use oracle_agent::model::{CallId, QueryId, SessionKey, SessionName};
use oracle_agent::tool::{CodeSearch, CodeSearchSettings, ProjectRoot, Tool as _, ToolContext};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const FILES: usize = 5_000;
const FILES_PER_FOLDER: usize = 50;
const LINES: usize = 100;

fn main() {
    divan::main();
}

fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..FILES {
        let inner = folder
            .path()
            .join(format!("src/part{}", file / FILES_PER_FOLDER));
        fs::create_dir_all(&inner).unwrap();
        let mut text = String::new();
        for line in 0..LINES {
            writeln!(text, "    let value_{line} = compute({file}, {line});").unwrap();
        }
        if file % 500 == 7 {
            text.push_str("fn decide_what_the_session_budget_is() {}\n");
        }
        fs::write(inner.join(format!("file{file}.rs")), text).unwrap();
    }
    folder
}

/// Name, query and mode.
const QUERIES: [(&str, &str, &str); 5] = [
    ("rare literal", "session_budget", "literal"),
    ("no match", "nowhere_to_be_found", "literal"),
    ("matches everywhere", "compute", "literal"),
    ("pattern", r"fn \w+_budget", "regex"),
    (
        "question",
        "where is the budget of a session decided?",
        "words",
    ),
];

#[divan::bench(args = QUERIES.map(|(name, ..)| name), sample_count = 20)]
fn five_thousand_files(bencher: Bencher, name: &str) {
    let folder = project();
    let root = ProjectRoot::open(folder.path()).unwrap();
    let tool = CodeSearch::new(root, CodeSearchSettings::default());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (_, query, mode) = QUERIES
        .into_iter()
        .find(|(known, ..)| *known == name)
        .unwrap();
    bencher.bench_local(|| {
        let context = ToolContext {
            call: CallId::new("call"),
            session: SessionKey::local(SessionName::new("bench").unwrap()),
            query: QueryId(1),
            cancelled: CancellationToken::new(),
        };
        runtime
            .block_on(tool.call(json!({"query": query, "mode": mode}), context))
            .unwrap()
    });
}
