//! `code_search`: finds lines in the files of the project, with ripgrep's own crates.
//!
//! It reads regular files inside the [`ProjectRoot`] only, and only text. A literal text or a pattern
//! is looked for in the files themselves; a plain question in an index in memory, which is brought
//! up to date before (`index`). All is bounded by a deadline and by caps on what is kept and shown.
//!
//! **Invariants:** the same tree and the same arguments give the same text, unless the deadline
//! cut the search or the index was not ready or not new, which the text then says; whatever is not shown is
//! counted in its last line.

mod index;
pub(super) mod place;
mod plan;
mod ranking;
mod report;
mod rules;
mod scan;
mod settings;
mod slices;
#[cfg(unix)]
#[cfg(test)]
mod tests;
pub(super) mod walk;
mod words;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Progress, ProjectRoot, Tool, ToolContext, ToolError, ToolOutput, arguments, blocking::Blocking,
};
use crate::model::tool::{ToolNeed, ToolSpec};

use index::{Limits, ProjectIndex};
use place::Place;
use plan::{Mode, Plan};
use ranking::RankedCaps;
use report::ReportCaps;
use scan::{FileCaps, Scanner};
pub use settings::CodeSearchSettings;
use settings::MOST_RESULTS;

/// Most lines of context.
const MOST_CONTEXT: u64 = 5;
/// Places shown to a plain question that names no number, and lines around what matters in them.
const PLACES: usize = 12;
const CONTEXT: u64 = 1;

/// The tool `code_search`.
#[derive(Debug)]
pub struct CodeSearch {
    spec: ToolSpec,
    root: ProjectRoot,
    settings: CodeSearchSettings,
    blocking: Blocking,
    /// For plain questions; none if the settings want none.
    index: Option<Arc<ProjectIndex>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to look for. Upper case in it makes a literal or regex search case-sensitive.
    query: String,
    /// How to read the query. `literal` (default): as it stands; for a name or message that you know.
    /// `regex`: as a regular expression on single lines. `words`: as a plain question, where you do
    /// not know what it is called: the best places come first, by all forms of its words, their
    /// other names and where they stand.
    #[serde(default)]
    #[schemars(with = "Mode")]
    mode: Option<Mode>,
    /// Where to look: a folder, a file, or a glob such as `*.rs` or `src/**/*.ts`. Default: the
    /// whole project.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Lines to show before and after each match. Default: 0, and 1 with `words`.
    #[serde(default)]
    #[schemars(with = "u64", range(min = 0, max = 5))]
    context: Option<u64>,
    /// Most matches (with `words`: places) to show.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 100))]
    max_results: Option<u32>,
}

impl CodeSearch {
    /// A tool for one project. Check the settings first ([`CodeSearchSettings::validate`]).
    #[must_use]
    pub fn new(root: ProjectRoot, settings: CodeSearchSettings) -> Self {
        Self::showing(root, settings, Progress::default())
    }

    /// The same, with somebody who shows how far the index is.
    #[must_use]
    pub fn showing(root: ProjectRoot, settings: CodeSearchSettings, progress: Progress) -> Self {
        let description = format!(
            "Finds where something is in the text files of the project. With mode `words` for a plain \
             question: the places that answer it best come first, by file, each headed \
             `path (lines a–b of n): Type > function`, {PLACES} at most. With `literal` for an exact \
             name or message, or `regex` for a pattern: lines as `path:line: text`, {} at most, \
             definitions before uses, tests and generated files last. The last line says what was \
             left out or skipped. Files that are hidden or ignored by git are left out, unless `path` \
             names them.",
            settings.max_results
        );
        let spec = arguments::reading::<Arguments>("code_search", description, ToolNeed::Code);
        let blocking = Blocking::new(settings.concurrent, settings.deadline);
        let limits = Limits {
            files: settings.index_files,
            bytes: settings.index_bytes,
            file_bytes: settings.max_file_bytes,
        };
        let index =
            (limits.files > 0).then(|| Arc::new(ProjectIndex::new(root.clone(), limits, progress)));
        Self {
            index,
            spec,
            root,
            settings,
            blocking,
        }
    }
}

impl Tool for CodeSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (root, settings, index) = (self.root.clone(), self.settings, self.index.clone());
        let blocking = self.blocking.clone();
        Box::pin(async move {
            let wanted: Arguments = arguments::arguments(arguments)?;
            blocking
                .run(context, move |stop| {
                    search(&root, index.as_deref(), &wanted, &settings, stop)
                })
                .await
        })
    }
}

fn search(
    root: &ProjectRoot,
    index: Option<&ProjectIndex>,
    wanted: &Arguments,
    settings: &CodeSearchSettings,
    stop: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let context = wanted.context.unwrap_or(0);
    if context > MOST_CONTEXT {
        return Err(ToolError::Tell(format!(
            "`context` is {context}, allowed is 0 to {MOST_CONTEXT}: read more with `file_read`"
        )));
    }
    let results = wanted.max_results.unwrap_or(settings.max_results);
    if !(1..=MOST_RESULTS).contains(&results) {
        return Err(ToolError::Tell(format!(
            "`max_results` is {results}, allowed is 1 to {MOST_RESULTS}: narrow the query instead"
        )));
    }
    let mode = wanted.mode.unwrap_or_default();
    let plan = Plan::new(&wanted.query, mode)?;
    let place = Place::find(root, wanted.path.as_deref())?;
    let results = results as usize;
    let indexed = index.filter(|_| mode == Mode::Words);
    // Half of the time is kept for going through the files, should the index not be ready.
    let known = indexed.map(|index| index.ready(stop, settings.deadline / 2));
    let unready = matches!(known, Some(None));
    if let Some(Some(ready)) = known {
        let most = wanted.max_results.map_or(PLACES, |most| most as usize);
        let age = ready.age;
        let ranked = index::rank(ready, root, &place, &wanted.query, settings, most, stop);
        // What is hidden or ignored is in no index, but may be asked for by its name.
        if ranked.searched > 0 || wanted.path.is_none() {
            let caps = RankedCaps {
                bytes: settings.max_output_bytes,
                line_chars: settings.max_line_chars,
                context: wanted.context.unwrap_or(CONTEXT),
                file_bytes: settings.max_file_bytes,
                age,
            };
            let text = ranking::report(&wanted.query, &place, &ranked, caps);
            return Ok(ToolOutput::new(text, &ranking::data(&ranked)));
        }
    }
    // So that no file takes the place of others: where one alone is asked for, there are none.
    let of_file = match place.is_file() {
        true => results,
        false => settings.max_per_file.min(results),
    };
    let file_caps = FileCaps {
        file_bytes: settings.max_file_bytes,
        matches: of_file,
        line_chars: settings.max_line_chars,
        context,
    };
    // Each file that is kept shows at least one match, so more files are never needed.
    let tally = walk::walk(&place, results, stop, || {
        Scanner::new(&plan, root, file_caps, stop)
    });
    let caps = ReportCaps {
        results,
        bytes: settings.max_output_bytes,
        context,
        file_bytes: settings.max_file_bytes,
    };
    let text = report::report(&wanted.query, &place, &tally, caps);
    Ok(if unready {
        format!("{text}; the index was not ready, so the lines are not ranked by what they say")
            .into()
    } else {
        text.into()
    })
}
