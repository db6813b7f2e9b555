//! Settings for calls to a provider: from configuration and presets, with addresses and keys from
//! the environment or files.
//!
//! **Invariant:** no error or `Debug` output contains a key; they name only its source.

use std::{collections::BTreeSet, fs, io, net::Ipv6Addr, path::Path};

use secrecy::SecretString;

use crate::{
    actor::GatewaySettings,
    config::{Config, Environment, PRESETS, Preset, Prices, Provider, ProviderModel, base_url},
    kernel::ModelChoice,
    llm::{ModelSettings, OFFLINE, ProviderSettings, is_local, scripted::Scripts},
    model::Price,
};

/// The reason why a provider cannot be called, with a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProviderError(String);

pub struct Providers<'a> {
    config: &'a Config,
    environment: &'a Environment,
    facts: &'a Prices,
}

impl<'a> Providers<'a> {
    pub const fn new(config: &'a Config, environment: &'a Environment, facts: &'a Prices) -> Self {
        Self {
            config,
            environment,
            facts,
        }
    }

    pub fn names(&self) -> Vec<String> {
        let configured = self.config.providers.iter().map(|one| &*one.name);
        let presets = PRESETS.iter().map(|preset| preset.name);
        let presets = presets.filter(|name| !self.is_configured(name));
        configured.chain(presets).map(str::to_owned).collect()
    }

    pub fn is_configured(&self, name: &str) -> bool {
        let mut configured = self.config.providers.iter();
        configured.any(|provider| provider.name == name)
    }

    /// The provider with its address from the environment. A preset at another address needs no
    /// key: it may be a server on this machine.
    pub fn find(&self, name: &str) -> Result<Option<Provider>, ProviderError> {
        let Some(mut provider) = self.config.provider(name) else {
            return Ok(None);
        };
        let preset = Preset::named(name).filter(|_| !self.is_configured(name));
        if let Some(variable) = preset.and_then(|preset| preset.url_variable)
            && let Some(address) = self.environment.text(variable)
        {
            let address = match variable {
                "OLLAMA_HOST" => ollama(address),
                _ => address.to_owned(),
            };
            provider.base_url = base_url(address).map_err(|allowed| {
                let what = format!("the environment variable {variable} is not a valid address");
                ProviderError(format!("{what}; use {allowed}"))
            })?;
            let keyed = |key: &String| self.environment.text(key).is_some();
            provider.key_env = provider.key_env.filter(keyed);
        }
        Ok(Some(provider))
    }

    pub fn has_key(&self, name: &str) -> bool {
        let provider = self.config.provider(name);
        let variable = provider.and_then(|provider| provider.key_env);
        variable.is_some_and(|variable| self.environment.text(&variable).is_some())
    }

    /// Whether the configuration or the environment sets the provider's address.
    pub fn is_addressed(&self, name: &str) -> bool {
        let variable = Preset::named(name).and_then(|preset| preset.url_variable);
        let is_set = |variable| self.environment.text(variable).is_some();
        self.is_configured(name) || variable.is_some_and(is_set)
    }

    /// Adds the preset's key variable if there is none.
    pub fn with_usual_key(&self, provider: Provider) -> Provider {
        let usual = self.config.provider(&provider.name);
        let usual = usual.and_then(|usual| usual.key_env);
        Provider {
            key_env: provider.key_env.or(usual),
            ..provider
        }
    }

    pub fn configured_window(&self, provider: &str, model: &str) -> Option<u64> {
        self.config.provider(provider)?.model(model)?.context_window
    }

    pub fn settings(
        &self,
        provider: &Provider,
        models: &[&str],
    ) -> Result<ProviderSettings, ProviderError> {
        let known = provider.models.iter().map(|model| model.name.as_str());
        let names: BTreeSet<&str> = known.chain(models.iter().copied()).collect();
        let model = |name| settings(name, &self.known(&provider.name, name));
        let authorities = provider.ca_file.as_deref().map(|path| {
            fs::read(path).map_err(unreadable("certificates", &provider.name, path, "ca_file"))
        });
        let deadlines = &self.config.model;
        Ok(ProviderSettings {
            name: provider.name.clone(),
            dialect: provider.dialect(),
            base_url: provider.base_url.trim_end_matches('/').to_owned(),
            key: self.key(provider)?,
            headers: self.headers(provider)?,
            authorities: authorities.transpose()?,
            streaming: provider.stream,
            structured_output: provider.structured_output,
            models: names.into_iter().map(model).collect(),
            connect: deadlines.connect_deadline,
            first_byte: deadlines.headers_deadline.unwrap_or_else(|| {
                let gateway = GatewaySettings::default();
                match is_local(&provider.name, &provider.base_url) {
                    true => gateway.local_first_token,
                    false => gateway.first_token,
                }
            }),
        })
    }

    /// What is known about a model, by precedence: as configured, then of the price lists.
    fn known(&self, provider: &str, name: &str) -> Vec<ProviderModel> {
        let configured = self.config.provider(provider);
        let configured = configured.and_then(|configured| configured.model(name).cloned());
        let listed = self.facts.entries(&format!("{provider}/{name}"));
        configured.into_iter().chain(listed).collect()
    }

    pub fn choice(&self, provider: &str, model: &str) -> ModelChoice {
        let known = self.known(provider, model);
        let sizes = settings(model, &known);
        let is_free = [OFFLINE, Scripts::PROVIDER].contains(&provider);
        let free = || is_free.then_some(Price::FREE);
        ModelChoice {
            context_window: sizes.context_window,
            max_output: sizes.max_output,
            price: known.iter().find_map(ProviderModel::price).or_else(free),
            retirement: known.iter().find_map(ProviderModel::retirement),
            reports_status: known.iter().find_map(|model| model.reports_status) == Some(true),
            ..ModelChoice::new(&format!("{provider}/{model}"))
        }
    }

    fn key(&self, provider: &Provider) -> Result<Option<SecretString>, ProviderError> {
        let name = &provider.name;
        if let Some(variable) = &provider.key_env {
            let missing = || {
                let usual = |preset: &&Preset| preset.provider().key_env.as_ref() == Some(variable);
                let preset = Preset::named(name).filter(usual);
                let url = preset.and_then(|preset| preset.keys_url);
                let page = url.map_or_else(String::new, |url| format!(" to a key from {url}"));
                ProviderError(format!(
                    "provider `{name}` has no key: set the environment variable {variable}{page}, \
                     or choose another model with `model.chain` or `--model`"
                ))
            };
            return self.secret(name, variable)?.ok_or_else(missing).map(Some);
        }
        let Some(path) = &provider.key_file else {
            return Ok(None);
        };
        let place = format!("the file `{}`", path.display());
        let text = fs::read_to_string(path).map_err(unreadable("key", name, path, "key_file"))?;
        clean(name, &text, &place).map(Some)
    }

    fn headers(&self, provider: &Provider) -> Result<Vec<(String, SecretString)>, ProviderError> {
        let open = provider.headers.iter();
        let open = open.map(|(name, value)| Ok((name.clone(), value.clone().into())));
        let secret = |(header, variable): (&String, &String)| {
            let name = &provider.name;
            let missing = || {
                ProviderError(format!(
                    "provider `{name}` has no value for its header `{header}`: set the \
                     environment variable {variable}, or remove the header from `header_env`"
                ))
            };
            let value = self.secret(name, variable)?.ok_or_else(missing)?;
            Ok((header.clone(), value))
        };
        open.chain(provider.header_env.iter().map(secret)).collect()
    }

    /// `None` if the variable is unset or empty.
    fn secret(&self, name: &str, variable: &str) -> Result<Option<SecretString>, ProviderError> {
        let place = format!("the environment variable {variable}");
        let value = self.environment.text(variable);
        value.map(|value| clean(name, value, &place)).transpose()
    }
}

fn settings(name: &str, known: &[ProviderModel]) -> ModelSettings {
    let context_window = known.iter().find_map(|model| model.context_window);
    let longest = known.iter().find_map(|model| model.max_output_tokens);
    ModelSettings {
        name: name.to_owned(),
        context_window,
        max_output: longest.map(|most| context_window.map_or(most, |window| most.min(window))),
        images: known.iter().find_map(|model| model.images),
        forced_tools: known.iter().find_map(|model| model.forced_tools),
        sampling: known.iter().find_map(|model| model.sampling),
    }
}

fn unreadable(
    what: &str,
    name: &str,
    path: &Path,
    key: &str,
) -> impl FnOnce(io::Error) -> ProviderError {
    move |why| {
        let path = path.display();
        ProviderError(format!(
            "cannot read the {what} of provider `{name}` from `{path}`: {why}; check `{key}`"
        ))
    }
}

/// Checks and trims a key or a header's value, such as `Bearer x`.
fn clean(name: &str, text: &str, place: &str) -> Result<SecretString, ProviderError> {
    let text = text.trim();
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        return Ok(text.into());
    }
    Err(ProviderError(format!(
        "the key or header value of provider `{name}` in {place} is invalid: use one non-empty \
         line of visible ASCII characters"
    )))
}

/// The client's address for `OLLAMA_HOST`, parsed as Ollama does: the default port is Ollama's own
/// without a scheme, and the scheme's with one. 0.0.0.0 is an address to listen on, so clients use
/// 127.0.0.1.
fn ollama(host: &str) -> String {
    let host = host.trim_matches(['"', '\'', ' ']);
    let (scheme, rest, usual) = match host.split_once("://") {
        None if host == "ollama.com" => ("https", host, "443"),
        None => ("http", host, "11434"),
        Some(("https", rest)) => ("https", rest, "443"),
        Some((scheme, rest)) => (scheme, rest, "80"),
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let bare = authority.trim_start_matches('[').trim_end_matches(']');
    let (name, port) = match (bare.parse::<Ipv6Addr>(), authority.rsplit_once(':')) {
        (Ok(_), _) => (format!("[{bare}]"), usual),
        (Err(_), Some((name, port))) => (name.to_owned(), port),
        (Err(_), None) => (authority.to_owned(), usual),
    };
    let name = match &*name {
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        name => name,
    };
    let path = path.trim_matches('/');
    let parted = if path.is_empty() { "" } else { "/" };
    format!("{scheme}://{name}:{port}{parted}{path}/v1")
}

#[cfg(test)]
mod tests;
