//! Rules of usage: it is counted once, with its append, and outlives the session.

use futures_util::FutureExt;

use super::{Rule, add, claim, numbered};
use crate::{
    journal::{Append, Claim, Journal, Only},
    model::{By, Charge, Day, DayUsage, Payer, TenantId},
    testkit::journal_conformance::{Checked, key, same},
};

rules![
    usage_is_counted_once_with_its_append,
    usage_outlives_its_session,
    usage_saturates,
];

fn on(day: i64, tokens: i64, nano_usd: i64) -> DayUsage {
    DayUsage {
        day: Day(day),
        tokens,
        nano_usd,
    }
}

/// Appends a record with usage of the tenant `default` and the key `ci`.
fn charged(by: Claim, after: u64, usage: DayUsage) -> Append {
    Append {
        charges: Charge::of(&TenantId::local(), &By::new("ci"), usage),
        ..numbered(by, after, &[after + 1])
    }
}

async fn counted<J: Journal>(
    journal: &J,
    what: &str,
    payer: Payer,
    since: i64,
    expected: &[DayUsage],
) -> Checked {
    let found = journal.usage(payer, Day(since)).await;
    same(what, found, Ok(expected.to_vec()))
}

async fn usage_is_counted_once_with_its_append<J: Journal>(journal: &J) -> Checked {
    let stale = claim(journal, &key("default", "counted")?).await?;
    let by = claim(journal, &key("default", "counted")?).await?;
    for append in [
        charged(by, 0, on(10, 7, 70)),
        charged(by, 1, on(11, 5, 50)),
        charged(by, 2, on(11, -2, -20)),
        charged(by, 2, on(11, -2, -20)),
    ] {
        add(journal, append).await?;
    }
    for (what, refused) in [
        ("a conflict", charged(by, 9, on(11, 1_000, 1_000))),
        ("a fenced owner", charged(stale, 3, on(11, 1_000, 1_000))),
    ] {
        same(what, journal.append(refused).await.is_err(), true)?;
    }
    let key = || Payer::Key(By::new("ci"));
    let days = [on(10, 7, 70), on(11, 3, 30)];
    counted(journal, "of the key", key(), 10, &days).await?;
    counted(journal, "since the second day", key(), 11, &days[1..]).await?;
    counted(journal, "since later", key(), 12, &[]).await?;
    let tenant = Payer::Tenant(TenantId::local());
    counted(journal, "of the tenant", tenant, 0, &days).await?;
    let other = Payer::Key(By::new("default"));
    counted(journal, "of another", other, 0, &[]).await
}

async fn usage_outlives_its_session<J: Journal>(journal: &J) -> Checked {
    let by = claim(journal, &key("default", "deleted")?).await?;
    add(journal, charged(by, 0, on(10, 7, 70))).await?;
    let deleted = journal.delete(by.sid, Only::Always).await;
    same("deletion", deleted.is_ok(), true)?;
    let tenant = Payer::Tenant(TenantId::local());
    counted(journal, "afterwards", tenant, 0, &[on(10, 7, 70)]).await
}

async fn usage_saturates<J: Journal>(journal: &J) -> Checked {
    let by = claim(journal, &key("default", "large")?).await?;
    for (after, tokens) in [(0, i64::MAX), (1, i64::MAX)] {
        add(journal, charged(by, after, on(10, tokens, tokens))).await?;
    }
    let tenant = Payer::Tenant(TenantId::local());
    let most = on(10, i64::MAX, i64::MAX);
    counted(journal, "the sum", tenant, 0, &[most]).await
}
