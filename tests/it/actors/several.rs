//! Several sub-agents at a time: their progress, types, pauses and end.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    llm::Scripted,
    model::{QueryId, Seq, Submission},
    testkit::{TestOracle, TestSystem, TestTool, advance_time},
};
use serde_json::json;

use super::{
    answered, counts, done, end,
    family::{Family, allow, as_of, delegate, delegate_all},
    last, memory, more,
};

const QUESTION: &str = "how does the code work?";
const PARTS: [&str; 3] = ["Read part one", "Read part two", "Read part three"];
const SECOND: Duration = Duration::from_secs(1);

/// A parent with three sub-agents, each of two turns that take a second.
fn family() -> Family {
    let parent = Scripted::new().reply(delegate_all(&PARTS));
    let family = Family::new(parent.reply(done("All of it.")));
    PARTS.into_iter().fold(family, |family, part| {
        let script = Scripted::new().reply(more("A page.", "Have to turn the page"));
        let script = script.slowly(SECOND).reply(done(&format!("{part}: done.")));
        family.child(part, script.slowly(SECOND))
    })
}

async fn start(family: &Family) -> TestSystem {
    let oracle = TestOracle::new(family.clone()).policy(|policy| {
        allow(policy, 1);
        policy.delegation.max_children = 3;
        policy.delegation.max_parallel = 2;
    });
    oracle.start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn children_run_at_the_same_time_and_report_their_turns() {
    let family = family();
    let oracle = start(&family).await;
    let parent = oracle.session("p").unwrap();
    parent.submit(Submission::new(QUESTION)).await.unwrap();
    parent.wait_for("delegation.started").await.unwrap();
    advance_time(SECOND / 2).await;
    let open = PARTS.map(|part| family.of(part).open());
    assert_eq!(open, [1, 1, 0], "two at a time");
    let early = parent.sub_agents(QueryId(1)).await.unwrap();
    assert_eq!((early.len(), early[0].outcome), (2, None));
    parent.wait_for("query.finished").await.unwrap();
    let kinds = [
        "delegation.started",
        "delegation.progressed",
        "delegation.finished",
    ];
    assert_eq!(counts(&parent, kinds).await, [3, 6, 3]);
    let events = parent.events(Seq(0)).await.unwrap();
    let progress = events
        .iter()
        .find(|event| event.kind == "delegation.progressed");
    let progress = &progress.unwrap().payload;
    assert_eq!(
        (
            &progress["child"],
            &progress["turns"],
            &progress["signal"],
            &progress["reason"]
        ),
        (
            &json!("~p.1.1"),
            &json!(1),
            &json!("need_turn"),
            &json!("Have to turn the page")
        )
    );
    let told = family.parent().requests();
    let told = told.last().unwrap().messages.iter();
    let told: String = told.flat_map(|message| message.texts()).collect();
    let mut rest = told.as_str();
    for part in PARTS {
        let (_, after) = rest.split_once(&format!("| {part}: done.")).expect(part);
        rest = after;
    }
    let tree = parent.sub_agents(QueryId(1)).await.unwrap();
    for (agent, part) in tree.iter().zip(PARTS) {
        let found = (agent.scope.as_str(), agent.outcome, agent.turns);
        assert_eq!(found, (part, Some("answered"), 2));
        assert!(agent.tokens > 0 && agent.sub_agents.is_empty());
    }
    let finished = last(&parent, "query.finished").await;
    let used = tree.iter().map(|agent| agent.tokens).sum::<u64>();
    let all = &finished["usage"];
    let all = all["input_tokens"].as_u64().unwrap() + all["output_tokens"].as_u64().unwrap();
    assert!(all > used, "{all} with the parent's own, {used}");
}

#[tokio::test(start_paused = true)]
async fn typed_child_runs_under_its_profile_with_the_parents_tools_of_that_type() {
    const SCOPE: &str = "Read the manual of the frobnicator";
    for (wanted, profile, tools) in [
        ("", "oracle", json!(["look"])),
        ("editor", "editor", json!(["look", "change"])),
    ] {
        let kind = format!("<subagent_type>{wanted}</subagent_type></signal>");
        let wish = delegate(SCOPE).replace("</signal>", &kind);
        let child = Scripted::new().reply(done("Turn left."));
        let family = Family::new(Scripted::new().reply(wish).reply(done("Left.")));
        let family = family.child(SCOPE, child.clone());
        let oracle = TestOracle::new(family.clone())
            .tool(TestTool::new("look"))
            .tool(TestTool::new("change").writes())
            .profile("editor")
            .unwrap()
            .policy(|policy| allow(policy, 1));
        let oracle = oracle.start().await.unwrap();
        let (parent, session) = (
            oracle.session("p").unwrap(),
            oracle.session("~p.1.1").unwrap(),
        );
        let answer = parent.ask(QUESTION).await.unwrap();
        assert_eq!(end(&answer), answered("Left."));
        let opened = last(&session, "session.opened").await;
        assert_eq!(
            (&opened["profile"], &opened["parent"]["tools"]),
            (&json!(profile), &tools)
        );
        let request = child.requests().remove(0);
        let offered: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert_eq!(json!(offered), tools, "{wanted}");
        let asked = &family.parent().requests()[0].system;
        assert!(
            asked.contains("`subagent_type`, one of: `editor`"),
            "{asked}"
        );
        assert!(
            !request.system.contains("subagent_type"),
            "it cannot delegate"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn children_pause_and_resume_with_their_parent() {
    let family = family();
    let oracle = start(&family).await;
    let name = |name| oracle.session(name).unwrap();
    let (parent, first, second) = (name("p"), name("~p.1.1"), name("~p.1.2"));
    parent.submit(Submission::new(QUESTION)).await.unwrap();
    second.wait_for("turn.started").await.unwrap();
    // An operator pauses one of them, which stays paused when the parent resumes.
    second.pause().await.unwrap();
    parent.pause().await.unwrap();
    first.wait_for("control.paused").await.unwrap();
    advance_time(60 * SECOND).await;
    let asked = PARTS.map(|part| family.of(part).opened());
    assert_eq!(asked, [1, 1, 0], "no further call");
    parent.resume().await.unwrap();
    first.wait_for("query.finished").await.unwrap();
    advance_time(60 * SECOND).await;
    assert_eq!(
        counts(&second, ["query.finished", "control.paused"]).await,
        [0, 1]
    );
    second.resume().await.unwrap();
    let finished = parent.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["answer"], "All of it.");
}

#[tokio::test(start_paused = true)]
async fn pause_and_resume_reach_the_children_across_restarts() {
    let (family, journal) = (family(), memory());
    let build = || {
        let oracle = TestOracle::new(family.clone()).policy(|policy| allow(policy, 1));
        oracle.journal(Arc::clone(&journal)).start()
    };
    let oracle = build().await.unwrap();
    let parent = oracle.session("p").unwrap();
    parent.submit(Submission::new(QUESTION)).await.unwrap();
    let child = oracle.session("~p.1.1").unwrap();
    child.wait_for("turn.started").await.unwrap();
    // The process dies before the child hears of it.
    parent.pause().await.unwrap();
    oracle.die().await;
    let oracle = build().await.unwrap();
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    child.wait_for("control.paused").await.unwrap();
    parent.resume().await.unwrap();
    oracle.die().await;
    let oracle = build().await.unwrap();
    let parent = oracle.session("p").unwrap();
    let finished = parent.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["answer"], "All of it.");
}

#[tokio::test(start_paused = true)]
async fn child_that_its_parent_no_longer_awaits_is_cancelled_when_it_is_activated() {
    let (family, journal) = (family(), memory());
    let oracle = start(&family).await;
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    parent.submit(Submission::new(QUESTION)).await.unwrap();
    child.wait_for("turn.replied").await.unwrap();
    parent.cancel(None).await.unwrap();
    parent.wait_for("query.finished").await.unwrap();
    // As if the parent had given up, and the process had died before the child heard of it.
    as_of(&parent, "query.finished", &journal).await;
    as_of(&child, "turn.replied", &journal).await;
    oracle.die().await;
    let asked = family.of(PARTS[0]).opened();
    let oracle = TestOracle::new(family.clone()).journal(journal);
    let oracle = oracle.start().await.unwrap();
    let child = oracle.session("~p.1.1").unwrap();
    let finished = child.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
    assert_eq!(
        family.of(PARTS[0]).opened(),
        asked,
        "no model is called for it"
    );
}
