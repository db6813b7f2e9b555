//! Budgets of tenants and keys per UTC day and month, and the usage that counts towards them.

use std::fmt;

use jiff::tz::TimeZone;

use super::{
    access::By,
    id::TenantId,
    time::Timestamp,
    usage::{NanoUsd, Usage},
};

const MILLIS: i64 = 86_400_000;

/// A UTC day, in days since 1970-01-01.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Day(pub i64);

impl Day {
    /// The day of a time.
    pub const fn of(at: Timestamp) -> Self {
        Self(at.as_millis().div_euclid(MILLIS))
    }

    /// Its first moment.
    pub const fn start(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(MILLIS))
    }

    /// Parses a date, such as `2026-11-30`.
    pub fn parse(date: &str) -> Option<Self> {
        let date = date.parse::<jiff::civil::Date>().ok()?;
        let start = date.to_zoned(TimeZone::UTC).ok()?.timestamp();
        Some(Self(start.as_millisecond().div_euclid(MILLIS)))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = self.start().to_string();
        f.write_str(start.split('T').next().unwrap_or_default())
    }
}

words! {
    /// The period after which a budget is renewed.
    pub enum Period {
        /// A UTC day.
        Day = "day",
        /// A UTC month.
        Month = "month",
    }
}

impl Period {
    /// The first day of the period that contains `day`, and the first day of the next one.
    pub fn around(self, day: Day) -> (Day, Day) {
        let (before, length) = match self {
            Self::Day => (0, 1),
            Self::Month => {
                let date = jiff::Timestamp::from_millisecond(day.start().as_millis());
                let date = date.map(|time| time.to_zoned(TimeZone::UTC).date());
                // Outside the calendar, a month is a day.
                date.map_or((0, 1), |date| {
                    (i64::from(date.day()) - 1, i64::from(date.days_in_month()))
                })
            }
        };
        let first = day.0 - before;
        (Day(first), Day(first + length))
    }
}

/// A tenant or key whose usage is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Payer {
    /// A tenant.
    Tenant(TenantId),
    /// The keys of a name.
    Key(By),
    /// What a tenant stores, in bytes instead of tokens, all on day 0; a journal in memory does not
    /// count it.
    Stored(TenantId),
}

impl Payer {
    /// The payers for a caller's queries in sessions of a tenant. A caller without a key counts for
    /// the tenant only.
    pub fn of(tenant: &TenantId, by: &By) -> impl Iterator<Item = Self> {
        let key = (!by.is_local()).then(|| Self::Key(by.clone()));
        [Self::Tenant(tenant.clone())].into_iter().chain(key)
    }
}

impl fmt::Display for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant(tenant) => write!(f, "tenant/{tenant}"),
            Self::Key(name) => write!(f, "key/{name}"),
            Self::Stored(tenant) => write!(f, "stored/{tenant}"),
        }
    }
}

/// Usage on a day. A correction of an estimate can be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayUsage {
    /// The day.
    pub day: Day,
    /// Tokens sent and received.
    pub tokens: i64,
    /// Cost, in billionths of a US dollar.
    pub nano_usd: i64,
}

impl DayUsage {
    /// Usage at a time, without what was counted before as an estimate.
    pub fn new(at: Timestamp, usage: &Usage, estimate: &Usage) -> Self {
        let signed = |amount| i64::try_from(amount).unwrap_or(i64::MAX);
        Self {
            day: Day::of(at),
            tokens: signed(usage.total_tokens()) - signed(estimate.total_tokens()),
            nano_usd: signed(usage.cost.0) - signed(estimate.cost.0),
        }
    }
}

/// Usage to count for a tenant or key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The tenant or key.
    pub payer: Payer,
    /// The usage.
    pub usage: DayUsage,
}

impl Charge {
    /// Usage of a caller's query in a session of a tenant, for each of its payers.
    pub fn of(tenant: &TenantId, by: &By, usage: DayUsage) -> Vec<Self> {
        let charges = Payer::of(tenant, by).map(|payer| Self { payer, usage });
        charges.collect()
    }
}

/// What a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetUnit {
    /// Tokens sent and received.
    Tokens,
    /// Billionths of a US dollar.
    NanoUsd,
}

/// A budget of a tenant or key in the current period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodBudget {
    /// What its amounts are.
    pub unit: BudgetUnit,
    /// The amount allowed.
    pub limit: u64,
    /// The amount used.
    pub used: u64,
    /// Whether it belongs to the key, not to the tenant.
    pub of_key: bool,
    /// The period.
    pub period: Period,
    /// The end of the current period.
    pub renewed: Timestamp,
}

impl PeriodBudget {
    /// The amount left.
    pub const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

impl fmt::Display for PeriodBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holder = if self.of_key { "key" } else { "tenant" };
        write!(f, "your {holder}'s budget of ")?;
        match self.unit {
            BudgetUnit::Tokens => write!(f, "{} tokens", self.limit)?,
            BudgetUnit::NanoUsd => write!(f, "{}", NanoUsd(self.limit))?,
        }
        write!(f, " per UTC {}", self.period)
    }
}

/// The tightest budgets of a caller's tenant and key; `None` without one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Of tokens.
    pub tokens: Option<PeriodBudget>,
    /// Of money.
    pub cost: Option<PeriodBudget>,
}

impl Allowance {
    /// No budgets.
    pub const NONE: Self = Self {
        tokens: None,
        cost: None,
    };

    /// The spent budget that is renewed last.
    pub fn spent(&self) -> Option<PeriodBudget> {
        let budgets = [self.tokens, self.cost].into_iter().flatten();
        let spent = budgets.filter(|budget| budget.left() == 0);
        spent.max_by_key(|budget| budget.renewed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(date: &str) -> Day {
        let time: jiff::Timestamp = format!("{date}T13:59:59.999Z").parse().unwrap();
        Day::of(Timestamp::from_millis(time.as_millisecond()))
    }

    #[test]
    fn days_and_months_end_as_in_the_utc_calendar() {
        for (date, month, next_day, next_month) in [
            ("2026-01-31", "2026-01-01", "2026-02-01", "2026-02-01"),
            ("2026-02-28", "2026-02-01", "2026-03-01", "2026-03-01"),
            ("2028-02-28", "2028-02-01", "2028-02-29", "2028-03-01"),
            ("2028-02-29", "2028-02-01", "2028-03-01", "2028-03-01"),
            ("2100-02-28", "2100-02-01", "2100-03-01", "2100-03-01"),
            ("2026-12-01", "2026-12-01", "2026-12-02", "2027-01-01"),
            ("2026-12-31", "2026-12-01", "2027-01-01", "2027-01-01"),
            ("1969-12-31", "1969-12-01", "1970-01-01", "1970-01-01"),
        ] {
            let today = day(date);
            let a_day = (today, day(next_day));
            assert_eq!(Period::Day.around(today), a_day, "{date}");
            let a_month = (day(month), day(next_month));
            assert_eq!(Period::Month.around(today), a_month, "{date}");
        }
        let midnight = day("2026-03-01").start();
        assert_eq!(midnight.to_string(), "2026-03-01T00:00:00.000Z");
        let before = Timestamp::from_millis(midnight.as_millis() - 1);
        assert_eq!(Day::of(before), day("2026-02-28"));
        assert_eq!(Day::of(midnight), day("2026-03-01"));
        let far = Day(i64::MAX / 2);
        assert_eq!(Period::Month.around(far), (far, Day(far.0 + 1)));
    }
}
