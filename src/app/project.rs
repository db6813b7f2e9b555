//! The tools over a project folder, and what of the configuration they go by.

use std::{io, path::Path, sync::Arc, time::Duration};

use super::{BuildError, project_name, variables};
use crate::{
    config::Config,
    prompt::{ToolLine, Variables},
    tool::{
        CodeSearch, CodeSearchSettings, FileRead, FileReadSettings, HistorySearch,
        HistorySearchSettings, NoteRead, NoteSearch, NoteWrite, Notes, NotesSettings, Progress,
        ProjectRoot, RepoMap, RepoMapSettings, RootError, ThreadSearch, ThreadSearchSettings, Tool,
    },
};

pub(super) fn project_tools(
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Vec<Arc<dyn Tool>>, BuildError> {
    let root = ProjectRoot::open(folder)?;
    let notes = Arc::new(notes(config, &root)?.showing(progress.clone()));
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(CodeSearch::showing(
            root.clone(),
            code_search(config),
            progress.clone(),
        )),
        Arc::new(FileRead::new(root.clone(), FileReadSettings::default())),
        Arc::new(RepoMap::new(root.clone(), repo_map(config))),
        Arc::new(HistorySearch::new(root, history_search(config))),
        Arc::new(NoteSearch::new(Arc::clone(&notes))),
        Arc::new(NoteRead::new(Arc::clone(&notes))),
    ];
    // Where nothing may be written, there is no such tool.
    tools.extend(NoteWrite::new(notes).map(|write| Arc::new(write) as Arc<dyn Tool>));
    Ok(tools)
}

fn notes(config: &Config, project: &ProjectRoot) -> Result<Notes, BuildError> {
    let settings = notes_settings(config);
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
                    RootError::HoldsProject { .. } => return BuildError::NotesInProject { path },
                };
                BuildError::NotesFolder { path, reason }
            })
        }
    }
}

/// What the built-in tools declare of themselves where there is a project, as it stands in a prompt.
///
/// # Errors
/// When the folder is not to be had.
pub fn project_variables(config: &Config, folder: &Path) -> Result<Variables, BuildError> {
    let tools = project_tools(config, folder, &Progress::default())?;
    let threads = ThreadSearch::declared(thread_search(config));
    let specs = tools.iter().map(|tool| tool.spec()).chain([&threads]);
    variables(config, project_name(folder), specs.map(ToolLine::from))
}

fn code_search(config: &Config) -> CodeSearchSettings {
    CodeSearchSettings {
        deadline: search_deadline(config),
        max_file_bytes: config.tools.max_file_bytes,
        ..CodeSearchSettings::default()
    }
}

fn repo_map(config: &Config) -> RepoMapSettings {
    let settings = RepoMapSettings::default();
    RepoMapSettings {
        max_tokens: config.tools.map_tokens,
        max_file_bytes: settings.max_file_bytes.min(config.tools.max_file_bytes),
        deadline: search_deadline(config),
        ..settings
    }
}

fn history_search(config: &Config) -> HistorySearchSettings {
    HistorySearchSettings {
        deadline: search_deadline(config),
    }
}

fn notes_settings(config: &Config) -> NotesSettings {
    NotesSettings {
        max_files: config.notes.max_files,
        max_file_bytes: config.tools.max_file_bytes,
        max_total_bytes: config.notes.max_bytes,
        deadline: search_deadline(config),
    }
}

pub(super) fn thread_search(config: &Config) -> ThreadSearchSettings {
    ThreadSearchSettings {
        deadline: in_time(config),
        ..ThreadSearchSettings::default()
    }
}

fn search_deadline(config: &Config) -> Duration {
    in_time(config).min(Duration::from_secs(60))
}

/// A search has to answer with what it has before its call is stopped.
fn in_time(config: &Config) -> Duration {
    let before_the_call_ends = config.tools.call_deadline.mul_f64(0.9);
    config.tools.search_deadline.min(before_the_call_ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody asks the tools' own checks at run time: what a configuration can say must pass them.
    #[test]
    fn what_a_configuration_allows_the_tools_allow() {
        let least = "[tools]\nsearch_deadline = '100ms'\ncall_deadline = '1s'\nmax_file_bytes = 1024\n\
                     map_tokens = 200\n[notes]\nmax_files = 1\nmax_bytes = 1024\n";
        let most = "[tools]\nsearch_deadline = '10m'\ncall_deadline = '1h'\n\
                    max_file_bytes = 67108864\nmap_tokens = 16000\n\
                    [notes]\nmax_files = 200000\nmax_bytes = 1073741824\n";
        for file in ["", least, most] {
            let config: Config = toml::from_str(file).unwrap();
            assert_eq!(code_search(&config).validate(), Ok(()), "{file}");
        }
    }
}
