//! The head of a type, or of what a type implements: its name, and what it implements or extends. Pure.

use super::Relation;

/// What introduces a type that may have others above it.
const TYPES: &[&str] = &[
    "class",
    "interface",
    "struct",
    "object",
    "enum",
    "record",
    "trait",
    "protocol",
    "extension",
];

/// What stands between the name of a type and what is above it.
const EXTENDS: &[&str] = &["extends"];
const IMPLEMENTS: &[&str] = &["implements", "with"];

/// What tells how something is inherited, or is no name of a type.
const BESIDE: &[&str] = &["public", "private", "protected", "virtual", "final", "dyn"];

/// A type that implements or extends the one that was looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) relation: Relation,
}

impl Head {
    /// Of the lines of a head, joined, if it has this name above it. More may stand behind it.
    pub(super) fn read(path: &str, text: &str, above: &str) -> Option<Self> {
        let ending = path.rsplit('.').next().unwrap_or_default();
        // No type of these names what is above it.
        if ending == "go" {
            return None;
        }
        if ending == "rs"
            && let Some(head) = of_impl(text, above)
        {
            return Some(head);
        }
        of_type(ending, text, above)
    }
}

/// `impl<T> Trait<T> for Type<T>`.
fn of_impl(text: &str, above: &str) -> Option<Head> {
    let bare = text.strip_prefix("unsafe ").unwrap_or(text);
    let rest = bare.strip_prefix("impl")?;
    let rest = if rest.starts_with('<') {
        &rest[group(rest)?..]
    } else {
        rest
    };
    let rest = rest.strip_prefix(' ')?.trim_start();
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let for_at = at_depth_zero(rest, " for ")?;
    let of_trait = rest[..for_at].split('<').next()?.trim();
    let last = of_trait.rsplit("::").next()?;
    let behind = &rest[for_at + " for ".len()..];
    let end = at_depth_zero(behind, " where ").into_iter();
    let end = end.chain(at_depth_zero(behind, "{")).min();
    let name = behind[..end.unwrap_or(behind.len())].trim();
    (last == above && !name.is_empty()).then(|| Head {
        name: name.to_owned(),
        relation: Relation::Implements,
    })
}

/// `class Type(Base)`, `class Type extends Base implements Role`, `class Type : public Base`, `class Type < Base`.
fn of_type(ending: &str, text: &str, above: &str) -> Option<Head> {
    let (keyword, behind) = words(text).find_map(|(at, word)| {
        let known = TYPES.iter().find(|known| **known == word)?;
        Some((*known, at + word.len()))
    })?;
    let before = text[..behind - keyword.len()].trim_end();
    // What comes before it only tells of it, or says what it is called.
    if before.contains(['(', '"', '\'', '`', ';', '{']) {
        return None;
    }
    let (name, end) = match named(text, behind)? {
        (name, _) if EXTENDS.contains(&name) || IMPLEMENTS.contains(&name) => {
            (called(before)?, behind)
        }
        found => found,
    };
    let rest = &text[end..];
    let rest = if rest.starts_with(['<', '[']) {
        &rest[group(rest)?..]
    } else {
        rest
    };
    let listed = match (ending, rest.trim_start()) {
        ("py" | "pyi", rest) => {
            let inside = rest.strip_prefix('(')?;
            &inside[..group(rest)? - 2]
        }
        // What a constructor takes.
        (_, rest) if rest.starts_with('(') => &rest[group(rest)?..],
        (_, rest) => rest,
    };
    let end = at_depth_zero(listed, "{").into_iter();
    let end = end
        .chain(at_depth_zero(listed, " where "))
        .chain(at_depth_zero(listed, ";"))
        .min();
    let listed = listed[..end.unwrap_or(listed.len())].trim();
    let relation = relation_in(ending, listed, above)?;
    (name != above).then(|| Head {
        name: name.to_owned(),
        relation,
    })
}

/// The name at a place, and where it ends; what macros say before it is left out.
fn named(text: &str, from: usize) -> Option<(&str, usize)> {
    let mut names = words(&text[from..]).filter(|(_, word)| !BESIDE.contains(word));
    let (at, first) = names.next()?;
    if !text[from..from + at].trim().is_empty() {
        return None;
    }
    let behind = from + at + first.len();
    let is_macro = first.len() > 2 && !first.contains(char::is_lowercase);
    let next = text[behind..].trim_start();
    let follows = next.starts_with(|c: char| c.is_alphabetic());
    let second = words(next).next().map_or("", |(_, word)| word);
    let is_name =
        !BESIDE.contains(&second) && !EXTENDS.contains(&second) && !IMPLEMENTS.contains(&second);
    match is_macro && follows && is_name {
        true => named(text, behind),
        false => Some((first, behind)),
    }
}

/// What is set to a type without a name: `module.exports.Type = class extends Base`.
fn called(before: &str) -> Option<&str> {
    let target = before.strip_suffix('=')?.trim_end();
    words(target).last().map(|(_, word)| word)
}

/// What a type is to one in the list of those that stand above it.
fn relation_in(ending: &str, listed: &str, above: &str) -> Option<Relation> {
    let bare = listed.strip_prefix("final").unwrap_or(listed).trim_start();
    let is_list = matches!(ending, "py" | "pyi") || bare.starts_with([':', '<']);
    let mut relation = is_list.then_some(Relation::Extends);
    let mut depth = 0_usize;
    let mut last = 0;
    for (at, word) in words(listed) {
        for c in listed[last..at].chars() {
            match c {
                '(' | '[' | '{' => depth += 1,
                // Ruby's sign for it stands at the beginning.
                '<' if at > 2 => depth += 1,
                ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        last = at + word.len();
        let is_set = listed[last..].trim_start().starts_with('=');
        let is_value = listed[..at].trim_end().ends_with('=');
        // Only the last name of `module.Base`.
        let is_place = listed[last..].starts_with(['.', '\\']) || listed[last..].starts_with("::");
        if depth > 0 || is_place || is_set || is_value {
            continue;
        }
        if EXTENDS.contains(&word) {
            relation = Some(Relation::Extends);
        } else if IMPLEMENTS.contains(&word) {
            // An interface extends others, whatever the word.
            relation = Some(Relation::Implements);
        } else if word == above {
            return relation;
        } else if relation.is_none() && !BESIDE.contains(&word) {
            return None;
        }
    }
    None
}

/// Words of names, and where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut end = 0;
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$'))
        .map(move |word| {
            let at = end;
            let behind = text[at + word.len()..].chars().next();
            end = at + word.len() + behind.map_or(0, char::len_utf8);
            (at, word)
        })
        .filter(|(_, word)| !word.is_empty())
}

/// How long the group is that a text begins with: up to the sign that closes it.
fn group(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '<' => depth += 1,
            // An arrow closes nothing.
            '>' if matches!(before, '-' | '=') => {}
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
        if depth == 0 {
            return Some(at + c.len_utf8());
        }
    }
    None
}

/// Where a piece stands in a text outside of all brackets.
fn at_depth_zero(text: &str, piece: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if depth == 0 && text[at..].starts_with(piece) {
            return Some(at);
        }
        match c {
            '(' | '[' | '<' => depth += 1,
            '>' if matches!(before, '-' | '=') => {}
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_a_type_stands_in_its_head() {
        let implements = Some(Relation::Implements);
        let extends = Some(Relation::Extends);
        for (path, text, name, relation) in [
            ("a.rs", "impl Base for Index {", "Index", implements),
            (
                "a.rs",
                "impl<T: Into<U>, U> crate::a::Base<T> for Index<T> where T: A {",
                "Index<T>",
                implements,
            ),
            (
                "a.rs",
                "unsafe impl<F: Fn() -> u32> Base for F {}",
                "F",
                implements,
            ),
            (
                "a.rs",
                "impl<'a> Base for &'a [u8] {",
                "&'a [u8]",
                implements,
            ),
            ("a.rs", "pub trait Sub: Send + Base {", "Sub", extends),
            ("a.rs", "impl From<Base> for Index {", "", None),
            ("a.rs", "impl Base {", "", None),
            ("a.rs", "fn f(a: impl Base) {", "", None),
            ("a.rs", "pub struct Index<T: Base> {", "", None),
            ("a.rs", "impl<T: Base> Other for T {", "", None),
            (
                "a.java",
                "public class Index<T> extends Base<T> implements Other {",
                "Index",
                extends,
            ),
            (
                "a.java",
                "class Index extends Other implements A<B>, Base {",
                "Index",
                implements,
            ),
            ("a.java", "class Index<T extends Base> {", "", None),
            ("a.java", "class Index implements A<Base> {", "", None),
            (
                "a.ts",
                "export default class Index extends React.Base {",
                "Index",
                extends,
            ),
            (
                "a.js",
                "module.exports = class Index extends Base {",
                "Index",
                extends,
            ),
            (
                "a.js",
                "exports.Index = class extends Base {",
                "Index",
                extends,
            ),
            (
                "a.php",
                "final class Index implements \\A\\Base {",
                "Index",
                implements,
            ),
            (
                "a.cs",
                "public class Index : Other, Base where T : new() {",
                "Index",
                extends,
            ),
            ("a.kt", "class Index(val a: Base) : Other() {", "", None),
            (
                "a.kt",
                "class Index(val a: Int) : Base(a) {",
                "Index",
                extends,
            ),
            (
                "a.scala",
                "class Index(a: Int) extends Other(a) with Base {",
                "Index",
                implements,
            ),
            ("a.py", "class Index(a.Base, Other):", "Index", extends),
            ("a.py", "class Index(Other, metaclass=Base):", "", None),
            ("a.py", "class Index(Generic[Base]):", "", None),
            ("a.rb", "class Index < Base", "Index", extends),
            (
                "a.h",
                "class EXPORT Index final : public ns::Base, private Other {",
                "Index",
                extends,
            ),
            ("a.h", "class Index : public Other<Base> {", "", None),
            ("a.h", "struct Index *index_of(Base a) {", "", None),
            ("a.swift", "extension Index: Base {", "Index", extends),
            ("a.go", "type Index struct { Base }", "", None),
            ("a.py", "text = \"class Index(Base):\"", "", None),
        ] {
            let head = Head::read(path, text, "Base");
            let got = head.as_ref().map_or("", |head| head.name.as_str());
            assert_eq!(got, name, "{path}: {text}");
            assert_eq!(head.as_ref().map(|head| head.relation), relation, "{text}");
        }
    }
}
