//! Lines of common languages, and what they should be taken for.

use super::*;

#[test]
fn files_are_told_apart_by_their_paths() {
    for (path, kind) in [
        ("src/main.rs", FileKind::Code),
        ("Makefile", FileKind::Code),
        ("config/oracle.toml", FileKind::Code),
        ("README.md", FileKind::Docs),
        ("docs/guide.rst", FileKind::Docs),
        ("tests/it/main.rs", FileKind::Test),
        ("src/llm/tests.rs", FileKind::Test),
        ("pkg/server_test.go", FileKind::Test),
        ("web/app.spec.ts", FileKind::Test),
        ("test_parser.py", FileKind::Test),
        ("src/testkit.rs", FileKind::Code),
        ("web/node_modules/a/index.js", FileKind::Vendored),
        ("web/app.min.js", FileKind::Vendored),
        ("data/queries.tsv", FileKind::Vendored),
        ("Cargo.lock", FileKind::Lock),
        ("web/package-lock.json", FileKind::Lock),
    ] {
        assert_eq!(FileKind::of(path), kind, "{path}");
    }
}

#[test]
fn definitions_and_headings_are_seen() {
    let heading = |level, title| Some(Introduces::Heading { level, title });
    let definition = |name| Some(Introduces::Definition { name });
    for (path, line, expected) in [
        ("a.rs", "fn read(text: &str) {", definition("read")),
        (
            "a.rs",
            "    pub(crate) async fn read<T>() {",
            definition("read"),
        ),
        (
            "a.rs",
            "pub const fn next(self) -> Self {",
            definition("next"),
        ),
        ("a.rs", "pub const MAX: usize = 1;", definition("MAX")),
        ("a.rs", "extern \"C\" fn hook() {", definition("hook")),
        ("a.rs", "macro_rules! facts {", definition("facts")),
        (
            "a.java",
            "public static void main(String[] a) {",
            definition("main"),
        ),
        ("a.rs", "let fn_name = 3;", None),
        ("a.rs", "// fn old()", None),
        ("a.rs", "pub use a::b;", None),
        ("a.py", "class Session(Base):", definition("Session")),
        ("a.py", "    async def run(self):", definition("run")),
        ("a.py", "# not a heading", None),
        ("a.ts", "export default class App {", definition("App")),
        ("a.ts", "export const limit = 3;", definition("limit")),
        (
            "a.go",
            "func (s *Server) Start() error {",
            definition("Start"),
        ),
        (
            "a.java",
            "public static final class Key {",
            definition("Key"),
        ),
        ("a.c", "int oid_cmp(const oid *a)\n{", definition("oid_cmp")),
        ("a.h", "int oid_cmp(const oid *a);", None),
        ("a.h", "class Index;", None),
        (
            "a.js",
            "Reply.prototype.send = function (a) {",
            definition("send"),
        ),
        ("a.rs", "impl Index {", None),
        ("a.md", "## 6. Budgets", heading(2, "6. Budgets")),
        ("a.md", "#hashtag", None),
        ("a.toml", "[profile.release]", heading(1, "profile.release")),
        ("a.toml", "lto = \"thin\"", None),
    ] {
        assert_eq!(introduces(path, &numbered(line), 1), expected, "{line}");
    }
}

fn numbered(text: &str) -> Lines {
    (1..).zip(text.lines().map(str::to_owned)).collect()
}

const RUST: &str = "\
use a::b;

/// Reads it.
#[must_use]
pub fn read(
    text: &str,
) -> usize {
    let n = text.len();

    n
}

fn other() {}

const MAX: usize = 3;
struct Unit;";

const PYTHON: &str = "\
import os

class Reader:
    def read(self):
        return 1

    def close(self):
        pass

READER = Reader()";

const C: &str = "\
static fn start(void)
{
    go();
}
int x;";

const MARKDOWN: &str = "\
# Title
Intro.

## Budgets
Turns are counted.

### Detail
More.

## Other
Text.";

#[test]
fn a_passage_is_what_encloses_the_hit() {
    for (name, path, text, hit, passage) in [
        ("a body, with its comment", "a.rs", RUST, 8, (3, 11)),
        ("its head", "a.rs", RUST, 5, (3, 11)),
        ("its last line", "a.rs", RUST, 10, (3, 11)),
        ("one line", "a.rs", RUST, 15, (15, 15)),
        ("nothing around", "a.rs", RUST, 1, (1, 5)),
        ("a method", "a.py", PYTHON, 5, (4, 5)),
        ("a class", "a.py", PYTHON, 3, (3, 8)),
        ("a brace of its own", "a.c", C, 3, (1, 4)),
        (
            "a section with what is under it",
            "a.md",
            MARKDOWN,
            5,
            (4, 8),
        ),
        ("a section under it", "a.md", MARKDOWN, 8, (7, 8)),
        ("the last section", "a.md", MARKDOWN, 11, (10, 11)),
    ] {
        assert_eq!(enclosing(path, &numbered(text), hit), passage, "{name}");
    }
}

#[test]
fn a_passage_stays_within_what_is_known_and_has_a_limit() {
    let mut holes = numbered(RUST);
    holes.retain(|at, _| (7..=9).contains(at) || *at == 15);
    let long = format!("fn long() {{\n{}}}", "    step();\n".repeat(60));
    let long = numbered(&long);
    for (name, lines, hit, passage) in [
        ("lines between gaps", &holes, 8, (7, 8)),
        ("a line alone", &holes, 15, (15, 15)),
        ("the beginning of a long body", &long, 3, (1, LONGEST)),
        ("the middle of a long body", &long, 31, (19, 42)),
        ("beyond reach of its head", &long, 58, (54, 62)),
    ] {
        assert_eq!(enclosing("a.rs", lines, hit), passage, "{name}");
    }
}

proptest::proptest! {
    /// Whatever the lines: the passage is known, has the hit's neighbourhood in order, and is short.
    #[test]
    fn a_passage_is_always_made_of_known_lines(
        // Mostly bodies, so that some are longer than a passage.
        shapes in proptest::collection::vec(0..60_usize, 1..120),
        hole in 0..160_usize,
        pick in 0..120_usize,
    ) {
        const SHAPES: [&str; 9] = [
            "fn a() {", "    let x = 1;", "}", "", "/// words", "    fn b() {", "    }", "# Title", "  x",
        ];
        let numbered = shapes.iter().enumerate().filter(|(index, _)| *index != hole);
        let lines: Lines = numbered
            .map(|(index, shape)| {
                let line = SHAPES.get(*shape).copied().unwrap_or(SHAPES[1]);
                (u32::try_from(index).unwrap() + 1, line.to_owned())
            })
            .collect();
        let known: Vec<u32> = lines.keys().copied().collect();
        proptest::prop_assume!(!known.is_empty());
        let hit = known[pick % known.len()];
        for path in ["a.rs", "a.md", "a.py"] {
            let (start, end) = enclosing(path, &lines, hit);
            proptest::prop_assert!(start <= end && end - start < LONGEST, "{start}-{end}");
            proptest::prop_assert!((start..=end).all(|at| lines.contains_key(&at)), "{start}-{end}");
        }
    }
}

#[test]
fn a_long_comment_above_a_body_does_not_push_the_passage_beyond_its_end() {
    let comments = std::iter::repeat_n("/// words", 12);
    let body = std::iter::repeat_n("    let x = 1;", usize::try_from(LONGEST).unwrap() - 4);
    let file = comments.chain(["fn a() {"]).chain(body).chain(["}"]);
    let lines: Lines = (1..).zip(file.map(str::to_owned)).collect();
    let end = u32::try_from(lines.len()).unwrap();
    for hit in 13..=end {
        let passage = enclosing("a.rs", &lines, hit);
        assert!(
            passage.1 <= end && passage.0 <= hit && hit <= passage.1,
            "{hit}: {passage:?}"
        );
    }
}

#[test]
fn titles_with_lines_of_signs_are_headings() {
    let heading = |level, title| Some(Introduces::Heading { level, title });
    for (path, text, at, expected) in [
        (
            "a.rst",
            "Running tests\n-------------\n\nRun.",
            1,
            heading(5, "Running tests"),
        ),
        ("a.txt", "======\nDjango\n======", 2, heading(1, "Django")),
        ("a.md", "Title\n=====", 1, heading(4, "Title")),
        ("a.rst", "A long title of this\n---", 1, None),
        ("a.rst", "Running tests\n\n-------------", 1, None),
        ("a.rst", "-------------\nno title", 1, None),
        ("a.md", "| a | b |\n---------", 1, None),
        ("a.py", "x = 1\n-----", 1, None),
    ] {
        let lines: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
        assert_eq!(introduces(path, &lines, at), expected, "{text}");
    }
}

#[test]
fn what_begins_with_a_title_goes_on_to_what_it_says() {
    for (name, path, text, span, expected) in [
        (
            "a paragraph and its code",
            "a.rst",
            "Tests\n-----\n\nTo run all::\n\n    tox\n\nMore.",
            (1, 2),
            (1, 6),
        ),
        (
            "a block of code",
            "a.rst",
            "Install\n=======\n\nUse pip:\n\n.. code-block:: console\n\n    $ pip install x\n\n.. _next:\n",
            (1, 4),
            (1, 8),
        ),
        (
            "a fence",
            "a.md",
            "# Install\n\nUse pip:\n\n```sh\npip\n\ninstall\n```\n\nMore.",
            (1, 1),
            (1, 9),
        ),
        (
            "a title below, and targets of links",
            "a.md",
            "# 0.8.0\n\n## since rc.1\n\n<!-- x -->\n\nOne\ntwo.\n\nThree.",
            (1, 2),
            (1, 8),
        ),
        (
            "another title",
            "a.md",
            "# One\n\n# Two\n\nText.",
            (1, 1),
            (1, 1),
        ),
        (
            "what says enough",
            "a.md",
            "# One\n\nA.\n\nB.\n\nC.",
            (1, 7),
            (1, 7),
        ),
        ("no title", "a.md", "One\n\ntwo\nthree", (1, 1), (1, 1)),
    ] {
        let lines: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
        assert_eq!(with_opening(path, &lines, span), expected, "{name}");
    }
}
