//! Profiles of a system: the one that the sections of the configuration describe, and `[[profiles]]`.

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

/// The parts of profiles besides a configuration: they stay as long as the system does.
pub(super) struct Workshop {
    environment: Environment,
    project_name: String,
    /// Back ends of the host, and the built-in ones.
    own: Vec<Arc<dyn Backend>>,
    /// All running back ends.
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

    /// All problems of the configuration, short of starting a system with it.
    pub(super) fn problems(&self) -> Vec<String> {
        match self.workshop(&[]) {
            Ok(workshop) => workshop.problems(&self.config, None),
            // Without tools those that profiles name cannot be checked.
            Err(error) => {
                let workshop = self.workshop_with(&[], Arc::new(Registry::none()));
                workshop.problems(&self.config, Some(error))
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

    /// Whether the running back ends serve the models that this key of a configuration names.
    pub(super) fn serves(&self, key: &str, config: &Config) -> bool {
        let chains = self.chains(config);
        let named: Vec<ModelChain> = match key {
            "profiles" => chains.of_profiles().collect(),
            "query.second_opinion_model" => chains.opinion().ok().flatten().into_iter().collect(),
            _ => vec![chains.chain()],
        };
        let mut providers = named.iter().flat_map(ModelChain::providers);
        providers.all(|provider| serves(&self.backends, provider))
    }

    /// All problems of a configuration that a start would find.
    pub(super) fn problems(&self, config: &Config, no_tools: Option<BuildError>) -> Vec<String> {
        let mut backends = self.own.clone();
        let mut problems: Vec<String> = Vec::new();
        // A problem of several profiles is told once.
        let mut tell = |problem: Option<BuildError>| {
            let text = problem.map(|problem| problem.to_string());
            problems.extend(text.filter(|text| !problems.contains(text)));
        };
        let mut all_there = true;
        for backend in self.chains(config).backends() {
            match backend {
                Ok(backend) => backends.push(backend),
                Err(error) => {
                    all_there = false;
                    tell(Some(error));
                }
            }
        }
        let tools_known = no_tools.is_none();
        tell(no_tools);
        let others = config.profiles.iter();
        let others = others.map(|profile| (profile.name.clone(), profile.over(config)));
        let all = std::iter::once((ProfileName::oracle(), config.clone())).chain(others);
        for (name, config) in all {
            // The problem of a provider that cannot be called is told already.
            if all_there {
                let chains = self.chains(&config);
                tell(chains.models(&backends).err());
                tell(chains.second_opinion(&backends).err());
            }
            if tools_known {
                tell(self.tools(&name, &config).err());
            }
            tell(project_context(&config).err());
            tell(prices(&config).err());
            tell(classifier(&config).err());
            tell(composer(&config).err());
        }
        problems
    }

    /// The tools that a session has, and those that it can be given besides; both in the order in which they
    /// were built in.
    fn tools(&self, name: &ProfileName, config: &Config) -> Result<Lists, BuildError> {
        let there = self.tools.specs();
        let (only, given) = (&config.tools.only, &config.tools.attachable);
        let mut named = only.iter().flatten().chain(given);
        let known = |tool: &String| there.iter().any(|spec| spec.name == *tool);
        if let Some(unknown) = named.find(|tool| !known(tool)) {
            let names: Vec<String> = there.iter().map(|one| format!("`{}`", one.name)).collect();
            return Err(BuildError::UnknownTool {
                profile: name.clone(),
                tool: unknown.clone(),
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
