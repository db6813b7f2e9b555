//! Paths that the guard accepts and refuses.

use std::{fs, os::unix::fs::symlink, process::Command};

use tempfile::TempDir;

use super::*;

struct Tree {
    _outer: TempDir,
    root: ProjectRoot,
}

/// `outer/secret.txt` beside `outer/project`, which contains links of every kind.
fn tree() -> Tree {
    let outer = tempfile::tempdir().unwrap();
    let project = outer.path().join("project");
    for folder in ["src/deep", "docs", "app/[id]", ".git", "lib/.GIT/x"] {
        fs::create_dir_all(project.join(folder)).unwrap();
    }
    for file in [
        "src/lib.rs",
        "src/deep/Config.toml",
        "docs/notes.md",
        "app/[id]/page.tsx",
        ".env",
        ".git/config",
        "lib/.GIT/x/y",
        "docs/.hg",
        "lib/admin.key",
    ] {
        fs::write(project.join(file), "text\n").unwrap();
    }
    fs::write(outer.path().join("secret.txt"), "secret\n").unwrap();
    fs::create_dir(outer.path().join("beside")).unwrap();
    fs::write(outer.path().join("beside/secret.txt"), "secret\n").unwrap();
    let link = |target: &str, name: &str| symlink(target, project.join(name)).unwrap();
    link("../secret.txt", "file_out");
    link("../beside", "folder_out");
    link("src/lib.rs", "file_in");
    link("src", "folder_in");
    link("folder_out", "link_to_link_out");
    link("loop_b", "loop_a");
    link("loop_a", "loop_b");
    link("nowhere", "dangling");
    link(".git", "link_to_git");
    let fifo = Command::new("mkfifo")
        .arg(project.join("pipe"))
        .status()
        .unwrap();
    assert!(fifo.success());
    let root = ProjectRoot::open(&project).unwrap();
    Tree {
        _outer: outer,
        root,
    }
}

fn text(error: ToolError) -> String {
    let ToolError::ForModel(text) = error else {
        panic!("{error:?}")
    };
    text
}

#[test]
fn paths_inside_the_root_resolve() {
    let tree = tree();
    let absolute = tree.root.path().join("src/lib.rs");
    for (name, wanted, found) in [
        ("plain", "src/lib.rs", "src/lib.rs"),
        ("leading dot", "./src/./lib.rs", "src/lib.rs"),
        ("white space around", " src/lib.rs\n", "src/lib.rs"),
        (
            "dots in the middle that stay inside",
            "src/deep/../lib.rs",
            "src/lib.rs",
        ),
        (
            "absolute but inside",
            absolute.to_str().unwrap(),
            "src/lib.rs",
        ),
        (
            "the root by its path",
            tree.root.path().to_str().unwrap(),
            ".",
        ),
        ("the root by a dot", ".", "."),
        ("a folder", "src/deep/", "src/deep"),
        ("link to a file inside", "file_in", "src/lib.rs"),
        (
            "link to a folder inside",
            "folder_in/deep/Config.toml",
            "src/deep/Config.toml",
        ),
        ("brackets", "app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("hidden", ".env", ".env"),
        ("out of git's own", ".git/../src/lib.rs", "src/lib.rs"),
    ] {
        let path = tree
            .root
            .resolve(wanted)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(tree.root.display_path(&path), found, "{name}");
        assert!(path.starts_with(tree.root.path()), "{name}");
    }
}

#[test]
fn paths_outside_or_reserved_are_refused() {
    let tree = tree();
    let beside = format!("{}-beside/x", tree.root.path().display());
    let out = "is outside of the project folder";
    let kept = "may contain secrets";
    for (name, wanted, says) in [
        ("git's own", ".git", kept),
        ("a server's key", "lib/admin.key", kept),
        ("a file of git's own", "./.git/config", kept),
        ("nothing there, and no hint", ".git/confg", kept),
        ("in any case, further below", "lib/.GIT/x/y", kept),
        ("a file in its place", "docs/.hg", kept),
        ("a link to it", "link_to_git/config", kept),
        ("a link to it, nothing there", "link_to_git/confg", kept),
        ("dots", "..", out),
        ("dots to a file", "../secret.txt", out),
        ("dots in the middle", "src/../../secret.txt", out),
        (
            "dots to what does not exist: not told apart",
            "../nothing",
            out,
        ),
        (
            "dots behind a missing folder",
            "nothing/../../secret.txt",
            out,
        ),
        ("absolute", "/etc/passwd", out),
        ("absolute with dots back", "/etc/../etc/passwd", out),
        ("absolute, a name that begins like the root", &beside, out),
        ("link to a file outside", "file_out", out),
        ("link to a folder outside", "folder_out/secret.txt", out),
        (
            "link to a folder outside, nothing there",
            "folder_out/nothing",
            out,
        ),
        ("link to such a link", "link_to_link_out/secret.txt", out),
        ("dots behind a link", "folder_out/../secret.txt", out),
        ("drive", "C:\\Windows\\system.ini", out),
        ("drive with slashes", "c:/Windows", out),
        ("share", "\\\\server\\share", out),
        ("empty", "", "the path is empty"),
        ("blank", " \t", "the path is empty"),
        ("NUL", "src/lib.rs\0.png", "contains a NUL character"),
        ("pipe", "pipe", "not a file or folder"),
        ("loop", "loop_a", "`loop_a` cannot be read: "),
        ("below a loop", "loop_a/x", "`loop_a` cannot be read: "),
        (
            "dangling link",
            "dangling",
            "`dangling` is a link to something that does not exist",
        ),
    ] {
        let text = text(tree.root.resolve(wanted).unwrap_err());
        assert!(text.contains(says), "{name}: {text}");
    }
    let long = text(tree.root.resolve(&"x/".repeat(4_000)).unwrap_err());
    assert!(
        long.starts_with("the path is longer than 4096 bytes"),
        "{long}"
    );
}

#[test]
fn missing_path_error_suggests_a_remedy() {
    let tree = tree();
    let root = tree.root.path().display();
    let absolute = format!("{root}/src/gone.py");
    let search = "find the right path with `code_search`";
    for (name, wanted, says) in [
        (
            "another case",
            "src/LIB.rs",
            "`src/LIB.rs` does not exist: did you mean `src/lib.rs`?",
        ),
        (
            "another case of a folder",
            "SRC/lib.rs",
            "`SRC` does not exist: did you mean `src`?",
        ),
        (
            "same stem",
            "docs/notes.txt",
            "`docs/notes.txt` does not exist: did you mean `docs/notes.md`?",
        ),
        (
            "case before stem",
            "src/deep/config.TOML",
            "`src/deep/config.TOML` does not exist: did you mean `src/deep/Config.toml`?",
        ),
        (
            "nothing near",
            "src/gone.py",
            &format!("`src/gone.py` does not exist: {search}"),
        ),
        (
            "nothing near, absolute",
            &absolute,
            &format!("`src/gone.py` does not exist: {search}"),
        ),
        (
            "below a file",
            "src/lib.rs/x",
            "`src/lib.rs` is a file, not a folder: there is nothing below it",
        ),
    ] {
        assert_eq!(text(tree.root.resolve(wanted).unwrap_err()), says, "{name}");
    }
}

#[test]
fn only_files_are_opened() {
    let tree = tree();
    let opened = tree.root.open_file("file_in").unwrap();
    assert_eq!((opened.size, opened.shown.as_str()), (5, "src/lib.rs"));
    let says = "`src` is a folder: name a file in it, or search it with `code_search`";
    assert_eq!(text(tree.root.open_file("src").unwrap_err()), says);
    let pipe = text(tree.root.open_file("pipe").unwrap_err());
    assert!(pipe.contains("it cannot be opened"), "{pipe}");
}

#[test]
fn replaced_path_is_refused_without_blocking() {
    let tree = tree();
    let path = tree.root.path().join("src/lib.rs");
    assert_eq!(tree.root.open_found(&path).map(|(_, size)| size), Some(5));
    type Swap = fn(&Path);
    let swaps: [(&str, Swap); 4] = [
        ("a pipe", |path| {
            let made = Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        }),
        ("a link", |path| symlink("old", path).unwrap()),
        ("a folder", |path| fs::create_dir(path).unwrap()),
        ("nothing", |_| {}),
    ];
    for (name, swap) in swaps {
        let old = path.with_file_name("old");
        fs::rename(&path, &old).unwrap();
        swap(&path);
        assert!(tree.root.open_found(&path).is_none(), "{name}");
        fs::remove_file(&path)
            .or_else(|_| fs::remove_dir(&path))
            .ok();
        fs::rename(&old, &path).unwrap();
    }
    let folder = tree.root.path().join("src");
    fs::rename(&folder, tree.root.path().join("moved")).unwrap();
    symlink("moved", &folder).unwrap();
    assert!(
        tree.root.open_found(&path).is_none(),
        "its folder for a link"
    );
    assert!(
        tree.root.about_found(&path, &mut None).is_none(),
        "its folder for a link"
    );
    for outside in ["../secret.txt", "docs/../../secret.txt"] {
        let outside = tree.root.path().join(outside);
        assert!(tree.root.open_found(&outside).is_none(), "outside");
    }
    let beside = tree.root.path().with_file_name("secret.txt");
    assert!(tree.root.open_found(&beside).is_none(), "outside");
}

#[test]
fn root_must_be_an_existing_folder() {
    let outer = tempfile::tempdir().unwrap();
    let file = outer.path().join("file");
    fs::write(&file, "").unwrap();
    let missing = outer.path().join("missing");
    let reason = io::ErrorKind::NotFound;
    for (name, folder, error) in [
        (
            "missing",
            &missing,
            RootError::Unreadable {
                path: missing.clone(),
                reason,
            },
        ),
        (
            "a file",
            &file,
            RootError::NotAFolder { path: file.clone() },
        ),
    ] {
        assert_eq!(ProjectRoot::open(folder).unwrap_err(), error, "{name}");
        let text = error.to_string();
        assert!(
            text.contains(folder.to_str().unwrap()) && text.contains(": use "),
            "{text}"
        );
    }
}
