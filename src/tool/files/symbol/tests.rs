//! Reading symbols by name.

use std::{fs, path::Path};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{super::*, MAX_SYMBOLS, MAX_TEXT};

const CODE: &str = "//! Doc.\n\n/// Keeps.\npub struct Store {\n    a: u8,\n}\n\nimpl Store {\n    \
                    /// Gets.\n    fn get(&self) -> u8 {\n        1\n    }\n}\n\nimpl Show for \
                    Store {\n    fn show(&self) {}\n}\n\nfn get() {}\n";

fn read_of(path: &str, text: &[u8], symbol: &str, max_lines: u64) -> Result<String, ToolError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(path), text).unwrap();
    let root = ProjectRoot::open(Path::new(folder.path())).unwrap();
    let settings = FileReadSettings {
        max_lines,
        ..FileReadSettings::default()
    };
    let wanted = arguments::arguments(json!({ "path": path, "symbol": symbol }))?;
    read(&root, &wanted, &settings, &CancellationToken::new()).map(|output| output.text)
}

#[test]
fn symbol_is_found_by_plain_or_qualified_name() {
    let get = "a.rs (lines 9–12 of 19)\n9:     /// Gets.\n10:     fn get(&self) -> u8 {\n\
               11:         1\n12:     }\n… 7 more lines; continue with start_line=13\n\
               … all of method `Store::get`";
    let show = "a.rs (lines 16–16 of 19)\n16:     fn show(&self) {}\n… 3 more lines; continue \
                with start_line=17\n… all of method `Store::show`";
    for (symbol, want) in [
        ("Store::get", get),
        ("Store.get()", get),
        ("store::GET", get),
        ("Show::show", show),
        ("show", show),
    ] {
        assert_eq!(
            read_of("a.rs", CODE.as_bytes(), symbol, 400),
            Ok(want.to_owned()),
            "{symbol}"
        );
    }
}

#[test]
fn ambiguous_symbol_reads_the_first_and_lists_the_others() {
    let store = read_of("a.rs", CODE.as_bytes(), "Store", 400).unwrap();
    assert!(
        store.starts_with("a.rs (lines 3–6 of 19)\n3: /// Keeps.\n"),
        "{store}"
    );
    let end = "… all of type `Store`; others of that name: line 8, 15";
    assert!(store.ends_with(end), "{store}");
    let get = read_of("a.rs", CODE.as_bytes(), "get", 400).unwrap();
    assert!(
        get.ends_with("… all of method `Store::get`; others of that name: line 19"),
        "{get}"
    );
}

#[test]
fn long_symbol_is_read_from_its_head() {
    let text = format!("def long():\n{}", "    x = 1\n".repeat(50));
    let want = "a.py (lines 1–3 of 51)\n1: def long():\n2:     x = 1\n3:     x = 1\n… 48 more \
                lines; continue with start_line=4\n… function `long` continues to line 51; \
                continue with start_line=4";
    assert_eq!(
        read_of("a.py", text.as_bytes(), "long", 3),
        Ok(want.to_owned())
    );
}

#[test]
fn a_heading_is_a_symbol() {
    let text = b"# Guide\n\n## Set up\n\nSo.\n\n## Use it\n";
    for symbol in ["Set up", "## Set up", "Guide > Set up"] {
        let read = read_of("a.md", text, symbol, 400).unwrap();
        assert!(
            read.starts_with("a.md (lines 3–6 of 7)\n3: ## Set up\n"),
            "{symbol}: {read}"
        );
    }
}

#[test]
fn symbol_is_found_by_its_displayed_name() {
    for (path, text, symbols) in [
        (
            "a.sh",
            "kube::log::error() {\n  x\n}\n",
            &["kube::log::error", "Kube::Log::error"][..],
        ),
        (
            "a.js",
            "class Counter {\n  #count() {\n    return 1;\n  }\n}\n",
            &["#count", "Counter.#count"][..],
        ),
        (
            "a.md",
            "# `config.yml`\n\nx\n",
            &["`config.yml`", "config.yml"][..],
        ),
        ("b.md", "# `run()`\n\nx\n", &["`run()`", "run()"][..]),
        (
            "c.md",
            "# Map: `repo_map`\n\nx\n",
            &["Map: `repo_map`", "Map: repo_map", "map: `repo_map`"][..],
        ),
    ] {
        for symbol in symbols {
            let read = read_of(path, text.as_bytes(), symbol, 400);
            assert!(
                read.as_ref().is_ok_and(|read| read.contains("… all of ")),
                "{symbol}: {read:?}"
            );
        }
    }
}

#[test]
fn missing_symbol_error_mentions_the_outline_limits() {
    let many = "fn a() {}\n".repeat(MAX_SYMBOLS + 1);
    let long = format!("fn a() {{}}\n{}\nfn zzz() {{}}\n", " ".repeat(MAX_TEXT));
    for text in [many, long] {
        let error = read_of("a.rs", text.as_bytes(), "zzz", 400).unwrap_err();
        let end = " (of a file, the first 8 MiB are looked at, and the first 20000 symbols known)";
        assert!(error.to_string().ends_with(end), "{error}");
    }
}

#[test]
fn missing_symbol_error_suggests_alternatives() {
    for (path, symbol, says) in [
        (
            "a.rs",
            "Stor",
            "there is no `Stor` in `a.rs`: did you mean `Store` (line 4), `Store` (line 8), \
             `Store` (line 15), `Store::show` (line 16)?",
        ),
        (
            "a.rs",
            "Store::git",
            "did you mean `Store::get` (line 10), `get` (line 19)?",
        ),
        (
            "a.rs",
            "absolutely_other",
            "it begins with `Store` (line 4), `Store` (line 8)",
        ),
        ("a.txt", "Store", "`a.txt` has no known symbols"),
        ("a.rs", " :: ", "`symbol` is `::`, but must be a name"),
    ] {
        let error = read_of(path, CODE.as_bytes(), symbol, 400)
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{symbol}: {error}");
    }
    let error = read_of("a.rs", b"fn a() {}\0", "a", 400)
        .unwrap_err()
        .to_string();
    assert!(error.contains("is a binary file"), "{error}");
}

#[test]
fn symbol_and_lines_exclude_each_other() {
    for given in [
        json!({"start_line": 1}),
        json!({"around": 1}),
        json!({"radius": 1}),
    ] {
        let mut given = given;
        given["path"] = json!("a.rs");
        given["symbol"] = json!("a");
        let wanted: FileReadArguments = arguments::arguments(given).unwrap();
        let error = wanted
            .span(&FileReadSettings::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("give either `symbol` or lines"),
            "{error}"
        );
    }
}
