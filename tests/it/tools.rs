//! The tools as a session uses them: by name, from a registry, over a project.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use oracle_agent::{
    model::ToolSpec,
    testkit::{
        tool_conformance::{self as conformance, Subject},
        tool_context,
    },
    tool::{
        CodeSearchSettings, Notes, NotesSettings, ProjectRoot, Registry, RepoMapSettings, Tool,
        ToolError, code_search, file_read, history_search, note_read, note_search, note_write,
        repo_map,
    },
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::files::{git, project};

fn tools(folder: &Path) -> Registry {
    let root = ProjectRoot::open(folder).unwrap();
    let notes = Arc::new(Notes::of_project(root.clone(), NotesSettings::default()));
    let tools = [
        code_search(root.clone(), CodeSearchSettings::default()),
        file_read(root.clone()),
        repo_map(root.clone(), RepoMapSettings::default()),
        history_search(root, Duration::from_secs(8)),
        note_search(Arc::clone(&notes)),
        note_read(notes),
    ];
    let tools = tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>);
    Registry::new(tools).unwrap()
}

async fn call(tools: &Registry, name: &str, arguments: Value) -> Result<String, ToolError> {
    let output = tools
        .get(name)
        .unwrap()
        .call(arguments, tool_context())
        .await?;
    Ok(output.text)
}

fn name(spec: &ToolSpec) -> &str {
    &spec.name
}

#[tokio::test]
async fn every_built_in_tool_conforms() {
    let line = format!("session {}\n", "x".repeat(2_000));
    let folder = project(&[
        ("src/lib.rs", "fn main() {}\n// session\n"),
        ("src/big.rs", &line.repeat(300)),
        ("docs/notes.md", &format!("# Session\n{}", line.repeat(300))),
        ("docs/more.md", &format!("## session\n{line}").repeat(60)),
    ]);
    let canonical = folder.path().canonicalize().unwrap();
    let tools = tools(folder.path());
    let names: Vec<String> = tools
        .specs()
        .iter()
        .map(|spec| name(spec).to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "code_search",
            "file_read",
            "repo_map",
            "history_search",
            "note_search",
            "note_read"
        ]
    );
    repository(folder.path());
    let works = [
        (
            json!({"query": "session", "max_results": 100, "context": 5}),
            24 * 1024,
        ),
        // The text, and the number of each line.
        (
            json!({"path": "src/big.rs", "start_line": 1, "end_line": 400}),
            60 * 1024,
        ),
        (json!({"focus": "session", "max_tokens": 16_000}), 48 * 1024),
        (json!({"query": "sessions"}), 24 * 1024),
        (json!({"query": "session", "max_results": 50}), 24 * 1024),
        (json!({"note": "docs/notes.md"}), 24 * 1024),
    ];
    for (spec, (works, max_output)) in tools.specs().iter().zip(works) {
        let tool = tools.get(&spec.name).unwrap().as_ref();
        let host_path = canonical.to_str().unwrap();
        conformance::conforms(&Subject {
            tool,
            works,
            host_path,
            max_output,
        })
        .await;
    }
}

fn repository(folder: &Path) {
    let message = format!("About sessions\n\n{}", "A line of reasons.\n".repeat(500));
    let git = |arguments: &[&str]| git(folder, "Ada", arguments);
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", &message]);
    for number in 0..8 {
        fs::write(folder.join("count"), number.to_string()).unwrap();
        git(&["add", "count"]);
        git(&["commit", "-q", "-m", &message]);
    }
}

#[tokio::test]
async fn search_results_can_be_read() {
    let folder = project(&[
        (".gitignore", "target/\n"),
        ("target/kernel.rs", "fn decide() {}\n"),
        (
            "src/kernel.rs",
            "//! Kernel.\n\nfn decide() {\n    todo\n}\n",
        ),
    ]);
    let tools = tools(folder.path());
    let found = call(&tools, "code_search", json!({"query": "fn decide"})).await;
    let want = "src/kernel.rs:3: fn decide() {\n\nall matches shown; 1 file searched";
    assert_eq!(found, Ok(want.to_owned()));
    let around = json!({"path": "src/kernel.rs", "around": 3, "radius": 1});
    let want = "src/kernel.rs (lines 2–4 of 5)\n2: \n3: fn decide() {\n4:     todo\n… 1 more \
                line; continue with start_line=5";
    assert_eq!(call(&tools, "file_read", around).await, Ok(want.to_owned()));
}

/// A project in which the folder `x` and a link to a folder outside change places all the time.
struct SwappedFolder {
    files: TempDir,
    project: PathBuf,
    outside: PathBuf,
    stop: DropGuard,
    swaps: JoinHandle<()>,
}

impl SwappedFolder {
    fn of(files: &[(&str, &str)]) -> Self {
        let files = project(files);
        let at = |path: &str| files.path().join(path);
        let (project, outside) = (at("project"), at("outside"));
        let (folder, link) = (project.join("x"), project.join("link"));
        symlink(&outside, &link).unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let swaps = thread::spawn(move || {
            while !stopped.is_cancelled() {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                // Lets calls begin in either state.
                thread::sleep(Duration::from_micros(20));
            }
        });
        Self {
            files,
            project,
            outside,
            stop: stop.drop_guard(),
            swaps,
        }
    }

    /// Stops, and returns the names outside.
    fn stop(self) -> (Vec<String>, TempDir) {
        drop(self.stop);
        self.swaps.join().unwrap();
        let names = fs::read_dir(self.outside).unwrap();
        let names = names.map(|name| name.unwrap().file_name().into_string().unwrap());
        (names.collect(), self.files)
    }
}

#[tokio::test]
async fn nothing_outside_is_shown_while_a_folder_is_swapped_for_a_link() {
    let swapped = SwappedFolder::of(&[
        ("project/x/f.txt", "a harmless line\n"),
        ("outside/f.txt", "a secret.md line\n"),
        ("outside/secret.md", "# A secret.md line\n"),
    ]);
    let tools = tools(&swapped.project);
    let calls = [
        ("file_read", json!({"path": "x/f.txt"})),
        ("file_read", json!({"path": "x/secret.txt"})),
        ("code_search", json!({"query": "line"})),
        ("repo_map", json!({})),
        ("note_search", json!({"query": "line"})),
    ];
    let (mut rounds, mut read, mut shown) = (0, 0, Vec::new());
    while rounds < 200 || read == 0 {
        assert!(rounds < 5_000, "no file is read between two swaps");
        rounds += 1;
        for (name, arguments) in &calls {
            let text = match call(&tools, name, arguments.clone()).await {
                Ok(text) => text,
                Err(error) => error.to_string(),
            };
            read += usize::from(*name == "file_read" && text.contains("harmless"));
            shown.extend(text.contains("secret.md").then_some((*name, text)));
        }
    }
    drop(swapped.stop());
    let (count, last) = (shown.len(), shown.last());
    assert!(last.is_none(), "{count} in {rounds} rounds: {last:?}");
}

#[tokio::test]
async fn no_note_is_written_outside_while_a_folder_is_swapped_for_a_link() {
    let swapped = SwappedFolder::of(&[("project/x/a.md", "# A\n"), ("outside/b.md", "# B\n")]);
    let settings = NotesSettings::default();
    let notes = Notes::open_to_write(&swapped.project, None, settings).unwrap();
    let tool = Arc::new(note_write(notes.into()).unwrap()) as Arc<dyn Tool>;
    let tools = Registry::new([tool]).unwrap();
    let (mut calls, mut written) = (0, 0);
    while calls < 600 || written == 0 {
        assert!(calls < 20_000, "no note is written between two swaps");
        let new = json!({"note": format!("x/{calls}"), "text": "new"});
        calls += 1;
        written += usize::from(call(&tools, "note_write", new).await.is_ok());
    }
    let (outside, files) = swapped.stop();
    assert_eq!(outside, ["b.md"], "after {calls} calls");
    let folders = ["project/x", "project/link"].map(|path| files.path().join(path));
    let inside = folders.iter().find(|path| !path.is_symlink()).unwrap();
    let inside = fs::read_dir(inside).unwrap().count();
    assert_eq!(inside, written + 1, "no temporary file is left");
}

#[tokio::test]
async fn file_read_returns_signals_verbatim() {
    let text = "<signal type=\"stuck\"><blocker>none at all</blocker></signal>";
    let folder = project(&[("a.md", text)]);
    let tools = tools(folder.path());
    let read = call(&tools, "file_read", json!({"path": "a.md"})).await;
    assert_eq!(read, Ok(format!("a.md (lines 1–1 of 1)\n1: {text}")));
}

#[tokio::test]
async fn concurrent_searches_all_complete() {
    let folder = project(&[("a.rs", "hit\n")]);
    let tools = tools(folder.path());
    let calls = (0..40).map(|_| call(&tools, "code_search", json!({"query": "hit"})));
    let want = "a.rs:1: hit\n\nall matches shown; 1 file searched".to_owned();
    for result in futures_util::future::join_all(calls).await {
        assert_eq!(result, Ok(want.clone()));
    }
}

#[tokio::test]
async fn unknown_arguments_are_refused_with_the_known_ones() {
    let folder = project(&[("a.rs", "hit\n")]);
    let tools = tools(folder.path());
    for (tool, arguments, says) in [
        (
            "code_search",
            json!({"query": "hit", "dir": "src"}),
            "the argument `dir`: unknown field `dir`, expected one of `query`, `mode`, `path`, `context`, `max_results`, `files_only`",
        ),
        (
            "file_read",
            json!({"file": "a.rs"}),
            "the argument `file`: unknown field `file`, expected one of `path`, `start_line`, `end_line`, `around`, `radius`, `symbol`",
        ),
    ] {
        let result = call(&tools, tool, arguments).await;
        assert_eq!(result, Err(ToolError::ForModel(says.to_owned())), "{tool}");
    }
}
