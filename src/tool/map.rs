//! `repo_map`: the folders of the project and the outlines of its files, within a number of tokens.
//!
//! Every line of an outline is `path:line: definition`, so that it can be cited and read on with
//! `file_read`. Files and symbols that fit the focus get more room, the rest shrinks to folders with
//! numbers of files.
//!
//! | file | what it does |
//! |---|---|
//! | `focus` | what is asked for, and how well a path or a name fits |
//! | `list` | the files, by the walk of `code_search` |
//! | `read` | the outlines of the files that fit best |
//! | `folders` | the tree |
//! | `kinds` | in which languages it is |
//! | `render` | what is shown, within the budget |
//!
//! **Invariants:** the same tree and the same arguments give the same text, unless the deadline cut the
//! call, which the text then says; what is not shown is counted; at most so many files are looked at,
//! and at most so many of them read, whatever the size of the project.

mod focus;
mod folders;
mod kinds;
mod list;
mod read;
mod render;
mod settings;
#[cfg(unix)]
#[cfg(test)]
mod tests;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    ProjectRoot, Tool, ToolContext, ToolError, ToolOutput, arguments, blocking::Blocking,
    code::place::Place,
};
use crate::model::tool::{ToolNeed, ToolSpec};

use focus::Focus;
pub use settings::RepoMapSettings;
use settings::{FEWEST_TOKENS, MOST_TOKENS};

/// The tool `repo_map`.
#[derive(Debug)]
pub struct RepoMap {
    spec: ToolSpec,
    root: ProjectRoot,
    settings: RepoMapSettings,
    blocking: Blocking,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What matters: words, names of functions or types, paths. Files and symbols that fit get more
    /// room. Default: an overview of all.
    #[serde(default)]
    #[schemars(with = "String")]
    focus: Option<String>,
    /// Which part of the project: a folder, a file, or a glob such as `src/**/*.ts`. Default: all of
    /// it.
    #[serde(default)]
    #[schemars(with = "String")]
    path: Option<String>,
    /// Most tokens of the answer, 200 to 16000, about three bytes each.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 200, max = 16_000))]
    max_tokens: Option<u32>,
}

impl RepoMap {
    /// A tool for one project. Check the settings first ([`RepoMapSettings::validate`]).
    #[must_use]
    pub fn new(root: ProjectRoot, settings: RepoMapSettings) -> Self {
        let description = format!(
            "Shows how the project is built: its folders, and the functions, types and headings \
             of its files as `path:line: definition`. With a focus, what fits it gets most of the \
             room. {} tokens unless max_tokens says otherwise. Read on with file_read.",
            settings.max_tokens
        );
        let spec = arguments::reading::<Arguments>("repo_map", description, ToolNeed::Code);
        let blocking = Blocking::new(settings.concurrent, settings.deadline);
        Self {
            spec,
            root,
            settings,
            blocking,
        }
    }
}

impl Tool for RepoMap {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (root, settings) = (self.root.clone(), self.settings);
        let blocking = self.blocking.clone();
        Box::pin(async move {
            let wanted: Arguments = arguments::arguments(arguments)?;
            blocking
                .run(context, move |stop| {
                    map(&root, &wanted, settings, stop).map(ToolOutput::from)
                })
                .await
        })
    }
}

fn map(
    root: &ProjectRoot,
    wanted: &Arguments,
    settings: RepoMapSettings,
    stop: &CancellationToken,
) -> Result<String, ToolError> {
    let tokens = wanted.max_tokens.unwrap_or(settings.max_tokens);
    if !(FEWEST_TOKENS..=MOST_TOKENS).contains(&tokens) {
        return Err(ToolError::Tell(format!(
            "`max_tokens` is {tokens}, allowed is {FEWEST_TOKENS} to {MOST_TOKENS}"
        )));
    }
    let focus = Focus::new(wanted.focus.as_deref().unwrap_or(""));
    let place = Place::find(root, wanted.path.as_deref())?;
    let listing = list::list(root, &place, settings, stop);
    let outlines = read::outlines(root, &listing, &focus, settings, stop);
    Ok(render::render(
        &focus, &place, &listing, &outlines, tokens, stop,
    ))
}
