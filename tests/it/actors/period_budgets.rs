//! Budgets of tenants and keys per UTC day and month in the real actors.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    access::{Budgets, TenantLimits},
    actor::{Answer, AskError, Clock, Oracle, Recovery, SessionHandle, System},
    config::{Config, ModelChain, Provider},
    journal::{Journal, Sqlite},
    kernel::{Command, Refusal},
    llm::{Backend, Scripted, scripted::ScriptedReply},
    model::{
        By, Day, Limits, NanoUsd, Payer, ProfileName, Seq, Submission, TenantId, Timestamp,
        command::Author,
    },
    testkit::{TestOracle, advance_time},
};

use super::{
    HOUR, answered, done, end,
    family::{Family, allow, cost, delegate},
    memory, more,
};

const QUESTION: &str = "how does the code work?";
const SCOPE: &str = "Read the manual of the frobnicator";

fn time(text: &str) -> Timestamp {
    serde_json::from_value(text.into()).unwrap()
}

fn tokens(per_day: u64) -> Budgets {
    Budgets {
        tokens_per_day: Some(per_day),
        ..Budgets::default()
    }
}

fn of_tenants(budgets: Budgets) -> TenantLimits {
    let mut limits = TenantLimits::default();
    limits.all.budgets = budgets;
    limits
}

fn of_key(name: &str, budgets: Budgets) -> TenantLimits {
    let mut limits = TenantLimits::default();
    limits.keys.insert(name.parse().unwrap(), budgets);
    limits
}

async fn start(
    model: impl Backend,
    journal: Arc<dyn Journal>,
    now: &str,
    limits: TenantLimits,
) -> System {
    let oracle = TestOracle::new(model).journal(journal);
    let oracle = oracle.policy(|policy| allow(policy, 1));
    let oracle = oracle.settings(|settings| {
        settings.tenants = limits;
        settings.recovery = Recovery::OnDemand;
    });
    let mut args = oracle.args().unwrap();
    args.clock = Clock::from(time(now));
    System::start(args).await.unwrap()
}

fn session(system: &System, name: &str) -> SessionHandle {
    system.oracle().session(name).unwrap()
}

/// Replies of 10 tokens and 4,000 billionths of a dollar each.
fn replies(text: &str) -> Scripted {
    let reply = || ScriptedReply::text(text).usage(cost(10, 4_000));
    (0..9).fold(Scripted::new(), |script, _| script.play(reply()))
}

fn working() -> Scripted {
    let turn = |number| more("Found.", &format!("Still have to read part {number}"));
    let reply = |number| ScriptedReply::text(turn(number)).usage(cost(10, 4_000));
    (0..9).fold(Scripted::new(), |script, number| script.play(reply(number)))
}

async fn ask(session: &SessionHandle) -> Result<Answer, AskError> {
    let answer = session.answer(Submission::new(QUESTION));
    tokio::time::timeout(HOUR, answer).await.unwrap()
}

/// The text of the refusal, and the time after which the budget is renewed.
fn refused<T: std::fmt::Debug>(result: Result<T, AskError>) -> (String, Duration) {
    let error = result.unwrap_err();
    let text = error.to_string();
    let AskError::Refused(Refusal::BudgetSpent { after, .. }) = error else {
        panic!("{error:?}");
    };
    (text, after)
}

async fn used(journal: &Arc<dyn Journal>, payer: Payer) -> i64 {
    let days = journal.usage(payer, Day(0)).await.unwrap();
    days.iter().map(|usage| usage.tokens).sum()
}

fn tenant() -> Payer {
    Payer::Tenant(TenantId::local())
}

#[tokio::test(start_paused = true)]
async fn spent_budget_refuses_messages_until_it_is_renewed_even_after_a_restart() {
    let evening = "2026-01-30T23:59:00.000Z";
    let tonight = ("2026-01-31T00:00:00.000Z", 60);
    let next_month = ("2026-02-01T00:00:00.000Z", 86_400 + 60);
    let month = |tokens_per_month, nano: Option<u64>| Budgets {
        tokens_per_month,
        cost_usd_per_month: nano.map(NanoUsd),
        ..Budgets::default()
    };
    let money = Budgets {
        cost_usd_per_day: Some(NanoUsd(8_000)),
        ..Budgets::default()
    };
    for (what, budgets, (renewed, seconds)) in [
        ("20 tokens per UTC day", tokens(20), tonight),
        ("20 tokens per UTC month", month(Some(20), None), next_month),
        ("$0.000008 per UTC day", money, tonight),
        (
            "$0.000008 per UTC month",
            month(None, Some(8_000)),
            next_month,
        ),
    ] {
        let (model, journal) = (replies(&done("So it is.")), memory());
        let limits = || of_tenants(budgets);
        let system = start(model.clone(), journal.clone(), evening, limits()).await;
        let (one, other) = (session(&system, "one"), session(&system, "other"));
        let keyed = || Submission {
            idempotency_key: Some("k".into()),
            ..Submission::new(QUESTION)
        };
        let first = one.answer(keyed()).await.unwrap();
        assert_eq!(end(&ask(&other).await.unwrap()), answered("So it is."));
        let (text, after) = refused(ask(&one).await);
        let expected =
            format!("your tenant's budget of {what} is spent: it is renewed at {renewed}");
        assert_eq!(text, expected);
        assert_eq!(after, Duration::from_secs(seconds), "{what}");
        let (text, author) = (QUESTION.to_owned(), Author::User);
        let steered = one.command(Command::Steer { text, author }).await;
        assert_eq!(refused(steered).0, expected);
        let repeated = one.submit(keyed()).await.unwrap();
        assert_eq!(repeated, first.query, "{what}: accepted before");
        system.abort().await;

        let system = start(model.clone(), journal.clone(), evening, limits()).await;
        let one = session(&system, "one");
        assert_eq!(refused(ask(&one).await).0, expected);
        advance_time(Duration::from_secs(60)).await;
        let after_midnight = ask(&one).await;
        assert_eq!(after_midnight.is_ok(), seconds == 60, "{what}: a day later");
        system.abort().await;

        let system = start(model.clone(), journal, renewed, limits()).await;
        let answer = ask(&session(&system, "one")).await.unwrap();
        assert_eq!(end(&answer), answered("So it is."), "{what}: renewed");
    }
}

#[tokio::test(start_paused = true)]
async fn running_query_is_forced_before_its_next_turn() {
    let money = Budgets {
        cost_usd_per_day: Some(NanoUsd(16_000)),
        ..Budgets::default()
    };
    for (by, budgets, used, limit) in [
        ("tokens", tokens(40), 40, 40),
        ("tokens", tokens(35), 40, 35),
        ("cost", money, 16_000, 16_000),
    ] {
        let (model, journal) = (working(), memory());
        let day = "2026-01-01T00:00:00.000Z";
        let system = start(model.clone(), journal.clone(), day, of_tenants(budgets)).await;
        // Another session of the tenant has used some.
        let limits = Limits::turns(1);
        let short = Submission {
            limits: Some(limits.into()),
            ..Submission::new(QUESTION)
        };
        session(&system, "other").answer(short).await.unwrap();
        let session = session(&system, "s");
        let answer = ask(&session).await.unwrap();
        assert_eq!(answer.outcome.reason(), Some(by));
        assert_eq!(
            (answer.turns, model.requests().len()),
            (3, 4),
            "{by} {limit}"
        );
        let events = session.events(Seq(0)).await.unwrap();
        let kind = format!("budget.{by}.exceeded");
        let exceeded = events.iter().find(|event| event.kind == kind).unwrap();
        let figures = (&exceeded.payload["used"], &exceeded.payload["limit"]);
        assert_eq!(figures, (&used.into(), &limit.into()), "{by}");
        let again = session.command(Command::Continue(limits.into())).await;
        refused(again);
        assert_eq!(used_of(&journal).await, 40);
    }
}

#[tokio::test(start_paused = true)]
async fn queued_query_is_checked_against_what_the_one_before_it_used() {
    let reply = || ScriptedReply::text(done("Fine.")).usage(cost(10, 4_000));
    let slow = Scripted::new().play(reply()).slowly(Duration::from_secs(1));
    let model = slow.play(reply());
    let now = "2026-01-30T12:00:00.000Z";
    let system = start(model.clone(), memory(), now, of_tenants(tokens(10))).await;
    let session = session(&system, "s");
    let first = session.ask(Submission::new(QUESTION)).await.unwrap();
    let second = session.ask(Submission::new(QUESTION)).await.unwrap();
    assert_eq!(end(&first.answer().await.unwrap()), answered("Fine."));
    let outcome = second.answer().await.unwrap().outcome;
    assert_eq!((outcome.name(), model.requests().len()), ("forced", 1));
    system.shut_down(HOUR).await;
}

async fn used_of(journal: &Arc<dyn Journal>) -> i64 {
    used(journal, tenant()).await
}

#[tokio::test(start_paused = true)]
async fn usage_of_sub_agents_counts_once_for_tenant_and_key() {
    let parent = || {
        Scripted::new()
            .play(ScriptedReply::text(delegate(SCOPE)).usage(cost(10, 1_000)))
            .play(ScriptedReply::text(done("It says: turn left.")).usage(cost(10, 1_000)))
    };
    let child = || replies(&done("Turn left."));
    for (limit, expected, total) in [
        // The child's 10 tokens are counted once: 20 are used before the second turn.
        (21, answered("It says: turn left."), 30),
        (
            20,
            (
                "forced".to_owned(),
                Some("tokens"),
                "I will have that read.\n\n[Response truncated due to token limit]",
            ),
            20,
        ),
    ] {
        let family = Family::new(parent()).child(SCOPE, child());
        let journal = memory();
        let day = "2026-01-01T00:00:00.000Z";
        let limits = of_key("ci", tokens(limit));
        let system = start(family.clone(), journal.clone(), day, limits).await;
        let session = session(&system, "p").acting(By::new("ci"));
        let answer = ask(&session).await.unwrap();
        assert_eq!(end(&answer), expected, "{limit}");
        assert_eq!(used(&journal, Payer::Key(By::new("ci"))).await, total);
        assert_eq!(used(&journal, Payer::Key(By::oracle())).await, 0);
        assert_eq!(used_of(&journal).await, total);
    }
}

#[tokio::test(start_paused = true)]
async fn key_budget_limits_that_key_and_is_known_after_a_crash() {
    let journal = memory();
    let reply = ScriptedReply::text(more("Found.", "Still have to read part 1"));
    let model = Scripted::new()
        .play(reply.usage(cost(10, 1)))
        .stall("Let me see");
    let limits = || of_key("ci", tokens(20));
    let day = "2026-01-01T00:00:00.000Z";
    let system = start(model.clone(), journal.clone(), day, limits()).await;
    let by_key = session(&system, "s").acting(By::new("ci"));
    let query = by_key.submit(Submission::new(QUESTION)).await.unwrap();
    while model.requests().len() < 2 {
        advance_time(Duration::from_millis(10)).await;
    }
    system.abort().await;

    let model = working();
    let system = start(model.clone(), journal.clone(), day, limits()).await;
    let without_key = session(&system, "s");
    let answer = without_key.watch(query).await.unwrap();
    without_key.recover().await.unwrap();
    let answer = tokio::time::timeout(HOUR, answer.answer()).await.unwrap();
    assert_eq!(answer.unwrap().outcome.reason(), Some("tokens"));
    let repeated = model.requests().len();
    assert_eq!(
        repeated, 0,
        "the call that the crash cut off spent the rest"
    );
    let by_key = session(&system, "other").acting(By::new("ci"));
    let (text, _) = refused(ask(&by_key).await);
    assert!(
        text.starts_with("your key's budget of 20 tokens per UTC day"),
        "{text}"
    );
    // Another key, and a caller without one, go on; the tenant counts all of it.
    for by in [By::new("other"), By::local()] {
        let session = session(&system, by.as_str()).acting(by.clone());
        let limits = Limits::turns(1);
        let submission = Submission {
            limits: Some(limits.into()),
            ..Submission::new(QUESTION)
        };
        assert_eq!(session.answer(submission).await.unwrap().turns, 1, "{by}");
    }
    let of_key = used(&journal, Payer::Key(By::new("ci"))).await;
    assert_eq!(used_of(&journal).await, of_key + 20);
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_and_ephemeral_sessions_count() {
    let day = "2026-01-01T00:00:00.000Z";
    let mut counts = Vec::new();
    for durable in [true, false] {
        let journal = memory();
        let model = Scripted::new().stall("Let me see").reply(done("Never."));
        let system = start(model.clone(), journal.clone(), day, of_tenants(tokens(1))).await;
        let ephemeral = || {
            system
                .oracle()
                .ephemeral(TenantId::local(), ProfileName::oracle())
        };
        let begun = async || {
            while model.requests().is_empty() {
                advance_time(Duration::from_millis(10)).await;
            }
            advance_time(Duration::from_millis(10)).await;
        };
        if durable {
            let session = session(&system, "s");
            session.submit(Submission::new(QUESTION)).await.unwrap();
            begun().await;
            session.cancel(None).await.unwrap();
        } else {
            let session = ephemeral();
            session.submit(Submission::new(QUESTION)).await.unwrap();
            begun().await;
        }
        refused(ask(&session(&system, "other")).await);
        refused(ephemeral().answer(Submission::new(QUESTION)).await);
        assert_eq!(model.requests().len(), 1, "durable: {durable}");
        system.shut_down(HOUR).await;
        counts.push(used_of(&journal).await);
    }
    // Both count the text that had been received.
    assert_eq!(counts[0], counts[1]);
}

#[tokio::test(start_paused = true)]
async fn estimate_of_an_ephemeral_call_is_replaced_by_its_usage() {
    let (journal, day) = (memory(), "2026-01-01T00:00:00.000Z");
    let model = replies(&done("So it is."));
    let system = start(model, journal.clone(), day, of_tenants(tokens(100))).await;
    let session = system
        .oracle()
        .ephemeral(TenantId::local(), ProfileName::oracle());
    let session_by_key = session.clone().acting(By::new("ci"));
    let answer = session_by_key
        .answer(Submission::new(QUESTION))
        .await
        .unwrap();
    assert_eq!(answer.usage.total_tokens(), 10);
    system.shut_down(HOUR).await;
    for payer in [tenant(), Payer::Key(By::new("ci"))] {
        assert_eq!(used(&journal, payer).await, 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_on_one_directory_share_the_counts() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Arc::new(Sqlite::open(folder.path(), Box::new(|_: &str| ())).unwrap());
    let (journal, other): (Arc<dyn Journal>, Arc<dyn Journal>) = (open(), open());
    let now = "2026-01-01T12:00:00.000Z";
    let limits = || of_tenants(tokens(10));
    let model = replies(&done("So it is."));
    let first = start(model.clone(), journal, now, limits()).await;
    let second = start(model, other, now, limits()).await;
    ask(&session(&first, "one")).await.unwrap();
    let (text, _) = refused(ask(&session(&second, "two")).await);
    assert!(text.contains("10 tokens per UTC day"), "{text}");
    for system in [first, second] {
        system.shut_down(HOUR).await;
    }
}

#[tokio::test(start_paused = true)]
async fn start_with_a_money_budget_and_a_model_of_unknown_price_is_refused() {
    type Change = fn(&mut TenantLimits);
    let named: Change = |limits| {
        let named = limits.named.entry(TenantId::local()).or_default();
        named.budgets.cost_usd_per_day = Some(NanoUsd(1));
    };
    let of_key: Change = |limits| {
        let budgets = Budgets {
            cost_usd_per_month: Some(NanoUsd(1)),
            ..Budgets::default()
        };
        limits.keys.insert("ci".parse().unwrap(), budgets);
    };
    let of_all: Change = |limits| limits.all.budgets.cost_usd_per_day = Some(NanoUsd(1));
    let only_tokens: Change = |limits| limits.all.budgets.tokens_per_day = Some(1);
    for (name, chain, change, starts) in [
        ("all tenants", "own/test", of_all, false),
        ("one tenant", "own/test", named, false),
        ("a key", "own/test", of_key, false),
        ("tokens", "own/test", only_tokens, true),
        ("a free model", "offline/offline", of_all, true),
        ("a script", "scripted/test", of_all, true),
    ] {
        let mut config = Config::default();
        config.model.chain = Some(ModelChain::new([chain]).unwrap());
        config.providers = vec![Provider {
            name: "own".to_owned(),
            base_url: "http://localhost".to_owned(),
            ..Provider::default()
        }];
        change(&mut config.tenants);
        let built = Oracle::builder().config(config).backend(Scripted::new());
        let started = built.start().await;
        let why = started.err().map(|error| error.to_string());
        assert_eq!(why.is_none(), starts, "{name}: {why:?}");
        if let Some(why) = why {
            let expected = "the price of the model `own/test` is unknown";
            assert!(why.starts_with(expected), "{name}: {why}");
        }
    }
}
