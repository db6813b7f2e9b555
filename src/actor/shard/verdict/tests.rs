//! Every row of the table.

use super::*;
use crate::model::QueryId;

#[test]
fn what_follows_is_by_what_was_found_and_how_far_it_was() {
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
    let (on_demand, refused) = (Activation::OnDemand, |times| Found::Unwritten {
        query: QueryId(1),
        turns: 0,
        times,
    });
    let unwritable = |query, detail: &str| Activation::Unwritable {
        query: QueryId(query),
        detail: detail.into(),
    };
    let worn = format!("its records were refused {REFUSALS} times, the last time: boom");
    for (name, found, at, was_for, killed_for, expected) in [
        (
            "a crash in a query",
            Found::Crash,
            Stage::Busy,
            on_demand.clone(),
            None,
            Next::Restart(crash()),
        ),
        (
            "a crash while idle",
            Found::Crash,
            Stage::Idle,
            on_demand.clone(),
            None,
            Next::Again(aside("idle")),
        ),
        (
            "a crash while reviving",
            Found::Crash,
            Stage::Waking,
            on_demand.clone(),
            None,
            Next::Again(aside("coming to life")),
        ),
        (
            "a crash while being brought back from one counts again",
            Found::Crash,
            Stage::Waking,
            crash(),
            None,
            Next::Restart(crash()),
        ),
        (
            "a crash even where the query was to be ended",
            Found::Crash,
            Stage::Waking,
            over(),
            None,
            Next::Again(aside("coming to life")),
        ),
        (
            "a crash even while being set aside",
            Found::Crash,
            Stage::Waking,
            aside("idle"),
            None,
            set_aside("it crashed while idle: boom"),
        ),
        (
            "killed for a stall",
            Found::Crash,
            Stage::Busy,
            on_demand.clone(),
            Some(stall()),
            Next::Restart(stall()),
        ),
        (
            "an append failed in a query",
            Found::NoJournal,
            Stage::Busy,
            on_demand.clone(),
            None,
            Next::Again(Activation::Again),
        ),
        (
            "an append failed in a query that had crashed before",
            Found::NoJournal,
            Stage::Busy,
            crash(),
            None,
            Next::Again(Activation::Again),
        ),
        (
            "killed for a stall while an append does not answer",
            Found::NoJournal,
            Stage::Busy,
            on_demand.clone(),
            Some(stall()),
            Next::Restart(stall()),
        ),
        (
            "the journal is down again while a query comes back for its sake",
            Found::NoJournal,
            Stage::Waking,
            Activation::Again,
            None,
            Next::Again(Activation::Again),
        ),
        (
            "an append failed while idle",
            Found::NoJournal,
            Stage::Idle,
            on_demand.clone(),
            None,
            Next::Again(Activation::Again),
        ),
        (
            "the journal is down while it revives",
            Found::NoJournal,
            Stage::Waking,
            stall(),
            None,
            Next::Again(stall()),
        ),
        (
            "fenced",
            Found::Fenced,
            Stage::Busy,
            on_demand.clone(),
            None,
            Next::LetGo,
        ),
        (
            "killed for its budget when somebody else has it already",
            Found::Fenced,
            Stage::Busy,
            on_demand.clone(),
            Some(over()),
            Next::LetGo,
        ),
        (
            "killed for its budget",
            Found::Crash,
            Stage::Busy,
            on_demand.clone(),
            Some(over()),
            Next::Restart(over()),
        ),
        (
            "killed because it did not leave, and nothing was the matter with its query",
            Found::Crash,
            Stage::Idle,
            on_demand.clone(),
            Some(Activation::Again),
            Next::Again(Activation::Again),
        ),
        (
            "killed because it did not leave when it had not come to life",
            Found::Crash,
            Stage::Waking,
            Activation::Orphaned,
            Some(Activation::Orphaned),
            Next::Again(Activation::Orphaned),
        ),
        (
            "the journal took something and refused the rest",
            refused(REFUSALS - 1),
            Stage::Busy,
            Activation::Sounding,
            None,
            Next::Again(Activation::Again),
        ),
        (
            "and that once too often",
            refused(REFUSALS),
            Stage::Busy,
            Activation::Sounding,
            None,
            Next::Again(unwritable(1, &worn)),
        ),
        (
            "and it does not take the end of the query either",
            refused(REFUSALS + 1),
            Stage::Busy,
            unwritable(1, &worn),
            None,
            set_aside("the journal does not take its records: boom"),
        ),
        (
            "and the one before was ended for that",
            refused(1),
            Stage::Busy,
            unwritable(0, &worn),
            None,
            Next::Again(Activation::Again),
        ),
        (
            "the journal is down while a query is to be ended for it",
            Found::NoJournal,
            Stage::Waking,
            unwritable(1, &worn),
            None,
            Next::Again(unwritable(1, &worn)),
        ),
        (
            "killed for a stall and refused",
            refused(REFUSALS),
            Stage::Busy,
            on_demand.clone(),
            Some(stall()),
            Next::Restart(stall()),
        ),
        (
            "a crash while coming back from a shard that died",
            Found::Crash,
            Stage::Waking,
            Activation::Orphaned,
            None,
            Next::Again(aside("coming to life")),
        ),
        (
            "a crash while coming back to a journal that was down",
            Found::Crash,
            Stage::Waking,
            Activation::Sounding,
            None,
            Next::Again(aside("coming to life")),
        ),
        (
            "unreadable",
            Found::Unreadable,
            Stage::Waking,
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
fn a_stall_replaces_nothing_that_is_yet_to_be_recorded() {
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
    let unwritable = || Activation::Unwritable {
        query: QueryId(1),
        detail: "too large".into(),
    };
    for (name, at, was_for, found, expected) in [
        ("a crash", Stage::Waking, crash(), stall(), crash()),
        ("a budget", Stage::Waking, over("4"), stall(), over("4")),
        (
            "a refusal",
            Stage::Waking,
            unwritable(),
            stall(),
            unwritable(),
        ),
        ("a quarantine", Stage::Waking, aside(), stall(), aside()),
        (
            "nothing",
            Stage::Waking,
            Activation::Orphaned,
            stall(),
            stall(),
        ),
        ("it is recorded", Stage::Busy, crash(), stall(), stall()),
        (
            "not for a stall",
            Stage::Waking,
            crash(),
            over("5"),
            over("5"),
        ),
    ] {
        assert_eq!(kill_for(at, &was_for, found), expected, "{name}");
    }
    let (at, was_for) = (Stage::Waking, aside());
    let Activation::Quarantine { reason } = aside() else {
        panic!("it is one");
    };
    assert_eq!(
        next(Found::Crash, at, &was_for, Some(aside()), "killed"),
        Next::Quarantine { reason }
    );
}
