//! Every row of the decision table for the end of an actor.

use super::*;
use crate::model::QueryId;

#[test]
fn next_activation_follows_from_cause_and_stage() {
    let detail = || "boom".to_owned();
    let restart = |cause| Activation::Restart {
        cause,
        detail: detail(),
    };
    let crash = || restart(RestartCause::Crash);
    let stall = || restart(RestartCause::Stall);
    let over = || Activation::BudgetViolated {
        query: QueryId(1),
        detail: detail(),
    };
    let aside = |when| Activation::Quarantine {
        reason: format!("it crashed while {when}: boom"),
    };
    let set_aside = |reason: &str| Next::Quarantine {
        reason: reason.into(),
    };
    let on_demand = Activation::OnDemand;
    for (name, found, at, was_for, killed_for, expected) in [
        (
            "a crash in a query",
            ActorEnd::Crashed,
            SessionState::Calling,
            on_demand.clone(),
            None,
            Next::Restart(crash()),
        ),
        (
            "a crash while idle",
            ActorEnd::Crashed,
            SessionState::Idle,
            on_demand.clone(),
            None,
            Next::Restart(aside("idle")),
        ),
        (
            "a crash while reviving",
            ActorEnd::Crashed,
            SessionState::Waking,
            on_demand.clone(),
            None,
            Next::Restart(aside("activating")),
        ),
        (
            "a crash while being brought back from one counts again",
            ActorEnd::Crashed,
            SessionState::Waking,
            crash(),
            None,
            Next::Restart(crash()),
        ),
        (
            "a crash even where the query was to be ended",
            ActorEnd::Crashed,
            SessionState::Waking,
            over(),
            None,
            Next::Restart(aside("activating")),
        ),
        (
            "a crash even while being set aside",
            ActorEnd::Crashed,
            SessionState::Waking,
            aside("idle"),
            None,
            set_aside("it crashed while idle: boom"),
        ),
        (
            "killed for a stall",
            ActorEnd::Crashed,
            SessionState::Calling,
            on_demand.clone(),
            Some(stall()),
            Next::Restart(stall()),
        ),
        (
            "an append failed in a query",
            ActorEnd::Unrecorded,
            SessionState::Calling,
            on_demand.clone(),
            None,
            Next::Restart(Activation::Again),
        ),
        (
            "an append failed in a query that had crashed before",
            ActorEnd::Unrecorded,
            SessionState::Calling,
            crash(),
            None,
            Next::Restart(Activation::Again),
        ),
        (
            "killed for a stall while an append does not answer",
            ActorEnd::Unrecorded,
            SessionState::Calling,
            on_demand.clone(),
            Some(stall()),
            Next::Restart(stall()),
        ),
        (
            "the journal is down again while a query comes back for its sake",
            ActorEnd::Unrecorded,
            SessionState::Waking,
            Activation::Again,
            None,
            Next::Restart(Activation::Again),
        ),
        (
            "an append failed while idle",
            ActorEnd::Unrecorded,
            SessionState::Idle,
            on_demand.clone(),
            None,
            Next::Restart(Activation::Again),
        ),
        (
            "the journal is down while it revives",
            ActorEnd::Unrecorded,
            SessionState::Waking,
            stall(),
            None,
            Next::Restart(stall()),
        ),
        (
            "fenced",
            ActorEnd::Fenced,
            SessionState::Calling,
            on_demand.clone(),
            None,
            Next::Drop,
        ),
        (
            "killed for its budget when somebody else has it already",
            ActorEnd::Fenced,
            SessionState::Calling,
            on_demand.clone(),
            Some(over()),
            Next::Drop,
        ),
        (
            "killed for its budget",
            ActorEnd::Crashed,
            SessionState::Calling,
            on_demand.clone(),
            Some(over()),
            Next::Restart(over()),
        ),
        (
            "killed because it did not leave, and nothing was the matter with its query",
            ActorEnd::Crashed,
            SessionState::Idle,
            on_demand.clone(),
            Some(Activation::Again),
            Next::Restart(Activation::Again),
        ),
        (
            "killed because it did not leave when it had not come to life",
            ActorEnd::Crashed,
            SessionState::Waking,
            Activation::OnDemand,
            Some(Activation::OnDemand),
            Next::Restart(Activation::OnDemand),
        ),
        (
            "a crash while coming back to a journal that was down",
            ActorEnd::Crashed,
            SessionState::Waking,
            Activation::Again,
            None,
            Next::Restart(aside("activating")),
        ),
        (
            "unreadable",
            ActorEnd::Unreadable,
            SessionState::Waking,
            on_demand,
            None,
            set_aside("boom"),
        ),
    ] {
        assert_eq!(
            next(found, at, &was_for, killed_for, "boom"),
            expected,
            "{name}"
        );
    }
}

#[test]
fn stall_does_not_replace_an_unrecorded_activation() {
    let restart = |cause, detail: &str| Activation::Restart {
        cause,
        detail: detail.into(),
    };
    let stall = || restart(RestartCause::Stall, "no progress");
    let over = |detail: &str| Activation::BudgetViolated {
        query: QueryId(1),
        detail: detail.into(),
    };
    let aside = || Activation::Quarantine {
        reason: "it crashed while idle".into(),
    };
    let crash = || restart(RestartCause::Crash, "boom");
    for (name, at, was_for, found, expected) in [
        ("a crash", SessionState::Waking, crash(), stall(), crash()),
        (
            "a budget",
            SessionState::Waking,
            over("4"),
            stall(),
            over("4"),
        ),
        (
            "a quarantine",
            SessionState::Waking,
            aside(),
            stall(),
            aside(),
        ),
        (
            "nothing",
            SessionState::Waking,
            Activation::OnDemand,
            stall(),
            stall(),
        ),
        (
            "it is recorded",
            SessionState::Calling,
            crash(),
            stall(),
            stall(),
        ),
        (
            "not for a stall",
            SessionState::Waking,
            crash(),
            over("5"),
            over("5"),
        ),
    ] {
        assert_eq!(kill_for(at, &was_for, found), expected, "{name}");
    }
    let (at, was_for) = (SessionState::Waking, aside());
    let Activation::Quarantine { reason } = aside() else {
        panic!("it is one");
    };
    assert_eq!(
        next(ActorEnd::Crashed, at, &was_for, Some(aside()), "killed"),
        Next::Quarantine { reason }
    );
}

#[test]
fn refusals_count_only_after_successful_appends() {
    let ledger = Ledger::default();
    let mut start = Start::new(Opening::default(), Activation::OnDemand, &ledger);
    let appends = [0, 0, 1, 1, 4, 4, 5];
    let counted = appends.map(|appends| {
        start.refused(appends, false, 0);
        start.refusals
    });
    assert_eq!(counted, [0, 0, 1, 1, 2, 2, 3]);
}

#[test]
fn full_disk_or_early_restart_counts_no_refusal() {
    let ledger = Ledger::default();
    let mut start = Start::new(Opening::default(), Activation::OnDemand, &ledger);
    start.due = 100;
    assert!(!start.refused(1, true, 100), "full");
    assert!(!start.refused(2, false, 99), "before its time");
    assert!(!start.in_outage, "others are accepted");
    assert!(start.refused(3, false, 100), "its time has come meanwhile");
    assert!(!start.refused(3, false, 101) && start.in_outage);
}
