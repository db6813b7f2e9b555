//! `code_search`: finds lines in the files of the project, with ripgrep's own crates.
//!
//! It reads regular files inside the [`ProjectRoot`] only, and only text. There is no index: a
//! search reads what it searches, bounded by a deadline and by caps on what it keeps and shows.
//!
//! **Invariants:** the same tree and the same arguments give the same text, unless the deadline
//! cut the search, which the text then says; whatever is not shown is counted in its last line.

mod place;
mod plan;
mod report;
mod scan;
mod settings;
#[cfg(unix)]
#[cfg(test)]
mod tests;
mod walk;
mod words;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{ProjectRoot, Tool, ToolContext, ToolError, arguments, blocking::Blocking, schema_of};
use crate::model::tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolSpec};

use place::Place;
use plan::{Mode, Plan};
use report::ReportCaps;
use scan::{FileCaps, Scanner};
pub use settings::CodeSearchSettings;
use settings::MOST_RESULTS;

/// Most lines of context.
const MOST_CONTEXT: u64 = 5;

/// The tool `code_search`.
#[derive(Debug)]
pub struct CodeSearch {
    spec: ToolSpec,
    root: ProjectRoot,
    settings: CodeSearchSettings,
    blocking: Blocking,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to look for. Upper case in it makes a literal or regex search case-sensitive.
    query: String,
    /// How to read the query: `literal` (default) as it stands, `regex` as a regular expression
    /// on single lines, `words` as a plain question: the lines and files that hold most of its
    /// words come first.
    #[serde(default)]
    #[schemars(with = "Mode")]
    mode: Option<Mode>,
    /// Where to look: a folder, a file, or a glob such as `*.rs` or `src/**/*.ts`. Default: the
    /// whole project.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Lines to show before and after each match. Default: 0.
    #[serde(default)]
    #[schemars(with = "u64", range(min = 0, max = 5))]
    context: Option<u64>,
    /// Most matches to show.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 100))]
    max_results: Option<u32>,
}

impl CodeSearch {
    /// A tool for one project. Check the settings first ([`CodeSearchSettings::validate`]).
    #[must_use]
    pub fn new(root: ProjectRoot, settings: CodeSearchSettings) -> Self {
        let description = format!(
            "Finds lines in the text files of the project by words, a literal text or a regular \
             expression. Files that are hidden or ignored by git are left out. Matches come as \
             `path:line: text`, {} at most unless max_results says otherwise.",
            settings.max_results
        );
        let spec = ToolSpec {
            name: "code_search".to_owned(),
            description,
            schema: schema_of::<Arguments>(),
            serves: ToolNeed::Code,
            effect: ToolEffect::ReadOnly,
            repeat: ToolRepeat::Safe,
            approval: ToolApproval::NotNeeded,
        };
        let blocking = Blocking::new(settings.concurrent, settings.deadline);
        Self {
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
    ) -> BoxFuture<'static, Result<String, ToolError>> {
        let (root, settings) = (self.root.clone(), self.settings);
        let blocking = self.blocking.clone();
        Box::pin(async move {
            let wanted: Arguments = arguments::arguments(arguments)?;
            blocking
                .run(context, move |stop| search(&root, &wanted, &settings, stop))
                .await
        })
    }
}

fn search(
    root: &ProjectRoot,
    wanted: &Arguments,
    settings: &CodeSearchSettings,
    stop: &CancellationToken,
) -> Result<String, ToolError> {
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
    let plan = Plan::new(&wanted.query, wanted.mode.unwrap_or_default())?;
    let place = Place::find(root, wanted.path.as_deref())?;
    let results = results as usize;
    let file_caps = FileCaps {
        file_bytes: settings.max_file_bytes,
        matches: settings.max_per_file.min(results),
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
    Ok(report::report(&wanted.query, &place, &tally, caps))
}
