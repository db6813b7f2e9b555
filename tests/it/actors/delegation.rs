//! Sub-agents: sessions of their own, whose answers return as data.

use std::sync::Arc;

use oracle_agent::{
    actor::AskError,
    journal::{Journal, Memory, Only},
    kernel::{Command, Refusal},
    llm::Scripted,
    model::{ForkPoint, Import, Limits, ProfileName, QueryId, Seq, Submission, command::Author},
    testkit::{
        Obstacle, ObstructedJournal, PanickingPolicy, Panics, TestOracle, TestSession, TestSystem,
        advance_time,
        faulty::{Failure, FaultyJournal, Operation, fail},
    },
};
use serde_json::json;

use super::{
    answered, counts, done, end,
    family::{Family, allow, delegate},
    last,
};

const SCOPE: &str = "Read the manual of the frobnicator";

fn family(child: Scripted) -> Family {
    let parent = Scripted::new()
        .reply(delegate(SCOPE))
        .reply(done("It says: turn left."));
    Family::new(parent).child(SCOPE, child)
}

async fn start(family: &Family) -> (TestSystem, TestSession, TestSession) {
    let oracle = TestOracle::new(family.clone())
        .policy(|policy| allow(policy, 1))
        .start()
        .await
        .unwrap();
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    (oracle, parent, child)
}

#[tokio::test(start_paused = true)]
async fn child_answer_reaches_the_parent_as_data_with_its_usage() {
    let family = family(Scripted::new().reply(done("Turn left.")));
    let (_oracle, parent, child) = start(&family).await;
    let answer = parent.ask("how does the code work?").await.unwrap();
    assert_eq!(end(&answer), answered("It says: turn left."));
    assert_eq!(answer.turns, 2, "the child's turns do not count");
    let opened = last(&child, "session.opened").await;
    assert_eq!(
        opened["parent"],
        json!({"session": "p", "query": 1, "depth": 1, "tools": []})
    );
    let accepted = last(&child, "query.accepted").await;
    assert_eq!(
        accepted["limits"],
        json!({"max_turns": 30, "max_tokens": 5000})
    );
    let requests = family.parent().requests();
    let told = requests.last().unwrap().messages.last().unwrap();
    let told: String = told.texts().collect();
    assert!(told.contains("Turn left."), "{told}");
    let child_used = last(&child, "query.finished").await["usage"].clone();
    let finished = last(&parent, "delegation.finished").await;
    assert_eq!(finished["usage"], child_used);
    let own: u64 = parent
        .events(Seq(0))
        .await
        .unwrap()
        .iter()
        .filter(|event| event.kind == "turn.replied")
        .map(|event| event.payload["usage"]["output_tokens"].as_u64().unwrap())
        .sum();
    let childs = child_used["output_tokens"].as_u64().unwrap();
    assert_eq!(answer.usage.output_tokens, own + childs);
}

#[tokio::test(start_paused = true)]
async fn conversation_that_looks_like_a_sub_agent_is_neither_written_nor_deleted() {
    let private = "Where is the key?";
    let own = Scripted::new().reply(done("Under the mat."));
    let family = family(Scripted::new().reply(done("Turn left."))).child(private, own);
    let (oracle, parent, child) = start(&family).await;
    let other = oracle.session("p.1.1").unwrap();
    other.ask(private).await.unwrap();
    let before = other.kinds().await.unwrap();
    let answer = parent.ask("how does the code work?").await.unwrap();
    assert_eq!(end(&answer), answered("It says: turn left."));
    assert_eq!(other.kinds().await.unwrap(), before);
    let deleted = oracle.oracle().delete(parent.key(), Only::WhenIdle).await;
    let gone = deleted.unwrap().sub_agents.into_iter();
    let gone: Vec<_> = gone.map(|known| known.key).collect();
    assert_eq!(gone, [child.key().clone()]);
    assert_eq!(other.kinds().await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn no_caller_begins_or_continues_the_session_of_a_sub_agent() {
    let family = family(Scripted::new().reply(done("Turn left.")));
    let (oracle, parent, child) = start(&family).await;
    let other = ProfileName::oracle();
    let other = oracle
        .oracle()
        .create(oracle.session("other").unwrap().key().clone(), other, None);
    let other = other.await.unwrap();
    let refused = async || {
        let planted = |key: Option<&str>| Submission {
            idempotency_key: key.map(str::to_owned),
            ..Submission::new("Say turn right.").with(Import {
                instructions: Some("Say turn right.".into()),
                ..Import::default()
            })
        };
        let (key, point) = (
            child.key().clone(),
            ForkPoint {
                query: QueryId(0),
                turn: None,
            },
        );
        let limits = Limits::default().into();
        let (profile, import) = (
            ProfileName::oracle(),
            planted(None).import.map(|import| *import),
        );
        for (way, refused) in [
            ("message", child.submit(planted(None)).await.err()),
            ("key", child.submit(planted(Some("delegation"))).await.err()),
            (
                "continue",
                child.command(Command::Continue(limits)).await.err(),
            ),
            (
                "create",
                oracle
                    .oracle()
                    .create(key.clone(), profile, import)
                    .await
                    .err(),
            ),
            (
                "fork",
                oracle
                    .oracle()
                    .fork(other.key(), point, key.name)
                    .await
                    .err(),
            ),
        ] {
            assert!(
                matches!(refused, Some(AskError::Reserved(_))),
                "{way}: {refused:?}"
            );
        }
        let steer = Command::Steer {
            text: "Say turn right.".into(),
            author: Author::User,
        };
        let idle = child.command(steer).await;
        assert!(
            matches!(idle, Err(AskError::Refused(Refusal::NothingRunning))),
            "{idle:?}"
        );
    };
    refused().await;
    let paused = child.pause().await;
    assert!(
        matches!(paused, Err(AskError::Refused(Refusal::NothingRunning))),
        "{paused:?}"
    );
    assert_eq!(child.kinds().await.unwrap(), Vec::<String>::new());
    let answer = parent.ask("how does the code work?").await.unwrap();
    assert_eq!(end(&answer), answered("It says: turn left."));
    let kinds = ["query.accepted", "turn.started", "control.steered"];
    assert_eq!(counts(&child, kinds).await, [1, 1, 0], "it can be read");
    refused().await;
    assert_eq!(counts(&child, kinds).await, [1, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_child_cannot_have_children_of_its_own() {
    let wish = "<signal type=\"delegation_recommended\"><reason>It is long</reason>\
                <scope>Read the rest of it</scope></signal>";
    let family = family(Scripted::new().reply(wish).reply(done("Turn left.")));
    let (oracle, parent, child) = start(&family).await;
    parent.ask("how does the code work?").await.unwrap();
    let kinds = ["delegation.recommended", "delegation.started"];
    assert_eq!(counts(&child, kinds).await, [1, 0]);
    let grandchild = oracle.session("~~p.1.1.1.1").unwrap();
    assert_eq!(grandchild.kinds().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn recovered_parent_reattaches_to_its_child() {
    let family = family(Scripted::new().stall("Reading").reply(done("Turn left.")));
    let panics = Panics::default();
    let crash = panics.clone();
    let memory = super::memory();
    let build = || {
        let crash = crash.clone();
        TestOracle::new(family.clone())
            .policy(|policy| allow(policy, 1))
            .policy(move |policy| policy.turn = Arc::new(PanickingPolicy(crash)))
            .journal(memory.clone())
    };
    let oracle = build().start().await.unwrap();
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    parent
        .submit(oracle_agent::model::Submission::new(
            "how does the code work?",
        ))
        .await
        .unwrap();
    child.wait_for("turn.started").await.unwrap();
    oracle.die().await;
    let oracle = build().start().await.unwrap();
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    // Activated on demand, the parent starts its child again, under the same key.
    assert_eq!(parent.view().await.unwrap().state.as_str(), "delegating");
    let finished = parent.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["answer"], "It says: turn left.");
    let kinds = ["query.accepted", "query.finished"];
    assert_eq!(counts(&child, kinds).await, [1, 1]);
    assert_eq!(
        counts(&parent, ["delegation.started", "delegation.finished"]).await,
        [1, 1]
    );
}

#[tokio::test(start_paused = true)]
async fn parent_continues_after_its_child_failed() {
    let fault = oracle_agent::model::Fault::permanent("auth", "the key is wrong");
    let family = family(Scripted::new().fault(fault));
    let (_oracle, parent, _child) = start(&family).await;
    let answer = parent.ask("how does the code work?").await.unwrap();
    assert_eq!(end(&answer), answered("It says: turn left."));
    let finished = last(&parent, "delegation.finished").await;
    assert_eq!(finished["code"], "auth", "{finished}");
}

#[tokio::test(start_paused = true)]
async fn failed_append_of_a_child_neither_loses_nor_doubles_it() {
    // 1 and 2 are the parent's; 3 opens the child and begins its query, 4 ends it; 5 and 6 are the
    // parent's.
    for number in 3..=6 {
        for failure in [Failure::NotExecuted, Failure::ExecutedWithoutReply] {
            let name = format!("append {number} {failure:?}");
            let plan = fail(Operation::Append, number, failure);
            let family = family(Scripted::new().reply(done("Turn left.")));
            let oracle = TestOracle::new(family.clone())
                .policy(|policy| allow(policy, 1))
                .journal(Arc::new(FaultyJournal::new(Memory::new(), plan)))
                .start()
                .await
                .unwrap();
            let parent = oracle.session("p").unwrap();
            let child = oracle.session("~p.1.1").unwrap();
            let answer = parent.ask("how does the code work?").await.unwrap();
            assert_eq!(end(&answer), answered("It says: turn left."), "{name}");
            let kinds = ["session.opened", "query.accepted", "query.finished"];
            assert_eq!(counts(&child, kinds).await, [1, 1, 1], "{name}");
            let finished = last(&parent, "delegation.finished").await;
            assert_eq!(finished["answer"], "Turn left.", "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn child_that_hangs_is_cancelled_once_it_can_be() {
    let family = family(Scripted::new().reply(done("Turn left.")));
    let journal = ObstructedJournal::new(super::memory());
    let oracle = TestOracle::new(family.clone())
        .policy(|policy| allow(policy, 1))
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap();
    let child = oracle.session("~p.1.1").unwrap();
    // Its session was claimed before, and its appends hang once it has begun.
    let claim = journal.claim(child.key().clone()).await.unwrap();
    journal.set(Obstacle::Stuck(claim.sid));
    let parent = oracle.session("p").unwrap();
    let answer = parent.ask("how does the code work?").await.unwrap();
    assert_eq!(end(&answer), answered("It says: turn left."));
    let finished = last(&parent, "delegation.finished").await;
    assert_eq!(finished["code"], "child", "{finished}");
    journal.set(Obstacle::None);
    advance_time(super::HOUR).await;
    let [begun, ended] = counts(&child, ["query.accepted", "query.finished"]).await;
    assert_eq!((begun, ended), (1, 1));
    assert_eq!(family.of(SCOPE).opened(), 1, "not called again");
}
