//! Citations in an answer: places in files of the project, each verified to exist.
//!
//! **Invariant:** the text bounds the memory, and [`MAX_FILES`], [`MAX_FILE_BYTES`] and
//! [`MAX_TOTAL_BYTES`] bound the reading, whatever files the text names; each file is read once.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read as _,
    ops::Range,
    sync::LazyLock,
};

use regex::Regex;
use tokio_util::sync::CancellationToken;

use super::{
    ProjectRoot,
    files::window::{self, Span, Total, WindowLimits},
    notes::EXTERNAL_PREFIX,
};

/// Maximum paths looked up for one text; words before a number count too.
const MAX_FILES: usize = 2_000;
/// Maximum bytes read of one file.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum bytes read of all files of a text.
const MAX_TOTAL_BYTES: u64 = 4 * MAX_FILE_BYTES;

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

/// `path:line` or `path:first-last`, alone on a line, in code marks or among words.
static CITATION_PATTERNS: LazyLock<Option<[Regex; 3]>> = LazyLock::new(|| {
    let alone = Regex::new(r"(?m)^[\s`*-]*([^\n`]+?):(\d{1,9})(?:[-–](\d{1,9}))?[`:\s]*$").ok()?;
    let marked = Regex::new(r"`([^\n`]+?):(\d{1,9})(?:[-–](\d{1,9}))?`").ok()?;
    let among = Regex::new(r#"([^\s`"'()\[\]<>,;:]+):(\d{1,9})(?:[-–](\d{1,9}))?\b"#).ok()?;
    Some([alone, marked, among])
});

/// Returns the valid citations of a text, whose file is in the project and has these lines, in
/// order and without duplicates. It excludes notes outside the project (`notes:a.md:1`), binary
/// files, lines beyond the first 64 MiB of a file, and fenced blocks, which quote.
pub fn citations(root: &ProjectRoot, text: &str) -> Vec<Citation> {
    let mut found: Vec<(usize, Citation)> = Vec::new();
    // Ranges of quotes, and of lines that are one place: no further place lies within them.
    let mut whole = fenced(text);
    let mut files = LineCounts::new(root);
    for (pattern, is_whole) in CITATION_PATTERNS.iter().flatten().zip([true, true, false]) {
        for place in pattern.captures_iter(text) {
            let number = |group| place.get(group)?.as_str().parse::<u64>().ok();
            let (Some(path), Some(start)) = (place.get(1), number(2)) else {
                continue;
            };
            if whole.iter().any(|range| range.contains(&path.start())) {
                continue;
            }
            let end = number(3).unwrap_or(start);
            let before = &text[..path.start()];
            // Names may contain spaces, and end with the name of a project file.
            let begun = before.rsplit(['`', '\n']).next().unwrap_or_default();
            let is_note =
                before.ends_with(EXTERNAL_PREFIX) || is_outside(begun) || is_outside(path.as_str());
            let named = root.inside(path.as_str());
            let citation = named.map(|path| Citation { path, start, end });
            let citation = citation.ok().filter(|one| !is_note && files.contains(one));
            if citation.is_none() && !is_note {
                continue;
            }
            if is_whole {
                whole.push(path.range());
            }
            found.extend(citation.map(|citation| (path.start(), citation)));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let mut seen = BTreeSet::new();
    let new = found.into_iter().map(|(_, citation)| citation);
    new.filter(|one| seen.insert(one.clone())).collect()
}

/// Returns the ranges of the fenced blocks; the last one may be unterminated.
fn fenced(text: &str) -> Vec<Range<usize>> {
    let (mut blocks, mut open, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        let mark = bare.chars().next().filter(|mark| ['`', '~'].contains(mark));
        let rest = mark.map_or(bare, |mark| bare.trim_start_matches(mark));
        let length = bare.len() - rest.len();
        let next = at + line.len();
        open = match open {
            None if length >= 3 && !rest.contains('`') => Some((at, mark, length)),
            Some((from, opened, least)) if mark == opened && length >= least && rest.is_empty() => {
                blocks.push(from..next);
                None
            }
            same => same,
        };
        at = next;
    }
    blocks.extend(open.map(|(from, ..)| from..at));
    blocks
}

fn is_outside(path: &str) -> bool {
    let rest = path.strip_prefix(EXTERNAL_PREFIX);
    rest.is_some_and(|rest| !rest.starts_with(char::is_whitespace) && !rest.contains(':'))
}

struct LineCounts<'a> {
    root: &'a ProjectRoot,
    lines: BTreeMap<String, u64>,
    left: u64,
}

impl<'a> LineCounts<'a> {
    const fn new(root: &'a ProjectRoot) -> Self {
        Self {
            root,
            lines: BTreeMap::new(),
            left: MAX_TOTAL_BYTES,
        }
    }

    fn contains(&mut self, citation: &Citation) -> bool {
        let Citation { path, start, end } = citation;
        if *start == 0 || start > end {
            return false;
        }
        if self.lines.len() < MAX_FILES && !self.lines.contains_key(path) {
            let lines = self.count(path).unwrap_or(0);
            self.lines.insert(path.clone(), lines);
        }
        self.lines.get(path).is_some_and(|lines| end <= lines)
    }

    fn count(&mut self, path: &str) -> Option<u64> {
        // A reader of a citation opens the path exactly as written.
        self.root.path().join(path).symlink_metadata().ok()?;
        let opened = self.root.open_file(path).ok()?;
        let limits = WindowLimits {
            bytes: 0,
            line_chars: 0,
            count_bytes: u64::MAX,
        };
        let most = MAX_FILE_BYTES.min(self.left);
        let first = Span { start: 1, end: 1 };
        let never = CancellationToken::new();
        // A file that cannot be read completely has no reliable lines.
        let window = window::read(opened.file.take(most), first, limits, &never).ok()?;
        self.left -= opened.size.min(most);
        match window.total {
            Total::Exactly(lines) | Total::AtLeast(lines) => Some(lines),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    #[test]
    fn only_existing_places_are_citations() {
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
        fs::write(folder.path().join("wide.md"), b"\xff\xfe\x41\x30").unwrap();
        let absolute = format!("{0}/src/a.rs:1 `{0}/src/a.rs:1`", root.path().display());
        for (name, text, expected) in [
            ("text that is not read", "see wide.md:1", vec![]),
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
                "a name with a space, in code marks",
                "see `my notes.md:1`, `x` and `my a.md:1-1`",
                vec![place("my notes.md", 1, 1), place("my a.md", 1, 1)],
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
                "by its whole path",
                &absolute,
                vec![place("src/a.rs", 1, 1)],
            ),
            (
                "by several names",
                "src/a.rs:1, ./src/../src/a.rs:1\n./src/a.rs:1",
                vec![place("src/a.rs", 1, 1)],
            ),
            (
                "what is quoted",
                "`src/a.rs:1`\n````rs\nsrc/a.rs:2 `src/a.rs:2`\n```\nsrc/a.rs:3\n````\nsrc/a.rs:1-2",
                vec![place("src/a.rs", 1, 1), place("src/a.rs", 1, 2)],
            ),
            (
                "after a quote that begins in a list and ends outside of it",
                "1. So:\n   ```rs\n   src/a.rs:2\n```\nsrc/a.rs:1",
                vec![place("src/a.rs", 1, 1)],
            ),
            (
                "a quote without an end",
                "src/a.rs:1\n  ~~~\n```\nsrc/a.rs:2",
                vec![place("src/a.rs", 1, 1)],
            ),
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
    /// Counts the bytes read, and that no file is read twice.
    #[test]
    fn citation_checks_read_a_bounded_amount() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let root = ProjectRoot::open(folder.path()).unwrap();
        let place = |path: &str, line| Citation {
            path: path.into(),
            start: line,
            end: line,
        };
        // A sparse file.
        File::create(at("zeros.bin"))
            .unwrap()
            .set_len(20 * MAX_TOTAL_BYTES)
            .unwrap();
        fs::write(at("late.bin"), [&[b'\n'; 5_000][..], b"\0"].concat()).unwrap();
        fs::write(at("text.txt"), "one\ntwo").unwrap();
        let mut files = LineCounts::new(&root);
        for (name, path, line, is_real, bytes) in [
            ("binary", "zeros.bin", 1, false, 0),
            ("binary, seen later", "late.bin", 1, false, 0),
            ("text", "text.txt", 1, true, 7),
            ("read already", "text.txt", 2, true, 0),
            ("beyond", "text.txt", 3, false, 0),
            ("nothing there", "no.txt", 1, false, 0),
        ] {
            let left = files.left;
            assert_eq!(files.contains(&place(path, line)), is_real, "{name}");
            assert_eq!(left - files.left, bytes, "{name}");
        }
        for name in 0..2 * MAX_FILES {
            files.contains(&place(&format!("{name}.txt"), 1));
        }
        assert_eq!(files.lines.len(), MAX_FILES);
        let mut files = LineCounts::new(&root);
        files.left = 4;
        assert!(!files.contains(&place("text.txt", 2)) && files.contains(&place("text.txt", 1)));
        assert_eq!(files.left, 0);
    }
}
