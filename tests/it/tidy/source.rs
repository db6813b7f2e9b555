//! A source file as the rules see it: its path, its text and its tokens; and the walk that finds
//! all of them.
//!
//! What only other files tell (a module declared behind a gate) is known after [`tree`] alone.

use std::fs;
use std::path::Path;

use super::Violation;
use super::tokens::{Gate, Kind, Token, read};

/// The folders whose `.rs` files are looked at.
const FOLDERS: &[&str] = &["src", "tests", "benches", "examples"];

/// One file.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Relative to the repository, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
}

impl Source {
    /// Reads a file by itself: of its gates, those that its path and its own attributes tell.
    pub(super) fn new(path: &str, text: &str) -> Self {
        let gate = gate_of_path(path);
        Self {
            path: path.into(),
            text: text.into(),
            tokens: read(text, gate)
                .unwrap_or_else(|error| panic!("{path} is not made of Rust tokens: {error}")),
        }
    }

    pub(super) fn violation(&self, line: usize, what: impl Into<String>) -> Violation {
        Violation {
            path: self.path.clone(),
            line,
            what: what.into(),
        }
    }

    /// The module path below the crate's root: `src/kernel/phase.rs` is `["kernel", "phase"]`;
    /// `None` for what is not part of the library.
    pub(super) fn module(&self) -> Option<Vec<&str>> {
        let inside = self.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        match inside {
            "main" => None,
            "lib" => Some(Vec::new()),
            _ => Some(inside.split('/').collect()),
        }
    }

    /// The room of the library that this file belongs to.
    pub(super) fn room(&self) -> Option<&str> {
        self.module()?.first().copied()
    }

    /// The modules that this file declares with `mod name;`, with their gates.
    pub(super) fn declared(&self) -> impl Iterator<Item = (&str, Gate)> {
        self.tokens.windows(3).filter_map(|three| match three {
            [key, name, end] if key.is("mod") && end.is(";") && name.kind == Kind::Ident => {
                Some((name.text.as_str(), name.gate))
            }
            _ => None,
        })
    }

    /// Where the file of a module declared here is, without `.rs`.
    pub(super) fn child(&self, name: &str) -> String {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        let (folder, file) = stem.rsplit_once('/').unwrap_or(("", stem));
        match file {
            "lib" | "main" => format!("{folder}/{name}"),
            _ => format!("{stem}/{name}"),
        }
    }

    /// Raises every token to at least `gate`.
    fn close(&mut self, gate: Gate) {
        for token in &mut self.tokens {
            token.gate = token.gate.max(gate);
        }
    }
}

/// All source files of the repository, ordered by path.
pub(super) fn read_tree(root: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        walk(root, folder, &mut files);
    }
    files.sort();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(p, t)| (p.as_str(), t.as_str()))
        .collect();
    tree(&files)
}

fn walk(root: &Path, folder: &str, files: &mut Vec<(String, String)>) {
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        return; // A repository without benches has no folder for them.
    };
    for entry in entries {
        let entry = entry.expect("a folder that opened can be read");
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().expect("an entry has a type").is_dir() {
            walk(root, &path, files);
        } else if path.ends_with(".rs") {
            let text = fs::read_to_string(entry.path()).expect("a source file is UTF-8");
            files.push((path, text));
        }
    }
}

/// Files that belong together: a module declared behind a gate is behind it in its own file too.
pub(super) fn tree(files: &[(&str, &str)]) -> Vec<Source> {
    let mut sources: Vec<Source> = files
        .iter()
        .map(|(path, text)| Source::new(path, text))
        .collect();
    let gated: Vec<(String, Gate)> = sources
        .iter()
        .flat_map(|source| {
            source
                .declared()
                .filter(|(_, gate)| *gate > Gate::Open)
                .map(|(name, gate)| (source.child(name), gate))
        })
        .collect();
    for (stem, gate) in gated {
        let (file, folder) = (format!("{stem}.rs"), format!("{stem}/"));
        sources
            .iter_mut()
            .filter(|source| source.path == file || source.path.starts_with(&folder))
            .for_each(|source| source.close(gate));
    }
    sources
}

fn gate_of_path(path: &str) -> Gate {
    if path.starts_with("tests/") || path.ends_with("/tests.rs") || path.contains("/tests/") {
        Gate::Test
    } else if path.starts_with("src/testkit")
        || path.starts_with("benches/")
        || path.starts_with("examples/")
    {
        Gate::TestKit
    } else {
        Gate::Open
    }
}

#[test]
fn a_gate_reaches_to_the_end_of_its_item() {
    use Gate::{Open, Test, TestKit};
    for (name, path, text, expected) in [
        ("nothing said", "src/a.rs", "here!();", Open),
        (
            "test module",
            "src/a.rs",
            "#[cfg(test)] mod tests { fn f() { here!(); } }",
            Test,
        ),
        (
            "after a test module",
            "src/a.rs",
            "#[cfg(test)] mod tests {} here!();",
            Open,
        ),
        (
            "after a gated use",
            "src/a.rs",
            "#[cfg(test)] use a::b; here!();",
            Open,
        ),
        (
            "more attributes between",
            "src/a.rs",
            "#[cfg(test)] #[x(y)] fn f() { here!() }",
            Test,
        ),
        (
            "whole file",
            "src/a.rs",
            "#![cfg(test)] use a::b; here!();",
            Test,
        ),
        (
            "feature",
            "src/a.rs",
            "#[cfg(feature = \"testkit\")] here!();",
            TestKit,
        ),
        (
            "either",
            "src/a.rs",
            "#[cfg(any(test, feature = \"testkit\"))] here!();",
            TestKit,
        ),
        ("both", "src/a.rs", "#[cfg(all(test, unix))] here!();", Test),
        (
            "not only in tests",
            "src/a.rs",
            "#[cfg(any(test, unix))] here!();",
            Open,
        ),
        (
            "only outside tests",
            "src/a.rs",
            "#[cfg(not(test))] here!();",
            Open,
        ),
        (
            "another feature",
            "src/a.rs",
            "#[cfg(feature = \"test\")] here!();",
            Open,
        ),
        ("tests beside the file", "src/a/tests.rs", "here!();", Test),
        ("integration test", "tests/it/a.rs", "here!();", Test),
        ("example", "examples/a.rs", "here!();", TestKit),
    ] {
        let source = Source::new(path, text);
        let here = source
            .tokens
            .iter()
            .find(|token| token.is("here"))
            .expect("is in the sample");
        assert_eq!(here.gate, expected, "{name}");
    }
}

#[test]
fn a_gate_before_a_module_holds_in_its_file() {
    let sources = tree(&[
        (
            "src/llm.rs",
            "#[cfg(feature = \"testkit\")] pub mod conformance; mod wire;",
        ),
        ("src/llm/conformance.rs", "here!();"),
        ("src/llm/conformance/cases.rs", "here!();"),
        ("src/llm/wire.rs", "here!();"),
    ]);
    let gates: Vec<Gate> = sources[1..]
        .iter()
        .map(|source| source.tokens[0].gate)
        .collect();
    assert_eq!(gates, [Gate::TestKit, Gate::TestKit, Gate::Open]);
}

#[test]
fn a_file_knows_its_place() {
    for (path, module, child) in [
        ("src/lib.rs", Some(vec![]), "src/x"),
        ("src/main.rs", None, "src/x"),
        ("src/kernel.rs", Some(vec!["kernel"]), "src/kernel/x"),
        (
            "src/kernel/phase.rs",
            Some(vec!["kernel", "phase"]),
            "src/kernel/phase/x",
        ),
        ("tests/it/main.rs", None, "tests/it/x"),
        ("tests/it/tidy.rs", None, "tests/it/tidy/x"),
    ] {
        let source = Source::new(path, "");
        assert_eq!(
            (source.module(), source.child("x")),
            (module, child.into()),
            "{path}"
        );
    }
}
