//! `history_search`: what was changed when, by whom and why, out of the log of the project's git
//! repository.
//!
//! It runs `git` itself, by arguments without a shell, and reads: nothing is fetched, written or
//! checked out. It shows no differences; what a commit changed is named by its files, and of one that is
//! asked for by its hash also by their numbers of lines.
//!
//! It is there in every project, so that the list of tools is stable and a profile may name it
//! anywhere; where there is no repository, or no git, the call says so.
//!
//! **Invariants:** what a model writes is never an option, a pattern or a command; only what
//! concerns the project folder is shown, also where the repository is larger; a call ends with its
//! deadline or its cancellation, and its process with it; the size of a result is bounded.

mod asking;
mod authors;
mod between;
mod day;
mod git;
mod one;
mod report;
mod settings;
#[cfg(unix)]
#[cfg(test)]
mod tests;
mod wanted;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use super::{
    ProjectRoot, Tool, ToolContext, ToolError, ToolOutput, arguments, blocking::withdrawn,
};
use crate::model::tool::{ToolNeed, ToolSpec};

use git::Git;
pub use settings::HistorySearchSettings;
use wanted::{Arguments, Asked, Bound, Changed, Wanted};

/// The tool `history_search`.
#[derive(Debug)]
pub struct HistorySearch {
    spec: ToolSpec,
    git: Arc<Git>,
    settings: HistorySearchSettings,
    permits: Arc<Semaphore>,
}

impl HistorySearch {
    /// A tool for one project. Check the settings first ([`HistorySearchSettings::validate`]).
    #[must_use]
    pub fn new(root: ProjectRoot, settings: HistorySearchSettings) -> Self {
        let description = format!(
            "Finds commits in the project's git history by words of their messages, by the path that \
             they changed, by a text that they added or removed or whose lines they changed, by their author, or by days or \
             commits between which they lie; counts them by author; or tells of one by its hash. Each comes with its date, author, message and files, the newest first, {} at most unless max_results \
             says otherwise. Without arguments it gives the latest ones.",
            settings.max_results
        );
        let spec = arguments::reading::<Arguments>("history_search", description, ToolNeed::Code);
        Self {
            spec,
            git: Arc::new(Git::new(root)),
            settings,
            permits: Arc::new(Semaphore::new(settings.concurrent)),
        }
    }
}

impl Tool for HistorySearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (git, settings) = (Arc::clone(&self.git), self.settings);
        let permits = Arc::clone(&self.permits);
        Box::pin(async move {
            let arguments: Arguments = arguments::arguments(arguments)?;
            let asked = arguments.asked(git.root(), settings)?;
            let turn = async {
                tokio::select! {
                    permit = permits.acquire() => permit.ok(),
                    () = sleep(settings.deadline) => None,
                }
            };
            let search = async {
                let Some(_permit) = turn.await else {
                    return Err(ToolError::tell(
                        "too many calls of this tool are running: try again, or go on without it",
                    ));
                };
                Ok(match asked {
                    Asked::Search(wanted) => {
                        let until = Instant::now() + settings.deadline;
                        match git.between(&wanted, until).await? {
                            Ok(between) if wanted.is_by_author => {
                                let authors = git.authors(&wanted, &between, until).await?;
                                report::of_authors(&wanted, &authors, settings)
                            }
                            Ok(between) => {
                                let log = git.log(&wanted, &between, until).await?;
                                report::report(&wanted, &log, settings)
                            }
                            Err((hash, found)) => report::of_one(hash, &found, settings),
                        }
                    }
                    Asked::One(hash) => {
                        let found = git.commit(&hash, settings).await?;
                        report::of_one(&hash, &found, settings)
                    }
                })
            };
            tokio::select! {
                biased;
                () = context.cancelled.cancelled() => Err(withdrawn()),
                searched = search => searched.map(ToolOutput::from),
            }
        })
    }
}
