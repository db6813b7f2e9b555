//! Tools that the client runs itself: the calls, whole and streamed, and the requests that return
//! their results.

use std::time::Duration;

use oracle_agent::{
    actor::{SessionFilter, SystemSettings},
    journal::{Journal, Memory},
    llm::ToolChoice,
    model::{AnswerFormat, TenantId},
    testkit::TestTool,
};

use super::{
    streams::{answer_alone, objects, text},
    *,
};

const S: (&str, &str) = ("x-oracle-session", "s");

fn tool(name: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { "at": { "type": "integer" } } });
    json!({ "type": "function", "function": { "name": name, "parameters": schema } })
}

fn with_tools(mut body: Value) -> Value {
    body["tools"] = json!([tool("weather"), tool("clock")]);
    body
}

/// Returns the request that follows a response with calls.
fn returning(mut body: Value, message: &Value, results: &[&str]) -> Value {
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(message.clone());
    let calls = message["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), results.len(), "{message}");
    for (call, result) in calls.iter().zip(results) {
        let id = &call["id"];
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": result }));
    }
    body
}

fn message(response: &ChatResponse) -> Value {
    let json = response.json();
    assert_eq!(response.status, StatusCode::OK, "{json}");
    json["choices"][0]["message"].clone()
}

/// Joins a stream into the message that a client makes of it, with its last object.
fn joined(stream: &ChatResponse) -> (Value, Value) {
    let mut events = objects(&stream.text);
    assert!(stream.text.ends_with("data: [DONE]\n\n"), "{}", stream.text);
    let mut calls = Vec::new();
    for event in &events {
        let called = event["choices"][0]["delta"]["tool_calls"].as_array();
        for call in called.into_iter().flatten() {
            assert_eq!(call["index"], calls.len());
            let mut call = call.clone();
            call.as_object_mut().unwrap().remove("index");
            calls.push(call);
        }
    }
    let content = text(&events);
    let message = json!({ "role": "assistant", "content": content, "tool_calls": calls });
    (message, events.pop().unwrap())
}

fn forecast() -> Scripted {
    Scripted::new()
        .calls(
            "Let me ask.",
            [("weather", json!({ "at": 1 })), ("clock", json!({}))],
        )
        .reply("It rains at noon.")
}

fn results(request: &llm::Request) -> Vec<String> {
    let last = request.messages.last().unwrap();
    let results = last.results();
    results.map(|result| result.content.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_the_client_and_its_results_continue_the_query() {
    for headers in [&[][..], &[S], &[("idempotency-key", "k")]] {
        let script = forecast();
        let served = Served::start(TestOracle::new(script.clone())).await;
        let asked = with_tools(chat(&["how is it?"]));
        let first = served.post(headers, asked.clone()).await;
        let json = first.json();
        let choice = &json["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{json}");
        assert_eq!(choice["message"]["content"], "Let me ask.");
        assert_eq!(json["oracle"]["outcome"], "tool_calls");
        assert_eq!(json["oracle"]["turns"], 1);
        let calls = choice["message"]["tool_calls"].as_array().unwrap();
        assert_eq!(calls.len(), 2);
        let id = calls[0]["id"].as_str().unwrap();
        assert!(id.starts_with("call_"), "{id}");
        let function = json!({ "name": "weather", "arguments": "{\"at\":1}" });
        let call = json!({ "id": id, "type": "function", "function": function });
        assert_eq!(calls[0], call);

        let next = returning(asked, &choice["message"], &["rain", "noon"]);
        let second = served.post(&headers[..headers.len().min(1)], next).await;
        let json = second.json();
        assert_eq!(second.answer(), "It rains at noon.");
        assert_eq!(json["choices"][0]["finish_reason"], "stop");
        assert_eq!(
            (second.session(), &json["oracle"]["turns"]),
            (first.session(), &json!(2))
        );
        assert_eq!(
            first.headers["x-oracle-query"],
            second.headers["x-oracle-query"]
        );
        let requests = script.requests();
        assert_eq!(results(&requests[1]), ["rain", "noon"]);
        // Each response has the usage of its own turns.
        let used: Vec<u64> = [first.json(), json]
            .iter()
            .map(|json| json["usage"]["prompt_tokens"].as_u64().unwrap())
            .collect();
        assert!(
            used[0] > 0 && used[1] > used[0] && used[1] < 2 * used[0] + 100,
            "{used:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_streamed_and_so_is_what_follows() {
    for answer_only in [false, true] {
        let script = forecast();
        let served = Served::start(TestOracle::new(script.clone())).await;
        let stream = |body: Value| {
            let mut body = match answer_only {
                true => answer_alone(body),
                false => streamed(body),
            };
            body["stream_options"]["include_usage"] = true.into();
            body
        };
        let asked = with_tools(chat(&["how is it?"]));
        let first = served.post(&[], stream(asked.clone())).await;
        let (message, usage) = joined(&first);
        assert_eq!(message["content"], "Let me ask.");
        assert_eq!(message["tool_calls"][1]["function"]["name"], "clock");
        assert!(
            usage["usage"]["total_tokens"].as_u64().unwrap() > 0,
            "{usage}"
        );
        let events = objects(&first.text);
        let end = &events[events.len() - 2];
        assert_eq!(end["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(end["oracle"]["outcome"], "tool_calls");

        let next = returning(asked, &message, &["rain", "noon"]);
        let second = served.post(&[], stream(next)).await;
        assert_eq!(text(&objects(&second.text)), "It rains at noon.");
        assert!(second.text.ends_with("data: [DONE]\n\n"), "{}", second.text);
        assert_eq!(first.session(), second.session());
        assert_eq!(script.requests().len(), 2);
    }
}

/// The answer of such a query is all of its texts, of which the client has the first already.
#[tokio::test(start_paused = true)]
async fn stream_that_continues_a_query_ends_with_the_rest_of_its_answer() {
    let look = || [("weather", json!({}))];
    for (script, turns, shown) in [
        (
            Scripted::new()
                .calls("One.", look())
                .calls("Two.", [("look", json!({}))]),
            2,
            "Two.\n\nStopped: the turn limit was reached at turn 2, before the answer was \
             complete. Raise the limit or ask a narrower question.",
        ),
        (
            Scripted::new()
                .calls("", look())
                .calls("Two.", [("look", json!({}))])
                .reply(done("Three.")),
            5,
            "Two.\n\nThree.",
        ),
    ] {
        let oracle = TestOracle::new(script)
            .tool(TestTool::new("look"))
            .policy(move |policy| policy.limits.max_turns = turns);
        let served = Served::start(oracle).await;
        let asked = streamed(with_tools(chat(&["how is it?"])));
        let first = served.post(&[S], asked.clone()).await;
        let next = returning(asked, &joined(&first).0, &["rain"]);
        let second = served.post(&[S], next).await;
        assert!(second.text.ends_with("data: [DONE]\n\n"), "{}", second.text);
        assert_eq!(text(&objects(&second.text)), shown);
    }
}

#[tokio::test(start_paused = true)]
async fn server_runs_its_own_calls_before_it_hands_over_the_clients() {
    let script = Scripted::new()
        .calls("", [("weather", json!({})), ("look", json!({}))])
        .reply("It rains.");
    let oracle = TestOracle::new(script.clone()).tool(TestTool::new("look").answers("found"));
    let served = Served::start(oracle).await;
    let asked = with_tools(chat(&["how is it?"]));
    let first = served.post(&[S], asked.clone()).await;
    let message = message(&first);
    assert_eq!(message["content"], Value::Null);
    assert_eq!(message["tool_calls"].as_array().unwrap().len(), 1);
    let kinds = served.system.session("s").unwrap().kinds().await.unwrap();
    let at = |kind: &str| kinds.iter().position(|found| found == kind).unwrap();
    assert!(at("tool.finished") < at("tool.handed_over"), "{kinds:?}");
    let second = served
        .post(&[S], returning(asked, &message, &["rain"]))
        .await;
    assert_eq!(second.answer(), "It rains.");
    assert_eq!(results(&script.requests()[1]), ["rain", "found"]);
}

#[tokio::test(start_paused = true)]
async fn choice_among_the_tools_reaches_the_model() {
    let named = json!({ "type": "function", "function": { "name": "clock" } });
    for (field, value, choice, tools) in [
        ("tool_choice", json!("auto"), ToolChoice::Auto, 2),
        ("tool_choice", json!("required"), ToolChoice::Required, 2),
        ("tool_choice", named, ToolChoice::Named("clock".into()), 2),
        ("tool_choice", json!("none"), ToolChoice::Auto, 0),
        ("parallel_tool_calls", json!(false), ToolChoice::Auto, 2),
    ] {
        let script = forecast();
        let served = Served::start(TestOracle::new(script.clone())).await;
        let mut asked = with_tools(chat(&["how is it?"]));
        asked[field] = value.clone();
        let got = served.post(&[S], asked).await;
        let request = script.requests().remove(0);
        assert_eq!(request.tool_choice, choice, "{value}");
        assert_eq!(request.tools.len(), tools, "{value}");
        if field == "parallel_tool_calls" {
            let calls = message(&got)["tool_calls"].as_array().unwrap().len();
            assert_eq!(calls, 1, "the second call is refused");
            assert_eq!(served.count("s", "tool.refused").await, 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn continued_query_keeps_its_budget() {
    let script = Scripted::new().calls("One.", [("clock", json!({}))]);
    let script = script.calls("Two.", [("clock", json!({}))]);
    let oracle = TestOracle::new(script).policy(|policy| policy.limits.max_turns = 2);
    let served = Served::start(oracle).await;
    let asked = with_tools(chat(&["how is it?"]));
    let first = served.post(&[], asked.clone()).await;
    let second = served
        .post(&[], returning(asked, &message(&first), &["1"]))
        .await;
    let json = second.json();
    assert_eq!(json["oracle"]["outcome"], "forced", "{json}");
    assert_eq!(json["choices"][0]["finish_reason"], "length");
}

/// Without a query that waits, the results count as they were sent.
#[tokio::test(start_paused = true)]
async fn history_counts_for_another_key_after_expiry_and_for_unknown_calls() {
    let other = Principal {
        name: "other".into(),
        ..Principal::local()
    };
    let elsewhere = Principal {
        tenant: TenantId::new("elsewhere").unwrap(),
        ..Principal::local()
    };
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    for (who, wait, unknown, continues) in [
        (Principal::local(), minutes(14), false, true),
        (Principal::local(), minutes(16), false, false),
        (Principal::local(), minutes(0), true, false),
        (other, minutes(0), false, false),
        (elsewhere, minutes(0), false, false),
    ] {
        let script = forecast().starting_after(1);
        let served = Served::start(TestOracle::new(script.clone())).await;
        let asked = with_tools(chat(&["zero?", "0", "how is it?"]));
        let first = served.post(&[], asked.clone()).await;
        advance_time(wait).await;
        let mut message = message(&first);
        if unknown {
            message["tool_calls"][0]["id"] = json!("call_1");
        }
        let next = returning(asked, &message, &["rain", "noon"]);
        let (status, headers, body) = served.open_as(who, &[], next).await;
        let second = ChatResponse {
            status,
            headers,
            text: read(body).await,
        };
        assert_eq!(second.answer(), "It rains at noon.");
        assert_eq!(second.session() == first.session(), continues, "{unknown}");
        let turns = if continues { 2 } else { 1 };
        assert_eq!(second.json()["oracle"]["turns"], turns);
        let requests = script.requests();
        let request = requests.last().unwrap();
        assert_eq!(results(request), ["rain", "noon"]);
        let texts: Vec<String> = request
            .messages
            .iter()
            .map(|said| said.texts().collect())
            .collect();
        assert_eq!(texts, ["zero?", "0", "how is it?", "Let me ask.", ""]);
    }
}

#[tokio::test(start_paused = true)]
async fn query_that_waits_ends_when_it_expires_or_a_question_follows() {
    for follows in [false, true] {
        let served = Served::start(TestOracle::new(forecast())).await;
        let asked = with_tools(chat(&["how is it?"]));
        let first = served.post(&[], asked.clone()).await;
        let listed = || async {
            let oracle = served.system.oracle();
            let all = SessionFilter::default();
            let page = oracle.list(&TenantId::local(), &all, None, 100).await;
            let sessions = page.unwrap().sessions.into_iter();
            sessions
                .map(|one| one.key.name.to_string())
                .collect::<Vec<_>>()
        };
        assert!(listed().await.contains(&first.session()));
        if follows {
            let mut next = returning(asked, &message(&first), &["rain", "noon"]);
            let question = json!({ "role": "user", "content": "and then?" });
            next["messages"].as_array_mut().unwrap().push(question);
            let second = served.post(&[], next).await;
            assert_eq!(second.answer(), "It rains at noon.");
            assert_ne!(second.session(), first.session());
        } else {
            advance_time(Duration::from_secs(16 * 60)).await;
        }
        assert!(!listed().await.contains(&first.session()), "{follows}");
    }
}

#[tokio::test(start_paused = true)]
async fn stored_query_waits_on_and_its_sessions_name_continues_it() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let mut asked = with_tools(chat(&["how is it?"]));
    asked["store"] = json!(true);
    let first = served.post(&[], asked.clone()).await;
    advance_time(Duration::from_secs(16 * 60)).await;
    let next = returning(asked, &message(&first), &["rain", "noon"]);
    let session = first.session();
    let second = served.post(&[("x-oracle-session", &session)], next).await;
    assert_eq!(second.answer(), "It rains at noon.");
    assert_eq!(second.json()["oracle"]["turns"], 2);
}

#[tokio::test(start_paused = true)]
async fn named_session_refuses_results_that_nothing_waits_for() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let asked = with_tools(chat(&["how is it?"]));
    let first = served.post(&[S], asked.clone()).await;
    let next = returning(asked.clone(), &message(&first), &["rain", "noon"]);

    let mut unknown = next.clone();
    unknown["messages"][1]["tool_calls"][0]["id"] = json!("call_1");
    unknown["messages"][2]["tool_call_id"] = json!("call_1");
    let mut missing = next.clone();
    let messages = missing["messages"].as_array_mut().unwrap();
    messages[1]["tool_calls"].as_array_mut().unwrap().pop();
    messages.pop();
    for (body, status, code) in [
        (unknown, 409, "not_waiting"),
        (missing, 400, "invalid_value"),
    ] {
        let refused = served.post(&[S], body).await;
        assert_eq!(
            refused.problem(),
            (status, code.to_owned()),
            "{}",
            refused.text
        );
    }
    // A session that does not exist takes the history.
    let other = served
        .post(&[("x-oracle-session", "t")], next.clone())
        .await;
    assert_eq!(other.answer(), "It rains at noon.");
    assert_eq!(
        served.post(&[S], next.clone()).await.answer(),
        "It rains at noon."
    );
    let retried = [S, ("x-stainless-retry-count", "1")];
    for body in [next.clone(), streamed(next.clone())] {
        let is_stream = body["stream"] == true;
        let again = served.post(&retried, body).await;
        match is_stream {
            false => assert_eq!(again.answer(), "It rains at noon."),
            true => assert_eq!(joined(&again).0["content"], "It rains at noon."),
        }
        assert_eq!(again.session(), "s");
    }
    let again = served.post(&[S], next).await;
    assert_eq!(again.problem(), (409, "not_waiting".to_owned()));
    let told = again.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(told.contains("is waiting for a result"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn named_session_waits_through_a_restart_of_the_system() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let script = forecast();
    let start = || Served::start(TestOracle::new(script.clone()).journal(Arc::clone(&journal)));
    let served = start().await;
    let asked = with_tools(chat(&["how is it?"]));
    let first = served.post(&[S], asked.clone()).await;
    let next = returning(asked, &message(&first), &["rain", "noon"]);
    served.system.die().await;
    let served = start().await;
    let second = served.post(&[S], streamed(next)).await;
    assert_eq!(text(&objects(&second.text)), "It rains at noon.");
    assert_eq!(served.count("s", "query.accepted").await, 1);
    assert_eq!(served.count("s", "supervisor.restarted").await, 0);
}

#[tokio::test(start_paused = true)]
async fn question_cancels_the_wait_of_a_named_session() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let first = served.post(&[S], with_tools(chat(&["how is it?"]))).await;
    assert_eq!(message(&first)["tool_calls"].as_array().unwrap().len(), 2);
    let second = served.post(&[S], chat(&["never mind: what is it?"])).await;
    assert_eq!(second.answer(), "It rains at noon.");
    let session = served.system.session("s").unwrap();
    let finished = session.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
}

/// The entry owns the session, not the connection that asked.
#[tokio::test(start_paused = true)]
async fn query_that_waits_outlives_its_connection() {
    let served = Served::start(TestOracle::new(forecast())).await;
    let asked = streamed(with_tools(chat(&["how is it?"])));
    let (_, _, body) = served.open(&[], asked.clone()).await;
    let mut stream = body.into_data_stream();
    let mut seen = String::new();
    while !seen.contains("\"clock\"") {
        seen += str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap();
    }
    drop(stream);
    advance_time(Duration::from_secs(60)).await;
    let events = objects(&seen);
    let calls = events.iter().filter_map(|event| {
        let call = event["choices"][0]["delta"]["tool_calls"][0].clone();
        (!call.is_null()).then_some(call)
    });
    let message = json!({ "role": "assistant", "tool_calls": calls.collect::<Vec<_>>() });
    let second = served
        .post(&[], returning(asked, &message, &["rain", "noon"]))
        .await;
    assert_eq!(text(&objects(&second.text)), "It rains at noon.");
    let end = objects(&second.text).pop().unwrap();
    assert_eq!(end["oracle"]["turns"], 2);
}

#[tokio::test(start_paused = true)]
async fn results_replace_the_options_of_the_question() {
    let script = Scripted::new()
        .calls("Hm.", [("clock", json!({}))])
        .reply("{\"rain\": true}");
    let served = Served::start(TestOracle::new(script.clone())).await;
    let mut asked = with_tools(chat(&["how is it?"]));
    let first = served.post(&[], asked.clone()).await;
    assert_eq!(message(&first)["content"], "Hm.");
    asked["response_format"] = json!({ "type": "json_object" });
    let stream = served.post(&[], streamed(asked.clone())).await;
    assert_eq!(joined(&stream).0["content"], "", "a text in no format");
    let first = served.post(&[], asked.clone()).await;
    assert_eq!(message(&first)["content"], Value::Null);
    let mut next = returning(asked, &message(&first), &["noon"]);
    next["tools"] = json!([tool("clock")]);
    next["response_format"] = json!({ "type": "json_schema", "json_schema": { "name": "rain" } });
    let second = served.post(&[], next).await;
    assert_eq!(second.answer(), "{\"rain\": true}");
    let request = script.requests().pop().unwrap();
    assert_eq!(request.tools.len(), 1);
    assert!(matches!(
        request.options.unwrap().format,
        AnswerFormat::Schema { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn results_for_another_model_begin_a_query_of_that_model() {
    let served = Served::start(TestOracle::new(forecast().starting_after(0))).await;
    let asked = with_tools(chat(&["how is it?"]));
    let first = served.post(&[], asked.clone()).await;
    let mut next = returning(asked, &message(&first), &["rain", "noon"]);
    next["model"] = "other".into();
    let second = served.post(&[], next).await;
    assert_eq!(second.answer(), "It rains at noon.");
    assert_ne!(second.session(), first.session());
}

#[tokio::test(start_paused = true)]
async fn queries_that_wait_for_clients_are_bounded_by_bytes() {
    let call = [("weather", json!({}))];
    let script = Scripted::new().calls("Let me ask.", call);
    let script = script.reply("It rains at noon.");
    let few = |settings: &mut SystemSettings| settings.max_live_bytes = 1_300_000;
    let served = Served::start(TestOracle::new(script).settings(few)).await;
    let asked = |number: u8| {
        let question = format!("{number} {}", "how is it? ".repeat(20_000));
        with_tools(chat(&[&question]))
    };
    let first = served.post(&[], asked(1)).await.json();
    let second = served.post(&[], asked(2)).await;
    assert_eq!(second.json()["choices"][0]["finish_reason"], "tool_calls");
    let (status, headers, _) = served.open(&[], asked(3)).await;
    assert_eq!(
        (status.as_u16(), headers.contains_key("retry-after")),
        (503, true)
    );
    let message = &first["choices"][0]["message"];
    let goes_on = served
        .post(&[], returning(asked(1), message, &["rain"]))
        .await;
    assert_eq!(goes_on.answer(), "It rains at noon.");
}
