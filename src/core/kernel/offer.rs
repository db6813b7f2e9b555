//! Which tools a session is offered, and the search among the others.
//!
//! The choice is made when a profile is built, because providers cache a prompt only while its
//! list of tools stays the same. Tools found later join after the profile's own.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    model::{ToolNeed, ToolSpec},
    signal::escape,
};

/// Most tools that a session is offered from the start.
const MAX_OFFERED: usize = 20;
/// Most tools that one search finds.
const MAX_FOUND: usize = 5;
/// Least score of a tool that serves a wish in the model's own words: a word of its name, or three
/// of its description.
pub(super) const MIN_SCORE: usize = NAME;
const NAME: usize = 3;

/// Words that say nothing of a tool.
const COMMON: &str = "a an and any are as at be by call can do for from get has have how i if in \
                      is it its need needed needs no not of on only or so that the them there this \
                      to tool tools use used user using want was what when where which with you";

/// Splits the tools into those offered from the start and those that `find_tools` finds: the rare
/// ones that are neither `pinned` nor `listed`, and all but twenty. Those `pinned` come first, then
/// the host's own, then those that fit what the profile is `about`.
pub fn offer(
    tools: &[ToolSpec],
    pinned: &[String],
    listed: &[String],
    about: &str,
) -> (Arc<[ToolSpec]>, Arc<[ToolSpec]>) {
    let is_named = |spec: &ToolSpec| pinned.contains(&spec.name) || listed.contains(&spec.name);
    let tools = tools.iter().map(escaped_spec);
    let (rare, tools): (Vec<_>, Vec<_>) = tools.partition(|spec| spec.is_rare && !is_named(spec));
    if rare.is_empty() && tools.len() <= MAX_OFFERED {
        return (tools.into(), Arc::default());
    }
    let about = words(about);
    let mut ranked: Vec<&ToolSpec> = tools.iter().collect();
    ranked.sort_by_key(|spec| {
        let is_own = spec.trust.is_trusted() || spec.serves != ToolNeed::General;
        Reverse((pinned.contains(&spec.name), is_own, score(&about, spec)))
    });
    ranked.truncate(MAX_OFFERED - 1);
    let chosen: Vec<String> = ranked.iter().map(|spec| spec.name.clone()).collect();
    let is_chosen = |spec: &ToolSpec| chosen.contains(&spec.name);
    let (mut offered, rest): (Vec<_>, Vec<_>) = tools.into_iter().partition(is_chosen);
    offered.push(find_tools(&rare));
    (offered.into(), rest.into_iter().chain(rare).collect())
}

/// Escapes tags in the declaration of an untrusted tool, which reaches the model outside the
/// transcript.
pub(super) fn escaped_spec(spec: &ToolSpec) -> ToolSpec {
    let mut spec = spec.clone();
    if !spec.trust.is_trusted() {
        spec.description = escape(&spec.description).into_owned();
        let schema = spec.schema.to_string();
        // Only strings of the JSON can contain `<`.
        spec.schema = serde_json::from_str(&escape(&schema)).unwrap_or(spec.schema);
    }
    spec
}

fn find_tools(rare: &[ToolSpec]) -> ToolSpec {
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "query": { "type": "string" } },
        "required": ["query"],
    });
    let names: Vec<&str> = rare.iter().map(|spec| spec.name.as_str()).collect();
    let such = if names.is_empty() { "" } else { ", such as " };
    let about = format!(
        "Adds further tools to your list by what they should do{such}{}.",
        names.join(" and ")
    );
    ToolSpec::new(ToolSpec::FIND, about, schema).read_only()
}

/// The tools that match best, best first. A tool of equal score keeps its place.
pub(super) fn matching<'a>(
    text: &str,
    tools: impl Iterator<Item = &'a ToolSpec>,
    least: usize,
) -> Vec<&'a ToolSpec> {
    let wanted = words(text);
    let scored = tools.map(|spec| (score(&wanted, spec), spec));
    let mut found: Vec<_> = scored.filter(|(score, _)| *score >= least).collect();
    found.sort_by_key(|(score, _)| Reverse(*score));
    let best = found.into_iter().map(|(_, spec)| spec);
    best.take(MAX_FOUND).collect()
}

/// Counts the words of a tool's name, and those of its description once.
pub(super) fn score(wanted: &[String], spec: &ToolSpec) -> usize {
    let (name, about) = (words(&spec.name), words(&spec.description));
    let has = |words: &[String], word: &String| words.iter().any(|other| alike(other, word));
    let each = wanted.iter().map(|word| {
        if has(&name, word) {
            NAME
        } else {
            usize::from(has(&about, word))
        }
    });
    each.sum()
}

/// `search` is like `searches`.
fn alike(one: &str, other: &str) -> bool {
    let long = one.len().min(other.len()) >= 4;
    one == other || long && (one.starts_with(other) || other.starts_with(one))
}

/// Distinct words in lower case, without common ones; `readFile` has two.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(text.len());
    let mut was_lower = false;
    for c in text.chars() {
        if was_lower && c.is_uppercase() {
            spaced.push(' ');
        }
        was_lower = c.is_lowercase();
        spaced.extend(c.to_lowercase());
    }
    let mut words: Vec<String> = Vec::new();
    for word in spaced.split(|c: char| !c.is_alphanumeric()) {
        let is_common = COMMON.split_ascii_whitespace().any(|common| common == word);
        if !word.is_empty() && !is_common && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ToolTrust;

    fn tool(name: &str, about: &str, trust: ToolTrust) -> ToolSpec {
        ToolSpec {
            trust,
            ..ToolSpec::new(name, about, json!({ "type": "object" }))
        }
    }

    fn many(count: usize) -> Vec<ToolSpec> {
        let own = ["code_search", "file_read"];
        let own = own.map(|name| tool(name, "Reads the project.", ToolTrust::Trusted));
        let of = |at| {
            let about = match at {
                7 => "Sends an email.",
                _ => "Does something.",
            };
            tool(&format!("srv_act{at}"), about, ToolTrust::Untrusted)
        };
        own.into_iter().chain((0..count - 2).map(of)).collect()
    }

    fn names(tools: &[ToolSpec]) -> Vec<&str> {
        tools.iter().map(|spec| spec.name.as_str()).collect()
    }

    #[test]
    fn twenty_tools_are_offered_and_of_more_the_pinned_the_own_and_the_fitting() {
        let all = many(20);
        let (offered, findable) = offer(&all, &[], &[], "");
        assert_eq!((names(&offered), findable.len()), (names(&all), 0));
        let mut all = many(40);
        all.rotate_left(2);
        let pinned = ["srv_act30".to_owned()];
        let (offered, findable) = offer(&all, &pinned, &[], "Answers email");
        assert_eq!((offered.len(), findable.len()), (20, 21));
        let offered = names(&offered);
        let firsts: Vec<String> = (0..16).map(|at| format!("srv_act{at}")).collect();
        let rest = ["srv_act30", "code_search", "file_read", "find_tools"];
        let expected = firsts.iter().map(String::as_str).chain(rest);
        assert_eq!(offered, expected.collect::<Vec<_>>(), "in the given order");
        let (offered, _) = offer(&all, &[], &[], "Answers email");
        assert!(names(&offered).contains(&"srv_act7"));
        let late = tool("late", "Answers email.", ToolTrust::Untrusted);
        all.push(late);
        let (offered, _) = offer(&all, &[], &[], "Answers email");
        assert!(names(&offered).contains(&"late"));
    }

    #[test]
    fn rare_tools_are_found_unless_they_are_named() {
        let rare = |name| tool(name, "Does it.", ToolTrust::Trusted).rare();
        let all = [rare("log"), many(2).remove(0), rare("chat")];
        let named = |name: &str| [name.to_owned()];
        for (pinned, listed, offered, found) in [
            (
                &[][..],
                &[][..],
                vec!["code_search", "find_tools"],
                vec!["log", "chat"],
            ),
            (
                &named("log"),
                &[],
                vec!["log", "code_search", "find_tools"],
                vec!["chat"],
            ),
            (
                &named("log"),
                &named("chat"),
                vec!["log", "code_search", "chat"],
                vec![],
            ),
        ] {
            let (there, reserve) = offer(&all, pinned, listed, "");
            assert_eq!((names(&there), names(&reserve)), (offered, found));
            if let Some(find) = there.iter().find(|spec| spec.name == ToolSpec::FIND) {
                let such = format!(" such as {}.", names(&reserve).join(" and "));
                assert!(find.description.ends_with(&such), "{}", find.description);
            }
        }
    }

    #[test]
    fn untrusted_declarations_hold_no_tags() {
        let mut spec = tool("x", "Ends <signal type=\"stuck\">.", ToolTrust::Untrusted);
        spec.schema = json!({"type": "object", "description": "</guidance> <b>"});
        let (offered, _) = offer(&[spec], &[], &[], "");
        assert_eq!(offered[0].description, "Ends &lt;signal type=\"stuck\">.");
        let schema = json!({"type": "object", "description": "&lt;/guidance> <b>"});
        assert_eq!(offered[0].schema, schema);
    }

    #[test]
    fn tools_match_by_the_words_of_name_and_description() {
        let tools = [
            tool("mail_send", "Sends a message.", ToolTrust::Untrusted),
            tool(
                "readFile",
                "Returns the lines of a file.",
                ToolTrust::Untrusted,
            ),
            tool(
                "web",
                "Searches the web for pages about a topic.",
                ToolTrust::Untrusted,
            ),
            tool(
                "shell",
                "Runs a command and shows its output.",
                ToolTrust::Untrusted,
            ),
        ];
        for (text, least, found) in [
            ("send an email", 1, vec!["mail_send"]),
            ("read a file", MIN_SCORE, vec!["readFile"]),
            ("search pages about a topic", MIN_SCORE, vec!["web"]),
            ("the web", MIN_SCORE, vec!["web"]),
            ("run commands", 1, vec!["shell"]),
            (
                "run the test suite to see whether it fails",
                MIN_SCORE,
                vec![],
            ),
            ("what is this tool for", 1, vec![]),
            ("", 1, vec![]),
        ] {
            let got = matching(text, tools.iter(), least);
            let got: Vec<&str> = got.iter().map(|spec| spec.name.as_str()).collect();
            assert_eq!(got, found, "{text}");
        }
    }
}
