//! The shape of a file: its opening line, its length, its name, its line ends (style.md, 19 and 20).
//!
//! Formatting inside the lines is rustfmt's.

use super::Violation;
use super::source::Source;
use super::tokens::{Gate, Token};

/// Lines of a file, its inline test module aside.
const CAP: usize = 800;
/// Lines of a file of tests.
const CAP_OF_TESTS: usize = 700;
/// Lines of an inline test module; a longer one is easier to read in its own file.
const CAP_OF_INLINE_TESTS: usize = 200;
/// Lines of the binary's entry.
const CAP_OF_MAIN: usize = 60;

/// The first thing that a reader sees is what the file is.
pub(super) fn opens_with_its_doc(source: &Source) -> Vec<Violation> {
    if source.text.starts_with("//!") {
        return Vec::new();
    }
    let what = "does not open with `//!`: say what the file is, what it deliberately does not do, \
                and its invariants";
    vec![source.violation(1, what)]
}

/// A file has one purpose, so it is short.
pub(super) fn stays_short(source: &Source) -> Vec<Violation> {
    let is_test = source.path.starts_with("tests/")
        || source.path.ends_with("/tests.rs")
        || source.path.contains("/tests/");
    let cap = match source.path.as_str() {
        "src/main.rs" => CAP_OF_MAIN,
        _ if is_test => CAP_OF_TESTS,
        _ => CAP,
    };
    let inline = inline_tests(source);
    let lines = source.text.lines().count() - if is_test { 0 } else { inline.lines };
    let mut found = Vec::new();
    if lines > cap {
        let what = format!("{lines} lines, at most {cap}: split it by purpose");
        found.push(source.violation(cap + 1, what));
    }
    if !is_test && inline.lines > CAP_OF_INLINE_TESTS {
        let what = format!(
            "{} lines of tests beside the code, at most {CAP_OF_INLINE_TESTS}: move them to a \
             `tests.rs` of their own",
            inline.lines
        );
        found.push(source.violation(inline.start, what));
    }
    found
}

#[derive(Default)]
struct InlineTests {
    start: usize,
    lines: usize,
}

/// Where `#[cfg(test)] mod tests { … }` stands, if it is the end of the file.
fn inline_tests(source: &Source) -> InlineTests {
    let tokens = &source.tokens;
    let opens = |three: &[Token]| {
        three[0].is("mod")
            && three[1].is("tests")
            && three[2].is("{")
            && three[0].gate == Gate::Test
            && three[0].inline == 0
    };
    let Some(module) = tokens.windows(3).position(opens) else {
        return InlineTests::default();
    };
    let inside = &tokens[module + 3..];
    let Some(close) = inside
        .iter()
        .position(|token| token.is("}") && token.inline == 0)
    else {
        return InlineTests::default();
    };
    // The attributes before it belong to it: back to the last token that is always compiled.
    let start = tokens[..module]
        .iter()
        .rposition(|token| token.gate < Gate::Test)
        .map_or(1, |last| tokens.get(last + 1).map_or(1, |token| token.line));
    let is_last = close + 1 == inside.len();
    let lines = if is_last {
        inside[close].line + 1 - start
    } else {
        0
    };
    InlineTests { start, lines }
}

/// `foo.rs` beside `foo/`.
pub(super) fn is_not_a_mod_rs(source: &Source) -> Vec<Violation> {
    let Some(folder) = source.path.strip_suffix("/mod.rs") else {
        return Vec::new();
    };
    vec![source.violation(1, format!("a `mod.rs`: name the file `{folder}.rs`"))]
}

/// No spaces at line ends, where rustfmt does not look either: in comments and strings.
pub(super) fn has_no_trailing_space(source: &Source) -> Vec<Violation> {
    source
        .text
        .split('\n')
        .zip(1..)
        .filter(|(line, _)| line.ends_with(char::is_whitespace))
        .map(|(_, number)| {
            source.violation(number, "white space at the end of the line: remove it")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(rule: fn(&Source) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
        rule(&Source::new(path, text))
            .iter()
            .map(|violation| violation.line)
            .collect()
    }

    #[test]
    fn a_file_without_its_doc_is_refused() {
        for (name, text, expected) in [
            ("doc", "//! What it is.\n", vec![]),
            ("item doc", "/// What it is.\nstruct S;\n", vec![1]),
            ("comment", "// What it is.\n", vec![1]),
            (
                "attribute first",
                "#![allow(x)]\n//! What it is.\n",
                vec![1],
            ),
            ("empty", "", vec![1]),
        ] {
            assert_eq!(
                broken(opens_with_its_doc, "src/a.rs", text),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn a_file_over_its_cap_is_refused() {
        let code = |lines: usize| "const _: () = ();\n".repeat(lines);
        let tests = |lines: usize| {
            format!(
                "#[cfg(test)]\n#[x]\nmod tests {{\n{}}}\n",
                "fn f() {}\n".repeat(lines - 4)
            )
        };
        for (name, path, text, expected) in [
            ("at the cap", "src/a.rs", code(800), vec![]),
            ("over it", "src/a.rs", code(801), vec![801]),
            ("tests aside", "src/a.rs", code(800) + &tests(200), vec![]),
            ("tests alone", "src/a.rs", tests(150), vec![]),
            (
                "too many tests aside",
                "src/a.rs",
                code(10) + &tests(201),
                vec![11],
            ),
            (
                "code behind the tests",
                "src/a.rs",
                code(700) + &tests(100) + &code(1),
                vec![801],
            ),
            (
                "tests not gated",
                "src/a.rs",
                code(700) + &tests(101).replace("cfg", "x"),
                vec![801],
            ),
            ("test file", "src/a/tests.rs", code(700), vec![]),
            (
                "test file over its cap",
                "tests/it/a.rs",
                code(701),
                vec![701],
            ),
            (
                "test module in a test file",
                "tests/it/a.rs",
                code(401) + &tests(299),
                vec![],
            ),
            ("main", "src/main.rs", code(60), vec![]),
            ("main over its cap", "src/main.rs", code(61), vec![61]),
            ("example", "examples/a.rs", code(801), vec![801]),
        ] {
            assert_eq!(broken(stays_short, path, &text), expected, "{name}");
        }
    }

    #[test]
    fn a_mod_rs_is_refused() {
        for (path, expected) in [
            ("src/a.rs", vec![]),
            ("src/a/mod.rs", vec![1]),
            ("tests/it/b/mod.rs", vec![1]),
        ] {
            assert_eq!(broken(is_not_a_mod_rs, path, ""), expected, "{path}");
        }
    }

    #[test]
    fn space_at_a_line_end_is_refused() {
        for (name, text, expected) in [
            ("clean", "//! a\n\n//! b\n", vec![]),
            ("space", "//! a \n//! b\n", vec![1]),
            ("tab", "//! a\n\t\n", vec![2]),
            ("carriage return", "//! a\r\n", vec![1]),
            ("last line", "//! a\n//! b ", vec![2]),
        ] {
            assert_eq!(
                broken(has_no_trailing_space, "src/a.rs", text),
                expected,
                "{name}"
            );
        }
    }
}
