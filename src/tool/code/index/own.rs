//! What a look at the text of a place adds to its worth: that it defines the very name that was asked for,
//! or that it is a test among the code. Pure.

use crate::words::{Asked, Sort, Tongue, WIDEST, name_defined, parts};

/// What defining a name adds that was asked for as it is spelt, to a question about little else and to
/// others; and what a name adds that is spelt so but for its capitals.
const VERY_NAME: f32 = 2.2;
const AMONG_OTHERS: f32 = 1.15;
const BUT_FOR_CAPITALS: f32 = 1.25;
/// So many words are little.
const LITTLE: usize = 2;
/// How far below its attribute a module of tests may begin, in lines.
const BELOW: usize = 4;
/// Longest function that is a test, in lines.
const LONGEST_TEST: usize = 2_000;

/// The names that a question may have asked for, as they are spelt in it.
pub(super) struct Names<'a> {
    asked: &'a Asked,
    names: Vec<&'a str>,
    /// What names that are misspelt were read as, in small letters alone.
    meant: Vec<&'a str>,
    is_little: bool,
}

impl<'a> Names<'a> {
    pub(super) fn of(asked: &'a Asked, read_as: &'a [(String, String)]) -> Self {
        let telling = asked
            .concepts
            .iter()
            .filter(|concept| !matches!(concept.sort, Sort::Weak | Sort::Part | Sort::Version));
        let names: Vec<&str> = telling.map(|concept| concept.shown.as_str()).collect();
        // What changed when, and how something is done, is said elsewhere.
        let asks_for_it = !(asked.drift.change || asked.drift.guide);
        Self {
            asked,
            is_little: names.len() <= LITTLE && asks_for_it,
            names,
            meant: meant(asked, read_as),
        }
    }

    /// What these lines are worth more for what they define.
    pub(super) fn factor(&self, tongue: Tongue, lines: &[&str]) -> f32 {
        // Who asks for its tests knows where it is.
        if self.asked.drift.tested {
            return 1.0;
        }
        let may_define = |line: &str| {
            line.len() <= WIDEST
                && (!self.meant.is_empty() || self.names.iter().any(|name| holds(line, name)))
                && !is_of_another(line)
        };
        lines
            .iter()
            .enumerate()
            .filter(|(_, line)| may_define(line))
            .filter_map(|(at, line)| {
                let (start, end) = name_defined(tongue, line, lines[at + 1..].iter().copied())?;
                line.get(start..end)
            })
            .map(|defined| self.worth(defined))
            .fold(1.0, f32::max)
    }

    fn worth(&self, defined: &str) -> f32 {
        let worth = self.names.iter().map(|name| {
            let is_spelt = name.contains(|c: char| c.is_uppercase() || c == '_')
                && !self.asked.begins_sentence_with(name);
            match (*name == defined && is_spelt, self.is_little) {
                (true, true) => VERY_NAME,
                (true, false) => AMONG_OTHERS,
                (false, true) if name.eq_ignore_ascii_case(defined) => BUT_FOR_CAPITALS,
                (false, _) => 1.0,
            }
        });
        let meant = self
            .meant
            .iter()
            .any(|name| *name == parts(defined).concat());
        worth.fold(if meant { VERY_NAME } else { 1.0 }, f32::max)
    }
}

/// Only what is spelt as names are: another word may be meant by one that is not.
fn meant<'a>(asked: &Asked, read_as: &'a [(String, String)]) -> Vec<&'a str> {
    let is_name = |word: &str| {
        let mut concepts = asked.concepts.iter();
        concepts.any(|concept| concept.shown == word && concept.sort == Sort::Name)
    };
    let of_names = read_as.iter().filter(|(word, _)| is_name(word));
    of_names.map(|(_, meant)| meant.as_str()).collect()
}

/// A quick look before a closer one.
fn holds(line: &str, name: &str) -> bool {
    let (line, name) = (line.as_bytes(), name.as_bytes());
    !name.is_empty()
        && line
            .windows(name.len())
            .any(|part| part.eq_ignore_ascii_case(name))
}

/// Whether a line only says of a name that it is used or implemented here.
fn is_of_another(line: &str) -> bool {
    let bare = line.trim_start();
    [
        "impl", "use ", "pub use ", "mod ", "pub mod ", "import ", "export {", "from ",
    ]
    .iter()
    .any(|begin| bare.starts_with(begin))
}

/// Whether a line begins a function that says of itself that it is a test: `static int unittest_queue(void) {`.
fn is_unit_test(line: &str) -> bool {
    let name = line.split('(').next().unwrap_or("");
    let at_margin = line.starts_with(|c: char| c.is_ascii_alphabetic());
    at_margin
        && line.contains('(')
        && !line.trim_end().ends_with(';')
        && ["unittest", "unit_test", "selftest"]
            .iter()
            .any(|word| name.contains(word))
}

/// The lines of modules of tests within code, and of functions that are tests, counted from 1, both ends
/// included.
pub(super) fn inline_tests(lines: &[&str]) -> Vec<(u64, u64)> {
    let mut tests = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if is_unit_test(line) {
            let mut body = lines[at..].iter().take(LONGEST_TEST);
            if let Some(closes) = body.position(|line| line.trim_end() == "}") {
                tests.push((at as u64 + 1, (at + closes + 1) as u64));
                at += closes;
            }
        }
        if line.trim() == "#[cfg(test)]" {
            let closing = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            let opens = lines[at..].iter().take(BELOW).position(|line| {
                let bare = line.trim();
                (bare.starts_with("mod ") || bare.starts_with("pub mod ")) && bare.ends_with('{')
            });
            if let Some(opens) = opens {
                let first = at + opens;
                let closes = lines[first..]
                    .iter()
                    .position(|line| line.trim_end() == closing);
                let last = closes.map_or(lines.len(), |closes| first + closes + 1);
                tests.push((at as u64 + 1, last as u64));
                at = last;
                continue;
            }
        }
        at += 1;
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_very_name_counts_where_it_is_defined() {
        for (question, line, expected) in [
            (
                "where is Router defined?",
                "pub struct Router<S> {",
                VERY_NAME,
            ),
            ("where is Router defined?", "impl Router {", 1.0),
            ("where is Router defined?", "use crate::Router;", 1.0),
            (
                "where is Router defined?",
                "fn router() {",
                BUT_FOR_CAPITALS,
            ),
            ("where is Router defined?", "struct RouterInner {", 1.0),
            (
                "where is the router?",
                "pub struct Router {",
                BUT_FOR_CAPITALS,
            ),
            (
                "how does Router merge fallback handlers",
                "struct Router {",
                AMONG_OTHERS,
            ),
            (
                "since when is Router stable?",
                "struct Router {",
                AMONG_OTHERS,
            ),
            (
                "Router is slow, why",
                "pub struct Router {",
                BUT_FOR_CAPITALS,
            ),
            ("Router and Route", "pub struct Router {", VERY_NAME),
            ("Router", "pub struct Router {", VERY_NAME),
            (
                "MethodRouter is slow",
                "pub struct MethodRouter {",
                VERY_NAME,
            ),
            ("where is max_turns", "    def max_turns(self):", VERY_NAME),
            ("where is it", "fn it() {", 1.0),
        ] {
            let asked = Asked::read(question);
            let got = Names::of(&asked, &[]).factor(Tongue::Other, &["x", line]);
            assert_eq!(got, expected, "{question} {line}");
        }
    }

    #[test]
    fn a_misspelt_name_counts_where_the_one_is_defined_that_was_meant() {
        let asked = Asked::read("where is JoinHandel defined?");
        let read_as = [("JoinHandel".to_owned(), "joinhandle".to_owned())];
        let names = Names::of(&asked, &read_as);
        assert_eq!(
            names.factor(Tongue::Other, &["pub struct JoinHandle<T> {"]),
            VERY_NAME
        );
        assert_eq!(
            names.factor(Tongue::Other, &["pub struct Handle<T> {"]),
            1.0
        );
    }

    #[test]
    fn modules_of_tests_are_found_with_their_ends() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n\
                    #[cfg(test)]\nmod far;\n#[cfg(test)]\n#[rustfmt::skip]\nmod more {\n    fn d() {}";
        let of_c = "int a(void) {\n}\nstatic int unittest_a(void) {\n        a();\n}\nint unittest_b(void);\nint c(void) {\n}";
        let of_c: Vec<&str> = of_c.lines().collect();
        assert_eq!(inline_tests(&of_c), [(3, 5)]);
        let indented = "mod a {\n\t#[cfg(test)]\n\tmod tests {\n\t\tfn b() {}\n\t}\n\tfn c() {}\n}";
        let in_tabs: Vec<&str> = indented.lines().collect();
        assert_eq!(inline_tests(&in_tabs), [(2, 5)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(inline_tests(&lines), [(2, 6), (10, 13)]);
    }
}
