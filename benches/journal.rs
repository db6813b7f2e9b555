//! Appends to the journal in memory, whose cost does not depend on the number of sessions.
//!
//! Appends visit all sessions in big strides, so that the caches are cold if there are many.

use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use futures_util::FutureExt;
use oracle_agent::{
    journal::{Append, Claim, Journal, Memory, SessionStatus},
    model::{By, Record, Seq, SessionKey, SessionName, Timestamp, record::ControlFact},
};

fn main() {
    divan::main();
}

const SESSIONS: [usize; 3] = [1, 10_000, 1_000_000];

fn filled(sessions: usize) -> (Memory, Vec<Claim>) {
    let journal = Memory::new();
    let claims = (0..sessions)
        .filter_map(|number| claim(&journal, number))
        .collect();
    (journal, claims)
}

fn claim(journal: &Memory, number: usize) -> Option<Claim> {
    let name = SessionName::new(&format!("session-{number}")).ok()?;
    journal.claim(SessionKey::local(name)).now_or_never()?.ok()
}

fn record() -> Arc<Record> {
    let fact = ControlFact::Paused(By::local().into());
    Arc::new(Record::new(Timestamp::from_millis(0), None, None, fact))
}

/// One append of three records.
#[divan::bench(args = SESSIONS)]
fn append(bencher: Bencher<'_, '_>, sessions: usize) {
    let (journal, mut claims) = filled(sessions);
    let (record, mut at) = (record(), 0);
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        at = (at + 7_919) % claims.len();
        let Claim { sid, epoch, last } = claims[at];
        let records = vec![record.clone(), record.clone(), record.clone()];
        let end = journal
            .append(Append {
                sid,
                epoch,
                after: last,
                records,
                leaves: SessionStatus::Idle,
                charges: Vec::new(),
            })
            .now_or_never();
        claims[at].last = end.and_then(Result::ok).unwrap_or(Seq(0));
    });
    assert!(
        claims.iter().any(|claim| claim.last > Seq(0)),
        "nothing was appended"
    );
}

/// A page of a hundred sessions by name.
#[divan::bench(args = SESSIONS)]
fn list_100(bencher: Bencher<'_, '_>, sessions: usize) {
    let (journal, _) = filled(sessions);
    let after = SessionName::new("session-5").ok();
    bencher.bench_local(|| {
        journal
            .list(oracle_agent::model::TenantId::local(), after.clone(), 100)
            .now_or_never()
    });
}
