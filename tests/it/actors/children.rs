//! Cancelling sub-agents: the child is cancelled first, the parent waits for its end and adds its
//! usage, whichever part of the system fails.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    actor::Recovery,
    journal::Journal,
    kernel::{Command, DecisionTable, OnMissingSignal, TurnDecision, TurnEnd, TurnPolicy},
    llm::{Scripted, scripted::ScriptedReply},
    model::{BusyPolicy, Event, Seq, Submission, Usage},
    testkit::{Obstacle, ObstructedJournal, TestOracle, TestSession, TestSystem, advance_time},
};
use serde_json::json;
use tokio::{sync::Notify, task::JoinSet};

use super::{
    HOUR, counts, done,
    family::{Family, allow, as_of, cost, delegate},
    last, memory, more,
};

const QUESTION: &str = "how does the code work?";
const SCOPE: &str = "Read the manual of the frobnicator";
const CHAPTER: &str = "Read its second chapter";

fn parent() -> Scripted {
    Scripted::new()
        .play(ScriptedReply::text(delegate(SCOPE)).usage(cost(10, 1_000)))
        .reply(done("It says: turn left."))
}

fn reader() -> Scripted {
    let page = more("A page.", "Have to turn the page");
    Scripted::new()
        .play(ScriptedReply::text(page).usage(cost(20, 2_000)))
        .stall("Reading")
}

fn family() -> Family {
    Family::new(parent()).child(SCOPE, reader())
}

async fn start(family: &Family, journal: Arc<dyn Journal>) -> TestSystem {
    TestOracle::new(family.clone())
        .policy(|policy| allow(policy, 2))
        .journal(journal)
        .start()
        .await
        .unwrap()
}

async fn reading(oracle: &TestSystem) -> (TestSession, TestSession) {
    let parent = oracle.session("p").unwrap();
    let child = oracle.session("~p.1.1").unwrap();
    parent.submit(Submission::new(QUESTION)).await.unwrap();
    let first = child.wait_for("turn.replied").await.unwrap();
    child
        .wait_for_after(first.seq, "turn.started")
        .await
        .unwrap();
    (parent, child)
}

/// Fills a journal as if the process had died after it recorded the cancellation and before it
/// informed the child. Without `child_at`, the child had not been started either.
async fn died_before_telling(family: &Family, journal: &Arc<dyn Journal>, child_at: Option<&str>) {
    let oracle = start(family, memory()).await;
    let (parent, child) = reading(&oracle).await;
    parent.cancel(None).await.unwrap();
    parent.wait_for("query.finished").await.unwrap();
    as_of(&parent, "delegation.cancelled", journal).await;
    if let Some(kind) = child_at {
        as_of(&child, kind, journal).await;
    }
    oracle.die().await;
}

fn usage(event: &Event) -> Usage {
    serde_json::from_value(event.payload["usage"].clone()).unwrap()
}

fn sum<const N: usize>(parts: [Usage; N]) -> Usage {
    let mut sum = Usage::default();
    parts.into_iter().for_each(|part| sum += part);
    sum
}

/// Returns the usage of the call that was dropped with the session's query.
async fn dropped(session: &TestSession) -> Usage {
    serde_json::from_value(last(session, "llm.failed").await["usage"].clone()).unwrap()
}

async fn from(session: &TestSession, kind: &str) -> Vec<String> {
    let kinds = session.kinds().await.unwrap();
    kinds
        .into_iter()
        .skip_while(|found| found != kind)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn child_ends_first_and_its_usage_is_added_however_the_query_ends() {
    let interrupt = Submission {
        busy: BusyPolicy::Interrupt,
        ..Submission::new("never mind")
    };
    let all = [
        "delegation.cancelled",
        "delegation.finished",
        "query.finished",
    ];
    for (name, command, outcome, reason) in [
        (
            "cancel",
            Command::Cancel { query: None },
            "cancelled",
            json!(null),
        ),
        (
            "finish now",
            Command::FinishNow,
            "forced",
            json!("operator"),
        ),
        (
            "interrupt",
            Command::Submit(interrupt),
            "cancelled",
            json!(null),
        ),
    ] {
        let family = family();
        let oracle = start(&family, memory()).await;
        let (parent, child) = reading(&oracle).await;
        parent.command(command).await.unwrap();
        let finished = parent.wait_for("query.finished").await.unwrap();
        let end = (&finished.payload["outcome"], &finished.payload["reason"]);
        assert_eq!(end, (&json!(outcome), &reason), "{name}");
        let dropped = dropped(&child).await;
        assert!(dropped.input_tokens > 0, "{name}: it was reading");
        let used = sum([cost(10, 1_000), cost(20, 2_000), dropped]);
        assert_eq!(usage(&finished), used, "{name}");
        let kinds = from(&parent, "delegation.cancelled").await;
        assert_eq!(kinds[..3], all, "{name}");
        let childs = last(&child, "query.finished").await;
        assert_eq!(
            childs["outcome"], "cancelled",
            "{name}: it has ended by then"
        );
        while family.of(SCOPE).open() > 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn messages_wait_until_the_child_has_ended() {
    let parent = Scripted::new()
        .reply(delegate(SCOPE))
        .reply(done("Something else."))
        .reply(done("And that."));
    let family = Family::new(parent).child(SCOPE, reader());
    let oracle = start(&family, memory()).await;
    let (parent, _) = reading(&oracle).await;
    parent.submit(Submission::new("and that?")).await.unwrap();
    let interrupt = Submission {
        busy: BusyPolicy::Interrupt,
        ..Submission::new("what else is in the code?")
    };
    let interrupt = parent.answer(interrupt).await.unwrap();
    assert_eq!(interrupt.text, "Something else.");
    let mut ends = 0;
    while ends < 3 {
        tokio::task::yield_now().await;
        [ends] = counts(&parent, ["query.finished"]).await;
    }
    assert_eq!(last(&parent, "query.finished").await["answer"], "And that.");
    assert_eq!(counts(&parent, ["query.accepted"]).await, [3]);
}

fn generations(youngest: Scripted) -> Family {
    let child = Scripted::new()
        .play(ScriptedReply::text(delegate(CHAPTER)).usage(cost(20, 2_000)))
        .play(ScriptedReply::text(done("It is in chapter two.")).usage(cost(40, 4_000)));
    Family::new(parent())
        .child(SCOPE, child)
        .child(CHAPTER, youngest)
}

#[tokio::test(start_paused = true)]
async fn grandchild_usage_counts_in_child_and_parent() {
    let youngest = ScriptedReply::text(done("Turn left.")).usage(cost(80, 8_000));
    let family = generations(Scripted::new().play(youngest));
    let oracle = start(&family, memory()).await;
    let parent = oracle.session("p").unwrap();
    let answer = parent.ask(QUESTION).await.unwrap();
    let mut used = Vec::new();
    for name in ["~~p.1.1.1.1", "~p.1.1"] {
        let session = oracle.session(name).unwrap();
        used.push(usage(&session.wait_for("query.finished").await.unwrap()));
    }
    assert_eq!(used, [cost(80, 8_000), cost(140, 14_000)]);
    let own = usage(&parent.wait_for("turn.replied").await.unwrap());
    assert_eq!(own, cost(10, 1_000));
    let last_turn = serde_json::from_value(last(&parent, "turn.replied").await["usage"].clone());
    assert_eq!(answer.usage, sum([own, used[1], last_turn.unwrap()]));
    assert_eq!(answer.usage.cost.0, 15_000);
    let accepted = last(&oracle.session("~~p.1.1.1.1").unwrap(), "session.opened").await;
    assert_eq!(accepted["parent"]["depth"], 2);
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_descendants_from_the_youngest_up() {
    let family = generations(reader());
    let oracle = start(&family, memory()).await;
    let [eldest, child, youngest] =
        ["p", "~p.1.1", "~~p.1.1.1.1"].map(|name| oracle.session(name).unwrap());
    eldest.submit(Submission::new(QUESTION)).await.unwrap();
    let first = youngest.wait_for("turn.replied").await.unwrap();
    youngest
        .wait_for_after(first.seq, "turn.started")
        .await
        .unwrap();
    eldest.cancel(None).await.unwrap();
    let finished = eldest.wait_for("query.finished").await.unwrap();
    let mut expected = dropped(&youngest).await;
    for (session, own) in [(&youngest, cost(20, 2_000)), (&child, cost(20, 2_000))] {
        expected += own;
        let [ended] = counts(session, ["query.finished"]).await;
        assert_eq!(ended, 1, "before the eldest");
        let end = session.wait_for("query.finished").await.unwrap();
        assert_eq!(
            (usage(&end), &end.payload["outcome"]),
            (expected, &json!("cancelled"))
        );
    }
    assert_eq!(usage(&finished), sum([expected, cost(10, 1_000)]));
    assert_eq!(oracle.oracle().running(), 0);
}

#[tokio::test(start_paused = true)]
async fn next_process_cancels_a_child_left_uncancelled() {
    let (family, journal) = (family(), memory());
    died_before_telling(&family, &journal, Some("turn.replied")).await;
    let oracle = start(&family, journal).await;
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    let finished = parent.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
    // Both return at once, so the child has called its model again.
    let again = dropped(&child).await;
    assert_eq!(counts(&child, ["turn.started", "llm.failed"]).await, [2, 1]);
    assert_eq!(
        usage(&finished),
        sum([cost(10, 1_000), cost(20, 2_000), again])
    );
    assert_eq!(last(&child, "query.finished").await["outcome"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn cancel_does_not_start_a_child_that_never_ran() {
    let (family, journal) = (family(), memory());
    died_before_telling(&family, &journal, None).await;
    let asked = family.of(SCOPE).opened();
    let oracle = start(&family, journal).await;
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    let finished = parent.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
    assert_eq!(usage(&finished), cost(10, 1_000));
    let end = last(&parent, "delegation.finished").await;
    assert_eq!(end["outcome"], "cancelled");
    assert_eq!(counts(&child, ["query.accepted"]).await, [0]);
    assert_eq!(family.of(SCOPE).opened(), asked, "nobody asked a model");
}

#[tokio::test(start_paused = true)]
async fn child_that_answered_before_its_cancel_still_counts() {
    let page = more("A page.", "Have to turn the page");
    let child = Scripted::new()
        .play(ScriptedReply::text(page).usage(cost(20, 2_000)))
        .stall("Reading")
        .play(ScriptedReply::text(done("Turn left.")).usage(cost(40, 4_000)));
    let (family, journal) = (Family::new(parent()).child(SCOPE, child), memory());
    died_before_telling(&family, &journal, Some("turn.replied")).await;
    let oracle = TestOracle::new(family.clone())
        .policy(|policy| {
            allow(policy, 2);
            // The log ends between a reply and its signal, for which `auto` would add a turn.
            policy.on_missing_signal = OnMissingSignal::Remind;
        })
        .journal(journal)
        .settings(|settings| settings.recovery = Recovery::OnDemand);
    let oracle = oracle.start().await.unwrap();
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    // A command activates the child, which then finishes its query.
    child.resume().await.unwrap();
    child.wait_for("query.finished").await.unwrap();
    assert_eq!(parent.view().await.unwrap().state.as_str(), "ending");
    parent.resume().await.unwrap();
    let finished = parent.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
    assert_eq!(usage(&finished), sum([cost(10, 1_000), cost(60, 6_000)]));
    let end = last(&parent, "delegation.finished").await;
    assert_eq!(
        (&end["outcome"], &end["answer"]),
        (&json!("answered"), &json!("Turn left."))
    );
}

/// The default decision table, which notifies the test before it decides anything.
#[derive(Debug)]
struct Bell(Arc<Notify>);

impl TurnPolicy for Bell {
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
        self.0.notify_one();
        DecisionTable.decide(turn)
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_at_any_moment_leaves_no_child_running() {
    // From before the child is started to after its first call.
    for steps in 0..16 {
        let (family, rung) = (family(), Arc::new(Notify::new()));
        let bell = Arc::new(Bell(Arc::clone(&rung)));
        let oracle = TestOracle::new(family.clone())
            .policy(|policy| allow(policy, 2))
            .policy(|policy| policy.turn = bell)
            .start()
            .await
            .unwrap();
        let (parent, child) = (
            oracle.session("p").unwrap(),
            oracle.session("~p.1.1").unwrap(),
        );
        let person = parent.clone();
        // A spawned task runs at once; the test's own task runs only when the runtime is idle.
        let mut people = JoinSet::new();
        people.spawn(async move {
            rung.notified().await;
            for _ in 0..steps {
                tokio::task::yield_now().await;
            }
            person.cancel(None).await.unwrap();
        });
        parent.submit(Submission::new(QUESTION)).await.unwrap();
        people.join_all().await;
        let finished = parent.wait_for("query.finished").await.unwrap();
        assert_eq!(finished.payload["outcome"], "cancelled", "{steps}");
        let [turns] = counts(&parent, ["turn.replied"]).await;
        let [begun, ended] = counts(&child, ["query.accepted", "query.finished"]).await;
        assert_eq!(begun, ended, "{steps}");
        let mut expected = Usage::default();
        if turns > 0 {
            expected += cost(10, 1_000);
        }
        if ended > 0 {
            expected += usage(&child.wait_for("query.finished").await.unwrap());
        }
        assert_eq!(usage(&finished), expected, "{steps}");
        advance_time(Duration::from_secs(60)).await;
        assert_eq!(family.of(SCOPE).open(), 0, "{steps}");
        let later = counts(&child, ["query.accepted"]).await;
        assert_eq!(later, [begun], "{steps}: nor later");
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_cancel_changes_nothing() {
    let family = family();
    let journal = ObstructedJournal::new(memory());
    let oracle = start(&family, Arc::new(journal.clone())).await;
    let (parent, child) = reading(&oracle).await;
    let sid = journal
        .find(child.key().clone())
        .await
        .unwrap()
        .unwrap()
        .sid;
    journal.set(Obstacle::Stuck(sid));
    for _ in 0..3 {
        parent.cancel(None).await.unwrap();
    }
    assert_eq!(parent.view().await.unwrap().state.as_str(), "ending");
    journal.set(Obstacle::None);
    parent.wait_for("query.finished").await.unwrap();
    let kinds = [
        "control.cancelled",
        "delegation.cancelled",
        "delegation.finished",
    ];
    assert_eq!(counts(&parent, kinds).await, [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn parent_ends_without_a_hanging_child_and_retries_its_cancel() {
    let family = family();
    let journal = ObstructedJournal::new(memory());
    // The child may crash any number of times without losing its query.
    let oracle = TestOracle::new(family.clone())
        .policy(|policy| allow(policy, 2))
        .policy(|policy| policy.restarts.crashes = 1_000)
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap();
    let (parent, child) = reading(&oracle).await;
    let sid = journal
        .find(child.key().clone())
        .await
        .unwrap()
        .unwrap()
        .sid;
    journal.set(Obstacle::Stuck(sid));
    parent.cancel(None).await.unwrap();
    // One minute for the child, and one for a child of its own.
    advance_time(Duration::from_secs(119)).await;
    assert_eq!(parent.view().await.unwrap().state.as_str(), "ending");
    advance_time(Duration::from_secs(2)).await;
    let finished = parent.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
    let end = last(&parent, "delegation.finished").await;
    assert_eq!(
        (&end["outcome"], &end["code"]),
        (&json!("failed"), &json!("child"))
    );
    let detail = "it was cancelled but did not end within 120s; the usage that it recorded until \
                  then is counted";
    assert_eq!(end["detail"], detail);
    assert_eq!(usage(&finished), sum([cost(10, 1_000), cost(20, 2_000)]));
    // The parent is free, and the child is cancelled as soon as its journal works.
    journal.set(Obstacle::None);
    let ended = child.wait_for("query.finished").await.unwrap();
    assert_eq!(ended.payload["outcome"], "cancelled");
    advance_time(HOUR).await;
    assert_eq!(family.of(SCOPE).open(), 0);
}

#[tokio::test(start_paused = true)]
async fn unreadable_child_counts_as_zero_usage_and_is_recorded() {
    let (family, memory) = (family(), memory());
    died_before_telling(&family, &memory, Some("turn.replied")).await;
    let journal = ObstructedJournal::new(memory);
    let oracle = start(&family, Arc::new(journal.clone())).await;
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    let sid = journal
        .find(child.key().clone())
        .await
        .unwrap()
        .unwrap()
        .sid;
    journal.set(Obstacle::Unreadable(sid));
    parent.view().await.unwrap();
    let finished = parent.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
    assert_eq!(usage(&finished), cost(10, 1_000));
    let end = last(&parent, "delegation.finished").await;
    let detail = end["detail"].as_str().unwrap();
    let said = "; its usage is unknown and not counted";
    assert!(detail.ends_with(said), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_child_to_end_is_no_stall() {
    let family = family();
    let journal = ObstructedJournal::new(memory());
    let oracle = TestOracle::new(family.clone())
        .policy(|policy| allow(policy, 1))
        .settings(|settings| settings.stall_limit = Duration::from_secs(20))
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap();
    let (parent, child) = reading(&oracle).await;
    let sid = journal
        .find(child.key().clone())
        .await
        .unwrap()
        .unwrap()
        .sid;
    journal.set(Obstacle::Stuck(sid));
    parent.cancel(None).await.unwrap();
    advance_time(Duration::from_secs(50)).await;
    assert_eq!(parent.view().await.unwrap().state.as_str(), "ending");
    journal.set(Obstacle::None);
    parent.wait_for("query.finished").await.unwrap();
    assert_eq!(counts(&parent, ["supervisor.restarted"]).await, [0]);
    let events = child.events(Seq(0)).await.unwrap();
    assert!(events.iter().any(|event| event.kind == "query.finished"));
}
