//! `oracle models`: lists the models of all providers, concurrently.

use std::{collections::BTreeSet, path::Path, time::Duration};

use futures_util::future::join_all;
use tokio::time::timeout;

use super::{CommandContext, run::on_runtime};
use crate::{
    actor::Clock,
    app::{BuildError, TABLE, providers::Providers},
    cli::{
        CliError, Environment,
        models::{self, Listed, ListedModel, Overview},
    },
    config::{Config, ModelChoice, Preset, Prices, Provider},
    disk,
    llm::{ModelSettings, Remote},
    model::{Day, Price},
};

const PATIENCE: Duration = Duration::from_secs(5);
/// The preset without a key: only a request shows whether its server runs.
const LOCAL: &str = "ollama";

pub(super) fn models(mut context: CommandContext<'_>) -> Result<(), CliError> {
    let loaded = context.load_with_local_model()?;
    let (environment, terminal) = (context.environment, context.terminal);
    let facts = crate::app::prices(&loaded.config, environment)?;
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
    let overview = Overview {
        chain: loaded.choice.chain.models().to_vec(),
        because: loaded.model_choice_reason(),
        providers: listed,
        advice,
        table: format!("{} of {}", facts.source(), facts.date()),
    };
    models::print(&overview, terminal)
}

/// Stores a table of models where a start looks for one.
pub(super) fn update(from: &Path, context: CommandContext<'_>) -> Result<(), CliError> {
    const MOST: usize = 16 * 1024 * 1024;
    let name = from.display().to_string();
    let text = crate::app::text_of(from, MOST).map_err(|error| {
        CliError::usage(format_args!("cannot read the table `{name}`: {error}"))
    })?;
    Prices::check_table(&text, &name).map_err(BuildError::from)?;
    let directory = context.directory()?;
    let path = directory.join(TABLE);
    // A process that starts meanwhile finds the old table or the new one.
    let stored =
        disk::private_directory(&directory).and_then(|()| disk::replace(&path, text.as_bytes()));
    stored.map_err(|error| {
        CliError::failed(format_args!("cannot write `{}`: {error}", path.display()))
    })?;
    let said = format!("stored the table in `{}`", path.display());
    context.terminal.err.say(said);
    Ok(())
}

/// The models that are known without a request: those of the chain, of configured providers and of
/// providers whose key is set, and the built-in one.
pub(super) fn known(config: &Config, environment: &Environment) -> Result<Vec<String>, CliError> {
    let facts = crate::app::prices(config, environment)?;
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
