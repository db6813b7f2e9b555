//! Results of `note_search` and `note_read`, also over unusual folders.

use std::{fs, os::unix::fs::symlink, process::Command, sync::Arc};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    testkit::tool_context,
    tool::{Tool, ToolOutput},
};

const ADR: &str = "---\ndate: 2025-06-01\nstatus: accepted\ntags: [storage]\n---\n# Use SQLite\n\n## Decision\n\n\
                   The journal is kept in SQLite.\n\n## Consequences\n\nOne file. See [limits](../limits.md#size).\n";

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(&folder, path, text);
    }
    folder
}

fn write(folder: &TempDir, path: &str, text: &str) {
    let path = folder.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn sample() -> TempDir {
    folder(&[
        ("docs/adr/0003-use-sqlite.md", ADR),
        (
            "docs/limits.md",
            "# Limits\n\n## Size\n\nThe journal has no limit, see [[Use SQLite]].\n",
        ),
        ("README.md", "# Sample\n\nIt keeps a journal.\n"),
    ])
}

fn notes_with(folder: &TempDir, settings: NotesSettings) -> Arc<Notes> {
    let root = ProjectRoot::open(folder.path()).unwrap();
    Notes::of_project(root, settings).into()
}

fn notes(folder: &TempDir) -> Arc<Notes> {
    notes_with(folder, NotesSettings::default())
}

async fn call(tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
    tool.call(arguments, tool_context()).await
}

async fn search(notes: &Arc<Notes>, query: &str) -> String {
    let tool = note_search(notes.clone());
    call(&tool, json!({ "query": query })).await.unwrap().text
}

async fn read(notes: &Arc<Notes>, arguments: Value) -> Result<String, String> {
    let read = call(&note_read(notes.clone()), arguments).await;
    read.map(|output| output.text)
        .map_err(|error| error.to_string())
}

async fn paths(notes: &Arc<Notes>, arguments: Value) -> Vec<String> {
    let found = call(&note_search(notes.clone()), arguments).await;
    let data = found.unwrap().data.unwrap();
    let places = data["places"].as_array().unwrap().iter();
    let mut paths: Vec<String> = places
        .map(|place| place["path"].as_str().unwrap().to_owned())
        .collect();
    paths.dedup();
    paths
}

#[tokio::test]
async fn note_search_ranks_the_best_sections_first() {
    let folder = sample();
    // A small set of notes has no rare words.
    write(&folder, "days.md", &"# Day\n\nNothing.\n".repeat(20));
    let notes = notes(&folder);
    let found = search(&notes, "Why is the journal in SQLite?").await;
    let want = "\
docs/adr/0003-use-sqlite.md:10: The journal is kept in SQLite.
  in \"Use SQLite › Decision\", lines 8–11
";
    assert!(found.starts_with(want), "{found}");
    let want = "docs/limits.md:5: The journal has no limit, see [[Use SQLite]].
  in \"Limits › Size\", lines 3–5
";
    assert!(found.contains(want), "{found}");
    assert!(
        found.ends_with("\nall that match: 6 sections; 27 sections in 4 notes searched"),
        "{found}"
    );
    let tool = note_search(notes);
    let found = call(&tool, json!({"query": "decisions", "max_results": 1})).await;
    let want = json!({
        "places": [{
            "path": "docs/adr/0003-use-sqlite.md", "start": 8, "end": 11, "line": 8, "section": "Use SQLite › Decision",
        }],
        "more": 0,
    });
    assert_eq!(found.unwrap().data, Some(want));
}

#[tokio::test]
async fn note_search_matches_word_forms_names_and_tags() {
    let folder = sample();
    write(&folder, "ideas/cache-warming.md", "Äpfel und Birnen.\n");
    let notes = notes(&folder);
    for (query, want) in [
        (
            "LIMITS",
            vec!["docs/limits.md", "docs/adr/0003-use-sqlite.md"],
        ),
        (
            "limited",
            vec!["docs/limits.md", "docs/adr/0003-use-sqlite.md"],
        ),
        ("storage", vec!["docs/adr/0003-use-sqlite.md"]),
        ("warm the cache", vec!["ideas/cache-warming.md"]),
        ("apfel", vec!["ideas/cache-warming.md"]),
        ("elephants", vec![]),
        ("NOT \" OR NEAR(x) ^*", vec![]),
    ] {
        assert_eq!(
            paths(&notes, json!({ "query": query })).await,
            want,
            "{query}"
        );
    }
    let found = search(&notes, "elephants").await;
    assert!(
        found.starts_with("no section has any of these words; "),
        "{found}"
    );
    let found = search(&notes, "the jurnal").await;
    assert!(found.contains("; `jurnal` read as `journal`; "), "{found}");
}

#[tokio::test]
async fn note_title_counts_in_every_section() {
    let folder = folder(&[
        ("a.md", "---\ntitle: Elephants\n---\n# Feeding\n\nHay.\n"),
        ("b.md", "# Feeding\n\nNot for elephants.\n"),
    ]);
    write(&folder, "days.md", &"# Day\n\nNothing.\n".repeat(20));
    let tool = note_search(notes(&folder));
    let found = call(&tool, json!({"query": "feeding elephants"})).await;
    let place = &found.unwrap().data.unwrap()["places"][0];
    assert_eq!(
        (&place["path"], &place["start"]),
        (&json!("a.md"), &json!(4))
    );
}

#[test]
fn unreadable_note_does_not_reindex_the_others() {
    let folder = sample();
    fs::write(folder.path().join("binary.md"), b"journal\0").unwrap();
    let (notes, stop, mut index) = (notes(&folder), CancellationToken::new(), Index::default());
    let mut refreshed = || {
        let has_changed = index.refresh(&notes, notes.list(&stop), &stop);
        (has_changed, index.extent(1024))
    };
    let skipped = "7 sections in 3 notes searched; skipped: 1 unreadable".to_owned();
    assert_eq!(refreshed(), (true, skipped.clone()));
    assert_eq!(refreshed(), (false, skipped));
    write(&folder, "binary.md", "journal\n");
    assert_eq!(
        refreshed(),
        (true, "8 sections in 4 notes searched".to_owned())
    );
}

#[tokio::test]
async fn note_search_can_be_limited_to_a_path() {
    let folder = sample();
    let notes = notes(&folder);
    let all = ["docs/limits.md", "README.md", "docs/adr/0003-use-sqlite.md"];
    for (path, mut want) in [
        ("docs/adr/", all[2..].to_vec()),
        ("docs", vec![all[0], all[2]]),
        ("README.md", all[1..2].to_vec()),
        (".", all.to_vec()),
    ] {
        let mut found = paths(&notes, json!({"query": "journal", "path": path})).await;
        found.sort();
        want.sort_unstable();
        assert_eq!(found, want, "{path}");
    }
    let tool = note_search(notes);
    for (arguments, says) in [
        (
            json!({"query": "x ?"}),
            "`query` has only common words or letters",
        ),
        (
            json!({"query": "What is it about?"}),
            "`query` has only common words or letters: name",
        ),
        (
            json!({"query": "x".repeat(1_001)}),
            "`query` is longer than 1000",
        ),
        (
            json!({"query": "size", "max_results": 51}),
            "`max_results` is 51, the range is 1 to 50",
        ),
        (
            json!({"query": "size", "path": "../x"}),
            "`../x` is not a folder or note",
        ),
        (
            json!({"query": "size", "path": "none"}),
            "`none` is not a folder or note",
        ),
    ] {
        let told = call(&tool, arguments).await.unwrap_err().to_string();
        assert!(told.starts_with(says), "{told}");
    }
}

#[tokio::test]
async fn results_per_note_are_bounded() {
    let folder = sample();
    write(
        &folder,
        "log.md",
        &"# Journal\njournal journal\n".repeat(20),
    );
    let found = paths(
        &notes(&folder),
        json!({"query": "journal", "max_results": 4}),
    )
    .await;
    assert_eq!(found.len(), 2, "{found:?}");
}

#[tokio::test]
async fn changed_notes_are_reindexed() {
    let folder = sample();
    let notes = notes(&folder);
    let kept = |notes: &Notes| {
        let stop = CancellationToken::new();
        let paths = |index: &Index| Ok(index.pages.keys().cloned().collect::<Vec<_>>());
        notes.with_index(&stop, paths).unwrap()
    };
    assert_eq!(kept(&notes).len(), 3);
    write(&folder, "new.md", "# Elephants\n");
    write(&folder, "README.md", "# Sample\n\nIt forgets everything.\n");
    fs::remove_file(folder.path().join("docs/limits.md")).unwrap();
    assert_eq!(
        kept(&notes),
        ["README.md", "docs/adr/0003-use-sqlite.md", "new.md"]
    );
    for (query, want) in [
        ("elephant", vec!["new.md"]),
        ("forget", vec!["README.md"]),
        ("keeps a journal", vec!["docs/adr/0003-use-sqlite.md"]),
    ] {
        assert_eq!(
            paths(&notes, json!({ "query": query })).await,
            want,
            "{query}"
        );
    }
}

#[test]
fn cancelled_note_index_completes_on_the_next_call() {
    let folder = sample();
    let notes = notes(&folder);
    let stopped = CancellationToken::new();
    stopped.cancel();
    let extent = |stop: &CancellationToken| {
        notes
            .with_index(stop, |index| Ok(index.extent(1024)))
            .unwrap()
    };
    let late = extent(&stopped);
    assert!(
        late.starts_with("0 sections in 0 notes searched; stopped at the deadline"),
        "{late}"
    );
    assert_eq!(
        extent(&CancellationToken::new()),
        "7 sections in 3 notes searched"
    );
    assert!(extent(&stopped).starts_with("7 sections in 3 notes searched; stopped"));
}

#[tokio::test]
async fn unreadable_notes_are_skipped_and_counted() {
    let folder = sample();
    let at = |path: &str| folder.path().join(path);
    write(&folder, ".gitignore", "hidden.md\n");
    write(&folder, "hidden.md", "journal\n");
    write(&folder, ".obsidian/journal.md", "journal\n");
    fs::write(at("binary.md"), b"journal\0").unwrap();
    fs::write(at("wide.md"), b"\xff\xfej\0").unwrap();
    fs::write(at("latin.md"), b"journal \xe9\n").unwrap();
    fs::write(at("new\nline.md"), "journal\n").unwrap();
    write(&folder, "big.md", &"journal\n".repeat(200_000));
    symlink(at("README.md"), at("link.md")).unwrap();
    let fifo = Command::new("mkfifo").arg(at("pipe.md")).status().unwrap();
    assert!(fifo.success());
    let found = search(&notes(&folder), "journal").await;
    let skipped = "skipped: 1 over 1 MiB, 3 unreadable, 1 link, 1 not regular files";
    assert!(found.ends_with(skipped), "{found}");
    assert!(found.contains("latin.md:1: journal \u{fffd}\n"), "{found}");
    assert!(
        !found.contains("hidden.md") && !found.contains("obsidian"),
        "{found}"
    );
}

#[tokio::test]
async fn deepest_notes_are_dropped_beyond_the_limit() {
    let folder = sample();
    let settings = NotesSettings {
        max_files: 2,
        ..NotesSettings::default()
    };
    let found = search(&notes_with(&folder, settings), "journal").await;
    assert!(
        found.contains("in 2 notes searched; at least 1 note beyond the limit"),
        "{found}"
    );
    assert!(!found.contains("docs/adr/"), "{found}");
}

#[tokio::test]
async fn note_is_found_by_any_of_its_names() {
    let folder = sample();
    write(&folder, "a/limits.md", "# Other limits\n");
    write(&folder, "C#.md", "sharp\n");
    let notes = notes(&folder);
    let whole = read(&notes, json!({"note": "README.md"})).await.unwrap();
    let want = "README.md (lines 1–3 of 3)\n1: # Sample\n2: \n3: It keeps a journal.\n  \
                title: Sample\n  headings (line): Sample (1)";
    assert_eq!(whole, want);
    for name in [
        "README",
        "readme",
        " sample ",
        "./README.md",
        "[[Sample]]",
        "[[README|shown]]",
    ] {
        assert_eq!(
            read(&notes, json!({ "note": name })).await.as_ref(),
            Ok(&whole),
            "{name}"
        );
    }
    for (arguments, lines) in [
        (json!({"note": "C#.md"}), "1–1"),
        (json!({"note": "c#"}), "1–1"),
        (json!({"note": "use sqlite", "section": "decision"}), "8–11"),
        (
            json!({"note": "0003-use-sqlite", "section": "Use SQLite"}),
            "6–14",
        ),
        (json!({"note": "docs/limits.md#size"}), "3–5"),
        (json!({"note": "[[docs/limits#Size]]"}), "3–5"),
        (
            json!({"note": "docs/limits.md", "section": "Limits › Size"}),
            "3–5",
        ),
        (json!({"note": "docs/limits.md", "start_line": 4}), "4–5"),
    ] {
        let read = read(&notes, arguments).await.unwrap();
        assert!(read.contains(&format!(".md (lines {lines} of ")), "{read}");
    }
    for (arguments, says) in [
        (
            json!({"note": "limits"}),
            "2 notes are named `limits`: use the path of one, such as `a/limits.md`",
        ),
        (
            json!({"note": "journals"}),
            "no note `journals`: perhaps one of `",
        ),
        (
            json!({"note": "elephants"}),
            "no note `elephants`: find it with",
        ),
        (json!({"note": "../../etc/passwd"}), "no note"),
        (json!({"note": " "}), "`note` is empty"),
        (
            json!({"note": "sample", "start_line": 0}),
            "`start_line` is 0",
        ),
        (
            json!({"note": "sample", "start_line": 9}),
            "`README.md` has no line 9 there: it ends with line 3",
        ),
        (
            json!({"note": "sample", "section": "x"}),
            "`README.md` has no section `x`: headings (line): Sample (1)",
        ),
    ] {
        let told = read(&notes, arguments).await.unwrap_err();
        assert!(told.starts_with(says), "{told}");
    }
}

#[tokio::test]
async fn long_note_names_the_next_line() {
    let folder = folder(&[("a.md", &"line\n".repeat(1_000)), ("empty.md", "")]);
    let notes = notes(&folder);
    let long = read(&notes, json!({"note": "a", "start_line": 2}))
        .await
        .unwrap();
    assert!(
        long.starts_with("a.md (lines 2–401 of 1000)\n2: line\n"),
        "{long}"
    );
    assert!(
        long.contains("\n… 599 more lines; continue with start_line=402\n"),
        "{long}"
    );
    let empty = read(&notes, json!({"note": "empty"})).await.unwrap();
    assert_eq!(empty, "empty.md (empty)\n  title: empty");
}

#[tokio::test]
async fn notes_folder_may_be_inside_or_outside_the_project() {
    let (inside, outside) = (sample(), sample());
    let project = ProjectRoot::open(inside.path()).unwrap();
    for (folder, prefix) in [
        (std::path::PathBuf::from("docs"), "docs/"),
        (outside.path().join("docs"), "notes:"),
    ] {
        let notes = Notes::open(&folder, Some(&project), NotesSettings::default()).unwrap();
        let notes = Arc::new(notes);
        let path = format!("{prefix}limits.md");
        for query in [
            json!({"query": "size"}),
            json!({"query": "size", "path": path}),
            json!({"query": "size", "path": "limits.md"}),
        ] {
            assert_eq!(paths(&notes, query.clone()).await[0], path, "{query}");
        }
        for name in [path.as_str(), "limits.md", "limits"] {
            let read = read(&notes, json!({ "note": name })).await.unwrap();
            assert!(
                read.starts_with(&format!("{path} (lines 1–5 of 5)")),
                "{read}"
            );
        }
        assert!(read(&notes, json!({"note": "README.md"})).await.is_err());
        let beside = json!({"query": "journal", "path": "README.md"});
        assert!(call(&note_search(notes), beside).await.is_err());
    }
    assert!(Notes::open(Path::new("none"), Some(&project), NotesSettings::default()).is_err());
}
