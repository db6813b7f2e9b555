//! `note_write`: effects, idempotency and refusals.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    testkit::{tool_conformance as conformance, tool_context},
    tool::{NotesSettings, RootError, Tool as _},
};

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("notes")).unwrap();
    fs::write(
        folder.path().join("notes/a.md"),
        "# Tasks\n\n- one\n\n# Log\n",
    )
    .unwrap();
    fs::write(folder.path().join("other.md"), "# Other\n").unwrap();
    folder
}

fn notes(folder: &TempDir) -> Arc<Notes> {
    let project = ProjectRoot::open(folder.path()).unwrap();
    let settings = NotesSettings {
        max_file_bytes: 100_000,
        ..NotesSettings::default()
    };
    let folder = folder.path().join("notes");
    Arc::new(Notes::open_to_write(&folder, Some(&project), settings).unwrap())
}

fn tool(folder: &TempDir) -> FnTool {
    note_write(notes(folder)).unwrap()
}

async fn call(tool: &FnTool, arguments: Value) -> Result<String, String> {
    let written = tool.call(arguments, tool_context()).await;
    written
        .map(|output| output.text)
        .map_err(|error| error.to_string())
}

fn text(folder: &TempDir, path: &str) -> String {
    fs::read_to_string(folder.path().join(path)).unwrap()
}

/// The names in the notes folder, including hidden ones.
fn names(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path().join("notes")).unwrap();
    let mut names: Vec<_> = names
        .map(|name| name.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn only_a_writable_folder_is_written_to() {
    let folder = folder();
    let project = ProjectRoot::open(folder.path()).unwrap();
    let settings = NotesSettings::default();
    let of_project = Notes::of_project(project.clone(), settings);
    assert!(note_write(of_project.into()).is_none());
    let read_only = Notes::open(&folder.path().join("notes"), Some(&project), settings).unwrap();
    assert!(note_write(read_only.into()).is_none());
    symlink(".", folder.path().join("same")).unwrap();
    for path in [".", "same", "notes/..", ".."] {
        let error = Notes::open_to_write(path.as_ref(), Some(&project), settings).unwrap_err();
        assert_eq!(error, RootError::ContainsProject { path: path.into() });
        assert!(Notes::open(path.as_ref(), Some(&project), settings).is_ok());
    }
    let spec = tool(&folder).spec().clone();
    assert_eq!(
        (spec.effect, spec.approval),
        (ToolEffect::Writes, ToolApproval::Required)
    );
}

#[tokio::test]
async fn note_creation_is_idempotent() {
    let folder = folder();
    let tool = tool(&folder);
    for note in ["ideas/new/cache", "notes/ideas/new/cache.md"] {
        let said = call(&tool, json!({"note": note, "text": "# Cache\r\nkeep it"}))
            .await
            .unwrap();
        assert!(
            said.starts_with("notes/ideas/new/cache.md (lines 1–2 of 2): "),
            "{said}"
        );
        let how = if note.ends_with("md") {
            "it already has this text"
        } else {
            "written; its version is "
        };
        assert!(said.contains(how), "{said}");
    }
    assert_eq!(
        text(&folder, "notes/ideas/new/cache.md"),
        "# Cache\nkeep it\n"
    );
    let mode = fs::metadata(folder.path().join("notes/ideas/new/cache.md"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o600, 0o600);
    let other = call(
        &tool,
        json!({"note": "ideas/new/cache.md", "text": "# Else\n"}),
    )
    .await;
    assert!(
        other
            .unwrap_err()
            .starts_with("`notes/ideas/new/cache.md` already exists with another text")
    );
    assert_eq!(
        text(&folder, "notes/ideas/new/cache.md"),
        "# Cache\nkeep it\n"
    );
}

#[tokio::test]
async fn append_is_idempotent_and_keeps_the_file_mode() {
    let folder = folder();
    let tool = tool(&folder);
    let path = folder.path().join("notes/a.md");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let add = json!({"note": "a", "text": "- two", "mode": "append", "section": "tasks"});
    let said = call(&tool, add.clone()).await.unwrap();
    assert!(
        said.starts_with("notes/a.md (lines 4–4 of 6): written"),
        "{said}"
    );
    let again = call(&tool, add).await.unwrap();
    assert!(
        again.starts_with("notes/a.md (lines 4–4 of 6): it already has this text"),
        "{again}"
    );
    assert_eq!(
        text(&folder, "notes/a.md"),
        "# Tasks\n\n- one\n- two\n\n# Log\n"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(names(&folder), ["a.md"], "nothing is left behind");
}

/// Only the approved note is written to.
#[tokio::test]
async fn append_requires_the_exact_note_name() {
    let folder = folder();
    let at = |path: &str| folder.path().join("notes").join(path);
    fs::write(at("C.md"), "# C\n").unwrap();
    let tool = tool(&folder);
    let add = |note: &str| json!({"note": note, "text": "more", "mode": "append"});
    for missing in ["C#.md", "C#", "C|x", "[[C#Usage]]"] {
        let refused = call(&tool, add(missing)).await.unwrap_err();
        assert!(refused.starts_with("no note `"), "{refused}");
    }
    fs::write(at("C#.md"), "# Sharp\n").unwrap();
    call(&tool, add("C#.md")).await.unwrap();
    assert_eq!(text(&folder, "notes/C.md"), "# C\n");
    assert_eq!(text(&folder, "notes/C#.md"), "# Sharp\n\nmore\n");
    fs::write(at("a.rst"), "A\n=\n").unwrap();
    for mode in ["append", "replace"] {
        let version = (mode == "replace").then_some("x");
        let wanted = json!({"note": "a.rst", "text": "x", "mode": mode, "version": version});
        let refused = call(&tool, wanted).await.unwrap_err();
        assert!(
            refused.starts_with("`notes/a.rst` is not Markdown"),
            "{refused}"
        );
    }
    assert_eq!(text(&folder, "notes/a.rst"), "A\n=\n");
}

#[tokio::test]
async fn append_requires_the_exact_section() {
    let folder = folder();
    let before = "# Catalog\nx\n# Work\n## Day\ny\n# Home\n## Day\nz\n";
    let path = folder.path().join("notes/b.md");
    let tool = tool(&folder);
    let add =
        |section: &str| json!({"note": "b", "text": "more", "mode": "append", "section": section});
    let write = || fs::write(&path, before).unwrap();
    write();
    for (section, says) in [
        (
            "Log",
            "`notes/b.md` has no section `Log`: headings (line): Catalog (1), ",
        ),
        (
            "day",
            "`notes/b.md` has 2 sections `day`: line 4, `Work › Day`; line 7, `Home › Day`; name one by all \
             its headings (`A › B`) or with its line, such as `Day (4)`",
        ),
        ("Day (5)", "`notes/b.md` has no section `Day (5)`"),
        ("##", "`notes/b.md` has no section `##`"),
    ] {
        let refused = call(&tool, add(section)).await.unwrap_err();
        assert!(refused.starts_with(says), "{section}: {refused}");
        assert_eq!(text(&folder, "notes/b.md"), before);
    }
    for (section, line) in [("Home › Day", 10), ("## Day (4)", 7), ("catalog", 4)] {
        write();
        let said = call(&tool, add(section)).await.unwrap();
        let lines = format!("(lines {line}–{line} of ");
        assert!(said.contains(&lines), "{section}: {said}");
    }
}

/// A note may be swapped between two checks.
#[test]
fn note_replaced_by_a_pipe_or_link_is_not_read() {
    let folder = folder();
    let notes = notes(&folder);
    let place = notes.writable.as_ref().unwrap().place("a.md").unwrap();
    let path = folder.path().join("notes/a.md");
    assert!(text_of(&notes, &place).is_ok());
    fs::remove_file(&path).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    let says =
        "`notes/a.md` cannot be read: it is missing, unreadable, or no longer among the notes";
    let error_text = |read: Result<String, ToolError>| read.unwrap_err().to_string();
    assert_eq!(error_text(text_of(&notes, &place)), says);
    fs::remove_file(&path).unwrap();
    symlink(folder.path().join("other.md"), &path).unwrap();
    assert_eq!(error_text(text_of(&notes, &place)), says);
}

#[tokio::test]
async fn replace_requires_the_current_version() {
    let folder = folder();
    let tool = tool(&folder);
    let now = version(&text(&folder, "notes/a.md"));
    let replace = |version: &str| json!({"note": "a.md", "text": "# New\n", "mode": "replace", "version": version});
    let refused = call(&tool, replace("000000000000")).await.unwrap_err();
    assert!(
        refused.starts_with(&format!(
            "`notes/a.md` has version {now}, not `000000000000`"
        )),
        "{refused}"
    );
    let said = call(&tool, replace(&now)).await.unwrap();
    assert!(said.contains("(lines 1–1 of 1): written"), "{said}");
    assert_eq!(text(&folder, "notes/a.md"), "# New\n");
    // Repeats the call, as after a crash.
    let said = call(&tool, replace(&now)).await.unwrap();
    assert!(said.contains("it already has this text"), "{said}");
}

#[tokio::test]
async fn invalid_write_is_explained_and_changes_nothing() {
    let folder = folder();
    let tool = tool(&folder);
    let at = |path: &str| folder.path().join("notes").join(path);
    symlink(folder.path().join("other.md"), at("link.md")).unwrap();
    symlink(folder.path(), at("out")).unwrap();
    symlink(at("nowhere"), at("lost")).unwrap();
    fs::write(at("broken.md"), b"# Broken\xff\n").unwrap();
    fs::write(at("shut.md"), "# Shut\n").unwrap();
    fs::write(at("odd\n.md"), "# Odd\n").unwrap();
    fs::set_permissions(at("shut.md"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::write(at("full.md"), "x".repeat(99_999)).unwrap();
    let long = "x".repeat(MAX_TEXT + 1);
    let deep = "x/".repeat(20);
    let before = names(&folder);
    for (arguments, says) in [
        (json!({"note": "b", "text": " \n"}), "`text` is empty"),
        (
            json!({"note": "b", "text": long}),
            "`text` has 65537 bytes, the maximum is 65536",
        ),
        (
            json!({"note": "b", "text": "a\0"}),
            "`text` contains a NUL character",
        ),
        (
            json!({"note": "b", "text": "a", "section": "x"}),
            "`section` is valid only with mode `append`",
        ),
        (
            json!({"note": "b", "text": "a", "version": "x"}),
            "`version` is valid only with mode `replace`",
        ),
        (
            json!({"note": "a", "text": "a", "mode": "replace"}),
            "`replace` needs the `version`",
        ),
        (
            json!({"note": "", "text": "a"}),
            "`note` is empty: give the path of the new note",
        ),
        (
            json!({"note": "b.txt", "text": "a"}),
            "invalid note name `b.txt`: it must end with `.md`",
        ),
        (
            json!({"note": ".git/hooks", "text": "a"}),
            "invalid note name `.git/hooks`: no part of it may be hidden",
        ),
        (
            json!({"note": "a\nb", "text": "a"}),
            "invalid note name `a\\nb`",
        ),
        (
            json!({"note": "odd\\n.md", "text": "a", "mode": "append"}),
            "no note `odd\\n.md`",
        ),
        (
            json!({"note": "../other", "text": "a"}),
            "`../other.md` is outside",
        ),
        (
            json!({"note": "x/../y.md", "text": "a"}),
            "`x/../y.md` contains `..`: write the path without it",
        ),
        (
            json!({"note": "/etc/x", "text": "a"}),
            "`/etc/x.md` is outside",
        ),
        (
            json!({"note": "out/b", "text": "a"}),
            "`out/b.md` is outside",
        ),
        (
            json!({"note": "lost/b", "text": "a"}),
            "`lost/b.md` cannot be read: entity not found",
        ),
        (
            json!({"note": "link", "text": "a"}),
            "`link.md` is a folder, a link or a device",
        ),
        (
            json!({"note": "a.md/b", "text": "a"}),
            "`a.md` is not a folder",
        ),
        (json!({"note": format!("{deep}b"), "text": "a"}), "`x/x/x"),
        (
            json!({"note": "b", "text": "a", "mode": "append"}),
            "no note `b`",
        ),
        (
            json!({"note": "other", "text": "a", "mode": "append"}),
            "no note `other`",
        ),
        (
            json!({"note": "a", "text": "# B", "mode": "append", "section": "Tasks"}),
            "the text would end the section `Tasks`",
        ),
        (
            json!({"note": "a", "text": "```", "mode": "append", "section": "Tasks"}),
            "the text would end the section `Tasks`",
        ),
        (
            json!({"note": "a", "text": "a", "mode": "append", "section": "None"}),
            "`notes/a.md` has no section `None`",
        ),
        (
            json!({"note": "broken", "text": "a", "mode": "append"}),
            "`notes/broken.md` is not UTF-8",
        ),
        (
            json!({"note": "shut", "text": "a", "mode": "append"}),
            "cannot write `notes/shut.md`: permission denied",
        ),
        (
            json!({"note": "full", "text": "a", "mode": "append"}),
            "`notes/full.md` would exceed 100000 bytes",
        ),
    ] {
        let told = call(&tool, arguments).await.unwrap_err();
        assert!(told.starts_with(says), "{says}: {told}");
    }
    assert_eq!(names(&folder), before);
    assert_eq!(text(&folder, "other.md"), "# Other\n");
    assert_eq!(text(&folder, "notes/a.md"), "# Tasks\n\n- one\n\n# Log\n");
}

#[tokio::test]
async fn a_cancelled_call_writes_nothing() {
    let folder = folder();
    let notes = notes(&folder);
    let stop = CancellationToken::new();
    stop.cancel();
    let wanted = NoteWriteArguments {
        note: "b".to_owned(),
        text: "x".to_owned(),
        mode: None,
        section: None,
        version: None,
    };
    assert_eq!(
        write(&notes, notes.writable.as_ref().unwrap(), &wanted, &stop),
        Err(cancelled_error())
    );
    assert_eq!(names(&folder), ["a.md"]);
}

#[tokio::test]
async fn note_write_conforms() {
    let folder = folder();
    let canonical = folder.path().canonicalize().unwrap();
    conformance::conforms(&conformance::Subject {
        tool: &tool(&folder),
        // Text that exists already, so that both runs agree.
        works: json!({"note": "a", "text": "- one", "mode": "append", "section": "Tasks"}),
        host_path: canonical.to_str().unwrap(),
        max_output: 24 * 1024,
    })
    .await;
}

#[test]
fn append_goes_to_the_end_of_its_section() {
    const NOTE: &str = "# A\n\nx\n\n## B\n\n- one\n\n# C\nlast\n";
    for (name, text, section, addition, want, first, last) in [
        (
            "the end",
            NOTE,
            "",
            "more\n",
            &*format!("{NOTE}\nmore\n"),
            12,
            12,
        ),
        (
            "a section, behind those below it",
            NOTE,
            "A",
            "y",
            "# A\n\nx\n\n## B\n\n- one\n\ny\n\n# C\nlast\n",
            9,
            9,
        ),
        (
            "an item",
            NOTE,
            "B",
            "- two\n- three\n",
            "# A\n\nx\n\n## B\n\n- one\n- two\n- three\n\n# C\nlast\n",
            8,
            9,
        ),
        (
            "no item before",
            "**x**\n",
            "",
            "- y",
            "**x**\n\n- y\n",
            3,
            3,
        ),
        (
            "a deeper heading",
            "# A\nx\n# B\n",
            "A",
            "## Day\ny",
            "# A\nx\n\n## Day\ny\n\n# B\n",
            4,
            5,
        ),
        ("no line end", "x", "", "y", "x\n\ny\n", 3, 3),
        ("nothing there", "", "", "y\n", "y\n", 1, 1),
        (
            "Windows",
            "x\r\ny\r\n",
            "",
            "z\n",
            "x\r\ny\r\n\r\nz\r\n",
            4,
            4,
        ),
        (
            "blank lines at the end",
            "x\n\n\n",
            "",
            "y",
            "x\n\ny\n\n\n",
            3,
            3,
        ),
        (
            "there, but elsewhere",
            NOTE,
            "",
            "- one",
            &*format!("{NOTE}\n- one\n"),
            12,
            12,
        ),
        (
            "half of it there",
            "x\n\none\n",
            "",
            "one\ntwo",
            "x\n\none\n\none\ntwo\n",
            5,
            6,
        ),
    ] {
        let wanted = NoteWriteArguments {
            note: "a".to_owned(),
            text: addition.to_owned(),
            mode: Some(WriteMode::Append),
            section: Some(section.to_owned()),
            version: None,
        };
        let edit = append("a.md", text, &wanted).unwrap();
        let want = EditedNote {
            text: want.to_owned(),
            first,
            last,
        };
        assert_eq!(edit, want, "{name}");
        // A second run changes nothing.
        assert_eq!(append("a.md", &edit.text, &wanted), Ok(want), "{name}");
    }
}
