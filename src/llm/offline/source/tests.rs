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
        ("a.java", "public static void main(String[] a) {", None),
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
        ("a.md", "## 6. Budgets", heading(2, "6. Budgets")),
        ("a.md", "#hashtag", None),
        ("a.toml", "[profile.release]", heading(1, "profile.release")),
        ("a.toml", "lto = \"thin\"", None),
    ] {
        assert_eq!(introduces(path, line), expected, "{line}");
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
