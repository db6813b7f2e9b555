//! Entries of change logs that name something, and what they say of it: added, removed, deprecated. Pure.

use std::{cmp::Reverse, ops::Range};

use super::{
    Deed, Heading, Named, Version, Wanted, headings, is_change_log, is_sub_heading, version_of_file,
};
use crate::llm::offline::{evidence::Evidence, source::Lines};

mod subject;

use subject::{auxiliary, has_own_noun, is_subject};

/// Most lines of an entry on each side of the name.
const MOST_LINES: u32 = 12;

/// How plainly an entry says that it was done to the very thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Strength {
    /// It only names it.
    Named,
    /// It says so of something, and names it too.
    Beside,
    /// It stands under a heading that says so, or says so of several.
    Listed,
    /// It says so of it.
    Said,
}

/// An entry that names something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Entry<'a> {
    pub(in super::super) path: &'a str,
    /// The line with the name.
    pub(in super::super) at: u32,
    pub(in super::super) lines: (u32, u32),
    pub(in super::super) strength: Strength,
    /// Whether the name is marked as code there.
    pub(in super::super) is_marked: bool,
    /// The version that it stands under, if that is known.
    pub(in super::super) heading: Option<Heading>,
}

impl Entry<'_> {
    /// Its strength, where it says anything of it.
    pub(in super::super) fn class(&self) -> Strength {
        match self.strength {
            Strength::Named | Strength::Beside => Strength::Named,
            says @ (Strength::Listed | Strength::Said) => says,
        }
    }

    /// The version that it stands under; what is not released is newer than all.
    fn version(&self) -> Option<Version> {
        let heading = self.heading.as_ref()?;
        Some(heading.version().cloned().unwrap_or_else(Version::newest))
    }
}

/// All known entries for a name, the best first: those that say what was done to it, of an addition the oldest, else
/// the newest.
pub(in super::super) fn ordered_entries<'a>(
    wanted: &Wanted,
    evidence: &'a Evidence,
) -> Vec<Entry<'a>> {
    let Wanted::Entry { name, deed } = wanted else {
        return Vec::new();
    };
    let logs = evidence
        .files
        .iter()
        .filter(|(path, _)| is_change_log(path));
    let all = logs.flat_map(|(path, lines)| entries(path, lines, name, *deed));
    let mut all: Vec<Entry<'a>> = all.collect();
    match deed {
        Deed::Added => all.sort_by_key(|entry| {
            let version = entry.version();
            (
                Reverse(entry.class()),
                version.is_none(),
                version,
                Reverse(entry.at),
            )
        }),
        Deed::Removed | Deed::Deprecated => all.sort_by_key(|entry| {
            let version = entry.version();
            (
                Reverse(entry.class()),
                version.is_none(),
                Reverse(version),
                entry.at,
            )
        }),
    }
    all
}

/// The entries of a change log that have the very name, in the order of their lines.
pub(super) fn entries<'a>(path: &'a str, lines: &Lines, name: &str, deed: Deed) -> Vec<Entry<'a>> {
    let all = headings(path, lines);
    let having = lines
        .iter()
        .filter(|(_, line)| place_of(line, name).is_some());
    let entries = having.map(|(&at, line)| {
        let span = bullet(lines, at);
        let of_version = all.iter().rev().find(|heading| heading.at <= at);
        let top = of_version.map_or(1, |heading| heading.at);
        Entry {
            path,
            at,
            lines: span,
            is_marked: is_marked(line, name),
            strength: strength(lines, (top, span), name, deed),
            heading: above(path, lines, &all, at),
        }
    });
    let mut entries: Vec<Entry<'a>> = entries.collect();
    entries.dedup_by_key(|entry| entry.lines);
    entries
}

/// The version that a line stands under: the nearest heading above it without a gap, or what the file is called.
fn above(path: &str, lines: &Lines, all: &[Heading], at: u32) -> Option<Heading> {
    let nearest = all.iter().rev().find(|heading| heading.at <= at);
    let known = nearest.filter(|heading| (heading.at..at).all(|at| lines.contains_key(&at)));
    let of_file = || {
        let own = version_of_file(path)?;
        let title = own.told();
        let (named, date) = (Named::Version(own), None);
        Some(Heading {
            at: 1,
            begins: 1,
            named,
            date,
            title,
        })
    };
    known.cloned().or_else(of_file)
}

/// A part of a name goes on.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where the very name stands, and no longer one that begins with it: `JoinSet`, but not `JoinSet::spawn`.
fn place_of(text: &str, name: &str) -> Option<usize> {
    let goes_on = |behind: &str| {
        let bare = behind
            .strip_prefix("::")
            .or_else(|| behind.strip_prefix('.'));
        behind.starts_with(is_part)
            || behind.starts_with('-')
            || bare.is_some_and(|bare| bare.starts_with(is_part))
    };
    text.match_indices(name).map(|(at, _)| at).find(|&at| {
        !text[..at].ends_with(is_part)
            && !text[..at].ends_with('-')
            && !goes_on(&text[at + name.len()..])
    })
}

fn is_marked(line: &str, name: &str) -> bool {
    let before = place_of(line, name).map_or("", |at| &line[..at]);
    let path = |c: char| is_part(c) || matches!(c, ':' | '.' | '~' | '!');
    before.trim_end_matches(path).ends_with('`')
}

/// The entry that a line belongs to: from its bullet to the next.
fn bullet(lines: &Lines, at: u32) -> (u32, u32) {
    let text = |at: u32| lines.get(&at).map(|line| line.trim());
    let begins = |at: u32| text(at).is_some_and(is_bullet);
    let is_apart = |at: u32| text(at).is_none_or(str::is_empty) || is_sub_heading(lines, at);
    let mut first = at;
    while !begins(first) && at - first < MOST_LINES && first > 1 && !is_apart(first - 1) {
        first -= 1;
    }
    let mut last = at;
    while last - at < MOST_LINES && !begins(last + 1) && !is_apart(last + 1) {
        last += 1;
    }
    (first, last)
}

fn is_bullet(text: &str) -> bool {
    ["- ", "* ", "+ ", "• ", "*   ", "-\t"]
        .iter()
        .any(|sign| text.starts_with(sign))
}

/// What an entry says of the name, under a version that begins at a line.
fn strength(
    lines: &Lines,
    (top, (first, last)): (u32, (u32, u32)),
    name: &str,
    deed: Deed,
) -> Strength {
    let text = (first..=last).filter_map(|at| lines.get(&at));
    let text = text.map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let said = text
        .split(". ")
        .filter_map(|sentence| of_sentence(sentence, name, deed));
    let said = said.max().unwrap_or(Strength::Named);
    match is_subject(&text, name, deed) && is_under(lines, top..first, deed) {
        true => said.max(Strength::Listed),
        false => said,
    }
}

/// What is before a name without what is joined to that, which belongs to it: ``sphinx.ext.napoleon``.
fn apart(before: &str) -> &str {
    before.trim_end_matches(|c: char| !c.is_whitespace())
}

/// What is joined to a name behind it, and what comes then.
fn joined(behind: &str) -> (&str, &str) {
    let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
    behind.split_at(end)
}

/// A word in small letters, without its signs.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase()
}

/// What a sentence says of the name, if it has it.
fn of_sentence(sentence: &str, name: &str, deed: Deed) -> Option<Strength> {
    let at = place_of(sentence, name)?;
    let (before, behind) = (&sentence[..at], &sentence[at + name.len()..]);
    let is_verb = |word: &str| deed.verbs().contains(&&*bare(word));
    let names_other = |text: &str| text.trim_end_matches('`').contains('`') || text.contains("::");
    let is_beside = has_own_noun(sentence, name, at);
    let words: Vec<&str> = apart(before).split_whitespace().collect();
    let active = words.iter().rposition(|word| is_verb(word));
    let active = active.map(|verb| {
        let between = &words[verb + 1..];
        let is_of_other = names_other(&between.join(" ")) || has_preposition(between) || is_beside;
        match is_of_other || words.len() - verb > FAR {
            true => Strength::Beside,
            false => Strength::Said,
        }
    });
    // "X: add support" does something else to it; "X is removed" is what was asked for.
    let words: Vec<&str> = joined(behind).1.split_whitespace().collect();
    let passive = words.iter().position(|word| is_verb(word)).map(|verb| {
        let before = &words[..verb];
        let is_done = before.iter().any(|word| PASSIVE.contains(word)) && !before.contains(&"will");
        let is_of_it = !is_beside && auxiliary(&words).is_some_and(|at| at < verb);
        match is_done && is_of_it && verb < FAR && !names_other(&before.join(" ")) {
            true => Strength::Said,
            false => Strength::Beside,
        }
    });
    active.max(passive).or(Some(Strength::Named))
}

/// Whether something was done in it or for it, and not to it; "support for it" is it.
fn has_preposition(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let is_of = matches!(*word, "for" | "of");
        let is_support = is_of && at > 0 && words[at - 1].eq_ignore_ascii_case("support");
        PREPOSITIONS.contains(word) && !is_support
    })
}

const PREPOSITIONS: [&str; 8] = ["by", "for", "from", "in", "of", "on", "to", "with"];

/// So many words apart, a verb may be of something else.
const FAR: usize = 9;
const PASSIVE: [&str; 9] = [
    "is", "are", "was", "were", "been", "be", "gets", "got", "now",
];

/// Whether the heading above an entry of a version, or the line that its list begins with, says that this was done to all of them.
fn is_under(lines: &Lines, above: Range<u32>, deed: Deed) -> bool {
    let known = above.rev().take_while(|at| lines.contains_key(at));
    let mut titles =
        known.filter(|at| is_sub_heading(lines, *at) && lines[at].contains(char::is_alphabetic));
    titles.next().is_some_and(|at| {
        let title = lines[&at].to_lowercase();
        let says = |deed: Deed| deed.headings().iter().any(|word| title.contains(word));
        // "Deprecation removals" are removals.
        says(deed) && (deed != Deed::Deprecated || !says(Deed::Removed))
    })
}

/// The pattern of lines that have the very name; with a verb of it, those that say so.
pub(in super::super) fn pattern(name: &str, deed: Option<Deed>) -> String {
    let name = format!(
        r"(?-i:(?:^|[^\w-]){}(?:$|[^\w.:-]|[.:](?:$|[^\w:])))",
        regex::escape(name)
    );
    match deed {
        None => name,
        Some(deed) => {
            let verbs = deed.verbs().join("|");
            format!(r"(?i)\b(?:{verbs})\b.*{name}|{name}.*\b(?:{verbs})\b")
        }
    }
}
