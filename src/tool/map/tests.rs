//! Maps of small, large and odd projects.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{testkit::tool_context, tool::Tool as _};

fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

async fn called(
    folder: &Path,
    settings: RepoMapSettings,
    arguments: Value,
) -> Result<String, ToolError> {
    let tool = repo_map(ProjectRoot::open(folder).unwrap(), settings);
    let result = tool.call(arguments, tool_context()).await;
    result.map(|output| output.text)
}

async fn map_of(folder: &TempDir, arguments: Value) -> String {
    called(folder.path(), RepoMapSettings::default(), arguments)
        .await
        .unwrap()
}

fn sample() -> TempDir {
    project(&[
        (".gitignore", "target/\n"),
        ("target/gone.rs", "fn gone() {}\n"),
        ("README.md", "# Sample\n\nText.\n\n## Use\n"),
        (
            "src/lib.rs",
            "//! Lib.\nmod store;\n\n/// Runs.\npub fn run(at: u8) -> bool {\n    true\n}\n",
        ),
        (
            "src/store.rs",
            "pub struct Store {\n    a: u8,\n}\n\nimpl Store {\n    pub fn get(&self) -> u8 {\n        self.a\n    }\n}\n",
        ),
        ("tests/store.rs", "#[test]\nfn gets() {}\n"),
        ("data/a.csv", "1,2\n"),
    ])
}

#[tokio::test]
async fn a_small_project_is_shown_whole() {
    let want = "\
5 files, 4 with an outline
./ README.md
data/ a.csv
src/ lib.rs, store.rs
tests/ store.rs

README.md:1: # Sample
README.md:5:   ## Use

src/lib.rs:5: pub fn run(at: u8) -> bool

src/store.rs:1: pub struct Store
src/store.rs:5: impl Store
src/store.rs:6:   pub fn get(&self) -> u8

tests/store.rs:2: fn gets() {}

all symbols shown";
    assert_eq!(map_of(&sample(), json!({})).await, want);
}

#[tokio::test]
async fn map_ranks_focus_matches_first() {
    for (focus, first) in [
        ("store", "src/store.rs:1: pub struct Store"),
        ("Store::get", "src/store.rs:1: pub struct Store"),
        (
            "how does it run?",
            "src/lib.rs:5: pub fn run(at: u8) -> bool",
        ),
        ("tests/store.rs", "tests/store.rs:2: fn gets() {}"),
        ("README", "README.md:1: # Sample"),
    ] {
        let map = map_of(&sample(), json!({"focus": focus})).await;
        let line = map.lines().find(|line| line.contains(": "));
        assert_eq!(line, Some(first), "{focus}: {map}");
    }
}

#[tokio::test]
async fn map_of_a_path_shows_only_that_part() {
    for (path, files) in [
        ("src", "2 files in `src`"),
        ("**/*.md", "1 file in files like `**/*.md`"),
        ("src/lib.rs", "1 file in `src/lib.rs`"),
    ] {
        let map = map_of(&sample(), json!({"path": path})).await;
        assert!(map.starts_with(files), "{path}: {map}");
    }
    let error = called(
        sample().path(),
        RepoMapSettings::default(),
        json!({"path": "../x"}),
    )
    .await;
    assert!(error.unwrap_err().to_string().contains("is outside"));
}

#[tokio::test]
async fn map_fits_its_tokens_and_counts_omissions() {
    let folder = project(&[]);
    for at in 0..60 {
        let path = folder
            .path()
            .join(format!("src/part{}/file{at}.rs", at % 7));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let functions: String = (0..40)
            .map(|n| format!("pub fn f{at}_{n}() {{}}\n"))
            .collect();
        fs::write(path, functions).unwrap();
    }
    for tokens in [200, 500, 2_000, 16_000] {
        let map = map_of(&folder, json!({"max_tokens": tokens})).await;
        assert!(map.len() <= 3 * tokens, "{tokens}: {}", map.len());
        let last = map.lines().last().unwrap();
        assert!(last.contains("of 2400 symbols in "), "{tokens}: {last}");
        let shown = map.lines().filter(|line| line.contains(": pub fn")).count();
        assert!(last.starts_with(&format!("{shown} of")), "{tokens}: {last}");
    }
    // Deterministic; the focus takes most of the space.
    let arguments = json!({"focus": "file33", "max_tokens": 1_000});
    let map = map_of(&folder, arguments.clone()).await;
    assert_eq!(map, map_of(&folder, arguments).await);
    let fits = map
        .lines()
        .filter(|line| line.starts_with("src/part5/file33.rs:"))
        .count();
    assert_eq!(fits, 40, "{map}");
}

#[tokio::test]
async fn out_of_range_map_arguments_are_explained() {
    for (arguments, says) in [
        (
            json!({"max_tokens": 199}),
            "`max_tokens` is 199, the range is 200 to 16000",
        ),
        (
            json!({"max_tokens": 16_001}),
            "`max_tokens` is 16001, the range is 200 to 16000",
        ),
    ] {
        let result = called(sample().path(), RepoMapSettings::default(), arguments).await;
        assert_eq!(result, Err(ToolError::ForModel(says.to_owned())));
    }
}

#[tokio::test]
async fn unreadable_files_are_skipped_and_counted() {
    let folder = sample();
    let at = |path: &str| folder.path().join(path);
    fs::write(at("src/binary.rs"), b"fn a() {}\0").unwrap();
    fs::write(
        at("src/latin.rs"),
        b"// \xe9\nfn caf\xe9() {}\nfn after() {}\n",
    )
    .unwrap();
    fs::write(at("src/marked.rs"), "\u{feff}fn marked() {}\n").unwrap();
    fs::write(at("src/big.rs"), "fn big() {}\n".repeat(100_000)).unwrap();
    symlink(folder.path(), at("src/loop")).unwrap();
    let fifo = Command::new("mkfifo")
        .arg(at("src/pipe.rs"))
        .status()
        .unwrap();
    assert!(fifo.success());
    let map = map_of(&folder, json!({})).await;
    assert!(map.contains("src/latin.rs:3: fn after() {}"), "{map}");
    assert!(map.contains("src/marked.rs:1: fn marked() {}"), "{map}");
    let last = map.lines().last().unwrap();
    assert_eq!(
        last,
        "all symbols shown; skipped: 1 binary, 1 over 512 KiB, 1 link, 1 not regular files"
    );
}

#[tokio::test]
async fn irregular_ignore_file_is_not_opened() {
    let folder = project(&[("a.rs", "fn a() {}\n")]);
    let fifo = Command::new("mkfifo")
        .arg(folder.path().join(".gitignore"))
        .status()
        .unwrap();
    assert!(fifo.success());
    let map = map_of(&folder, json!({})).await;
    assert_eq!(
        map,
        "0 files, 0 with an outline\n\n\nno symbols found; skipped: 1 unreadable"
    );
}

#[tokio::test]
async fn map_honours_its_file_limits() {
    let folder = project(&[]);
    for at in 0..150 {
        fs::write(folder.path().join(format!("f{at:03}.rs")), "fn f() {}\n").unwrap();
    }
    let settings = RepoMapSettings {
        max_files: 100,
        max_outlined: 10,
        ..RepoMapSettings::default()
    };
    let map = called(folder.path(), settings, json!({"max_tokens": 4_000}))
        .await
        .unwrap();
    assert!(map.starts_with("100 files, 10 with an outline\n"), "{map}");
    assert!(map.contains("90 files not read for an outline"), "{map}");
    assert!(map.contains("too many files to read them all"), "{map}");
    let read = RepoMapSettings {
        max_outlined: 10,
        ..RepoMapSettings::default()
    };
    let map = called(folder.path(), read, json!({"focus": "f149.rs f148.rs"}))
        .await
        .unwrap();
    let first: Vec<&str> = map
        .lines()
        .filter(|line| line.contains(": "))
        .take(2)
        .collect();
    assert_eq!(
        first,
        ["f148.rs:1: fn f() {}", "f149.rs:1: fn f() {}"],
        "{map}"
    );
}

#[test]
fn file_listing_is_deterministic_when_truncated() {
    let folder = project(&[]);
    for at in 0..400 {
        fs::create_dir_all(folder.path().join(format!("d{}", at % 7))).unwrap();
        fs::write(folder.path().join(format!("d{}/f{at:03}.rs", at % 7)), "").unwrap();
    }
    let root = ProjectRoot::open(folder.path()).unwrap();
    let place = Scope::find(&root, None).unwrap();
    let listing = walk::list(&root, &place, 20, |_| true, &CancellationToken::new());
    let paths: Vec<&str> = listing.files.iter().map(|file| &*file.shown).collect();
    let want: Vec<String> = (0..20).map(|n| format!("d0/f{:03}.rs", n * 7)).collect();
    assert_eq!(paths, want);
    assert!(listing.more == 380 && !listing.stopped);
}

#[test]
fn cancelled_map_is_reported() {
    let folder = sample();
    let root = ProjectRoot::open(folder.path()).unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    let wanted = MapArguments {
        focus: None,
        path: None,
        max_tokens: None,
    };
    let map = map(&root, &wanted, RepoMapSettings::default(), &stop);
    let map = map.unwrap().text;
    assert!(
        map.ends_with("stopped at the deadline after 0 files"),
        "{map}"
    );
}
