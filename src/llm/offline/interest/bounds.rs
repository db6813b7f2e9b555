//! Which part of the history a question asks for: days, months and years, and how many commits.
//!
//! There is no clock here: "last week" is handed on as "1 week ago", which those count back who know what
//! day it is. Pure.

use super::super::lexicon::{DAYS_BACK, TIMES, holds, month_of, number_of, unit_of};

mod near;

use near::{day_after, day_before, is_later};

/// What is left out of the history, and what of it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Bounds {
    /// The first day: `2026-11-20`, `yesterday`, `3 days ago`.
    pub(in super::super) since: Option<String>,
    /// The last one.
    pub(in super::super) until: Option<String>,
    /// How many commits were asked for.
    pub(in super::super) most: Option<u64>,
    /// Whether it was asked how many there are.
    pub(in super::super) is_counted: bool,
}

/// Some days that follow one another; without a last one, those up to now.
#[derive(Debug)]
struct Period {
    first: String,
    last: Option<String>,
    /// How many words say it.
    words: usize,
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
        let (since, until) = taken_days(&mut tokens).unwrap_or_default();
        // Without days: "may" is a month there.
        let is_counted = taken_count(&mut tokens);
        let most = taken_number(&mut tokens);
        let bounds = Self {
            since,
            until,
            most,
            is_counted,
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

    /// Whether all commits that there are of it are wanted, and not one of them.
    pub(in super::super) const fn lists(&self) -> bool {
        self.has_days() || self.most.is_some() || self.is_counted
    }

    /// The days, as they stand in a sentence behind what they are the days of.
    pub(in super::super) fn told(&self) -> String {
        match (&self.since, &self.until) {
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
    words.collect()
}

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

/// Takes "how many" of "how many commits".
fn taken_count(tokens: &mut Vec<Token<'_>>) -> bool {
    let words = bare(tokens);
    let mut places = 0..words.len();
    let counted = places.find_map(|at| Some((at, said_first(&words[at..], HOW_MANY)?)));
    let counted = counted.filter(|(at, said)| are_there(&words[at + said..]));
    if let Some((at, said)) = counted {
        tokens.drain(at..at + said - 1);
    }
    counted.is_some()
}

/// Whether commits that are there are counted, by what is said behind them, and not those that something
/// shows or may have.
fn are_there(behind: &[String]) -> bool {
    let any = |list: &str| behind.iter().any(|word| holds(list, word));
    let is_asked = behind.first().is_none_or(|word| !holds(DOING, word));
    !any(SHOWN) && (is_asked || any(HAVING_COMMITS))
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

fn period_at(words: &[String], at: usize) -> Option<Period> {
    let behind = words.get(at..)?;
    by_date(behind)
        .or_else(|| by_month(behind))
        .or_else(|| by_year(words, at))
        .or_else(|| by_phrase(behind))
        .or_else(|| counted_back(behind))
}

/// `2026-11-20` or `2026-11`.
fn by_date(words: &[String]) -> Option<Period> {
    let parts: Vec<&str> = words.first()?.split('-').collect();
    let numbers: Option<Vec<u32>> = parts.iter().map(|part| digits(part)).collect();
    match (
        numbers?.as_slice(),
        parts.iter().map(|part| part.len()).max(),
    ) {
        ([year, month, day], Some(4)) => days_in(*year, *month, Some(*day), 1),
        ([year, month], Some(4)) => days_in(*year, *month, None, 1),
        _ => None,
    }
}

/// "November 2026", "21 November 2026", "November 21, 2026", "21 de noviembre de 2026".
fn by_month(words: &[String]) -> Option<Period> {
    let mut kept = words
        .iter()
        .enumerate()
        .filter(|(at, word)| *at == 0 || !holds("de del of the", word))
        .map(|(at, word)| (at, &**word));
    let mut next = || kept.next();
    let ((_, first), (second_at, second)) = (next()?, next()?);
    let third = next();
    let year = |word: &str| digits(word).filter(|year| YEARS.contains(year));
    if let (Some(month), Some(year)) = (month_of(first), year(second)) {
        return days_in(year, month, None, second_at + 1);
    }
    // "Between December 20 and January 5 2026": the year of the second, or the one before.
    let year_of_second = |to: usize, month: u32| {
        let to = words.get(to..).filter(|rest| holds(TO, &rest[0]))?;
        let second = by_month(&to[1..])?.first;
        let (of, second) = second.split_once('-')?;
        let is_before = digits(second.split('-').next()?)? < month;
        digits(of).map(|year| year.saturating_sub(u32::from(is_before)))
    };
    let (third_at, third) = third?;
    let (day, month) = match (month_of(first), month_of(second)) {
        (Some(month), _) => (day_of(second)?, month),
        (None, Some(month)) => (day_of(first)?, month),
        (None, None) => return None,
    };
    match year(third) {
        Some(year) => days_in(year, month, Some(day), third_at + 1),
        None => days_in(
            year_of_second(third_at, month)?,
            month,
            Some(day),
            second_at + 1,
        ),
    }
}

/// "in 2026": a number alone may be anything.
fn by_year(words: &[String], at: usize) -> Option<Period> {
    let mut before = words[..at].iter().rev();
    let before = before.find(|word| !holds(OF_YEAR, word))?;
    let year = digits(&words[at]).filter(|year| YEARS.contains(year))?;
    [SINCE, UNTIL, BEFORE, AFTER, "in im en during durante"]
        .iter()
        .any(|list| holds(list, before))
        .then(|| Period {
            first: format!("{year}-01-01"),
            last: Some(format!("{year}-12-31")),
            words: 1,
        })
}

/// "yesterday", "last week".
fn by_phrase(words: &[String]) -> Option<Period> {
    TIMES.iter().find_map(|(first, last, phrases)| {
        Some(Period {
            words: said_first(words, phrases)?,
            first: (*first).to_owned(),
            last: (!last.is_empty()).then(|| (*last).to_owned()),
        })
    })
}

/// "the last 3 days", "3 days ago", "vor 3 Tagen".
fn counted_back(words: &[String]) -> Option<Period> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let period = |number: &str, unit: &str, is_one: bool, words: usize| {
        let (number, unit) = (number_of(number)?, unit_of(unit)?);
        let first = format!("{number} {unit}s ago");
        let last = (is_one && unit == "day").then(|| first.clone());
        Some(Period { first, last, words })
    };
    if holds(LAST, word(0)) {
        return period(word(1), word(2), false, 3);
    }
    if word(2) == "ago" {
        return period(word(0), word(1), true, 3);
    }
    if holds(LAST, word(1)) {
        return period(word(0), word(2), false, 3);
    }
    DAYS_BACK.iter().find_map(|before| {
        let leads = before.split(' ').count();
        let is_led = before
            .split(' ')
            .enumerate()
            .all(|(at, one)| word(at) == one);
        is_led
            .then(|| period(word(leads), word(leads + 1), true, leads + 2))
            .flatten()
    })
}

/// Takes the number out of "the last 3 commits".
fn taken_number(tokens: &mut Vec<Token<'_>>) -> Option<u64> {
    let noun = tokens
        .iter()
        .position(|token| holds(COMMITS, &token.bare))?;
    let before = noun.saturating_sub(MOST_BEFORE)..noun;
    let is_of_last = tokens[before.clone()]
        .iter()
        .any(|token| holds(LAST, &token.bare));
    let at = before
        .rev()
        .find(|at| number_of(&tokens[*at].bare).is_some())?;
    let number = number_of(&tokens[at].bare).filter(|number| is_of_last && *number > 0)?;
    tokens.remove(at);
    Some(number.into())
}

fn days_in(year: u32, month: u32, day: Option<u32>, words: usize) -> Option<Period> {
    let most = days_of(year, month);
    let (first, last) = (day.unwrap_or(1), day.unwrap_or(most));
    let is_day = YEARS.contains(&year) && (1..=most).contains(&first);
    is_day.then(|| Period {
        first: format!("{year:04}-{month:02}-{first:02}"),
        last: Some(format!("{year:04}-{month:02}-{last:02}")),
        words,
    })
}

/// How many days a month has; none if there is no such month.
const fn days_of(year: u32, month: u32) -> u32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 0,
    }
}

/// "21", "21st".
fn day_of(word: &str) -> Option<u32> {
    digits(word.trim_end_matches(|c: char| c.is_ascii_lowercase()))
}

/// A number as days and commits have them: small enough to be counted on from.
fn digits(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok();
    number.filter(|number| is_plain && *number <= LARGEST)
}

const LARGEST: u32 = 1_000_000;

/// Years that can be those of a commit.
const YEARS: std::ops::RangeInclusive<u32> = 1970..=2099;
/// Most words before days that lead to them.
const MOST_LEADING: usize = 3;
/// So near before commits their number stands.
const MOST_BEFORE: usize = 3;

/// What asks for the number of commits, with those as its last word.
const HOW_MANY: &str = "\
    how many commits | number of commits | count of commits | count the commits | wie viele commits | wieviele \
    commits | anzahl der commits | combien de commits | nombre de commits | cuántos commits | número de commits";

/// What behind commits tells that they are not those of the history, and what does so unless it is the
/// project that has them.
const SHOWN: &str = "\
    can could may might must should will would allowed shown returned displayed listed per returns shows lists kann \
    können darf dürfen soll sollen erlaubt angezeigt gezeigt pro liefert zeigt peut peuvent affichés puede pueden \
    muestra muestran";
const DOING: &str = "do does";
const HAVING_COMMITS: &str = "we i you they project repo repository codebase";

const COMMITS: &str = "commit commits changes änderungen changements cambios";
const LAST: &str = "\
    last latest recent newest past previous letzte letzten letzter jüngsten vergangenen neuesten dernier derniers \
    dernières último últimos últimas";

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
/// What may stand between that and a year.
const OF_YEAR: &str = "de del el";
/// What stands between the first day and the last.
const TO: &str = "to and until till through bis und au à et hasta y al";

#[cfg(test)]
mod tests;
