//! Every file is part of the build, and all integration tests are one binary.
//!
//! A file that nobody declares is not compiled: its tests never run, and nothing says so.

use super::Violation;
use super::source::Source;

/// Files that cargo finds by itself.
fn is_a_root(path: &str) -> bool {
    matches!(path, "src/lib.rs" | "src/main.rs" | "tests/it/main.rs")
        || path.starts_with("benches/")
        || path.starts_with("examples/")
        || is_a_test_binary(path)
}

fn is_a_test_binary(path: &str) -> bool {
    path.strip_prefix("tests/")
        .is_some_and(|file| !file.contains('/'))
}

/// Every file is some file's `mod name;`.
pub(super) fn every_file_is_compiled(sources: &[Source]) -> Vec<Violation> {
    let declared: Vec<String> = sources
        .iter()
        .flat_map(|source| {
            source
                .declared()
                .map(|(name, _)| source.child(name) + ".rs")
        })
        .collect();
    sources
        .iter()
        .filter(|source| !is_a_root(&source.path) && !declared.contains(&source.path))
        .map(|source| {
            source.violation(
                1,
                "no file declares this module: add its `mod` line, or remove it",
            )
        })
        .collect()
}

/// All integration tests are modules of `tests/it/main.rs`, which links once.
pub(super) fn integration_tests_share_one_binary(sources: &[Source]) -> Vec<Violation> {
    sources
        .iter()
        .filter(|source| is_a_test_binary(&source.path))
        .map(|source| source.violation(1, "a test binary of its own: move it into tests/it"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::tree;
    use super::*;

    fn paths(violations: Vec<Violation>) -> Vec<String> {
        violations
            .into_iter()
            .map(|violation| violation.path)
            .collect()
    }

    #[test]
    fn a_file_that_nobody_declares_is_found() {
        let sources = tree(&[
            ("src/lib.rs", "pub mod room;\n// mod forgotten;\n"),
            ("src/main.rs", "fn main() {}"),
            ("src/room.rs", "mod inner; #[cfg(test)] mod tests;"),
            ("src/room/inner.rs", ""),
            ("src/room/tests.rs", ""),
            ("src/room/forgotten.rs", ""),
            ("src/forgotten.rs", ""),
            ("tests/it/main.rs", "mod listed;"),
            ("tests/it/listed.rs", "mod helper;"),
            ("tests/it/listed/helper.rs", ""),
            ("tests/it/unlisted.rs", ""),
            ("examples/one.rs", ""),
            ("benches/one.rs", ""),
        ]);
        assert_eq!(
            paths(every_file_is_compiled(&sources)),
            [
                "src/room/forgotten.rs",
                "src/forgotten.rs",
                "tests/it/unlisted.rs"
            ]
        );
    }

    #[test]
    fn a_second_test_binary_is_found() {
        let sources = tree(&[("tests/it/main.rs", ""), ("tests/lonely.rs", "")]);
        assert_eq!(
            paths(integration_tests_share_one_binary(&sources)),
            ["tests/lonely.rs"]
        );
    }
}
