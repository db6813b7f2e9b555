//! Days that bound a search: `2026-11-20`, `yesterday`, `2 weeks ago`, `friday`, `november`.
//!
//! What is counted back from today stays so for git, which knows what day it is. Pure.

use jiff::civil::Date;

/// What git reads as years: what is before them it takes for today.
const YEARS: std::ops::RangeInclusive<i16> = 1971..=2099;
/// Farthest back that is counted, by units: about as far.
const FARTHEST: [(&str, u32); 4] = [
    ("day", 18_000),
    ("week", 2_600),
    ("month", 600),
    ("year", 50),
];

/// The last of each in the past: today's name is that of a week ago.
const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
/// The latest of each, perhaps the one that is, with its last day, if that is the same in all years.
const MONTHS: [(&str, u32); 12] = [
    ("january", 31),
    ("february", 0),
    ("march", 31),
    ("april", 30),
    ("may", 31),
    ("june", 30),
    ("july", 31),
    ("august", 31),
    ("september", 30),
    ("october", 31),
    ("november", 30),
    ("december", 31),
];

/// What is said before such a name for a day beside it.
const BESIDE: [&str; 2] = ["before", "after"];

/// A day or a span of them, in words that git understands and that can be nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Day {
    first: String,
    /// Not known of a month that has not always the same.
    last: Option<String>,
    /// Whether its first second is that behind a day, which no words of git's name.
    is_behind: bool,
}

impl Day {
    /// None for what is no day.
    pub(super) fn read(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split_whitespace().collect();
        match words[..] {
            ["today"] => Some(Self::of("0 days ago")),
            ["yesterday"] => Some(Self::of("1 days ago")),
            ["this", "year"] => Some(Self {
                first: "january 1".to_owned(),
                last: Some("0 days ago".to_owned()),
                is_behind: false,
            }),
            ["the", "day", beside, ref name @ ..] if BESIDE.contains(&beside) => {
                // What is counted in months has no day of its own.
                if let ("before", [number, unit, "ago"]) = (beside, name) {
                    let day = counted_back(number, unit)?;
                    return Some(Self::of(&format!("{day} 1 days ago")));
                }
                // Others are counted from today, or have a date that can be given.
                let is_name = |name: &&[&str]| matches!(name, [_] | ["this", "year"]);
                let name = Some(name).filter(is_name)?.join(" ");
                let day = Self::read(&name).filter(|day| day.is_named())?;
                day.beside(beside == "after")
            }
            [number, unit, "ago"] => counted_back(number, unit).map(|day| Self::of(&day)),
            [word] if WEEKDAYS.contains(&word) => Some(Self::of(&format!("last {word}"))),
            [word] => month(word).or_else(|| is_date(word).then(|| Self::of(word))),
            _ => None,
        }
    }

    fn of(day: &str) -> Self {
        Self {
            first: day.to_owned(),
            last: Some(day.to_owned()),
            is_behind: false,
        }
    }

    /// Whether it begins with the name of a day or a month.
    fn is_named(&self) -> bool {
        !self.is_behind && self.first.starts_with(|c: char| c.is_ascii_alphabetic())
    }

    /// The day before it, or the one after it, if that is known.
    fn beside(self, is_after: bool) -> Option<Self> {
        match is_after {
            true => Some(Self {
                first: self.last?,
                last: None,
                is_behind: true,
            }),
            // A number of days is counted back from what stands before it.
            false => Some(Self::of(&format!("{} 1 days ago", self.first))),
        }
    }

    /// Its first second, for git.
    pub(super) fn begins(&self) -> String {
        let hour = if self.is_behind { "24" } else { "00" };
        format!("{} {hour}:00:00", self.first)
    }

    /// Its last second, for git; none if only its year, or nothing that git reads, tells that.
    pub(super) fn ends(&self) -> Option<String> {
        let last = self.last.as_ref()?;
        Some(format!("{last} 23:59:59"))
    }
}

fn month(word: &str) -> Option<Day> {
    let (name, last) = MONTHS.iter().find(|(name, _)| *name == word)?;
    Some(Day {
        first: format!("{name} 1"),
        last: (*last > 0).then(|| format!("{name} {last}")),
        is_behind: false,
    })
}

fn counted_back(number: &str, unit: &str) -> Option<String> {
    let number: u32 = digits(number)?;
    let unit = unit.strip_suffix('s').unwrap_or(unit);
    let farthest = FARTHEST.iter().find(|(known, _)| *known == unit);
    farthest
        .is_some_and(|(_, most)| number <= *most)
        .then(|| format!("{number} {unit}s ago"))
}

fn is_date(text: &str) -> bool {
    let is_written = text.len() == "2026-11-20".len() && text.matches('-').count() == 2;
    let date = text.parse::<Date>();
    is_written && date.is_ok_and(|date| YEARS.contains(&date.year()))
}

/// A number of digits alone: no sign.
fn digits(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_are_days() {
        for (text, begins) in [
            ("2026-11-20", Some("2026-11-20 00:00:00")),
            (" 2024-02-29 ", Some("2024-02-29 00:00:00")),
            ("today", Some("0 days ago 00:00:00")),
            ("Yesterday", Some("1 days ago 00:00:00")),
            ("2 weeks ago", Some("2 weeks ago 00:00:00")),
            ("1 month ago", Some("1 months ago 00:00:00")),
            ("2026-02-29", None),
            ("2026-13-01", None),
            ("1969-12-31", None),
            ("26-11-20", None),
            ("2026-11-2", None),
            ("20-11-2026", None),
            ("+2 days ago", None),
            ("1000 days ago", Some("1000 days ago 00:00:00")),
            ("18001 days ago", None),
            ("999 months ago", None),
            ("51 years ago", None),
            ("1970-01-01", None),
            ("2 seconds ago", None),
            ("last week", None),
            ("tea", None),
            ("--output=x", None),
            ("Friday", Some("last friday 00:00:00")),
            ("November", Some("november 1 00:00:00")),
            ("this year", Some("january 1 00:00:00")),
            ("this week", None),
            (
                "The day before Friday",
                Some("last friday 1 days ago 00:00:00"),
            ),
            ("the day after friday", Some("last friday 24:00:00")),
            ("the day after November", Some("november 30 24:00:00")),
            ("the day after February", None),
            ("the day before 2026-11-20", None),
            ("the day before today", None),
            (
                "the day before 2 months ago",
                Some("2 months ago 1 days ago 00:00:00"),
            ),
            ("the day after 2 months ago", None),
            ("the day before the day before friday", None),
            ("the day before", None),
            ("", None),
        ] {
            let day = Day::read(text).map(|day| day.begins());
            assert_eq!(day.as_deref(), begins, "{text}");
        }
        for (text, ends) in [
            ("2026-11-20", Some("2026-11-20 23:59:59")),
            ("monday", Some("last monday 23:59:59")),
            ("november", Some("november 30 23:59:59")),
            ("february", None),
            ("this year", Some("0 days ago 23:59:59")),
            (
                "the day before friday",
                Some("last friday 1 days ago 23:59:59"),
            ),
            (
                "the day before december",
                Some("december 1 1 days ago 23:59:59"),
            ),
            (
                "the day before this year",
                Some("january 1 1 days ago 23:59:59"),
            ),
            ("the day after friday", None),
        ] {
            let day = Day::read(text).and_then(|day| day.ends());
            assert_eq!(day.as_deref(), ends, "{text}");
        }
    }
}
