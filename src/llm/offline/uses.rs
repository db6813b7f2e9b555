//! Where a name is used: the lines of the evidence that have it as a word and do not define it. Pure.
//!
//! Of a name in something (`JoinHandle::abort`), what is used of something else is no use of it (`owned`).

use std::collections::BTreeSet;

use super::{
    evidence::Evidence,
    source::{FileKind, Introduces, Lines, behind, introduces},
};
use crate::words::{Tongue, announces};

mod bases;
mod owned;

use owned::Whose;

/// So many files that use a name are not few.
const FEW: usize = 3;

/// Lines that have a name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Uses<'a> {
    /// Those that use it: calls first, then other code, tests, and what only imports or announces it; of each, by path
    /// and line.
    pub(super) used: Vec<Spot<'a>>,
    /// Those that only speak of it: comments, texts in quotes and documents.
    pub(super) mentioned: Vec<Spot<'a>>,
    /// Those that define it.
    pub(super) defined: Vec<Spot<'a>>,
    /// Whether nobody knows if what those define lies where it should.
    pub(super) is_perhaps_of_another: bool,
    /// Those that use it of what nobody knows the type of; first where that is called as what it should lie in.
    pub(super) unsure: Vec<Spot<'a>>,
    /// Those that use what is called so in something else.
    pub(super) others: Vec<Spot<'a>>,
    /// How many more were found and not shown.
    pub(super) unshown: u64,
    /// Whether not all files were looked at.
    pub(super) is_stopped: bool,
}

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot<'a> {
    pub(super) path: &'a str,
    pub(super) line: u32,
}

/// What a line has a name for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Call,
    Code,
    Test,
    Import,
    Mention,
    Definition,
}

impl<'a> Uses<'a> {
    pub(super) fn of(evidence: &'a Evidence, name: &str) -> Self {
        Self::of_owned(evidence, name, None)
    }

    /// The uses of a name, in what it is said to lie in, if it is.
    pub(super) fn of_owned(evidence: &'a Evidence, name: &str, owner: Option<&str>) -> Self {
        let mut found: Vec<(Role, Whose, Spot<'a>)> = Vec::new();
        for (path, lines) in &evidence.files {
            let having = lines.iter().filter(|(_, text)| has_word(text, name));
            found.extend(having.map(|(line, text)| {
                let spot = Spot { path, line: *line };
                let role = role((path, lines, *line), text, name);
                let is_declared =
                    |owner| owned::is_declared(evidence, spot, role == Role::Import, (owner, name));
                let role = match (owner, role) {
                    (Some(owner), Role::Call | Role::Code | Role::Test | Role::Import)
                        if is_declared(owner) =>
                    {
                        Role::Definition
                    }
                    (_, role) => role,
                };
                let whose = match (owner, role) {
                    (Some(owner), Role::Definition) => {
                        owned::defined(evidence, spot, (owner, name))
                    }
                    (Some(owner), Role::Call | Role::Code | Role::Test) => {
                        owned::used(evidence, spot, (owner, name))
                    }
                    (Some(owner), Role::Import) if !has_word(text, owner) => Whose::Others,
                    (Some(_), Role::Import | Role::Mention) | (None, _) => Whose::Its,
                };
                (role, whose, spot)
            }));
        }
        found.sort_unstable();
        let searches = || {
            let searched = evidence.searched.iter();
            searched.filter(|search| search.query.contains(name))
        };
        // The widest search has what the narrower ones have.
        let all = searches().map(|search| search.found).max().unwrap_or(0);
        let mut uses = Self {
            unshown: all.saturating_sub(found.len() as u64),
            is_stopped: searches().any(|search| search.is_stopped),
            ..Self::default()
        };
        let is_its =
            |one: &(Role, Whose, Spot<'_>)| one.0 == Role::Definition && one.1 == Whose::Its;
        let is_defined = found.iter().any(is_its);
        for (role, whose, spot) in found {
            match (role, whose) {
                (Role::Definition, Whose::Its) => uses.defined.push(spot),
                (Role::Definition, Whose::Unknown(_)) if !is_defined => {
                    uses.is_perhaps_of_another = true;
                    uses.defined.push(spot);
                }
                (Role::Definition, _) => {}
                (Role::Mention, _) => uses.mentioned.push(spot),
                (_, Whose::Its) => uses.used.push(spot),
                (_, Whose::Unknown(_)) => uses.unsure.push(spot),
                (_, Whose::Others) => uses.others.push(spot),
            }
        }
        // The receiver says more than whether it is in a test.
        uses.unsure
            .sort_by_key(|spot| owned::likeness(evidence, *spot, (owner, name)));
        uses
    }

    /// Whether nothing has the name but what defines it.
    pub(super) fn is_empty(&self) -> bool {
        [&self.used, &self.mentioned, &self.unsure, &self.others]
            .iter()
            .all(|spots| spots.is_empty())
    }

    /// Whether so few files use it that more are worth looking for.
    pub(super) fn are_few(&self) -> bool {
        let files: BTreeSet<&str> = self.used.iter().map(|spot| spot.path).collect();
        files.len() < FEW
    }

    /// The ending of the files of code that have it, if one is known.
    pub(super) fn language(&self) -> Option<&'a str> {
        let mut known = self.defined.iter().chain(&self.used).map(|spot| spot.path);
        let path = known.find(|path| FileKind::of(path) == FileKind::Code)?;
        let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
        Some(ending).filter(|ending| ending.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    }

    /// Whether there are more lines than these, or may be.
    pub(super) const fn is_cut(&self) -> bool {
        self.unshown > 0 || self.is_stopped
    }
}

fn role((path, lines, at): (&str, &Lines, u32), text: &str, name: &str) -> Role {
    let bare = text.trim_start();
    match (introduces(path, lines, at), FileKind::of(path)) {
        (Some(Introduces::Definition { name: defined }), _) if defined == name => Role::Definition,
        (_, FileKind::Docs) => Role::Mention,
        _ if is_remark(text) => Role::Mention,
        _ if is_import(bare) => Role::Import,
        (_, FileKind::Code)
            if Tongue::of(path).has_heads() && announces(text, name, behind(lines, at)) =>
        {
            Role::Import
        }
        _ if is_quoted(text, name) => Role::Mention,
        // What begins a line may be a command that is called.
        _ if calls_with_brackets(path) && is_prose(bare) && !bare.starts_with(name) => {
            Role::Mention
        }
        (_, FileKind::Test) => Role::Test,
        (_, FileKind::Code) if is_below_tests(path, lines, at) => Role::Test,
        _ if text.contains(&format!("{name}(")) => Role::Call,
        (_, FileKind::Code | FileKind::Vendored | FileKind::Lock) => Role::Code,
    }
}

/// Whether a place is one of tests, by its path or by what stands above it.
pub(super) fn is_of_tests(evidence: &Evidence, spot: Spot<'_>) -> bool {
    let lines = evidence.files.get(spot.path);
    FileKind::of(spot.path) == FileKind::Test
        || lines.is_some_and(|lines| is_below_tests(spot.path, lines, spot.line))
}

/// Whether the tests of a file of Rust begin above a line, as far as that is known.
fn is_below_tests(path: &str, lines: &Lines, at: u32) -> bool {
    let begins = |line: &String| line.starts_with("#[cfg(test)]") || line.starts_with("mod tests");
    path.ends_with(".rs") && lines.range(..at).any(|(_, line)| begins(line))
}

/// Whether a bare line only imports or exports what is elsewhere.
pub(super) fn is_import(bare: &str) -> bool {
    let words = [
        "use ", "pub use ", "import ", "from ", "#include", "export {", "require ",
    ];
    words.iter().any(|word| bare.starts_with(word))
}

/// Whether a line is a comment by what it begins with.
pub(super) fn is_remark(text: &str) -> bool {
    let bare = text.trim_start();
    let signs = ["//", "/*", "*", "# ", "--", ";;", "<!--"];
    signs.iter().any(|sign| bare.starts_with(sign))
}

/// Whether a line reads as one of a long comment, of which neither the beginning nor the end need be known: words
/// and nothing else, and the first is none that begins a statement.
fn is_prose(bare: &str) -> bool {
    let words: Vec<&str> = bare.split_whitespace().collect();
    let is_word = |word: &&str| {
        let word = word.trim_end_matches(['.', ',', ';', ':', '?', '!']);
        let word = word.trim_matches(['`', '\'', '"', '*']);
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '\'');
        !word.is_empty() && word.chars().all(is_letter)
    };
    let first = words.first().copied().unwrap_or_default();
    words.len() >= SENTENCE && words.iter().all(is_word) && !STATEMENTS.contains(&first)
}

/// Whether nothing is called in a language without brackets, so that words alone are no call.
fn calls_with_brackets(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default();
    let is_known = || {
        matches!(
            ending,
            "py" | "pyi" | "go" | "php" | "kt" | "kts" | "swift" | "lua" | "zig"
        )
    };
    Tongue::of(path) != Tongue::Other || is_known()
}

/// So many words are a sentence, or most of one.
const SENTENCE: usize = 5;
/// What begins a statement that may have nothing but words.
const STATEMENTS: [&str; 20] = [
    "assert", "async", "await", "case", "class", "const", "def", "elif", "else", "export", "for",
    "if", "let", "raise", "return", "static", "throw", "when", "while", "yield",
];

/// Whether a name stands in a line only within quotes.
fn is_quoted(text: &str, name: &str) -> bool {
    let mut quotes = text
        .match_indices(name)
        .map(|(at, _)| text[..at].matches('"').count());
    quotes.all(|before| before % 2 == 1)
}

/// Whether a name stands in a line, and is no part of a longer one.
pub(super) fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            let (before, behind) = (&text[..at], &text[at + name.len()..]);
            !before.ends_with(is_part) && !behind.starts_with(is_part)
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn lines_are_told_apart_by_what_they_have_a_name_for() {
        let file = |lines: &[(u32, &str)]| -> BTreeMap<u32, String> {
            let lines = lines.iter().map(|(at, text)| (*at, (*text).to_owned()));
            lines.collect()
        };
        let evidence = Evidence {
            files: BTreeMap::from([
                (
                    "a.rs".to_owned(),
                    file(&[
                        (1, "use retry::back_off;"),
                        (2, "// back_off waits"),
                        (9, "    let wait = back_off(3);"),
                        (10, "    let other = no_back_off(3) + back_offs;"),
                        (11, "    let by = back_off;"),
                        (12, r#"    say("back_off(3) waits");"#),
                        (15, "    Waits for as long as `back_off` says."),
                        (16, "    return back_off if not is_late else never"),
                    ]),
                ),
                ("docs/a.md".to_owned(), file(&[(4, "`back_off` waits.")])),
                (
                    "retry.rs".to_owned(),
                    file(&[(3, "pub fn back_off(n: u32) {"), (7, "    back_off(n - 1)")]),
                ),
                ("tests/a.rs".to_owned(), file(&[(5, "    back_off(1);")])),
            ]),
            ..Evidence::default()
        };
        let spot = |path, line| Spot { path, line };
        let uses = Uses {
            used: vec![
                spot("a.rs", 9),
                spot("retry.rs", 7),
                spot("a.rs", 11),
                spot("a.rs", 16),
                spot("tests/a.rs", 5),
                spot("a.rs", 1),
            ],
            mentioned: vec![
                spot("a.rs", 2),
                spot("a.rs", 12),
                spot("a.rs", 15),
                spot("docs/a.md", 4),
            ],
            defined: vec![spot("retry.rs", 3)],
            ..Uses::default()
        };
        assert_eq!(Uses::of(&evidence, "back_off"), uses);
        assert!(Uses::of(&evidence, "front_off").is_empty());
    }

    #[test]
    fn words_alone_are_a_call_where_calls_need_no_brackets() {
        for (path, text, name, is_used) in [
            (
                "run.sh",
                "deploy_app staging blue web main",
                "deploy_app",
                true,
            ),
            (
                "run.sh",
                "time deploy_app staging blue web",
                "deploy_app",
                true,
            ),
            ("A.hs", "  combine walk total items rest", "walk", true),
            ("a.rb", "validates name in all of them", "validates", true),
            (
                "a.lua",
                "deploy_app staging blue web main",
                "deploy_app",
                true,
            ),
            (
                "a.rs",
                "    Waits as long as back_off says.",
                "back_off",
                false,
            ),
            (
                "a.py",
                "    Waits as long as back_off says.",
                "back_off",
                false,
            ),
            ("a.js", "   waits as long as backOff says", "backOff", false),
        ] {
            let lines = BTreeMap::from([(3, text.to_owned())]);
            let evidence = Evidence {
                files: BTreeMap::from([(path.to_owned(), lines)]),
                ..Evidence::default()
            };
            let uses = Uses::of(&evidence, name);
            assert_eq!(!uses.used.is_empty(), is_used, "{path}: {text}");
            assert_eq!(uses.mentioned.is_empty(), is_used, "{path}: {text}");
        }
    }

    #[test]
    fn a_call_that_ends_in_a_block_is_no_definition() {
        for (path, text, name, is_defined) in [
            ("a.rs", "    run_blocking(move || {", "run_blocking", false),
            ("a.js", "withLock('a', () => {", "withLock", false),
            ("a.c", "\twalk_each(&a, i, x) {", "walk_each", false),
            ("a.h", "#define walk_each(a, i, x) \\", "walk_each", true),
            ("a.rs", "pub(in crate::a) fn walk(n: u32) {", "walk", true),
        ] {
            let lines = BTreeMap::from([(3, text.to_owned())]);
            let evidence = Evidence {
                files: BTreeMap::from([(path.to_owned(), lines)]),
                ..Evidence::default()
            };
            let uses = Uses::of(&evidence, name);
            assert_eq!(!uses.defined.is_empty(), is_defined, "{path}: {text}");
            assert_eq!(uses.used.is_empty(), is_defined, "{path}: {text}");
        }
    }
}
