//! The paths that a file names: `use` trees written out, `super` resolved.
//!
//! Only paths that start at a root are read (`crate`, `super`, `self`, the library's own name,
//! `std`): what a file calls by a shorter name it has first imported by such a path.

use super::source::Source;
use super::tokens::{Gate, Kind, Token};

/// The library's name, by which the binary, the tests and the examples import it.
const LIBRARY: &str = "oracle_agent";

/// A path from a root, and where it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// For a path into the library, below its root; for others, from their crate.
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
    pub(super) gate: Gate,
}

/// The paths into the library: `crate::a::{b, c}` gives `a::b` and `a::c`; an alias or a glob of
/// the root itself gives `*`.
pub(super) fn into_library(source: &Source) -> Vec<Named> {
    let own = source.module();
    let resolve = |mut named: Named, inline: usize| {
        let root = named.segments.remove(0);
        let mut base: Vec<String> = match (root.as_str(), &own) {
            ("super" | "self", Some(module)) => {
                let mut base: Vec<String> = module.iter().map(|name| (*name).into()).collect();
                base.extend((0..inline).map(|_| "(inline)".into()));
                base
            }
            // In the binary, tests and examples these stay within the file's own crate.
            ("super" | "self" | "crate", None) => return None,
            _ => Vec::new(),
        };
        if root == "super" {
            base.pop();
        }
        for segment in named.segments {
            match segment.as_str() {
                "super" => drop(base.pop()),
                "self" => {}
                _ => base.push(segment),
            }
        }
        if base.is_empty() {
            base.push("*".into());
        }
        Some(Named {
            segments: base,
            ..named
        })
    };
    rooted(source, &["crate", "super", "self", LIBRARY])
        .into_iter()
        .filter_map(|(named, inline)| resolve(named, inline))
        .collect()
}

/// The paths that start with `name` as they are written, groups written out.
pub(super) fn starting_with(source: &Source, name: &str) -> Vec<Named> {
    rooted(source, &[name])
        .into_iter()
        .map(|(named, _)| named)
        .collect()
}

/// Paths that start with one of `roots`, and how many inline modules are around each.
fn rooted(source: &Source, roots: &[&str]) -> Vec<(Named, usize)> {
    let tokens = source.tokens.as_slice();
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let is_root = roots.iter().any(|root| token.is(root)) && !continues_a_path(tokens, at);
        let goes_on = tokens
            .get(at + 1)
            .is_some_and(|next| next.is("::") || next.is("as"));
        if !is_root || !goes_on {
            at += 1;
            continue;
        }
        let mut leaves = Vec::new();
        at = tree(tokens, at, &mut Vec::new(), &mut leaves);
        found.extend(leaves.into_iter().map(|(segments, line)| {
            (
                Named {
                    segments,
                    line,
                    gate: token.gate,
                },
                token.inline,
            )
        }));
    }
    found
}

/// Whether the token at `at` is a later segment (`a::self`), not a start (`::oracle_agent` is one).
fn continues_a_path(tokens: &[Token], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|index| &tokens[index]);
    before(1).is_some_and(|token| token.is("::"))
        && before(2).is_some_and(|token| is_name(token) || token.is(">"))
}

fn is_name(token: &Token) -> bool {
    token.kind == Kind::Ident
        && !["use", "pub", "in", "as", "dyn", "impl"]
            .iter()
            .any(|k| token.is(k))
}

/// Reads one `use` tree (or plain path) at `at`; answers where it ends.
fn tree(
    tokens: &[Token],
    mut at: usize,
    prefix: &mut Vec<String>,
    leaves: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let depth = prefix.len();
    let mut line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        if token.kind == Kind::Ident || token.is("*") {
            prefix.push(token.text.clone());
            line = token.line;
            at += 1;
            if !tokens.get(at).is_some_and(|next| next.is("::")) {
                break;
            }
            at += 1;
        } else if token.is("{") {
            at += 1;
            while tokens.get(at).is_some_and(|token| !token.is("}")) {
                at = tree(tokens, at, prefix, leaves);
                while tokens
                    .get(at)
                    .is_some_and(|token| !token.is(",") && !token.is("}"))
                {
                    at += 1; // `as alias`
                }
                at += usize::from(tokens.get(at).is_some_and(|token| token.is(",")));
            }
            prefix.truncate(depth);
            return at + 1;
        } else {
            break; // `a::<T>`
        }
    }
    leaves.push((prefix.clone(), line));
    prefix.truncate(depth);
    at
}

#[test]
fn paths_are_read_in_every_spelling() {
    for (name, path, text, expected) in [
        ("plain", "src/a/b.rs", "use crate::x::Y;", vec!["x::Y"]),
        (
            "in code",
            "src/a.rs",
            "fn f() -> crate::x::Y<crate::z::W> {}",
            vec!["x::Y", "z::W"],
        ),
        (
            "turbofish",
            "src/a.rs",
            "fn f() { crate::x::y::<u8>() }",
            vec!["x::y"],
        ),
        (
            "macro",
            "src/a.rs",
            "macro_rules! m { () => { $crate::x::y() } }",
            vec!["x::y"],
        ),
        (
            "groups in groups",
            "src/a.rs",
            "pub use crate::{self as root, x::{self, y::{Z as W, V}}, u::*,};",
            vec!["*", "x", "x::y::Z", "x::y::V", "u::*"],
        ),
        ("glob of the root", "src/a.rs", "use crate::*;", vec!["*"]),
        (
            "alias of the root",
            "src/a.rs",
            "use crate as root;",
            vec!["*"],
        ),
        (
            "super stays within",
            "src/a/b/c.rs",
            "use super::x; use super::super::y;",
            vec!["a::b::x", "a::y"],
        ),
        (
            "super leaves the room",
            "src/a/b.rs",
            "use super::super::x::Y;",
            vec!["x::Y"],
        ),
        (
            "super of a room is the root",
            "src/a.rs",
            "use super::x::Y; use super::*;",
            vec!["x::Y", "*"],
        ),
        (
            "super in a group",
            "src/a/b.rs",
            "use super::{super::x, y};",
            vec!["x", "a::y"],
        ),
        (
            "inline module",
            "src/a.rs",
            "mod tests { use super::x; use super::super::y; }",
            vec!["a::x", "y"],
        ),
        (
            "self",
            "src/a.rs",
            "use self::x::Y; fn f(&self) { self.g() }",
            vec!["a::x::Y"],
        ),
        (
            "visibility",
            "src/a.rs",
            "pub(crate) struct S; pub(in crate::a) struct T;",
            vec!["a"],
        ),
        (
            "library by name",
            "src/main.rs",
            "fn f() { ::oracle_agent::cli::run() }",
            vec!["cli::run"],
        ),
        (
            "own crate of a binary",
            "tests/it/a.rs",
            "use super::x; use crate::y;",
            vec![],
        ),
        (
            "comment and string",
            "src/a.rs",
            "/// [`crate::x`]\nconst A: &str = \"crate::y\";",
            vec![],
        ),
    ] {
        let source = Source::new(path, text);
        let found: Vec<String> = into_library(&source)
            .iter()
            .map(|named| named.segments.join("::"))
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_path_knows_its_line_and_gate() {
    let source = Source::new(
        "src/a.rs",
        "use crate::{\n    x,\n    y::Z,\n};\n#[cfg(test)]\nmod tests {\n    use crate::w;\n}\n",
    );
    let found: Vec<(usize, Gate)> = into_library(&source)
        .iter()
        .map(|named| (named.line, named.gate))
        .collect();
    assert_eq!(found, [(2, Gate::Open), (3, Gate::Open), (7, Gate::Test)]);
}

#[test]
fn other_roots_keep_their_name() {
    let source = Source::new(
        "src/a.rs",
        "use std::{fs, time::Instant}; fn f() { mystd::x::std::y() }",
    );
    let found: Vec<String> = starting_with(&source, "std")
        .iter()
        .map(|named| named.segments.join("::"))
        .collect();
    assert_eq!(found, ["std::fs", "std::time::Instant"]);
}
