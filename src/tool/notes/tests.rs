//! The tools over real folders: what they find and say, and what bad folders do to them.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
    path::Path,
    process::Command,
};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{
    model::{CallId, QueryId, SessionKey, SessionName},
    tool::{ProjectRoot, Tool, ToolContext, ToolError},
};
use tokio_util::sync::CancellationToken;

mod lists;

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

fn notes(folder: &TempDir) -> std::sync::Arc<Notes> {
    let root = ProjectRoot::open(folder.path()).unwrap();
    Notes::of_project(root, NotesSettings::default()).into()
}

async fn call(tool: &dyn Tool, arguments: serde_json::Value) -> Result<String, ToolError> {
    let context = ToolContext {
        call: CallId::new("call"),
        session: SessionKey::local(SessionName::new("s").unwrap()),
        query: QueryId(1),
        cancelled: CancellationToken::new(),
    };
    tool.call(arguments, context)
        .await
        .map(|output| output.text)
}

async fn search(notes: &std::sync::Arc<Notes>, query: &str) -> String {
    let tool = NoteSearch::new(notes.clone());
    call(&tool, json!({ "query": query })).await.unwrap()
}

async fn told(tool: &dyn Tool, arguments: serde_json::Value) -> String {
    call(tool, arguments).await.unwrap_err().to_string()
}

const ADR: &str = "---\ndate: 2025-06-01\nstatus: accepted\ntags: [storage]\n---\n# Use SQLite\n\n## Decision\n\n\
                   The journal is kept in SQLite.\n\n## Consequences\n\nOne file. See [limits](../limits.md#size).\n";

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

#[tokio::test]
async fn a_search_brings_sections_with_what_is_known_of_them() {
    let folder = sample();
    let found = search(&notes(&folder), "Why is the journal in SQLite?").await;
    let want = "\
docs/adr/0003-use-sqlite.md:10: The journal is kept in SQLite.
  in \"Use SQLite › Decision\" · lines 8–10 · decision · accepted · 2025-06-01
  words found: journal, SQLite
  links to: docs/limits.md
  linked from: docs/limits.md:5

";
    assert!(found.starts_with(want), "{found}");
    let want = "
docs/limits.md:5: The journal has no limit, see [[Use SQLite]].
  in \"Limits › Size\" · lines 3–5
  words found: journal, SQLite
  links to: docs/adr/0003-use-sqlite.md
  linked from: docs/adr/0003-use-sqlite.md:14
";
    assert!(found.contains(want), "{found}");
    let end = "all that fits is shown; 6 sections in 3 notes searched";
    assert!(found.ends_with(end), "{found}");
}

#[tokio::test]
async fn what_changes_is_read_again_and_the_rest_is_not() {
    let folder = sample();
    let notes = notes(&folder);
    let stop = CancellationToken::new();
    let first = notes.fresh(&stop);
    assert!(
        std::sync::Arc::ptr_eq(&first, &notes.fresh(&stop)),
        "nothing changed"
    );
    write(&folder, "new.md", "# Elephants\n");
    write(&folder, "README.md", "# Sample\n\nIt forgets.\n");
    fs::remove_file(folder.path().join("docs/limits.md")).unwrap();
    let second = notes.fresh(&stop);
    let paths: Vec<_> = second.pages.iter().map(|page| page.path.as_str()).collect();
    assert_eq!(
        paths,
        ["README.md", "docs/adr/0003-use-sqlite.md", "new.md"]
    );
    let adr = |index: &index::Index| {
        index.pages[index.at_path("docs/adr/0003-use-sqlite.md").unwrap()].clone()
    };
    assert!(
        std::sync::Arc::ptr_eq(&adr(&first), &adr(&second)),
        "unchanged, but read again"
    );
    assert!(
        search(&notes, "forgets")
            .await
            .starts_with("README.md:3: It forgets.")
    );
}

#[tokio::test]
async fn bad_folders_are_bounded_and_told() {
    let folder = sample();
    let at = |path: &str| folder.path().join(path);
    symlink(folder.path(), at("docs/loop")).unwrap();
    symlink("/etc/passwd", at("passwd.md")).unwrap();
    for fifo in ["pipe.md", "docs/adr/.gitignore"] {
        let made = Command::new("mkfifo").arg(at(fifo)).status().unwrap();
        assert!(made.success());
    }
    fs::write(at("binary.md"), b"# Journal\0").unwrap();
    fs::write(at("wide.md"), b"\xff\xfe#\0 \0").unwrap();
    fs::write(at("broken.md"), b"# Journ\xffal\n\nelephants\xfe\n").unwrap();
    // Two gigabytes that take no place on the disk.
    fs::File::create(at("huge.md"))
        .unwrap()
        .set_len(2 << 30)
        .unwrap();
    write(&folder, ".hidden/a.md", "# Elephants\n");
    write(&folder, ".gitignore", "out/\n");
    write(&folder, "out/a.md", "# Elephants\n");
    let found = search(&notes(&folder), "elephants").await;
    assert!(
        found.starts_with("broken.md:3: elephants\u{fffd}\n"),
        "{found}"
    );
    let end = "all that fits is shown; 4 sections in 3 notes searched; left out: 1 too big, 1 binary, \
         1 UTF-16 (only UTF-8 is read), 1 unreadable, 2 links, 1 not regular files";
    assert!(found.ends_with(end), "{found}");
}

#[tokio::test]
async fn an_unreadable_folder_is_told() {
    let folder = sample();
    let shut = folder.path().join("docs");
    fs::set_permissions(&shut, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    // Nothing is shut to some users.
    let is_open = fs::read_dir(&shut).is_ok();
    let found = search(&notes(&folder), "journal").await;
    fs::set_permissions(&shut, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let end = match is_open {
        true => "6 sections in 3 notes searched",
        false => "1 section in 1 note searched; left out: 1 unreadable",
    };
    assert!(found.ends_with(end), "{found}");
    // To nobody it can be read, if what is to be ignored in it is a pipe.
    for rules in [".ignore", "docs/.gitignore"] {
        let path = folder.path().join(rules);
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let found = search(&notes(&folder), "journal").await;
        assert!(
            found.ends_with("left out: 1 unreadable"),
            "{rules}: {found}"
        );
        fs::remove_file(path).unwrap();
    }
}

/// The rules of the project hold in a folder of it, those of a repository in a part of it.
#[tokio::test]
async fn what_folders_above_ignore_is_no_note() {
    for (name, rules) in [
        ("of the project", ".gitignore"),
        ("of the repository", "../.gitignore"),
    ] {
        let repository = folder(&[
            ("project/notes/a.md", "# Journal\n"),
            ("project/notes/private/s.md", "# Journal, secret\n"),
        ]);
        fs::create_dir(repository.path().join(".git")).unwrap();
        let project = repository.path().join("project");
        fs::write(project.join(rules), "private/\n").unwrap();
        let root = ProjectRoot::open(&project).unwrap();
        let settings = NotesSettings::default();
        let own = Notes::open(&project.join("notes"), Some(&root), settings).unwrap();
        for notes in [own, Notes::of_project(root, settings)] {
            let found = search(&notes.into(), "secret journal").await;
            assert!(
                found.starts_with("notes/a.md:1: # Journal\n"),
                "{name}: {found}"
            );
            assert!(
                found.ends_with("1 section in 1 note searched"),
                "{name}: {found}"
            );
        }
    }
}

#[tokio::test]
async fn what_does_not_fit_is_left_out_the_deepest_first() {
    let folder = sample();
    let root = ProjectRoot::open(folder.path()).unwrap();
    for (name, settings) in [
        (
            "files",
            NotesSettings {
                max_files: 1,
                ..NotesSettings::default()
            },
        ),
        (
            "bytes",
            NotesSettings {
                max_total_bytes: 40,
                ..NotesSettings::default()
            },
        ),
    ] {
        let notes = std::sync::Arc::new(Notes::of_project(root.clone(), settings));
        let found = search(&notes, "journal").await;
        assert!(found.starts_with("README.md:3: "), "{name}: {found}");
        assert!(
            found.ends_with("1 note searched; left out: 2 beyond the limit of notes"),
            "{name}: {found}"
        );
    }
}

#[tokio::test]
async fn what_is_late_comes_next_time() {
    let folder = sample();
    let notes = notes(&folder);
    let stop = CancellationToken::new();
    stop.cancel();
    let late = notes.fresh(&stop);
    assert!(late.pages.is_empty() && late.passed.unlisted, "{late:?}");
    let whole = notes.fresh(&CancellationToken::new());
    assert_eq!(whole.pages.len(), 3);
    // What was known is kept when there is no time to look.
    assert_eq!(notes.fresh(&stop).pages.len(), 3);
}

#[tokio::test]
async fn filters_come_from_the_arguments() {
    let folder = sample();
    let tool = NoteSearch::new(notes(&folder));
    for (name, arguments, first) in [
        (
            "tag",
            json!({"query": "journal", "tag": "#Storage"}),
            "docs/adr/0003-use-sqlite.md:10: ",
        ),
        (
            "folder",
            json!({"query": "journal", "path": "docs/adr/"}),
            "docs/adr/0003-use-sqlite.md:10: ",
        ),
        (
            "file",
            json!({"query": "journal", "path": "README.md"}),
            "README.md:3: ",
        ),
        (
            "day",
            json!({"query": "", "from": "2025-06-01", "to": "2025-06-30"}),
            "docs/adr/0003-use-sqlite.md:8: ",
        ),
        (
            "kind",
            json!({"query": "", "kind": "decision", "max_results": 1}),
            "docs/adr/0003-use-sqlite.md:8: ",
        ),
        (
            "months",
            json!({"query": "", "from": "2025", "to": "2025-06"}),
            "docs/adr/0003-use-sqlite.md:8: ",
        ),
        (
            "nothing",
            json!({"query": "elephants"}),
            "no section of the notes fits `elephants`: try other words",
        ),
        (
            "no such tag",
            json!({"query": "", "tag": "x"}),
            "no section of the notes fits that filter: ",
        ),
    ] {
        let found = call(&tool, arguments).await.unwrap();
        assert!(found.starts_with(first), "{name}: {found}");
    }
    for (arguments, says) in [
        (
            json!({"query": " "}),
            "`query` has no words, and there is no filter: say what to look for",
        ),
        (
            json!({"query": "x", "from": "soon"}),
            "`from` is `soon`, but a day such as `2026-03-01` is wanted",
        ),
        (
            json!({"query": "x", "max_results": 51}),
            "`max_results` is 51, allowed is 1 to 50: narrow the query instead",
        ),
        (
            json!({"query": "x", "path": "../x"}),
            "`../x` lies outside of the project folder: use a path relative to it, such as `src/main.rs`",
        ),
        (
            json!({"query": "x", "kind": "poem"}),
            "the argument `kind`: unknown variant `poem`, expected one of `note`, `decision`, `changelog`, `meeting`",
        ),
    ] {
        assert_eq!(told(&tool, arguments).await, says);
    }
}

#[tokio::test]
async fn one_note_does_not_take_all_places() {
    let many: String = (0..20)
        .map(|n| format!("# Journal {n}\n\njournal journal\n\n"))
        .collect();
    let folder = folder(&[("a.md", &many), ("b.md", "A journal and other things.\n")]);
    let tool = NoteSearch::new(notes(&folder));
    let found = call(&tool, json!({"query": "journal", "max_results": 4}))
        .await
        .unwrap();
    assert!(found.contains("\nb.md:1: A journal"), "{found}");
    assert!(
        found.contains("17 more sections fit; 21 sections"),
        "{found}"
    );
}

#[tokio::test]
async fn a_note_is_read_by_any_of_its_names() {
    let folder = sample();
    write(&folder, "docs/other/limits.md", "x\n");
    let tool = NoteRead::new(notes(&folder));
    let want = "\
docs/limits.md (lines 1–5 of 5)
1: # Limits
2:\x20
3: ## Size
4:\x20
5: The journal has no limit, see [[Use SQLite]].
  title: Limits
  headings (line): Limits (1), Size (3)
  links to: docs/adr/0003-use-sqlite.md
  linked from: docs/adr/0003-use-sqlite.md:14";
    assert_eq!(
        call(&tool, json!({"note": "docs/limits.md"}))
            .await
            .as_deref(),
        Ok(want)
    );
    for name in [
        "use sqlite",
        "[[Use SQLite|the store]]",
        "0003-use-sqlite",
        "adr/0003-use-sqlite.md",
    ] {
        let read = call(&tool, json!({ "note": name })).await.unwrap();
        assert!(
            read.starts_with("docs/adr/0003-use-sqlite.md (lines 1–14 of 14)\n1: ---\n"),
            "{name}: {read}"
        );
        let about = "\n  title: Use SQLite · decision · accepted · 2025-06-01 · #storage\n";
        assert!(read.contains(about), "{read}");
    }
    for (arguments, says) in [
        (
            json!({"note": "limits"}),
            "`limits` is the name of 2 notes: `docs/limits.md`, `docs/other/limits.md`; give the path of one",
        ),
        (
            json!({"note": "sqlite limits"}),
            "there is no note `sqlite limits`: perhaps one of `docs/adr/0003-use-sqlite.md`, `docs/limits.md`, `docs/other/limits.md` is meant, or find it with `note_search`",
        ),
        (
            json!({"note": "elephants"}),
            "there is no note `elephants`: find it with `note_search`",
        ),
        (
            json!({"note": "../../etc/passwd"}),
            "there is no note `../../etc/passwd`: find it with `note_search`",
        ),
        (
            json!({"note": " "}),
            "`note` is empty: give a path, a name, a title or an alias",
        ),
        (
            json!({"note": "docs/limits.md", "start_line": 0}),
            "`start_line` is 0, but lines count from 1",
        ),
        (
            json!({"note": "docs/limits.md", "start_line": 9}),
            "`docs/limits.md` has no line 9 there: it ends with line 5",
        ),
        (
            json!({"note": "docs/limits.md", "section": "x"}),
            "`docs/limits.md` has no section `x`: headings (line): Limits (1), Size (3)",
        ),
    ] {
        assert_eq!(told(&tool, arguments).await, says);
    }
}

#[tokio::test]
async fn a_name_is_taken_whole_before_it_is_taken_for_a_link() {
    let folder = folder(&[
        ("C.md", "c\n# Usage\nd\n"),
        ("C#.md", "sharp\n"),
        ("a|b.md", "bar\n"),
        ("[[x]].md", "brackets\n"),
    ]);
    let tool = NoteRead::new(notes(&folder));
    for (name, first) in [
        ("C#.md", "C#.md (lines 1–1 of 1)\n1: sharp\n"),
        ("c#", "C#.md (lines"),
        ("[[C#]]", "C#.md (lines"),
        ("C", "C.md (lines"),
        ("C#Usage", "C.md (lines 2–3 of 3)"),
        ("[[C#Usage|how]]", "C.md (lines 2–3 of 3)"),
        ("[[C|the language]]", "C.md (lines"),
        ("a|b", "a|b.md (lines"),
        ("[[x]]", "[[x]].md (lines"),
    ] {
        let read = call(&tool, json!({ "note": name })).await.unwrap();
        assert!(read.starts_with(first), "{name}: {read}");
    }
}

/// Of two that are shown alike each is read, but neither can be named by that.
#[tokio::test]
async fn a_note_is_read_whatever_its_name_is() {
    let folder = folder(&[("new\nline.md", "# Line\n\ntamarin\n"), ("a.md", "# A\n")]);
    let at = |name: &[u8]| folder.path().join(OsStr::from_bytes(name));
    fs::write(at(b"esc\x1b[31m.md"), "# Escape\n\ntamarin\n").unwrap();
    fs::write(at(b"inv\xfe.md"), "# First\n\ntamarin\n").unwrap();
    fs::write(at(b"inv\xff.md"), "# Other\n\ntamarin\n").unwrap();
    let notes = notes(&folder);
    let found = search(&notes, "tamarin").await;
    let tool = NoteRead::new(notes.clone());
    for (title, path) in [
        ("Line", "new\\nline.md"),
        ("Escape", "esc\\u{1b}[31m.md"),
        ("First", "inv\u{fffd}.md"),
        ("Other", "inv\u{fffd}.md"),
    ] {
        assert!(found.contains(&format!("{path}:3: tamarin\n")), "{found}");
        let read = call(&tool, json!({ "note": title })).await.unwrap();
        let want = format!("{path} (lines 1–3 of 3)\n1: # {title}\n");
        assert!(read.starts_with(&want), "{title}: {read}");
        let named = call(&tool, json!({ "note": path })).await;
        let is_one = !path.starts_with("inv");
        assert_eq!(
            named.is_ok_and(|read| read.starts_with(&want)),
            is_one,
            "{path}"
        );
    }
    let stop = CancellationToken::new();
    let same = std::sync::Arc::ptr_eq(&notes.fresh(&stop), &notes.fresh(&stop));
    assert!(same, "none is read again");
}

#[tokio::test]
async fn a_section_is_read_with_those_below_it() {
    let folder = folder(&[
        ("a.md", "# A\n## B\nb\n### C\nc\n## D\nd\n# B\n"),
        ("how.md", "x\n## Set up & run\ny\n"),
        ("log.md", "# 2026\n## Log\na\n### More\n## Log\nb\n"),
    ]);
    let tool = NoteRead::new(notes(&folder));
    for (section, first) in [
        ("b", "a.md (lines 2–5 of 8)\n2: ## B\n"),
        ("## D", "a.md (lines 6–7 of 8)\n6: ## D\n"),
        ("A › B › C", "a.md (lines 4–5 of 8)\n4: ### C\n"),
        ("B (8)", "a.md (lines 8–8 of 8)\n8: # B\n"),
    ] {
        let read = call(&tool, json!({"note": "a", "section": section}))
            .await
            .unwrap();
        assert!(read.starts_with(first), "{section}: {read}");
    }
    let wanted = json!({"note": "log", "section": "Log (2)"});
    let read = call(&tool, wanted).await.unwrap();
    assert!(read.starts_with("log.md (lines 2–4 of 6)\n"), "{read}");
    for (link, first, last) in [
        ("[[a#A#B]]", "a.md (lines 2–5 of 8)\n", "headings"),
        ("a.md#d", "a.md (lines 6–7 of 8)\n", "headings"),
        ("how#set-up--run", "how.md (lines 2–3 of 3)\n", "headings"),
        (
            "[[a#E|there]]",
            "a.md (lines 1–8 of 8)\n",
            "it has no section `E`",
        ),
        (
            "[[a#^block]]",
            "a.md (lines 1–8 of 8)\n",
            "it has no section `^block`",
        ),
    ] {
        let read = call(&tool, json!({ "note": link })).await.unwrap();
        let told = read.lines().last().unwrap().trim();
        assert!(
            read.starts_with(first) && told.starts_with(last),
            "{link}: {read}"
        );
    }
}

#[tokio::test]
async fn a_long_note_says_how_to_go_on() {
    let folder = folder(&[("a.md", &"word\n".repeat(1_000)), ("empty.md", "")]);
    let tool = NoteRead::new(notes(&folder));
    let read = call(&tool, json!({"note": "a", "start_line": 2}))
        .await
        .unwrap();
    assert!(
        read.starts_with("a.md (lines 2–401 of 1000)\n2: word\n"),
        "{read}"
    );
    assert!(
        read.contains("\n… 599 more lines; go on with start_line=402\n"),
        "{read}"
    );
    let read = call(&tool, json!({"note": "empty"})).await.unwrap();
    assert_eq!(read, "empty.md (empty)\n  title: empty");
}

#[tokio::test]
async fn a_folder_of_notes_may_lie_in_the_project_or_elsewhere() {
    let project = folder(&[("notes/a.md", "# Journal\n"), ("b.md", "# Journal\n")]);
    let root = ProjectRoot::open(project.path()).unwrap();
    let settings = NotesSettings::default();
    let inside = Notes::open(&project.path().join("notes"), Some(&root), settings).unwrap();
    let relative = Notes::open(Path::new("notes"), Some(&root), settings).unwrap();
    let elsewhere = folder(&[("a.md", "# Journal\n")]);
    let outside = Notes::open(elsewhere.path(), Some(&root), settings).unwrap();
    let alone = Notes::open(elsewhere.path(), None, settings).unwrap();
    for (name, notes, path) in [
        ("inside", inside, "notes/a.md"),
        ("seen from the project", relative, "notes/a.md"),
        // The project may have an `a.md` too, and an answer cites files of the project.
        ("outside", outside, "notes:a.md"),
        ("without a project", alone, "a.md"),
    ] {
        let notes = std::sync::Arc::new(notes);
        let found = search(&notes, "journal").await;
        assert!(
            found.starts_with(&format!("{path}:1: # Journal\n")),
            "{name}: {found}"
        );
        assert!(
            found.ends_with("1 section in 1 note searched"),
            "{name}: {found}"
        );
        let tool = NoteRead::new(notes.clone());
        for given in ["a.md", path] {
            let read = call(&tool, json!({ "note": given })).await.unwrap();
            assert!(
                read.starts_with(&format!("{path} (lines 1–1 of 1)\n")),
                "{name}: {read}"
            );
        }
        let tool = NoteSearch::new(notes);
        let below = call(&tool, json!({"query": "journal", "path": path})).await;
        assert!(below.unwrap().starts_with(path), "{name}");
        let beside = told(&tool, json!({"query": "journal", "path": "b.md"})).await;
        assert!(beside.contains("b.md"), "{name}: {beside}");
        // Where the notes lie elsewhere, none is named like a file of the project.
        let of_project = beside.contains("project");
        assert!(!(of_project && name == "outside"), "{name}: {beside}");
    }
    assert!(Notes::open(&project.path().join("none"), Some(&root), settings).is_err());
}

#[test]
fn long_lines_are_shown_around_what_was_found() {
    let line = format!("{}needle {}", "hay ".repeat(100), "hay ".repeat(100));
    let keys = [(words::key("needl"), 1.0)].into();
    let piece = report::excerpt(&line, &keys, 100);
    assert!(
        piece.starts_with("…") && piece.contains("needle") && piece.ends_with('…'),
        "{piece}"
    );
    assert!(piece.chars().count() <= 102, "{piece}");
    assert_eq!(report::excerpt("short\u{1b}", &keys, 100), "short\\u{1b}");
}

#[test]
fn settings_out_of_range_are_all_told() {
    assert_eq!(NotesSettings::default().validate(), Ok(()));
    let wrong = NotesSettings {
        max_files: 0,
        max_results: 51,
        ..NotesSettings::default()
    };
    let keys: Vec<_> = wrong
        .validate()
        .unwrap_err()
        .into_iter()
        .map(|error| error.key)
        .collect();
    assert_eq!(keys, ["max_files", "max_results"]);
}
