//! Which request gets which fault, and by what chance: all of it follows from the seed and the number
//! of the request, so a run can be had again.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use serde::Deserialize;

use super::fault::{Fault, FaultError};

/// A share is kept in millionths.
const WHOLE: u64 = 1_000_000;

/// A fault, and the requests that get it: `429:0.05`, `500@3`, `cut=2@7,9..12,20..`, `bom`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Planned {
    /// What happens.
    pub fault: Fault,
    /// To which.
    pub when: When,
}

/// Which requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Each.
    Always,
    /// So many of a million, by chance.
    Share(u32),
    /// Those with these numbers, from 1.
    At(Vec<RangeInclusive<u64>>),
}

/// A planned fault that is not written as one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The fault itself.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The share.
    #[error("`{0}` is no share of the requests: write a number from 0 to 1, as `429:0.05`")]
    Share(String),
    /// The numbers.
    #[error(
        "`{0}` is no list of requests: write numbers from 1 with commas, or ranges, as `500@3,7..9,20..`"
    )]
    Numbers(String),
}

impl FromStr for Planned {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        if let Some((fault, share)) = text.split_once(':') {
            return Ok(Self {
                fault: fault.parse()?,
                when: When::Share(millionths(share)?),
            });
        }
        if let Some((fault, numbers)) = text.split_once('@') {
            return Ok(Self {
                fault: fault.parse()?,
                when: When::At(numbers.split(',').map(range).collect::<Result<_, _>>()?),
            });
        }
        Ok(Self {
            fault: text.parse()?,
            when: When::Always,
        })
    }
}

impl TryFrom<String> for Planned {
    type Error = PlanError;

    fn try_from(text: String) -> Result<Self, PlanError> {
        text.parse()
    }
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        match &self.when {
            When::Always => Ok(()),
            When::Share(share) => write!(f, ":{}", f64::from(*share) / 1e6),
            When::At(ranges) => {
                for (at, range) in ranges.iter().enumerate() {
                    f.write_str(if at == 0 { "@" } else { "," })?;
                    match (*range.start(), *range.end()) {
                        (from, u64::MAX) => write!(f, "{from}..")?,
                        (from, to) if from == to => write!(f, "{from}")?,
                        (from, to) => write!(f, "{from}..{to}")?,
                    }
                }
                Ok(())
            }
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the share was found to lie between 0 and 1"
)]
fn millionths(text: &str) -> Result<u32, PlanError> {
    let share = text.parse::<f64>().ok();
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    let share = share.ok_or_else(|| PlanError::Share(text.to_owned()))?;
    Ok((share * 1e6).round() as u32)
}

fn range(text: &str) -> Result<RangeInclusive<u64>, PlanError> {
    let wrong = || PlanError::Numbers(text.to_owned());
    let number = |text: &str| {
        text.parse::<u64>()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(wrong)
    };
    let range = match text.split_once("..") {
        None => number(text)?..=number(text)?,
        Some((from, "")) => number(from)?..=u64::MAX,
        Some((from, to)) => number(from)?..=number(to)?,
    };
    if range.is_empty() {
        Err(wrong())
    } else {
        Ok(range)
    }
}

/// What the request with this number gets: the first fault of the list that names it, else, by chance,
/// one of those with a share.
pub(super) fn choose(faults: &[Planned], seed: u64, number: u64) -> Option<Fault> {
    let names = |planned: &&Planned| match &planned.when {
        When::Always => true,
        When::At(ranges) => ranges.iter().any(|range| range.contains(&number)),
        When::Share(_) => false,
    };
    if let Some(planned) = faults.iter().find(names) {
        return Some(planned.fault);
    }
    let mut left = chance(seed, number, Salt::Fault) % WHOLE;
    for planned in faults {
        if let When::Share(share) = planned.when {
            match left.checked_sub(share.into()) {
                None => return Some(planned.fault),
                Some(rest) => left = rest,
            }
        }
    }
    None
}

/// What a chance is for, so that one does not follow from another.
#[derive(Debug, Clone, Copy)]
pub(super) enum Salt {
    Fault,
    Latency,
    Gap,
}

/// A number that looks like chance and follows from these (splitmix64).
pub(super) const fn chance(seed: u64, number: u64, salt: Salt) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = seed ^ (salt as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed = mixed
        .wrapping_add(number.wrapping_mul(STEP))
        .wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::FaultKind;

    fn plan(texts: &[&str]) -> Vec<Planned> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_plan_is_read_as_it_is_written() {
        for text in [
            "429:0.05",
            "500@3",
            "cut=2@7,9..12,20..",
            "bom",
            "slow=10:1",
            "401:0",
        ] {
            let planned: Planned = text.parse().unwrap();
            assert_eq!(planned.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        for (text, want) in [
            ("429:1.5", PlanError::Share("1.5".into())),
            ("429:x", PlanError::Share("x".into())),
            ("429:NaN", PlanError::Share("NaN".into())),
            ("429@0", PlanError::Numbers("0".into())),
            ("429@", PlanError::Numbers(String::new())),
            ("429@5..3", PlanError::Numbers("5..3".into())),
            ("430", PlanError::Fault(FaultError::Unknown("430".into()))),
        ] {
            assert_eq!(text.parse::<Planned>(), Err(want), "{text}");
        }
    }

    #[test]
    fn numbered_requests_get_their_fault_and_others_none() {
        let faults = plan(&["500@3", "cut@3,5..6", "401@9.."]);
        let kinds: Vec<_> = (1..=10)
            .map(|number| choose(&faults, 1, number).map(|fault| fault.kind.name()))
            .collect();
        let (none, cut, key) = (None, Some("cut"), Some("401"));
        let want = [
            none,
            none,
            Some("500"),
            none,
            cut,
            cut,
            none,
            none,
            key,
            key,
        ];
        assert_eq!(kinds, want);
    }

    #[test]
    fn shares_are_met_and_follow_from_the_seed() {
        let faults = plan(&["429:0.05", "500:0.10"]);
        let of_seed = |seed| {
            (1..=10_000).map(move |number| choose(&plan(&["429:0.05", "500:0.10"]), seed, number))
        };
        let count = |kind| {
            (1..=10_000)
                .filter(|number| {
                    choose(&faults, 7, *number).is_some_and(|fault| fault.kind == kind)
                })
                .count()
        };
        assert!((400..600).contains(&count(FaultKind::RateLimited)));
        assert!((900..1100).contains(&count(FaultKind::ServerError)));
        assert!(of_seed(7).eq(of_seed(7)));
        assert!(!of_seed(7).eq(of_seed(8)));
    }
}
