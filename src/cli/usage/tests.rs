//! Sums and their presentation.

use std::sync::Arc;

use super::*;
use crate::{
    cli::terminal::{Device, Recording, Style},
    model::{
        Attempt, Fault, Message, NanoUsd, Outcome, QueryId, Role, SessionKey, SessionName,
        StopReason, Timestamp, Turn,
        record::{
            AgentFact, ChildEnd, Compacted, CompactedPart, Failed, FailedOver, MessageRange,
            ModelUsage, Replied, SignalPresence,
        },
    },
};
use oracle_journal::{Append, Memory, SessionStatus};

const DAY: i64 = 86_400_000;
const START: i64 = 1_767_225_600_000;

fn usage_of(input_tokens: u64, output_tokens: u64, nano: u64) -> Usage {
    Usage {
        input_tokens,
        cached_tokens: input_tokens / 10,
        cacheable_tokens: input_tokens / 10 * 2,
        missed_tokens: input_tokens / 10,
        output_tokens,
        cost: NanoUsd(nano),
        unpriced: nano == 0 && output_tokens > 0,
        ..Usage::default()
    }
}

fn record(day: i64, fact: impl Into<Fact>) -> Arc<Record> {
    let at = Timestamp::from_millis(START + day * DAY);
    Arc::new(Record::new(at, Some(QueryId(1)), Some(Turn(0)), fact))
}

fn replied(day: i64, model: &str, usage: Usage) -> Arc<Record> {
    let fact = TurnFact::Replied(Replied {
        attempt: Attempt(1),
        message: Arc::new(Message::text(Role::Assistant, "So.")),
        text: "So.".into(),
        signal: SignalPresence::Absent,
        stop: StopReason::EndTurn,
        usage,
        estimated: false,
        cache_miss: None,
        model: model.into(),
        cut: None,
        reports: 0,
    });
    record(day, fact)
}

async fn keep(journal: &Memory, name: &str, records: Vec<Arc<Record>>) {
    keep_for("default", journal, name, records).await;
}

async fn keep_for(tenant: &str, journal: &Memory, name: &str, records: Vec<Arc<Record>>) {
    let key = SessionKey {
        tenant: tenant.parse().unwrap(),
        name: SessionName::new(name).unwrap(),
    };
    let claim = journal.claim(key).await.unwrap();
    let append = Append {
        sid: claim.sid,
        epoch: claim.epoch,
        after: claim.last,
        records,
        leaves: SessionStatus::Idle,
        charges: Vec::new(),
    };
    journal.append(append).await.unwrap();
}

/// Two sessions and a sub-agent over two days, with two models.
async fn kept() -> Memory {
    let journal = Memory::new();
    let compacted = BudgetFact::ContextCompacted(Compacted {
        number: 1,
        attempt: Attempt(1),
        model: "p/one".into(),
        part: CompactedPart::History,
        messages: MessageRange { from: 0, to: 2 },
        summary: "Short.".into(),
        cut: None,
        usage: usage_of(500, 50, 5_000),
        before: 900,
        after: 100,
    });
    let failed = LlmFact::FailedOver(FailedOver {
        attempt: Attempt(1),
        fault: Fault::permanent("content_filter", "no"),
        from: "p/one".into(),
        to: "p/two".into(),
        usage: usage_of(10, 0, 0),
    });
    let child = AgentFact::DelegationFinished(ChildEnd {
        child: "a.1.1".parse().unwrap(),
        outcome: Outcome::Answered,
        answer: "Left.".into(),
        usage: usage_of(70, 7, 700),
    });
    let records = vec![
        replied(0, "p/one", usage_of(1_000, 100, 2_000_000)),
        record(0, child),
        record(1, compacted),
        record(1, failed),
        replied(1, "p/two", usage_of(200, 20, 0)),
    ];
    keep(&journal, "a", records).await;
    keep(
        &journal,
        "a.1.1",
        vec![replied(0, "p/one", usage_of(70, 7, 700))],
    )
    .await;
    // More than one page.
    let many = (0..600).map(|_| replied(1, "p/two", usage_of(1, 1, 0)));
    keep(&journal, "b", many.collect()).await;
    keep(&journal, "c", vec![record(0, TurnFact::Started(started()))]).await;
    journal
}

fn started() -> crate::model::record::TurnStarted {
    crate::model::record::TurnStarted {
        attempt: Attempt(1),
        mode: crate::model::record::TurnMode::Normal,
        model: "p/one".into(),
        guidance: Vec::new(),
        token_estimate: None,
        unsignalled: false,
    }
}

async fn print_usage(by: By, json: bool, device: Device) -> String {
    let (mut terminal, recording) = Recording::terminal("", device);
    terminal.json = json;
    let journal = kept().await;
    usage(&journal, by, &mut terminal).await.unwrap();
    assert_eq!(recording.err(), "");
    recording.out()
}

#[tokio::test]
async fn each_call_counts_once_in_every_grouping() {
    for (by, rows) in [
        (
            By::Tenant,
            "default\t603\t2380\t178\t777\tunknown\t605\t50.0 %\n",
        ),
        (
            By::Session,
            "a\t2\t1710\t171\t170\tunknown\t4\t50.0 %\na.1.1\t1\t70\t7\t7\t$0.000000\t1\t50.0 %\nb\t600\t600\t0\t600\tunknown\t600\t-\n",
        ),
        (
            By::Model,
            "p/one\t2\t1580\t158\t157\t$0.002005\t4\t50.0 %\np/two\t601\t800\t20\t620\tunknown\t601\t50.0 %\n",
        ),
        (
            By::Day,
            "2026-01-01\t2\t1070\t107\t107\t$0.002000\t2\t50.0 %\n2026-01-02\t601\t1310\t71\t670\tunknown\t603\t50.0 %\n",
        ),
    ] {
        assert_eq!(print_usage(by, false, Device::Other).await, rows, "{by:?}");
    }
}

#[tokio::test]
async fn in_memory_calls_count_once_and_by_estimate_when_cut_off() {
    let call = |attempt, input| ModelUsage {
        session: SessionKey {
            tenant: "acme".parse().unwrap(),
            name: SessionName::new("asked-once").unwrap(),
        },
        query: QueryId(1),
        turn: Turn(0),
        attempt: Attempt(attempt),
        model: "p/one".into(),
        usage: usage_of(input, 1, 0),
    };
    let records = vec![
        record(0, LlmFact::Estimated(call(1, 500))),
        record(0, LlmFact::Used(call(1, 400))),
        record(0, LlmFact::Estimated(call(2, 30))),
    ];
    let journal = Memory::new();
    keep(&journal, "log", records).await;
    for (by, row) in [
        (By::Session, "asked-once"),
        (By::Tenant, "acme"),
        (By::Model, "p/one"),
        (By::Day, "2026-01-01"),
    ] {
        let (mut terminal, recording) = Recording::terminal("", Device::Other);
        usage(&journal, by, &mut terminal).await.unwrap();
        let expected = format!("{row}\t0\t430\t43\t2\tunknown\t2\t50.0 %\n");
        assert_eq!(recording.out(), expected, "{by:?}");
    }
}

#[tokio::test]
async fn usage_prints_columns_at_a_terminal_and_json_objects_otherwise() {
    let device = Device::Terminal {
        width: 120,
        style: Style::Plain,
    };
    insta::assert_snapshot!(print_usage(By::Model, false, device).await);
    let json = print_usage(By::Model, true, Device::Other).await;
    assert_eq!(
        json.lines().next(),
        Some(
            r#"{"by":"model","of":"p/one","calls":4,"turns":2,"compactions":1,"usage":{"input_tokens":1580,"cached_tokens":158,"cacheable_tokens":316,"missed_tokens":158,"output_tokens":157,"cost":2005700}}"#
        )
    );
}

#[tokio::test]
async fn usage_counts_every_tenant_but_lists_only_own_sessions() {
    let (mut terminal, recording) = Recording::terminal("", Device::Other);
    let journal = Memory::new();
    let spent = LlmFact::Failed(Failed {
        attempt: Attempt(2),
        model: "p/two".into(),
        fault: Fault::permanent("cut", "no"),
        usage: usage_of(30, 0, 4),
    });
    let theirs = vec![replied(0, "p/one", usage_of(7, 1, 0)), record(0, spent)];
    keep_for("acme", &journal, "x", theirs).await;
    keep_for(
        "zeta",
        &journal,
        "x",
        vec![replied(0, "p/one", usage_of(5, 1, 0))],
    )
    .await;
    keep(&journal, "a", vec![replied(0, "p/one", usage_of(9, 2, 0))]).await;
    for by in [By::Tenant, By::Session] {
        usage(&journal, by, &mut terminal).await.unwrap();
    }
    let rows = "acme\t1\t37\t3\t1\tunknown\t2\t50.0 %\n\
                default\t1\t9\t0\t2\tunknown\t1\t-\n\
                zeta\t1\t5\t0\t1\tunknown\t1\t-\n\
                a\t1\t9\t0\t2\tunknown\t1\t-\n";
    assert_eq!(recording.out(), rows);
}

#[tokio::test]
async fn usage_without_calls_prints_a_note() {
    let (mut terminal, recording) = Recording::terminal("", Device::Other);
    terminal.json = true;
    usage(&Memory::new(), By::Day, &mut terminal).await.unwrap();
    assert_eq!(recording.out(), "");
    assert_eq!(recording.err(), "oracle: no model calls are recorded yet\n");
}
