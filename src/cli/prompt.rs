//! `oracle dev prompt`: shows the prompt for a type of query.

use std::io::Write;

use super::{CliResult, arguments::one_of, terminal::Terminal};
use crate::{model::QueryType, prompt::ComposedPrompt};

/// The type of query, or the query, to print the prompt for; `conversational` without either.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[group(required = false, multiple = false)]
pub struct Subject {
    /// Print the prompt for this type of query
    #[arg(long = "type", value_name = "TYPE", value_parser = one_of(QueryType::ALL, QueryType::as_str))]
    pub query_type: Option<QueryType>,
    /// Print the prompt for this query, which is classified first
    #[arg(long, value_name = "QUERY")]
    pub query: Option<String>,
}

/// Prints a prompt as text or JSON.
pub fn print(prompt: &ComposedPrompt, terminal: &mut Terminal) -> CliResult {
    if terminal.json {
        return terminal.out.json(prompt);
    }
    for warning in &prompt.warnings {
        terminal.err.say(format_args!("warning: {warning}"));
    }
    writeln!(terminal.out, "{}", prompt.content)?;
    Ok(())
}
