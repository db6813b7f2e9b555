//! The tools for the web that a configuration asks for.

use super::BuildError;
use crate::{
    config::{Config, Environment},
    tool::FnTool,
};

#[cfg(not(feature = "web"))]
pub(super) fn web_tools(config: &Config, _: &Environment) -> Result<Vec<FnTool>, BuildError> {
    match (config.web.search, config.web.fetch) {
        (None, false) => Ok(Vec::new()),
        _ => Err(BuildError::NoWeb),
    }
}

#[cfg(feature = "web")]
pub(super) fn web_tools(
    config: &Config,
    environment: &Environment,
) -> Result<Vec<FnTool>, BuildError> {
    use reqwest::{Client, header::HeaderValue};

    use crate::{
        llm::{SetupError, client_builder, plain_client},
        tool::{
            SearchService,
            web::{FetchSettings, SearchSettings, web_fetch, web_search},
        },
    };

    let (web, mut tools) = (&config.web, Vec::new());
    let deadline = web.deadline.min(config.tools.call_deadline.mul_f64(0.9));
    let setup = |why: String| {
        let provider = "web".to_owned();
        SetupError::Client { provider, why }
    };
    if let Some(service) = web.search {
        let (usual_url, usual_key) = service.usual().unzip();
        let base = web.search_url.as_deref().or(usual_url);
        let base_url = reqwest::Url::parse(base.unwrap_or_default());
        let base_url = base_url.map_err(|error| setup(error.to_string()))?;
        let variable = web.key_env.as_deref().or(usual_key);
        let key = variable.map(|variable| {
            let key = environment.text(variable);
            let scheme = match service {
                SearchService::Brave => "",
                SearchService::Tavily | SearchService::Searxng => "Bearer ",
            };
            let key = key.and_then(|key| HeaderValue::from_str(&format!("{scheme}{key}")).ok());
            let mut key = key.ok_or_else(|| BuildError::SearchKey(variable.to_owned()))?;
            key.set_sensitive(true);
            Ok::<_, BuildError>(key)
        });
        let settings = SearchSettings {
            service,
            key: key.transpose()?,
            deadline,
            base_url,
        };
        let client = plain_client(Client::builder(), &settings.base_url).map_err(setup)?;
        tools.push(web_search(client, settings));
    }
    if web.fetch {
        let settings = FetchSettings {
            max_page_bytes: web.max_page_bytes,
            max_redirects: web.max_redirects,
            deadline,
            allow_hosts: web.allow_hosts.clone(),
            deny_hosts: web.deny_hosts.clone(),
        };
        let tool = web_fetch(client_builder().map_err(setup)?, settings);
        tools.push(tool.map_err(|error| setup(error.to_string()))?);
    }
    Ok(tools)
}
