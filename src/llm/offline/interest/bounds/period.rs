//! Days, months and years as they stand in a question. Pure.

use jiff::civil::Date;

use super::{
    super::super::lexicon::{
        DAYS_BACK, TIMES, holds, month_called, month_of, number_of, unit_of, weekday_of,
    },
    AFTER, BEFORE, COMMITS, LAST, SINCE, TO, UNTIL, said_first,
};

/// Some days that follow one another; without a last one, those up to now.
#[derive(Debug)]
pub(super) struct Period {
    pub(super) first: String,
    pub(super) last: Option<String>,
    /// How many words say it.
    pub(super) words: usize,
}

pub(super) fn period_at(words: &[String], at: usize) -> Option<Period> {
    let behind = words.get(at..)?;
    by_date(behind)
        .or_else(|| by_month(behind))
        .or_else(|| by_year(words, at))
        .or_else(|| by_phrase(behind))
        .or_else(|| by_name(words, at))
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

/// A month with its year, or a day of one that has the year of the day that follows: "between December 20 and
/// January 5 2026".
fn by_month(words: &[String]) -> Option<Period> {
    if let Some(before) = month_before(words) {
        return Some(before);
    }
    match in_month(words)? {
        (period, None) => Some(period),
        (Period { words: own, .. }, Some((month, day))) => {
            let to = words.get(own..).filter(|rest| holds(TO, &rest[0]))?;
            // Its own year alone: what follows that is of no concern here.
            let second = in_month(to.get(1..)?).filter(|(_, open)| open.is_none())?;
            days_in(year_before(month, &second.0)?, month, Some(day), own)
        }
    }
}

/// A month that has the year of the one that follows: "between February and April 2024".
fn month_before(words: &[String]) -> Option<Period> {
    let [first, to, rest @ ..] = words else {
        return None;
    };
    let month = month_of(first).filter(|_| holds(TO, to))?;
    let (second, _) = in_month(rest).filter(|(_, open)| open.is_none())?;
    days_in(year_before(month, &second)?, month, None, 1)
}

/// The year of a month that stands before these days: that of their first, unless the month is later in a year.
fn year_before(month: u32, second: &Period) -> Option<u32> {
    let (year, rest) = second.first.split_once('-')?;
    let is_before = digits(rest.split('-').next()?)? < month;
    Some(digits(year)?.saturating_sub(u32::from(is_before)))
}

/// "November 2026", "21 November 2026", "November 21, 2026", "21 de noviembre de 2026"; or a month and a day of it
/// whose year is not said.
fn in_month(words: &[String]) -> Option<(Period, Option<(u32, u32)>)> {
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
        return Some((days_in(year, month, None, second_at + 1)?, None));
    }
    let (third_at, third) = third?;
    let (day, month) = match (month_of(first), month_of(second)) {
        (Some(month), _) => (day_of(second)?, month),
        (None, Some(month)) => (day_of(first)?, month),
        (None, None) => return None,
    };
    if let Some(year) = year(third) {
        return Some((days_in(year, month, Some(day), third_at + 1)?, None));
    }
    let open = Period {
        first: String::new(),
        last: None,
        words: second_at + 1,
    };
    Some((open, Some((month, day))))
}

/// "in 2026": a number alone may be anything.
fn by_year(words: &[String], at: usize) -> Option<Period> {
    let mut before = words[..at].iter().rev();
    let before = before.find(|word| !holds(OF_YEAR, word))?;
    let year = digits(&words[at]).filter(|year| YEARS.contains(year))?;
    [
        SINCE,
        UNTIL,
        BEFORE,
        AFTER,
        COMMITS,
        "in im en during durante",
    ]
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

/// "in November", "since Friday": the latest one, which those know who know what day it is.
fn by_name(words: &[String], at: usize) -> Option<Period> {
    let before = words.get(at.wrapping_sub(1)).map_or("", String::as_str);
    let (word, words) = match holds(LAST, &words[at]) {
        true => (words.get(at + 1)?, 2),
        false => (&words[at], 1),
    };
    // "And may" is rather a verb.
    let is_second = holds(TO, before) && word != "may";
    let is_led = words == 2 || holds(NAMED_BY, before) || is_second;
    // Short names of months are words of other things too.
    let is_whole = |word: &&String| {
        word.chars().count() > 4
            || holds("mars märz may mai mayo june juni juin july juli août", word)
    };
    let month = || {
        Some(word)
            .filter(is_whole)
            .and_then(|word| month_called(month_of(word)?))
    };
    let name = weekday_of(word).or_else(month)?;
    is_led.then(|| Period {
        first: name.to_owned(),
        last: Some(name.to_owned()),
        words,
    })
}

/// "the last 3 days", "3 days ago", "vor 3 Tagen", "within 3 days".
fn counted_back(words: &[String]) -> Option<Period> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let period = |number: &str, unit: &str, is_one: bool, words: usize| {
        let (number, unit) = (number_of(number)?, unit_of(unit)?);
        let first = format!("{number} {unit}s ago");
        let last = (is_one && unit == "day").then(|| first.clone());
        Some(Period { first, last, words })
    };
    if holds(LAST, word(0)) || holds(WITHIN, word(0)) {
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

/// Whether it is told by a name alone, "Friday", so that who has no clock can only hand it on.
pub(super) fn is_named(period: &Period) -> bool {
    let is_word = period.first.bytes().all(|byte| byte.is_ascii_alphabetic());
    period.first == "this year" || (is_word && !matches!(&*period.first, "today" | "yesterday"))
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
pub(super) fn days_of(year: u32, month: u32) -> u32 {
    let first = i16::try_from(year).ok().zip(i8::try_from(month).ok());
    let first = first.and_then(|(year, month)| Date::new(year, month, 1).ok());
    first.map_or(0, |first| first.days_in_month().unsigned_abs().into())
}

/// "21", "21st".
fn day_of(word: &str) -> Option<u32> {
    digits(word.trim_end_matches(|c: char| c.is_ascii_lowercase()))
}

/// A number as days and commits have them: small enough to be counted on from.
pub(super) fn digits(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok();
    number.filter(|number| is_plain && *number <= LARGEST)
}

const LARGEST: u32 = 1_000_000;

/// Years that can be those of a commit.
pub(super) const YEARS: std::ops::RangeInclusive<u32> = 1971..=2099;
/// What may stand between that and a year.
const OF_YEAR: &str = "de del el of";
/// What stands before a day of the week or a month that is meant without its year.
const NAMED_BY: &str = "\
    since until till on in of from during before after between seit bis am im vom vor nach zwischen depuis le en avant \
    après entre desde el hasta";
/// What stands before a number of days that reach up to now.
const WITHIN: &str = "within seit innerhalb depuis";
