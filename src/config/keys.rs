//! Which sections and keys there are, and which one was probably meant.
//!
//! The names come from the section structs themselves: serde tells a deserializer the fields that
//! a struct has.

use serde::{Deserialize, Deserializer, de::Visitor, forward_to_deserialize_any};

use super::Config;

/// A section and its keys, in the order of the struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) keys: &'static [&'static str],
}

/// All sections, in the order of [`Config`].
pub(super) fn sections() -> [Section; 16] {
    /// Takes the struct of a section from the field that holds it.
    fn section<'de, T: Deserialize<'de>>(name: &'static str, _: fn(Config) -> T) -> Section {
        Section {
            name,
            keys: fields_of::<T>(),
        }
    }
    [
        section("oracle", |config| config.oracle),
        section("budget", |config| config.budget),
        section("fallback", |config| config.fallback),
        section("turn", |config| config.turn),
        section("delegation", |config| config.delegation),
        section("prompt", |config| config.prompt),
        section("query", |config| config.query),
        section("tools", |config| config.tools),
        section("notes", |config| config.notes),
        section("model", |config| config.model),
        section("session", |config| config.session),
        section("supervisor", |config| config.supervisor),
        section("actors", |config| config.actors),
        section("server", |config| config.server),
        section("tenants", |config| config.tenants),
        section("data", |config| config.data),
    ]
}

/// A section by its name.
pub(super) fn section(name: &str) -> Option<Section> {
    sections().into_iter().find(|section| section.name == name)
}

/// The lists of tables beside the sections, in the order of [`Config`].
pub(super) const LISTS: [&str; 2] = [PROFILES, PROVIDERS];
/// Kinds of conversations.
pub(super) const PROFILES: &str = "profiles";
/// Servers of models.
pub(super) const PROVIDERS: &str = "providers";

/// What to do about a section that does not exist.
pub(super) fn section_remedy(wrong: &str) -> String {
    let names = sections().map(|section| section.name);
    let heads = names.map(|name| (name, format!("[{name}]")));
    let lists = LISTS.map(|name| (name, format!("[[{name}]]")));
    match nearest(wrong, heads.into_iter().chain(lists)) {
        Some(head) => format!("the nearest is `{head}`"),
        None => format!(
            "the sections are {}, [[{PROFILES}]] and [[{PROVIDERS}]]",
            names.join(", ")
        ),
    }
}

/// What to do about a key that does not exist in a table of a list.
pub(super) fn item_remedy(path: &str, head: &str, keys: &[&str], wrong: &str) -> String {
    match nearest(wrong, keys.iter().map(|key| (*key, *key))) {
        Some(key) => format!("the nearest is `{path}.{key}`"),
        None => format!("`{head}` has {}", keys.join(", ")),
    }
}

/// What to do about a key that does not exist, in a section or outside of all.
pub(super) fn key_remedy(section_name: &str, wrong: &str) -> String {
    let sections = sections();
    let named = |section: &Section| {
        let name = section.name;
        section
            .keys
            .iter()
            .map(move |key| (*key, format!("{name}.{key}")))
    };
    let here = sections.iter().find(|section| section.name == section_name);
    // Of names equally near, the one in this section.
    let candidates = here.into_iter().chain(&sections).flat_map(named);
    match nearest(wrong, candidates) {
        Some(key) => format!("the nearest is `{key}`"),
        None => match here {
            Some(section) => format!("`[{section_name}]` has {}", section.keys.join(", ")),
            None => format!(
                "the sections are {}",
                sections.map(|one| one.name).join(", ")
            ),
        },
    }
}

/// The candidate whose name takes the fewest edits, if they are few for its length.
fn nearest<'a, T>(wrong: &str, candidates: impl Iterator<Item = (&'a str, T)>) -> Option<T> {
    let allowed = |name: &str| (name.len() / 3).max(1);
    candidates
        .map(|(name, candidate)| (distance(wrong, name), name, candidate))
        .filter(|(edits, name, _)| *edits <= allowed(name))
        .min_by_key(|(edits, _, _)| *edits)
        .map(|(_, _, candidate)| candidate)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The keys of a table of a list, in the order of its struct.
pub(super) fn fields_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    match T::deserialize(Ask) {
        Ok(_) | Err(Answer(None)) => &[],
        Err(Answer(Some(fields))) => fields,
    }
}

/// A deserializer that holds no data; its error is the names of the fields it was asked for.
struct Ask;

#[derive(Debug)]
struct Answer(Option<&'static [&'static str]>);

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("asked for field names only")
    }
}

impl std::error::Error for Answer {}

impl serde::de::Error for Answer {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> Deserializer<'de> for Ask {
    type Error = Answer;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Answer> {
        Err(Answer(None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Answer> {
        Err(Answer(Some(fields)))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_sections_is_that_of_the_struct() {
        let names = sections().map(|section| section.name);
        let names: Vec<&str> = names.into_iter().chain(LISTS).collect();
        assert_eq!(names, fields_of::<Config>());
        // Unlike TOML, JSON shows optional keys that are not set.
        let serde_json::Value::Object(json) = serde_json::to_value(Config::default()).unwrap()
        else {
            panic!("a configuration is an object");
        };
        for Section { name, keys } in sections() {
            let mut keys = keys.to_vec();
            keys.sort_unstable();
            let mut want: Vec<&String> = json[name].as_object().unwrap().keys().collect();
            want.sort_unstable();
            assert_eq!(keys, want, "{name}");
            assert!(!keys.is_empty(), "{name}");
        }
    }

    #[test]
    fn the_nearest_key_is_named_or_else_what_there_is() {
        for (section, wrong, remedy) in [
            ("oracle", "max_turn", "the nearest is `oracle.max_turns`"),
            ("oracle", "maxturns", "the nearest is `oracle.max_turns`"),
            ("budget", "max_turns", "the nearest is `oracle.max_turns`"),
            ("", "max_turns", "the nearest is `oracle.max_turns`"),
            (
                "prompt",
                "dri",
                "`[prompt]` has dir, context, instructions, token_budget",
            ),
            ("prompt", "dirs", "the nearest is `prompt.dir`"),
            ("data", "dirs", "the nearest is `data.dir`"),
            (
                "budget",
                "xyzzy",
                "`[budget]` has max_tokens, max_cost_usd, session_max_tokens, session_max_cost_usd, prices",
            ),
        ] {
            assert_eq!(key_remedy(section, wrong), remedy, "{section} {wrong}");
        }
        assert_eq!(section_remedy("bugdet"), "the nearest is `[budget]`");
        assert!(section_remedy("xyzzy").starts_with("the sections are oracle, budget, "));
    }

    #[test]
    fn distances_are_the_fewest_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }
}
