//! Where a question is to be looked up besides the files: in the history, in notes, where a name is used, or
//! in no single place because it is about the whole.
//!
//! By the words of the question, in the four languages that searches know. What is spelt as a name is
//! one: "where is Decision defined?" is not about what was decided. Pure.

use super::{
    kin,
    lexicon::{holds, without_politeness},
};

mod bounds;
mod chores;
mod facts;
mod listing;
mod lists;

pub(super) use bounds::{Bounds, is_countable, is_of_lines, says_no_more_of_commits};
pub(super) use chores::{Chore, is_of_chore};
pub(super) use facts::{Fact, Tongue, is_of_fact};
pub(super) use listing::{Listing, State, Tasks, asks_what_it_is, is_of_decision, is_of_mention};

use bounds::{is_opener, says_it_happened};
use chores::is_begun_by;
use lists::*;

/// What a question wants to hear about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interest {
    /// Places that say it.
    Places,
    /// Where a name is used.
    Uses,
    /// What was noted.
    Notes,
    /// What was decided or agreed.
    Settled,
    /// What notes have, as a list.
    Listed(Listing),
    /// Who changed something, when and why.
    History(Change),
    /// What the project is and how it is laid out.
    Overview,
    /// What every project states of itself.
    Facts(Fact),
    /// How it is built, tested, run or installed.
    HowTo(Chore),
}

/// Which change of several answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    First,
    Latest,
}

impl Interest {
    pub(super) const fn is_of_history(self) -> bool {
        matches!(self, Self::History(_))
    }

    /// Whether the project as such is asked about, and nothing in it.
    pub(super) const fn is_of_project(self) -> bool {
        matches!(self, Self::Facts(_) | Self::HowTo(_))
    }

    /// Of a question as it was put, without its quotations.
    pub(super) fn of(question: &str) -> Self {
        let (_, said) = Self::said(question);
        let fact = Fact::asked(&said).map(Self::Facts);
        let chore = || Chore::asked(&said).map(Self::HowTo);
        fact.or_else(chore)
            .unwrap_or_else(|| Self::beside_facts(question))
    }

    /// Of an order, which may be one that a command does: "run the tests".
    pub(super) fn of_order(order: &str) -> Self {
        let lower = order.trim().to_lowercase();
        let (order, _) = without_politeness(&lower);
        let (words, said) = Self::said(order);
        let is_command = words.first().is_some_and(|word| is_begun_by(word));
        let chore = Chore::in_words(&said).filter(|_| is_command);
        chore.map_or(Self::Places, Self::HowTo)
    }

    /// The same of a question that asks for nothing of the project as such, however it is worded.
    pub(super) fn beside_facts(question: &str) -> Self {
        let (bounds, question) = Bounds::taken_from(question);
        let (words, said) = Self::said(&question);
        let any = |list: &str| words.iter().any(|word| holds(list, word));
        if let Some((listing, _)) = Listing::of(&question) {
            Self::Listed(listing)
        } else if listing::decides(&said) {
            Self::Settled
        } else if let Some(change) = bounds.one.or_else(|| change_in(&words, &said)) {
            Self::History(change)
        } else if bounds.are_of_commits() || (bounds.has_days() && asks_what_happened(&words)) {
            Self::History(Change::Latest)
        } else if has_phrase(&said, OVERVIEW) {
            Self::Overview
        } else if asks_for_users(&words, &said) || kin::asks(&question) {
            Self::Uses
        } else if any(SETTLED) {
            Self::Settled
        } else if any(RECORDS)
            || listing::asks_for_use(&said)
            || (has_phrase(&said, NOTES) && !said.contains(" release notes "))
        {
            Self::Notes
        } else {
            Self::Places
        }
    }

    /// Its words, in small letters but for names, and all of them with one blank around each.
    fn said(question: &str) -> (Vec<String>, String) {
        let words: Vec<String> = question
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .enumerate()
            .map(|(at, word)| match at > 0 && is_name(word) {
                true => NAME.to_owned(),
                false => word.to_lowercase(),
            })
            .collect();
        let said = format!(" {} ", words.join(" "));
        (words, said)
    }
}

/// What stands for a name, which no list of words has.
const NAME: &str = "·";

/// Whether a word inside a question is spelt as names are and its English word is one of ours: nouns of
/// other languages may begin with a capital.
pub(super) fn is_name(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && letters.any(char::is_lowercase)
        && holds(ENGLISH_NOUNS, &word.to_lowercase())
}

/// Whether the word only says where something was written down.
pub(super) fn is_noted(word: &str) -> bool {
    holds(RECORDED, word)
}

/// Whether the word only says that something was changed, so that it is in no message by itself.
pub(super) fn is_change(word: &str) -> bool {
    [
        BEGUN, CHANGED, TO_BEGIN, TO_CHANGE, OF_HISTORY, NEWEST, HAPPENED,
    ]
    .iter()
    .chain(DONE.iter().map(|(done, _)| done))
    .any(|list| holds(list, word))
        || is_opener(word)
}

/// Whether a question asks for what is there since a change, or no more, and not for any change of it.
pub(super) fn comes_or_goes(question: &str) -> bool {
    let mut words = question.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        let word = word.to_lowercase();
        [BEGUN, TO_BEGIN, GONE]
            .iter()
            .any(|list| holds(list, &word))
    })
}

/// Whether the word only says that the whole is meant.
pub(super) fn is_whole(word: &str) -> bool {
    holds(WHOLE, word)
}

/// Whether the word only says that the folders of the whole are meant.
pub(super) fn is_of_tree(word: &str) -> bool {
    holds(TREE, word)
}

/// Whether the word only says that something was decided or agreed.
pub(super) fn is_settled(word: &str) -> bool {
    holds(SETTLED, word) || holds(CHOSEN, word)
}

/// Whether the word only says that a name is used.
pub(super) fn is_use(word: &str) -> bool {
    holds(USED, word) || holds(TO_USE, word)
}

/// "How are users of it told?" asks for what happens to them.
fn asks_for_users(words: &[String], said: &str) -> bool {
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    let asks_how = words.first().is_some_and(|word| holds(HOW, word));
    let asks_how_many = words.get(1).is_some_and(|word| holds(MANY, word));
    let is_about_how = asks_how && !asks_how_many;
    (has_phrase(said, USERS) && !is_about_how) || (any(WHERE) && any(USED))
}

/// Whether what was done is asked for, and not what was noted of it: of certain days that is what commits say.
fn asks_what_happened(words: &[String]) -> bool {
    let any = |list: &str| words.iter().any(|word| holds(list, word));
    let is_ordered = words.first().is_some_and(|word| holds(ORDERED, word));
    // "What happens to what was changed today" asks how it works.
    let begins_clause = |at: usize| {
        let is_relative = holds(RELATIVE, &words[at]) && !holds(POINTING, &words[at - 1]);
        holds(SUBORDINATE, &words[at]) || holds("si quand falls", &words[at]) || is_relative
    };
    let end = (1..words.len()).find(|at| !is_ordered && begins_clause(*at));
    let clause = &words[..end.unwrap_or(words.len())];
    let says = |list: &str| clause.iter().any(|word| holds(list, word));
    let beside = |list: &str| clause.iter().skip(1).any(|word| holds(list, word));
    let happened = [BEGUN, CHANGED, TO_CHANGE, OF_HISTORY, HAPPENED];
    words.first().is_some_and(|word| holds(WHAT, word))
        && (says_it_happened(clause, &happened)
            || DONE.iter().any(|(done, was)| says(done) && beside(was)))
        && !any(SETTLED)
        && !any(RECORDS)
        && !any(RECORDED)
}

fn change_in(words: &[String], said: &str) -> Option<Change> {
    let asked = (0..words.len()).find_map(|at| asked_of_people(words, at));
    let asked = asked.or_else(|| {
        let behind = ASKING
            .split(" | ")
            .filter_map(|phrase| behind_phrase(said, phrase));
        behind
            .into_iter()
            .find_map(|clause| change_of(clause.split_whitespace()))
    });
    let named = || has_phrase(said, NAMING).then(|| of_naming(words));
    let change = asked.or_else(named)?;
    Some(match words.iter().any(|word| holds(LAST, word)) {
        true => Change::Latest,
        false => change,
    })
}

fn of_naming(words: &[String]) -> Change {
    match words.iter().any(|word| holds(BEGUN, word)) {
        true => Change::First,
        false => Change::Latest,
    }
}

/// "Who added it?": the change has to be what "who" did, and not what comes after it.
fn asked_of_people(words: &[String], at: usize) -> Option<Change> {
    let behind = words.get(at + 1..)?;
    let is_of_somebody = at > 1 && holds(ARTICLES, &words[at - 2]);
    if !holds(WHO, words.get(at)?) || is_of_somebody {
        return None;
    }
    let beside = behind.iter().take_while(|word| holds(BESIDE, word)).count();
    let (beside, behind) = behind.split_at(beside);
    let has = |list: &str| beside.iter().any(|word| holds(list, word));
    let most = match (
        has("hat haben hatte"),
        words[at] == "qui" && !has("a ont avait"),
    ) {
        // "Wer hat den Cache hinzugefügt": the verb is the last word.
        (true, _) => behind.len(),
        (false, true) => 0,
        (false, false) => 1,
    };
    // "Who did add it?"
    let did = beside.iter().filter(|word| *word == "did");
    change_of(did.chain(behind.iter().take(most)).map(String::as_str))
}

/// The change that a clause asks for, before what else it says of the time.
fn change_of<'a>(clause: impl Iterator<Item = &'a str>) -> Option<Change> {
    let clause: Vec<&str> = clause
        .take_while(|word| !holds(SUBORDINATE, word))
        .collect();
    let any = |list: &str| clause.iter().any(|word| holds(list, word));
    // "When is it removed?" asks how it works; "when was it?" what happened.
    let did = any("did");
    if any(BEGUN) || (did && any(TO_BEGIN)) {
        Some(Change::First)
    } else if any(CHANGED) || (did && any(TO_CHANGE)) {
        Some(Change::Latest)
    } else {
        None
    }
}

/// What stands behind a phrase; "did" again, if it ends so.
fn behind_phrase<'a>(said: &'a str, phrase: &str) -> Option<&'a str> {
    let mut places = said.match_indices(phrase);
    let (at, _) = places
        .find(|(at, _)| said[..*at].ends_with(' ') && said[at + phrase.len()..].starts_with(' '))?;
    let kept = if phrase.ends_with("did") {
        "did".len()
    } else {
        0
    };
    Some(&said[at + phrase.len() - kept..])
}

fn has_phrase(said: &str, phrases: &str) -> bool {
    phrases.split(" | ").any(|phrase| {
        said.match_indices(phrase)
            .any(|(at, _)| said[..at].ends_with(' ') && said[at + phrase.len()..].starts_with(' '))
    })
}

#[cfg(test)]
mod tests;
