//! From a configuration to the profiles of a system: the one that the sections describe, and those beside it.

use std::sync::Arc;

use super::{
    BuildError, Builder,
    backends::{Chains, serves},
    classifier, composer, prices, project_context, project_name, settings, variables,
};
use crate::{
    actor::{Profile, Profiles},
    config::{Config, Environment, ModelChain},
    kernel::{FallbackClassifier, Policy, TurnPolicy},
    llm::Backend,
    model::{ProfileName, ToolSpec},
    tool::Registry,
};

/// What profiles are made with, besides a configuration: it stays as long as the system does.
pub(super) struct Workshop {
    environment: Environment,
    project_name: String,
    /// Those of the host and the built-in ones.
    own: Vec<Arc<dyn Backend>>,
    /// All that run.
    backends: Vec<Arc<dyn Backend>>,
    tools: Arc<Registry>,
    fallback: Option<Arc<dyn FallbackClassifier>>,
    turn: Option<Arc<dyn TurnPolicy>>,
}

impl Builder {
    pub(super) fn workshop(&self, backends: &[Arc<dyn Backend>]) -> Result<Workshop, BuildError> {
        let tools = Arc::new(self.registry()?);
        Ok(self.workshop_with(backends, tools))
    }

    fn workshop_with(&self, backends: &[Arc<dyn Backend>], tools: Arc<Registry>) -> Workshop {
        let project = self.project.as_deref();
        Workshop {
            environment: self.environment.clone(),
            project_name: project.map(project_name).unwrap_or_default(),
            own: self.backends.clone(),
            backends: backends.to_vec(),
            tools,
            fallback: self.fallback.clone(),
            turn: self.turn.clone(),
        }
    }

    /// All that is wrong with the configuration, short of starting a system with it.
    pub(super) fn problems(&self) -> Vec<String> {
        match self.workshop(&[]) {
            Ok(workshop) => workshop.problems(&self.config),
            // Without tools nothing can be said of those that profiles name.
            Err(error) => {
                let workshop = self.workshop_with(&[], Arc::new(Registry::none()));
                workshop.judged(&self.config, Some(error))
            }
        }
    }
}

impl Workshop {
    /// All profiles of a configuration.
    pub(super) fn profiles(&self, config: &Config) -> Result<Profiles, BuildError> {
        let default = self.profile(&ProfileName::oracle(), config)?;
        let mut profiles = Profiles::new(default);
        for wanted in &config.profiles {
            let mut profile = self.profile(&wanted.name, &wanted.over(config))?;
            if let Some(description) = &wanted.description {
                profile = profile.described(description);
            }
            profiles = profiles.with(wanted.name.clone(), profile);
        }
        Ok(profiles)
    }

    fn profile(&self, name: &ProfileName, config: &Config) -> Result<Profile, BuildError> {
        let mut policy = Policy::new(self.chains(config).models(&self.backends)?, Arc::default());
        settings::apply(config, &mut policy);
        policy.second_opinion = self.chains(config).second_opinion(&self.backends)?;
        (policy.tools, policy.attachable) = self.tools(name, config)?;
        if let Some(classifier) = &self.fallback {
            policy.classifier = Arc::clone(classifier);
        }
        if let Some(turn) = &self.turn {
            policy.turn = Arc::clone(turn);
        }
        let variables = variables(config, self.project_name.clone(), std::iter::empty())?;
        let profile = Profile::new(policy, variables, Arc::clone(&self.tools));
        Ok(profile.with_composer(Arc::new(composer(config)?)))
    }

    fn chains<'a>(&'a self, config: &'a Config) -> Chains<'a> {
        Chains {
            config,
            environment: &self.environment,
            own: &self.own,
        }
    }

    /// Whether what runs serves the models that are asked where no profile says otherwise.
    pub(super) fn serves_chain(&self, config: &Config) -> bool {
        let chain = self.chains(config).chain();
        let mut providers = chain.providers().into_iter();
        providers.all(|provider| serves(&self.backends, provider))
    }

    /// The same for whoever is asked what a query is.
    pub(super) fn serves_opinion(&self, config: &Config) -> bool {
        let model = config.query.second_opinion_model.as_deref();
        model.is_none_or(|model| {
            let provider = model
                .split_once('/')
                .map_or(model, |(provider, _)| provider);
            serves(&self.backends, provider)
        })
    }

    /// The same for those of the profiles.
    pub(super) fn serves_profiles(&self, config: &Config) -> bool {
        let chains = config
            .profiles
            .iter()
            .filter_map(|profile| profile.chain.as_ref());
        let mut providers = chains.flat_map(ModelChain::providers);
        providers.all(|provider| serves(&self.backends, provider))
    }

    /// All that is wrong with a configuration, as a start would find it.
    pub(super) fn problems(&self, config: &Config) -> Vec<String> {
        self.judged(config, None)
    }

    fn judged(&self, config: &Config, no_tools: Option<BuildError>) -> Vec<String> {
        let named = self.chains(config).backends();
        let mut backends = self.own.clone();
        let mut problems = Vec::new();
        for backend in named {
            match backend {
                Ok(backend) => backends.push(backend),
                Err(error) => problems.push(error),
            }
        }
        let all_there = problems.is_empty();
        let tools_known = no_tools.is_none();
        problems.extend(no_tools);
        let others = config.profiles.iter();
        let others = others.map(|profile| (profile.name.clone(), profile.over(config)));
        let all = std::iter::once((ProfileName::oracle(), config.clone())).chain(others);
        for (name, config) in all {
            // Where a provider cannot be called, that is told already.
            let models = all_there.then(|| self.chains(&config).models(&backends).map(drop));
            let opinion =
                all_there.then(|| self.chains(&config).second_opinion(&backends).map(drop));
            let tools = tools_known.then(|| self.tools(&name, &config).map(drop));
            let found = [
                models,
                opinion,
                tools,
                Some(project_context(&config).map(drop)),
                Some(prices(&config).map(drop)),
                Some(classifier(&config).map(drop)),
                Some(composer(&config).map(drop)),
            ];
            problems.extend(found.into_iter().flatten().filter_map(Result::err));
        }
        // What is wrong with several profiles alike is told once.
        problems.iter().fold(Vec::new(), |mut told, error| {
            let text = error.to_string();
            if !told.contains(&text) {
                told.push(text);
            }
            told
        })
    }

    /// The tools that a session has, and those that it can be given besides; both in the order in which they
    /// were built in.
    fn tools(&self, name: &ProfileName, config: &Config) -> Result<Lists, BuildError> {
        let there = self.tools.specs();
        let (only, given) = (&config.tools.only, &config.tools.attachable);
        let mut named = only.iter().flatten().chain(given);
        let known = |tool: &String| there.iter().any(|spec| spec.name == *tool);
        if let Some(unknown) = named.find(|tool| !known(tool)) {
            let names: Vec<String> = there
                .iter()
                .map(|spec| format!("`{}`", spec.name))
                .collect();
            return Err(BuildError::UnknownTool {
                profile: name.clone(),
                tool: unknown.to_string(),
                known: names.join(", "),
            });
        }
        let is_in = |list: &[String], spec: &ToolSpec| list.contains(&spec.name);
        let has = |spec: &&ToolSpec| match only {
            Some(only) => is_in(only, spec),
            None => !is_in(given, spec),
        };
        let has: Vec<ToolSpec> = there.iter().filter(has).cloned().collect();
        let besides = there.iter().filter(|spec| is_in(given, spec));
        Ok((has.into(), besides.cloned().collect()))
    }
}

/// Tools from the start, and tools to be attached.
type Lists = (Arc<[ToolSpec]>, Arc<[ToolSpec]>);
