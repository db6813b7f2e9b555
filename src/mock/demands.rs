//! What servers demand of ids and names, and how many marks for their cache they take. Whoever breaks it in
//! one message breaks it in each request from then on.

use memchr::memmem;

use super::breach::{Breach, Rule};

/// Longest id of a call at OpenAI.
const ID: usize = 40;
/// Longest name of a tool.
const NAME: usize = 64;
/// Most marks at Anthropic.
const MARKS: usize = 4;
const MARK: &str = "\"cache_control\"";

/// Notes an id that is too long for OpenAI.
pub(super) fn short_id(found: &mut Vec<Breach>, id: &str) {
    let length = id.chars().count();
    if length > ID {
        let what = format!("the id `{id}` has {length} characters, {ID} are allowed");
        found.push(Rule::Ids.broken(what));
    }
}

/// Notes an id that Anthropic does not take.
pub(super) fn plain_id(found: &mut Vec<Breach>, id: &str) {
    if !is_plain(id) {
        let what = format!("the id `{id}` has other characters than letters, digits, `_` and `-`");
        found.push(Rule::Ids.broken(what));
    }
}

/// Notes a tool's name that neither takes.
pub(super) fn name(found: &mut Vec<Breach>, name: &str) {
    if !is_plain(name) || name.len() > NAME {
        let what =
            format!("`{name}` is no name of a tool: 1 to {NAME} letters, digits, `_` and `-`");
        found.push(Rule::Names.broken(what));
    }
}

/// Notes more marks than there may be. Within a text the quotes of such a key have backslashes.
pub(super) fn marks(found: &mut Vec<Breach>, body: &[u8]) {
    let is_key = |at: &usize| {
        let rest = body[at + MARK.len()..].trim_ascii_start();
        rest.starts_with(b":") && !body[..*at].ends_with(b"\\")
    };
    let marks = memmem::find_iter(body, MARK).filter(is_key).count();
    if marks > MARKS {
        let what = format!("{marks} parts have `cache_control`, {MARKS} are allowed");
        found.push(Rule::Cache.broken(what));
    }
}

fn is_plain(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_demanded_is_noted_where_it_is_missing() {
        let long = "x".repeat(41);
        let mark = r#"{"cache_control": {"type":"ephemeral"}},"#;
        let told = r#"{"text":"\"cache_control\":"},"#;
        for (name_of, check, breaks) in [
            (
                "a short id",
                (|f, t| short_id(f, t)) as fn(&mut Vec<Breach>, &str),
                "a.b:0",
            ),
            ("a plain id", |f, t| plain_id(f, t), &*long),
            ("a name", |f, t| name(f, t), "code_search"),
            (
                "four marks",
                |f, t| marks(f, t.as_bytes()),
                &format!("{}{told}", mark.repeat(4)),
            ),
        ] {
            let mut found = Vec::new();
            check(&mut found, breaks);
            assert_eq!(found, [], "{name_of}");
        }
        let mut found = Vec::new();
        short_id(&mut found, &long);
        plain_id(&mut found, "a.b:0");
        for wrong in ["", "a.b", &"x".repeat(65)] {
            name(&mut found, wrong);
        }
        marks(&mut found, mark.repeat(5).as_bytes());
        let rules: Vec<&str> = found.iter().map(|breach| breach.rule.name()).collect();
        assert_eq!(rules, ["ids", "ids", "names", "names", "names", "cache"]);
    }
}
