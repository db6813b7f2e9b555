//! The block before a note: `---` lines around `key: value` lines, or `+++` around `key = value`.
//!
//! Not a reader of YAML: one odd line, such as a title with a colon, would make all of it unreadable,
//! and its references can make a small block large. Lines are read one by one, and what is not
//! understood is passed over. A block that is not closed, or has no key at all, is text. Pure.

use jiff::civil::Date;

use super::date;
use crate::tool::text::clipped;

/// Longest block, in lines, fences included.
const MAX_LINES: usize = 200;
/// Longest value that is kept, in characters.
const MAX_VALUE: usize = 200;
/// Most values of a list.
const MAX_VALUES: usize = 100;

/// The keys of who decided or was there.
const PEOPLE: &[&str] = &[
    "deciders",
    "decider",
    "decision_makers",
    "decided_by",
    "participants",
    "attendees",
    "present",
    "entscheider",
    "teilnehmer",
    "anwesend",
    "décideurs",
    "participantes",
    "asistentes",
];

/// What the block says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Front {
    pub(super) title: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) aliases: Vec<String>,
    pub(super) date: Option<Date>,
    pub(super) status: Option<String>,
    /// The line that says who took part or decided, from 1.
    pub(super) people: Option<u32>,
    /// Its lines, fences included; 0 if there is none.
    pub(super) lines: u32,
}

/// What a note says before it begins, and the rest of it.
pub(super) fn split(text: &str) -> (Front, &str) {
    let nothing = || (Front::default(), text);
    let (fence, sign) = match text.lines().next().map(str::trim_end) {
        Some("---") => ("---", ':'),
        Some("+++") => ("+++", '='),
        Some(_) | None => return nothing(),
    };
    let mut at = 0;
    let mut lines = Vec::new();
    for (number, whole) in text.split_inclusive('\n').take(MAX_LINES).enumerate() {
        at += whole.len();
        let line = whole.trim_end();
        if number == 0 {
            continue;
        }
        if line == fence || (fence == "---" && line == "...") {
            let front = read(&lines, sign);
            return match front {
                Some(front) => {
                    let lines = u32::try_from(number + 1).unwrap_or(u32::MAX);
                    (Front { lines, ..front }, &text[at..])
                }
                None => nothing(),
            };
        }
        lines.push(line);
    }
    nothing()
}

/// None if there is no key in it.
fn read(lines: &[&str], sign: char) -> Option<Front> {
    let mut front = Front::default();
    // The plainer name of the same thing wins.
    let (mut made, mut changed) = (None, None);
    let mut any = false;
    let mut rest = lines;
    while let [line, more @ ..] = rest {
        // Before them stands the fence.
        let number = lines.len() - more.len() + 1;
        rest = more;
        let Some((key, value)) = entry(line, sign) else {
            continue;
        };
        any = true;
        let (values, used) = values(value, rest, sign);
        rest = rest.get(used..).unwrap_or_default();
        let first = || values.first().cloned();
        match key.as_str() {
            "title" => front.title = first(),
            "tags" | "tag" | "keywords" | "categories" => {
                front
                    .tags
                    .extend(values.iter().flat_map(|value| tags(value)));
            }
            "aliases" | "alias" => front.aliases.extend(values),
            "date" | "day" => front.date = first().and_then(|day| date::first_in(&day)),
            "created" | "created_at" | "published" => {
                made = first().and_then(|day| date::first_in(&day));
            }
            "updated" | "modified" | "lastmod" => {
                changed = first().and_then(|day| date::first_in(&day));
            }
            "status" | "state" => front.status = first(),
            key if PEOPLE.contains(&key) && front.people.is_none() => {
                front.people = u32::try_from(number).ok();
            }
            _ => {}
        }
    }
    front.date = front.date.or(made).or(changed);
    front.tags.truncate(MAX_VALUES);
    front.aliases.truncate(MAX_VALUES);
    any.then_some(front)
}

/// `key: value` at the beginning of a line.
fn entry(line: &str, sign: char) -> Option<(String, &str)> {
    let (key, value) = line.split_once(sign)?;
    let bare = unquoted(key.trim_end());
    let is_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let fine = !bare.is_empty() && bare.chars().count() <= 60 && bare.chars().all(is_key);
    // Before a space or the end: `http://host` is no key.
    let apart = value.is_empty() || value.starts_with(char::is_whitespace) || sign == '=';
    let own = !line.starts_with([' ', '\t', '-', '#']);
    (fine && apart && own).then(|| (bare.to_lowercase().replace([' ', '-'], "_"), value.trim()))
}

/// The values of a key, and how many of the lines below belong to them.
fn values(value: &str, below: &[&str], sign: char) -> (Vec<String>, usize) {
    if let Some(start) = value.strip_prefix('[') {
        let used = more_of_list(start, below, sign);
        let more = below.iter().take(used).map(|line| line.trim());
        let list = [start]
            .into_iter()
            .chain(more)
            .collect::<Vec<_>>()
            .join(" ");
        let inner = list.split(']').next().unwrap_or_default();
        let values = inner.split(',').filter_map(scalar).take(MAX_VALUES);
        return (values.collect(), used);
    }
    if !value.is_empty() && !matches!(value, "|" | ">" | "|-" | ">-") {
        return (scalar(value).into_iter().collect(), 0);
    }
    let belongs = |line: &&&str| line.is_empty() || line.starts_with([' ', '\t', '-']);
    let items: Vec<&str> = below.iter().take_while(belongs).copied().collect();
    let item = |line: &&str| {
        let line = line.trim();
        scalar(line.strip_prefix('-').unwrap_or(line))
    };
    let values = items.iter().filter_map(item).take(MAX_VALUES).collect();
    (values, items.len())
}

/// How many lines below belong to a list in brackets: up to the one that closes it. One that is not
/// closed before the next key goes on nowhere.
fn more_of_list(start: &str, below: &[&str], sign: char) -> usize {
    let closes = |line: &&str| line.contains(']');
    if closes(&start) {
        return 0;
    }
    let own = below.iter().take(MAX_VALUES);
    let mut own = own.take_while(|line| entry(line, sign).is_none());
    own.position(closes).map_or(0, |at| at + 1)
}

/// One value, without quotes and comment; none if nothing is left.
fn scalar(text: &str) -> Option<String> {
    let text = text.trim();
    let quoted = text.starts_with(['"', '\'']);
    let text = match text.find(" #") {
        Some(end) if !quoted => &text[..end],
        Some(_) | None => text,
    };
    let bare = unquoted(text.trim());
    let (bare, _) = clipped(bare, MAX_VALUE);
    (!bare.is_empty() && !matches!(bare, "null" | "~")).then(|| bare.to_owned())
}

fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

/// `a, b` and `a b` are several tags; a sharp before one is no part of it.
fn tags(value: &str) -> impl Iterator<Item = String> {
    value
        .split([',', ' '])
        .map(|tag| tag.trim().trim_start_matches('#'))
        .filter(|tag| !tag.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Front {
        split(text).0
    }

    fn words(values: &[&str]) -> Vec<String> {
        values.iter().map(|&value| value.to_owned()).collect()
    }

    #[test]
    fn keys_are_read_as_people_write_them() {
        let text = "---\ntitle: \"A: B\" \ntags: [one, 'two three', \"#four\"]\naliases:\n  - First\n\
                    - \"Second one\"\n\ndate: 2026-03-01T10:00:00Z # when\nStatus: accepted\n---\nBody\n";
        let (front, body) = split(text);
        let want = Front {
            title: Some("A: B".to_owned()),
            tags: words(&["one", "two", "three", "four"]),
            aliases: words(&["First", "Second one"]),
            date: Some(Date::constant(2026, 3, 1)),
            status: Some("accepted".to_owned()),
            people: None,
            lines: 10,
        };
        assert_eq!(front, want);
        assert_eq!(body, "Body\n");
    }

    #[test]
    fn odd_lines_spoil_no_others() {
        for (name, text, title) in [
            ("a colon in a title", "---\ntitle: a: b\n---\n", "a: b"),
            (
                "a broken line",
                "---\n: {[\n\ttitle: no\ntitle: x\n---\n",
                "x",
            ),
            ("TOML", "+++\ntitle = \"x\"\ntags = [\"a\"]\n+++\n", "x"),
            ("dots at the end", "---\ntitle: x\n...\n", "x"),
            ("Windows", "---\r\ntitle: x\r\n---\r\n", "x"),
            ("a comment line", "---\n# title: y\ntitle: x\n---\n", "x"),
            ("a block", "---\ntitle: >\n  x\n---\n", "x"),
            (
                "an open list",
                "---\ntags: [a,\n  b\n]\ntitle: x\n---\n",
                "x",
            ),
            (
                "a list that is never closed",
                "---\ntags: [a,\ntitle: x\nother: [b]\n---\n",
                "x",
            ),
            (
                "one of TOML",
                "+++\ntags = [\n\"a\",\n]\ntitle = \"x\"\n+++\n",
                "x",
            ),
        ] {
            assert_eq!(of(text).title.as_deref(), Some(title), "{name}");
        }
        assert_eq!(
            of("---\ntags: [a,\n  b\n]\ntitle: x\n---\n").tags,
            words(&["a", "b"])
        );
        assert_eq!(
            of("---\ncreated: 2020-01-02\nupdated: 2021-01-02\n---\n").date,
            Some(Date::constant(2020, 1, 2))
        );
        let open = of("---\nstatus: [accepted\ndate: 2025-06-01\ntags: [a\n# b\n---\n");
        assert_eq!(open.status.as_deref(), Some("accepted"));
        assert_eq!(open.date, Some(Date::constant(2025, 6, 1)));
        assert_eq!(open.tags, words(&["a"]));
        assert_eq!(of("---\ntags: a, b c\n---\n").tags, words(&["a", "b", "c"]));
        assert_eq!(of("---\ntitle: null\n---\n").title, None);
        assert_eq!(of("---\ntitle: x\nDeciders: [a, b]\n---\n").people, Some(3));
    }

    #[test]
    fn what_is_no_block_is_text() {
        let endless = format!("---\n{}---\n", "a: b\n".repeat(MAX_LINES));
        for (name, text) in [
            ("never closed", "---\ntitle: x\n\nBody"),
            ("a thematic break", "---\nJust text.\n---\n"),
            ("an address", "---\nhttp://host\n---\n"),
            ("not at the beginning", "\n---\ntitle: x\n---\n"),
            ("too long", endless.as_str()),
            ("empty", ""),
        ] {
            assert_eq!(split(text), (Front::default(), text), "{name}");
        }
    }
}
