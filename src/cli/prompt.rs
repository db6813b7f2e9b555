//! `oracle dev prompt`: shows the prompt for a type of query.

use std::{io::Write, path::Path};

use super::{CliResult, context::CommandContext};
use crate::{
    app::{self, BuildError},
    model::QueryType,
    query::QueryContext,
};
use oracle_config::{Config, Environment};
use oracle_core::prompt::{ComposeInput, ComposedPrompt};

/// The type of query, or the query, to print the prompt for; `conversational` without either.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[group(required = false, multiple = false)]
pub struct Subject {
    /// Print the prompt for this type of query
    #[arg(long = "type", value_name = "TYPE")]
    pub query_type: Option<QueryType>,
    /// Print the prompt for this query, which is classified first
    #[arg(long, value_name = "QUERY")]
    pub query: Option<String>,
}

/// Prints the prompt as text or JSON.
pub(super) fn run(subject: &Subject, context: CommandContext<'_>) -> CliResult {
    let (config, project) = (context.load()?.config, &context.options.project);
    let prompt = compose(&config, context.environment, project, subject)?;
    let terminal = context.terminal;
    if terminal.json {
        return terminal.out.json(&prompt);
    }
    for warning in &prompt.warnings {
        terminal.say(format_args!("warning: {warning}"));
    }
    writeln!(terminal.out, "{}", prompt.content)?;
    Ok(())
}

fn compose(
    config: &Config,
    environment: &Environment,
    project: &Path,
    subject: &Subject,
) -> CliResult<ComposedPrompt> {
    let query_type = match (subject.query_type, &subject.query) {
        (Some(query_type), _) => query_type,
        (None, Some(query)) => {
            let classifier = app::classifier(config)?;
            classifier.classify(query, QueryContext::Fresh).query_type
        }
        // The type of a query without features.
        (None, None) => QueryType::Conversational,
    };
    let variables = app::project_variables(config, environment, project)?.prepare();
    let input = ComposeInput::new(variables.into(), query_type);
    let prompt = app::composer(config)?.compose(&input);
    prompt.map_err(|error| BuildError::from(error).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_without_a_subject_is_conversational() {
        let nothing = Subject {
            query_type: None,
            query: None,
        };
        let talk = Subject {
            query_type: Some(QueryType::Conversational),
            query: None,
        };
        let composed = |subject| {
            let environment = Environment::default();
            compose(&Config::default(), &environment, Path::new("."), &subject).unwrap()
        };
        assert_eq!(composed(nothing), composed(talk));
    }

    #[test]
    fn prompts_mention_the_web_only_if_it_is_configured() {
        let config = |text: &str| toml::from_str::<Config>(text).unwrap();
        let keys = Environment::from([("TAVILY_API_KEY", "k"), ("MY_KEY", "k")]);
        for (text, tools) in [
            ("", &[][..]),
            ("[web]\nfetch = true", &["web_fetch"]),
            ("[web]\nsearch = 'tavily'", &["web_search"]),
            (
                "[web]\nfetch = true\nsearch = 'brave'\nkey_env = 'MY_KEY'",
                &["web_search", "web_fetch"],
            ),
            (
                "[web]\nsearch = 'searxng'\nsearch_url = 'http://10.0.0.1:8888/x'",
                &["web_search"],
            ),
        ] {
            for query_type in QueryType::ALL {
                let subject = Subject {
                    query_type: Some(query_type),
                    query: None,
                };
                let prompt = compose(&config(text), &keys, Path::new("."), &subject).unwrap();
                let prompt = prompt.content.to_lowercase();
                let mut words = prompt.split(|c: char| !c.is_alphanumeric() && c != '_');
                assert_eq!(
                    words.any(|word| word == "web"),
                    !tools.is_empty(),
                    "{prompt}"
                );
                let is_research = query_type == QueryType::Research;
                for tool in ["web_search", "web_fetch"] {
                    assert_eq!(
                        prompt.contains(&format!("`{tool}`")),
                        is_research && tools.contains(&tool),
                        "{text} {tool}"
                    );
                }
            }
        }
    }
}
