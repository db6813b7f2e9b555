//! From a configuration to the profiles of a system: the one that the sections describe, and those beside it.

use std::sync::Arc;

use super::{
    BuildError, Builder, backends::Chains, classifier, composer, prices, project_context,
    project_name, settings, variables,
};
use crate::{
    actor::{Profile, Profiles},
    cli::Environment,
    config::{Config, ToolName},
    kernel::{FallbackClassifier, ModelChoice, Policy, TurnPolicy},
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
        let project = self.project.as_deref();
        Ok(Workshop {
            environment: self.environment.clone(),
            project_name: project.map(project_name).unwrap_or_default(),
            own: self.backends.clone(),
            backends: backends.to_vec(),
            tools: Arc::new(self.registry()?),
            fallback: self.fallback.clone(),
            turn: self.turn.clone(),
        })
    }

    /// All that is wrong besides back ends that cannot be had, also twice.
    pub(super) fn problems(&self) -> Vec<BuildError> {
        let backends = self.backends();
        let workshop = self.workshop(backends.as_deref().unwrap_or_default());
        let workshop = match workshop {
            Ok(workshop) => workshop,
            // The tools over a folder that is not there.
            Err(error) => return vec![error],
        };
        let config = &self.config;
        let others = config.profiles.iter();
        let others = others.map(|profile| (profile.name.clone(), profile.over(config)));
        let all = std::iter::once((ProfileName::oracle(), config.clone())).chain(others);
        let mut problems = Vec::new();
        for (name, config) in all {
            // Where a provider cannot be called, that is told already.
            let models = backends
                .as_ref()
                .map(|_| workshop.models(&config).map(drop));
            let found = [
                models.unwrap_or(Ok(())),
                workshop.tools(&name, &config).map(drop),
                project_context(&config).map(drop),
                prices(&config).map(drop),
                classifier(&config).map(drop),
                composer(&config).map(drop),
            ];
            problems.extend(found.into_iter().filter_map(Result::err));
        }
        problems
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
                profile = profile.described(description.as_str());
            }
            profiles = profiles.with(wanted.name.clone(), profile);
        }
        Ok(profiles)
    }

    fn profile(&self, name: &ProfileName, config: &Config) -> Result<Profile, BuildError> {
        let mut policy = Policy::new(self.models(config)?, Arc::default());
        settings::apply(config, &mut policy);
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

    fn models(&self, config: &Config) -> Result<Vec<ModelChoice>, BuildError> {
        let chains = Chains {
            config,
            environment: &self.environment,
            own: &self.own,
        };
        chains.models(&self.backends)
    }

    /// The tools that a session has, and those that it can be given besides; both in the order in which they
    /// were built in.
    fn tools(&self, name: &ProfileName, config: &Config) -> Result<Lists, BuildError> {
        let there = self.tools.specs();
        let (only, given) = (&config.tools.only, &config.tools.attachable);
        let mut named = only.iter().flatten().chain(given);
        let known = |tool: &ToolName| there.iter().any(|spec| spec.name == tool.as_str());
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
        let is_in =
            |list: &[ToolName], spec: &ToolSpec| list.iter().any(|tool| tool.as_str() == spec.name);
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
