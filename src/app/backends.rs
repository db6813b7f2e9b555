//! Back ends for chains of models: those of the host, the offline model, scripts, servers.
//!
//! Only back ends that a chain names are built: an offline start sets up no network.

use std::sync::Arc;

use super::{BuildError, Builder, prices, providers::Providers};
use crate::{
    config::{Config, Environment, ModelChain, Prices},
    kernel::{ModelChoice, SecondOpinionPolicy},
    llm::{Backend, OFFLINE, Remote, scripted::Scripts},
};

impl Builder {
    fn chains(&self) -> Chains<'_> {
        Chains {
            config: &self.config,
            environment: &self.environment,
            own: &self.backends,
        }
    }

    /// Back ends of the host, the built-in ones and those that the chains name, with scripts read.
    pub(super) fn backends(&self) -> Result<Vec<Arc<dyn Backend>>, BuildError> {
        let named = self.chains().backends().into_iter();
        let named = named.collect::<Result<Vec<_>, _>>()?;
        let backends = self.backends.iter().cloned().chain(named);
        #[cfg(feature = "testkit")]
        let backends = backends.map(|backend| match &self.dies {
            Some(point) => point.in_stream(backend),
            None => backend,
        });
        Ok(backends.collect())
    }
}

/// The models that a configuration calls, and the back ends that serve them.
pub(super) struct Chains<'a> {
    pub(super) config: &'a Config,
    pub(super) environment: &'a Environment,
    /// Back ends of the host, and the built-in ones.
    pub(super) own: &'a [Arc<dyn Backend>],
}

impl Chains<'_> {
    /// The chain for profiles without their own.
    pub(super) fn chain(&self) -> ModelChain {
        self.config.choice(self.environment.pairs()).chain
    }

    /// The chains of profiles that have their own.
    pub(super) fn of_profiles(&self) -> impl Iterator<Item = ModelChain> {
        let profiles = self.config.profiles.iter();
        profiles.filter_map(|profile| profile.chain.clone())
    }

    /// The model for second opinions, if it is another one.
    pub(super) fn opinion(&self) -> Result<Option<ModelChain>, BuildError> {
        let model = self.config.query.second_opinion_model.as_deref();
        Ok(model.map(|model| ModelChain::new([model])).transpose()?)
    }

    /// Back ends that the chains name and that are not there yet, each by itself.
    pub(super) fn backends(&self) -> Vec<Result<Arc<dyn Backend>, BuildError>> {
        let all = std::iter::once(self.chain()).chain(self.of_profiles());
        let chains: Vec<ModelChain> = all.chain(self.opinion().ok().flatten()).collect();
        let mut missing: Vec<&str> = Vec::new();
        for provider in chains.iter().flat_map(ModelChain::providers) {
            if !serves(self.own, provider) && !missing.contains(&provider) {
                missing.push(provider);
            }
        }
        missing
            .into_iter()
            .filter_map(|name| self.backend(name, &chains).transpose())
            .collect()
    }

    /// Scripts or a server; none if the provider is unknown.
    fn backend(
        &self,
        name: &str,
        chains: &[ModelChain],
    ) -> Result<Option<Arc<dyn Backend>>, BuildError> {
        let models = chains.iter().flat_map(|chain| models_of(chain, name));
        let models: Vec<&str> = models.collect();
        if name == Scripts::PROVIDER {
            return Ok(Some(Arc::new(Scripts::read(models)?)));
        }
        // A price list that is not in order is reported where prices are needed.
        let prices = prices(self.config).or_else(|_| Prices::builtin())?;
        let providers = Providers::new(self.config, self.environment, &prices);
        let Some(provider) = providers.find(name)? else {
            return Ok(None);
        };
        let settings = providers.settings(&provider, &models)?;
        Ok(Some(Arc::new(Remote::new(settings)?)))
    }

    /// The chain, with the facts about each model that decisions need.
    pub(super) fn models(
        &self,
        backends: &[Arc<dyn Backend>],
    ) -> Result<Vec<ModelChoice>, BuildError> {
        self.choices(&self.chain(), backends)
    }

    /// The policy of second opinions: with the offline model alone nothing leaves the machine.
    pub(super) fn second_opinion(
        &self,
        backends: &[Arc<dyn Backend>],
    ) -> Result<Option<SecondOpinionPolicy>, BuildError> {
        let own = self.chain();
        let is_offline = own.providers().iter().all(|provider| *provider == OFFLINE);
        let chain = self.opinion()?.unwrap_or(own);
        // In any case, so that a wrong configuration is refused.
        let mut models = self.choices(&chain, backends)?.into_iter();
        let below = self.config.query.second_opinion_below;
        let asked = below.filter(|_| !is_offline).zip(models.next());
        Ok(asked.map(|(below, model)| SecondOpinionPolicy {
            below,
            model,
            within: self.config.query.second_opinion_deadline,
        }))
    }

    fn choices(
        &self,
        chain: &ModelChain,
        backends: &[Arc<dyn Backend>],
    ) -> Result<Vec<ModelChoice>, BuildError> {
        let prices = prices(self.config)?;
        let providers = Providers::new(self.config, self.environment, &prices);
        let choice = |full: &String| {
            let (provider, model) = full.split_once('/').unwrap_or((full, ""));
            if serves(backends, provider) {
                return Ok(providers.choice(provider, model));
            }
            let own = self.own.iter().map(|backend| backend.provider().to_owned());
            let known = own
                .chain(["scripted/FILE".to_owned()])
                .chain(providers.names());
            let mut known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
            known.sort_unstable();
            known.dedup();
            Err(BuildError::UnknownModel {
                model: full.clone(),
                known: known.join(", "),
            })
        };
        chain.models().iter().map(choice).collect()
    }
}

pub(super) fn serves(backends: &[Arc<dyn Backend>], provider: &str) -> bool {
    let mut backends = backends.iter();
    backends.any(|backend| backend.provider() == provider)
}

/// The models of one provider.
fn models_of<'a>(chain: &'a ModelChain, provider: &str) -> Vec<&'a str> {
    let parts = chain.models().iter();
    let parts = parts.filter_map(|model| model.split_once('/'));
    let of_provider = parts.filter(|(name, _)| *name == provider);
    of_provider.map(|(_, model)| model).collect()
}
