//! `code_search`: finds lines and places in the files of the project.
//!
//! Literals and patterns are searched in the files themselves, by ripgrep's crates (`pattern`,
//! `scan`). Plain questions (`question`, `words`, `lexicon`) use an index in memory (`index`,
//! `passages`), which is updated before a search and ranked by `rank` and `places`.
//!
//! **Invariants:** the same tree and arguments give the same text, unless the deadline cut the
//! search or the index was old, which the text then states. Its last line counts the omitted
//! results.

mod excerpt;
mod index;
pub(super) mod kind;
pub(super) mod lexicon;
pub(super) mod passages;
mod pattern;
mod places;
pub(super) mod question;
pub(super) mod rank;
mod report;
mod scan;
#[cfg(test)]
mod tests;
pub(super) mod words;

use std::{path::Path, pin::pin, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    FnTool, ProjectRoot, ToolError, ToolOutput, arguments,
    blocking::BlockingRunner,
    walk::{self, Scope},
};
use crate::model::tool::ToolNeed;

use index::{MIN_FRESH, ProjectIndex, Snapshot};
use pattern::Pattern;
use scan::Scanner;

const CONCURRENT: usize = 2;
/// How often a waiting search reports how far the index is.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum length of a query, in characters.
const MAX_QUERY: usize = 1_000;
const MAX_CONTEXT: u64 = 5;
/// Default number of places for a plain question, and of lines around their matches.
const DEFAULT_PLACES: u32 = 12;
const DEFAULT_CONTEXT: u64 = 1;

/// Maximum matches that a call may request.
const MAX_RESULTS: u32 = 100;

/// Settings of `code_search`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSearchSettings {
    /// Default number of matches to show.
    pub max_results: u32,
    /// Maximum matches to show of one file.
    pub max_per_file: u32,
    /// Maximum length of a shown piece of a line, in characters.
    pub max_line_chars: usize,
    /// Maximum size of a result, in bytes.
    pub max_output_bytes: usize,
    /// Size of a file, in bytes, above which it is skipped.
    pub max_file_bytes: u64,
    /// Deadline of a search, which then returns what it has found.
    pub deadline: Duration,
    /// Maximum files in the index for plain questions. The other modes search all files.
    pub index_files: usize,
    /// Approximate maximum memory of the index, in bytes.
    pub index_bytes: usize,
}

impl Default for CodeSearchSettings {
    fn default() -> Self {
        Self {
            max_results: 50,
            max_per_file: 10,
            max_line_chars: 240,
            max_output_bytes: 24 * 1024,
            max_file_bytes: 2 * 1024 * 1024,
            deadline: Duration::from_secs(5),
            index_files: 100_000,
            index_bytes: 512 * 1024 * 1024,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CodeSearchArguments {
    /// Upper case makes it case-sensitive.
    query: String,
    /// `literal` by default; `regex` matches single lines.
    mode: Option<SearchMode>,
    /// A folder, file or glob (`src/**/*.ts`).
    path: Option<String>,
    /// Lines around each match.
    #[schemars(range(min = 0, max = 5))]
    context: Option<u64>,
    /// Most matches.
    #[schemars(range(min = 1, max = 100))]
    max_results: Option<u32>,
    /// Without the lines.
    #[serde(default)]
    files_only: bool,
}

/// How a query is read. The variants have no doc comments: those would turn a plain `enum` of the schema into
/// a `oneOf`, which not every provider takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SearchMode {
    #[default]
    Literal,
    Regex,
    Words,
}

/// Creates the tool `code_search` for one project.
pub fn code_search(root: ProjectRoot, settings: CodeSearchSettings) -> FnTool {
    let description =
        "Finds where something is in the project's text files: `words` the places that answer a \
         plain question best, `literal` and `regex` lines, definitions first."
            .to_owned();
    let spec = arguments::spec::<CodeSearchArguments>("code_search", description, ToolNeed::Code);
    let index = Arc::new(ProjectIndex::new(root.clone(), &settings, MIN_FRESH));
    let runner = BlockingRunner::new(CONCURRENT, settings.deadline);
    FnTool::new(spec, move |wanted: CodeSearchArguments, context| {
        let (runner, root, index) = (runner.clone(), root.clone(), Arc::clone(&index));
        async move {
            let watched = Arc::clone(&index);
            let work = runner.run(move |stop| search(&root, &index, &wanted, &settings, stop));
            let mut work = pin!(work);
            loop {
                if let Ok(found) = timeout(REPORT_INTERVAL, &mut work).await {
                    return found;
                }
                if let Some(step) = watched.step() {
                    context.progress.report(step);
                }
            }
        }
    })
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    results: usize,
    of_file: usize,
    bytes: usize,
    context: u64,
    /// Maximum length of a line, in characters.
    line_chars: usize,
    files_only: bool,
    file_bytes: u64,
}

fn search(
    root: &ProjectRoot,
    index: &ProjectIndex,
    wanted: &CodeSearchArguments,
    settings: &CodeSearchSettings,
    stop: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let context = wanted.context.unwrap_or(0);
    if context > MAX_CONTEXT {
        refuse!(
            "`context` is {context}, the range is 0 to {MAX_CONTEXT}: read more with `file_read`"
        );
    }
    let results = wanted.max_results.unwrap_or(settings.max_results);
    if !(1..=MAX_RESULTS).contains(&results) {
        refuse!(
            "`max_results` is {results}, the range is 1 to {MAX_RESULTS}: narrow the query instead"
        );
    }
    if wanted.query.trim().is_empty() {
        refuse!("`query` is empty: name what to search for");
    }
    if wanted.query.chars().nth(MAX_QUERY).is_some() {
        refuse!("`query` is longer than {MAX_QUERY} characters: search for a part of it");
    }
    let scope = Scope::find(root, wanted.path.as_deref())?;
    // No file may crowd out others, but a single file may use the whole limit.
    let of_file = match scope.is_file() {
        true => results,
        false => settings.max_per_file.min(results),
    };
    let mut limits = Limits {
        results: results as usize,
        of_file: of_file as usize,
        bytes: settings.max_output_bytes,
        context,
        line_chars: settings.max_line_chars,
        files_only: wanted.files_only,
        file_bytes: settings.max_file_bytes,
    };
    let pattern = match wanted.mode.unwrap_or_default() {
        SearchMode::Literal => Pattern::literal(&wanted.query)?,
        SearchMode::Regex => Pattern::regex(&wanted.query)?,
        SearchMode::Words => {
            limits.context = wanted.context.unwrap_or(DEFAULT_CONTEXT);
            return answer(root, index, wanted, &scope, limits, settings, stop);
        }
    };
    // Each kept file shows at least one match, so more files are never needed.
    let tally = scan::walk(&scope, results as usize, stop, || {
        Scanner::new(&pattern, root, limits, stop)
    });
    Ok(report::report(&wanted.query, &scope, &tally, limits))
}

/// Answers a plain question from the index, or from a temporary index of the scope if that is not
/// indexed: a caller may name hidden and ignored files.
fn answer(
    root: &ProjectRoot,
    index: &ProjectIndex,
    wanted: &CodeSearchArguments,
    scope: &Scope,
    limits: Limits,
    settings: &CodeSearchSettings,
    stop: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    // A tenth of the time is kept for the search itself.
    let Some(mut known) = index.ready(stop, settings.deadline / 10 * 9) else {
        let step = index.step().map_or_else(String::new, |step| {
            let (done, total) = (step.done, step.total.unwrap_or(step.done));
            format!(" (indexing the project: {done} of {total})")
        });
        refuse!("the index is not ready yet{step}: try again, or use `literal` or `regex`");
    };
    let holds = |known: &Snapshot| {
        let mut files = known.shards.iter().flat_map(|shard| &shard.files);
        files.any(|file| scope.holds(&file.path))
    };
    if wanted.path.is_some() && !holds(&known) {
        known = index.of(scope, known, stop);
    }
    let mut buffer = Vec::new();
    let read = |path: &Path| {
        walk::read(root, path, limits.file_bytes, &mut buffer).ok()?;
        let text = String::from_utf8_lossy(&buffer).into_owned();
        Some((root.display_path(path), text))
    };
    let most = wanted.max_results.unwrap_or(DEFAULT_PLACES) as usize;
    let holds = |path: &Path| scope.holds(path);
    let stopped = || stop.is_cancelled();
    let found = places::best(&known.shards, &wanted.query, most, holds, read, stopped);
    let text = report::answer(&wanted.query, scope, &found, &known, limits);
    Ok(ToolOutput::new(text, &report::data(&found)))
}
