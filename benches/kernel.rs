//! One step of a session without I/O: the kernel observes a reply and evolves by its records.

use std::sync::Arc;

use divan::{Bencher, black_box};
use oracle_agent::{
    kernel::{
        CallToken, Command, Decision, DecisionContext, Effect, ModelChoice, Policy, Report, Session,
    },
    model::{
        CallId, Limits, Part, ProfileName, QueryClassification, QueryType, Reply, SessionKey,
        SessionName, StopReason, Submission, Timestamp, ToolApproval, ToolCall, ToolEffect,
        ToolNeed, ToolRepeat, ToolResult, ToolSpec, ToolStatus, ToolTrust, Usage,
        record::{Opened, PromptSummary},
    },
};

fn main() {
    divan::main();
}

/// Completed turns at which a step is measured.
const TURNS: [u32; 2] = [5, 29];

const NOW: DecisionContext = DecisionContext::at(Timestamp::from_millis(1_767_225_600_000));

fn apply(session: &mut Session, decision: Decision) -> Option<CallToken> {
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
    }
}

/// A short reply with a signal and these calls.
fn reply(turn: u32, calls: &[ToolCall]) -> Reply {
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

fn with_a_call(turn: u32, token: CallToken) -> Report {
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

fn result(turn: u32, token: CallToken) -> Report {
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
fn session_at(turns: u32) -> Option<(Session, CallToken)> {
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
        result: Ok((classification, prompt)),
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

fn step(bencher: Bencher<'_, '_>, before: impl Fn() -> Option<(Session, Report)> + Sync) {
    bencher.with_inputs(before).bench_values(|input| {
        input.map(|(mut session, report)| {
            let decision = session.observe(black_box(report), NOW);
            let next = apply(&mut session, decision);
            (session, next)
        })
    });
}

#[divan::bench(args = TURNS, sample_count = 1_000)]
fn observe_and_evolve(bencher: Bencher<'_, '_>, turns: u32) {
    step(bencher, || {
        let (session, token) = session_at(turns)?;
        let reply = reply(turns, &[]);
        Some((session, Report::ModelReplied { token, reply }))
    });
}

#[divan::bench(args = TURNS, sample_count = 1_000)]
fn observe_and_evolve_a_call(bencher: Bencher<'_, '_>, turns: u32) {
    step(bencher, || {
        let (session, token) = session_at(turns)?;
        Some((session, with_a_call(turns, token)))
    });
}

#[divan::bench(args = TURNS, sample_count = 1_000)]
fn observe_and_evolve_a_result(bencher: Bencher<'_, '_>, turns: u32) {
    step(bencher, || {
        let (mut session, token) = session_at(turns)?;
        let decision = session.observe(with_a_call(turns, token), NOW);
        apply(&mut session, decision);
        Some((session, result(turns, token)))
    });
}

/// Evolution by the records of a step, as in a replay.
#[divan::bench(args = TURNS, sample_count = 1_000)]
fn evolve(bencher: Bencher<'_, '_>, turns: u32) {
    bencher
        .with_inputs(|| {
            session_at(turns).map(|(session, token)| {
                let reply = reply(turns, &[]);
                let decision = session.observe(Report::ModelReplied { token, reply }, NOW);
                (session, decision)
            })
        })
        .bench_values(|input| {
            input.map(|(mut session, decision)| {
                let next = apply(&mut session, black_box(decision));
                (session, next)
            })
        });
}

/// The decision alone, repeated on one session.
#[divan::bench(args = TURNS)]
fn observe(bencher: Bencher<'_, '_>, turns: u32) {
    let waiting = session_at(turns);
    bencher
        .with_inputs(|| reply(turns, &[]))
        .bench_values(|reply| {
            waiting.as_ref().map(|(session, token)| {
                let token = *token;
                session.observe(Report::ModelReplied { token, reply }, NOW)
            })
        });
}

#[divan::bench]
fn read_the_signal(bencher: Bencher<'_, '_>) {
    let reply = reply(5, &[]);
    let text: String = reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    bencher.bench(|| oracle_agent::signal::read(black_box(&text), NOW.at));
}
