//! One whole reply for each of the six types.

use oracle_agent::{
    model::{
        Signal, SignalFields,
        signal::{
            ContextSufficient, DelegationRecommended, Extra, NeedCapability, NeedTurn,
            PartialAnswer, SignalClass, Stuck,
        },
    },
    signal::{Finding, Reading, read},
};

use super::{NOW, reply, strings};

#[test]
fn all_six_signal_types_are_parsed() {
    let rows = [
        (
            "need_turn",
            SignalClass::Continuation,
            0.85,
            vec![
                "<reason>Found backup API, need to test if it responds correctly</reason>",
                "<confidence>0.85</confidence>",
                "<expected_turns>1</expected_turns>",
            ],
            SignalFields::NeedTurn(NeedTurn {
                reason: "Found backup API, need to test if it responds correctly".to_owned(),
                expected_turns: Some(1),
                extra: Extra::new(),
            }),
        ),
        (
            "context_sufficient",
            SignalClass::Terminal,
            0.9,
            vec![
                "<sources_found>3</sources_found>",
                "<source_types>[\"code\", \"docs\"]</source_types>",
                "<confidence>0.9</confidence>",
            ],
            SignalFields::ContextSufficient(ContextSufficient {
                sources_found: 3,
                source_types: Some(strings(&["code", "docs"])),
                extra: Extra::new(),
            }),
        ),
        (
            "stuck",
            SignalClass::Terminal,
            0.7,
            vec![
                "<attempted>[\"vault_search\", \"thread_seek\", \"code_search\"]</attempted>",
                "<blocker>No deployment logs or history found in any source</blocker>",
                "<suggestions>[\"check external CI/CD system\", \"ask team member\"]</suggestions>",
                "<confidence>0.7</confidence>",
            ],
            SignalFields::Stuck(Stuck {
                attempted: strings(&["vault_search", "thread_seek", "code_search"]),
                blocker: "No deployment logs or history found in any source".to_owned(),
                suggestions: Some(strings(&["check external CI/CD system", "ask team member"])),
                extra: Extra::new(),
            }),
        ),
        (
            "need_capability",
            SignalClass::Continuation,
            0.8,
            vec![
                "<capability>execute_shell_command</capability>",
                "<reason>Need to run pytest to verify the fix works</reason>",
                "<workaround>You can run the command manually: pytest tests/unit/</workaround>",
                "<confidence>0.8</confidence>",
            ],
            SignalFields::NeedCapability(NeedCapability {
                capability: "execute_shell_command".to_owned(),
                reason: "Need to run pytest to verify the fix works".to_owned(),
                workaround: Some("You can run the command manually: pytest tests/unit/".to_owned()),
                extra: Extra::new(),
            }),
        ),
        (
            "partial_answer",
            SignalClass::Terminal,
            0.6,
            vec![
                "<missing>Could not verify production configuration</missing>",
                "<caveat>This is based on development settings only</caveat>",
                "<confidence>0.6</confidence>",
            ],
            SignalFields::PartialAnswer(PartialAnswer {
                missing: "Could not verify production configuration".to_owned(),
                caveat: Some("This is based on development settings only".to_owned()),
                extra: Extra::new(),
            }),
        ),
        (
            "delegation_recommended",
            SignalClass::Continuation,
            0.9,
            vec![
                "<reason>Need to trace auth flow across 23 files</reason>",
                "<scope>Map all authentication code paths and dependencies</scope>",
                "<estimated_tokens>15000</estimated_tokens>",
                "<subagent_type>research</subagent_type>",
                "<confidence>0.9</confidence>",
            ],
            SignalFields::DelegationRecommended(DelegationRecommended {
                reason: "Need to trace auth flow across 23 files".to_owned(),
                scope: "Map all authentication code paths and dependencies".to_owned(),
                further_scopes: None,
                estimated_tokens: Some(15_000),
                subagent_type: Some("research".to_owned()),
                extra: Extra::new(),
            }),
        ),
    ];
    for (kind, class, confidence, elements, fields) in rows {
        let (reply, raw_xml) = reply("What was found so far.", kind, &elements);
        let expected = Signal {
            fields,
            confidence,
            raw_xml,
            timestamp: NOW,
        };
        assert_eq!(
            read(&reply, NOW),
            Reading {
                finding: Finding::Signal(expected.clone()),
                text: "What was found so far.".to_owned()
            },
            "{kind}"
        );
        assert_eq!(
            (expected.kind().as_str(), expected.kind().class()),
            (kind, class)
        );
    }
}
