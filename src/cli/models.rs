//! `oracle models`: lists providers, whether they respond, and their models.

use std::path::PathBuf;

use clap::Subcommand;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{
    CliResult,
    terminal::{Terminal, harmless},
};
use crate::{
    config::Provider,
    model::{NanoUsd, Price},
};

const WIDEST: usize = 40;

/// A subcommand of `oracle models`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ModelsCommand {
    /// Store a newer table of models and prices in the data directory
    Update {
        /// The table, in the form of config/models.toml
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
    },
}

/// The content of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The chain of models, first choice first.
    pub chain: Vec<String>,
    /// The reason for this chain.
    pub because: String,
    /// The configured providers.
    pub providers: Vec<Listed>,
    /// Advice if only the built-in model is available, and warnings of models that retire.
    pub advice: Vec<String>,
    /// Source and date of the table of models.
    pub table: String,
}

/// A provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The provider's name.
    pub name: String,
    /// Its settings; `None` if it is built in or misconfigured.
    pub settings: Option<Provider>,
    /// The reason why it cannot be used.
    pub problem: Option<String>,
    /// The models that it offers.
    pub models: Vec<ListedModel>,
}

/// A model of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ListedModel {
    /// The name without the provider.
    pub name: String,
    /// Context window in tokens, if known.
    pub context_window: Option<u64>,
    /// Longest reply in tokens, if known.
    #[serde(rename = "max_output_tokens")]
    pub max_output: Option<u64>,
    /// The price, if known.
    #[serde(rename = "usd_per_million_tokens", serialize_with = "usd_of")]
    pub price: Option<Price>,
    /// The date on which its provider switches it off, if known.
    pub retires: Option<String>,
    /// The model to use instead, as `provider/model`.
    pub successor: Option<String>,
    /// Its position in the chain, from 1.
    pub choice: Option<usize>,
}

/// Prints the list.
pub fn print(overview: &Overview, terminal: &mut Terminal) -> CliResult {
    if terminal.json {
        return terminal.out.json(&as_json(overview));
    }
    for provider in &overview.providers {
        terminal.line(&head(provider))?;
        let models = provider.models.iter();
        let widths = models.map(|model| model.name.chars().count());
        let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
        for model in &provider.models {
            terminal.line(&line(model, width))?;
        }
    }
    let chain = overview.chain.join(", ");
    terminal.line(&format!("\nin use: {chain}, {}", overview.because))?;
    terminal.line(&format!("table of models: {}", overview.table))?;
    for advice in &overview.advice {
        terminal.line(advice)?;
    }
    Ok(())
}

fn head(provider: &Listed) -> String {
    let mut head = provider.name.clone();
    match &provider.settings {
        None if provider.problem.is_some() => {}
        None => head.push_str("  built in, needs no key and no network"),
        Some(server) => {
            let (url, dialect) = (&server.base_url, server.dialect().as_str());
            let key = key_source(server);
            head.push_str(&format!("  {url} ({dialect}), {key}"));
        }
    }
    if let Some(problem) = &provider.problem {
        head.push_str(&format!("; unavailable: {}", harmless(problem)));
    }
    head
}

/// Where a provider's key comes from, as text.
pub fn key_source(provider: &Provider) -> String {
    match (&provider.key_env, &provider.key_file) {
        (Some(name), _) => format!("key from {name}"),
        (None, Some(path)) => format!("key from `{}`", path.display()),
        (None, None) => "no key".to_owned(),
    }
}

fn line(model: &ListedModel, width: usize) -> String {
    let mut facts = Vec::new();
    if let Some(window) = model.context_window {
        facts.push(format!("{window} tokens"));
    }
    if model.price == Some(Price::FREE) {
        facts.push("free".to_owned());
    } else if let Some(price) = &model.price {
        let [input, cached, output] = [price.input, price.cached, price.output].map(dollars);
        facts.push(format!("{input} in, {cached} cached, {output} out"));
    }
    facts.extend(model.retires.as_ref().map(|day| match &model.successor {
        Some(successor) => format!("retires on {day}, then {successor}"),
        None => format!("retires on {day}"),
    }));
    match model.choice {
        None => {}
        Some(1) => facts.push("first choice".to_owned()),
        Some(place) => facts.push(format!("choice {place}")),
    }
    let name = harmless(&model.name);
    let line = format!("  {name:<width$}  {}", facts.join("; "));
    line.trim_end().to_owned()
}

fn dollars(money: NanoUsd) -> String {
    let text = money.to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn as_json(overview: &Overview) -> Value {
    let provider = |provider: &Listed| {
        let server = provider.settings.as_ref();
        let key = server.and_then(|server| match (&server.key_env, &server.key_file) {
            (Some(variable), _) => Some(json!({ "variable": variable })),
            (None, file) => file.as_ref().map(|file| json!({ "file": file })),
        });
        json!({
            "name": provider.name,
            "dialect": server.map(|server| server.dialect().as_str()),
            "base_url": server.map(|server| &server.base_url),
            "key": key,
            "reachable": provider.problem.is_none(),
            "problem": provider.problem,
            "models": provider.models,
        })
    };
    json!({
        "chain": overview.chain,
        "because": overview.because,
        "providers": overview.providers.iter().map(provider).collect::<Vec<_>>(),
        "advice": overview.advice,
        "table": overview.table,
    })
}

fn usd_of<S: Serializer>(price: &Option<Price>, serializer: S) -> Result<S::Ok, S::Error> {
    let price = price.as_ref().map(|price| {
        let [input, cached, output] = [price.input, price.cached, price.output].map(usd);
        json!({ "input": input, "cached": cached, "output": output })
    });
    price.serialize(serializer)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the shortest decimal of the nearest float is the amount again"
)]
pub(super) fn usd(money: NanoUsd) -> f64 {
    money.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_printed_without_trailing_zeros() {
        for (nanos, text) in [
            (0, "$0"),
            (3_000_000_000, "$3"),
            (75_000_000, "$0.075"),
            (10_000_000_000, "$10"),
        ] {
            assert_eq!(dollars(NanoUsd(nanos)), text);
        }
    }
}
