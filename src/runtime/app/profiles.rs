//! Profiles, and the back ends of their models: the host's own, the offline model, scripts and
//! servers. Only back ends that a chain names are built, so an offline start sets up no network.

use std::{collections::BTreeSet, iter, sync::Arc};

use arc_swap::ArcSwap;

use super::{
    BuildError, Builder, classifier, composer, prices, project_context, project_name,
    providers::Providers, settings, variables,
};
use crate::{
    access::Budgets,
    actor::{Profile, Profiles},
    config::{Config, Environment, ModelChain, PRESETS, Prices},
    kernel::{FallbackClassifier, ModelChoice, Policy, TurnPolicy, offer},
    llm::{Backend, Remote, scripted::Scripts},
    model::{ProfileName, ToolSpec},
    tool::{Registry, Tool},
};

/// The parts of profiles that live as long as the system, whatever the configuration.
pub(super) struct ProfileFactory {
    environment: Environment,
    project_name: String,
    own: Vec<Arc<dyn Backend>>,
    pub(super) backends: Vec<Arc<dyn Backend>>,
    /// The tools from the start, before those of MCP servers.
    base: Vec<Arc<dyn Tool>>,
    tools: ArcSwap<Registry>,
    fallback: Option<Arc<dyn FallbackClassifier>>,
    turn: Option<Arc<dyn TurnPolicy>>,
}

impl Builder {
    /// Builds it with its tools and all back ends that the chains name.
    pub(super) fn profile_factory(&self) -> Result<ProfileFactory, BuildError> {
        let mut profile_factory = self.profile_factory_with(Registry::default());
        for backend in profile_factory.missing(&self.config) {
            profile_factory.backends.push(backend?);
        }
        if self.standby {
            let providers = &self.config.providers;
            let configured = providers.iter().map(|provider| &*provider.name);
            for name in configured.chain(PRESETS.iter().map(|preset| preset.name)) {
                // Without its key, a provider cannot be switched to.
                if backend(&profile_factory.backends, name).is_none()
                    && let Ok(Some(ready)) = profile_factory.backend(&self.config, name, vec![])
                {
                    profile_factory.backends.push(ready);
                }
            }
        }
        #[cfg(any(test, feature = "testkit"))]
        if let Some(point) = &self.crash_at {
            let backends = profile_factory.backends.into_iter();
            profile_factory.backends = backends.map(|one| point.in_stream(one)).collect();
        }
        profile_factory.base = self.tools()?;
        let tools = Registry::new(profile_factory.base.iter().cloned())?;
        profile_factory.tools.store(Arc::new(tools));
        Ok(profile_factory)
    }

    fn profile_factory_with(&self, tools: Registry) -> ProfileFactory {
        let project = self.project.as_deref();
        ProfileFactory {
            environment: self.environment.clone(),
            project_name: project.map(project_name).unwrap_or_default(),
            own: self.backends.clone(),
            backends: self.backends.clone(),
            base: Vec::new(),
            tools: ArcSwap::from_pointee(tools),
            fallback: self.fallback.clone(),
            turn: self.turn.clone(),
        }
    }

    /// All problems that a start would find.
    #[doc(hidden)]
    pub fn problems(&self) -> Vec<String> {
        let (tools, error) = match self.tools().and_then(|tools| Ok(Registry::new(tools)?)) {
            Ok(tools) => (tools, None),
            // Profiles name tools, which cannot be checked without them.
            Err(error) => (Registry::default(), Some(error)),
        };
        let factory = self.profile_factory_with(tools);
        let problems = factory.problems(&self.config, error);
        let of_servers = self.check_mcp().err().map(|error| error.to_string());
        problems.into_iter().chain(of_servers).collect()
    }
}

impl ProfileFactory {
    /// Sets the tools besides those from the start, which go before others of their names.
    #[cfg(feature = "mcp")]
    pub(super) fn add_tools(&self, more: Vec<Arc<dyn Tool>>) {
        let mut tools = self.base.clone();
        for tool in more {
            let name = &tool.spec().name;
            match tools.iter().any(|known| known.spec().name == *name) {
                true => {
                    tracing::warn!(tool = %name, "two tools have one name; ignoring an MCP tool")
                }
                false => tools.push(tool),
            }
        }
        match Registry::new(tools) {
            Ok(tools) => self.tools.store(Arc::new(tools)),
            Err(error) => tracing::warn!(%error, "cannot offer the changed tools"),
        }
    }

    pub(super) fn profiles(&self, config: &Config) -> Result<Profiles, BuildError> {
        check_aliases(config)?;
        let money = with_money_budget(config);
        let default = self.profile(&ProfileName::oracle(), config, "", &money)?;
        let mut profiles = Profiles::new(default);
        for wanted in &config.profiles {
            let about = wanted.description.as_deref().unwrap_or_default();
            let mut profile = self.profile(&wanted.name, &wanted.over(config), about, &money)?;
            if let Some(description) = &wanted.description {
                profile = profile.described(description);
            }
            profile.sub_agent_of = wanted.sub_agent_of.clone().into();
            profiles = profiles.with(wanted.name.clone(), profile);
        }
        Ok(profiles)
    }

    fn profile(
        &self,
        name: &ProfileName,
        config: &Config,
        about: &str,
        money: &BTreeSet<ProfileName>,
    ) -> Result<Profile, BuildError> {
        let models = self.choices(config, &self.backends, money.contains(name))?;
        let mut policy = Policy::new(models, Arc::default());
        settings::apply(config, &mut policy);
        let (tools, attachable) = self.tools(name, config)?;
        let listed = config.tools.only.as_deref().unwrap_or_default();
        let pinned = &config.tools.pinned;
        (policy.tools, policy.findable) = offer(&tools, pinned, listed, about);
        policy.attachable = attachable;
        if let Some(classifier) = &self.fallback {
            policy.fallback_classifier = Arc::clone(classifier);
        }
        if let Some(turn) = &self.turn {
            policy.turn = Arc::clone(turn);
        }
        let variables = variables(config, self.project_name.clone(), iter::empty())?;
        let (tools, composer) = (self.tools.load_full(), Arc::new(composer(config)?));
        Ok(Profile::new(policy, variables, tools, composer))
    }

    pub(super) fn problems(&self, config: &Config, no_tools: Option<BuildError>) -> Vec<String> {
        let mut backends = self.own.clone();
        let mut problems: Vec<String> = Vec::new();
        // Problems common to several profiles are reported once.
        let mut report = |problem: Option<BuildError>| {
            let text = problem.map(|problem| problem.to_string());
            problems.extend(text.filter(|text| !problems.contains(text)));
        };
        let mut all_there = true;
        for backend in self.missing(config) {
            all_there &= backend.is_ok();
            match backend {
                Ok(backend) => backends.push(backend),
                Err(error) => report(Some(error)),
            }
        }
        let tools_known = no_tools.is_none();
        report(no_tools);
        report(check_aliases(config).err());
        let money = with_money_budget(config);
        let others = config.profiles.iter();
        let others = others.map(|profile| (profile.name.clone(), profile.over(config)));
        for (name, config) in iter::once((ProfileName::oracle(), config.clone())).chain(others) {
            // The missing back end has been reported.
            if all_there {
                let choices = self.choices(&config, &backends, money.contains(&name));
                report(choices.err());
            }
            if tools_known {
                report(self.tools(&name, &config).err());
            }
            report(project_context(&config).err());
            report(prices(&config, &self.environment).err());
            report(classifier(&config).err());
            report(composer(&config).err());
        }
        problems
    }

    /// Tools from the start, and tools that can be attached, in the registry's order.
    fn tools(&self, name: &ProfileName, config: &Config) -> Result<Lists, BuildError> {
        let there = self.tools.load().specs();
        let (only, given) = (&config.tools.only, &config.tools.attachable);
        let named = only.iter().flatten();
        let mut named = named.chain(given).chain(&config.tools.pinned);
        // A server may list its tools later.
        let may_come = |tool: &String| {
            let mut servers = config.mcp.iter();
            servers.any(|server| tool.starts_with(&format!("{}__", server.name)))
                || !config.tools.mcp_projects.is_empty() && tool.contains("__")
        };
        let known = |tool: &String| there.iter().any(|spec| spec.name == *tool) || may_come(tool);
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

    /// Whether the running back ends serve all models that this configuration key names.
    pub(super) fn serves(&self, key: &str, config: &Config) -> bool {
        let named: Vec<ModelChain> = match key {
            "profiles" => of_profiles(config).collect(),
            _ => vec![self.chain(config)],
        };
        let mut providers = named.iter().flat_map(ModelChain::providers);
        providers.all(|provider| backend(&self.backends, provider).is_some())
    }

    fn chain(&self, config: &Config) -> ModelChain {
        config.choice(self.environment.pairs()).chain
    }

    /// Builds each back end that a chain names and that is not built in.
    fn missing(&self, config: &Config) -> Vec<Result<Arc<dyn Backend>, BuildError>> {
        let all = iter::once(self.chain(config)).chain(of_profiles(config));
        let chains: Vec<ModelChain> = all.collect();
        let mut missing: Vec<&str> = Vec::new();
        for provider in chains.iter().flat_map(ModelChain::providers) {
            if backend(&self.own, provider).is_none() && !missing.contains(&provider) {
                missing.push(provider);
            }
        }
        let built = missing.into_iter().filter_map(|name| {
            let models = chains.iter().flat_map(ModelChain::models);
            let models = models.filter_map(|model| model.strip_prefix(name)?.strip_prefix('/'));
            self.backend(config, name, models.collect()).transpose()
        });
        built.collect()
    }

    /// `None` if the provider is unknown.
    fn backend(
        &self,
        config: &Config,
        name: &str,
        models: Vec<&str>,
    ) -> Result<Option<Arc<dyn Backend>>, BuildError> {
        if name == Scripts::PROVIDER {
            return Ok(Some(Arc::new(Scripts::read(models)?)));
        }
        // `choices` reports an invalid price list.
        let prices = prices(config, &self.environment).unwrap_or_else(|_| Prices::builtin());
        let providers = Providers::new(config, &self.environment, &prices);
        let Some(provider) = providers.find(name)? else {
            return Ok(None);
        };
        let settings = providers.settings(&provider, &models)?;
        Ok(Some(Arc::new(Remote::new(settings)?)))
    }

    fn choices(
        &self,
        config: &Config,
        backends: &[Arc<dyn Backend>],
        limits_cost: bool,
    ) -> Result<Vec<ModelChoice>, BuildError> {
        let prices = prices(config, &self.environment)?;
        let providers = Providers::new(config, &self.environment, &prices);
        let choice = |full: &String| {
            let (provider, model) = full.split_once('/').unwrap_or((full, ""));
            if let Some(backend) = backend(backends, provider) {
                let choice = ModelChoice {
                    takes: backend.capabilities(model),
                    ..providers.choice(provider, model)
                };
                if limits_cost && choice.price.is_none() {
                    return Err(BuildError::UnknownPrice {
                        model: full.clone(),
                    });
                }
                return Ok(choice);
            }
            let own = self.own.iter().map(|backend| backend.provider().to_owned());
            let known = own.chain(["scripted/FILE".to_owned()]);
            let known = known.chain(providers.names());
            let known: BTreeSet<String> = known.map(|name| format!("`{name}`")).collect();
            Err(BuildError::UnknownModel {
                model: full.clone(),
                known: Vec::from_iter(known).join(", "),
            })
        };
        self.chain(config).models().iter().map(choice).collect()
    }
}

/// The profiles whose sessions spend from a budget of money: their own, a tenant's or key's, or that
/// of a session whose sub-agents they are.
fn with_money_budget(config: &Config) -> BTreeSet<ProfileName> {
    let budget = &config.budget;
    let own = budget.max_cost_usd.or(budget.session_max_cost_usd);
    if own.is_some() || config.tenants.budgets().any(Budgets::limits_cost) {
        return config.profile_names().collect();
    }
    let mut found = BTreeSet::new();
    for _ in &config.profiles {
        let limited = config.profiles.iter().filter(|one| {
            let own = one.max_cost_usd.or(one.session_max_cost_usd);
            own.is_some() || one.sub_agent_of.iter().any(|of| found.contains(of))
        });
        let limited: Vec<ProfileName> = limited.map(|one| one.name.clone()).collect();
        found.extend(limited);
    }
    found
}

fn check_aliases(config: &Config) -> Result<(), BuildError> {
    let known: Vec<ProfileName> = config.profile_names().collect();
    for (model, profile) in &config.server.models {
        if known.iter().any(|name| name.as_str() == model) {
            return Err(BuildError::AliasOfProfile(model.clone()));
        }
        if !known.contains(profile) {
            return Err(BuildError::UnknownProfile {
                model: model.clone(),
                profile: profile.clone(),
            });
        }
    }
    Ok(())
}

fn of_profiles(config: &Config) -> impl Iterator<Item = ModelChain> {
    let profiles = config.profiles.iter();
    profiles.filter_map(|profile| profile.chain.clone())
}

fn backend<'a>(backends: &'a [Arc<dyn Backend>], provider: &str) -> Option<&'a Arc<dyn Backend>> {
    let mut backends = backends.iter();
    backends.find(|backend| backend.provider() == provider)
}

type Lists = (Arc<[ToolSpec]>, Arc<[ToolSpec]>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Oracle;

    #[test]
    fn models_of_a_chain_know_what_they_take() {
        let text = "model.chain = ['local/seeing', 'local/other', 'offline', 'claude/x']\n\
                    [[providers]]\nname = 'local'\nbase_url = 'http://localhost'\n\
                    structured_output = true\n\
                    [[providers.models]]\nname = 'seeing'\nimages = true\n\
                    [[providers]]\nname = 'claude'\ndialect = 'anthropic'\n\
                    base_url = 'http://localhost'\n";
        let config: Config = toml::from_str(text).unwrap();
        let factory = Oracle::builder().config(config.clone()).profile_factory();
        let factory = factory.unwrap();
        let models = factory.choices(&config, &factory.backends, false).unwrap();
        let takes = models.iter().map(|model| {
            let takes = model.takes;
            (takes.parameters.len(), takes.images, takes.schemas)
        });
        let expected = [
            (7, true, true),
            (7, false, true),
            (5, false, false),
            (2, true, false),
        ];
        assert_eq!(takes.collect::<Vec<_>>(), expected);
    }
}
