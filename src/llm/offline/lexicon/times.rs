//! Days, months and numbers, as people say them in the four languages that searches know.
//!
//! Data and look-ups. All entries are lower-case.

use super::holds;

/// Phrases for days: the first, the last if that is not today, and how they are said.
pub(in super::super) const TIMES: &[(&str, &str, &str)] = &[
    (
        "2 days ago",
        "2 days ago",
        "day before yesterday | vorgestern | avant-hier | anteayer",
    ),
    ("today", "", "today | heute | aujourd'hui | hoy"),
    (
        "yesterday",
        "yesterday",
        "yesterday | gestern | hier | ayer",
    ),
    (
        "1 week ago",
        "",
        "last week | past week | this week | letzte woche | letzter woche | letzten woche | vergangene woche | \
         vergangenen woche | diese woche | dieser woche | semaine dernière | semaine passée | cette semaine | \
         semana pasada | última semana | esta semana",
    ),
    (
        "1 month ago",
        "",
        "last month | past month | this month | letzten monat | letzter monat | vergangenen monat | diesen monat | \
         diesem monat | mois dernier | mois passé | ce mois | mes pasado | último mes | este mes",
    ),
    (
        "this year",
        "",
        "this year | dieses jahr | diesem jahr | cette année | este año",
    ),
    (
        "1 year ago",
        "",
        "last year | past year | letztes jahr | letzten jahr | vergangenen jahr | an dernier | l'an dernier | \
         année dernière | l'année dernière | año pasado | último año",
    ),
];

/// What stands before a number of days that is counted back.
pub(in super::super) const DAYS_BACK: &[&str] = &["vor", "il y a", "hace"];

const MONTHS: [&str; 12] = [
    "january jan januar jänner janvier enero",
    "february feb februar février febrero",
    "march mar märz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug août agosto",
    "september sep sept septembre septiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez décembre diciembre",
];

const NUMBERS: [&str; 11] = [
    "",
    "one",
    "two zwei deux dos",
    "three drei trois tres",
    "four vier quatre cuatro",
    "five fünf cinq cinco",
    "six sechs seis",
    "seven sieben sept siete",
    "eight acht huit ocho",
    "nine neun neuf nueve",
    "ten zehn dix diez",
];

const UNITS: &[(&str, &str)] = &[
    ("day", "day days tag tage tagen jour jours día días"),
    (
        "week",
        "week weeks woche wochen semaine semaines semana semanas",
    ),
    ("month", "month months monat monate monaten mois mes meses"),
    (
        "year",
        "year years jahr jahre jahren an ans année années año años",
    ),
];

/// The number of a month, from 1 on.
pub(in super::super) fn month_of(word: &str) -> Option<u32> {
    (1..)
        .zip(MONTHS)
        .find_map(|(at, names)| holds(names, word).then_some(at))
}

/// What a month is called in English.
pub(in super::super) fn month_called(month: u32) -> Option<&'static str> {
    const CALLED: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let at = usize::try_from(month.checked_sub(1)?).ok()?;
    CALLED.get(at).copied()
}

const WEEKDAYS: [(&str, &str); 7] = [
    ("Monday", "monday montag lundi lunes"),
    ("Tuesday", "tuesday dienstag mardi martes"),
    ("Wednesday", "wednesday mittwoch mercredi miércoles"),
    ("Thursday", "thursday donnerstag jeudi jueves"),
    ("Friday", "friday freitag vendredi viernes"),
    ("Saturday", "saturday samstag sonnabend samedi sábado"),
    ("Sunday", "sunday sonntag dimanche domingo"),
];

/// The English name of a day of the week.
pub(in super::super) fn weekday_of(word: &str) -> Option<&'static str> {
    let mut days = WEEKDAYS.iter();
    days.find_map(|(day, names)| holds(names, word).then_some(*day))
}

/// A number of at most six digits, or one of a few words.
pub(in super::super) fn number_of(word: &str) -> Option<u32> {
    let is_plain = word.len() <= 6 && word.bytes().all(|byte| byte.is_ascii_digit());
    let said = (0..)
        .zip(NUMBERS)
        .find_map(|(at, names)| holds(names, word).then_some(at));
    word.parse().ok().filter(|_| is_plain).or(said)
}

/// The English word for a span of time.
pub(in super::super) fn unit_of(word: &str) -> Option<&'static str> {
    UNITS
        .iter()
        .find_map(|(unit, names)| holds(names, word).then_some(*unit))
}
