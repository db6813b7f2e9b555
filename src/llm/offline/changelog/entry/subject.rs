//! What an entry of a change log is about. Pure.

use super::{Deed, FAR, PASSIVE, apart, bare, is_marked, joined, place_of};
use crate::llm::offline::lexicon::holds;

/// So many words, signs included, stand before what an entry is about.
const SUBJECT: usize = 5;

/// Whether an entry is the name of what it is about: "The `x` option" and "`x` for files", but not "`x` now warns",
/// "fix `x`" and "x documentation".
pub(super) fn is_subject(text: &str, name: &str, deed: Deed) -> bool {
    let Some(at) = place_of(text, name) else {
        return false;
    };
    let (before, behind) = text.split_at(at);
    let is_beside = has_own_noun(text, name, at);
    let before = apart(before).split_whitespace();
    let leads = |word: &str| {
        let bare = bare(word);
        let is_other = word.contains('`') || word.trim_end_matches('*').ends_with(':');
        bare.is_empty() || is_other || holds(LEADING, &bare) || holds(KINDS, &bare)
    };
    let are_leading = before.clone().count() <= SUBJECT && before.clone().all(leads);
    let (joined, rest) = joined(&behind[name.len()..]);
    let sentence = rest.split_once(". ").map_or(rest, |(first, _)| first);
    let words: Vec<String> = sentence.split_whitespace().map(bare).collect();
    let changes = match deed {
        Deed::Added => CHANGING,
        Deed::Removed | Deed::Deprecated => "longer",
    };
    let is_changed = words.iter().take(FAR).any(|word| holds(changes, word));
    let is_code = joined.contains('`');
    // "task: add a timer" is about a part of it.
    let is_part = joined.contains(['\'', '’']) || (joined.ends_with(':') && !is_code);
    let ends = joined.ends_with([',', ';', ':', '.', ')', ']']);
    let is_named = words.first().is_none_or(|first| {
        let is_plain = sentence.trim_start().starts_with(char::is_alphanumeric);
        let says_what_it_does = is_code && first.ends_with('s') && !holds(PARTS, first);
        let is_noun = (holds(KINDS, first) && !is_beside) || holds(BEHIND, first);
        !is_plain || is_noun || says_what_it_does
    });
    are_leading && !is_changed && !is_part && (ends || is_named)
}

/// Whether a noun behind a name makes something else of it: "`Router` tests", "a new `Model` instance", but not "the
/// `wait` setting".
pub(super) fn has_own_noun(sentence: &str, name: &str, at: usize) -> bool {
    let (before, behind) = (&sentence[..at], &sentence[at + name.len()..]);
    let (joined, rest) = joined(behind);
    if joined.contains(['\'', '’']) {
        return true;
    }
    // The address of a link and the brackets of a call end nothing.
    let is_closed = joined.contains("](") || joined.contains("()");
    if joined.ends_with([',', ';', ':', '.', '!', '?']) || (joined.ends_with(')') && !is_closed) {
        return false;
    }
    let first = rest.split_whitespace().next().unwrap_or_default();
    let noun = bare(first);
    if !first.starts_with(char::is_alphabetic) || holds(BEHIND, &noun) || holds(SMALL, &noun) {
        return false;
    }
    // A type is no option: "Queue option" is one of it.
    let is_type = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    let is_option = is_type && !is_marked(sentence, name);
    let is_kind = if holds(SEVERAL, &noun) {
        // One name is not several of them, unless others stand before it.
        before.contains([',', '&']) || [" and ", " or "].iter().any(|and| before.contains(and))
    } else if holds(OPTIONS, &noun) {
        !is_option
    } else {
        holds(KINDS, &noun) || holds(MORE_KINDS, &noun)
    };
    !is_kind && !PASSIVE.contains(&&*noun) && !noun.ends_with("ly")
}

/// Where the auxiliary stands behind a name, with nothing between but what it is and others like it.
pub(super) fn auxiliary(words: &[&str]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let noun = bare(word);
        if PASSIVE.contains(&&*noun) || holds(HAVING, &noun) {
            return Some(at);
        }
        let is_beside = word.starts_with('(') && word.ends_with(')');
        let is_kind =
            holds(KINDS, &noun) || holds(MORE_KINDS, &noun) || holds("also itself", &noun);
        at += match holds("and or", &noun) {
            true => 2,
            false if is_kind || is_beside => 1,
            false => return None,
        };
    }
    None
}

/// What stands before what an entry is about.
const LEADING: &str = "\
    the a an all and or for new";
/// What it is, beside its name.
const KINDS: &str = "\
    api argument attribute class classes command commands crate extension feature field flag function macro method \
    methods module option options package parameter setting settings struct support trait type";
/// What tells more of it.
const BEHIND: &str = "\
    and as at by for from in of on or that to via when which with";
/// Kinds of which a name is one, in entries that say what was done to it.
const MORE_KINDS: &str = "\
    alias component constant decorator enum implementation interface mixin plugin variable variant widget";
/// Those of which several are meant.
const SEVERAL: &str = "classes commands methods options settings";
/// Those that types have, and are not.
const OPTIONS: &str = "argument attribute field flag option parameter setting";
/// What belongs to something, in words that could say what it does.
const PARTS: &str = "\
    benchmarks docs errors examples exports fixtures helpers imports instances internals logs messages objects snapshots \
    tests tutorials typos warnings";
/// What begins another part of a sentence behind a name.
const SMALL: &str = "\
    after again because before but can could did does either entirely had has have here if instead into it may must no \
    not only rather should since so than that then they thus too under unless until we where while who whose will \
    without would you";
/// What stands before "been".
const HAVING: &str = "had has have";
/// What is said of what was there before.
const CHANGING: &str = "\
    accept accepts again allow allows also are can correctly does got gets handles has have ignores instead is \
    longer may must no now raises respects returns should supports takes uses warns was were will works";
