//! Views of queries, and the API description.

use oracle_agent::{
    kernel::Command,
    llm::{Scripted, scripted::Try},
    testkit::{SilentBackend, TestOracle},
};
use serde_json::{Value, json};

use super::{super::greeter, Api, refusal};
use crate::actors::family::{Family, allow, delegate, delegate_all};

const MORE: &str = "Half of it.\n<signal type=\"need_turn\"><reason>the other half is \
                    missing</reason><confidence>0.9</confidence></signal>";
const BROKEN: &str = "Still.\n<signal type=\"need_turn\"><reason>x</reason></signal>";
const DONE: &str = "All of it.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
                    <confidence>0.9</confidence></signal>";

#[tokio::test]
async fn query_shows_its_course_from_acceptance_to_answer() {
    let model = Scripted::new().reply(MORE).reply(BROKEN).reply(DONE);
    let api = Api::of(TestOracle::new(model)).await;
    let question = "Where in the code is the parser implemented?";
    api.session("s").ask(question).await.unwrap();
    let (status, query) = api.get("/api/sessions/s/queries/1").await;
    assert_eq!(status, 200);
    let told = |field: &str| query[field].clone();
    assert_eq!(told("text"), question);
    assert_eq!(
        (told("session"), told("query"), told("seq")),
        (json!("s"), json!(1), json!(2))
    );
    assert_eq!(
        (told("state"), told("outcome")),
        (json!("finished"), json!("answered"))
    );
    assert_eq!(
        (told("turns"), told("answer")),
        // The next signal is about the reply whose signal was rejected.
        (json!(3), json!("Still."))
    );
    assert_eq!(query["limits"]["max_turns"], 30);
    assert_eq!(query["classification"]["query_type"], "code");
    assert_eq!(query["prompt"]["hash"].as_str().unwrap().len(), 64);
    assert_eq!(
        query["prompt"]["segments"],
        json!(["base", "signals", "tools", "code"])
    );
    let signals = query["signals"].as_array().unwrap();
    let kinds: Vec<&Value> = signals
        .iter()
        .map(|signal| &signal["signal"]["type"])
        .collect();
    assert_eq!(
        kinds,
        [
            &json!("need_turn"),
            &Value::Null,
            &json!("context_sufficient")
        ]
    );
    assert!(
        signals[0]["raw_xml"]
            .as_str()
            .unwrap()
            .starts_with("<signal")
    );
    assert!(signals[1]["rejected"].as_str().unwrap().contains("reason"));
    let log = api.log("s").await;
    let finished = log
        .iter()
        .find(|event| event.kind == "query.finished")
        .unwrap();
    assert_eq!(query["finished_at"], finished.at.to_string());
    assert_eq!(
        query["usage"]["output_tokens"],
        finished.payload["usage"]["output_tokens"]
    );
}

#[tokio::test]
async fn queries_are_listed_by_pages() {
    let model = Scripted::new().reply(DONE).reply(DONE);
    let api = Api::of(TestOracle::new(SilentBackend::new(0, model))).await;
    for question in ["the first one?", "the second one?"] {
        api.session("s").ask(question).await.unwrap();
    }
    let (_, all) = api.get("/api/sessions/s/queries").await;
    let told = |page: &Value| -> Vec<(u64, String)> {
        let queries = page["queries"].as_array().unwrap().iter();
        queries
            .map(|query| {
                let outcome = query["outcome"].as_str().unwrap_or("none");
                (query["query"].as_u64().unwrap(), outcome.to_owned())
            })
            .collect()
    };
    assert_eq!(told(&all), [(1, "answered".into()), (2, "answered".into())]);
    assert_eq!(all["next"], Value::Null);
    let (_, first) = api.get("/api/sessions/s/queries?limit=1").await;
    assert_eq!(told(&first), [(1, "answered".into())]);
    let rest = format!("/api/sessions/s/queries?limit=1&after={}", first["next"]);
    let (_, rest) = api.get(&rest).await;
    assert_eq!(
        (told(&rest), &rest["next"]),
        (vec![(2, "answered".into())], &Value::Null)
    );
}

#[tokio::test]
async fn query_shows_running_or_waiting() {
    let model = SilentBackend::new(1, Scripted::new().reply(DONE));
    let api = Api::of(TestOracle::new(model)).await;
    for text in ["hello", "more"] {
        let (status, _) = api
            .post("/api/sessions/s/messages", json!({ "text": text }))
            .await;
        assert_eq!(status, 202);
    }
    api.session("s").wait_for("turn.started").await.unwrap();
    for (query, state) in [(1, "running"), (2, "waiting")] {
        let (_, told) = api.get(&format!("/api/sessions/s/queries/{query}")).await;
        assert_eq!(
            (&told["state"], &told["answer"]),
            (&json!(state), &Value::Null)
        );
    }
    let none = api.get("/api/sessions/s/queries/3").await;
    assert_eq!(refusal(&none), (404, "no_query", Some("query")));
}

/// One sub-agent that has one of its own, and one that is cancelled with its parent.
#[tokio::test]
async fn query_shows_the_tree_of_its_sub_agents() {
    let [manual, index] = ["Read the manual", "Read the index"];
    let chapter = "Read chapter one";
    let parent = Scripted::new().reply(delegate_all(&[manual, index]));
    let stalled = Scripted::new().step([Try::Stall { shown: "".into() }]);
    let family = Family::new(parent)
        .child(manual, Scripted::new().reply(delegate(chapter)).reply(DONE))
        .child(chapter, Scripted::new().reply(MORE).reply(DONE))
        .child(index, stalled);
    let api = Api::of(TestOracle::new(family).policy(|policy| allow(policy, 2))).await;
    let body = json!({ "text": "how does the code work?" });
    let (status, _) = api.post("/api/sessions/s/messages", body).await;
    assert_eq!(status, 202);
    api.session("s")
        .wait_for("delegation.finished")
        .await
        .unwrap();
    let tokens = |agent: &Value| agent["tokens"].as_u64().unwrap();
    let shown = |agent: &Value| {
        let agent = agent.as_object().unwrap().clone();
        let fields = ["session", "scope", "profile", "outcome", "turns"];
        fields.map(|field| agent[field].clone())
    };
    for end in [json!(null), json!("cancelled")] {
        let (status, query) = api.get("/api/sessions/s/queries/1").await;
        assert_eq!((status, &query["outcome"]), (200, &end), "{query}");
        let agents = query["sub_agents"].as_array().unwrap();
        let [first, second] = &agents[..] else {
            panic!("{query}")
        };
        let expected = json!(["~s.1.1", manual, null, "answered", 2]);
        assert_eq!(json!(shown(first)), expected);
        assert_eq!(json!(shown(second)), json!(["~s.1.2", index, null, end, 0]));
        let [below] = &first["sub_agents"].as_array().unwrap()[..] else {
            panic!("{query}")
        };
        let expected = json!(["~~s.1.1.1.1", chapter, null, "answered", 2]);
        assert_eq!(json!(shown(below)), expected);
        assert!(
            0 < tokens(below) && tokens(below) < tokens(first),
            "{query}"
        );
        let none = json!([]);
        assert_eq!([&below["sub_agents"], &second["sub_agents"]], [&none; 2]);
        // A sub-agent shows those below it.
        let (_, child) = api.get("/api/sessions/~s.1.1/queries/1").await;
        assert_eq!(child["sub_agents"], first["sub_agents"]);
        let (session, cancel) = (api.session("s"), Command::Cancel { query: None });
        if end.is_null() {
            session.command(cancel).await.unwrap();
            session.wait_for("query.finished").await.unwrap();
        }
    }
}

#[tokio::test]
async fn openapi_description_matches_the_snapshot() {
    let api = Api::of(greeter()).await;
    let (status, description) = api.get("/api/openapi.json").await;
    assert_eq!(status, 200);
    let mut description = description;
    description["info"]["version"] = json!("VERSION");
    let text = serde_json::to_string_pretty(&description).unwrap();
    insta::assert_snapshot!("openapi", text);
}
