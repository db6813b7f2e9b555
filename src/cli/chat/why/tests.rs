//! Explanations of queries from all kinds of records.

use std::sync::Arc;

use super::*;
use crate::model::{
    Attempt, CallId, Fault, Limits, Message, NanoUsd, Outcome, QueryClassification, QueryId,
    QueryType, Role, Seq, Signal, SignalFields, StopReason, ToolCall, ToolResult, ToolStatus, Turn,
    Usage,
    access::By,
    command::Author,
    record::{
        Accepted, ApprovalFact, ApprovalRequested, CacheMiss, Classified, ControlFact,
        HeadComposed, HeadReason, MissCause, PromptSummary, QueryFinished, SessionFact,
        SupervisorFact,
    },
    record::{
        Act, AgentFact, AmountBudget, ApprovalAnswered, ApprovalVerdict, BudgetFact, CallStarted,
        Failed, FallbackAction, FallbackCause, FallbackTriggered, IterationWarning, LlmFact,
        LoopDetected, LoopKind, PrefixBroken, RefusedWhy, Replied, RestartCause, Restarted,
        Retried, SignalFact, SignalPresence, Steered, ToolFact, ToolFinished, ToolRefused,
        ToolRequested, TurnFact, TurnMode, TurnRestartCause, TurnRestarted, TurnStarted,
    },
    signal::NeedTurn,
};

/// Records one second apart, each of a turn.
fn entries(facts: Vec<(Option<u32>, Fact)>) -> Vec<Entry> {
    let entry = |(seq, (turn, fact)): (u64, (Option<u32>, Fact))| {
        let at = Timestamp::from_millis(1_000 * i64::try_from(seq).unwrap());
        let mut record = Record::new(at, Some(QueryId(3)), turn.map(Turn), fact);
        record.row = match &record.fact {
            Fact::Turn(TurnFact::Started(started)) if started.mode == TurnMode::Final => Some(8),
            Fact::Query(QueryFact::Finished(end)) if end.outcome == Outcome::Answered => Some(1),
            _ => None,
        };
        let (seq, record) = (Seq(seq), Arc::new(record));
        Entry { seq, record }
    };
    (1..).zip(facts).map(entry).collect()
}

fn accepted() -> Fact {
    let accepted = Accepted {
        text: "where is\nthe parser?".to_owned(),
        limits: Limits {
            max_turns: 5,
            max_tokens: Some(20_000),
            max_cost: Some(NanoUsd(1_500_000_000)),
        },
        idempotency_key: None,
        continues: Some(QueryId(2)),
        place: crate::model::record::InboxPosition::Back,
        by: By::default(),
        options: None,
    };
    QueryFact::Accepted(accepted).into()
}

fn classified() -> Fact {
    let keywords = ["where", "parser"].map(str::to_owned).into();
    let classified = Classified {
        classification: QueryClassification::new(QueryType::Code, 0.934, keywords),
        prompt: PromptSummary {
            hash: "0".repeat(64),
            segments_included: ["base", "signals", "tools", "code"]
                .map(str::to_owned)
                .into(),
            token_estimate: 1_843,
            warnings: vec!["the tool list was cut".to_owned()],
        },
        fallback: false,
        segment: None,
        formatted: false,
    };
    QueryFact::Classified(classified).into()
}

fn usage(sent: u64) -> Usage {
    Usage {
        input_tokens: sent,
        cached_tokens: 1_000,
        missed_tokens: 300,
        output_tokens: 50,
        reasoning_tokens: 20,
        cost: NanoUsd(2_000_000),
        ..Usage::default()
    }
}

fn head() -> Fact {
    let head = HeadComposed {
        reason: HeadReason::Tools,
        query_type: QueryType::Code,
        prompt: "0".repeat(64),
        instructions: None,
        tools: "1".repeat(64),
    };
    SessionFact::HeadComposed(head).into()
}

fn started(mode: TurnMode, guidance: &[&str]) -> Fact {
    let started = TurnStarted {
        attempt: Attempt(1),
        mode,
        model: "p/m".to_owned(),
        guidance: guidance.iter().map(|&text| text.to_owned()).collect(),
        token_estimate: None,
        unsignalled: false,
    };
    TurnFact::Started(started).into()
}

fn replied(signal: SignalPresence) -> Fact {
    let replied = Replied {
        attempt: Attempt(1),
        message: Arc::new(Message::text(Role::Assistant, "x")),
        text: "x".into(),
        signal,
        stop: StopReason::ToolCalls,
        usage: usage(1_900),
        estimated: signal == SignalPresence::Absent,
        cache_miss: (signal == SignalPresence::Absent).then_some(CacheMiss {
            cause: MissCause::Idle,
            idle_ms: 360_000,
        }),
        model: "p/m".to_owned(),
        cut: None,
        reports: 0,
    };
    TurnFact::Replied(replied).into()
}

fn call(id: &str, name: &str) -> Arc<ToolCall> {
    Arc::new(ToolCall {
        id: CallId::new(id),
        name: name.to_owned(),
        arguments: "{\"query\": \"parser\"}".to_owned(),
    })
}

fn requested(id: &str, name: &str) -> Fact {
    let call = call(id, name);
    ToolFact::Requested(ToolRequested { call }).into()
}

fn running(id: &str, name: &str) -> CallStarted {
    CallStarted {
        call: CallId::new(id),
        name: name.to_owned(),
    }
}

fn done(id: &str, name: &str, status: ToolStatus) -> Fact {
    let result = Arc::new(ToolResult::new(
        CallId::new(id),
        status,
        "what the model reads",
    ));
    let name = name.to_owned();
    ToolFact::Finished(ToolFinished { name, result }).into()
}

fn signal() -> Fact {
    let fields = SignalFields::NeedTurn(NeedTurn {
        reason: "have to read the file".to_owned(),
        expected_turns: None,
        extra: std::collections::BTreeMap::new(),
    });
    let signal = Signal {
        fields,
        confidence: 0.85,
        raw_xml: String::new(),
        timestamp: Timestamp::default(),
    };
    SignalFact::Emitted(Arc::new(signal)).into()
}

fn finished(outcome: Outcome) -> Fact {
    let finished = QueryFinished {
        outcome,
        answer: String::new(),
        turns: 2,
        usage: usage(3_800),
        cut: None,
        unverified: false,
    };
    QueryFact::Finished(finished).into()
}

fn render(facts: Vec<(Option<u32>, Fact)>) -> String {
    why(&entries(facts)).lines(80).join("\n")
}

#[test]
fn why_traces_a_query_from_acceptance_to_end() {
    let fallback = FallbackTriggered {
        cause: FallbackCause::LowConfidence,
        reason: "3 of 4 tool results failed".to_owned(),
        turns_without_signal: 1,
        last_signal_type: None,
        last_signal_confidence: None,
        action: FallbackAction::RetryWithHint,
        confidence: 0.6,
        hint: Some("try another tool than code_search".to_owned()),
        applied: true,
    };
    let (first, second) = (Some(0), Some(1));
    let facts = vec![
        (None, accepted()),
        (None, classified()),
        (None, head()),
        (first, started(TurnMode::Normal, &[])),
        (first, replied(SignalPresence::Valid)),
        (first, signal()),
        (first, requested("1", "code_search")),
        (first, requested("2", "file_read")),
        (first, ToolFact::Started(running("1", "code_search")).into()),
        (first, done("1", "code_search", ToolStatus::Ok)),
        (first, done("2", "file_read", ToolStatus::Failed)),
        (first, AgentFact::FallbackTriggered(fallback).into()),
        (
            second,
            started(
                TurnMode::Final,
                &["Please provide your final response now."],
            ),
        ),
        (second, replied(SignalPresence::Absent)),
        (second, finished(Outcome::Answered)),
    ];
    insta::assert_snapshot!("why_answered", render(facts));
}

#[test]
fn why_lists_failures_in_order() {
    let fault = || Fault::retryable("overloaded", "come back later");
    let retried = Retried {
        attempt: Attempt(1),
        model: "p/m".to_owned(),
        fault: fault(),
        not_before: Timestamp::default(),
        usage: Usage::default(),
    };
    let again = TurnRestarted {
        attempt: Attempt(2),
        model: "p/m".to_owned(),
        cause: TurnRestartCause::Recovery,
    };
    let restarted = Restarted {
        cause: RestartCause::ProcessDeath,
        count: 1,
        detail: "the process ended".to_owned(),
    };
    let failed = Failed {
        attempt: Attempt(2),
        model: "p/m".to_owned(),
        fault: fault(),
        usage: Usage::default(),
    };
    let broken = PrefixBroken {
        attempt: Attempt(2),
        model: "p/m".to_owned(),
        fault: Fault::permanent("thinking_refused", "the thinking has changed"),
        messages: 2,
    };
    let refused = ToolRefused {
        call: call("3", "shell"),
        why: RefusedWhy::UnknownTool,
        content: "there is no such tool".to_owned(),
    };
    let denied = ApprovalAnswered {
        call: CallId::new("4"),
        verdict: ApprovalVerdict::Denied,
        reason: None,
    };
    let steered = Steered {
        text: "look at the tests".to_owned(),
        author: Author::Operator,
        by: By::new("ann"),
        idempotency_key: None,
    };
    let warning = IterationWarning {
        turn: 4,
        max_turns: 5,
        percentage: 80.0,
        remaining: 1,
    };
    let found = LoopDetected {
        kind: LoopKind::Tool,
        detail: "shell".to_owned(),
    };
    let spent = AmountBudget {
        used: 20_001,
        limit: 20_000,
    };
    let first = Some(0);
    let facts = vec![
        (None, accepted()),
        (None, classified()),
        (first, started(TurnMode::Normal, &[])),
        (first, LlmFact::Retried(retried).into()),
        (first, SupervisorFact::Restarted(restarted).into()),
        (first, TurnFact::Restarted(again).into()),
        (first, replied(SignalPresence::Valid)),
        (first, ToolFact::Refused(refused).into()),
        (first, requested("4", "deploy")),
        (
            first,
            ApprovalFact::Requested(ApprovalRequested {
                call: CallId::new("4"),
                name: "deploy".into(),
                token: None,
            })
            .into(),
        ),
        (first, ApprovalFact::Answered(denied).into()),
        (first, done("4", "deploy", ToolStatus::Denied)),
        (first, ControlFact::Steered(steered).into()),
        (first, BudgetFact::IterationWarning(warning).into()),
        (first, BudgetFact::TokensExceeded(spent).into()),
        (first, AgentFact::LoopDetected(found).into()),
        (first, LlmFact::PrefixBroken(broken).into()),
        (first, LlmFact::Failed(failed).into()),
        (first, ControlFact::Cancelled(Act::from(By::local())).into()),
        (None, finished(Outcome::Cancelled)),
    ];
    insta::assert_snapshot!("why_trouble", render(facts));
}

#[test]
fn why_shows_unfinished_steps_as_open() {
    let first = Some(0);
    let facts = vec![
        (None, accepted()),
        (first, started(TurnMode::Normal, &[])),
        (first, replied(SignalPresence::Valid)),
        (first, requested("1", "code_search")),
        (first, requested("2", "file_read")),
        (first, ToolFact::Started(running("1", "code_search")).into()),
    ];
    let shown = render(facts);
    for row in [
        "  tool        code_search {\"query\": \"parser\"}: still running",
        "  tool        file_read {\"query\": \"parser\"}: not started yet",
        "ended         not yet",
    ] {
        assert!(shown.lines().any(|line| line == row), "{row}: {shown}");
    }
    assert_eq!(why(&[]).lines(80), Vec::<String>::new());
}

#[test]
fn all_templates_parse() {
    let environment = environment();
    for (kind, word, text) in templates() {
        for template in [word, text] {
            let parsed = environment.template_from_str(template);
            assert!(parsed.is_ok(), "{kind}: {parsed:?}");
        }
    }
}

#[test]
fn rows_fit_the_terminal() {
    let mut rows = Rows::default();
    let question = "where  is\nthe parser of the configuration file?";
    rows.push(0, "question 1", question);
    rows.push(1, "tool", "code_search: ok");
    let wide = [
        "question 1    where is the parser of the",
        "              configuration file?",
        "  tool        code_search: ok",
    ];
    let narrow = [
        "question 1",
        "  where is the",
        "  parser of the",
        "  configuration",
        "  file?",
        "  tool",
        "    code_search: ok",
    ];
    assert_eq!(rows.lines(50), wide);
    assert_eq!(rows.lines(20), narrow);
    assert_eq!(
        short(&"a".repeat(300), LONGEST).chars().count(),
        LONGEST + 1
    );
}
