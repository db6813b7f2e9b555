//! A query in each step that it can be in: what people do, they can do at any time.

use oracle_agent::{
    kernel::{Command, DelegationPolicy, ModelChoice, Policy},
    model::{Fault, QueryType, Submission},
};

use super::{play::Play, script::*};

/// Two models and room for sub-agents.
pub(super) fn generous() -> Policy {
    let delegation = DelegationPolicy {
        max_depth: 1,
        max_children: 2,
        default_tokens: 50_000,
    };
    let models = [ModelChoice::new("p/one"), ModelChoice::new("p/two")].into();
    Policy {
        delegation,
        models,
        ..policy()
    }
}

/// The steps by name; each query has used 100 tokens and said "Words." before, if it could.
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
    let mut delegating = fresh();
    delegating.says(&format!("Words. {}", delegate("all of src")));
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
        ("delegating", delegating),
        ("ready, paused", ready),
        ("between turns, paused", ended),
    ]
}
