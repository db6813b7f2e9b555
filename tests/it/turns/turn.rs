//! What follows a reply: every signal, no signal, and unusable replies.

use oracle_agent::{
    kernel::Command,
    model::{Outcome, Part, QueryType, Reply, Role, StopReason, record::TurnMode},
};

use super::{play::Play, script::*, steps};

const CONTINUE: &str = "Continue.";
const FORCED: &str = "For this reply: You have gathered sufficient information. Please provide your final response now.";

#[test]
fn a_query_is_prepared_asked_and_answered() {
    let mut play = Play::asked(policy());
    let kinds = ["query.classified", "session.head_composed", "turn.started"];
    assert_eq!(play.kinds(), kinds);
    assert_eq!((play.mode(), play.model()), (TurnMode::Normal, "p/one"));
    play.says(&format!("It is in retry.rs.\n{}", done()));
    assert_eq!(
        play.kinds(),
        ["turn.replied", "signal.emitted", "query.finished"]
    );
    assert_eq!(play.outcome(), &Outcome::Answered);
    assert_eq!(play.answer(), "It is in retry.rs.");
    assert_eq!(
        (play.finished().turns, play.finished().usage),
        (1, usage(90, 10, 1_000))
    );
    assert!(play.effects.is_empty(), "{:?}", play.effects);
}

#[test]
fn terminal_signals_end_the_query() {
    let missing = ("partial", "the error paths");
    for (name, signal, end) in [
        ("row 11: context_sufficient", done(), ("answered", "")),
        ("row 12: partial_answer", partial(), missing),
    ] {
        let mut play = Play::asked(policy());
        play.says(&format!("Words.\n{signal}"));
        assert_eq!(play.end(), Some(end), "{name}");
        assert_eq!(play.answer(), "Words.", "{name}");
    }
}

#[test]
fn row_of_a_turn_is_recorded_with_what_follows() {
    let mut play = Play::asked(policy());
    play.uses(&need("have to look"), call("1", "search"), "found");
    play.says(&format!("Found. {}", need("have to read on")));
    play.says(&format!("So. {}", wants("a shell")));
    play.says(&format!("It is in retry.rs.\n{}", done()));
    let expected = [
        ("turn.started", 9),
        ("turn.started", 14),
        ("capability.requested", 15),
        ("query.finished", 11),
    ];
    assert_eq!(play.rows(), expected);

    let mut play = Play::asked(turns(2));
    play.says(&format!("Found. {}", need("have to read on")));
    play.says(&format!("So. {}", need("have to read more")));
    let expected = [("turn.started", 14), ("query.finished", 4)];
    assert_eq!(play.rows(), expected);

    let expected = [("turn.started", 9), ("budget.context.compacting", 9)];
    assert_eq!(steps::compacting().rows(), expected);

    let mut play = Play::asked(policy());
    play.command(Command::Cancel { query: None }).unwrap();
    assert!(play.rows().is_empty(), "nothing of the table decided");
}

#[test]
fn a_partial_answer_keeps_its_caveat() {
    let mut play = Play::asked(policy());
    play.says(&partial());
    let partial = Outcome::Partial {
        missing: "the error paths".into(),
        caveat: Some("read once".into()),
    };
    assert_eq!(play.outcome(), &partial);
}

#[test]
fn continuation_turns_carry_the_needed_guidance() {
    let tools = "\"a shell\" is not available. The tools here are: search, read, write, deploy. \
                 Continue with these, or answer with what you have.";
    let alone = "No sub-agent is available. Do the work yourself with the tools there are, or \
                 answer with what you have.";
    let reminder = "Your last reply had no signal. End every reply with exactly one <signal \
                    type=\"…\"> block, as the Signal Emission Protocol describes.";
    for (name, reply, kind, guidance) in [
        (
            "row 14: need_turn",
            need("more to read"),
            "signal.emitted",
            CONTINUE,
        ),
        (
            "row 15: need_capability",
            wants("a shell"),
            "capability.requested",
            tools,
        ),
        (
            "row 16: no room",
            delegate("all of src"),
            "delegation.recommended",
            alone,
        ),
        ("row 18: no signal", String::new(), "turn.replied", reminder),
    ] {
        let mut play = Play::asked(policy());
        play.says(&format!("Words.\n{reply}"));
        assert_eq!(play.guidance(), [guidance], "{name}");
        assert_eq!((play.count(kind), play.end()), (1, None), "{name}");
        assert_eq!(play.token().turn.0, 1, "{name}");
    }
}

#[test]
fn missing_signal_is_handled_by_query_type_and_policy() {
    let finish = || {
        let on_missing_signal = oracle_agent::kernel::OnMissingSignal::Finish;
        oracle_agent::kernel::Policy {
            on_missing_signal,
            ..policy()
        }
    };
    let bad = "Hello. <signal type=\"need_turn\"></signal>";
    for (name, policy, kind, reply, end) in [
        (
            "row 17: small talk",
            policy(),
            QueryType::Conversational,
            "Hello.",
            Some(("answered", "")),
        ),
        (
            "row 17: rejected in small talk",
            policy(),
            QueryType::Conversational,
            bad,
            Some(("answered", "")),
        ),
        (
            "row 18: small talk without text",
            policy(),
            QueryType::Conversational,
            "",
            None,
        ),
        (
            "row 18: research",
            policy(),
            QueryType::Research,
            "Hello.",
            None,
        ),
        (
            "row 18: finish",
            finish(),
            QueryType::Research,
            "Hello.",
            Some(("answered", "")),
        ),
        (
            "row 18: finish without text",
            finish(),
            QueryType::Research,
            "",
            None,
        ),
    ] {
        let mut play = Play::new(policy);
        play.ask_as(kind, "hello").says(reply);
        assert_eq!(play.end(), end, "{name}");
    }
}

#[test]
fn a_rejected_signal_is_explained_twice_at_most() {
    let mut play = Play::asked(policy());
    let broken = "Words. <signal type=\"need_turn\"><reason>abc</reason></signal>";
    let mut said = Vec::new();
    for _ in 0..2 {
        play.says(broken);
        assert_eq!(play.kinds()[..2], ["turn.replied", "signal.rejected"]);
        said.extend(play.guidance().into_iter().map(str::to_owned));
    }
    assert_eq!(said.len(), 2, "the fault replaces the reminder: {said:?}");
    for text in &said {
        assert!(
            text.starts_with("The signal in your last reply was not accepted: "),
            "{text}"
        );
        assert!(text.contains("reason"), "it names the field: {text}");
    }
    play.says(&format!("Words.\n{}", need("back on track")));
    play.says(broken);
    let reminded = play.guidance().concat();
    assert!(
        reminded.starts_with("Your last reply had no signal."),
        "{reminded}"
    );
    assert_eq!(
        play.count("signal.rejected"),
        3,
        "but every one is recorded"
    );
}

#[test]
fn cut_reply_continues_more_briefly() {
    let cut = "Your last reply was cut off by the output limit. Continue where it stopped, more \
               briefly, and end with a signal.";
    let finish = oracle_agent::kernel::OnMissingSignal::Finish;
    let kinds = [
        ("code", QueryType::Code, policy()),
        ("small talk", QueryType::Conversational, policy()),
        (
            "finish",
            QueryType::Code,
            oracle_agent::kernel::Policy {
                on_missing_signal: finish,
                ..policy()
            },
        ),
    ];
    for (name, kind, policy) in kinds {
        let mut play = Play::new(policy);
        play.ask_as(kind, "tell me");
        let whole = reply(&format!("First half.\n{}", done()), Vec::new());
        play.replies(stopped(StopReason::MaxTokens, whole));
        assert_eq!(play.end(), None, "{name}: a cut reply is no answer");
        assert_eq!(play.guidance(), [cut], "{name}");
        assert_eq!(
            play.count("signal.emitted"),
            0,
            "{name}: a cut reply has no signal"
        );
    }
}

#[test]
fn paused_reply_goes_back_as_it_is_and_is_no_answer() {
    for kind in [QueryType::Code, QueryType::Conversational] {
        let mut play = Play::new(policy());
        play.ask_as(kind, "tell me");
        for said in ["I am still searching.", "", ""] {
            let paused = reply(said, Vec::new());
            play.replies(stopped(StopReason::Paused, paused));
            assert_eq!(play.end(), None, "{kind:?}: {said}");
            assert!(
                play.guidance().is_empty(),
                "{kind:?}: {:?}",
                play.guidance()
            );
        }
        assert_eq!(play.roles().last(), Some(&Role::Assistant));
        play.replies(reply(&format!("Found it.\n{}", done()), Vec::new()));
        assert_eq!(play.answer(), "Found it.");
    }
}

#[test]
fn a_reply_that_pauses_for_ever_is_no_answer() {
    let mut play = Play::asked(policy());
    while play.end().is_none() {
        let paused = reply("I am still searching.", Vec::new());
        play.replies(stopped(StopReason::Paused, paused));
    }
    assert_eq!(play.end(), Some(("forced", "budget")));
}

#[test]
fn the_calls_of_a_cut_reply_are_not_run() {
    let mut play = Play::asked(policy());
    let half = call_with("c1", "search", "{\"query\": \"ret");
    play.replies(stopped(StopReason::MaxTokens, reply("", vec![half])));
    assert_eq!(
        (play.count("tool.refused"), play.count("tool.started")),
        (1, 0)
    );
    assert!(play.results()[0].2.contains("cut off by the output limit"));
    assert!(play.guidance()[0].contains("more briefly"));
}

#[test]
fn refused_or_filtered_reply_fails_with_its_code() {
    for (stop, code) in [
        (StopReason::Refusal, "refusal"),
        (StopReason::ContentFilter, "content_filter"),
    ] {
        let mut play = Play::asked(policy());
        play.replies(stopped(
            stop,
            reply("I will not.", vec![call("c1", "search")]),
        ));
        assert_eq!(play.end(), Some(("failed", code)));
        assert_eq!(
            play.finished().usage,
            usage(90, 10, 1_000),
            "{code}: it is paid for"
        );
        assert!(play.messages().is_empty(), "{code}: it leaves the history");
    }
}

#[test]
fn the_answer_is_the_last_text_else_all_of_it() {
    let mut play = Play::asked(policy());
    play.says(&format!("One.\n{}", need("first reason")));
    play.says(&format!("Two.\n{}", need("second reason")));
    let mut empty = play.clone();
    play.says(&format!("Three.\n{}", done()));
    assert_eq!(play.answer(), "Three.");
    empty.says(&done());
    assert_eq!(empty.answer(), "One.\n\nTwo.");
}

#[test]
fn final_turn_ends_the_query_whatever_the_reply() {
    let searching = || call("c1", "search");
    let empty = Some(("failed", "empty_answer"));
    let answered = Some(("answered", ""));
    for (name, before, text, calls, end) in [
        ("no signal", "", "It is so.".to_owned(), vec![], answered),
        (
            "need_turn is not heard",
            "",
            format!("So. {}", need("once more")),
            vec![],
            answered,
        ),
        (
            "partial_answer",
            "",
            format!("So. {}", partial()),
            vec![],
            Some(("partial", "the error paths")),
        ),
        (
            "stuck",
            "",
            format!("So. {}", stuck("no access")),
            vec![],
            Some(("stuck", "no access")),
        ),
        (
            "calls are refused",
            "",
            "So.".to_owned(),
            vec![searching()],
            answered,
        ),
        ("earlier text", "Before.", String::new(), vec![], answered),
        ("no text at all", "", String::new(), vec![], empty),
        ("a signal without text", "", done(), vec![], empty),
    ] {
        let mut play = Play::new(policy());
        // A simple question without tools, and a weak signal: the fallback forces a response.
        play.ask("What is it?");
        play.says(&format!("{before} {}", weak(&need("no idea yet"))));
        assert_eq!(
            (play.mode(), play.guidance()),
            (TurnMode::Final, vec![FORCED]),
            "{name}"
        );
        play.calls(&text, calls);
        assert_eq!(play.end(), end, "{name}");
        assert_eq!(play.count("tool.started"), 0, "{name}");
    }
}

#[test]
fn no_request_ends_with_an_assistant_message() {
    let mut play = Play::asked(policy());
    play.says(&need("more to read"));
    assert_eq!(play.roles(), [Role::User, Role::Assistant, Role::Guidance]);
    play.calls(&need("another file"), vec![call("c1", "search")]);
    play.ok("c1", "found");
    assert!(
        play.guidance().is_empty(),
        "a result follows, so nothing is added"
    );
}

#[test]
fn model_gets_its_own_text_back_verbatim() {
    let mut play = Play::asked(policy());
    let said = format!("Words.\n{}", need("more to read"));
    play.says(&said);
    assert_eq!(play.messages()[1].parts, [Part::text(&said)]);
    let visible = play.log.iter().any(|record| {
        let line = serde_json::to_string(record).unwrap();
        line.contains("\"text\":\"Words.\"")
    });
    assert!(visible, "people get the visible text");
}

#[test]
fn calls_take_precedence_over_signals() {
    for (name, signal) in [
        ("row 9: context_sufficient", done()),
        ("row 9: partial_answer", partial()),
        ("row 9: delegation_recommended", delegate("all of src")),
        ("row 9: none", String::new()),
    ] {
        let mut play = Play::asked(policy());
        play.uses(&format!("Words. {signal}"), call("c1", "search"), "found");
        assert_eq!(play.end(), None, "{name}: results must be read");
        assert_eq!(play.token().turn.0, 1, "{name}");
        assert_eq!(
            play.count("delegation.started"),
            0,
            "{name}: logged, not started"
        );
    }
}

#[test]
fn an_empty_reply_is_a_turn_without_a_signal() {
    let mut play = Play::asked(policy());
    let nothing = Reply {
        parts: Vec::new(),
        ..reply("", Vec::new())
    };
    play.replies(nothing);
    assert_eq!(play.end(), None);
    assert_eq!(
        play.session.query().unwrap().signals.turns_without_signal(),
        1
    );
}
