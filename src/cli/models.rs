//! `oracle models`: lists providers, whether they respond, and their models, concurrently.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Subcommand;
use futures_util::future::join_all;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    CliError, CliResult,
    context::CommandContext,
    runtime::on_runtime,
    terminal::{Terminal, harmless},
};
use crate::{
    actor::Clock,
    app::{self, BuildError, Providers},
    llm::{ModelSettings, Remote},
    model::{Day, NanoUsd, Price},
};
use oracle_config::{Config, Environment, ModelChoice, Preset, Prices, Provider};
use oracle_ports::disk;

const WIDEST: usize = 40;
const PATIENCE: Duration = Duration::from_secs(5);
/// The preset without a key: only a request shows whether its server runs.
const LOCAL: &str = "ollama";

/// A subcommand of `oracle models`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ModelsCommand {
    /// Store a newer table of models and prices in the data directory
    Update {
        /// The table, in the form of config/models.toml
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
    },
}

/// A provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Listed {
    /// The provider's name.
    name: String,
    /// Its settings; `None` if it is built in or misconfigured.
    settings: Option<Provider>,
    /// The reason why it cannot be used.
    problem: Option<String>,
    /// The models that it offers.
    models: Vec<ListedModel>,
}

/// A model of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct ListedModel {
    /// The name without the provider.
    name: String,
    /// Context window in tokens, if known.
    context_window: Option<u64>,
    /// Longest reply in tokens, if known.
    #[serde(rename = "max_output_tokens")]
    max_output: Option<u64>,
    /// The price, if known.
    #[serde(rename = "usd_per_million_tokens", serialize_with = "usd_of")]
    price: Option<Price>,
    /// The date on which its provider switches it off, if known.
    retires: Option<String>,
    /// The model to use instead, as `provider/model`.
    successor: Option<String>,
    /// Its position in the chain, from 1.
    choice: Option<usize>,
}

pub(super) fn run(command: Option<&ModelsCommand>, context: CommandContext<'_>) -> CliResult {
    match command {
        None => list(context),
        Some(ModelsCommand::Update { from }) => update(from, context),
    }
}

fn list(mut context: CommandContext<'_>) -> CliResult {
    let loaded = context.load_with_local_model()?;
    let (environment, terminal) = (context.environment, context.terminal);
    let facts = app::prices(&loaded.config, environment)?;
    let providers = Providers::new(&loaded.config, environment, &facts);
    let asking = ModelLister {
        providers: &providers,
        choice: &loaded.choice,
    };
    let mut names = providers.names();
    names.retain(|name| asking.is_named(name) || providers.has_key(name) || name == LOCAL);
    terminal.status(&format!("asking {}", names.join(", ")));
    let listed = on_runtime(Box::pin(async {
        Ok::<_, CliError>(join_all(names.iter().map(|name| asking.list(name))).await)
    }))?;
    terminal.clear_status();
    let mut listed: Vec<Listed> = listed.into_iter().flatten().collect();
    let nobody = listed.iter().all(|provider| provider.problem.is_some());
    listed.push(asking.offline());
    let is_offline = loaded.choice.chain.models() == ["offline/offline"];
    let mut advice = (nobody && is_offline).then(advice).unwrap_or_default();
    let today = Day::of(Clock::system().now());
    for model in loaded.choice.chain.models() {
        let (provider, name) = model.split_once('/').unwrap_or((model, ""));
        let end = providers.choice(provider, name).retirement;
        let warning = end.and_then(|end| end.warning(model, today));
        advice.extend(warning.map(|warning| warning.join(": ")));
    }
    let (chain, because) = (loaded.choice.chain.models(), loaded.model_choice_reason());
    let table = format!("{} of {}", facts.source(), facts.date());
    if terminal.json {
        return terminal.out.json(&json!({
            "chain": chain,
            "because": because,
            "providers": listed.iter().map(as_json).collect::<Vec<_>>(),
            "advice": advice,
            "table": table,
        }));
    }
    for provider in &listed {
        print(provider, terminal)?;
    }
    terminal.line(&format!("\nin use: {}, {because}", chain.join(", ")))?;
    terminal.line(&format!("table of models: {table}"))?;
    for advice in &advice {
        terminal.line(advice)?;
    }
    Ok(())
}

/// Stores a table of models where a start looks for one.
fn update(from: &Path, context: CommandContext<'_>) -> CliResult {
    const MOST: usize = 16 * 1024 * 1024;
    let name = from.display().to_string();
    let text = app::text_of(from, MOST).map_err(|error| {
        CliError::usage(format_args!("cannot read the table `{name}`: {error}"))
    })?;
    Prices::check_table(&text, &name).map_err(BuildError::from)?;
    let directory = context.directory()?;
    let path = directory.join(app::TABLE);
    // A process that starts meanwhile finds the old table or the new one.
    let stored =
        disk::private_directory(&directory).and_then(|()| disk::replace(&path, text.as_bytes()));
    stored.map_err(|error| {
        CliError::failed(format_args!("cannot write `{}`: {error}", path.display()))
    })?;
    let said = format!("stored the table in `{}`", path.display());
    context.terminal.say(said);
    Ok(())
}

/// The models that are known without a request: those of the chain, of configured providers and of
/// providers whose key is set, and the built-in one.
pub(super) fn known(config: &Config, environment: &Environment) -> CliResult<Vec<String>> {
    let facts = app::prices(config, environment)?;
    let providers = Providers::new(config, environment, &facts);
    let mut known = config.choice(environment.pairs()).chain.models().to_vec();
    for name in providers.names() {
        let preset = Preset::named(&name).filter(|_| providers.has_key(&name));
        let usual = preset.and_then(|preset| preset.default_model);
        let models = config.provider(&name).unwrap_or_default().models;
        let models = models.iter().map(|model| model.name.as_str());
        known.extend(models.chain(usual).map(|model| format!("{name}/{model}")));
    }
    known.retain(|model| model != "offline/offline");
    known.push("offline".to_owned());
    known.sort_unstable();
    known.dedup();
    Ok(known)
}

struct ModelLister<'a> {
    providers: &'a Providers<'a>,
    choice: &'a ModelChoice,
}

impl ModelLister<'_> {
    /// Whether the chain, the configuration or the environment names the provider.
    fn is_named(&self, name: &str) -> bool {
        self.choice.chain.providers().contains(&name) || self.providers.is_addressed(name)
    }

    /// `None` for the local preset if it is unreachable and nothing names it.
    async fn list(&self, name: &str) -> Option<Listed> {
        let mut listed = Listed {
            name: name.to_owned(),
            ..Listed::default()
        };
        let provider = match self.providers.find(name) {
            Ok(found) => found?,
            Err(error) => {
                listed.problem = Some(error.to_string());
                return Some(listed);
            }
        };
        let told = match self.ask(&provider).await {
            Ok(told) => told,
            Err(_) if name == LOCAL && !self.is_named(name) => return None,
            Err(problem) => {
                listed.problem = Some(problem);
                Vec::new()
            }
        };
        let known = provider.models.iter().map(|model| model.name.clone());
        let mut names: BTreeSet<String> = known.collect();
        for model in self.choice.chain.models() {
            let own = model.split_once('/').filter(|(of, _)| *of == name);
            names.extend(own.map(|(_, model)| model.to_owned()));
        }
        names.extend(told.iter().map(|model| model.name.clone()));
        let models = names.iter().map(|model| self.model(name, model, &told));
        listed.models = models.collect();
        listed.settings = Some(provider);
        Some(listed)
    }

    async fn ask(&self, provider: &Provider) -> Result<Vec<ModelSettings>, String> {
        let settings = self.providers.settings(provider, &[]);
        let settings = settings.map_err(|error| error.to_string())?;
        let remote = Remote::new(settings).map_err(|error| error.to_string())?;
        match timeout(PATIENCE, remote.list_models()).await {
            Ok(told) => told.map_err(|fault| fault.to_string()),
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        }
    }

    /// The context window is the configured one, else the server's, else the price list's.
    fn model(&self, provider: &str, name: &str, told: &[ModelSettings]) -> ListedModel {
        let choice = self.providers.choice(provider, name);
        let end = choice.retirement;
        let told = told.iter().find(|model| model.name == name);
        let window = told.and_then(|model| model.context_window);
        let output = told.and_then(|model| model.max_output);
        let configured = self.providers.configured_window(provider, name);
        ListedModel {
            name: name.to_owned(),
            context_window: configured.or(window).or(choice.context_window),
            max_output: choice.max_output.or(output),
            price: choice.price,
            retires: end.as_ref().map(|end| end.day.to_string()),
            successor: end.and_then(|end| Some(end.successor?.to_string())),
            choice: self.place(provider, name),
        }
    }

    fn place(&self, provider: &str, name: &str) -> Option<usize> {
        let full = format!("{provider}/{name}");
        let mut models = self.choice.chain.models().iter();
        models.position(|model| *model == full).map(|at| at + 1)
    }

    fn offline(&self) -> Listed {
        let name = "offline";
        Listed {
            name: name.to_owned(),
            models: vec![ListedModel {
                name: name.to_owned(),
                price: Some(Price::FREE),
                choice: self.place(name, name),
                ..ListedModel::default()
            }],
            ..Listed::default()
        }
    }
}

fn advice() -> Vec<String> {
    let keys: Vec<&str> = Preset::key_variables().collect();
    vec![
        "Only the built-in offline model is available. To use another model,".to_owned(),
        format!("  set one of {},", keys.join(", ")),
        "  start Ollama or choose one of its models with --model ollama/NAME,".to_owned(),
        "  or add a compatible server under [[providers]] in the configuration file.".to_owned(),
    ]
}

fn print(provider: &Listed, terminal: &mut Terminal) -> CliResult {
    terminal.line(&head(provider))?;
    let models = provider.models.iter();
    let widths = models.map(|model| model.name.chars().count());
    let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
    for model in &provider.models {
        terminal.line(&line(model, width))?;
    }
    Ok(())
}

fn head(provider: &Listed) -> String {
    let mut head = provider.name.clone();
    match &provider.settings {
        None if provider.problem.is_some() => {}
        None => head.push_str("  built in, needs no key and no network"),
        Some(server) => {
            let (url, dialect) = (&server.base_url, server.dialect().as_str());
            let key = key_source(server);
            head.push_str(&format!("  {url} ({dialect}), {key}"));
        }
    }
    if let Some(problem) = &provider.problem {
        head.push_str(&format!("; unavailable: {}", harmless(problem)));
    }
    head
}

/// Where a provider's key comes from, as text.
pub(super) fn key_source(provider: &Provider) -> String {
    match (&provider.key_env, &provider.key_file) {
        (Some(name), _) => format!("key from {name}"),
        (None, Some(path)) => format!("key from `{}`", path.display()),
        (None, None) => "no key".to_owned(),
    }
}

fn line(model: &ListedModel, width: usize) -> String {
    let mut facts = Vec::new();
    if let Some(window) = model.context_window {
        facts.push(format!("{window} tokens"));
    }
    if model.price == Some(Price::FREE) {
        facts.push("free".to_owned());
    } else if let Some(price) = &model.price {
        let [input, cached, output] = [price.input, price.cached, price.output].map(dollars);
        facts.push(format!("{input} in, {cached} cached, {output} out"));
    }
    facts.extend(model.retires.as_ref().map(|day| match &model.successor {
        Some(successor) => format!("retires on {day}, then {successor}"),
        None => format!("retires on {day}"),
    }));
    match model.choice {
        None => {}
        Some(1) => facts.push("first choice".to_owned()),
        Some(place) => facts.push(format!("choice {place}")),
    }
    let name = harmless(&model.name);
    let line = format!("  {name:<width$}  {}", facts.join("; "));
    line.trim_end().to_owned()
}

fn dollars(money: NanoUsd) -> String {
    let text = money.to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn as_json(provider: &Listed) -> Value {
    let server = provider.settings.as_ref();
    let key = server.and_then(|server| match (&server.key_env, &server.key_file) {
        (Some(variable), _) => Some(json!({ "variable": variable })),
        (None, file) => file.as_ref().map(|file| json!({ "file": file })),
    });
    json!({
        "name": provider.name,
        "dialect": server.map(|server| server.dialect().as_str()),
        "base_url": server.map(|server| &server.base_url),
        "key": key,
        "reachable": provider.problem.is_none(),
        "problem": provider.problem,
        "models": provider.models,
    })
}

fn usd_of<S: Serializer>(price: &Option<Price>, serializer: S) -> Result<S::Ok, S::Error> {
    let price = price.as_ref().map(|price| {
        let [input, cached, output] = [price.input, price.cached, price.output].map(usd);
        json!({ "input": input, "cached": cached, "output": output })
    });
    price.serialize(serializer)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the shortest decimal of the nearest float is the amount again"
)]
pub(super) fn usd(money: NanoUsd) -> f64 {
    money.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_printed_without_trailing_zeros() {
        for (nanos, text) in [
            (0, "$0"),
            (3_000_000_000, "$3"),
            (75_000_000, "$0.075"),
            (10_000_000_000, "$10"),
        ] {
            assert_eq!(dollars(NanoUsd(nanos)), text);
        }
    }
}
