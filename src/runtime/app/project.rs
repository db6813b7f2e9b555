//! The built-in tools over a project folder, and their settings.

use std::{io, path::Path, sync::Arc, time::Duration};

use super::{BuildError, JournalThreads, project_name, variables};
use crate::{
    config::{Config, Environment},
    journal::{Journal, Memory},
    kernel::offer,
    model::ToolSpec,
    prompt::{ToolLine, Variables},
    tool::{
        CodeSearchSettings, FnTool, Notes, NotesSettings, ProjectRoot, RepoMapSettings, RootError,
        Tool as _, code_search, file_read, history_search, note_read, note_search, note_write,
        repo_map, thread_search,
    },
};

pub(super) fn project_tools(
    config: &Config,
    folder: &Path,
    journal: Arc<dyn Journal>,
) -> Result<Vec<FnTool>, BuildError> {
    let root = ProjectRoot::open(folder)?;
    let notes = Arc::new(notes(config, &root)?);
    let deadline = in_time(config);
    // No file search takes longer than a minute.
    let soon = deadline.min(Duration::from_secs(60));
    let search = CodeSearchSettings {
        deadline: soon,
        max_file_bytes: config.tools.max_file_bytes,
        ..CodeSearchSettings::default()
    };
    let map = RepoMapSettings::default();
    let map = RepoMapSettings {
        max_tokens: config.tools.map_tokens,
        max_file_bytes: map.max_file_bytes.min(config.tools.max_file_bytes),
        deadline: soon,
        ..map
    };
    let mut tools = vec![
        code_search(root.clone(), search),
        file_read(root.clone()),
        repo_map(root.clone(), map),
        history_search(root, soon),
        note_search(Arc::clone(&notes)),
        note_read(Arc::clone(&notes)),
    ];
    // Without write access to notes, there is no such tool.
    tools.extend(note_write(notes));
    let threads = Arc::new(JournalThreads::new(journal));
    tools.push(thread_search(threads, deadline));
    Ok(tools)
}

fn notes(config: &Config, project: &ProjectRoot) -> Result<Notes, BuildError> {
    let settings = NotesSettings {
        max_files: config.notes.max_files,
        max_file_bytes: config.tools.max_file_bytes,
        max_total_bytes: config.notes.max_bytes,
        deadline: in_time(config).min(Duration::from_secs(60)),
    };
    match &config.notes.dir {
        None => Ok(Notes::of_project(project.clone(), settings)),
        Some(folder) => {
            let folder = folder.as_path();
            let open = if config.notes.write {
                Notes::open_to_write
            } else {
                Notes::open
            };
            open(folder, Some(project), settings).map_err(|error| {
                let path = folder.to_path_buf();
                let reason = match error {
                    RootError::Unreadable { reason, .. } => reason,
                    RootError::NotAFolder { .. } => io::ErrorKind::NotADirectory,
                    contains => return contains.into(),
                };
                BuildError::NotesFolder { path, reason }
            })
        }
    }
}

/// Variables of the prompts for a project, with the built-in tools that a session is offered.
///
/// # Errors
/// When the project folder, the notes folder or the configured context cannot be read, or the search
/// service has no key.
pub fn project_variables(
    config: &Config,
    environment: &Environment,
    folder: &Path,
) -> Result<Variables, BuildError> {
    let mut tools = project_tools(config, folder, Arc::new(Memory::new()))?;
    tools.extend(super::web::web_tools(config, environment)?);
    let tools: Vec<ToolSpec> = tools.iter().map(|tool| tool.spec().clone()).collect();
    let listed = config.tools.only.as_deref().unwrap_or_default();
    let (tools, _) = offer(&tools, &config.tools.pinned, listed, "");
    variables(
        config,
        project_name(folder),
        tools.iter().map(ToolLine::from),
    )
}

/// Deadline of a search, which has to return its findings before the call's own deadline.
fn in_time(config: &Config) -> Duration {
    let before_the_call_ends = config.tools.call_deadline.mul_f64(0.9);
    config.tools.search_deadline.min(before_the_call_ends)
}
