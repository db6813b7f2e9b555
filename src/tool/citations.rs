//! Citations in an answer: places in files of the project, each checked to exist (spec 14).

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader},
    ops::Range,
    sync::LazyLock,
};

use regex::Regex;

use super::{ProjectRoot, notes::OUTSIDE};

/// A place in a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Citation {
    /// Relative to the project.
    pub path: String,
    /// First line, from 1.
    pub start: u64,
    /// Last line.
    pub end: u64,
}

/// `path:line` or `path:first-last`, alone on a line or among words.
static PLACES: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    let alone = Regex::new(r"(?m)^[\s`*-]*([^\n`]+?):(\d{1,9})(?:[-–](\d{1,9}))?[`:\s]*$").ok()?;
    let among = Regex::new(r#"([^\s`"'()\[\]<>,;:]+):(\d{1,9})(?:[-–](\d{1,9}))?\b"#).ok()?;
    Some([alone, among])
});

/// The citations of a text that are real: the file is in the project and has these lines. In the
/// order in which they appear, each once. Places in notes that lie outside of the project (`notes:a.md:1`)
/// are none.
#[must_use]
pub fn citations(root: &ProjectRoot, text: &str) -> Vec<Citation> {
    let mut found: Vec<(usize, Citation)> = Vec::new();
    // Where lines are that are one place each: what stands in them is no other one.
    let mut whole: Vec<Range<usize>> = Vec::new();
    let mut known = BTreeMap::new();
    for (pattern, is_alone) in PLACES.iter().flatten().zip([true, false]) {
        for place in pattern.captures_iter(text) {
            let number = |group| {
                place
                    .get(group)
                    .and_then(|m| m.as_str().parse::<u64>().ok())
            };
            let (Some(path), Some(start)) = (place.get(1), number(2)) else {
                continue;
            };
            let end = number(3).unwrap_or(start);
            let citation = Citation {
                path: path.as_str().trim().to_owned(),
                start,
                end,
            };
            let before = &text[..path.start()];
            // Names may have spaces, and end with that of a file of the project.
            let begun = before.rsplit(['`', '\n']).next().unwrap_or_default();
            let is_note =
                before.ends_with(OUTSIDE) || is_outside(begun) || is_outside(path.as_str());
            let within = whole.iter().any(|line| line.contains(&path.start()));
            let mut is_real = || {
                let is = known.entry(citation.clone());
                *is.or_insert_with_key(|citation| exists(root, citation))
            };
            if within || (!is_note && !is_real()) {
                continue;
            }
            if is_alone {
                whole.push(path.range());
            }
            if !is_note {
                found.push((path.start(), citation));
            }
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut seen = BTreeSet::new();
    let new = found.into_iter().map(|(_, citation)| citation);
    new.filter(|citation| seen.insert(citation.clone()))
        .collect()
}

/// Whether what stands before a number, or begins it, names a note that lies outside of the project.
fn is_outside(path: &str) -> bool {
    let rest = path.strip_prefix(OUTSIDE);
    rest.is_some_and(|rest| !rest.starts_with(char::is_whitespace) && !rest.contains(':'))
}

/// Reads no further than the last line cited.
fn exists(root: &ProjectRoot, citation: &Citation) -> bool {
    let Citation { path, start, end } = citation;
    if *start == 0 || end < start {
        return false;
    }
    let Ok(opened) = root.open_file(path) else {
        return false;
    };
    let lines = BufReader::new(opened.file)
        .split(b'\n')
        .take_while(Result::is_ok);
    let wanted = usize::try_from(*end).unwrap_or(usize::MAX);
    lines.take(wanted).count() == wanted
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_places_that_exist_are_citations() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        fs::write(folder.path().join("src/a.rs"), "one\ntwo\nthree\n").unwrap();
        fs::write(folder.path().join("my notes.md"), "# Title").unwrap();
        fs::write(folder.path().join("a.md"), "# Of the project\n").unwrap();
        fs::write(folder.path().join("my a.md"), "# Of the project\n").unwrap();
        let root = ProjectRoot::open(folder.path()).unwrap();
        let place = |path: &str, start, end| Citation {
            path: path.into(),
            start,
            end,
        };
        for (name, text, expected) in [
            (
                "a line",
                "see src/a.rs:2 for it",
                vec![place("src/a.rs", 2, 2)],
            ),
            (
                "a range on its own line",
                "src/a.rs:1-3",
                vec![place("src/a.rs", 1, 3)],
            ),
            (
                "in backticks",
                "(`src/a.rs:3`)",
                vec![place("src/a.rs", 3, 3)],
            ),
            (
                "a name with a space, alone",
                "- my notes.md:1",
                vec![place("my notes.md", 1, 1)],
            ),
            (
                "twice is once",
                "src/a.rs:1 and src/a.rs:1",
                vec![place("src/a.rs", 1, 1)],
            ),
            (
                "a name that is a part of another",
                "my a.md:1\nand a.md:1",
                vec![place("my a.md", 1, 1), place("a.md", 1, 1)],
            ),
            (
                "a note elsewhere",
                "see notes:a.md:1, (`notes:a.md:1`)",
                vec![],
            ),
            (
                "a note elsewhere, alone",
                "- notes:my a.md:1\nnotes:a.md:1-1",
                vec![],
            ),
            (
                "a note elsewhere and a place",
                "notes:my a.md:1, `notes:my a.md:1` and src/a.rs:1\nnotes: see src/a.rs:2",
                vec![place("src/a.rs", 1, 1), place("src/a.rs", 2, 2)],
            ),
            ("beyond the end", "src/a.rs:4", vec![]),
            ("line 0", "src/a.rs:0", vec![]),
            ("backwards", "src/a.rs:3-1", vec![]),
            ("no such file", "src/b.rs:1", vec![]),
            ("a time of day", "at 10:30", vec![]),
            ("outside", "../a.rs:1 /etc/passwd:1", vec![]),
            (
                "in order",
                "src/a.rs:3, then\nmy notes.md:1\nthen src/a.rs:1-2",
                vec![
                    place("src/a.rs", 3, 3),
                    place("my notes.md", 1, 1),
                    place("src/a.rs", 1, 2),
                ],
            ),
        ] {
            assert_eq!(citations(&root, text), expected, "{name}");
        }
    }
}
