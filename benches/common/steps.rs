//! A query in the kernel alone, up to the reply of one of its turns.

use std::sync::Arc;

use oracle_agent::{
    kernel::{
        CallToken, Command, Decision, DecisionContext, Effect, ModelChoice, Policy, Report, Session,
    },
    model::{
        CallId, Limits, Part, ProfileName, QueryClassification, QueryType, Reply, SessionKey,
        SessionName, StopReason, Submission, Timestamp, ToolApproval, ToolCall, ToolEffect,
        ToolNeed, ToolRepeat, ToolResult, ToolSpec, ToolStatus, ToolTrust, Usage,
        record::{Classified, Opened, PromptSummary},
    },
};

pub(crate) const NOW: DecisionContext =
    DecisionContext::at(Timestamp::from_millis(1_767_225_600_000));

pub(crate) fn apply(session: &mut Session, decision: Decision) -> Option<CallToken> {
    decision
        .records
        .iter()
        .for_each(|record| session.evolve(record));
    decision.effects.iter().find_map(|effect| {
        if let Effect::CallModel { token, .. } = effect {
            Some(*token)
        } else {
            None
        }
    })
}

fn search() -> ToolSpec {
    ToolSpec {
        name: "search".into(),
        description: "Searches.".into(),
        schema: serde_json::json!({"type": "object"}),
        serves: ToolNeed::Code,
        effect: ToolEffect::ReadOnly,
        repeat: ToolRepeat::Safe,
        approval: ToolApproval::NotNeeded,
        trust: ToolTrust::Trusted,
        is_rare: false,
    }
}

/// A short reply with a signal and these calls.
pub(crate) fn reply(turn: u32, calls: &[ToolCall]) -> Reply {
    let text = format!(
        "Found the backup API, now I check that it answers.\n<signal type=\"need_turn\">\
         <reason>Still have to check place number {turn}</reason>\
         <confidence>0.85</confidence></signal>"
    );
    let calls = calls.iter().cloned().map(Part::ToolCall);
    Reply {
        parts: std::iter::once(Part::text(text)).chain(calls).collect(),
        stop: StopReason::EndTurn,
        usage: Usage::default(),
        model: "p/one".into(),
    }
}

pub(crate) fn with_a_call(turn: u32, token: CallToken) -> Report {
    let call = ToolCall {
        id: CallId::new("c"),
        name: "search".into(),
        arguments: format!("{{\"query\":\"number {turn}\"}}"),
    };
    Report::ModelReplied {
        token,
        reply: reply(turn, &[call]),
    }
}

pub(crate) fn result(turn: u32, token: CallToken) -> Report {
    let result = ToolResult::new(
        CallId::new("c"),
        ToolStatus::Ok,
        format!("found in place number {turn}"),
    );
    Report::ToolEnded {
        query: token.query,
        turn: token.turn,
        result,
    }
}

/// A query that has completed `turns` turns, each with a tool call, and waits for the next reply.
pub(crate) fn session_at(turns: u32) -> Option<(Session, CallToken)> {
    let mut policy = Policy::new(vec![ModelChoice::new("p/one")], Arc::from([search()]));
    // High enough that no measured turn ends the query.
    policy.limits = Limits::turns(100);
    let mut session = Session::new(Arc::new(policy));
    let key = SessionKey::local(SessionName::new("bench").ok()?);
    let opened = Opened {
        key,
        profile: ProfileName::oracle(),
        parent: None,
        project: None,
    };
    let message = Command::Submit(Submission::new("Where is the backup API?"));
    let accepted = session.decide(message, NOW).ok()?;
    let opening = session.opening(opened, accepted, NOW);
    apply(&mut session, opening);
    let prompt = PromptSummary {
        hash: "00".into(),
        segments_included: Vec::new(),
        token_estimate: 2_000,
        warnings: Vec::new(),
    };
    let classification = QueryClassification::new(QueryType::Code, 0.9, Vec::new());
    let prepared = Report::Prepared {
        query: session.query()?.id,
        result: Ok(Classified {
            classification,
            prompt,
            fallback: false,
            segment: None,
            formatted: false,
        }),
    };
    let decision = session.observe(prepared, NOW);
    let mut token = apply(&mut session, decision)?;
    for turn in 0..turns {
        let decision = session.observe(with_a_call(turn, token), NOW);
        apply(&mut session, decision);
        let decision = session.observe(result(turn, token), NOW);
        token = apply(&mut session, decision)?;
    }
    Some((session, token))
}
