//! A name whose definition is asked for and that is only used here: what defines it is elsewhere.

use super::{
    super::{
        protocol::inert,
        toolbox::is_for_all,
        uses::{Uses, is_import},
    },
    Case, Elsewhere,
    uses::place,
};
use crate::words::Tongue;

/// That it is only used here, if every line that has it surely does no more.
pub(super) fn told(case: &Case<'_>) -> Option<Elsewhere> {
    let name = case.question.sought_definition()?;
    let searched = case.evidence.searched.iter();
    let mut searched = searched.filter(|search| is_for_all(&search.query, name));
    let is_known = searched
        .next()
        .is_some_and(|search| !search.is_stopped && search.unshown == 0);
    let uses = Uses::of(case.evidence, name);
    let first = uses.used.first().filter(|_| is_known)?;
    let is_used = uses.used.iter().all(|spot| {
        let line = case.evidence.files.get(spot.path);
        let line = line.and_then(|lines| lines.get(&spot.line));
        line.is_some_and(|line| only_uses(spot.path, line, name))
    });
    let name = inert(name);
    (is_used && uses.defined.is_empty()).then(|| Elsewhere {
        told: format!(
            "I saw no definition of `{name}` here, it is only used, as in {}.",
            place(*first)
        ),
        behind: "",
        missing: format!("a definition of `{name}`"),
    })
}

/// Whether a line surely does nothing with a name but use it: it imports it, calls it, or has it where a type or a
/// value is taken. What may be a variant, a field or a variable is not sure.
fn only_uses(path: &str, line: &str, name: &str) -> bool {
    let tongue = Tongue::of(path);
    let bare = line.trim_start();
    if is_import(bare) || bare.contains("require(") {
        return true;
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_type = name.starts_with(char::is_uppercase);
    bare.match_indices(name).all(|(at, _)| {
        let (before, behind) = (&bare[..at], &bare[at + name.len()..]);
        if before.ends_with(is_part) || behind.starts_with(is_part) {
            return true;
        }
        let before = before.trim_end();
        let word = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
        // A place in it, or a variable of that type.
        let goes_on = behind.starts_with(['.', '<']) || behind.starts_with("::");
        // Of a list of imports; a variant is written otherwise there.
        let is_listed = path.ends_with(".py") && behind.starts_with([',', '[']);
        let is_head = tongue.has_heads() && behind.starts_with(' ');
        match before.chars().last() {
            None => {
                (is_type && (goes_on || is_head || is_listed))
                    || (!is_type && behind.starts_with('('))
            }
            Some(_) if !word.is_empty() => USING.contains(&word),
            Some('>') => before.ends_with("->") || before.ends_with("=>"),
            Some('&') => tongue == Tongue::Rust,
            Some(c) => "(<:=,[!+-/.?{".contains(c) && (is_type || behind.starts_with('(')),
        }
    })
}

/// Words behind which a name is used.
const USING: [&str; 27] = [
    "and",
    "as",
    "await",
    "case",
    "dyn",
    "else",
    "except",
    "extends",
    "for",
    "if",
    "impl",
    "implements",
    "in",
    "instanceof",
    "is",
    "mut",
    "new",
    "not",
    "or",
    "raise",
    "return",
    "throw",
    "throws",
    "typeof",
    "use",
    "using",
    "with",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_define_a_name_is_no_mere_use() {
        for (path, line, name, is) in [
            ("a.rs", "use std::collections::HashMap;", "HashMap", true),
            ("a.rs", "    by: HashMap<String, u32>,", "HashMap", true),
            ("a.rs", "    HashMap::new()", "HashMap", true),
            (
                "a.rs",
                "fn f(by: &HashMap<A, B>) -> HashMap<A, B> {",
                "HashMap",
                true,
            ),
            (
                "a.rs",
                "    let by = my_HashMap(HashMap::new());",
                "HashMap",
                true,
            ),
            ("a.rs", "    HashMap,", "HashMap", false),
            ("a.rs", "    HashMap(u32),", "HashMap", false),
            ("a.rs", "    type HashMap = A;", "HashMap", false),
            ("a.java", "Map<A> by = new HashMap<>();", "HashMap", true),
            ("a.java", "HashMap by = all();", "HashMap", true),
            ("a.js", "const Events = require('events')", "Events", true),
            ("a.js", "class A extends Events {", "Events", true),
            ("a.js", "  Events: 3,", "Events", false),
            ("a.py", "Events = make()", "Events", false),
            ("a.py", "    Events,", "Events", true),
            ("a.py", "Events[Any],", "Events", true),
            ("a.c", "    pthread_lock(&a);", "pthread_lock", true),
            ("a.c", "    n = pthread_lock(&a);", "pthread_lock", true),
            ("a.c", "DEFINE(pthread_lock)", "pthread_lock", false),
            ("a.c", "int pthread_lock;", "pthread_lock", false),
            ("a.c", "} Events;", "Events", false),
            ("a.c", "typedef struct a *Events;", "Events", false),
        ] {
            assert_eq!(only_uses(path, line, name), is, "{path}: {line}");
        }
    }
}
