//! `oracle prompt`: the prompt that a query of some type would get.

use std::io::Write;

use super::{Stop, arguments::one_of, terminal::Terminal};
use crate::{model::QueryType, prompt::ComposedPrompt};

/// `oracle prompt`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct PromptArgs {
    /// For which type, or for which query.
    #[command(flatten)]
    pub subject: Subject,
}

/// What the prompt is for: without either, for a query that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[group(required = false, multiple = false)]
pub struct Subject {
    /// For queries of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = one_of(QueryType::ALL, QueryType::as_str))]
    pub query_type: Option<QueryType>,
    /// For this query, after it is classified
    #[arg(long, value_name = "QUERY")]
    pub query: Option<String>,
}

/// Prints a prompt as text or as JSON.
pub fn print(prompt: &ComposedPrompt, json: bool, terminal: &mut Terminal) -> Result<(), Stop> {
    if json {
        return terminal.out.json(prompt);
    }
    for warning in &prompt.warnings {
        terminal.err.say(format_args!("warning: {warning}"));
    }
    writeln!(terminal.out, "{}", prompt.content)?;
    Ok(())
}
