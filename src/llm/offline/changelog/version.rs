//! Versions as change logs and people write them, and which of two comes first. Pure.

use std::cmp::Ordering;

/// A version: its numbers, and what it is before its release.
#[derive(Debug, Clone)]
pub(in super::super) struct Version {
    numbers: Vec<u64>,
    /// `rc.1`; empty for a release.
    before: String,
}

impl Version {
    /// `1.5`, `v2`, `2.0.0-rc.1`, `1.3b1`, `0.18.8+1.9.7`. None if there is anything else in it.
    pub(in super::super) fn read(text: &str) -> Option<Self> {
        let bare = text.strip_prefix(['v', 'V']).unwrap_or(text);
        let end = bare.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (numbers, rest) = bare.split_at(end.unwrap_or(bare.len()));
        let numbers = match rest.is_empty() {
            true => numbers,
            // `2.0.rc1`
            false => numbers.trim_end_matches('.'),
        };
        let numbers: Option<Vec<u64>> = numbers.split('.').map(|one| one.parse().ok()).collect();
        let rest = rest.split('+').next().unwrap_or_default();
        let before = rest.trim_start_matches(['-', '_', '.']).to_lowercase();
        let (called, _) = parts_of(&before);
        let is_known = before.is_empty() || BEFORE.contains(&called);
        let is_short = before.len() <= LONGEST
            && before
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
        Some(Self {
            numbers: numbers?,
            before,
        })
        .filter(|_| is_known && is_short)
    }

    /// One that no other is behind.
    pub(super) fn newest() -> Self {
        Self {
            numbers: vec![u64::MAX],
            before: String::new(),
        }
    }

    /// Whether it has more than one number, so that it cannot be anything else.
    pub(in super::super) const fn has_parts(&self) -> bool {
        self.numbers.len() > 1
    }

    /// Its numbers as they were written.
    pub(in super::super) fn plain(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(u64::to_string).collect();
        numbers.join(".")
    }

    /// As it is told.
    pub(in super::super) fn told(&self) -> String {
        match self.before.is_empty() {
            true => self.plain(),
            false => format!("{}-{}", self.plain(), self.before),
        }
    }

    pub(in super::super) const fn is_release(&self) -> bool {
        self.before.is_empty()
    }

    /// Whether it is one of those that are called so: `0.8.9` of `0.8`.
    pub(in super::super) fn is_of(&self, shorter: &Self) -> bool {
        shorter.is_release() && self.numbers.starts_with(&shorter.numbers)
    }

    pub(super) fn major(&self) -> u64 {
        self.at(0)
    }

    /// One of its numbers.
    fn at(&self, place: usize) -> u64 {
        self.numbers.get(place).copied().unwrap_or(0)
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    /// `0.8` and `0.8.0` are at the same place; what came before a release is before it.
    fn cmp(&self, other: &Self) -> Ordering {
        let most = self.numbers.len().max(other.numbers.len());
        let numbers = (0..most).map(|place| self.at(place).cmp(&other.at(place)));
        let first = numbers.into_iter().find(|order| order.is_ne());
        first.unwrap_or_else(|| match (self.is_release(), other.is_release()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (_, _) => parts_of(&self.before).cmp(&parts_of(&other.before)),
        })
    }
}

/// How what comes before a release is called, and its number: `rc.10` is behind `rc.9`.
fn parts_of(before: &str) -> (&str, u64) {
    let end = before.find(|c: char| !c.is_ascii_alphabetic());
    let (called, rest) = before.split_at(end.unwrap_or(before.len()));
    let digits = rest.trim_start_matches(['.', '-']);
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let number = digits[..end.unwrap_or(digits.len())].parse();
    (called, number.unwrap_or(0))
}

/// What comes before a release is called.
const BEFORE: [&str; 9] = ["a", "alpha", "b", "beta", "c", "dev", "m", "pre", "rc"];
const LONGEST: usize = 12;
