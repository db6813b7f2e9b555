//! Values that are each allowed but do not go together.

use std::{fmt, time::Duration};

use super::{Config, Origin, Problem, keys, secret::may_be_secret};

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
    problems.extend(tools(config, &origin));
    problems.extend(notes(config, &origin));
    problems.extend(profiles(config, &origin));
    problems.extend(providers(config, origin));
    problems
}

const OPINION: &str = "query.second_opinion_deadline";

const NOT_BOTH: &str =
    "a tool in only one of the two lists: of those that are there from the start, and `attachable`";

/// A tool that all have cannot be given to one besides.
fn tools(config: &Config, origin: impl Fn(&str) -> Option<Origin>) -> Option<Problem> {
    const KEY: &str = "tools.attachable";
    let only = config.tools.only.as_ref()?;
    let mut given = config.tools.attachable.iter();
    let tool = given.find(|tool| only.contains(tool))?;
    origin(KEY).map(|origin| clash(origin, KEY, tool, NOT_BOTH.to_owned()))
}

/// Nobody writes into a project that was not named for it.
fn notes(config: &Config, origin: impl Fn(&str) -> Option<Origin>) -> Option<Problem> {
    const KEY: &str = "notes.write";
    if !config.notes.write || config.notes.dir.is_some() {
        return None;
    }
    let allowed = "only false as long as `notes.dir` names no folder".to_owned();
    origin(KEY).map(|origin| clash(origin, KEY, &true, allowed))
}

fn profiles(config: &Config, origin: impl Fn(&str) -> Option<Origin>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let place = |at: usize, key: &str| origin(&format!("{}.{at}.{key}", keys::PROFILES));
    for (at, profile) in config.profiles.iter().enumerate() {
        let name = &profile.name;
        let mut others = config.profiles[..at].iter().enumerate();
        if others.any(|(at, other)| other.name == *name && place(at, "name").is_some())
            && let Some(origin) = place(at, "name")
        {
            let allowed = "a name that no other profile has".to_owned();
            problems.push(clash(origin, "profiles.name", name, allowed));
        }
        // With what it has from the sections.
        let tools = profile.over(config).tools;
        let mut only = tools.only.iter().flatten();
        let both = only.find(|tool| tools.attachable.contains(tool));
        let own = ["attachable", "tools"].map(|key| (key, place(at, key)));
        let own = own
            .into_iter()
            .find(|(_, origin)| matches!(origin, Some(Origin::File { .. })));
        if let (Some(tool), Some((key, Some(origin)))) = (both, own) {
            let key = format!("{}.{key}", keys::PROFILES);
            problems.push(clash(origin, &key, tool, NOT_BOTH.to_owned()));
        }
    }
    problems
}

/// What goes together in one provider but not with the others, or not with the rest of itself.
fn providers(config: &Config, origin: impl Fn(&str) -> Option<Origin>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let place = |at: usize, path: &str| origin(&format!("{}.{at}.{path}", keys::PROVIDERS));
    let mut problem =
        |at: usize, path: &str, key: &str, value: &dyn fmt::Display, allowed: String| {
            if let Some(origin) = place(at, path) {
                let key = format!("{}.{key}", keys::PROVIDERS);
                problems.push(clash(origin, &key, value, allowed));
            }
        };
    for (at, provider) in config.providers.iter().enumerate() {
        let name = &provider.name;
        let mut others = config.providers[..at].iter().enumerate();
        if others.any(|(at, other)| other.name == *name && place(at, "name").is_some()) {
            let allowed = "a name that no other provider has".to_owned();
            problem(at, "name", "name", name, allowed);
        }
        if let (Some(variable), Some(_)) = (&provider.key_env, &provider.key_file) {
            let allowed = "only one of `key_env` and `key_file`; the other one is not needed";
            problem(at, "key_env", "key_env", variable, allowed.to_owned());
        }
        for header in provider.headers.keys() {
            if may_be_secret(header.as_str()) {
                let allowed = "only what anybody may see; what may be a secret stands in a variable \
                               that `header_env` names";
                problem(at, "headers", "headers", header, allowed.to_owned());
            }
            if provider.header_env.contains_key(header) {
                let allowed = "a header that is not in `header_env` too".to_owned();
                problem(at, "headers", "headers", header, allowed);
            }
        }
        for (number, model) in provider.models.iter().enumerate() {
            let key = |number: usize, key: &str| format!("models.{number}.{key}");
            let name = &model.name;
            let mut others = provider.models[..number].iter().enumerate();
            if others.any(|(number, other)| {
                other.name == *name && place(at, &key(number, "name")).is_some()
            }) {
                let allowed = "a name that no other model of the provider has".to_owned();
                problem(at, &key(number, "name"), "models.name", name, allowed);
            }
            let rates = [
                ("input", model.input),
                ("output", model.output),
                ("cached", model.cached),
                ("cache_write", model.cache_write),
            ];
            let told = |(rate, _): &(&str, _)| place(at, &key(number, rate)).is_some();
            let set = rates.iter().find_map(|(rate, set)| Some((rate, (*set)?)));
            if let Some((rate, set)) = set
                && model.price().is_none()
                && rates.iter().all(told)
            {
                let allowed = "only a price beside which both `input` and `output` are set";
                let path = format!("models.{rate}");
                problem(at, &key(number, rate), &path, &set, allowed.to_owned());
            }
        }
    }
    problems
}

fn deadlines(config: &Config) -> [(&'static str, Duration, String); 8] {
    let (model, tools) = (&config.model, &config.tools);
    let (connect, headers) = (model.connect_deadline, model.headers_deadline);
    let first = model.first_token_deadline;
    let (idle, total) = (model.idle_deadline, model.total_deadline);
    let (call, search) = (tools.call_deadline, tools.search_deadline);
    let opinion = config.query.second_opinion_deadline;
    [
        ("model.connect_deadline", connect.get(), connect.to_string()),
        ("model.headers_deadline", headers.get(), headers.to_string()),
        ("model.first_token_deadline", first.get(), first.to_string()),
        ("model.idle_deadline", idle.get(), idle.to_string()),
        ("model.total_deadline", total.get(), total.to_string()),
        ("tools.call_deadline", call.get(), call.to_string()),
        ("tools.search_deadline", search.get(), search.to_string()),
        (OPINION, opinion.get(), opinion.to_string()),
    ]
}

fn clash(origin: Origin, key: &str, value: &dyn fmt::Display, allowed: String) -> Problem {
    Problem::NotAllowed {
        origin,
        key: key.to_owned(),
        value: value.to_string(),
        allowed,
    }
}
