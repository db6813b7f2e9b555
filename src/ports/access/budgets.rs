//! Budgets of a tenant or key per UTC day and month. Pure: usage and time are values.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::model::{
    Allowance, BudgetUnit, Day, DayUsage, NanoUsd, Payer, Period, PeriodBudget, Timestamp,
    usage::usd,
};

/// Budgets of a tenant or key; one that is not set does not apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budgets {
    /// Tokens per UTC day, sent and received.
    pub tokens_per_day: Option<u64>,
    /// Tokens per UTC month, sent and received.
    pub tokens_per_month: Option<u64>,
    /// Cost per UTC day.
    #[serde(with = "usd")]
    pub cost_usd_per_day: Option<NanoUsd>,
    /// Cost per UTC month.
    #[serde(with = "usd")]
    pub cost_usd_per_month: Option<NanoUsd>,
}

impl Budgets {
    /// These budgets, with those of `other` where one is not set.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            tokens_per_day: self.tokens_per_day.or(other.tokens_per_day),
            tokens_per_month: self.tokens_per_month.or(other.tokens_per_month),
            cost_usd_per_day: self.cost_usd_per_day.or(other.cost_usd_per_day),
            cost_usd_per_month: self.cost_usd_per_month.or(other.cost_usd_per_month),
        }
    }

    /// Whether one of them limits the cost.
    pub const fn limits_cost(&self) -> bool {
        self.cost_usd_per_day.is_some() || self.cost_usd_per_month.is_some()
    }

    /// Keeps, for tokens and for cost, the tighter of these budgets and what `allowance` has.
    /// `usage` is the payer's since the first day of the month.
    pub fn tighten(
        &self,
        allowance: &mut Allowance,
        payer: &Payer,
        usage: &[DayUsage],
        now: Timestamp,
    ) {
        for period in Period::ALL {
            let (first, next) = period.around(Day::of(now));
            let (tokens, cost) = match period {
                Period::Day => (self.tokens_per_day, self.cost_usd_per_day),
                Period::Month => (self.tokens_per_month, self.cost_usd_per_month),
            };
            let budget = |unit, limit: Option<u64>, amount: fn(&DayUsage) -> i64| {
                let within = usage.iter().filter(|one| (first..next).contains(&one.day));
                let used = within.map(amount).fold(0, i64::saturating_add);
                Some(PeriodBudget {
                    unit,
                    limit: limit?,
                    used: u64::try_from(used).unwrap_or(0),
                    of_key: matches!(payer, Payer::Key(_)),
                    period,
                    renewed: next.start(),
                })
            };
            let tokens = budget(BudgetUnit::Tokens, tokens, |one| one.tokens);
            let cost = cost.map(|cost| cost.0);
            let cost = budget(BudgetUnit::NanoUsd, cost, |one| one.nano_usd);
            allowance.tokens = tighter(allowance.tokens, tokens);
            allowance.cost = tighter(allowance.cost, cost);
        }
    }
}

/// The budget that has less left; of equal ones, that which is renewed later.
fn tighter(one: Option<PeriodBudget>, other: Option<PeriodBudget>) -> Option<PeriodBudget> {
    let both = one.into_iter().chain(other);
    both.min_by_key(|budget| (budget.left(), Reverse(budget.renewed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{By, TenantId};

    // 2026-03-15T12:00:00Z
    const NOON: Timestamp = Timestamp::from_millis(1_773_576_000_000);

    fn tokens(per_day: Option<u64>, per_month: Option<u64>) -> Budgets {
        Budgets {
            tokens_per_day: per_day,
            tokens_per_month: per_month,
            ..Budgets::default()
        }
    }

    /// Usage of today, of an earlier day of the month, and of the month before.
    fn used(today: i64, earlier: i64) -> Vec<DayUsage> {
        let on = |before: i64, tokens: i64| DayUsage {
            day: Day(Day::of(NOON).0 - before),
            tokens,
            nano_usd: 10 * tokens,
        };
        vec![on(15, 1_000_000), on(14, earlier), on(0, today)]
    }

    #[test]
    fn the_tightest_budget_of_tenant_and_key_counts() {
        let (payer, key) = (Payer::Tenant(TenantId::local()), Payer::Key(By::new("ci")));
        for (name, tenant, key_budgets, of_tenant, of_key, expected) in [
            (
                "none",
                tokens(None, None),
                tokens(None, None),
                used(9, 9),
                used(9, 9),
                None,
            ),
            (
                "the tenant's day",
                tokens(Some(100), Some(1_000)),
                tokens(None, None),
                used(40, 500),
                used(0, 0),
                Some(("tenant", "day", 40, 100)),
            ),
            (
                "the tenant's month",
                tokens(Some(100), Some(600)),
                tokens(Some(70), None),
                used(40, 520),
                used(9, 0),
                Some(("tenant", "month", 560, 600)),
            ),
            (
                "the key's day, although its limit is higher",
                tokens(Some(100), None),
                tokens(Some(500), None),
                used(40, 0),
                used(480, 0),
                Some(("key", "day", 480, 500)),
            ),
            (
                "of two spent ones, that which is renewed last",
                tokens(Some(10), None),
                tokens(Some(10), Some(10)),
                used(10, 0),
                used(12, 0),
                Some(("key", "month", 12, 10)),
            ),
            (
                "a negative sum is no usage",
                tokens(Some(5), None),
                tokens(None, None),
                used(-9, 0),
                used(0, 0),
                Some(("tenant", "day", 0, 5)),
            ),
        ] {
            let mut allowance = Allowance::default();
            tenant.tighten(&mut allowance, &payer, &of_tenant, NOON);
            key_budgets.tighten(&mut allowance, &key, &of_key, NOON);
            let found = allowance.tokens.map(|budget| {
                let holder = if budget.of_key { "key" } else { "tenant" };
                (holder, budget.period.as_str(), budget.used, budget.limit)
            });
            assert_eq!(found, expected, "{name}");
            assert_eq!(allowance.cost, None, "{name}");
        }
    }

    #[test]
    fn spent_budget_names_its_holder_amount_period_and_renewal() {
        let budgets = Budgets {
            tokens_per_day: Some(40),
            cost_usd_per_day: Some(NanoUsd(9_000_000_000)),
            cost_usd_per_month: Some(NanoUsd(400)),
            ..Budgets::default()
        };
        let (payer, mut allowance) = (Payer::Tenant(TenantId::local()), Allowance::NONE);
        budgets.tighten(&mut allowance, &payer, &used(39, 0), NOON);
        assert_eq!(allowance.spent(), None);
        budgets.tighten(&mut allowance, &payer, &used(40, 0), NOON);
        let spent = allowance.spent().unwrap();
        assert_eq!(
            spent.to_string(),
            "your tenant's budget of $0.000000 per UTC month"
        );
        assert_eq!(spent.renewed.to_string(), "2026-04-01T00:00:00.000Z");
        allowance.cost = None;
        let spent = allowance.spent().unwrap();
        assert_eq!(
            spent.to_string(),
            "your tenant's budget of 40 tokens per UTC day"
        );
        assert_eq!(spent.renewed.to_string(), "2026-03-16T00:00:00.000Z");
    }
}
