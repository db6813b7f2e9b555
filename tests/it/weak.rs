//! Replies of models that break the protocol, and the answer that `auto` (row 18) gives.

use serde_json::json;

/// A model's replies, turn by turn, and the expected answer.
pub(crate) struct Row {
    pub name: &'static str,
    /// One reply per request.
    pub replies: &'static [&'static str],
    pub calls: bool,
    /// The answer; `None` if there is nothing to answer with.
    pub answer: Option<&'static str>,
    /// The streamed text, if it is more than the answer.
    pub streamed: Option<&'static str>,
}

/// A question that is no small talk, in one word, for tests in a terminal.
pub(crate) const QUESTION: &str = "where-is-the-parser-implemented?";

const fn row(name: &'static str, replies: &'static [&'static str], answer: &'static str) -> Row {
    Row {
        name,
        replies,
        calls: false,
        answer: Some(answer),
        streamed: None,
    }
}

const fn and_call(mut row: Row) -> Row {
    row.calls = true;
    row
}

const fn streams(mut row: Row, streamed: &'static str) -> Row {
    row.streamed = Some(streamed);
    row
}

const SIGNAL: &str =
    "<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>";

pub(crate) const ROWS: &[Row] = &[
    row(
        "no signal at all",
        &["It is in a.rs.", ""],
        "It is in a.rs.",
    ),
    row(
        "the same text again",
        &["It is in a.rs.", "It is in a.rs."],
        "It is in a.rs.",
    ),
    row(
        "another text when asked for the signal",
        &["It is in a.rs.", "Is there anything else?"],
        "It is in a.rs.",
    ),
    row(
        "the signal when asked for it",
        &["It is in a.rs.", SIGNAL],
        "It is in a.rs.",
    ),
    row(
        "the text once more, with the signal",
        &[
            "It is in a.rs.",
            "It is in a.rs.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>",
        ],
        "It is in a.rs.",
    ),
    row(
        "a fenced signal",
        &[
            "It is in a.rs.\n```xml\n<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>\n```",
        ],
        "It is in a.rs.",
    ),
    row(
        "a misspelt type",
        &[
            "It is in a.rs.\n<signal type=\"context_suficient\"><sources_found>1</sources_found></signal>",
            "",
        ],
        "It is in a.rs.",
    ),
    row(
        "a missing field",
        &[
            "It is in a.rs.\n<signal type=\"context_sufficient\"></signal>",
            "",
        ],
        "It is in a.rs.",
    ),
    row(
        "a near miss: another tag",
        &[
            "It is in a.rs.\n<signals type=\"context_sufficient\"><sources_found>1</sources_found></signals>",
            "",
        ],
        "It is in a.rs.",
    ),
    row(
        "a near miss: no quotes",
        &[
            "It is in a.rs.\n<signal type=context_sufficient><sources_found>1</sources_found></signal>",
            "",
        ],
        "It is in a.rs.",
    ),
    row(
        "a near miss: self-closed",
        &["It is in a.rs.\n<signal type=\"context_sufficient\"/>", ""],
        "It is in a.rs.",
    ),
    row(
        "a translated signal",
        &[
            "It is in a.rs.\n<señal tipo=\"contexto_suficiente\"></señal>",
            "",
        ],
        "It is in a.rs.\n<señal tipo=\"contexto_suficiente\"></señal>",
    ),
    row(
        "a signal as JSON",
        &["It is in a.rs.\n{\"signal\": \"context_sufficient\"}", ""],
        "It is in a.rs.\n{\"signal\": \"context_sufficient\"}",
    ),
    row(
        "a signal in its thoughts",
        &[
            "<think>Done? <signal type=\"stuck\"><attempted>[\"all\"]</attempted><blocker>nothing</blocker></signal></think>\nIt is in a.rs.",
            "",
        ],
        "It is in a.rs.",
    ),
    row(
        "a signal after its thoughts",
        &[
            "<think>It may be in b.rs.</think>\nIt is in a.rs.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>",
        ],
        "It is in a.rs.",
    ),
    row(
        "thoughts when asked for the signal",
        &["It is in a.rs.", "<think>What signal?</think>"],
        "It is in a.rs.",
    ),
    row(
        "a question back",
        &["Which parser do you mean?", ""],
        "Which parser do you mean?",
    ),
    row(
        "no text at first",
        &[
            "",
            "It is in a.rs.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>",
        ],
        "It is in a.rs.",
    ),
    Row {
        name: "no text at all",
        replies: &["", ""],
        calls: false,
        answer: None,
        streamed: None,
    },
    streams(
        and_call(row(
            "text and a call",
            &["Looking.", "It is in a.rs.", ""],
            "It is in a.rs.",
        )),
        "Looking.\n\nIt is in a.rs.",
    ),
    and_call(row(
        "a call without text",
        &["", "It is in a.rs.", ""],
        "It is in a.rs.",
    )),
    streams(
        row(
            "a signal that asks for another turn",
            &[
                "Reading on.",
                "<signal type=\"need_turn\"><reason>half is unread</reason></signal>",
                "It is in a.rs.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found></signal>",
            ],
            "It is in a.rs.",
        ),
        "Reading on.\n\nIt is in a.rs.",
    ),
];

pub(crate) fn script(row: &Row) -> String {
    let turns = row.replies.iter().enumerate().map(|(turn, reply)| {
        let calls = match row.calls && turn == 0 {
            true => json!([{ "name": "code_search", "arguments": { "query": "parser" } }]),
            false => json!([]),
        };
        json!({ "reply": reply, "tool_calls": calls })
    });
    json!({ "turns": turns.collect::<Vec<_>>() }).to_string()
}
