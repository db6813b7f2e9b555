//! Tests the checker itself: it must reject logs whose counters fall.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use oracle_agent::{
    journal::Entry,
    model::{
        Record, Turn, Usage,
        record::{Fact, QueryFact, QueryFinished, SupervisorFact},
    },
    testkit::{AppendPoint, CrashTarget, Side},
};

use super::{
    check::{audited, logs},
    memory, scenario,
    world::World,
};

/// A change to one record of a query that was cut off twice.
struct Spoiled {
    name: &'static str,
    kind: &'static str,
    /// Index among the records of this type.
    nth: usize,
    change: fn(&mut Record),
    /// Text of the checker's panic.
    said: &'static str,
}

fn all() -> [Spoiled; 6] {
    [
        Spoiled {
            name: "turns from 0 again",
            kind: "turn.started",
            nth: 2,
            change: |record| record.turn = Some(Turn(0)),
            said: "turns follow one another",
        },
        Spoiled {
            name: "a turn less in the end",
            kind: "query.finished",
            nth: 0,
            change: |record| finished(record).turns -= 1,
            said: "turns",
        },
        Spoiled {
            name: "tokens of the last life alone",
            kind: "query.finished",
            nth: 0,
            change: |record| finished(record).usage = Usage::default(),
            said: "tokens are lost",
        },
        Spoiled {
            name: "the second restart as the first",
            kind: "supervisor.restarted",
            nth: 1,
            change: |record| restarted(record, 1),
            said: "restarts are counted",
        },
        Spoiled {
            name: "no restart yet",
            kind: "supervisor.restarted",
            nth: 0,
            change: |record| restarted(record, 0),
            said: "restarts are counted",
        },
        Spoiled {
            name: "a turn that was left out",
            kind: "turn.started",
            nth: 1,
            change: |record| record.turn = Some(Turn(2)),
            said: "turns follow one another",
        },
    ]
}

fn finished(record: &mut Record) -> &mut QueryFinished {
    match &mut record.fact {
        Fact::Query(QueryFact::Finished(finished)) => finished,
        other => panic!("{other:?}"),
    }
}

fn restarted(record: &mut Record, count: u32) {
    match &mut record.fact {
        Fact::Supervisor(SupervisorFact::Restarted(restarted)) => restarted.count = count,
        other => panic!("{other:?}"),
    }
}

fn spoil(log: &[Entry], spoiled: &Spoiled) -> Vec<Entry> {
    let mut log = log.to_vec();
    let of_kind = log
        .iter_mut()
        .filter(|entry| entry.record.fact.kind() == spoiled.kind);
    let entry = of_kind.into_iter().nth(spoiled.nth).expect(spoiled.name);
    (spoiled.change)(Arc::make_mut(&mut entry.record));
    log
}

#[tokio::test(start_paused = true)]
async fn checker_detects_decreasing_counters() {
    let scenario = scenario::all().remove(0);
    let journal = memory();
    let mut world = World::new(&scenario, Arc::clone(&journal), scenario.name.into());
    for _ in 0..2 {
        let doom = AppendPoint {
            kind: Some("turn.replied".into()),
            ..AppendPoint::at(Side::After, 1)
        };
        world.live(Some(doom), CrashTarget::System).await;
    }
    world.live(None, CrashTarget::System).await;
    let logs = logs(&journal).await;
    let (known, log) = &logs[0];
    let (ended, _) = audited(known, log, "as it is");
    assert_eq!(ended.len(), 1);
    for spoiled in all() {
        let log = spoil(log, &spoiled);
        let audit = AssertUnwindSafe(|| audited(known, &log, spoiled.name));
        let panic = catch_unwind(audit).expect_err(spoiled.name);
        let said = panic.downcast_ref::<String>().expect(spoiled.name);
        assert!(said.contains(spoiled.said), "{}: {said}", spoiled.name);
    }
}
