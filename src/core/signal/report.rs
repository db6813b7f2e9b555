//! Signals by a tool, for models that write none in their text.

use std::{borrow::Cow, sync::LazyLock};

use serde_json::{Map, Value};

use super::{
    fields::Field,
    read::{Finding, typed},
};
use crate::model::{Timestamp, ToolCall, ToolSpec};

/// The tool [`ToolSpec::REPORT`].
pub fn report_tool() -> &'static ToolSpec {
    static TOOL: LazyLock<ToolSpec> = LazyLock::new(|| {
        let about = "Reports how the work stands, in place of the <signal> block at the end of a \
                     reply. Call it once in every reply, beside the text of the answer.";
        let schema = serde_json::from_str(include_str!("report.json")).unwrap_or_default();
        ToolSpec::new(ToolSpec::REPORT, about, schema).read_only()
    });
    &TOOL
}

/// Reads the arguments of a call of [`report_tool`] as the fields of a block.
pub fn read_report(call: &ToolCall, at: Timestamp) -> Finding {
    let arguments = match call.parsed() {
        Ok(Value::Object(arguments)) => arguments,
        _ => Map::new(),
    };
    let given = arguments.into_iter().filter(|(_, value)| !value.is_null());
    let given = given.map(|(name, value)| match value {
        Value::String(text) => (name, text.trim().to_owned()),
        other => (name, other.to_string()),
    });
    let (kind, given): (Vec<_>, Vec<_>) = given.partition(|(name, _)| name == "type");
    let kind = kind.iter().map(|(_, kind)| format!(" type=\"{kind}\""));
    let opening = format!("<signal{}>", kind.collect::<String>());
    let field = |(name, text): &(String, String)| format!("<{name}>{text}</{name}>\n");
    let fields: String = given.iter().map(field).collect();
    let raw_xml = format!("{opening}\n{fields}</signal>");
    let elements = given.iter().map(|(name, text)| Field {
        name: Cow::Borrowed(name),
        text,
    });
    typed(elements.collect(), &opening, raw_xml, at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        model::{CallId, SignalFields, SignalType, signal::DelegationRecommended},
        signal::read,
    };

    fn report(arguments: &Value) -> Finding {
        let call = ToolCall {
            id: CallId::new("c"),
            name: ToolSpec::REPORT.into(),
            arguments: arguments.to_string(),
        };
        read_report(&call, Timestamp::from_millis(1))
    }

    #[test]
    fn a_report_is_the_signal_of_a_block_with_the_same_fields() {
        for arguments in [
            json!({"type": "need_turn", "reason": " More to read ", "confidence": 0.4, "expected_turns": 2}),
            json!({"type": "need_turn", "reason": "More to read", "expected_turns": null}),
            json!({"type": "context_sufficient", "sources_found": "3", "source_types": ["code"]}),
            json!({"type": "context_sufficient", "sources_found": 2.0, "confidence": 7}),
            json!({"type": "stuck", "attempted": ["grep"], "blocker": "No index", "suggestions": []}),
            json!({"type": "need_capability", "capability": "a shell", "reason": "To run it", "workaround": ""}),
            json!({"type": "partial_answer", "missing": "The errors", "note": "<b>"}),
            json!({"type": "delegation_recommended", "reason": "It is long", "scope": "All of src",
                   "further_scopes": ["All of docs"], "estimated_tokens": 500}),
            // Rejections.
            json!({"type": "done"}),
            json!({"reason": "More to read"}),
            json!({"type": "need_turn", "reason": "no"}),
            json!({"type": "need_turn", "reason": "More to read", "expected_turns": 11}),
            json!({"type": "stuck", "attempted": [], "blocker": "No index"}),
            json!({"type": "context_sufficient", "sources_found": 1, "source_types": [1]}),
        ] {
            let found = report(&arguments);
            let xml = match &found {
                Finding::Signal(signal) => &signal.raw_xml,
                Finding::Rejection(rejection) => &rejection.raw_xml,
                Finding::Nothing => panic!("{arguments}"),
            };
            assert_eq!(
                read(xml, Timestamp::from_millis(1)).finding,
                found,
                "{arguments}"
            );
        }
    }

    #[test]
    fn arguments_that_are_no_object_are_a_rejection() {
        let found = report(&json!("stuck"));
        let rejection = found.rejection().unwrap();
        assert!(rejection.reason.starts_with("the signal has no `type`"));
        assert!(!rejection.is_of_call());
    }

    #[test]
    fn every_field_of_the_six_types_is_a_parameter() {
        let all = json!({
            "confidence": 0.9, "reason": "More to read", "expected_turns": 1, "sources_found": 1,
            "source_types": ["code"], "attempted": ["grep"], "blocker": "No index",
            "suggestions": ["ask"], "capability": "a shell", "workaround": "none",
            "missing": "The errors", "caveat": "not run", "scope": "All of src",
            "further_scopes": ["All of docs"], "estimated_tokens": 500, "subagent_type": "reader",
        });
        let given = all.as_object().unwrap();
        let parameters = report_tool().schema["properties"].as_object().unwrap();
        let named = |name: &&String| **name != "type";
        assert!(
            parameters.keys().filter(named).eq(given.keys()),
            "{parameters:?}"
        );
        let types = &report_tool().schema["properties"]["type"]["enum"];
        assert_eq!(*types, json!(SignalType::ALL.map(SignalType::as_str)));
        for kind in SignalType::ALL {
            let mut arguments = all.clone();
            arguments["type"] = kind.as_str().into();
            let Finding::Signal(signal) = report(&arguments) else {
                panic!("{kind}");
            };
            assert_eq!(signal.kind(), kind);
            if let SignalFields::DelegationRecommended(wish) = signal.fields {
                let DelegationRecommended {
                    further_scopes,
                    subagent_type,
                    ..
                } = wish;
                assert!(further_scopes.is_some() && subagent_type.is_some());
            }
        }
    }
}
