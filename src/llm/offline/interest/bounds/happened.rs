//! Whether a question of some days asks what happened then, and not what some code does with them. Pure.

use super::super::super::lexicon::holds;

/// Whether one of these words says that something happened, by lists of those that may.
pub(in super::super) fn says_it_happened(clause: &[String], lists: &[&str]) -> bool {
    let is_it = |word: &str| lists.iter().any(|list| holds(list, word)) && !holds(NOT_ALONE, word);
    let was_written = |at: usize| {
        let before = &clause[..at];
        holds(WRITTEN, &clause[at]) && before.iter().any(|word| holds(WAS, word))
    };
    // "Which file is created today?" asks what does it.
    let is_present = |at: usize| {
        let before = at.checked_sub(1).map(|at| &*clause[at]);
        before.is_some_and(|word| holds(IS, word)) && !holds(EVER_NEW, &clause[at])
    };
    (0..clause.len()).any(|at| was_written(at) || (is_it(&clause[at]) && !is_present(at)))
}

/// Whether the word only begins a question that asks what happened ("did anything change"), or says which of
/// several commits.
pub(in super::super) fn is_opener(word: &str) -> bool {
    holds(OPENERS, word)
}

/// What is as well a noun of other things, or says when.
const NOT_ALONE: &str = "\
    log git blame last latest recent recently lately newest author first written zuletzt geschrieben écrit escrito";
const WRITTEN: &str = "written geschrieben écrit escrito";
const WAS: &str = "was were has have had been got wurde wurden hat haben a ont été ha han fue";
const IS: &str = "is are be being gets get wird werden";
/// What is so now because it came about then: "what is new since Friday?".
const EVER_NEW: &str = "new neu changed commit commits changes geändert";

const OPENERS: &str = "\
    anything something nothing everything any some irgendetwas irgendwas etwas nichts alles quelque chose rien tout algo \
    nada todo earliest oldest erste erster ersten erstes premier primer primero";
