//! The configuration of a running system, read anew: what of it can be changed without a new start.
//!
//! **Invariant:** the whole of it is checked as at a start before any of it counts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use toml::{Table, Value};

use super::profiles::Workshop;
use crate::{
    actor::{Changes, Oracle, Reload},
    config::Config,
};

/// Keys, and beginnings of keys, whose values may change while the system runs; the others count after the
/// next start.
const LIVE: [&str; 16] = [
    "oracle.",
    "budget.",
    "fallback.",
    "turn.",
    "delegation.",
    "prompt.",
    "query.second_opinion_below",
    "query.second_opinion_deadline",
    "tools.max_parallel",
    "tools.only",
    "tools.attachable",
    "model.attempts",
    "model.patience",
    "session.inbox_capacity",
    "tenants.",
    "profiles",
];
/// The models that are asked where no profile says otherwise.
const CHAIN: &str = "model.chain";
/// Who is asked what a query is.
const OPINION: &str = "query.second_opinion_model";

/// Reads a configuration, wherever it is.
pub(super) type Read = Arc<dyn Fn() -> Result<Config, Vec<String>> + Send + Sync>;

/// See the module.
pub(super) struct Reloader {
    read: Read,
    workshop: Workshop,
    // A lock, because anybody may want a reload: one is carried out after the other.
    running: Mutex<Config>,
}

impl Reloader {
    pub(super) fn new(read: Read, workshop: Workshop, running: Config) -> Self {
        Self {
            read,
            workshop,
            running: Mutex::new(running),
        }
    }
}

impl Reload for Reloader {
    fn reload(&self, system: &Oracle) -> Result<Changes, Vec<String>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = (self.read)()?;
        let problems = self.workshop.problems(&wanted);
        if !problems.is_empty() {
            return Err(problems);
        }
        let is_live = |key: &str| self.is_live(key, &wanted);
        let (merged, changes) = merged(&running, &wanted, is_live).map_err(one)?;
        let profiles = self.workshop.profiles(&merged).map_err(one)?;
        system.live_by(profiles);
        system.tenants().limit(merged.tenants.clone());
        *running = merged;
        Ok(changes)
    }
}

fn one(error: impl ToString) -> Vec<String> {
    vec![error.to_string()]
}

impl Reloader {
    /// Models are asked through gateways, and these begin with the system.
    fn is_live(&self, key: &str, wanted: &Config) -> bool {
        let live = |key: &str| LIVE.iter().any(|known| is_in(key, known));
        match key {
            CHAIN => self.workshop.serves_chain(wanted),
            OPINION => self.workshop.serves_opinion(wanted),
            "profiles" => self.workshop.serves_profiles(wanted),
            key => live(key),
        }
    }
}

fn is_in(key: &str, known: &str) -> bool {
    key == known || (known.ends_with('.') && key.starts_with(known))
}

/// What runs with what may change of what is wanted, and which keys these are.
fn merged(
    running: &Config,
    wanted: &Config,
    is_live: impl Fn(&str) -> bool,
) -> Result<(Config, Changes), String> {
    let (mut merged, wanted) = (keys(running)?, keys(wanted)?);
    let mut changes = Changes::default();
    let mut all: Vec<String> = merged.keys().chain(wanted.keys()).cloned().collect();
    all.sort_unstable();
    all.dedup();
    for key in all {
        let value = wanted.get(&key);
        if merged.get(&key) == value {
            continue;
        }
        if !is_live(&key) {
            changes.waiting.push(key);
            continue;
        }
        match value {
            Some(value) => merged.insert(key.clone(), value.clone()),
            None => merged.remove(&key),
        };
        changes.changed.push(key);
    }
    let mut table = Table::new();
    for (key, value) in merged {
        match key.split_once('.') {
            None => drop(table.insert(key, value)),
            Some((section, key)) => {
                let section = table.entry(section).or_insert_with(|| Table::new().into());
                if let Value::Table(section) = section {
                    section.insert(key.to_owned(), value);
                }
            }
        }
    }
    let merged = table.try_into::<Config>();
    let merged = merged.map_err(|error| error.message().to_owned())?;
    Ok((merged, changes))
}

/// All that is set, by section and key; lists of tables whole.
fn keys(config: &Config) -> Result<BTreeMap<String, Value>, String> {
    let table = Table::try_from(config).map_err(|error| error.to_string())?;
    let mut keys = BTreeMap::new();
    for (section, value) in table {
        match value {
            Value::Table(values) => {
                let named = |(key, value)| (format!("{section}.{key}"), value);
                keys.extend(values.into_iter().map(named));
            }
            list => drop(keys.insert(section, list)),
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    /// As the documented file has it, with all examples.
    fn whole() -> Config {
        let documented = include_str!("../../config/oracle.toml");
        let example = |line: &str| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        };
        config(&documented.lines().map(example).collect::<String>())
    }

    #[test]
    fn what_is_live_is_there() {
        let there = keys(&whole()).unwrap();
        for known in LIVE.into_iter().chain([CHAIN, OPINION]) {
            assert!(there.keys().any(|key| is_in(key, known)), "{known}");
        }
    }

    #[test]
    fn what_may_change_changes_and_the_rest_waits() {
        let running =
            config("[oracle]\nmax_turns = 5\n[data]\ndir = 'a'\n[budget]\nmax_tokens = 9\n");
        let wanted = config(
            "[oracle]\nmax_turns = 6\n[server]\nprogress = true\n[data]\ndir = 'a'\n\
             [[profiles]]\nname = 'x'\n[tenants.named.acme]\nmax_queued = 5\n",
        );
        let live = |key: &str| LIVE.iter().any(|known| is_in(key, known));
        let (merged, changes) = merged(&running, &wanted, live).unwrap();
        assert_eq!(
            changes.changed,
            [
                "budget.max_tokens",
                "oracle.max_turns",
                "profiles",
                "tenants.named"
            ]
        );
        assert_eq!(changes.waiting, ["server.progress"]);
        let mut expected = wanted;
        expected.server.progress = false;
        assert_eq!(merged, expected);
    }

    #[test]
    fn a_configuration_is_the_same_after_it_was_taken_apart() {
        let whole = whole();
        let (same, changes) = merged(&whole, &whole, |_| true).unwrap();
        assert_eq!((same, changes), (whole.clone(), Changes::default()));
        let (other, changes) = merged(&Config::default(), &whole, |_| true).unwrap();
        assert_eq!(other, whole);
        assert!(changes.waiting.is_empty());
    }
}
