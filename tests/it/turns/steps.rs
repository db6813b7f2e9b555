//! A query in each of its steps: commands may arrive in all of them.

use oracle_agent::{
    kernel::{Command, DelegationPolicy, ModelChoice, Policy, Report},
    model::{
        AnswerOptions, BusyPolicy, Fault, QueryType, Reply, Submission, Usage, record::RestartCause,
    },
};

use super::{play::Play, script::*};

pub(super) fn generous() -> Policy {
    let delegation = DelegationPolicy {
        max_depth: 1,
        max_children: 2,
        max_parallel: 4,
        default_tokens: 50_000,
    };
    let models = [free("p/one"), free("p/two")].into();
    Policy {
        delegation,
        models,
        ..policy()
    }
}

/// Returns the steps by name; each query has used 100 tokens and said "Words." before, if it could.
pub(super) fn each() -> Vec<(&'static str, Play)> {
    let fresh = || Play::asked(generous());
    let mut preparing = Play::new(generous());
    preparing.submit(Submission::new(QUESTION)).unwrap();
    let mut calling = fresh();
    calling.says(&format!("Words. {}", need("more to read")));
    let mut backing_off = calling.clone();
    backing_off.fails(Fault::retryable("http_503", "busy"));
    let mut tools = fresh();
    tools.calls("Words.", vec![call("w", "write"), call("s", "search")]);
    let mut approval = fresh();
    approval.calls("Words.", vec![call("d", "deploy")]);
    let spare = super::offer::grantable();
    let mut grant = Play::asked(Policy {
        attachable: spare.attachable,
        grant_wait: spare.grant_wait,
        ..generous()
    });
    grant.says(&format!("Words. {}", wants("run the tests")));
    let mut client = Play::new(generous());
    let options = AnswerOptions {
        tools: client_tools(),
        ..AnswerOptions::default()
    };
    let submission = Submission {
        options: Some(options.into()),
        ..Submission::new(QUESTION)
    };
    client.submit(submission).unwrap();
    client.prepare(QueryType::Code);
    client.calls("Words.", vec![call("a", "act")]);
    let mut ready = Play::new(generous());
    ready.command(Command::Pause).unwrap();
    ready.ask_as(QueryType::Code, QUESTION);
    let mut ended = fresh();
    ended.command(Command::Pause).unwrap();
    ended.says(&format!("Words. {}", need("more to read")));
    vec![
        ("preparing", preparing),
        ("calling", calling),
        ("backing off", backing_off),
        ("tools", tools),
        ("approval", approval),
        ("client", client),
        ("grant", grant),
        ("delegating", delegating()),
        ("compacting", compacting()),
        ("compacting, later", compacting_later()),
        ("ready, paused", ready),
        ("between turns, paused", ended),
    ]
}

/// A query that waits for a summary of its first turn before its third one.
pub(super) fn compacting() -> Play {
    compacting_by(&["p/one", "p/two"])
}

pub(super) fn compacting_by(models: &[&str]) -> Play {
    let models = models.iter().map(|name| ModelChoice {
        context_window: Some(1_000),
        ..free(name)
    });
    let mut play = Play::asked(Policy {
        models: models.collect(),
        ..generous()
    });
    play.replies(uncounted(reply("Words.", vec![call("s", "search")])));
    play.ok("s", &"line\n".repeat(400));
    play.replies(Reply {
        usage: Usage::default(),
        ..reply("", vec![call("r", "read")])
    });
    play.ok("r", &"other line\n".repeat(12));
    play
}

/// A compaction in the back-off before its retry.
pub(super) fn compacting_later() -> Play {
    let mut play = compacting_by(&["p/one"]);
    play.no_summary(Fault::retryable("http_503", "busy"));
    play
}

/// A query whose sub-agent `talk.1.1` is at work.
pub(super) fn delegating() -> Play {
    let mut play = Play::asked(generous());
    play.says(&format!("Words. {}", delegate("all of src")));
    play
}

/// Queries that wait for their sub-agent's end in order to end themselves, by cause.
pub(super) fn ending() -> Vec<(&'static str, Play)> {
    let mut cancelled = delegating();
    cancelled.command(Command::Cancel { query: None }).unwrap();
    let mut interrupted = delegating();
    interrupted
        .submit(Submission {
            busy: BusyPolicy::Interrupt,
            ..Submission::new("at once")
        })
        .unwrap();
    let mut finished = delegating();
    finished.command(Command::FinishNow).unwrap();
    let mut crashed = delegating();
    for _ in 0..3 {
        crashed.restart(RestartCause::Crash);
    }
    let mut violated = delegating();
    let (query, detail) = (violated.running(), "31 turns of 30".to_owned());
    violated.report(Report::BudgetViolated { query, detail });
    vec![
        ("cancelled", cancelled),
        ("interrupted", interrupted),
        ("finished", finished),
        ("crashed", crashed),
        ("violated", violated),
    ]
}
