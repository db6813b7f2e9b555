//! Conversations, and how long responses are kept.

use oracle_agent::{
    http::{AuthMode, Listener, Server},
    model::command::MAX_IMPORTED,
};

use super::*;

const CONVERSATIONS: &str = "/v1/conversations";

async fn create(served: &Served, body: &Value) -> ChatResponse {
    call(served, Principal::local(), "POST", CONVERSATIONS, body).await
}

fn within(conversation: &Value, input: &str) -> Value {
    let mut body = asking(input);
    body["conversation"] = conversation["id"].clone();
    body
}

#[tokio::test(start_paused = true)]
async fn responses_are_added_to_a_conversation_in_order() {
    let items = json!([
        { "type": "message", "role": "user", "content": "zero" },
        { "role": "assistant", "content": [{ "type": "output_text", "text": "0" }] },
    ]);
    for (new, before) in [
        (Value::Null, 0),
        (json!({}), 0),
        (json!({ "items": items }), 2),
    ] {
        let served = echo().await;
        let mut conversation = object(&create(&served, &new).await);
        let id = conversation["id"].as_str().unwrap().to_owned();
        let path = format!("{CONVERSATIONS}/{id}");
        assert_eq!(served.get(&path).await.json(), conversation);
        let one = object(&respond(&served, &within(&conversation, "one")).await);
        assert_eq!(text(&one), format!("1. one ({before} before)"));
        assert_eq!(one["conversation"]["id"], conversation["id"]);
        conversation["id"] = json!({ "id": id });
        let stream = respond(&served, &streamed(within(&conversation, "two")))
            .await
            .text;
        let (_, two) = checked(&stream);
        assert_eq!(text(&two), format!("2. two ({} before)", before + 2));
        assert_eq!(object(&get(&served, &one).await)["output"], one["output"]);
        // A response of a conversation is continued outside it.
        let branch = object(&respond(&served, &after(&two, "three")).await);
        assert_eq!(text(&branch), format!("3. three ({} before)", before + 4));
        assert_eq!(branch["conversation"], Value::Null);
        assert_eq!(served.sessions().await.len(), 2);

        let local = Principal::local;
        let deleted = call(&served, local(), "DELETE", &path, &Value::Null).await;
        let expected = json!({ "id": id, "object": "conversation.deleted", "deleted": true });
        assert_eq!(object(&deleted), expected);
        let again = call(&served, local(), "DELETE", &path, &Value::Null).await;
        assert_eq!(object(&again), expected);
        let mistyped = format!("{id}0");
        for (method, path, body, field) in [
            ("GET", format!("{path}0"), Value::Null, "id"),
            ("DELETE", format!("{path}0"), Value::Null, "id"),
            (
                "POST",
                RESPONSES.to_owned(),
                within(&json!({ "id": mistyped }), "four"),
                "conversation",
            ),
        ] {
            let gone = call(&served, local(), method, &path, &body).await;
            let missing = (404, "conversation_not_found".to_owned(), field.to_owned());
            assert_eq!(refused(&gone), missing);
        }
        assert_eq!(get(&served, &one).await.status, 404);
        assert_eq!(
            object(&get(&served, &branch).await)["output"],
            branch["output"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn conversation_keeps_its_model() {
    let served = echo().await;
    let new = json!({ "metadata": { "a": "b" } });
    let conversation = object(&create(&served, &new).await);
    assert_eq!(conversation["metadata"], json!({ "a": "b" }));
    let mut body = within(&conversation, "one");
    body["model"] = "other".into();
    let stranger = Principal {
        tenant: TenantId::new("other").unwrap(),
        ..Principal::local()
    };
    assert_eq!(
        call(&served, stranger, "POST", RESPONSES, &body)
            .await
            .status,
        404
    );
    assert_eq!(
        text(&object(&respond(&served, &body).await)),
        "1. one (0 before)"
    );
    body["model"] = "oracle".into();
    let got = respond(&served, &body).await;
    assert_eq!(
        refused(&got),
        (400, "invalid_value".to_owned(), "model".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn calls_in_a_conversation_wait_for_their_results() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let conversation = object(&create(&served, &json!({})).await);
    let first = object(&respond(&served, &with_tools(within(&conversation, "how is it?"))).await);
    let mut next = within(&conversation, "");
    next["input"] = outputs(&calls(&first)).into();
    let second = object(&respond(&served, &next).await);
    assert_eq!(
        (text(&second), &second["oracle"]["query"]),
        ("It rains at noon.".to_owned(), &json!(1))
    );
}

#[tokio::test(start_paused = true)]
async fn items_that_do_not_fit_are_refused_by_name() {
    let served = echo().await;
    let user = |content: Value| json!({ "role": "user", "content": content });
    let image = json!([{ "type": "input_image", "image_url": "https://a.b/c.png" }]);
    let called = json!({ "type": "function_call", "call_id": "c", "name": "a", "arguments": "{}" });
    let output = json!({ "type": "function_call_output", "call_id": "c", "output": "d" });
    let many = vec![user(json!("again")); MAX_IMPORTED + 1];
    for (items, status, field) in [
        (json!("one"), 400, "items"),
        (
            json!([{ "type": "item_reference", "id": "msg_1" }]),
            400,
            "items[0].type",
        ),
        (json!([user(json!("a")), user(image)]), 400, "items[1]"),
        (json!([user(json!("a")), called]), 400, "items"),
        (json!([output]), 400, "items[0]"),
        (json!([called, user(json!("a"))]), 400, "items[1]"),
        (json!(many), 413, "items"),
    ] {
        let got = create(&served, &json!({ "items": items })).await;
        assert_ne!(got.status, StatusCode::OK, "{field}: {}", got.text);
        let (got, _, param) = refused(&got);
        assert_eq!((got, &*param), (status, field));
    }
    assert!(served.sessions().await.is_empty());
    // Unusual, but a history nevertheless.
    let answered = json!({ "role": "assistant", "content": "b" });
    let items = json!([
        answered,
        answered,
        user(json!("a")),
        user(json!("c")),
        called,
        output
    ]);
    let conversation = object(&create(&served, &json!({ "items": items })).await);
    let got = respond(&served, &within(&conversation, "one")).await;
    assert!(text(&object(&got)).contains(". one ("), "{}", got.text);
}

#[tokio::test(start_paused = true)]
async fn responses_whose_time_is_over_are_deleted() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let old = object(&respond(&served, &asking("one")).await);
    // One that waits for results, and a client's own session whose name begins alike.
    object(&respond(&served, &with_tools(asking("how is it?"))).await);
    let own = served.system.session("resp-ect").unwrap();
    own.answer("one").await.unwrap();
    let kept = object(&create(&served, &json!({})).await);
    let kept = object(&respond(&served, &within(&kept, "one")).await);
    let kept = kept["oracle"]["session"].as_str().unwrap();
    advance_time(Duration::from_secs(2 * 3_600)).await;
    let young = object(&respond(&served, &asking("one")).await);
    let young = young["oracle"]["session"].as_str().unwrap();

    let mut settings = Settings {
        responses_kept: Duration::from_secs(3_600),
        ..Settings::default()
    };
    settings.listen.set_port(0);
    let host = Host::new(HostParts {
        keys: Arc::default(),
        oracle: served.system.oracle().clone(),
        journal: served.system.journal(),
        settings: settings.clone(),
    });
    let listener = Listener::bind(&settings, AuthMode::Open).unwrap();
    let _server = Server::start(listener, host);
    let mut expected = [kept, young, "resp-ect"];
    expected.sort_unstable();
    let deleted = async {
        while served.sessions().await != expected {
            advance_time(Duration::from_millis(10)).await;
        }
    };
    let deleted = tokio::time::timeout(Duration::from_secs(60), deleted).await;
    assert!(deleted.is_ok(), "{:?}", served.sessions().await);
    assert_eq!(get(&served, &old).await.status, 404);
    let got = respond(&served, &after(&old, "and?")).await;
    assert_eq!(refused(&got).1, "response_not_found");
}
