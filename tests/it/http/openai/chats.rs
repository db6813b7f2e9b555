//! Selection of the session that answers a request.

use oracle_agent::{
    model::{SessionName, command::MAX_IMPORTED},
    testkit::TestTool,
};

use super::*;

async fn echo() -> Served {
    Served::start(TestOracle::new(Echo::default())).await
}

const S: (&str, &str) = ("x-oracle-session", "s");

#[tokio::test(start_paused = true)]
async fn chat_appends_only_new_messages() {
    let served = echo().await;
    let first = served.post(&[S], chat(&["one"])).await;
    assert_eq!(
        (first.answer().as_str(), first.session().as_str()),
        ("1. one (0 before)", "s")
    );
    let second = served
        .post(&[S], chat(&["one", &first.answer(), "two"]))
        .await;
    assert_eq!(second.answer(), "2. two (2 before)");
    let third = chat(&["one", &first.answer(), "two", &second.answer(), "three"]);
    let third = served.post(&[S], third).await;
    assert_eq!(
        (third.answer().as_str(), third.session().as_str()),
        ("3. three (4 before)", "s")
    );
    assert_eq!(served.count("s", "query.accepted").await, 3);
    assert_eq!(served.sessions().await, ["s"]);
}

#[tokio::test(start_paused = true)]
async fn conversation_continues_after_a_forced_answer() {
    let script = ["One.", "Two.", "Three."].map(more).into_iter();
    let script = script.fold(Scripted::new(), Scripted::reply);
    let script = script.reply(done("Four.")).reply(done("Five."));
    for is_stream in [false, true] {
        let served = Served::start(TestOracle::new(script.clone())).await;
        let asked = chat(&["one"]);
        let forced = if is_stream {
            let got = served.post(&[S], streamed(asked)).await;
            super::streams::text(&super::objects::events(&got.text).0)
        } else {
            served.post(&[S], asked).await.answer()
        };
        assert!(forced.starts_with("One.\n\nTwo.\n\nThree.\n\nStopped: "));
        let next = served.post(&[S], chat(&["one", &forced, "two"])).await;
        assert_eq!(next.session(), "s", "no branch of it");
        assert_eq!(next.answer(), "Four.");
    }
}

#[tokio::test(start_paused = true)]
async fn model_sees_the_clients_history() {
    let script = Scripted::new().starting_after(1).reply(done("1"));
    let served = Served::start(TestOracle::new(script.clone())).await;
    let answer = "<think>Hm.</think>what I would rather have heard";
    let got = served.post(&[], chat(&["one", answer, "two"])).await;
    assert_eq!(got.answer(), "1");
    let sent = script.requests();
    let said: Vec<String> = sent[0]
        .messages
        .iter()
        .map(|said| said.texts().collect())
        .collect();
    assert!(
        said[1].contains("what I would rather have heard"),
        "{said:?}"
    );
    assert!(!said[1].contains("Hm."), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn retried_request_is_not_asked_again() {
    let served = echo().await;
    let again = ("x-stainless-retry-count", "1");
    let one = served.post(&[S], chat(&["one"])).await;
    let repeated = served.post(&[S, again], chat(&["one"])).await;
    assert_eq!(
        (repeated.answer(), repeated.session()),
        (one.answer(), one.session())
    );
    assert_eq!(served.count("s", "query.accepted").await, 1);
    let stream = served.post(&[S, again], streamed(chat(&["one"]))).await;
    assert!(stream.text.contains(&one.answer()), "{}", stream.text);

    // Without that header it is another question.
    let two = served.post(&[S], chat(&["one"])).await;
    assert_ne!(two.answer(), one.answer());

    for session in [&[][..], &[("x-oracle-session", "k")]] {
        let key = |key: &'static str| [session, &[("idempotency-key", key)]].concat();
        let one = served.post(&key("1"), chat(&["zero", "0", "one"])).await;
        let again = served.post(&key("1"), chat(&["zero", "0", "one"])).await;
        assert_eq!(
            (again.answer(), again.session()),
            (one.answer(), one.session())
        );
        let two = served.post(&key("2"), chat(&["one"])).await.answer();
        assert_ne!(two, one.answer(), "another key asks for another answer");
        assert_eq!(served.post(&key("2"), chat(&["one"])).await.answer(), two);
        let reused = served.post(&key("1"), chat(&["three"])).await;
        assert_eq!(reused.problem(), (422, "key_reused".to_owned()));
        assert_eq!(reused.json()["error"]["param"], "idempotency-key");
    }
}

#[tokio::test(start_paused = true)]
async fn retried_multi_message_question_is_asked_once() {
    let served = echo().await;
    let user = |text: &str| json!({ "role": "user", "content": text });
    let body = json!({ "model": "oracle", "messages": [user("one"), user("two")] });
    for headers in [
        &[("idempotency-key", "1")][..],
        &[S, ("x-stainless-retry-count", "1")],
    ] {
        let one = served.post(headers, body.clone()).await;
        let asked = one.answer();
        assert!(asked.ends_with(". one\n\ntwo (0 before)"), "{asked}");
        let again = served.post(headers, body.clone()).await;
        assert_eq!((again.answer(), again.session()), (asked, one.session()));
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_messages_are_refused_with_their_parameter() {
    let served = Served::start(TestOracle::new(Echo::default())).await;
    let many = vec!["again"; MAX_IMPORTED + 3];
    for named in [&[][..], &[("x-oracle-session", "long")][..]] {
        let refused = served.post(named, chat(&many)).await;
        assert_eq!(refused.problem(), (413, "import_too_large".to_owned()));
        assert_eq!(refused.json()["error"]["param"], "messages");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_with_one_key_share_an_answer() {
    let script = Scripted::new()
        .reply(done("There."))
        .slowly(std::time::Duration::from_secs(5));
    let served = Served::start(TestOracle::new(script)).await;
    let key = ("idempotency-key", "1");
    for headers in [&[key][..], &[S, key]] {
        let ask = || served.post(headers, chat(&["one"]));
        let (one, other, third) = tokio::join!(ask(), ask(), ask());
        for got in [&one, &other, &third] {
            assert_eq!(
                (got.answer(), got.session()),
                ("There.".into(), one.session())
            );
        }
        assert_eq!(served.count(&one.session(), "query.accepted").await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn next_question_queues_unless_the_header_rejects() {
    let script = Scripted::new()
        .reply(done("1"))
        .slowly(std::time::Duration::from_secs(5))
        .reply(done("2"));
    let served = Served::start(TestOracle::new(script)).await;
    let (_, _, first) = served.open(&[S], streamed(chat(&["one"]))).await;
    let two = chat(&["two"]);
    let refused = served
        .post(&[S, ("x-oracle-busy", "reject")], two.clone())
        .await;
    assert_eq!(refused.problem(), (409, "busy".to_owned()));
    let second = served.post(&[S], two).await;
    assert_eq!(
        (second.answer().as_str(), second.session().as_str()),
        ("2", "s")
    );
    assert!(read(first).await.contains("\"content\":\"1\""));
}

#[tokio::test(start_paused = true)]
async fn request_without_a_session_is_ephemeral() {
    let served = echo().await;
    // No header of a chat UI names a session.
    let page = [
        ("x-openwebui-chat-id", "s"),
        ("x-conversation-id", "s"),
        ("x-oracle-history", "tail"),
    ];
    let got = served.post(&page, chat(&["one", "eins", "two"])).await;
    assert_eq!(got.answer(), "1. two (2 before)");
    let stream = served.post(&[], streamed(chat(&["one"]))).await;
    assert!(stream.text.ends_with("data: [DONE]\n\n"), "{}", stream.text);
    assert_eq!(served.sessions().await, [""; 0]);
    let name = got.session();
    assert!(SessionName::new(&name).unwrap().is_ephemeral(), "{name}");
    let refused = served
        .post(&[("x-oracle-session", name.as_str())], chat(&["and?"]))
        .await;
    assert_eq!(refused.problem(), (400, "invalid_value".to_owned()));
    assert_eq!(refused.json()["error"]["param"], "x-oracle-session");
    let child = [("x-oracle-session", "~s.1.1")];
    let refused = served.post(&child, chat(&["and?"])).await;
    assert_eq!(refused.problem(), (403, "reserved".to_owned()));
    let used = served
        .system
        .session(SessionName::usage().as_str())
        .unwrap();
    let used = used.kinds().await.unwrap();
    assert_eq!(
        used.iter().filter(|kind| *kind == "llm.used").count(),
        2,
        "{used:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn request_with_store_or_approvals_is_durable() {
    let served = echo().await;
    let mut kept = chat(&["one", "eins", "two"]);
    kept["store"] = true.into();
    let got = served.post(&[], kept).await;
    assert_eq!(got.answer(), "1. two (2 before)");
    assert_eq!(served.sessions().await, [got.session()]);
    // A tool of its profile requires approval.
    let script = Scripted::new().reply(done("Fine."));
    let oracle = TestOracle::new(script).tool(TestTool::new("write").needs_approval());
    let served = Served::start(oracle).await;
    let got = served.post(&[], chat(&["one"])).await;
    assert_eq!(served.sessions().await, [got.session()]);
}

#[tokio::test(start_paused = true)]
async fn background_tasks_of_a_chat_page_stay_out_of_the_chat() {
    let served = echo().await;
    let one = served.post(&[S], chat(&["one"])).await.answer();
    let task = "### Task:\nGenerate a concise title.\n### Chat history:\nUSER: one";
    let title = served.post(&[S], chat(&[task])).await;
    assert_ne!(title.session(), "s");
    let two = served.post(&[S], chat(&["one", &one, "two"])).await;
    assert_eq!(
        (two.answer().as_str(), two.session().as_str()),
        ("3. two (2 before)", "s")
    );
    advance_time(std::time::Duration::from_secs(5)).await;
    assert_eq!(served.sessions().await, ["s"]);
}

#[tokio::test(start_paused = true)]
async fn chat_imports_a_conversation_from_elsewhere() {
    let served = echo().await;
    let got = served.post(&[S], chat(&["one", "eins", "two"])).await;
    assert_eq!(got.answer(), "1. two (2 before)");
    let next = served
        .post(&[S], chat(&["one", "eins", "two", &got.answer(), "three"]))
        .await;
    assert_eq!(
        (next.session().as_str(), next.answer().as_str()),
        ("s", "2. three (4 before)")
    );
}

#[tokio::test(start_paused = true)]
async fn all_messages_after_the_last_answer_are_new() {
    let served = echo().await;
    served.post(&[S], chat(&["one"])).await;
    let user = |text: &str| json!({ "role": "user", "content": text });
    let messages = json!([user("one"), { "role": "assistant", "content": "edited" }, user("two"), user("three")]);
    let body = json!({ "model": "oracle", "messages": messages });
    let got = served.post(&[S], body).await;
    assert_eq!(
        (got.session().as_str(), got.answer().as_str()),
        ("s", "2. two\n\nthree (2 before)")
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_failed_can_be_asked_again() {
    let fault = oracle_agent::model::Fault::permanent("unauthorized", "no such key");
    let script = Scripted::new().fault(fault).reply(done("There."));
    let served = Served::start(TestOracle::new(script)).await;
    assert_eq!(served.post(&[S], chat(&["one"])).await.status, 502);
    let again = served.post(&[S], chat(&["one"])).await;
    assert_eq!(
        (again.answer().as_str(), again.session().as_str()),
        ("There.", "s")
    );
}

#[tokio::test(start_paused = true)]
async fn cancelled_question_can_be_asked_again() {
    let script = Scripted::new().stall("Hm").reply(done("There."));
    let served = Served::start(TestOracle::new(script)).await;
    let (_, _, body) = served.open(&[S], streamed(chat(&["one"]))).await;
    served
        .system
        .session("s")
        .unwrap()
        .cancel(None)
        .await
        .unwrap();
    read(body).await;
    let again = served.post(&[S], chat(&["one"])).await;
    assert_eq!(again.answer(), "There.");
}

#[tokio::test(start_paused = true)]
async fn instructions_follow_the_latest_request() {
    let script = Scripted::new()
        .reply(done("1"))
        .reply(done("2"))
        .reply(done("3"));
    let served = Served::start(TestOracle::new(script.clone())).await;
    let system = json!({ "role": "system", "content": "Answer in French." });
    let mut first = chat(&["one"]);
    first["messages"].as_array_mut().unwrap().insert(0, system);
    served.post(&[S], first).await;
    let developer = json!({ "role": "developer", "content": "Answer in Dutch." });
    let mut second = chat(&["one", "1", "two"]);
    second["messages"]
        .as_array_mut()
        .unwrap()
        .insert(0, developer);
    served.post(&[S], second).await;
    served
        .post(&[S], chat(&["one", "1", "two", "2", "three"]))
        .await;
    let sent = script.requests();
    let sent: Vec<_> = sent.iter().map(|request| &request.system).collect();
    assert!(sent[0].ends_with("Answer in French."), "{}", sent[0]);
    assert!(sent[1].ends_with("Answer in Dutch."), "{}", sent[1]);
    assert!(sent[2].ends_with("Answer in Dutch."), "{}", sent[2]);
    assert_eq!(
        served.sessions().await,
        ["s"],
        "other instructions are no other conversation"
    );
}

#[tokio::test(start_paused = true)]
async fn chats_of_tenants_are_isolated() {
    let served = echo().await;
    let one = served.post(&[S], chat(&["one"])).await.answer();
    let other = Principal {
        tenant: TenantId::new("other").unwrap(),
        ..Principal::local()
    };
    let (status, _, body) = served
        .open_as(other, &[S], chat(&["one", &one, "two"]))
        .await;
    let got = ChatResponse {
        status,
        headers: HeaderMap::new(),
        text: read(body).await,
    };
    assert_eq!(
        got.answer(),
        "2. two (2 before)",
        "as what the client brought along"
    );
    assert_eq!(
        served.count("s", "query.accepted").await,
        1,
        "and not in the first one's"
    );
}
