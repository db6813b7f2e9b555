//! The scripted model, its tools and its users.

use std::sync::Arc;

use oracle_agent::{
    kernel::{ModelChoice, OnMissingSignal, Policy},
    model::{
        Allowance, BudgetUnit, CallId, ImportedMessage, Limits, NanoUsd, Part, Period,
        PeriodBudget, Price, QueryType, Reply, Speaker, StopReason, Timestamp, ToolApproval,
        ToolCall, ToolEffect, ToolNeed, ToolRepeat, ToolSpec, ToolTrust, Usage,
        record::PromptSummary,
    },
};

/// More than twenty words, so that the fallback does not take it for a simple question.
pub(super) const QUESTION: &str = "Please find out in which of the many modules of this project \
    the retry policy of the outgoing calls is decided and how it can be changed by an operator";

/// A model that costs nothing, unless a reply says what it cost.
pub(super) fn free(name: &str) -> ModelChoice {
    ModelChoice {
        price: Some(Price::FREE),
        ..ModelChoice::new(name)
    }
}

/// The allowance of a tenant that has spent its budgets.
pub(super) fn nothing_left() -> Allowance {
    let budget = |unit| PeriodBudget {
        unit,
        limit: 1,
        used: 1,
        of_key: false,
        period: Period::Day,
        renewed: Timestamp::from_millis(0),
    };
    Allowance {
        tokens: Some(budget(BudgetUnit::Tokens)),
        cost: Some(budget(BudgetUnit::NanoUsd)),
    }
}

/// One model, four tools: two that are safe to repeat, one that is not, one that needs an approval.
pub(super) fn policy() -> Policy {
    let tools = Arc::from([
        tool("search", ToolRepeat::Safe, ToolApproval::NotNeeded),
        tool("read", ToolRepeat::Safe, ToolApproval::NotNeeded),
        tool("write", ToolRepeat::Unsafe, ToolApproval::NotNeeded),
        ToolSpec {
            schema: serde_json::json!({
                "type": "object",
                "properties": {"version": {"type": "string"}},
            }),
            ..tool("deploy", ToolRepeat::Unsafe, ToolApproval::Required)
        },
    ]);
    Policy {
        on_missing_signal: OnMissingSignal::Remind,
        ..Policy::new(vec![free("p/one")], tools)
    }
}

pub(super) fn turns(max_turns: u32) -> Policy {
    Policy {
        limits: Limits::turns(max_turns),
        ..policy()
    }
}

pub(super) fn tool(name: &str, repeat: ToolRepeat, approval: ToolApproval) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("Does {name}."),
        schema: serde_json::json!({"type": "object"}),
        serves: ToolNeed::Code,
        effect: ToolEffect::ReadOnly,
        repeat,
        approval,
        trust: ToolTrust::Trusted,
        is_rare: false,
    }
}

pub(super) fn signal(kind: &str, confidence: f64, fields: &str) -> String {
    format!("<signal type=\"{kind}\"><confidence>{confidence}</confidence>{fields}</signal>")
}

pub(super) fn need(reason: &str) -> String {
    signal("need_turn", 0.8, &format!("<reason>{reason}</reason>"))
}

pub(super) fn done() -> String {
    signal(
        "context_sufficient",
        0.8,
        "<sources_found>2</sources_found>",
    )
}

pub(super) fn partial() -> String {
    let fields = "<missing>the error paths</missing><caveat>read once</caveat>";
    signal("partial_answer", 0.8, fields)
}

pub(super) fn stuck(blocker: &str) -> String {
    let fields = format!(
        "<attempted>[\"grep for it\", \"read main\"]</attempted><blocker>{blocker}</blocker>\
         <suggestions>[\"ask the author\"]</suggestions>"
    );
    signal("stuck", 0.8, &fields)
}

pub(super) fn wants(capability: &str) -> String {
    let fields = format!("<capability>{capability}</capability><reason>to run tests</reason>");
    signal("need_capability", 0.8, &fields)
}

/// Delegates each of these scopes, without an estimate.
pub(super) fn delegate_all(scopes: &[&str]) -> String {
    let (first, further) = scopes.split_first().unwrap();
    let further = serde_json::to_string(further).unwrap();
    let fields = format!(
        "<reason>It is long</reason><scope>{first}</scope><further_scopes>{further}</further_scopes>"
    );
    signal("delegation_recommended", 0.8, &fields)
}

pub(super) fn delegate(scope: &str) -> String {
    let fields = format!(
        "<reason>a large part</reason><scope>{scope}</scope>\
         <estimated_tokens>4000</estimated_tokens>"
    );
    signal("delegation_recommended", 0.8, &fields)
}

/// The signal with a low confidence.
pub(super) fn weak(signal: &str) -> String {
    signal.replace("0.8", "0.2")
}

pub(super) fn call(id: &str, name: &str) -> ToolCall {
    call_with(id, name, "{}")
}

pub(super) fn call_with(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: CallId::new(id),
        name: name.into(),
        arguments: arguments.into(),
    }
}

pub(super) fn prompt(query_type: QueryType) -> PromptSummary {
    PromptSummary {
        hash: "00".into(),
        segments_included: vec!["base".into(), query_type.segment().into()],
        token_estimate: 100,
        warnings: Vec::new(),
    }
}

/// Two tools of the caller; the second has the name of none of the session's.
pub(super) fn client_tools() -> Arc<[ToolSpec]> {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}},
    });
    ["act", "move"]
        .map(|name| ToolSpec::new(name, "Does it at the caller's.", schema.clone()))
        .into()
}

/// A call of the caller's tool, and its result, that follow a question.
pub(super) fn exchanged() -> Vec<ImportedMessage> {
    let mut calls = ImportedMessage::new(Speaker::Assistant, "");
    calls.calls = vec![call("call_1", "act")];
    let mut result = ImportedMessage::new(Speaker::Tool, "done before");
    result.call = Some(CallId::new("call_1"));
    vec![calls, result]
}

pub(super) fn reply(text: &str, calls: Vec<ToolCall>) -> Reply {
    let text = (!text.is_empty()).then(|| Part::text(text));
    let stop = if calls.is_empty() {
        StopReason::EndTurn
    } else {
        StopReason::ToolCalls
    };
    let calls = calls.into_iter().map(Part::ToolCall);
    Reply {
        parts: text.into_iter().chain(calls).collect(),
        stop,
        usage: usage(90, 10, 1_000),
        model: "p/one".into(),
    }
}

/// A reply without a count of input tokens.
pub(super) fn uncounted(reply: Reply) -> Reply {
    Reply {
        usage: usage(0, 100, 1_000),
        ..reply
    }
}

pub(super) fn stopped(stop: StopReason, reply: Reply) -> Reply {
    Reply { stop, ..reply }
}

pub(super) fn usage(input_tokens: u64, output_tokens: u64, nano: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        cost: NanoUsd(nano),
        ..Usage::default()
    }
}
