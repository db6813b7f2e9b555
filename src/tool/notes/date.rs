//! Days in names and texts: `2026-03-01`, `20260301`, `1.3.2026`, `March 1, 2026`, `2026-03`.
//!
//! A month without a day is its first day. Two-digit years and `3/4/2026` are nobody's guess and are
//! not taken. Pure.

use std::sync::LazyLock;

use jiff::civil::Date;
use regex::{Captures, Regex};

/// What a date can be written as, the plainer first. The names of the groups say what is what.
static FORMS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    const MONTH: &str = "(?<name>jan(?:uary|uar)?|feb(?:ruary|ruar)?|mar(?:ch)?|mär(?:z)?|apr(?:il)?|may|mai\
                         |june?|juni|july?|juli|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?\
                         |de[cz](?:ember)?)";
    let forms = [
        r"(?:^|[^0-9])(?<y>[0-9]{4})[-/._](?<m>[0-9]{1,2})[-/._](?<d>[0-9]{1,2})(?:$|[^0-9])"
            .to_owned(),
        r"(?:^|[^0-9])(?<y>[0-9]{4})(?<m>[0-9]{2})(?<d>[0-9]{2})(?:$|[^0-9])".to_owned(),
        r"(?:^|[^0-9.])(?<d>[0-9]{1,2})\. ?(?<m>[0-9]{1,2})\. ?(?<y>[0-9]{4})(?:$|[^0-9])"
            .to_owned(),
        format!(
            r"(?i)(?:^|[^0-9])(?<d>[0-9]{{1,2}})(?:st|nd|rd|th|\.)? {MONTH}\.?,? (?<y>[0-9]{{4}})(?:$|[^0-9])"
        ),
        format!(
            r"(?i)(?:^|[^a-z]){MONTH}\.? (?<d>[0-9]{{1,2}})(?:st|nd|rd|th)?,? (?<y>[0-9]{{4}})(?:$|[^0-9])"
        ),
        r"(?:^|[^0-9])(?<y>[0-9]{4})[-/_](?<m>[0-9]{2})(?:$|[^0-9/_-]|[/_-](?:$|[^0-9]))"
            .to_owned(),
    ];
    forms
        .iter()
        .filter_map(|form| Regex::new(form).ok())
        .collect()
});

/// The names of the months by their first three letters, in English and German.
const MONTHS: [&[&str]; 12] = [
    &["jan"],
    &["feb"],
    &["mar", "mär"],
    &["apr"],
    &["may", "mai"],
    &["jun"],
    &["jul"],
    &["aug"],
    &["sep"],
    &["oct", "okt"],
    &["nov"],
    &["dec", "dez"],
];

/// Years that notes are of.
const YEARS: std::ops::Range<i16> = 1900..2200;
/// Longest text that is looked at, in bytes: a date stands in a name, a heading or a short line.
const LONGEST: usize = 400;

/// The first day that the text names.
pub(super) fn first_in(text: &str) -> Option<Date> {
    let end = text.floor_char_boundary(LONGEST);
    let text = &text[..end];
    // What has no four digits in a row needs no look.
    if !text
        .as_bytes()
        .windows(4)
        .any(|four| four.iter().all(u8::is_ascii_digit))
    {
        return None;
    }
    FORMS
        .iter()
        .find_map(|form| form.captures_iter(text).find_map(|found| day(&found)))
}

/// The first and the last day of what a text is: a day, a month such as `2026-03`, or a year.
pub(super) fn days_of(text: &str) -> Option<(Date, Date)> {
    let text = text.trim();
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (year, month) = match text.split_once('-') {
        None if text.len() == 4 && is_number(text) => (text, None),
        Some((year, month)) if year.len() == 4 && is_number(year) && is_number(month) => {
            (year, Some(month.parse::<i8>().ok()?))
        }
        Some(_) | None => return first_in(text).map(|day| (day, day)),
    };
    let year = year
        .parse::<i16>()
        .ok()
        .filter(|year| YEARS.contains(year))?;
    let first = Date::new(year, month.unwrap_or(1), 1).ok()?;
    let last = Date::new(year, month.unwrap_or(12), 1).ok()?;
    Some((first, last.last_of_month()))
}

fn day(found: &Captures<'_>) -> Option<Date> {
    let number = |group| {
        found
            .name(group)
            .and_then(|m| m.as_str().parse::<i16>().ok())
    };
    let year = number("y").filter(|year| YEARS.contains(year))?;
    let month = match found.name("name") {
        Some(name) => {
            let name = name.as_str().to_lowercase();
            let name: String = name.chars().take(3).collect();
            1 + MONTHS
                .iter()
                .position(|names| names.contains(&name.as_str()))?
        }
        None => usize::try_from(number("m")?).ok()?,
    };
    let day = number("d").unwrap_or(1);
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_found_in_names_and_headings() {
        for (text, want) in [
            ("2026-03-01-standup.md", Some("2026-03-01")),
            ("journal/2026/03/01.md", Some("2026-03-01")),
            ("notes_2026_3_1", Some("2026-03-01")),
            ("20260301 plan", Some("2026-03-01")),
            ("## [1.2.0] - 2025-12-24", Some("2025-12-24")),
            ("2025-12-24T10:00:00Z", Some("2025-12-24")),
            ("1.3.2026", Some("2026-03-01")),
            ("1. März 2026", Some("2026-03-01")),
            ("1.2.0 (March 1st, 2026)", Some("2026-03-01")),
            ("1.2.0 (1 Mar 2026)", Some("2026-03-01")),
            ("2026-03", Some("2026-03-01")),
            ("2026-03-plans.md", Some("2026-03-01")),
            ("0012-use-sqlite.md", None),
            ("2026-13-01", None),
            ("10 Decisions 2024", None),
            ("Marketing 5, 2024", None),
            ("5 Augmentations 2024", None),
            ("Sept. 5, 2024", Some("2024-09-05")),
            ("5. Dezember 2024", Some("2024-12-05")),
            ("Juni 5 2024", Some("2024-06-05")),
            ("2026-02-30", None),
            ("3/4/2026", None),
            ("number 12345678", None),
            ("1234-56-78 then 2024-05-06", Some("2024-05-06")),
            ("year 0001-01-01", None),
            ("", None),
        ] {
            let want = want.map(|day| day.parse::<Date>().unwrap());
            assert_eq!(first_in(text), want, "{text}");
        }
    }

    #[test]
    fn a_month_and_a_year_have_a_first_and_a_last_day() {
        for (text, want) in [
            ("2026-03-05", Some(("2026-03-05", "2026-03-05"))),
            ("2024-02", Some(("2024-02-01", "2024-02-29"))),
            (" 2026-3 ", Some(("2026-03-01", "2026-03-31"))),
            ("2026", Some(("2026-01-01", "2026-12-31"))),
            ("March 5, 2026", Some(("2026-03-05", "2026-03-05"))),
            ("2026-13", None),
            ("1812", None),
            ("20266", None),
            ("soon", None),
        ] {
            let day = |day: &str| day.parse::<Date>().unwrap();
            let want = want.map(|(first, last)| (day(first), day(last)));
            assert_eq!(days_of(text), want, "{text}");
        }
    }

    #[test]
    fn all_forms_compile() {
        assert_eq!(FORMS.len(), 6);
    }
}
