//! What a request asks of its answer: a format, limits of its text, parameters of the model, images.

use std::sync::LazyLock;

use oracle_agent::{
    kernel::{ModelChoice, Policy},
    llm::scripted::ScriptedReply,
    model::{Capabilities, Image, Parameter, Part, StopReason, TenantId},
};

use super::{
    objects::events,
    streams::{objects, text},
    *,
};

const S: (&str, &str) = ("x-oracle-session", "s");

static ALL: LazyLock<Capabilities> = LazyLock::new(|| Capabilities {
    parameters: Vec::leak(Parameter::ALL.to_vec()),
    images: true,
    ..Capabilities::NONE
});

/// Changes what the models of the chain take.
fn taking(takes: &[Capabilities]) -> impl FnOnce(&mut Policy) + Send + 'static {
    let takes = takes.to_vec();
    move |policy| {
        let names = ["scripted/one", "scripted/two"];
        let models = names.iter().zip(takes).map(|(name, takes)| ModelChoice {
            takes,
            ..ModelChoice::new(name)
        });
        policy.models = models.collect();
    }
}

fn city() -> Value {
    json!({ "type": "json_schema", "json_schema": { "name": "city", "schema": {
        "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"],
    } } })
}

fn asking(field: &str, value: Value) -> Value {
    let mut body = chat(&["q?"]);
    body[field] = value;
    body
}

#[tokio::test(start_paused = true)]
async fn answer_has_the_requested_format_or_fails() {
    let object = json!({ "type": "json_object" });
    let bern = "{\"name\": \"Bern\"}";
    for (format, replies, turns, expected) in [
        (&object, vec!["{\"a\": 1}"], 1, Ok("{\"a\": 1}")),
        (&object, vec!["Of course!", "```json\n{}\n```"], 2, Ok("{}")),
        (&object, vec!["Of course!", "Here:\n{}"], 2, Err(())),
        (&city(), vec![bern], 1, Ok(bern)),
        (&city(), vec!["{}", bern], 2, Ok(bern)),
        (&city(), vec!["{}", "{\"name\": 1}"], 2, Err(())),
    ] {
        let script = replies
            .iter()
            .fold(Scripted::new(), |script, reply| script.reply(*reply));
        let served = Served::start(TestOracle::new(script)).await;
        let body = asking("response_format", format.clone());
        let got = served.post(&[], body.clone()).await;
        let (shown, last) = events(&served.post(&[], streamed(body)).await.text);
        match expected {
            Ok(answer) => {
                assert_eq!(got.answer(), answer);
                assert_eq!(got.json()["oracle"]["turns"], turns);
                assert_eq!(text(&shown), answer);
                assert_eq!(last, "[DONE]");
            }
            Err(()) => {
                assert_eq!(got.problem(), (502, "answer_format".to_owned()));
                assert_eq!(text(&shown), "");
                let error: Value = serde_json::from_str(&last).unwrap();
                assert_eq!(error, got.json());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn format_that_every_provider_enforces_is_streamed_live() {
    let enforces = Capabilities {
        schemas: true,
        ..Capabilities::NONE
    };
    for (takes, replies, pieces, retracted) in [
        (vec![enforces], vec!["{\"name\": \"Bern\"}"], 2, false),
        (
            vec![enforces, Capabilities::NONE],
            vec!["{\"name\": \"Bern\"}"],
            1,
            false,
        ),
        (vec![enforces], vec!["{}", "{\"name\": \"Bern\"}"], 1, true),
        (
            vec![Capabilities::NONE],
            vec!["{}", "{\"name\": \"Bern\"}"],
            1,
            false,
        ),
    ] {
        let script = replies.iter().fold(Scripted::new(), |script, reply| {
            let half = reply.len() / 2;
            script.play(ScriptedReply::chunks([&reply[..half], &reply[half..]]))
        });
        let script = script.slowly(std::time::Duration::from_millis(10));
        let oracle = TestOracle::new(script).models(&["scripted/one"]);
        let served = Served::start(oracle.policy(taking(&takes))).await;
        let body = streamed(asking("response_format", city()));
        let (mut shown, last) = events(&served.post(&[S], body).await.text);
        let shown_text = text(&shown);
        shown.retain(|event| !text(std::slice::from_ref(event)).is_empty());
        if retracted {
            let error: Value = serde_json::from_str(&last).unwrap();
            assert_eq!(error["error"]["code"], "retracted", "{error}");
            assert_eq!(shown_text, "{}");
        } else {
            assert_eq!(
                (shown_text.as_str(), last.as_str()),
                ("{\"name\": \"Bern\"}", "[DONE]")
            );
            assert_eq!(shown.len(), pieces, "{takes:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn text_ends_at_a_stop_sequence_or_the_limit_of_tokens() {
    for (field, value, chunks, shown, reason) in [
        (
            "stop",
            json!("END"),
            &["Yes. E", "N", "D of it."][..],
            "Yes. ",
            "stop",
        ),
        (
            "stop",
            json!(["x", "it"]),
            &["Yes. End of it."],
            "Yes. End of ",
            "stop",
        ),
        (
            "stop",
            json!("END"),
            &["Yes. EN", "ough."],
            "Yes. ENough.",
            "stop",
        ),
        (
            "max_tokens",
            json!(2),
            &["12345", "67890"],
            "12345678",
            "length",
        ),
        (
            "max_completion_tokens",
            json!(100),
            &["Yes."],
            "Yes.",
            "stop",
        ),
    ] {
        let reply = ScriptedReply::chunks(chunks.iter().copied());
        let served = Served::start(TestOracle::new(Scripted::new().play(reply))).await;
        let body = asking(field, value);
        let got = served.post(&[], body.clone()).await;
        assert_eq!(got.answer().trim_end(), shown.trim_end());
        assert_eq!(got.json()["choices"][0]["finish_reason"], reason, "{shown}");
        let (events, last) = events(&served.post(&[], streamed(body)).await.text);
        assert_eq!(text(&events).trim_end(), shown.trim_end());
        assert_eq!(last, "[DONE]");
        let end = events.last().unwrap();
        assert_eq!(end["choices"][0]["finish_reason"], reason, "{shown}");
    }
    // The provider's own limit counts only if the client has set one.
    let cut = ScriptedReply::text("Half").stop(StopReason::MaxTokens);
    let served = Served::start(TestOracle::new(
        Scripted::new().play(cut).reply(done("Whole.")),
    ))
    .await;
    let got = served.post(&[], asking("max_tokens", json!(100))).await;
    assert_eq!(
        (
            got.answer().as_str(),
            &got.json()["choices"][0]["finish_reason"]
        ),
        ("Half", &json!("length"))
    );
    let got = served.post(&[], chat(&["q?"])).await;
    assert_eq!(got.json()["choices"][0]["finish_reason"], "stop");
}

#[tokio::test(start_paused = true)]
async fn parameters_and_images_reach_the_model() {
    let script = Scripted::new().reply(done("A plan."));
    let oracle = TestOracle::new(script.clone()).models(&["scripted/one"]);
    let served = Served::start(oracle.policy(taking(&[*ALL]))).await;
    let parts = json!([
        { "type": "text", "text": "what is it?" },
        { "type": "image_url", "image_url": { "url": "https://example.org/a.png", "detail": "high" } },
    ]);
    let body = json!({
        "model": "oracle",
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "and this?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            ] },
            { "role": "user", "content": parts },
        ],
        "temperature": 0, "top_p": 0.5, "presence_penalty": 1, "frequency_penalty": -1, "seed": 7,
        "logit_bias": { "1": 5 }, "reasoning_effort": "low", "verbosity": "medium",
    });
    assert_eq!(served.post(&[], body).await.answer(), "A plan.");
    let request = script.requests().remove(0);
    let options = request.options.unwrap();
    let expected = [
        (Parameter::Temperature, json!(0)),
        (Parameter::TopP, json!(0.5)),
        (Parameter::PresencePenalty, json!(1)),
        (Parameter::FrequencyPenalty, json!(-1)),
        (Parameter::Seed, json!(7)),
        (Parameter::LogitBias, json!({ "1": 5 })),
        (Parameter::ReasoningEffort, json!("low")),
        (Parameter::Verbosity, json!("medium")),
    ];
    assert_eq!(options.parameters, expected.into());
    let image = |url: &str, detail: Option<&str>| {
        let detail = detail.map(str::to_owned);
        Part::Image(Image {
            url: url.to_owned(),
            detail,
        })
    };
    let parts = [
        Part::text("and this?\n\nwhat is it?"),
        image("data:image/png;base64,AAAA", None),
        image("https://example.org/a.png", Some("high")),
    ];
    assert_eq!(request.messages[0].parts, parts);
}

#[tokio::test(start_paused = true)]
async fn what_a_model_of_the_chain_does_not_take_is_refused_by_name() {
    let image = json!([{ "role": "user", "content": [
        { "type": "text", "text": "q?" },
        { "type": "image_url", "image_url": { "url": "https://example.org/a.png" } },
    ] }]);
    let fields = [
        ("temperature", json!(1), "temperature"),
        ("top_p", json!(1), "top_p"),
        ("presence_penalty", json!(1), "presence_penalty"),
        ("frequency_penalty", json!(1), "frequency_penalty"),
        ("seed", json!(1), "seed"),
        ("logit_bias", json!({}), "logit_bias"),
        ("reasoning_effort", json!("low"), "reasoning_effort"),
        ("verbosity", json!("low"), "verbosity"),
        ("messages", image, "messages[0]"),
    ];
    for (takes, refuses) in [([*ALL, *ALL], false), ([*ALL, Capabilities::NONE], true)] {
        let script = Scripted::new().reply(done("Yes."));
        let oracle = TestOracle::new(script).models(&["scripted/one", "scripted/two"]);
        let served = Served::start(oracle.policy(taking(&takes))).await;
        for (field, value, param) in &fields {
            for headers in [&[][..], &[("x-oracle-session", *field)]] {
                let got = served.post(headers, asking(field, value.clone())).await;
                if !refuses {
                    assert_eq!(got.status, StatusCode::OK, "{field}: {}", got.text);
                    continue;
                }
                assert_eq!(got.problem(), (400, "invalid_value".to_owned()), "{field}");
                let error = got.json()["error"].clone();
                assert_eq!(error["param"], *param);
                let told = error["message"].as_str().unwrap();
                assert!(told.contains("scripted/two"), "{told}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn large_images_are_refused_with_their_parameter() {
    let served = Served::start(TestOracle::new(Scripted::new()).policy(taking(&[*ALL]))).await;
    let url = format!("data:image/png;base64,{}", "A".repeat(4 << 20));
    let parts = json!([
        { "type": "text", "text": "what is it?" },
        { "type": "image_url", "image_url": { "url": url } },
    ]);
    let body = json!({ "model": "oracle", "messages": [{ "role": "user", "content": parts }] });
    let refused = served.post(&[], body).await;
    assert_eq!(refused.problem(), (413, "import_too_large".to_owned()));
    assert_eq!(refused.json()["error"]["param"], "messages");
}

#[tokio::test(start_paused = true)]
async fn task_of_a_chat_page_is_one_call_without_prompt_and_tools() {
    let script = Scripted::new().reply("{\"title\": \"Rain\"}");
    let served = Served::start(TestOracle::new(script.clone())).await;
    for is_json in [false, true] {
        let mut body = chat(&["### Task:\nA title, please."]);
        if is_json {
            body["response_format"] = json!({ "type": "json_object" });
        }
        let got = served.post(&[S], body).await;
        assert_eq!(got.answer(), "{\"title\": \"Rain\"}");
        assert_eq!(got.json()["oracle"]["turns"], 1);
        assert_ne!(got.session(), "s");
    }
    for request in script.requests() {
        assert!(request.tools.is_empty());
        assert!(!request.system.contains("signal"), "{}", request.system);
    }
    let kept = served
        .system
        .journal()
        .list(TenantId::local(), None, 10)
        .await
        .unwrap();
    assert!(kept.iter().all(|known| known.key.name.as_str() != "s"));
}

#[tokio::test(start_paused = true)]
async fn options_of_a_message_that_steers_are_refused_by_the_header() {
    let script = Scripted::new().reply(done("Yes."));
    let script = script.slowly(std::time::Duration::from_secs(5));
    let served = Served::start(TestOracle::new(script)).await;
    let (_, _, first) = served.open(&[S], streamed(chat(&["one"]))).await;
    let steer = ("x-oracle-busy", "steer");
    let refused = served.post(&[S, steer], asking("stop", json!("x"))).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    assert_eq!(refused.json()["error"]["param"], "x-oracle-busy");
    let end = objects(&read(first).await).pop().unwrap();
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
}
