//! Checks of values against each other, and of a configuration made in code.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    time::Duration,
};

use toml::{Table, Value};

use super::{
    Config, McpServer, Origin, Problem, Provider,
    load::{mask_secret, may_be_secret},
    rule::{ROOT, Rule, format_span, join, path},
};
use crate::{
    model::{ProfileName, usage::usd},
    tool::SearchService,
};

impl Config {
    /// Checks a configuration made in code; [`load`](super::load) has already checked its result.
    ///
    /// # Errors
    /// All values that are not allowed or conflict with others.
    pub fn validate(&self) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        match Table::try_from(self) {
            Ok(table) => values(ROOT, "", &table, &mut problems),
            Err(error) => {
                let (key, why) = ("configuration", error.to_string());
                problems.push(Problem::not_allowed(&Origin::Code, key, "…", &why));
            }
        }
        problems.extend(conflicts(self, &|_| Some(Origin::Code)));
        match problems.is_empty() {
            true => Ok(()),
            false => Err(problems),
        }
    }
}

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
                let value = mask_secret(path, key, Some(rule), &value.to_string());
                Problem::not_allowed(&Origin::Code, &full, &value, &allowed)
            })),
        }
    }
}

type Pairs = BTreeMap<String, String>;

/// Returns the origin of a key's value; `None` for a key that already has a problem.
type Origins<'a> = &'a dyn Fn(&str) -> Option<Origin>;

pub(super) fn conflicts(config: &Config, origin: Origins<'_>) -> Vec<Problem> {
    let problems = Vec::new();
    let mut conflicts = Conflicts { origin, problems };
    conflicts.deadlines(config);
    conflicts.tools_and_notes(config);
    conflicts.profiles(config);
    conflicts.cluster(config);
    let names = config.providers.iter().map(|one| one.name.as_str());
    conflicts.duplicates("providers", "a name that no other provider has", names);
    for (at, provider) in config.providers.iter().enumerate() {
        conflicts.provider(&format!("providers.{at}"), provider);
    }
    let names = config.mcp.iter().map(|one| one.name.as_str());
    conflicts.duplicates("mcp", "a name that no other server has", names);
    for (at, server) in config.mcp.iter().enumerate() {
        conflicts.mcp(&format!("mcp.{at}"), server, config);
    }
    conflicts.problems
}

struct Conflicts<'a> {
    origin: Origins<'a>,
    problems: Vec<Problem>,
}

const NOT_BOTH: &str = "a tool that is not both available from the start and in `attachable`";

impl Conflicts<'_> {
    /// `place` is like `providers.0.headers`.
    fn add(&mut self, place: &str, value: &dyn Display, allowed: &str) {
        if let Some(origin) = (self.origin)(place) {
            let (key, value) = (path(place), value.to_string());
            let problem = Problem::not_allowed(&origin, &key, &value, allowed);
            self.problems.push(problem);
        }
    }

    /// Deadlines of models and tools have to be shorter than the stall limit, so that waiting for
    /// one is no stall.
    fn deadlines(&mut self, config: &Config) {
        const STALL: &str = "supervisor.stall_limit";
        let (stall, model, tools) = (config.supervisor.stall_limit, &config.model, &config.tools);
        for (key, span) in [
            ("model.connect_deadline", Some(model.connect_deadline)),
            ("model.headers_deadline", model.headers_deadline),
            ("model.first_token_deadline", model.first_token_deadline),
            ("model.idle_deadline", Some(model.idle_deadline)),
            ("model.total_deadline", Some(model.total_deadline)),
            ("tools.call_deadline", Some(tools.call_deadline)),
            ("tools.search_deadline", Some(tools.search_deadline)),
        ] {
            let origins = ((self.origin)(STALL), (self.origin)(key));
            let ((Some(_), Some(of_deadline)), Some(span)) = (origins, span) else {
                continue;
            };
            let (of_stall, of_key) = (format_span(stall), format_span(span));
            // The problem names the value that the user has set, if it is only one of the two.
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
        // Without a folder, the notes are the files of the project.
        if config.notes.write && config.notes.dir.is_none() {
            self.add("notes.write", &true, "false unless `notes.dir` is set");
        }
        if config.web.search == Some(SearchService::Searxng) && config.web.search_url.is_none() {
            let allowed = "`web.search_url` beside it, or \"tavily\" or \"brave\"";
            self.add("web.search", &"searxng", allowed);
        }
    }

    /// Reports each name in a list that an earlier entry has.
    fn duplicates<'n>(&mut self, list: &str, allowed: &str, names: impl Iterator<Item = &'n str>) {
        let mut seen = BTreeSet::new();
        for (at, name) in names.enumerate() {
            let place = format!("{list}.{at}.name");
            if (self.origin)(&place).is_some() && !seen.insert(name) {
                self.add(&place, &name, allowed);
            }
        }
    }

    fn profiles(&mut self, config: &Config) {
        let known: Vec<ProfileName> = config.profile_names().collect();
        for (at, profile) in config.profiles.iter().enumerate() {
            let mut parents = profile.sub_agent_of.iter();
            if let Some(name) = parents.find(|name| !known.contains(name)) {
                let place = format!("profiles.{at}.sub_agent_of");
                self.add(&place, name, "`oracle` or names of [[profiles]]");
            }
            // A profile without lists of its own inherits those of the section.
            let Some(tool) = in_both(&profile.over(config)) else {
                continue;
            };
            let places = ["attachable", "tools"].map(|key| format!("profiles.{at}.{key}"));
            let from_file =
                |place: &&String| matches!((self.origin)(place), Some(Origin::ConfigFile { .. }));
            if let Some(place) = places.iter().find(from_file) {
                self.add(place, &tool, NOT_BOTH);
            }
        }
        let names = config.profiles.iter().map(|one| one.name.as_str());
        self.duplicates("profiles", "a name that no other profile has", names);
    }

    fn headers(&mut self, place: &str, open: &Pairs, secret: &Pairs) {
        let headers = join(place, "headers");
        for header in open.keys() {
            if may_be_secret(header) {
                let allowed = "headers without secrets; put secret values into environment \
                               variables and name these in `header_env`";
                self.add(&headers, header, allowed);
            }
            if secret.contains_key(header) {
                let allowed = "a header that is not also in `header_env`";
                self.add(&headers, header, allowed);
            }
        }
    }

    fn mcp(&mut self, place: &str, server: &McpServer, config: &Config) {
        match (&server.command, &server.url) {
            (Some(_), Some(url)) => {
                let allowed = "exactly one of `command` and `url`";
                self.add(&join(place, "url"), url, allowed);
            }
            // A key that is missing has no place in the file.
            (None, None) => {
                let allowed = "a server with a `command` or a `url`, which this one lacks";
                self.add(&join(place, "name"), &server.name, allowed);
            }
            _ => {}
        }
        for variable in server.env.keys().filter(|name| may_be_secret(name)) {
            let allowed = "variables without secrets; name those of Oracle's own environment in \
                           `pass_env`";
            self.add(&join(place, "env"), variable, allowed);
        }
        self.headers(place, &server.headers, &server.header_env);
        let stall = config.supervisor.stall_limit;
        // A session waits a second longer.
        let is_long = |span: &Duration| span.saturating_add(Duration::from_secs(1)) >= stall;
        if let Some(span) = server.call_deadline.filter(is_long) {
            let stall = format_span(stall);
            let allowed = format!("a second less than `supervisor.stall_limit`, which is {stall}");
            self.add(&join(place, "call_deadline"), &format_span(span), &allowed);
        }
    }

    fn cluster(&mut self, config: &Config) {
        let cluster = &config.cluster;
        if let Some(url) = &cluster.url {
            if config.journal.url.is_none() {
                let allowed = "only together with `journal.url`, because nodes share a database";
                self.add("cluster.url", url, allowed);
            }
            if cluster.key_env.is_none() && cluster.key_file.is_none() {
                let allowed = "only together with `key_env` or `key_file`, which all nodes share";
                self.add("cluster.url", url, allowed);
            }
        }
    }

    fn provider(&mut self, place: &str, provider: &Provider) {
        if let (Some(variable), Some(_)) = (&provider.key_env, &provider.key_file) {
            let allowed = "only one of `key_env` and `key_file`";
            self.add(&join(place, "key_env"), variable, allowed);
        }
        if provider.structured_output == Some(true) && !provider.dialect().has_formats() {
            let allowed = "false, or another dialect";
            self.add(&join(place, "structured_output"), &true, allowed);
        }
        self.headers(place, &provider.headers, &provider.header_env);
        let models = join(place, "models");
        let names = provider.models.iter().map(|one| one.name.as_str());
        let allowed = "a name that no other model of the provider has";
        self.duplicates(&models, allowed, names);
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
                let allowed =
                    "no price unless both `input` and `output` are set, here and in each tier";
                self.add(rate, &usd::dollars(set), allowed);
            }
        }
    }
}

/// A tool in both lists: one that every session has cannot be attached.
fn in_both(config: &Config) -> Option<String> {
    let only = config.tools.only.as_ref()?;
    let mut given = config.tools.attachable.iter();
    given.find(|tool| only.contains(tool)).cloned()
}
