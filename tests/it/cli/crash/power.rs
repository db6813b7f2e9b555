//! Power cuts, and disks that fail: what was acknowledged survives both.

use std::{collections::VecDeque, os::unix::process::ExitStatusExt, process::ExitStatus};

use super::{Disk, KILLED, RoundEnd, SyncFault, Trial, live};
use crate::actors::simulation::{Dice, check::logs, long};

const BROKEN: i32 = 6;
/// Approximate number of syncs in a round.
const SYNCS: u64 = 40;
/// A sync of a new journal, after its directory was made and something was acknowledged.
const EARLY: u64 = 12;

fn with_disk() -> Option<Trial> {
    let mut trial = Trial::new();
    trial.disk = Some(Disk::of(trial.place.data.path())?);
    Some(trial)
}

/// Checks how a fault of its disk ended a process.
pub(super) fn ended_by(fault: SyncFault, status: ExitStatus, name: &str) {
    match fault {
        SyncFault::Cut => assert_eq!(status.signal(), Some(KILLED), "{name}: {status}"),
        SyncFault::Fail => assert_eq!(status.code(), Some(BROKEN), "{name}: {status}"),
        SyncFault::Lie => panic!("{name}: {status}"),
    }
}

fn fates(cuts: usize, failures: usize, dice: &mut Dice) -> VecDeque<RoundEnd> {
    let faults = [(SyncFault::Cut, cuts), (SyncFault::Fail, failures)];
    let faults = faults.map(|(fault, times)| std::iter::repeat_n(fault, times));
    let fates = faults.into_iter().flatten().map(|fault| RoundEnd::Sync {
        fault,
        number: dice.below(SYNCS) + 1,
    });
    let early = RoundEnd::Sync {
        fault: SyncFault::Cut,
        number: EARLY,
    };
    std::iter::once(early).chain(fates).collect()
}

#[tokio::test]
async fn every_acknowledged_message_survives_power_cuts_and_failed_syncs() {
    let Some(mut trial) = with_disk() else {
        return;
    };
    let (cuts, failures) = if long() { (200, 40) } else { (5, 2) };
    let mut waiting = fates(cuts - 1, failures, &mut Dice(1));
    while !waiting.is_empty() {
        trial.round(&mut waiting).await;
        let verified = trial.place.oracle("journal verify").output();
        let told = String::from_utf8(verified.stdout).unwrap();
        assert_eq!(told, "no corruption found\n");
    }
    assert_eq!(trial.seen.deaths, cuts + failures);
    assert!(trial.lost > 0, "no sector was lost");
}

/// The other test would pass if nothing were ever lost.
#[tokio::test]
async fn journal_on_a_disk_that_lies_loses_what_it_acknowledged() {
    let Some(trial) = with_disk() else {
        return;
    };
    let fate = RoundEnd::Sync {
        fault: SyncFault::Lie,
        number: 1,
    };
    let (told, status) = live(&trial, fate).await;
    assert!(status.success() && !told.is_empty(), "{status}");
    trial.disk.as_ref().unwrap().cut(&mut Dice(1));
    assert!(logs(&trial.journal()).await.is_empty());
}
