//! The days beside a day, and which of two is the earlier, as far as that can be told without a clock. Pure.

use super::{YEARS, days_of, digits};

/// The day before one.
pub(super) fn day_before(day: &str) -> Option<String> {
    if let Some(ago) = days_ago(day) {
        return Some(told_ago(ago + 1));
    }
    let shifted = match date(day)? {
        (year, 1, 1) => (year - 1, 12, 31),
        (year, month, 1) => (year, month - 1, days_of(year, month - 1)),
        (year, month, day) => (year, month, day - 1),
    };
    told(shifted)
}

/// The day after one; none after today.
pub(super) fn day_after(day: &str) -> Option<String> {
    if let Some(ago) = days_ago(day) {
        return ago.checked_sub(1).map(told_ago);
    }
    let shifted = match date(day)? {
        (year, 12, 31) => (year + 1, 1, 1),
        (year, month, day) if day == days_of(year, month) => (year, month + 1, 1),
        (year, month, day) => (year, month, day + 1),
    };
    told(shifted)
}

/// Whether the first of two days is certainly the later one.
pub(super) fn is_later(first: &str, second: &str) -> bool {
    match (days_ago(first), days_ago(second)) {
        (Some(first), Some(second)) => first < second,
        _ => date(first)
            .zip(date(second))
            .is_some_and(|(first, second)| first > second),
    }
}

/// Whether it is not farther back than is counted: fifty years, in all units.
pub(in super::super::super) fn is_countable(day: &str) -> bool {
    const MOST: [(&str, u32); 4] = [
        ("day", 18_000),
        ("week", 2_600),
        ("month", 600),
        ("year", 50),
    ];
    let words: Vec<&str> = day.split(' ').collect();
    let [number, unit, "ago"] = words[..] else {
        return true;
    };
    let unit = unit.trim_end_matches('s');
    let most = MOST.iter().find(|(name, _)| *name == unit);
    most.zip(digits(number))
        .is_some_and(|((_, most), number)| number <= *most)
}

fn told((year, month, day): (u32, u32, u32)) -> Option<String> {
    let is_told = YEARS.contains(&year);
    is_told.then(|| format!("{year:04}-{month:02}-{day:02}"))
}

fn told_ago(ago: u32) -> String {
    match ago {
        0 => "today".to_owned(),
        1 => "yesterday".to_owned(),
        ago => format!("{ago} days ago"),
    }
}

fn date(day: &str) -> Option<(u32, u32, u32)> {
    let parts: Option<Vec<u32>> = day.split('-').map(digits).collect();
    match parts?.as_slice() {
        [year, month, day] => Some((*year, *month, *day)),
        _ => None,
    }
}

/// How many days ago it was; months and years have not always as many.
fn days_ago(day: &str) -> Option<u32> {
    let words: Vec<&str> = day.split(' ').collect();
    match words.as_slice() {
        ["today"] => Some(0),
        ["yesterday"] => Some(1),
        [days, "days", "ago"] => digits(days),
        [weeks, "week" | "weeks", "ago"] => digits(weeks).map(|weeks| 7 * weeks),
        _ => None,
    }
}
