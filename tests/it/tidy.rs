//! What the prose promises about this repository, kept true.
//!
//! Each rule is a function from the text of one file (or of all of them) to what is wrong with it;
//! this file applies all rules to the tree and reports everything at once. Code is read as tokens,
//! so comments, intra-doc links and strings never break a rule. It does not repeat what rustfmt,
//! rustc and clippy already refuse (missing docs, unwraps, `mod.rs` in compiled code).
//!
//! **Invariant:** every rule has a test with a sample that breaks it; a check that cannot fail is
//! worth nothing.

mod documents;
mod floors;
mod modules;
mod paths;
mod purity;
mod shape;
mod source;
mod tokens;
mod words;

use std::fmt;
use std::path::Path;

use source::Source;

/// Something that is not as promised, where it is, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Violation {
    /// Relative to the repository, with `/`.
    path: String,
    /// From 1.
    line: usize,
    /// What is wrong, and the remedy.
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

type FileRule = fn(&Source) -> Vec<Violation>;
type TreeRule = fn(&[Source]) -> Vec<Violation>;

/// The rules that look at one file.
const FILE_RULES: &[FileRule] = &[
    shape::opens_with_its_doc,
    shape::stays_short,
    shape::is_not_a_mod_rs,
    shape::has_no_trailing_space,
    floors::imports_point_down,
    floors::only_app_names_back_ends,
    floors::test_kit_stays_in_tests,
    purity::rooms_stay_pure,
    purity::actor_refs_stay_in_actor,
    purity::anyhow_stays_in_the_binary,
    words::lints_are_lifted_with_a_reason,
    words::nothing_is_left_to_do,
    words::tests_do_not_sleep,
    words::test_names_state_behaviour,
    words::routes_are_described,
];

/// The rules that look at all files together.
const TREE_RULES: &[TreeRule] = &[
    modules::every_file_is_compiled,
    modules::integration_tests_share_one_binary,
];

fn violations(sources: &[Source]) -> Vec<Violation> {
    let of_files = sources
        .iter()
        .flat_map(|source| FILE_RULES.iter().flat_map(|rule| rule(source)));
    let of_tree = TREE_RULES.iter().flat_map(|rule| rule(sources));
    of_files.chain(of_tree).collect()
}

fn report(mut violations: Vec<Violation>) -> String {
    violations.sort();
    violations.dedup();
    violations
        .iter()
        .map(|violation| format!("{violation}\n"))
        .collect()
}

#[test]
fn the_repository_keeps_its_promises() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = source::read_tree(root);
    for known in [
        "src/lib.rs",
        "src/main.rs",
        "src/model/id.rs",
        "tests/it/tidy.rs",
    ] {
        assert!(
            sources.iter().any(|source| source.path == known),
            "the walk misses {known}"
        );
    }
    let mut found = violations(&sources);
    found.extend(documents::violations(root));
    assert!(
        found.is_empty(),
        "{} violations:\n{}",
        found.len(),
        report(found)
    );
}

#[test]
fn a_report_names_every_place_once_and_in_order() {
    let at = |line, what: &str| Violation {
        path: "src/a.rs".into(),
        line,
        what: what.into(),
    };
    let found = vec![at(9, "late"), at(2, "early"), at(9, "late")];
    assert_eq!(report(found), "src/a.rs:2: early\nsrc/a.rs:9: late\n");
}

#[test]
fn all_rules_run_over_all_files() {
    let sources = source::tree(&[
        ("src/lib.rs", "//! Root.\nmod query;\n"),
        ("src/query.rs", "//! Room.\nuse crate::prompt;\n"),
        ("src/query/lost.rs", "fn f() { dbg!(1); } \n"),
    ]);
    let found = report(violations(&sources));
    let places: Vec<&str> = found
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        places,
        [
            "src/query.rs:2:",      // a room beside it
            "src/query/lost.rs:1:", // no doc
            "src/query/lost.rs:1:", // a space at the end
            "src/query/lost.rs:1:", // `dbg!`
            "src/query/lost.rs:1:", // nobody's module
        ],
        "{found}"
    );
}
