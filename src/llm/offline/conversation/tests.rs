//! Conversations as the kernel builds them, and what of them is the query at hand.

use std::sync::Arc;

use super::*;
use crate::{
    llm::offline::protocol::{Percent, Stand, signal},
    model::{CallId, Part, message::SUMMARY_LABEL},
};

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn guidance() -> Message {
    Message::text(Role::Guidance, "Try something else.")
}

fn done() -> Message {
    let stand = Stand::Sufficient {
        sources_found: 1,
        source_types: vec![],
    };
    Message::text(
        Role::Assistant,
        format!("Here.\n\n{}", signal(&stand, Percent(80))),
    )
}

fn another_turn() -> Message {
    let stand = Stand::NeedTurn {
        reason: "more to read".to_owned(),
    };
    Message::text(
        Role::Assistant,
        format!("Wait.\n\n{}", signal(&stand, Percent(80))),
    )
}

fn stuck() -> Message {
    let (attempted, blocker) = (vec!["a".to_owned()], "nothing found".to_owned());
    let stand = Stand::Stuck {
        attempted,
        blocker,
        suggestions: vec![],
    };
    Message::text(Role::Assistant, signal(&stand, Percent(80)))
}

fn call(id: &str) -> Message {
    let (id, name) = (CallId::new(id), "code_search".to_owned());
    let call = ToolCall {
        id,
        name,
        arguments: "{}".to_owned(),
    };
    Message {
        role: Role::Assistant,
        parts: vec![Part::text("Looking."), Part::ToolCall(call)],
    }
}

fn result(id: &str, status: ToolStatus) -> Message {
    let result = ToolResult {
        call: CallId::new(id),
        status,
        content: format!("of {id}"),
    };
    Message {
        role: Role::Tool,
        parts: vec![Part::ToolResult(result)],
    }
}

fn ended(id: &str, status: ToolStatus, content: &str) -> Message {
    let mut message = result(id, status);
    if let Some(Part::ToolResult(result)) = message.parts.first_mut() {
        result.content = content.to_owned();
    }
    message
}

fn cancelled(id: &str) -> Message {
    ended(id, ToolStatus::Unknown, "cancelled, outcome unknown")
}

fn withdrawn(id: &str) -> Message {
    let said = "The query ended before this call was run.";
    ended(id, ToolStatus::Refused, said)
}

fn summary() -> Message {
    Message::text(Role::User, format!("{SUMMARY_LABEL} much was said."))
}

fn ok(id: &str) -> Message {
    result(id, ToolStatus::Ok)
}

fn shared(messages: Vec<Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}

#[test]
fn the_question_is_found_behind_what_came_before() {
    for (name, messages, question, added, previous) in [
        ("the first", vec![user("q1")], "q1", vec![], None),
        (
            "behind one that was taken back before any reply",
            vec![user("q1"), user("q2")],
            "q2",
            vec![],
            Some("q1"),
        ),
        (
            "behind an answer",
            vec![user("q1"), done(), user("q2")],
            "q2",
            vec![],
            Some("q1"),
        ),
        (
            "behind a dead end",
            vec![user("q1"), stuck(), user("q2")],
            "q2",
            vec![],
            Some("q1"),
        ),
        (
            "with results",
            vec![user("q1"), done(), user("q2"), call("c"), ok("c")],
            "q2",
            vec![],
            Some("q1"),
        ),
        (
            "steered behind results",
            vec![user("q1"), call("c"), ok("c"), user("more")],
            "q1",
            vec!["more"],
            None,
        ),
        (
            "steered behind a turn without calls",
            vec![user("q1"), another_turn(), user("more")],
            "q1",
            vec!["more"],
            None,
        ),
        (
            "steered behind guidance",
            vec![user("q1"), stuck(), guidance(), user("more")],
            "q1",
            vec!["more"],
            None,
        ),
        (
            "behind two that were taken back",
            vec![user("q1"), done(), user("q2"), user("q3"), user("q4")],
            "q4",
            vec![],
            Some("q3"),
        ),
        (
            "behind a cancelled query",
            vec![user("q1"), call("c"), cancelled("c"), user("q2")],
            "q2",
            vec![],
            Some("q1"),
        ),
        (
            "behind a query that was taken back before its call was run",
            vec![user("q1"), call("c"), withdrawn("c"), user("q2")],
            "q2",
            vec![],
            Some("q1"),
        ),
        (
            "steered behind a call that cannot be made",
            vec![
                user("q1"),
                call("c"),
                result("c", ToolStatus::Refused),
                user("more"),
            ],
            "q1",
            vec!["more"],
            None,
        ),
        (
            "steered behind a restart",
            vec![
                user("q1"),
                call("c"),
                result("c", ToolStatus::Unknown),
                user("more"),
            ],
            "q1",
            vec!["more"],
            None,
        ),
        (
            "steered twice",
            vec![user("q1"), call("c"), ok("c"), user("m1"), user("m2")],
            "q1",
            vec!["m1", "m2"],
            None,
        ),
        (
            "steered behind a summary of its turns",
            vec![user("q1"), summary(), user("more")],
            "q1",
            vec!["more"],
            None,
        ),
        (
            "behind a summary of all before",
            vec![summary(), user("q1"), call("c"), ok("c")],
            "q1",
            vec![],
            None,
        ),
        ("none at all", vec![guidance()], "", vec![], None),
    ] {
        let messages = shared(messages);
        let got = Conversation::read(&messages);
        let got = (got.question.as_str(), got.added, got.previous.as_deref());
        assert_eq!(got, (question, added, previous), "{name}");
    }
}

#[test]
fn what_goes_on_about_it_is_no_ground_for_what_follows() {
    let first = "where is request_seen defined?";
    for (name, said, previous) in [
        ("one step", vec![first, "who calls it?"], Some(first)),
        (
            "two steps",
            vec![first, "and where is it tested?", "who calls it?"],
            Some(first),
        ),
        (
            "thanks between",
            vec![first, "thanks!", "repeat that", "who calls it?"],
            Some(first),
        ),
        (
            "in German",
            vec![first, "und wo wird es getestet?", "und wer ruft es auf?"],
            Some(first),
        ),
        (
            "in German, of that",
            vec![first, "Und wo ist das getestet?", "who calls it?"],
            Some(first),
        ),
        (
            "its tests",
            vec![first, "what about the tests?", "who calls it?"],
            Some(first),
        ),
        (
            "in French and Spanish",
            vec![
                first,
                "et qui l'appelle ?",
                "¿y dónde se prueba?",
                "and it?",
            ],
            Some(first),
        ),
        (
            "another subject",
            vec![
                first,
                "how does the cache drop what is in it?",
                "who calls it?",
            ],
            Some("how does the cache drop what is in it?"),
        ),
        (
            "nothing before",
            vec!["where is it tested?", "who calls it?"],
            None,
        ),
    ] {
        let said = said.into_iter().flat_map(|text| [user(text), done()]);
        let mut messages: Vec<Message> = said.collect();
        messages.pop();
        let messages = shared(messages);
        let got = Conversation::read(&messages);
        assert_eq!(got.previous.as_deref(), previous, "{name}");
    }
}

#[test]
fn calls_are_those_of_this_query_with_their_results() {
    let messages = shared(vec![
        user("q1"),
        call("offline_1"),
        ok("offline_1"),
        done(),
        user("q2"),
        call("offline_2"),
        ok("offline_2"),
        call("offline_7"),
        result("offline_7", ToolStatus::Denied),
        call("lost"),
    ]);
    let got = Conversation::read(&messages);
    let asked: Vec<_> = got
        .asked
        .iter()
        .map(|a| (&*a.call.id.0, a.worked(), a.shut()))
        .collect();
    let expected = vec![
        ("offline_2", true, false),
        ("offline_7", false, true),
        ("lost", false, false),
    ];
    assert_eq!(asked, expected);
    let readable: Vec<&str> = got.readable().map(|(_, content)| content).collect();
    assert_eq!((got.rounds, readable), (3, vec!["of offline_2"]));
    assert_eq!([got.call_id(0), got.call_id(1)], ["offline_8", "offline_9"]);
}

#[test]
fn one_other_strategy_is_due_after_a_dead_end() {
    for (name, messages, standing) in [
        ("a question", vec![user("q")], Standing::Going),
        ("work", vec![user("q"), call("c"), ok("c")], Standing::Going),
        (
            "given up",
            vec![user("q"), stuck(), guidance()],
            Standing::Urged,
        ),
        (
            "tried",
            vec![user("q"), stuck(), guidance(), call("c"), ok("c")],
            Standing::Retried,
        ),
        (
            "given up twice",
            vec![user("q"), stuck(), guidance(), stuck(), guidance()],
            Standing::Retried,
        ),
        (
            "in the query before",
            vec![user("q"), stuck(), user("q2")],
            Standing::Going,
        ),
    ] {
        assert_eq!(
            Conversation::read(&shared(messages)).standing,
            standing,
            "{name}"
        );
    }
}
