//! Which part of the history a question asks for: days, months and years, and how many commits.
//!
//! There is no clock here: "last week" is handed on as "1 week ago", which those count back who know what
//! day it is. Pure.

use super::{
    super::{lexicon::holds, protocol::inert},
    Change,
};
use crate::words::{Asked, Language};

mod authors;
mod commits;
mod happened;
mod hash;
mod near;
mod period;

pub(super) use happened::{is_opener, says_it_happened};

use authors::taken_authors;
use commits::{
    asks_what_it_changed, is_sample, one_of_them, taken_author, taken_count, taken_number,
};
use hash::{Hashes, between, is_commit, taken_hashes};
pub(in super::super) use hash::{is_of_lines, says_no_more_of_commits};
pub(in super::super) use near::is_countable;
use near::{day_after, day_before, is_later};
use period::{YEARS, days_of, digits, is_named, period_at};

/// What is left out of the history, and what of it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Bounds {
    /// The first day, `2026-11-20`, `yesterday`, `3 days ago`; or the commit behind which they come: `1a9e23a`.
    pub(in super::super) since: Option<String>,
    /// The last one, or the last commit: `1a9e23a`, `the commit before 1a9e23a`.
    pub(in super::super) until: Option<String>,
    /// How many commits were asked for.
    pub(in super::super) most: Option<u64>,
    /// Whether it was asked how many there are.
    pub(in super::super) is_counted: bool,
    /// Whether it was asked who made them, and how many each.
    pub(in super::super) is_by_author: bool,
    /// Whether the newest `most` are to be looked through, and not so many found that say something.
    pub(in super::super) is_sample: bool,
    /// Whose commits.
    pub(in super::super) author: Option<String>,
    /// Whether that may be no author: "what did Session change?".
    pub(in super::super) may_be_no_author: bool,
    /// Which one of these days, if it is a single one.
    pub(in super::super) one: Option<Change>,
    /// Whether it is asked what that one changed.
    pub(in super::super) is_detailed: bool,
    /// The hash of the only one.
    pub(in super::super) commit: Option<String>,
    /// Whether that may be something else that is written so: a color, a checksum.
    pub(in super::super) may_be_no_commit: bool,
    /// How many were told before, behind which it goes on.
    pub(in super::super) told_before: u64,
}

/// A word of a question, without the marks around it.
struct Token<'a> {
    word: &'a str,
    bare: String,
}

impl Bounds {
    /// What a question says of it, and the question without that.
    pub(in super::super) fn taken_from(question: &str) -> (Self, String) {
        let mut tokens = tokens(question);
        let (commit, is_called, (after, up_to)) = match taken_hashes(&mut tokens) {
            Some(Hashes::One { hash, is_called }) => (Some(hash), is_called, (None, None)),
            Some(Hashes::Between(after, up_to)) => (None, true, (after, up_to)),
            None => (None, true, (None, None)),
        };
        let (since, until) = taken_days(&mut tokens).unwrap_or_default();
        let (since, until) = (after.or(since), up_to.or(until));
        // Without days: "may" is a month there.
        let is_counted = taken_count(&mut tokens);
        let has_days = since.is_some() || until.is_some();
        let authors = taken_authors(&mut tokens);
        let author = taken_author(&mut tokens, has_days);
        let may_be_no_author = author.as_ref().is_some_and(|(_, certain)| !certain);
        let is_sample = is_sample(&bare(&tokens));
        let most = taken_number(&mut tokens).or(authors.flatten());
        let words = bare(&tokens);
        let one = one_of_them(&words).filter(|_| most.is_none() && commit.is_none());
        let is_detailed = one.is_some() && asks_what_it_changed(&words);
        let one = one.filter(|_| has_days || is_detailed);
        let bounds = Self {
            since,
            until,
            most,
            is_counted,
            is_by_author: authors.is_some(),
            is_sample: is_sample && most.is_some(),
            author: author.map(|(name, _)| name),
            may_be_no_author,
            one,
            is_detailed,
            commit,
            may_be_no_commit: !is_called,
            told_before: 0,
        };
        let rest: Vec<&str> = tokens.iter().map(|token| token.word).collect();
        match bounds.lists() {
            true => (bounds, rest.join(" ")),
            false => (bounds, question.to_owned()),
        }
    }

    pub(in super::super) const fn has_days(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    /// Whether those of these bounds are wanted, and not one that says something.
    pub(in super::super) fn lists(&self) -> bool {
        self.has_days() || self.most.is_some() || self.are_of_commits()
    }

    /// Whether they may be several, of certain days or counted.
    pub(in super::super) const fn tells_several(&self) -> bool {
        let is_single = self.one.is_some() || self.commit.is_some() || self.is_sample;
        (self.has_days() || self.is_counted) && !is_single
    }

    /// Whether it asks for commits, in whatever words besides.
    pub(super) fn are_of_commits(&self) -> bool {
        let is_of_people = self.is_by_author || self.author.is_some();
        self.is_counted || is_of_people || self.commit.is_some() || self.has_commits()
    }

    /// Whether commits bound it, and not days alone.
    pub(in super::super) fn has_commits(&self) -> bool {
        let mut bounds = self.since.iter().chain(&self.until);
        bounds.any(|bound| is_commit(bound))
    }

    /// These days, of what was asked for before: "and last week?".
    pub(in super::super) fn of_the_same(self, before: Self) -> Self {
        Self {
            since: self.since,
            until: self.until,
            most: self.most,
            is_counted: self.is_counted || before.is_counted,
            is_by_author: self.is_by_author || before.is_by_author,
            is_sample: false,
            may_be_no_author: match self.author {
                Some(_) => self.may_be_no_author,
                None => before.may_be_no_author,
            },
            author: self.author.or(before.author),
            one: self.one.or(before.one),
            is_detailed: self.is_detailed || before.is_detailed,
            commit: None,
            may_be_no_commit: false,
            told_before: 0,
        }
    }

    /// Those behind so many that were told.
    pub(in super::super) const fn behind(&mut self, told: u64) {
        self.told_before = told;
        self.is_counted = false;
    }

    /// Ends before what it begins with, and tells whether it begins with anything.
    pub(in super::super) fn end_before(&mut self) -> bool {
        let until = self.since.take().map(before);
        let has_begin = until.is_some();
        self.until = until.or(self.until.take());
        has_begin
    }

    /// Whose and of which days, as it stands in a sentence behind what it is said of.
    pub(in super::super) fn told(&self) -> String {
        let author = self.author.as_ref();
        let by = author.map(|author| format!(" by {}", inert(author)));
        by.unwrap_or_default() + &self.days_told()
    }

    /// The days of it alone.
    pub(in super::super) fn days_told(&self) -> String {
        match (&self.since, &self.until) {
            (Some(first), None) if first == THIS_YEAR => format!(" of {first}"),
            (Some(first), Some(last)) if is_commit(first) || is_commit(last) => {
                between(first, last)
            }
            (Some(first), Some(last)) if first == last => format!(" of {first}"),
            (Some(first), Some(last)) => format!(" from {first} to {last}"),
            (Some(first), None) => format!(" since {first}"),
            (None, Some(last)) => format!(" until {last}"),
            (None, None) => String::new(),
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let words = text.split_whitespace().map(|word| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let bare = bare.to_lowercase().replace('’', "'");
        Token { word, bare }
    });
    let mut tokens: Vec<Token<'_>> = words.collect();
    let here = |token: &&mut Token<'_>| token.bare == HIER;
    if tokens.iter().any(|token| token.bare == HIER)
        && Asked::read(text).language != Language::French
        && !tokens.iter().any(|token| holds(FRENCH, &token.bare))
    {
        tokens
            .iter_mut()
            .filter(here)
            .for_each(|token| token.bare.clear());
    }
    tokens
}

/// What ends just before some days or commits begin.
fn before(since: String) -> String {
    if is_commit(&since) || !is_countable(&since) {
        // Those behind a commit begin without it.
        return since;
    }
    let named = || format!("{DAY_BEFORE}{since}");
    match since.strip_prefix(DAY_AFTER) {
        Some(day) => day.to_owned(),
        None => day_before(&since).unwrap_or_else(named),
    }
}

/// What the search knows for a day beside a named one.
const DAY_BEFORE: &str = "the day before ";
const DAY_AFTER: &str = "the day after ";

/// What is not over, so that nothing is told to be since it.
const THIS_YEAR: &str = "this year";

/// Yesterday in French, and here in German.
const HIER: &str = "hier";
/// What makes French of a few words.
const FRENCH: &str = "et depuis avant après quoi qui";

fn bare(tokens: &[Token<'_>]) -> Vec<String> {
    tokens.iter().map(|token| token.bare.clone()).collect()
}

/// How many words the first phrase of a list has that these begin with.
fn said_first(words: &[String], phrases: &str) -> Option<usize> {
    phrases.split(" | ").find_map(|phrase| {
        let said: Vec<&str> = phrase.split(' ').collect();
        let is_said = words.len() >= said.len() && said.iter().zip(words).all(|(a, b)| a == b);
        is_said.then_some(said.len())
    })
}

/// The first and the last day, either of which may be left open.
type Days = (Option<String>, Option<String>);

/// Takes the first days that are named, with the words that lead to them.
fn taken_days(tokens: &mut Vec<Token<'_>>) -> Option<Days> {
    let words = bare(tokens);
    let (at, period) = (0..words.len()).find_map(|at| Some((at, period_at(&words, at)?)))?;
    let end = at + period.words;
    let before = |back: usize| words.get(at.wrapping_sub(back)).map_or("", String::as_str);
    let second = words
        .get(end)
        .filter(|word| holds(TO, word))
        .and_then(|_| period_at(&words, end + 1));
    let leads = (1..=at).take_while(|back| holds(LEADING, before(*back)));
    let led = leads.take(MOST_LEADING).count();
    let is_led_by = |list: &str| (1..=led).any(|back| holds(list, before(back)));
    let (days, end) = match second {
        // Which of the two is the earlier depends on the day it is.
        Some(second) if is_named(&period) || is_named(&second) => {
            let last = format!("{} after {}", second.first, period.first);
            ((Some(period.first), Some(last)), end + 1 + second.words)
        }
        Some(second) => {
            let end = end + 1 + second.words;
            (
                match is_later(&period.first, &second.first) {
                    true => (Some(second.first), period.last.or(Some(period.first))),
                    false => (Some(period.first), second.last.or(Some(second.first))),
                },
                end,
            )
        }
        // Who has no clock does not know the day before them; whoever is asked so says what is no day.
        None if is_named(&period) && is_led_by(BEFORE) => {
            ((None, Some(format!("{DAY_BEFORE}{}", period.first))), end)
        }
        None if is_named(&period) && is_led_by(AFTER) => {
            ((Some(format!("{DAY_AFTER}{}", period.first)), None), end)
        }
        None if is_led_by(BEFORE) => {
            let until = day_before(&period.first).unwrap_or(period.first);
            ((None, Some(until)), end)
        }
        None if is_led_by(AFTER) => {
            let since = period.last.as_deref().and_then(day_after);
            ((since.or(period.last).or(Some(period.first)), None), end)
        }
        None if is_led_by(SINCE) => ((Some(period.first), None), end),
        None if is_led_by(UNTIL) => ((None, period.last.or(Some(period.first))), end),
        None => ((Some(period.first), period.last), end),
    };
    tokens.drain(at - led..end);
    Some(days)
}

/// Most words before days that lead to them.
const MOST_LEADING: usize = 3;
/// What leads to days: which of them are meant, or nothing.
const LEADING: &str = "\
    since after from until till before up to between in on at of during the over within for \
    seit ab vom von bis vor nach zwischen im am in den dem der während depuis après avant jusqu'au jusqu'à entre du le la les \
    en au dans pendant durant desde después antes hasta del de el los las durante";
const SINCE: &str = "since from seit ab vom depuis desde";
const UNTIL: &str = "until till bis jusqu'au jusqu'à hasta";
/// What leads to days that are not meant themselves.
const BEFORE: &str = "before vor avant antes";
const AFTER: &str = "after nach après después";
/// What is bounded.
const COMMITS: &str = "commit commits changes änderungen changement changements cambio cambios";
const LAST: &str = "\
    last latest recent newest past previous letzte letzten letzter jüngsten vergangenen neuesten dernier derniers \
    dernières último últimos últimas";
/// What stands between the first day and the last.
const TO: &str = "to and until till through bis und au à et hasta y al";

#[cfg(test)]
mod tests;
