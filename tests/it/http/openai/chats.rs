//! To which session a question goes.

use oracle_agent::model::command::MAX_IMPORTED;

use super::*;

async fn echo() -> Served {
    Served::start(TestOracle::new(Echo::default())).await
}

const S: (&str, &str) = ("x-openwebui-chat-id", "s");

#[tokio::test(start_paused = true)]
async fn only_what_is_new_is_appended() {
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
async fn an_edited_history_goes_on_in_a_branch_that_is_found_again() {
    let served = echo().await;
    let one = served.post(&[S], chat(&["one"])).await.answer();
    let two = served
        .post(&[S], chat(&["one", &one, "two"]))
        .await
        .answer();
    served
        .post(&[S], chat(&["one", &one, "two", &two, "three"]))
        .await;
    let before = served.system.session("s").unwrap().lines().await.unwrap();

    let edited = served.post(&[S], chat(&["one", &one, "zwei"])).await;
    let branch = edited.session();
    assert!(branch.starts_with("s."), "{branch}");
    assert_eq!(edited.answer(), "4. zwei (2 before)");
    assert_eq!(
        served.count(&branch, "session.forked").await,
        1,
        "with all that the first one has"
    );
    let zwei = edited.answer();
    let next = served
        .post(&[S], chat(&["one", &one, "zwei", &zwei, "drei"]))
        .await;
    assert_eq!(
        (next.session(), next.answer().as_str()),
        (branch.clone(), "5. drei (4 before)")
    );

    // The old one is as it was, and goes on as well.
    let after = served.system.session("s").unwrap().lines().await.unwrap();
    assert_eq!(before, after);

    // Edited in the branch again, and at the very beginning.
    let again = served
        .post(&[S], chat(&["one", &one, "zwei", &zwei, "trois"]))
        .await;
    assert_eq!(again.answer(), "6. trois (4 before)");
    assert!(![branch, "s".to_owned()].contains(&again.session()));
    let anew = served.post(&[S], chat(&["uno"])).await;
    assert_eq!(anew.answer(), "7. uno (0 before)");
    assert_eq!(served.sessions().await.len(), 4);
    // A conversation that is named by its branch is the branch.
    let uno = anew.answer();
    let by_name = [("x-oracle-session", anew.session())];
    let by_name: Vec<(&str, &str)> = by_name
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let due = served.post(&by_name, chat(&["uno", &uno, "due"])).await;
    assert_eq!(
        (due.session(), due.answer().as_str()),
        (anew.session(), "8. due (2 before)")
    );
}

#[tokio::test(start_paused = true)]
async fn a_conversation_goes_on_behind_a_forced_answer() {
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
        // Clients may have kept what earlier versions showed.
        let (kept, _) = forced.split_once("Stopped: ").unwrap();
        let kept = format!("{kept}[Response truncated due to budget limit]");
        let next = chat(&["one", &kept, "two", &next.answer(), "three"]);
        assert_eq!(served.post(&[S], next).await.session(), "s");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_client_edited_is_what_the_model_is_shown() {
    let served = echo().await;
    served.post(&[S], chat(&["one"])).await;
    let edited = chat(&["one", "what I would rather have heard", "two"]);
    let got = served.post(&[S], edited.clone()).await;
    assert_eq!(got.answer(), "2. two (2 before)");
    let branch = served.system.session(&got.session()).unwrap();
    let said = branch.conversation().await.unwrap().messages;
    assert_eq!(said[1].text, "what I would rather have heard");
}

#[tokio::test(start_paused = true)]
async fn another_answer_is_a_branch_each_time_and_each_is_found_again() {
    let served = echo().await;
    let one = served.post(&[S], chat(&["one"])).await.answer();
    let mut answers = Vec::new();
    for _ in 0..3 {
        let got = served.post(&[S], chat(&["one", &one, "two"])).await;
        answers.push((got.answer(), got.session()));
    }
    let sessions: std::collections::BTreeSet<_> =
        answers.iter().map(|(_, session)| session).collect();
    assert_eq!(sessions.len(), 3, "{answers:?}");
    assert_eq!(answers[0].1, "s");
    for (two, session) in answers.iter().rev() {
        let got = served
            .post(&[S], chat(&["one", &one, "two", two, "three"]))
            .await;
        assert_eq!(&got.session(), session, "what goes on from {two}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_sent_before_is_not_asked_again() {
    let served = echo().await;
    let again = ("x-stainless-retry-count", "1");
    let one = served.post(&[S], chat(&["one"])).await;
    let repeated = served.post(&[S, again], chat(&["one"])).await;
    assert_eq!(
        (repeated.answer(), repeated.session()),
        (one.answer(), one.session())
    );
    // Another answer is asked for, is lost, and is asked for again by the library.
    let other = served.post(&[S], chat(&["one"])).await;
    assert_ne!(other.session(), one.session());
    let repeated = served.post(&[S, again], chat(&["one"])).await;
    assert_eq!(
        (repeated.answer(), repeated.session()),
        (other.answer(), other.session())
    );
    // In pieces as well.
    let stream = served.post(&[S, again], streamed(chat(&["one"]))).await;
    assert!(stream.text.contains(&other.answer()), "{}", stream.text);

    let key = |key: &'static str| [("x-oracle-session", "k"), ("idempotency-key", key)];
    let one = served.post(&key("1"), chat(&["one"])).await.answer();
    assert_eq!(served.post(&key("1"), chat(&["one"])).await.answer(), one);
    let two = served.post(&key("2"), chat(&["one"])).await.answer();
    assert_ne!(two, one, "another key asks for another answer");
    assert_eq!(served.post(&key("2"), chat(&["one"])).await.answer(), two);
    assert_eq!(served.post(&key("1"), chat(&["one"])).await.answer(), one);
    let reused = served.post(&key("1"), chat(&["one", &one, "three"])).await;
    assert_eq!(reused.problem(), (422, "key_reused".to_owned()));
    assert_eq!(reused.json()["error"]["param"], "idempotency-key");
}

#[tokio::test(start_paused = true)]
async fn more_messages_than_a_session_takes_are_refused_by_their_name() {
    let served = Served::start(TestOracle::new(Echo::default())).await;
    let many = vec!["again"; MAX_IMPORTED + 3];
    for named in [&[][..], &[("x-oracle-session", "long")][..]] {
        let refused = served.post(named, chat(&many)).await;
        assert_eq!(refused.problem(), (413, "import_too_large".to_owned()));
        assert_eq!(refused.json()["error"]["param"], "messages");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_question_meanwhile_waits_for_the_same_answer() {
    let script = Scripted::new()
        .reply(done("There."))
        .slowly(std::time::Duration::from_secs(5));
    let served = Served::start(TestOracle::new(script)).await;
    let ask = || served.post(&[S], chat(&["one"]));
    let (one, other, third) = tokio::join!(ask(), ask(), ask());
    for got in [&one, &other, &third] {
        assert_eq!(
            (got.answer().as_str(), got.session().as_str()),
            ("There.", "s")
        );
    }
    assert_eq!(served.count("s", "query.accepted").await, 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_words_under_another_key_are_another_question_also_meanwhile() {
    let script = Scripted::new()
        .reply(done("There."))
        .slowly(std::time::Duration::from_secs(5));
    let served = Served::start(TestOracle::new(script.clone())).await;
    let headers = |key: &'static str| [S, ("idempotency-key", key)];
    let (k1, k2) = (headers("1"), headers("2"));
    let ask = |headers| served.post(headers, chat(&["one"]));
    let (one, again, other) = tokio::join!(ask(&k1), ask(&k1), ask(&k2));
    assert_eq!((one.session(), again.session()), ("s".into(), "s".into()));
    assert_ne!(other.session(), "s");
    assert_eq!(served.count("s", "query.accepted").await, 1);
    assert_eq!(served.count(&other.session(), "query.accepted").await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_new_and_sent_again_is_asked_once() {
    let served = echo().await;
    let tail = ("x-oracle-history", "tail");
    let again = ("x-stainless-retry-count", "1");
    let one = served.post(&[S, tail], chat(&["one"])).await;
    let repeated = served.post(&[S, tail, again], chat(&["one"])).await;
    assert_eq!(repeated.answer(), one.answer());
    assert_eq!(served.count("s", "query.accepted").await, 1);
    served.post(&[S, tail], chat(&["one"])).await;
    assert_eq!(served.count("s", "query.accepted").await, 2);
}

#[tokio::test(start_paused = true)]
async fn the_next_question_waits_for_its_turn_unless_it_says_otherwise() {
    let script = Scripted::new()
        .reply(done("1"))
        .slowly(std::time::Duration::from_secs(5))
        .reply(done("2"));
    let served = Served::start(TestOracle::new(script)).await;
    let (_, _, first) = served.open(&[S], streamed(chat(&["one"]))).await;
    let messages =
        json!([{ "role": "user", "content": "one" }, { "role": "user", "content": "two" }]);
    let both = json!({ "model": "oracle", "messages": messages });
    let refused = served
        .post(&[S, ("x-oracle-busy", "reject")], both.clone())
        .await;
    assert_eq!(refused.problem(), (409, "busy".to_owned()));
    let second = served.post(&[S], both).await;
    assert_eq!(
        (second.answer().as_str(), second.session().as_str()),
        ("2", "s")
    );
    assert!(read(first).await.contains("\"content\":\"1\""));
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_conversation_leaves_nothing_behind() {
    let served = echo().await;
    let got = served.post(&[], chat(&["one", "eins", "two"])).await;
    assert_eq!(got.answer(), "1. two (2 before)");
    let stream = served.post(&[], streamed(chat(&["one"]))).await;
    assert!(stream.text.ends_with("data: [DONE]\n\n"), "{}", stream.text);
    let_pass(std::time::Duration::from_secs(5)).await;
    assert_eq!(served.sessions().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_a_chat_page_asks_for_itself_is_not_a_part_of_the_chat() {
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
    let_pass(std::time::Duration::from_secs(5)).await;
    assert_eq!(served.sessions().await, ["s"]);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_began_elsewhere_is_brought_along() {
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
    // It went on elsewhere as well, in between.
    let more = chat(&[
        "one",
        "eins",
        "two",
        &got.answer(),
        "three",
        &next.answer(),
        "x",
        "y",
        "four",
    ]);
    let more = served.post(&[S], more).await;
    assert_eq!(more.answer(), "3. four (8 before)");
    assert_ne!(more.session(), "s");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_only_what_is_new_says_so() {
    let served = echo().await;
    let headers = [("x-oracle-session", "s"), ("x-oracle-history", "tail")];
    served.post(&headers, chat(&["one"])).await;
    let two = served.post(&headers, chat(&["two"])).await;
    assert_eq!(
        (two.session().as_str(), two.answer().as_str()),
        ("s", "2. two (2 before)")
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
async fn a_question_that_was_taken_back_can_be_asked_again() {
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
async fn instructions_are_those_of_the_latest_request() {
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
    assert!(!sent[2].contains("Answer in"), "{}", sent[2]);
    assert_eq!(
        served.sessions().await,
        ["s"],
        "other instructions are no other conversation"
    );
}

#[tokio::test(start_paused = true)]
async fn who_says_only_what_is_new_keeps_the_instructions() {
    const TAIL: (&str, &str) = ("x-oracle-history", "tail");
    let script = Scripted::new().reply(done("1")).reply(done("2"));
    let served = Served::start(TestOracle::new(script.clone())).await;
    let system = json!({ "role": "system", "content": "Answer in French." });
    let mut first = chat(&["one"]);
    first["messages"].as_array_mut().unwrap().insert(0, system);
    served.post(&[S, TAIL], first).await;
    served.post(&[S, TAIL], chat(&["two"])).await;
    let sent = script.requests();
    let [first, second] = &sent[..] else {
        panic!("{} requests", sent.len());
    };
    assert!(
        first.system.ends_with("Answer in French."),
        "{}",
        first.system
    );
    assert!(
        second.system.ends_with("Answer in French."),
        "{}",
        second.system
    );
}

#[tokio::test(start_paused = true)]
async fn the_chats_of_tenants_do_not_meet() {
    let served = echo().await;
    let one = served.post(&[S], chat(&["one"])).await.answer();
    let other = Principal {
        tenant: TenantId::new("other").unwrap(),
        ..Principal::local()
    };
    let (status, _, body) = served
        .open_as(other, &[S], chat(&["one", &one, "two"]))
        .await;
    let got = Got {
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
