//! Days that bound a search: `2026-11-20`, `yesterday`, `2 weeks ago`.
//!
//! What is counted back from today stays so for git, which knows what day it is. Pure.

/// What git reads as years: what is before them it takes for today.
const YEARS: std::ops::RangeInclusive<u32> = 1971..=2099;
/// Farthest back that is counted, by units: about as far.
const FARTHEST: [(&str, u32); 4] = [
    ("day", 18_000),
    ("week", 2_600),
    ("month", 600),
    ("year", 50),
];

/// A day, in words that git understands and that can be nothing but a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Day(String);

impl Day {
    /// None for what is no day.
    pub(super) fn read(text: &str) -> Option<Self> {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split_whitespace().collect();
        match words[..] {
            ["today"] => Some(Self("0 days ago".to_owned())),
            ["yesterday"] => Some(Self("1 days ago".to_owned())),
            [number, unit, "ago"] => counted_back(number, unit).map(Self),
            [date] => is_date(date).then(|| Self(date.to_owned())),
            _ => None,
        }
    }

    /// Its first second, for git.
    pub(super) fn begins(&self) -> String {
        format!("{} 00:00:00", self.0)
    }

    /// Its last second, for git.
    pub(super) fn ends(&self) -> String {
        format!("{} 23:59:59", self.0)
    }
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
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let is_written = (year.len(), month.len(), day.len()) == (4, 2, 2);
    let numbers = (digits(year), digits(month), digits(day));
    let (Some(year), Some(month), Some(day)) = numbers else {
        return false;
    };
    is_written && YEARS.contains(&year) && (1..=days_of(year, month)).contains(&day)
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
            ("", None),
        ] {
            let day = Day::read(text).map(|day| day.begins());
            assert_eq!(day.as_deref(), begins, "{text}");
        }
        let ends = Day::read("2026-11-20").map(|day| day.ends());
        assert_eq!(ends.as_deref(), Some("2026-11-20 23:59:59"));
    }
}
