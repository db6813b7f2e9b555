//! Which lines of a type declare a member that is no function. Pure.

use super::super::super::{lexicon::holds, uses::is_remark};

/// What may stand before the name of a field.
const MODIFIERS: &str = "\
    pub pub(crate) pub(super) public private protected internal static readonly final mutable volatile abstract override \
    const mut declare export case val";
/// What begins other things than members.
const STATEMENTS: &str = "\
    let var return if else for while match switch use using import from mod module fn def func function class struct enum \
    trait impl interface type namespace new throw raise yield await async goto delete typedef friend template";

/// Whether an object gives itself the member: `self.rows = []`, `this.rows = []`, `@rows = []`.
pub(super) fn is_given(line: &str, name: &str) -> bool {
    let bare = line.trim_start();
    ["self.", "this.", "this->", "@"].iter().any(|object| {
        let behind = bare.strip_prefix(object);
        let behind = behind.and_then(|behind| behind.strip_prefix(name));
        behind.is_some_and(|behind| {
            let behind = behind.trim_start();
            let is_typed = behind.starts_with(": ") && behind.contains('=');
            is_typed || (behind.starts_with('=') && !behind.starts_with("=="))
        })
    })
}

/// Whether a line of these, which are all of one type, declares the member at the depth of members: what stands deeper is
/// within a function.
pub(super) fn is_declared(lines: &[&str], name: &str) -> bool {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let said = || lines.iter().filter(|line| !line.trim().is_empty());
    let head = said().next().map_or(0, |line| depth(line));
    let inner = said().map(|line| depth(line)).filter(|depth| *depth > head);
    // A part of a type need not begin with its head.
    let members = inner.min().unwrap_or(head);
    let mut own = said().filter(|line| depth(line) == members);
    own.any(|line| declares(line.trim(), name))
}

fn declares(bare: &str, name: &str) -> bool {
    let Some(at) = at_word(bare, name).filter(|_| !is_remark(bare)) else {
        return false;
    };
    let (before, behind) = (bare[..at].trim_end(), bare[at + name.len()..].trim_start());
    let mut words = before.split_whitespace();
    if words.clone().any(|word| holds(STATEMENTS, word))
        || before
            .replace("::", "")
            .contains([':', '(', '.', '=', '"', '\''])
    {
        return false;
    }
    let is_first = words.all(|word| holds(MODIFIERS, word));
    let is_variant = name.starts_with(char::is_uppercase) && behind.starts_with(['(', '{']);
    let is_assigned = behind.starts_with('=') && !behind.starts_with("==");
    match is_first {
        true => {
            behind.is_empty()
                || behind.starts_with([':', ',', ';', '?', '!'])
                || is_assigned
                || is_variant
        }
        // Behind its type, as C and Java have it.
        false => behind.starts_with([';', '[', ',']) || is_assigned,
    }
}

/// Where a text first has this word.
fn at_word(text: &str, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = text.match_indices(name).map(|(at, _)| at);
    at.find(|at| {
        let (before, behind) = (&text[..*at], &text[at + name.len()..]);
        !before.ends_with(is_part) && !behind.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_declared_at_the_depth_of_members() {
        for (text, name, want) in [
            ("struct A {\n    pub rows: u8,\n}", "rows", true),
            ("struct A {\n    a: Rows,\n}", "Rows", false),
            ("enum A {\n    Pause,\n}", "Pause", true),
            ("enum A {\n    Pause(u8),\n}", "Pause", true),
            (
                "impl A {\n    fn f(rows: u8) {\n        let rows = 1;\n    }\n}",
                "rows",
                false,
            ),
            ("class A:\n    rows = []\n", "rows", true),
            (
                "class A:\n    def f(self, rows):\n        rows = 1\n",
                "rows",
                false,
            ),
            (
                "class A {\n  int rows = 0;\n  void f() {\n    int more = 1;\n  }\n}",
                "rows",
                true,
            ),
            (
                "class A {\n  int rows = 0;\n  void f() {\n    int more = 1;\n  }\n}",
                "more",
                false,
            ),
            ("class A {\n  rows?: string;\n}", "rows", true),
            ("class A {\n  // rows: none\n  x: y;\n}", "rows", false),
            ("class A {\n  return rows;\n}", "rows", false),
            ("impl A {\n    mod rows;\n}", "rows", false),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(is_declared(&lines, name), want, "{name} in {text}");
        }
    }

    #[test]
    fn objects_give_themselves_members() {
        for (line, want) in [
            ("        self.rows = []", true),
            ("    this.rows = new Map();", true),
            ("  self.rows: list[str] = []", true),
            ("    @rows = 1", true),
            ("    self.rows == 1", false),
            ("    other.rows = 1", false),
            ("    self.rows_of = 1", false),
        ] {
            assert_eq!(is_given(line, "rows"), want, "{line}");
        }
    }
}
