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

#[cfg(all(test, feature = "web"))]
mod tests {
    use super::*;
    use crate::actor::Oracle;

    #[test]
    fn a_search_service_without_its_key_is_a_problem_that_names_the_variable() {
        for (text, environment, variable) in [
            (
                "search = 'tavily'",
                [("BRAVE_API_KEY", "k")],
                "TAVILY_API_KEY",
            ),
            (
                "search = 'brave'",
                [("BRAVE_API_KEY", " ")],
                "BRAVE_API_KEY",
            ),
            (
                "search = 'brave'\nkey_env = 'K'",
                [("BRAVE_API_KEY", "k")],
                "K",
            ),
            ("search = 'brave'\nkey_env = 'K'", [("K", "a\nb")], "K"),
        ] {
            let config: Config = toml::from_str(&format!("[web]\n{text}")).unwrap();
            let pairs = Environment::from(environment).pairs().to_vec();
            let builder = Oracle::builder().config(config).environment(pairs);
            let expected = format!(
                "`web.search` has no valid key: set the environment variable {variable} to it, or name \
                 another one with `web.key_env`"
            );
            assert_eq!(builder.problems(), [expected]);
        }
    }
}
