//! Responses that the server keeps and continues, as objects and as streams of events.

use std::time::Duration;

use oracle_agent::{
    journal::{Journal, Memory},
    kernel::Command,
    llm::scripted::ScriptedReply,
    model::{Capabilities, Fault},
    testkit::TestTool,
};

use super::*;

mod conversations;
mod random;

const RESPONSES: &str = "/v1/responses";

pub(super) async fn call(
    served: &Served,
    who: Principal,
    method: &str,
    path: &str,
    body: &Value,
) -> ChatResponse {
    let body = match body {
        Value::Null => Body::empty(),
        body => Body::from(body.to_string()),
    };
    let request = Request::builder().method(method).uri(path).body(body);
    let routes = served.router.clone().layer(Extension(who));
    let response = routes.oneshot(request.unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    ChatResponse {
        status: parts.status,
        headers: parts.headers,
        text: read(body).await,
    }
}

pub(super) async fn respond(served: &Served, body: &Value) -> ChatResponse {
    call(served, Principal::local(), "POST", RESPONSES, body).await
}

pub(super) fn asking(input: impl Into<Value>) -> Value {
    json!({ "model": "oracle", "input": input.into() })
}

pub(super) fn after(previous: &Value, input: impl Into<Value>) -> Value {
    let mut body = asking(input);
    body["previous_response_id"] = previous["id"].clone();
    body
}

/// The response, which must be there.
pub(super) fn object(got: &ChatResponse) -> Value {
    assert_eq!(got.status, StatusCode::OK, "{}", got.text);
    got.json()
}

/// The text of a response.
pub(super) fn text(response: &Value) -> String {
    let items = response["output"].as_array().unwrap();
    let texts = items
        .iter()
        .filter_map(|item| item["content"][0]["text"].as_str());
    texts.collect()
}

fn calls(response: &Value) -> Vec<Value> {
    let items = response["output"].as_array().unwrap().iter();
    items
        .filter(|item| item["type"] == "function_call")
        .cloned()
        .collect()
}

fn refused(got: &ChatResponse) -> (u16, String, String) {
    let (status, code) = got.problem();
    let field = got.json()["error"]["param"]
        .as_str()
        .unwrap_or("")
        .to_owned();
    (status, code, field)
}

/// Reads a stream, and checks that its events follow one another as OpenAI's do. Returns the ended
/// items and the response at the end.
pub(super) fn checked(stream: &str) -> (Vec<Value>, Value) {
    let frames = stream
        .split_terminator("\n\n")
        .filter(|frame| !frame.starts_with(':'));
    let mut kinds = Vec::new();
    let (mut ended, mut open) = (Vec::new(), None::<(Value, String)>);
    let mut response = Value::Null;
    for (number, frame) in frames.enumerate() {
        let (kind, data) = frame.split_once('\n').unwrap_or_else(|| panic!("{stream}"));
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        let kind = kind.strip_prefix("event: ").unwrap();
        assert_eq!(
            (&event["type"], &event["sequence_number"]),
            (&json!(kind), &json!(number))
        );
        if let Some(index) = event.get("output_index") {
            assert_eq!(index, ended.len(), "{event}");
        }
        if let (Some(id), Some((item, _))) = (event.get("item_id"), &open) {
            assert_eq!(id, &item["id"], "{event}");
        }
        match kind {
            "response.output_item.added" => {
                assert!(open.is_none(), "{event}");
                assert_eq!(event["item"]["status"], "in_progress");
                open = Some((event["item"].clone(), String::new()));
            }
            "response.output_text.delta" | "response.function_call_arguments.delta" => {
                open.as_mut().unwrap().1 += event["delta"].as_str().unwrap();
            }
            "response.output_text.done" => assert_eq!(event["text"], open.as_ref().unwrap().1),
            "response.function_call_arguments.done" => {
                assert_eq!(event["arguments"], open.as_ref().unwrap().1);
            }
            "response.content_part.done" => {
                assert_eq!(event["part"]["text"], open.as_ref().unwrap().1);
            }
            "response.output_item.done" => {
                let (begun, whole) = open.take().unwrap();
                let item = &event["item"];
                let shown = match item["type"] == "message" {
                    true => &item["content"][0]["text"],
                    false => &item["arguments"],
                };
                assert_eq!((&item["id"], shown), (&begun["id"], &json!(whole)));
                ended.push(item.clone());
            }
            "response.content_part.added" | "oracle.progress" => {}
            _ => {
                assert!(response.is_null() || event["response"]["id"] == response["id"]);
                response = event["response"].clone();
            }
        }
        kinds.push(kind.to_owned());
    }
    assert_eq!(kinds[..2], ["response.created", "response.in_progress"]);
    let status = response["status"].as_str().unwrap();
    assert_eq!(
        kinds.last().unwrap(),
        &format!("response.{status}"),
        "{kinds:?}"
    );
    assert!(open.is_none(), "{open:?}");
    let output = response["output"].as_array().unwrap();
    assert_eq!(&ended[ended.len() - output.len()..], output, "{response}");
    (ended, response)
}

/// Sends a request whole or as a stream.
async fn either(served: &Served, body: &Value, is_stream: bool) -> Value {
    match is_stream {
        false => object(&respond(served, body).await),
        true => checked(&respond(served, &streamed(body.clone())).await.text).1,
    }
}

async fn get(served: &Served, response: &Value) -> ChatResponse {
    let path = format!("{RESPONSES}/{}", response["id"].as_str().unwrap());
    served.get(&path).await
}

async fn echo() -> Served {
    Served::start(TestOracle::new(Echo::default())).await
}

#[tokio::test(start_paused = true)]
async fn response_is_created_and_retrieved() {
    let served = Served::start(TestOracle::new(Scripted::new().reply(done("In src.")))).await;
    let mut body = asking("where?");
    body["instructions"] = "Be brief.".into();
    body["metadata"] = json!({ "a": "b" });
    let created = object(&respond(&served, &body).await);
    let usage = &created["usage"];
    let tokens = |field: &str| usage[field].as_u64().unwrap();
    let (sent, received) = (tokens("input_tokens"), tokens("output_tokens"));
    assert!(sent > 0 && received > 0, "{usage}");
    let id = created["id"].as_str().unwrap();
    let [session] = served.sessions().await.try_into().unwrap();
    assert!(session.starts_with("resp-"), "{session}");
    let mut expected = json!({
        "id": id,
        "object": "response",
        "created_at": 1_767_225_600,
        "status": "completed",
        "error": null,
        "incomplete_details": null,
        "model": "oracle",
        "output": [{
            "type": "message",
            "id": format!("{}_0", id.replace("resp_", "msg_")),
            "status": "completed",
            "role": "assistant",
            "content": [{ "type": "output_text", "text": "In src.", "annotations": [], "logprobs": [] }],
        }],
        "usage": {
            "input_tokens": sent,
            "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": received,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": sent + received,
        },
        "instructions": "Be brief.",
        "previous_response_id": null,
        "conversation": null,
        "store": true,
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "text": { "format": { "type": "text" } },
        "max_output_tokens": null,
        "temperature": null,
        "top_p": null,
        "reasoning": { "effort": null, "summary": null },
        "truncation": "disabled",
        "background": false,
        "metadata": { "a": "b" },
        "oracle": { "session": session, "query": 1, "outcome": "answered", "reason": null, "turns": 1 },
    });
    assert_eq!(created, expected);
    // These are not kept.
    expected["instructions"] = Value::Null;
    expected["metadata"] = json!({});
    assert_eq!(object(&get(&served, &created).await), expected);
}

#[tokio::test(start_paused = true)]
async fn responses_continue_one_another_and_an_older_one_begins_a_branch() {
    for is_stream in [false, true] {
        let served = echo().await;
        let ask = |body: Value| {
            let served = &served;
            async move { either(served, &body, is_stream).await }
        };
        let one = ask(asking("one")).await;
        let two = ask(after(&one, "two")).await;
        assert_eq!(text(&two), "2. two (2 before)");
        assert_eq!(two["previous_response_id"], one["id"]);
        assert_eq!(served.sessions().await.len(), 1);
        let branch = ask(after(&one, "three")).await;
        assert_eq!(text(&branch), "3. three (2 before)");
        assert_eq!(served.sessions().await.len(), 2);
        for (previous, expected) in [
            (&two, "4. and? (4 before)"),
            (&branch, "5. and? (4 before)"),
        ] {
            assert_eq!(text(&ask(after(previous, "and?")).await), expected);
        }
        assert_eq!(served.sessions().await.len(), 2);
        for response in [&one, &two, &branch] {
            let kept = object(&get(&served, response).await);
            assert_eq!(kept["output"], response["output"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_concurrent_continuations_begins_a_branch() {
    let served = echo().await;
    let one = object(&respond(&served, &asking("one")).await);
    let ask = |input: &'static str| {
        let body = after(&one, input);
        let served = &served;
        async move { object(&respond(served, &body).await) }
    };
    let (two, three) = tokio::join!(ask("two"), ask("three"));
    for (response, said) in [(&two, ". two (2 before)"), (&three, ". three (2 before)")] {
        assert!(text(response).ends_with(said), "{}", text(response));
        let next = object(&respond(&served, &after(response, "and?")).await);
        assert!(
            text(&next).ends_with(". and? (4 before)"),
            "{}",
            text(&next)
        );
    }
    assert_eq!(served.sessions().await.len(), 2);
}

/// The same text again is another question, also in a request that its client sends again.
#[tokio::test(start_paused = true)]
async fn retried_continuation_does_not_repeat_the_answer_before_it() {
    let served = echo().await;
    let one = object(&respond(&served, &asking("go on")).await);
    let request = Request::post(RESPONSES)
        .header("x-stainless-retry-count", "1")
        .body(Body::from(after(&one, "go on").to_string()));
    let routes = served.router.clone().layer(Extension(Principal::local()));
    let (parts, body) = routes.oneshot(request.unwrap()).await.unwrap().into_parts();
    assert_eq!(parts.status, StatusCode::OK);
    let two: Value = serde_json::from_str(&read(body).await).unwrap();
    assert_eq!(text(&two), "2. go on (2 before)");
}

#[tokio::test(start_paused = true)]
async fn instructions_do_not_carry_over() {
    let script = Scripted::new()
        .reply(done("1"))
        .reply(done("2"))
        .reply(done("3"));
    let served = Served::start(TestOracle::new(script.clone())).await;
    let mut body = asking("one");
    body["instructions"] = "Answer in Dutch.".into();
    let one = object(&respond(&served, &body).await);
    let two = object(&respond(&served, &after(&one, "two")).await);
    let mut body = after(&two, "three");
    body["instructions"] = "Answer in French.".into();
    object(&respond(&served, &body).await);
    let told: Vec<_> = script
        .requests()
        .into_iter()
        .map(|request| request.system)
        .collect();
    assert!(told[0].ends_with("Answer in Dutch."), "{}", told[0]);
    assert!(!told[1].contains("Answer in"), "{}", told[1]);
    assert!(told[2].ends_with("Answer in French."), "{}", told[2]);
}

#[tokio::test(start_paused = true)]
async fn id_that_cannot_be_continued_is_refused_by_its_field() {
    let served = echo().await;
    let one = object(&respond(&served, &asking("one")).await);
    let mut unkept = asking("two");
    unkept["store"] = false.into();
    let unkept = object(&respond(&served, &unkept).await);
    assert_eq!(
        (&unkept["store"], text(&unkept)),
        (&json!(false), "2. two (0 before)".to_owned())
    );
    assert_eq!(served.sessions().await.len(), 1, "nothing is kept of it");
    let id = one["id"].as_str().unwrap();
    let (session, _) = id.split_at(id.len() - 1);
    let gone = json!({ "id": id.replace(&id[6..], &format!("r{}2", "0".repeat(32))) });
    let stranger = Principal {
        tenant: TenantId::new("other").unwrap(),
        ..Principal::local()
    };
    let local = Principal::local;
    for (who, previous) in [
        (local(), &unkept),
        (local(), &gone),
        (local(), &json!({ "id": "resp_68a1" })),
        (local(), &json!({ "id": format!("{session}0") })),
        (local(), &json!({ "id": format!("{session}1") })),
        (local(), &json!({ "id": format!("{session}fff") })),
        (stranger, &one),
    ] {
        let got = call(
            &served,
            who.clone(),
            "POST",
            RESPONSES,
            &after(previous, "and?"),
        )
        .await;
        let missing = (
            404,
            "response_not_found".to_owned(),
            "previous_response_id".to_owned(),
        );
        assert_eq!(refused(&got), missing, "{previous}");
        let path = format!("{RESPONSES}/{}", previous["id"].as_str().unwrap());
        let got = call(&served, who, "GET", &path, &Value::Null).await;
        assert_eq!(
            refused(&got),
            (404, "response_not_found".to_owned(), "id".to_owned())
        );
    }
    let mut other = after(&one, "and?");
    other["model"] = "other".into();
    let got = respond(&served, &other).await;
    assert_eq!(
        refused(&got),
        (400, "invalid_value".to_owned(), "model".to_owned())
    );
    let header = Request::post(RESPONSES).header("x-oracle-session", "s");
    let request = header.body(Body::from(asking("q?").to_string())).unwrap();
    let routes = served.router.clone().layer(Extension(local()));
    assert_eq!(routes.oneshot(request).await.unwrap().status(), 400);
    assert_eq!(served.sessions().await.len(), 1);
}

fn with_tools(mut body: Value) -> Value {
    body["tools"] =
        json!([{ "type": "function", "name": "weather" }, { "type": "function", "name": "clock" }]);
    body
}

fn forecast() -> Scripted {
    Scripted::new()
        .calls(
            "Let me ask.",
            [("weather", json!({ "at": 1 })), ("clock", json!({}))],
        )
        .reply("It rains at noon.")
        .reply("Yes.")
}

fn outputs(calls: &[Value]) -> Vec<Value> {
    let results = calls.iter().zip(["rain", "noon"]);
    let output = |(call, result): (&Value, &str)| json!({ "type": "function_call_output", "call_id": call["call_id"], "output": result });
    results.map(output).collect()
}

/// The ways in which clients return results.
#[derive(Debug, Clone, Copy)]
enum Returning {
    /// Alone, with the id of the response.
    ById,
    /// At the end of the whole input.
    Whole,
    /// After references to the calls.
    ByReference,
}

fn returning(how: Returning, first: &Value) -> Value {
    let calls = calls(first);
    let results = outputs(&calls);
    let user = || json!({ "role": "user", "content": "how is it?" });
    with_tools(match how {
        Returning::ById => after(first, results),
        Returning::Whole => {
            let output = first["output"].as_array().unwrap().clone();
            asking([vec![user()], output, results].concat())
        }
        Returning::ByReference => {
            let ids = calls
                .iter()
                .map(|call| json!({ "type": "item_reference", "id": call["id"] }));
            asking([vec![user()], ids.collect(), results].concat())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_the_client_and_its_results_continue_the_query() {
    use Returning::{ById, ByReference, Whole};
    for (how, store) in [
        (ById, true),
        (Whole, true),
        (ByReference, true),
        (Whole, false),
    ] {
        for is_stream in [false, true] {
            let script = forecast();
            let served = Served::start(TestOracle::new(script.clone())).await;
            let mut asked = with_tools(asking("how is it?"));
            asked["store"] = store.into();
            let first = either(&served, &asked, is_stream).await;
            assert_eq!(
                (&first["status"], text(&first)),
                (&json!("completed"), "Let me ask.".to_owned())
            );
            assert_eq!(first["oracle"]["outcome"], "tool_calls");
            let called = calls(&first);
            let names: Vec<_> = called
                .iter()
                .map(|call| (&call["name"], &call["arguments"]))
                .collect();
            assert_eq!(
                names,
                [
                    (&json!("weather"), &json!("{\"at\":1}")),
                    (&json!("clock"), &json!("{}"))
                ]
            );

            let mut next = returning(how, &first);
            next["store"] = store.into();
            let second = either(&served, &next, is_stream).await;
            assert_eq!(text(&second), "It rains at noon.", "{how:?}");
            assert_eq!(second["oracle"]["turns"], 2, "the same query");
            assert_ne!(second["id"], first["id"]);
            let results: Vec<_> = script.requests()[1]
                .messages
                .last()
                .unwrap()
                .results()
                .map(|result| result.content.clone())
                .collect();
            assert_eq!(results, ["rain", "noon"]);
            assert_eq!(served.sessions().await.len(), usize::from(store));
            if store {
                let kept = [&first, &second].map(|response| get(&served, response));
                let kept = futures_util::future::join_all(kept).await;
                assert_eq!(object(&kept[0])["output"], first["output"]);
                for field in ["output", "usage", "tools"] {
                    let (kept, created) = (&object(&kept[1])[field], &second[field]);
                    if field != "output" || !is_stream {
                        assert_eq!(kept, created);
                    }
                }
                let third = either(&served, &after(&second, "sure?"), is_stream).await;
                assert_eq!(text(&third), "Yes.");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn results_that_do_not_fit_are_refused() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let first = object(&respond(&served, &with_tools(asking("how is it?"))).await);
    let results = outputs(&calls(&first));
    let mut unknown = results.clone();
    unknown[0]["call_id"] = "call_1".into();
    let not_waiting = (409, "not_waiting".to_owned(), String::new());
    for (results, expected) in [
        (unknown, not_waiting.clone()),
        (
            results[..1].to_vec(),
            (400, "invalid_value".to_owned(), "input".to_owned()),
        ),
    ] {
        let got = respond(&served, &after(&first, results)).await;
        assert_eq!(refused(&got), expected, "{}", got.text);
    }
    let second = object(&respond(&served, &after(&first, results.clone())).await);
    assert_eq!(text(&second), "It rains at noon.");
    let again = respond(&served, &after(&first, results)).await;
    assert_eq!(refused(&again), not_waiting);
    // The query has gone on after these calls.
    let message = respond(&served, &after(&first, "never mind")).await;
    let answered = (
        400,
        "invalid_value".to_owned(),
        "previous_response_id".to_owned(),
    );
    assert_eq!(refused(&message), answered);
}

#[tokio::test(start_paused = true)]
async fn message_instead_of_results_cancels_the_wait() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let first = object(&respond(&served, &with_tools(asking("how is it?"))).await);
    let second = object(&respond(&served, &after(&first, "never mind")).await);
    assert_eq!(
        (text(&second), &second["oracle"]["query"]),
        ("It rains at noon.".to_owned(), &json!(2))
    );
    assert_eq!(
        object(&get(&served, &first).await)["output"],
        first["output"]
    );
}

#[tokio::test(start_paused = true)]
async fn two_messages_instead_of_results_are_both_answered() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let first = object(&respond(&served, &with_tools(asking("how is it?"))).await);
    let ask = |input: &str| {
        let (served, body) = (&served, after(&first, input));
        async move { object(&respond(served, &body).await) }
    };
    let (one, two) = tokio::join!(ask("never mind"), ask("forget it"));
    for response in [one, two] {
        assert_eq!(text(&response), "It rains at noon.");
    }
    assert_eq!(served.sessions().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_kept_response_survive_a_restart() {
    for how in [Returning::ById, Returning::ByReference] {
        let journal: Arc<dyn Journal> = Arc::new(Memory::new());
        let script = forecast();
        let start = || Served::start(TestOracle::new(script.clone()).journal(Arc::clone(&journal)));
        let served = start().await;
        let first = object(&respond(&served, &with_tools(asking("how is it?"))).await);
        served.system.die().await;
        let served = start().await;
        let second = object(&respond(&served, &returning(how, &first)).await);
        assert_eq!(
            (text(&second), &second["oracle"]["query"]),
            ("It rains at noon.".to_owned(), &json!(1))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn answer_has_the_requested_format_or_fails() {
    let schema = json!({ "type": "object", "required": ["name"] });
    let city = json!({ "format": { "type": "json_schema", "name": "city", "schema": schema } });
    let bern = "{\"name\": \"Bern\"}";
    let rows = [
        (vec![bern], Some(bern)),
        (vec!["Of course!", bern], Some(bern)),
        (vec!["{}", "Of course!"], None),
    ];
    for (enforced, (replies, expected)) in [false, true]
        .into_iter()
        .flat_map(|enforced| rows.clone().map(|row| (enforced, row)))
    {
        let script = replies.iter().fold(Scripted::new(), |script, reply| {
            let (half, rest) = reply.split_at(reply.len() / 2);
            script.play(ScriptedReply::chunks([half, rest]))
        });
        let takes = Capabilities {
            schemas: enforced,
            ..Capabilities::NONE
        };
        let oracle = TestOracle::new(script).policy(move |policy| {
            let mut model = policy.models[0].clone();
            model.takes = takes;
            policy.models = [model].into();
        });
        let served = Served::start(oracle).await;
        let mut body = asking("q?");
        body["text"] = city.clone();
        let got = respond(&served, &body).await;
        let (items, response) = checked(&respond(&served, &streamed(body)).await.text);
        // Text is live if the provider enforces the format; else the answer comes alone.
        let shown = if enforced { replies.len() } else { 1 };
        match expected {
            Some(answer) => {
                assert_eq!(text(&object(&got)), answer);
                assert_eq!(got.json()["text"]["format"]["name"], "city");
                assert_eq!((items.len(), text(&response)), (shown, answer.to_owned()));
            }
            None => {
                assert_eq!(got.problem(), (502, "answer_format".to_owned()));
                assert_eq!(
                    (items.len(), &response["error"]["code"]),
                    (if enforced { 2 } else { 0 }, &json!("answer_format"))
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_end_has_its_status() {
    let fault = Fault::permanent("unauthorized", "no such key");
    let failing = Scripted::new().fault_after("Half of", fault);
    for (script, turns, status, said) in [
        (Scripted::new().reply(done("All.")), 5, "completed", "All."),
        (
            Scripted::new().reply("Twelve characters and more."),
            5,
            "incomplete",
            "Twelve chara",
        ),
        (
            Scripted::new().reply(more("Looking.")),
            1,
            "incomplete",
            "Looking.\n\nStopped: the turn limit was reached at turn 1, before the answer was complete. \
             Raise the limit or ask a narrower question.",
        ),
        (failing, 5, "failed", ""),
    ] {
        let oracle = TestOracle::new(script).policy(move |policy| policy.limits.max_turns = turns);
        let served = Served::start(oracle).await;
        let mut body = asking("q?");
        if said == "Twelve chara" {
            body["max_output_tokens"] = 3.into();
        }
        let got = respond(&served, &body).await;
        let (items, response) = checked(&respond(&served, &streamed(body)).await.text);
        assert_eq!(
            (&response["status"], text(&response)),
            (&json!(status), said.to_owned())
        );
        if status == "failed" {
            assert_eq!(got.problem(), (502, "unauthorized".to_owned()));
            assert_eq!(got.headers["x-should-retry"], "false");
            assert_eq!(response["error"]["code"], "unauthorized");
            assert!(
                items.iter().all(|item| item["status"] == "incomplete"),
                "{items:?}"
            );
            let kept = object(&get(&served, &response).await);
            assert_eq!(
                (&kept["status"], &kept["error"]),
                (&json!("failed"), &response["error"])
            );
            continue;
        }
        let whole = object(&got);
        assert_eq!(
            (&whole["status"], text(&whole)),
            (&json!(status), said.to_owned())
        );
        let reason = match status {
            "incomplete" => json!({ "reason": "max_output_tokens" }),
            _ => Value::Null,
        };
        assert_eq!(
            (
                &whole["incomplete_details"],
                &response["incomplete_details"]
            ),
            (&reason, &reason)
        );
        assert_eq!(items.last().unwrap()["status"], status);
    }
}

#[tokio::test(start_paused = true)]
async fn text_of_each_attempt_and_turn_is_an_item() {
    let fault = || Fault::retryable("reset", "the connection was reset");
    let script = Scripted::new()
        .fault_after("Half of a sen", fault())
        .calls("Let me look.", [("look", json!({}))])
        .reply(done("A whole sentence."));
    let served = Served::start(TestOracle::new(script).tool(TestTool::new("look"))).await;
    let plain = respond(&served, &streamed(asking("q?"))).await.text;
    assert!(!plain.contains("oracle.progress"), "{plain}");
    let (items, response) = checked(&plain);
    let brief = |item: &Value| (item["content"][0]["text"].clone(), item["status"].clone());
    let items: Vec<_> = items.iter().map(brief).collect();
    let expected = [
        ("Half of a sen", "incomplete"),
        ("Let me look.", "completed"),
        ("A whole sentence.", "completed"),
    ];
    assert_eq!(
        items,
        expected.map(|(text, status)| (json!(text), json!(status)))
    );
    assert_eq!(text(&response), "A whole sentence.");

    let mut body = streamed(asking("q?"));
    for text in ["turns", "answer"] {
        body["stream_options"] = json!({ "oracle": text });
        let told = respond(&served, &body).await.text;
        let (items, _) = checked(&told);
        assert_eq!(items.len() == 1, text == "answer");
        for event in [
            "\"event\":\"tool.started\",\"tool\":\"look\"",
            "\"event\":\"turn.started\"",
        ] {
            assert!(told.contains(event), "{event} in {told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn stream_that_the_server_ends_closes_its_item() {
    for cancels in [false, true] {
        let served = Served::start(TestOracle::new(Scripted::new().stall("Looking around."))).await;
        let request = Request::post(RESPONSES).body(Body::from(streamed(asking("q?")).to_string()));
        let routes = served.router.clone().layer(Extension(Principal::local()));
        let mut stream = routes
            .oneshot(request.unwrap())
            .await
            .unwrap()
            .into_body()
            .into_data_stream();
        let mut seen = String::new();
        while !seen.contains("Looking") {
            seen += str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap();
        }
        let [session] = served.sessions().await.try_into().unwrap();
        let code = match cancels {
            true => {
                let session = served.system.session(&session).unwrap();
                session
                    .command(Command::Cancel { query: None })
                    .await
                    .unwrap();
                "cancelled"
            }
            false => {
                served.host.drain().finish();
                "draining"
            }
        };
        while let Some(piece) = stream.next().await {
            seen += str::from_utf8(&piece.unwrap()).unwrap();
        }
        let (items, response) = checked(&seen);
        assert_eq!(response["error"]["code"], code);
        assert_eq!(items[0]["status"], "incomplete");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_continuation_leaves_no_branch() {
    let served = echo().await;
    let one = object(&respond(&served, &asking("one")).await);
    object(&respond(&served, &after(&one, "two")).await);
    let mut older = after(&one, "three");
    older["temperature"] = json!(1);
    let got = respond(&served, &older).await;
    assert_eq!(refused(&got).2, "temperature");
    assert_eq!(served.sessions().await.len(), 1);
}
