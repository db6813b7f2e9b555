//! Values that do not go together, and values of a configuration that was made in code.

use std::{collections::BTreeSet, fmt::Display};

use toml::{Table, Value};

use super::{
    Config, Origin, Problem,
    problem::{may_be_secret, plain, shown},
    schema::{self, Key, LISTS, Rule, SECTIONS, shown_time},
};

/// Every value that no source could have set.
pub(super) fn values(config: &Config) -> Vec<Problem> {
    let table = match Table::try_from(config) {
        Ok(table) => table,
        Err(error) => return vec![refused("configuration", "…", &error.to_string())],
    };
    let mut problems = Vec::new();
    for section in &SECTIONS {
        let (keys, there) = (section.keys, table.get(section.name));
        table_values(section.name, keys, |_| false, there, &mut problems);
    }
    for list in LISTS {
        for item in table
            .get(list.path)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            table_values(list.path, list.keys, list.hides, Some(item), &mut problems);
        }
    }
    problems
}

fn table_values(
    path: &str,
    keys: &[Key],
    hides: fn(&str) -> bool,
    table: Option<&Value>,
    problems: &mut Vec<Problem>,
) {
    for (key, value) in table.and_then(Value::as_table).into_iter().flatten() {
        let path = format!("{path}.{key}");
        match schema::rule(keys, key) {
            Some(Rule::Tables(list)) => {
                for item in value.as_array().into_iter().flatten() {
                    table_values(&path, list.keys, list.hides, Some(item), problems);
                }
            }
            Some(rule) => {
                let text = value.to_string();
                let text = if hides(key) {
                    plain(&text)
                } else {
                    shown(&text)
                };
                let read = rule.read(value, None);
                problems.extend(read.err().map(|allowed| refused(&path, &text, &allowed)));
            }
            None => {}
        }
    }
}

fn refused(key: &str, value: &str, allowed: &str) -> Problem {
    Problem::NotAllowed {
        origin: Origin::Code,
        key: key.to_owned(),
        value: value.to_owned(),
        allowed: allowed.to_owned(),
    }
}

/// Says where a key's value came from, or nothing for a key that has a problem already.
type Origins<'a> = &'a dyn Fn(&str) -> Option<Origin>;

/// All values that do not go together.
pub(super) fn clashes(config: &Config, origin: Origins<'_>) -> Vec<Problem> {
    let mut clashes = Clashes {
        origin,
        problems: Vec::new(),
    };
    clashes.deadlines(config);
    clashes.tools_and_notes(config);
    clashes.profiles(config);
    clashes.providers(config);
    clashes.problems
}

struct Clashes<'a> {
    origin: Origins<'a>,
    problems: Vec<Problem>,
}

const NOT_BOTH: &str =
    "a tool in only one of the two lists: of those that are there from the start, and `attachable`";

impl Clashes<'_> {
    /// A problem of the value at `place`, which is shown as `key`.
    fn add(&mut self, place: &str, key: &str, value: &dyn Display, allowed: &str) {
        if let Some(origin) = (self.origin)(place) {
            self.problems.push(Problem::NotAllowed {
                origin,
                key: key.to_owned(),
                value: value.to_string(),
                allowed: allowed.to_owned(),
            });
        }
    }

    /// A session that waits for a model or a tool is not stalled.
    fn deadlines(&mut self, config: &Config) {
        const STALL: &str = "supervisor.stall_limit";
        let (stall, model, tools) = (config.supervisor.stall_limit, &config.model, &config.tools);
        for (key, span) in [
            ("model.connect_deadline", model.connect_deadline),
            ("model.headers_deadline", model.headers_deadline),
            ("model.first_token_deadline", model.first_token_deadline),
            ("model.idle_deadline", model.idle_deadline),
            ("model.total_deadline", model.total_deadline),
            ("tools.call_deadline", tools.call_deadline),
            ("tools.search_deadline", tools.search_deadline),
            (
                "query.second_opinion_deadline",
                config.query.second_opinion_deadline,
            ),
        ] {
            let (Some(_), Some(of_deadline)) = ((self.origin)(STALL), (self.origin)(key)) else {
                continue;
            };
            let (of_stall, of_key) = (shown_time(stall), shown_time(span));
            // The value that somebody chose is the one to change.
            if span < stall {
            } else if of_deadline == Origin::Default {
                let allowed = format!("more than `{key}`, which is {of_key}");
                self.add(STALL, STALL, &of_stall, &allowed);
            } else {
                let allowed = format!("less than `{STALL}`, which is {of_stall}");
                self.add(key, key, &of_key, &allowed);
            }
        }
    }

    fn tools_and_notes(&mut self, config: &Config) {
        const KEY: &str = "tools.attachable";
        if let Some(tool) = in_both(config) {
            self.add(KEY, KEY, &tool, NOT_BOTH);
        }
        // Without a folder the notes are the project's files.
        if config.notes.write && config.notes.dir.is_none() {
            let allowed = "only false as long as `notes.dir` names no folder";
            self.add("notes.write", "notes.write", &true, allowed);
        }
    }

    /// The second one of each two that have the same name.
    fn doubles<'n>(
        &mut self,
        key: &str,
        allowed: &str,
        names: impl Iterator<Item = (String, &'n str)>,
    ) {
        let mut seen = BTreeSet::new();
        for (place, name) in names {
            if (self.origin)(&place).is_some() && !seen.insert(name) {
                self.add(&place, key, &name, allowed);
            }
        }
    }

    fn profiles(&mut self, config: &Config) {
        let profiles = || config.profiles.iter().enumerate();
        for (at, profile) in profiles() {
            // With what it has from the sections.
            let Some(tool) = in_both(&profile.over(config)) else {
                continue;
            };
            let from_file = |key: &&str| {
                let origin = (self.origin)(&format!("profiles.{at}.{key}"));
                matches!(origin, Some(Origin::File { .. }))
            };
            if let Some(key) = ["attachable", "tools"].into_iter().find(from_file) {
                let (place, key) = (format!("profiles.{at}.{key}"), format!("profiles.{key}"));
                self.add(&place, &key, &tool, NOT_BOTH);
            }
        }
        let names = profiles();
        let names = names.map(|(at, one)| (format!("profiles.{at}.name"), one.name.as_str()));
        self.doubles("profiles.name", "a name that no other profile has", names);
    }

    fn providers(&mut self, config: &Config) {
        let names = config.providers.iter().enumerate();
        let names = names.map(|(at, one)| (format!("providers.{at}.name"), one.name.as_str()));
        self.doubles("providers.name", "a name that no other provider has", names);
        for (at, provider) in config.providers.iter().enumerate() {
            if let (Some(variable), Some(_)) = (&provider.key_env, &provider.key_file) {
                let allowed = "only one of `key_env` and `key_file`; the other one is not needed";
                let place = format!("providers.{at}.key_env");
                self.add(&place, "providers.key_env", variable, allowed);
            }
            let place = format!("providers.{at}.headers");
            for header in provider.headers.keys() {
                if may_be_secret(header) {
                    let allowed = "only what anybody may see; what may be a secret stands in a variable \
                                   that `header_env` names";
                    self.add(&place, "providers.headers", header, allowed);
                }
                if provider.header_env.contains_key(header) {
                    let allowed = "a header that is not in `header_env` too";
                    self.add(&place, "providers.headers", header, allowed);
                }
            }
            let place = |number: usize, key: &str| format!("providers.{at}.models.{number}.{key}");
            let names = provider.models.iter().enumerate();
            let names = names.map(|(number, one)| (place(number, "name"), one.name.as_str()));
            let allowed = "a name that no other model of the provider has";
            self.doubles("providers.models.name", allowed, names);
            for (number, model) in provider.models.iter().enumerate() {
                let rates = [
                    ("input", model.input),
                    ("output", model.output),
                    ("cached", model.cached),
                    ("cache_write", model.cache_write),
                ];
                let told = |(rate, _): &(&str, _)| (self.origin)(&place(number, rate)).is_some();
                let set = rates.iter().find_map(|(rate, set)| Some((rate, (*set)?)));
                if let Some((rate, set)) = set
                    && model.price().is_none()
                    && rates.iter().all(told)
                {
                    let allowed = "only a price beside which both `input` and `output` are set";
                    let key = format!("providers.models.{rate}");
                    let set = super::value::usd::dollars(set);
                    self.add(&place(number, rate), &key, &set, allowed);
                }
            }
        }
    }
}

/// A tool that all conversations have cannot be given to one besides.
fn in_both(config: &Config) -> Option<String> {
    let only = config.tools.only.as_ref()?;
    let mut given = config.tools.attachable.iter();
    given.find(|tool| only.contains(tool)).cloned()
}
