//! Values that do not go together, and values of a configuration that was made in code.

use std::{collections::BTreeSet, fmt::Display};

use toml::{Table, Value};

use super::{
    Config, Origin, Problem, Provider,
    load::{may_be_secret, shown_unless_secret},
    models::usd,
    rule::{ROOT, Rule, join, path, shown_time},
};

impl Config {
    /// Checks a configuration that was made in code; [`load`](super::load) does it by itself.
    ///
    /// # Errors
    /// All values that are not allowed, or do not go together.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        match Table::try_from(self) {
            Ok(table) => values(ROOT, "", &table, &mut problems),
            Err(error) => {
                let (key, why) = ("configuration", error.to_string());
                problems.push(Problem::not_allowed(&Origin::Code, key, "…", &why));
            }
        }
        problems.extend(clashes(self, &|_| Some(Origin::Code)));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems),
        }
    }
}

/// Every value that no source could have set.
fn values(of: Rule, path: &str, table: &Table, problems: &mut Vec<Problem>) {
    for (key, value) in table {
        let Some(rule) = of.of(key) else { continue };
        let full = join(path, key);
        match (rule, value) {
            (Rule::Section(_), Value::Table(table)) => values(rule, &full, table, problems),
            (Rule::List(_), Value::Array(items)) => {
                for table in items.iter().filter_map(Value::as_table) {
                    values(rule, &full, table, problems);
                }
            }
            _ => problems.extend(rule.read(value, None).err().map(|allowed| {
                let value = shown_unless_secret(path, key, Some(rule), &value.to_string());
                Problem::not_allowed(&Origin::Code, &full, &value, &allowed)
            })),
        }
    }
}

/// The origin of a key's value; none for a key that has a problem already.
type Origins<'a> = &'a dyn Fn(&str) -> Option<Origin>;

/// All values that do not go together.
pub(super) fn clashes(config: &Config, origin: Origins<'_>) -> Vec<Problem> {
    let problems = Vec::new();
    let mut clashes = Clashes { origin, problems };
    clashes.deadlines(config);
    clashes.tools_and_notes(config);
    clashes.profiles(config);
    let names = config.providers.iter().map(|one| one.name.as_str());
    clashes.doubles("providers", "a name that no other provider has", names);
    for (at, provider) in config.providers.iter().enumerate() {
        clashes.provider(&format!("providers.{at}"), provider);
    }
    clashes.problems
}

struct Clashes<'a> {
    origin: Origins<'a>,
    problems: Vec<Problem>,
}

const NOT_BOTH: &str =
    "a tool in only one of the two lists: of those that are there from the start, and `attachable`";

impl Clashes<'_> {
    /// A problem of the value at `place`, such as `providers.0.headers`.
    fn add(&mut self, place: &str, value: &dyn Display, allowed: &str) {
        if let Some(origin) = (self.origin)(place) {
            let (key, value) = (path(place), value.to_string());
            let problem = Problem::not_allowed(&origin, &key, &value, allowed);
            self.problems.push(problem);
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
            // Of the two, the value that the user chose is the one to change.
            if span < stall {
            } else if of_deadline == Origin::Default {
                let allowed = format!("more than `{key}`, which is {of_key}");
                self.add(STALL, &of_stall, &allowed);
            } else {
                let allowed = format!("less than `{STALL}`, which is {of_stall}");
                self.add(key, &of_key, &allowed);
            }
        }
    }

    fn tools_and_notes(&mut self, config: &Config) {
        if let Some(tool) = in_both(config) {
            self.add("tools.attachable", &tool, NOT_BOTH);
        }
        // Without a folder the notes are the project's files.
        if config.notes.write && config.notes.dir.is_none() {
            let allowed = "only false as long as `notes.dir` names no folder";
            self.add("notes.write", &true, allowed);
        }
    }

    /// The second one of each two in a list that have the same name.
    fn doubles<'n>(&mut self, list: &str, allowed: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = BTreeSet::new();
        for (at, name) in names.enumerate() {
            let place = format!("{list}.{at}.name");
            if (self.origin)(&place).is_some() && !seen.insert(name) {
                self.add(&place, &name, allowed);
            }
        }
    }

    fn profiles(&mut self, config: &Config) {
        for (at, profile) in config.profiles.iter().enumerate() {
            // With the lists of the section where it has none.
            let Some(tool) = in_both(&profile.over(config)) else {
                continue;
            };
            let places = ["attachable", "tools"].map(|key| format!("profiles.{at}.{key}"));
            let from_file =
                |place: &&String| matches!((self.origin)(place), Some(Origin::File { .. }));
            if let Some(place) = places.iter().find(from_file) {
                self.add(place, &tool, NOT_BOTH);
            }
        }
        let names = config.profiles.iter().map(|one| one.name.as_str());
        self.doubles("profiles", "a name that no other profile has", names);
    }

    fn provider(&mut self, place: &str, provider: &Provider) {
        if let (Some(variable), Some(_)) = (&provider.key_env, &provider.key_file) {
            let allowed = "only one of `key_env` and `key_file`; the other one is not needed";
            self.add(&join(place, "key_env"), variable, allowed);
        }
        let headers = join(place, "headers");
        for header in provider.headers.keys() {
            if may_be_secret(header) {
                let allowed = "only what anybody may see; what may be a secret stands in a variable \
                               that `header_env` names";
                self.add(&headers, header, allowed);
            }
            if provider.header_env.contains_key(header) {
                let allowed = "a header that is not in `header_env` too";
                self.add(&headers, header, allowed);
            }
        }
        let models = join(place, "models");
        let names = provider.models.iter().map(|one| one.name.as_str());
        let allowed = "a name that no other model of the provider has";
        self.doubles(&models, allowed, names);
        for (at, model) in provider.models.iter().enumerate() {
            let rates = [
                ("input", model.input),
                ("output", model.output),
                ("cached", model.cached),
                ("cache_write", model.cache_write),
            ];
            let rates = rates.map(|(rate, set)| (format!("{models}.{at}.{rate}"), set));
            let set = rates.iter().find_map(|(rate, set)| Some((rate, (*set)?)));
            if let Some((rate, set)) = set
                && model.price().is_none()
                && rates.iter().all(|(rate, _)| (self.origin)(rate).is_some())
            {
                let allowed = "only a price beside which both `input` and `output` are set";
                self.add(rate, &usd::dollars(set), allowed);
            }
        }
    }
}

/// A tool that all conversations have cannot be attached to one.
fn in_both(config: &Config) -> Option<String> {
    let only = config.tools.only.as_ref()?;
    let mut given = config.tools.attachable.iter();
    given.find(|tool| only.contains(tool)).cloned()
}
