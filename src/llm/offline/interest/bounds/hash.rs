//! The hash of a commit that a question names. Pure.

use super::{super::super::lexicon::holds, Token};

/// Least digits of one that is called a commit, of one that says so by itself, and most of all.
const SHORTEST: usize = 4;
const TELLING: usize = 7;
const LONGEST: usize = 40;
/// Most words of a question that only names it: "show me 1a9e23a".
const FEW: usize = 4;

/// Takes the hash of "what did commit 1a9e23a change?".
pub(super) fn taken_hash(tokens: &mut Vec<Token<'_>>) -> Option<String> {
    let any = |list: &str| tokens.iter().any(|token| holds(list, &token.bare));
    let is_short = tokens.len() <= FEW && any(SHOWING);
    let is_of_commits = any(OF_COMMITS) || is_short;
    let at = (0..tokens.len()).find(|at| {
        let before = at.checked_sub(1).map(|at| &*tokens[at].bare);
        let is_called = before.is_some_and(|word| holds(CALLED, word));
        is_hash(&tokens[*at].bare, is_called) && (is_called || is_of_commits)
    })?;
    Some(tokens.remove(at).bare)
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

/// What a hash is called.
const CALLED: &str = "commit commits hash revision sha sha1";
/// What is asked of commits, so that a number beside it may be the hash of one.
const OF_COMMITS: &str = "\
    commit commits change changes changed diff wrote committed geändert ändert änderte änderungen changé modifié cambió \
    cambios cambiado";
const SHOWING: &str =
    "show explain describe what zeig zeige erkläre montre explique muestra muéstrame explica";
