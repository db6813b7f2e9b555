//! Reloads the configuration of a running system: some keys change at once, others at the next
//! start.
//!
//! **Invariant:** the whole configuration is validated as at a start before any of it takes effect.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use toml::{Table, Value};

use super::profiles::ProfileFactory;
use crate::{
    actor::{Changes, Oracle, Reload},
    config::Config,
};

/// Keys, and prefixes of keys, whose values may change while the system runs.
const LIVE: &str = "oracle. budget. fallback. turn. delegation. prompt. tools.max_parallel tools.only \
    tools.attachable tools.pinned tools.grant_wait model.attempts model.patience \
    session.inbox_capacity tenants.";
/// Keys that may change to models of running gateways only.
const MODELS: [&str; 2] = ["model.chain", "profiles"];

pub(super) type ConfigReader = Arc<dyn Fn() -> Result<Config, Vec<String>> + Send + Sync>;

/// The configuration of a running system, and what profiles are made of.
pub(super) struct Live {
    profile_factory: ProfileFactory,
    // A lock, because requests for a reload may overlap.
    running: Mutex<Config>,
}

impl Live {
    pub(super) fn new(profile_factory: ProfileFactory, running: Config) -> Self {
        Self {
            profile_factory,
            running: Mutex::new(running),
        }
    }

    /// Builds the profiles anew, with these tools besides those of the system's start.
    #[cfg(feature = "mcp")]
    pub(super) fn retool(
        &self,
        system: &Oracle,
        more: impl FnOnce() -> Vec<Arc<dyn crate::tool::Tool>>,
    ) {
        let running = self.running.lock();
        self.profile_factory.add_tools(more());
        match self.profile_factory.profiles(&running) {
            Ok(profiles) => system.live_by(profiles),
            Err(error) => tracing::warn!(%error, "cannot build the profiles with changed tools"),
        }
    }
}

/// Applies the live changes of a configuration.
pub(super) struct Reloader {
    pub(super) read: ConfigReader,
    pub(super) live: Arc<Live>,
}

impl Reload for Reloader {
    fn reload(&self, system: &Oracle) -> Result<Changes, Vec<String>> {
        let profile_factory = &self.live.profile_factory;
        let mut running = self.live.running.lock();
        let wanted = (self.read)()?;
        let problems = profile_factory.problems(&wanted, None);
        if !problems.is_empty() {
            return Err(problems);
        }
        let is_live = |key: &str| match MODELS.contains(&key) {
            true => profile_factory.serves(key, &wanted),
            false => is_live(key),
        };
        let (merged, changes) = merged(&running, &wanted, is_live).map_err(one)?;
        system.live_by(profile_factory.profiles(&merged).map_err(one)?);
        system.tenants().limit(merged.tenants.clone());
        *running = merged;
        Ok(changes)
    }
}

fn one(error: impl ToString) -> Vec<String> {
    vec![error.to_string()]
}

fn is_live(key: &str) -> bool {
    let mut live = LIVE.split(' ');
    live.any(|known| key == known || known.ends_with('.') && key.starts_with(known))
}

/// Returns the running configuration with the live changes, and the keys that differ.
fn merged(
    running: &Config,
    wanted: &Config,
    is_live: impl Fn(&str) -> bool,
) -> Result<(Config, Changes), String> {
    let table = |config| Table::try_from(config).map_err(|error| error.to_string());
    let (mut merged, mut changes) = (table(running)?, Changes::default());
    let mut change = |name: String, there: &mut Table, key: &str, value: Option<&Value>| {
        if there.get(key) == value {
        } else if !is_live(&name) {
            changes.waiting.push(name);
        } else {
            match value {
                Some(value) => there.insert(key.to_owned(), value.clone()),
                None => there.remove(key),
            };
            changes.changed.push(name);
        }
    };
    for (section, wanted) in table(wanted)? {
        match (&wanted, merged.get_mut(&section)) {
            (Value::Table(wanted), Some(Value::Table(there))) => {
                let keys: BTreeSet<String> = there.keys().chain(wanted.keys()).cloned().collect();
                for key in keys {
                    change(format!("{section}.{key}"), there, &key, wanted.get(&key));
                }
            }
            _ => change(section.clone(), &mut merged, &section, Some(&wanted)),
        }
    }
    changes.changed.sort_unstable();
    changes.waiting.sort_unstable();
    let merged = merged.try_into::<Config>();
    let merged = merged.map_err(|error| error.message().to_owned())?;
    Ok((merged, changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    fn whole() -> Config {
        let documented = oracle_defaults::SETTINGS;
        let example = |line: &str| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        };
        config(&documented.lines().map(example).collect::<String>())
    }

    #[test]
    fn live_keys_exist_in_the_configuration() {
        let whole = Table::try_from(whole()).unwrap();
        let keys = whole.iter().flat_map(|(section, values)| match values {
            Value::Table(values) => values
                .keys()
                .map(|key| format!("{section}.{key}"))
                .collect(),
            _ => vec![section.clone()],
        });
        let there: Vec<String> = keys.collect();
        for known in LIVE.split(' ').chain(MODELS) {
            let is_in = |key: &String| key == known || key.starts_with(known);
            assert!(there.iter().any(is_in), "{known}");
        }
    }

    #[test]
    fn reload_applies_live_keys_and_defers_the_rest() {
        let running =
            config("[oracle]\nmax_turns = 5\n[data]\ndir = 'a'\n[budget]\nmax_tokens = 9\n");
        let wanted = config(
            "[oracle]\nmax_turns = 6\n[server]\nmax_body = 2048\n[data]\ndir = 'a'\n\
             [[profiles]]\nname = 'x'\n[tenants.named.acme]\nmax_queued = 5\n",
        );
        let live = |key: &str| is_live(key) || MODELS.contains(&key);
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
        assert_eq!(changes.waiting, ["server.max_body"]);
        let mut expected = wanted;
        expected.server.max_body = Config::default().server.max_body;
        assert_eq!(merged, expected);
    }

    #[test]
    fn merging_a_configuration_with_itself_changes_nothing() {
        let whole = whole();
        let (same, changes) = merged(&whole, &whole, |_| true).unwrap();
        assert_eq!((same, changes), (whole.clone(), Changes::default()));
        let (other, changes) = merged(&Config::default(), &whole, |_| true).unwrap();
        assert_eq!(other, whole);
        assert!(changes.waiting.is_empty());
    }
}
