//! Which sections of documents say how a project is built, tested or run. Pure.

use super::{
    commands,
    evidence::{Evidence, Place},
    interest::{Chore, is_of_chore},
    lexicon::holds,
    source::{Introduces, LONGEST, introduces},
};
use crate::words::is_prose;

/// Documents for those who begin, by how their names begin.
const FRONT: &[&str] = &[
    "readme",
    "contributing",
    "install",
    "hacking",
    "develop",
    "building",
    "testing",
    "quickstart",
    "getting",
];
/// Folders in which such documents of the whole lie, and those of tests.
const FOLDERS: &str = "doc docs documentation .github";
const TESTS: &str = "test tests";
/// What headings say besides.
const OF_HEADING: &str = "\
    and for on your first from a an our project library package code tests test linux macos windows unix development developing developer";
/// How far above a place its heading may stand, in lines.
const REACH: u32 = 30;

/// The sections under a heading that says so, those of documents for beginners first.
pub(super) fn sections(chore: Chore, evidence: &Evidence) -> Vec<&Place> {
    let fits = |place: &&Place| {
        let file = place.path.rsplit('/').next().unwrap_or_default();
        let is_list = file.ends_with(".txt") && place.path.contains("requirements");
        if !is_prose(file) || is_list {
            return false;
        }
        let headings = place.within.iter().map(|name| name.to_lowercase());
        match is_front(chore, &place.path) {
            true => has_heading(chore, headings),
            false => {
                let last = place.within.last();
                is_of_documents(&place.path)
                    && last.is_some_and(|last| is_about(chore, &last.to_lowercase()))
            }
        }
    };
    let mut all: Vec<&Place> = evidence.places.iter().filter(fits).collect();
    all.sort_by_key(|place| !is_front(chore, &place.path));
    all
}

/// Whether a heading is about nothing else: "Running the tests", and not "Building responses".
fn is_about(chore: Chore, heading: &str) -> bool {
    let mut words = heading
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let is_said = |word: &str| is_of_chore(word) || holds(OF_HEADING, word);
    has_heading(chore, [heading.to_owned()]) && words.all(is_said)
}

fn has_heading(chore: Chore, headings: impl IntoIterator<Item = String>) -> bool {
    headings.into_iter().any(|heading| {
        let mut wanted = chore.headings().iter();
        wanted.any(|word| {
            let mut at = heading.match_indices(word);
            at.any(|(at, _)| !heading[..at].ends_with(char::is_alphanumeric))
        })
    })
}

/// Whether it lies in a folder of documents: elsewhere a text may be anything.
fn is_of_documents(path: &str) -> bool {
    let mut folders = path.split('/').rev().skip(1);
    folders
        .any(|folder| ["doc", "docs", "documentation", "guide", "guides", "book"].contains(&folder))
}

/// Whether a document is one for those who begin: of the project, and no part of it that is brought along; of the
/// tests, what lies beside them.
pub(super) fn is_front(chore: Chore, path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let is_own = match chore {
        Chore::Test => folder.is_empty() || holds(FOLDERS, folder) || holds(TESTS, folder),
        _ => folder.is_empty() || holds(FOLDERS, folder),
    };
    let file = file.to_lowercase();
    is_own && FRONT.iter().any(|name| file.starts_with(name))
}

/// Whether anything says how.
pub(super) fn is_known(chore: Chore, evidence: &Evidence) -> bool {
    !commands::of(chore, evidence).is_empty() || !sections(chore, evidence).is_empty()
}

/// The lines of a section from its heading on, as far as they are known, up to the next heading.
pub(super) fn span(place: &Place, evidence: &Evidence) -> Option<(u32, u32)> {
    let lines = evidence.files.get(&place.path)?;
    let is_heading = |at: u32| {
        let introduced = introduces(&place.path, lines, at);
        matches!(introduced, Some(Introduces::Heading { .. }))
    };
    let from = place.lines.0;
    let above = (from.saturating_sub(REACH).max(1)..=from).rev();
    let known = above.take_while(|at| lines.contains_key(at));
    let first = known.clone().find(|at| is_heading(*at)).unwrap_or(from);
    let mut behind = (first + 1..first + LONGEST).take_while(|at| lines.contains_key(at));
    let mut last = first;
    // A title alone is followed by what it is the title of.
    let mut has_text = false;
    while let Some(at) = behind.next().filter(|at| !has_text || !is_heading(*at)) {
        if !lines[&at].trim().is_empty() {
            last = at;
            has_text |= !is_heading(at);
        }
    }
    Some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, line: u32, within: &[&str]) -> Place {
        Place {
            path: path.to_owned(),
            lines: (line, line + 2),
            within: within.iter().map(|&name| name.to_owned()).collect(),
            marked: vec![line],
            record: None,
            has: Vec::new(),
        }
    }

    #[test]
    fn sections_that_say_so_come_first_where_beginners_look() {
        let evidence = Evidence {
            places: vec![
                place("src/run.rs", 1, &["run_test"]),
                place("docs/guide/tests.md", 9, &["Guide", "Latest news"]),
                place("docs/guide/tests.md", 19, &["Guide", "Running tests"]),
                place("CONTRIBUTING.md", 5, &["Testing", "With a filter"]),
                place("README.md", 7, &["Shop", "Attestation"]),
                place("tests/README.md", 3, &["Running the test suite"]),
                place("libs/other/README.md", 3, &["Tests"]),
                place("libs/README.md", 3, &["Tests"]),
                place("docs/bench.md", 3, &["Run the test against Node"]),
            ],
            ..Evidence::default()
        };
        let found = sections(Chore::Test, &evidence);
        let found: Vec<(&str, u32)> = found
            .iter()
            .map(|place| (place.path.as_str(), place.lines.0))
            .collect();
        assert_eq!(
            found,
            [
                ("CONTRIBUTING.md", 5),
                ("tests/README.md", 3),
                ("docs/guide/tests.md", 19)
            ]
        );
        assert!(is_known(Chore::Test, &evidence));
        assert!(!is_known(Chore::Install, &evidence));
    }

    #[test]
    fn a_section_is_shown_from_its_heading_to_the_next() {
        let text = "# Shop\n\n## Tests\n\nRun:\n\n```\n# all\nmake test\n```\n\n## More\n";
        let mut evidence = Evidence::default();
        let lines = (1..).zip(text.lines().map(str::to_owned)).collect();
        evidence.files.insert("README.md".to_owned(), lines);
        for line in [3, 5, 8] {
            assert_eq!(
                span(&place("README.md", line, &[]), &evidence),
                Some((3, 10)),
                "{line}"
            );
        }
        let title = place("README.md", 1, &[]);
        assert_eq!(span(&title, &evidence), Some((1, 10)));
        assert_eq!(span(&place("gone.md", 1, &[]), &evidence), None);
    }
}
