//! Sub-agents: sessions of their own, whose answers come back as data.

use std::sync::Arc;

use oracle_agent::{
    kernel::{DelegationPolicy, Policy},
    llm::{Backend, DeltaStream, Request, Scripted},
    model::Seq,
    testkit::{Panics, Probe, Shaky, TestOracle, TestSession, TestSystem},
};
use serde_json::json;

use super::{answered, counts, done, end, last};

const SCOPE: &str = "Read the manual of the frobnicator";

/// One script for the child, which is known by its question, another for the parent.
#[derive(Clone)]
struct Family {
    parent: Scripted,
    child: Probe<Scripted>,
}

impl Backend for Family {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let first: String = request.messages[0].texts().collect();
        if first == SCOPE {
            self.child.call(request)
        } else {
            self.parent.call(request)
        }
    }
}

fn family(child: Scripted) -> Family {
    let wish = format!(
        "I will have that read.\n<signal type=\"delegation_recommended\"><reason>It is long</reason>\
         <scope>{SCOPE}</scope><estimated_tokens>5000</estimated_tokens></signal>"
    );
    Family {
        parent: Scripted::new()
            .reply(wish)
            .reply(done("It says: turn left.")),
        child: Probe::new(child),
    }
}

fn allow(policy: &mut Policy) {
    policy.delegation = DelegationPolicy {
        max_depth: 1,
        max_children: 2,
        default_tokens: 1_000,
    };
}

async fn start(family: &Family) -> (TestSystem, TestSession, TestSession) {
    let oracle = TestOracle::new(family.clone())
        .policy(allow)
        .start()
        .await
        .unwrap();
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("p.1.1").unwrap(),
    );
    (oracle, parent, child)
}

#[tokio::test(start_paused = true)]
async fn a_childs_answer_comes_back_as_data_and_its_usage_is_added() {
    let family = family(Scripted::new().reply(done("Turn left.")));
    let (_oracle, parent, child) = start(&family).await;
    let answer = parent.ask("how does the code work?").await.unwrap();
    assert_eq!(end(&answer), answered("It says: turn left."));
    assert_eq!(answer.turns, 2, "the child's turns do not count");
    let opened = last(&child, "session.opened").await;
    assert_eq!(
        opened["parent"],
        json!({"session": "p", "query": 1, "depth": 1})
    );
    let accepted = last(&child, "query.accepted").await;
    assert_eq!(
        accepted["limits"],
        json!({"max_turns": 30, "max_tokens": 5000})
    );
    let requests = family.parent.requests();
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
async fn a_child_cannot_have_children_of_its_own() {
    let wish = "<signal type=\"delegation_recommended\"><reason>It is long</reason>\
                <scope>Read the rest of it</scope></signal>";
    let family = family(Scripted::new().reply(wish).reply(done("Turn left.")));
    let (oracle, parent, child) = start(&family).await;
    parent.ask("how does the code work?").await.unwrap();
    let kinds = ["delegation.recommended", "delegation.started"];
    assert_eq!(counts(&child, kinds).await, [1, 0]);
    let grandchild = oracle.session("p.1.1.1.1").unwrap();
    assert_eq!(grandchild.kinds().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_parent_cancels_the_child() {
    let family = family(Scripted::new().stall("Reading"));
    let (oracle, parent, child) = start(&family).await;
    let person = async {
        child.wait_for("turn.started").await.unwrap();
        parent.cancel(None).await.unwrap();
    };
    let (answer, ()) = tokio::join!(parent.ask("how does the code work?"), person);
    assert_eq!(answer.unwrap().outcome.name(), "cancelled");
    let finished = child.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
    while family.child.open() > 0 || oracle.oracle().running() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_interrupts_the_parent_leaves_no_orphan() {
    let family = family(Scripted::new().stall("Reading"));
    let (_oracle, parent, child) = start(&family).await;
    let interrupt = oracle_agent::model::Submission {
        busy: oracle_agent::model::BusyPolicy::Interrupt,
        ..oracle_agent::model::Submission::new("never mind, tell me what else there is")
    };
    parent
        .submit(oracle_agent::model::Submission::new(
            "how does the code work?",
        ))
        .await
        .unwrap();
    child.wait_for("turn.started").await.unwrap();
    parent.submit(interrupt).await.unwrap();
    let finished = child.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_brought_back_finds_its_child_and_starts_no_other() {
    let family = family(Scripted::new().stall("Reading").reply(done("Turn left.")));
    let panics = Panics::default();
    let crash = panics.clone();
    let memory = super::memory();
    let build = || {
        let crash = crash.clone();
        TestOracle::new(family.clone())
            .policy(allow)
            .policy(move |policy| policy.turn = Arc::new(Shaky(crash)))
            .journal(memory.clone())
    };
    let oracle = build().start().await.unwrap();
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("p.1.1").unwrap(),
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
        oracle.session("p.1.1").unwrap(),
    );
    // Activated on demand, the parent asks for its child again.
    assert_eq!(parent.view().await.unwrap().state, "delegating");
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
async fn a_child_that_fails_is_told_to_the_parent_which_goes_on() {
    let fault = oracle_agent::model::Fault::permanent("auth", "the key is wrong");
    let family = family(Scripted::new().fault(fault));
    let (_oracle, parent, _child) = start(&family).await;
    let answer = parent.ask("how does the code work?").await.unwrap();
    assert_eq!(end(&answer), answered("It says: turn left."));
    let finished = last(&parent, "delegation.finished").await;
    assert_eq!(finished["code"], "auth", "{finished}");
}
