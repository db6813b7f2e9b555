//! Values that are each allowed but do not go together.

use std::{fmt, time::Duration};

use super::{Config, Origin, Problem};

/// All clashes. `origin` says where a key's value came from, or nothing for a key that has a problem
/// already.
pub(super) fn clashes(config: &Config, origin: impl Fn(&str) -> Option<Origin>) -> Vec<Problem> {
    const STALL: &str = "supervisor.stall_limit";
    let stall = config.supervisor.stall_limit;
    let mut problems = Vec::new();
    // A session that waits for a model or a tool is not stuck (spec 10).
    for (key, span, shown) in deadlines(config) {
        let (Some(of_stall), Some(of_deadline)) = (origin(STALL), origin(key)) else {
            continue;
        };
        if span < stall.get() {
            continue;
        }
        // The value that somebody chose is the one to change.
        problems.push(if of_deadline == Origin::Default {
            clash(
                of_stall,
                STALL,
                &stall,
                format!("more than `{key}`, which is {shown}"),
            )
        } else {
            clash(
                of_deadline,
                key,
                &shown,
                format!("less than `{STALL}`, which is {stall}"),
            )
        });
    }
    problems
}

fn deadlines(config: &Config) -> [(&'static str, Duration, String); 5] {
    let (model, tools) = (&config.model, &config.tools);
    let first = model.first_token_deadline;
    let (idle, total) = (model.idle_deadline, model.total_deadline);
    let (call, search) = (tools.call_deadline, tools.search_deadline);
    [
        ("model.first_token_deadline", first.get(), first.to_string()),
        ("model.idle_deadline", idle.get(), idle.to_string()),
        ("model.total_deadline", total.get(), total.to_string()),
        ("tools.call_deadline", call.get(), call.to_string()),
        ("tools.search_deadline", search.get(), search.to_string()),
    ]
}

fn clash(origin: Origin, key: &str, value: &impl fmt::Display, allowed: String) -> Problem {
    Problem::NotAllowed {
        origin,
        key: key.to_owned(),
        value: value.to_string(),
        allowed,
    }
}
