//! The hashes of commits that a question names: that of the one which is asked for, or of those that bound what is
//! asked for. Pure.

use super::{super::super::lexicon::holds, AFTER, BEFORE, SINCE, TO, Token, UNTIL};

/// Least digits of one that is called a commit, of one that says so by itself, and most of all.
const SHORTEST: usize = 4;
const TELLING: usize = 7;
const LONGEST: usize = 64;
/// Most words of a question that only names it: "show me 1a9e23a".
const FEW: usize = 4;

/// What hashes are named for.
#[derive(Debug)]
pub(super) enum Hashes {
    /// It is asked for, or for what else is written so, unless it is called a commit.
    One { hash: String, is_called: bool },
    /// What it has comes behind the first, up to the last.
    Between(Option<String>, Option<String>),
}

/// Takes the hash of "what did commit 1a9e23a change?", or "since 1a9e23a".
pub(super) fn taken_hashes(tokens: &mut Vec<Token<'_>>) -> Option<Hashes> {
    let any = |list: &str| tokens.iter().any(|token| holds(list, &token.bare));
    let is_short = tokens.len() <= FEW && any(SHOWING);
    let is_of_commits = any(OF_COMMITS) || is_short || is_bare(tokens);
    let is_of_code = tokens.first().is_some_and(|it| holds(WHERE, &it.bare));
    let (at, is_called) = (0..tokens.len()).find_map(|at| {
        let is_called = holds(CALLED, word(tokens, at, 1));
        let is_one = is_range(&tokens[at].bare) || is_hash(&tokens[at].bare, is_called);
        let is_meant = is_called || (is_of_commits && !is_of_code);
        (is_one && is_meant).then_some((at, is_called))
    })?;
    if let Some((first, last)) = tokens[at].bare.split_once("..") {
        let last = last.trim_start_matches('.').to_owned();
        let between = Hashes::Between(Some(first.to_owned()), Some(last));
        tokens.remove(at);
        return Some(between);
    }
    if let Some((taken, between)) = bounding(tokens, at) {
        tokens.drain(taken);
        return Some(between);
    }
    // Names of versions and branches are not known, and one of two ends is not what is asked for.
    if any(BETWEEN) {
        return None;
    }
    // "Which test changes 1a2b3c4?" asks for code, "which files changed in 1a2b3c4?" does not.
    let is_of_any = tokens.first().is_some_and(|it| holds(WHICH, &it.bare));
    if is_of_any && !is_called && !holds(WITHIN, word(tokens, at, 1)) {
        return None;
    }
    let hash = tokens.remove(at).bare;
    Some(Hashes::One { hash, is_called })
}

/// Whether there is nothing else: "1a9e23a", "commit 1a9e23a".
fn is_bare(tokens: &[Token<'_>]) -> bool {
    let is_named = |token: &&Token<'_>| holds("hash sha sha1", &token.bare);
    tokens.len() == 1 + tokens.iter().filter(is_named).count()
}

/// What a hash bounds, and the words that say it.
fn bounding(tokens: &[Token<'_>], at: usize) -> Option<(std::ops::Range<usize>, Hashes)> {
    let is_beside =
        |back: usize| holds(CALLED, word(tokens, at, back)) || holds(THE, word(tokens, at, back));
    let back = 1 + (1..=at).take_while(|back| is_beside(*back)).count();
    let (lead, begin) = (word(tokens, at, back), at.checked_sub(back)?);
    let hash = || Some(tokens[at].bare.clone());
    if let Some((end, last)) = second(tokens, at).filter(|_| holds(FROM, lead)) {
        return Some((begin..end, Hashes::Between(hash(), Some(last))));
    }
    let between = if holds(BEFORE, lead) {
        let last = format!("{COMMIT_BEFORE}{}", tokens[at].bare);
        Hashes::Between(None, Some(last))
    } else if holds(AFTER, lead) || holds(SINCE, lead) {
        Hashes::Between(hash(), None)
    } else if holds(UNTIL, lead) || (lead == "to" && word(tokens, at, back + 1) == "up") {
        Hashes::Between(None, hash())
    } else {
        return None;
    };
    let begin = begin - usize::from(lead == "to");
    Some((begin..at + 1, between))
}

/// The other one of two, and where the words end that say it.
fn second(tokens: &[Token<'_>], at: usize) -> Option<(usize, String)> {
    let behind = tokens.get(at + 1..)?;
    let is_beside = |token: &&Token<'_>| holds(CALLED, &token.bare) || holds(THE, &token.bare);
    let (_, behind) = behind.split_first().filter(|(to, _)| holds(TO, &to.bare))?;
    let beside = behind.iter().take_while(is_beside).count();
    let last = behind.get(beside)?;
    is_hash(&last.bare, true).then(|| (at + 3 + beside, last.bare.clone()))
}

/// The word so many before one.
fn word<'a>(tokens: &'a [Token<'_>], at: usize, back: usize) -> &'a str {
    let token = at.checked_sub(back).and_then(|at| tokens.get(at));
    token.map_or("", |token| &token.bare)
}

/// `1a9e23a..3477bff`, also with three dots.
fn is_range(word: &str) -> bool {
    let ends = word.split_once("..");
    ends.is_some_and(|(first, last)| {
        is_hash(first, false) && is_hash(last.trim_start_matches('.'), false)
    })
}

/// Words such as "added" and numbers such as years are written with the same digits.
fn is_hash(word: &str, is_called: bool) -> bool {
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    let (digits, letters) = (has(u8::is_ascii_digit), has(u8::is_ascii_alphabetic));
    let least = if is_called { SHORTEST } else { TELLING };
    (least..=LONGEST).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits
        && (letters || (is_called && word.len() >= TELLING))
}

/// Whether what bounds a search is a commit, and no day.
pub(super) fn is_commit(bound: &str) -> bool {
    let hash = bound.strip_prefix(COMMIT_BEFORE).unwrap_or(bound);
    hash.len() >= SHORTEST && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// From where to where, where commits bound it, in words that are true whichever of two is the older one.
pub(super) fn between(first: &str, last: &str) -> String {
    let is_before = last.starts_with(COMMIT_BEFORE);
    match (is_commit(first), is_commit(last)) {
        // One of them may be named by fewer digits.
        (true, true) if first.starts_with(last) || last.starts_with(first) => {
            format!(" between {first} and itself")
        }
        (true, true) if !is_before => {
            format!(" between {first} and {last}, the newer one included")
        }
        (true, _) if is_before => format!(" behind {first}, up to {last}"),
        (true, _) => format!(" behind {first}, until {last}"),
        (false, _) => format!(" since {first}, up to {last}"),
    }
}

/// What the search knows for what a commit is built on.
const COMMIT_BEFORE: &str = "the commit before ";

/// What a hash is called.
const CALLED: &str = "commit commits revision";
/// What is asked of commits, so that a number beside it may be the hash of one.
const OF_COMMITS: &str = "\
    commit commits change changes changed diff wrote made authored committed touched touch modified reverted merged happened new done \
    geändert ändert änderte änderungen passiert neu changé modifié cambió cambios cambiado";
const SHOWING: &str =
    "show explain describe what zeig zeige erkläre montre explique muestra muéstrame explica";
/// What asks for places in the files.
const WHERE: &str = "where wo où dónde";
const WHICH: &str =
    "which welche welcher welches welchen quel quelle quels quelles qué cuál cuáles";
/// What leads to the commit that something was done in.
const WITHIN: &str = "in by with of from durch mit von dans par avec en por con de";
/// Whether a word only says that commits lie behind others, or differ.
pub(in super::super::super) fn says_no_more_of_commits(word: &str) -> bool {
    holds("came come comes kamen kommen venus vinieron", word) || is_of_lines(word)
}

/// Whether a word asks for the lines that differ, which no history shows.
pub(in super::super::super) fn is_of_lines(word: &str) -> bool {
    holds(
        "diff diffs difference differences unterschied unterschiede différence différences diferencia diferencias",
        word,
    )
}

const BETWEEN: &str = "between zwischen entre";
/// What leads to two of them.
const FROM: &str = "between from zwischen von entre de desde";
const THE: &str = "the den dem der le la el";
