//! Whose a name is that a line uses: by what stands before it, by what the line lies in, and by what its file
//! imports. Of a variable nobody here knows the type. Pure.

use super::{
    super::{
        evidence::Evidence,
        rank::{Lies, around, is_in_path, is_said_in, names},
        source::Lines,
        words::subwords,
    },
    Spot,
    bases::{has_base, inherits},
    has_word, is_import,
};
use crate::words::Tongue;

/// Whose it is; the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    Its,
    /// How far what it is used of is called otherwise.
    Unknown(u8),
    Others,
}

/// So far is called otherwise what has no name in common.
const FARTHEST: u8 = 2;

/// What stands before a name.
#[derive(Debug, PartialEq, Eq)]
enum Before<'a> {
    Nothing,
    /// `Router::`
    Path(&'a str),
    /// `router.`
    Name(&'a str),
    /// `router().`
    Value,
}

/// Whose name a line uses. Of several in one line the surest counts.
pub(super) fn used(evidence: &Evidence, spot: Spot<'_>, (owner, name): (&str, &str)) -> Whose {
    let Some((lines, text)) = line_of(evidence, spot) else {
        return Whose::Unknown(FARTHEST);
    };
    let judged = befores(text, name).map(|before| match before {
        Before::Path(of) => by_path(evidence, spot, of, owner),
        Before::Name(of) if of == owner => Whose::Its,
        Before::Name(of) if is_self(of) => by_place(evidence, spot, owner),
        Before::Name(of) if inherits(evidence, of, owner) => Whose::Unknown(FARTHEST),
        Before::Name(of) if is_type(of) || is_module(lines, of) => Whose::Others,
        Before::Name(of) => Whose::Unknown(apart(of, owner)),
        Before::Value => Whose::Unknown(FARTHEST),
        Before::Nothing => bare(evidence, spot, (owner, name)),
    });
    judged.min().unwrap_or(Whose::Unknown(FARTHEST))
}

/// Whose name a line defines.
pub(super) fn defined(evidence: &Evidence, spot: Spot<'_>, (owner, name): (&str, &str)) -> Whose {
    match line_of(evidence, spot) {
        Some((_, text)) if is_said_in(text, owner, name) => Whose::Its,
        Some((_, text)) if let Some(of) = said_of(text, name) => match has_word(of, owner) {
            true => Whose::Its,
            false => Whose::Others,
        },
        // What lies in no type lies in its module.
        _ => match around(evidence, spot.path, spot.line) {
            around if lies_in(&around, owner) => Whose::Its,
            around if around.iter().any(|one| is_enclosing_type(one)) => Whose::Others,
            _ if !is_type(owner) && is_in_path(spot.path, owner) => Whose::Its,
            _ => Whose::Unknown(FARTHEST),
        },
    }
}

/// What a head itself says that its name lies in: `int Table::Size() {`, `func (t *Table) Size() {`.
fn said_of<'a>(text: &'a str, name: &'a str) -> Option<&'a str> {
    let receiver = text.trim_start().strip_prefix("func (");
    let receiver = receiver.and_then(|rest| Some(rest.split_once(')')?.0));
    let path = || match befores(text, name).next() {
        Some(Before::Path(of)) => Some(of),
        _ => None,
    };
    receiver.or_else(path)
}

/// Whether a line only declares a name: as one that announces it, or as one of those right in what it lies in.
pub(super) fn is_declared(
    evidence: &Evidence,
    spot: Spot<'_>,
    is_announced: bool,
    (owner, name): (&str, &str),
) -> bool {
    let Some((_, text)) = line_of(evidence, spot) else {
        return false;
    };
    if is_announced {
        return !is_import(text.trim_start());
    }
    let Some((before, _)) = text.split_once(&format!("{name}(")) else {
        return false;
    };
    let may_stand = |c: char| is_part(c) || " \t*&<>,[]".contains(c);
    let around = around(evidence, spot.path, spot.line);
    before.chars().all(may_stand)
        && !before.ends_with(is_part)
        && !around.is_empty()
        && around.iter().all(|one| names(one, owner) == Lies::Within)
}

/// How far what a name is used of is called otherwise than what it should lie in.
pub(super) fn likeness(evidence: &Evidence, spot: Spot<'_>, name: (Option<&str>, &str)) -> u8 {
    let (Some(owner), name) = name else {
        return 0;
    };
    match used(evidence, spot, (owner, name)) {
        Whose::Unknown(far) => far,
        Whose::Its | Whose::Others => 0,
    }
}

fn line_of<'a>(evidence: &'a Evidence, spot: Spot<'_>) -> Option<(&'a Lines, &'a str)> {
    let lines = evidence.files.get(spot.path)?;
    Some((lines, lines.get(&spot.line)?))
}

fn by_path(evidence: &Evidence, spot: Spot<'_>, of: &str, owner: &str) -> Whose {
    match of {
        _ if of == owner => Whose::Its,
        "Self" | "static" | "parent" => by_place(evidence, spot, owner),
        // A module that is called by where it is.
        "self" | "super" | "crate" if !is_type(owner) => Whose::Unknown(FARTHEST),
        _ if inherits(evidence, of, owner) => Whose::Unknown(FARTHEST),
        _ => Whose::Others,
    }
}

/// By what a line lies in. What another type calls of itself may be what it inherits.
fn by_place(evidence: &Evidence, spot: Spot<'_>, owner: &str) -> Whose {
    let around = around(evidence, spot.path, spot.line);
    if lies_in(&around, owner) {
        return Whose::Its;
    }
    let is_rust = Tongue::of(spot.path) == Tongue::Rust;
    let types = around.iter().filter(|name| is_enclosing_type(name));
    let based: Vec<bool> = types
        .filter_map(|name| {
            let (implemented, of) = name.split_once(" for ").unwrap_or(("", name));
            let is_based = implemented == owner || inherits(evidence, of, owner);
            let known = has_base(evidence, spot.path, of);
            match (is_based, is_rust) {
                (true, _) => Some(true),
                (false, true) => Some(false),
                // Of a type whose head is not known, nobody knows what it inherits.
                (false, false) => known,
            }
        })
        .collect();
    match !based.is_empty() && based.iter().all(|is_based| !is_based) {
        true => Whose::Others,
        false => Whose::Unknown(FARTHEST),
    }
}

fn lies_in(around: &[String], owner: &str) -> bool {
    let lies = around.iter().map(|name| names(name, owner)).min();
    matches!(lies, Some(Lies::Within | Lies::InTrait))
}

fn is_enclosing_type(name: &str) -> bool {
    is_type(name) || name.contains(" for ")
}

/// What stands alone is called in its own type, or was imported.
fn bare(evidence: &Evidence, spot: Spot<'_>, (owner, name): (&str, &str)) -> Whose {
    let tongue = Tongue::of(spot.path);
    if is_type(owner) {
        return match tongue {
            Tongue::C | Tongue::Java => by_place(evidence, spot, owner),
            // There what lies in a type is never called alone.
            Tongue::Rust | Tongue::Script | Tongue::Other => Whose::Others,
        };
    }
    let lines = evidence.files.get(spot.path).into_iter();
    let mut imports = lines
        .flat_map(|lines| lines.values())
        .filter(|line| is_import(line.trim_start()) && has_word(line, name))
        .peekable();
    match (
        imports.peek().is_some(),
        imports.any(|line| has_word(line, owner)),
    ) {
        (_, true) => Whose::Its,
        (true, false) => Whose::Others,
        (false, false) => Whose::Unknown(FARTHEST),
    }
}

/// What stands before a name, wherever a line has it as a word.
fn befores<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = Before<'a>> {
    let places = text.match_indices(name);
    let words = places.filter(move |(at, _)| {
        let (before, behind) = (&text[..*at], &text[at + name.len()..]);
        !before.ends_with(is_part) && !behind.starts_with(is_part)
    });
    words.map(|(at, _)| before(&text[..at]))
}

fn before(text: &str) -> Before<'_> {
    if let Some(rest) = text.strip_suffix("::") {
        return match last_word(without_types(rest)) {
            "" => Before::Value,
            of => Before::Path(of),
        };
    }
    let joints = ["?.", "!.", "->", "."];
    let Some(rest) = joints.iter().find_map(|joint| text.strip_suffix(joint)) else {
        return Before::Nothing;
    };
    // What is behind two dots is the end of a range.
    match last_word(rest) {
        _ if rest.ends_with('.') => Before::Nothing,
        "" => Before::Value,
        of => Before::Name(of),
    }
}

/// `Vec` of `Vec::<u8>` and `Vec<u8>`.
fn without_types(text: &str) -> &str {
    let Some(open) = text.ends_with('>').then(|| text.find('<')).flatten() else {
        return text;
    };
    text[..open].trim_end_matches(':')
}

fn last_word(text: &str) -> &str {
    let start = text.rfind(|c| !is_part(c));
    let start = start.map_or(0, |at| {
        at + text[at..].chars().next().map_or(1, char::len_utf8)
    });
    &text[start..]
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_self(of: &str) -> bool {
    matches!(of, "self" | "this" | "cls" | "super")
}

/// Whether it is spelt as types are. What has nothing but capitals is a value.
fn is_type(of: &str) -> bool {
    of.starts_with(char::is_uppercase) && (of.contains(char::is_lowercase) || of.len() == 1)
}

/// Whether a file of Python imports a module that is called so: `import json`.
fn is_module(lines: &Lines, of: &str) -> bool {
    let mut lines = lines.values().map(|line| line.trim());
    lines.any(|line| {
        let imported = line.strip_prefix("import ").unwrap_or_default();
        let mut modules = imported.split(',');
        modules.any(|module| module.rsplit([' ', '.']).next() == Some(of))
    })
}

/// Whether a variable is called as the type: not at all, in part, or altogether.
fn apart(of: &str, owner: &str) -> u8 {
    let (of, owner) = (subwords(of), subwords(owner));
    if of.concat() == owner.concat() {
        0
    } else if of.iter().all(|word| owner.contains(word)) {
        1
    } else {
        FARTHEST
    }
}

#[cfg(test)]
mod tests;
