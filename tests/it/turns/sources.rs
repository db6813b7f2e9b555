//! Answers that count sources.

use oracle_agent::model::{QueryType, ToolStatus};

use super::{play::Play, script::*};

#[test]
fn sources_without_evidence_are_unverified() {
    let sources = |count: u32| {
        let fields = format!("<sources_found>{count}</sources_found>");
        signal("context_sufficient", 0.9, &fields)
    };
    for (name, kind, work, text, unverified) in [
        ("code", QueryType::Code, None, sources(1), true),
        ("notes", QueryType::Documentation, None, sources(3), true),
        (
            "no sources counted",
            QueryType::Code,
            None,
            sources(0),
            false,
        ),
        (
            "small talk",
            QueryType::Conversational,
            None,
            sources(1),
            false,
        ),
        ("a partial answer", QueryType::Code, None, partial(), false),
        (
            "a search",
            QueryType::Code,
            Some(ToolStatus::Ok),
            sources(1),
            false,
        ),
        (
            "a search that failed",
            QueryType::Code,
            Some(ToolStatus::Failed),
            sources(1),
            true,
        ),
    ] {
        let mut play = Play::new(policy());
        play.ask_as(kind, QUESTION);
        if let Some(status) = work {
            play.calls("", vec![call("c", "search")]);
            play.ends("c", status, "a.rs:1");
        }
        play.says(&format!("In a.rs. {text}"));
        assert_eq!(play.finished().unverified, unverified, "{name}");
    }
}
