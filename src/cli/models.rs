//! `oracle models`: which providers there are, whether they answer, and what they have.

use std::path::PathBuf;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{
    Stop,
    terminal::{Terminal, harmless},
};
use crate::model::{NanoUsd, Price};

const WIDEST: usize = 40;

/// All that there is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The models that are asked, the first choice first.
    pub chain: Vec<String>,
    /// Why they.
    pub because: String,
    /// Those that could be asked.
    pub providers: Vec<Listed>,
    /// What to do where only the built-in model can be asked.
    pub advice: Vec<String>,
}

/// A provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Where it is, and how it is talked to; none for what is built in, and where that is what is wrong.
    pub server: Option<Server>,
    /// Why it cannot be asked.
    pub problem: Option<String>,
    /// What it has.
    pub models: Vec<ListedModel>,
}

/// Where a provider is, and how it is talked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// As it is configured.
    pub dialect: &'static str,
    /// The same.
    pub base_url: String,
    /// Where its key is from.
    pub key: KeyFrom,
}

/// Where a key is from; never the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyFrom {
    /// This environment variable.
    Variable(String),
    /// This file.
    File(PathBuf),
    /// It needs none.
    #[serde(untagged)]
    Nowhere,
}

/// A model of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedModel {
    /// Its name, without its provider.
    pub name: String,
    /// How many tokens fit, if that is known.
    pub context_window: Option<u64>,
    /// Most tokens of a reply, if that is known.
    #[serde(rename = "max_output_tokens")]
    pub max_output: Option<u64>,
    /// What it costs, if that is known.
    #[serde(rename = "usd_per_million_tokens", serialize_with = "usd_of")]
    pub price: Option<Price>,
    /// Its place in the chain, from 1.
    pub choice: Option<usize>,
}

/// Prints it.
pub fn print(overview: &Overview, json: bool, terminal: &mut Terminal) -> Result<(), Stop> {
    if json {
        return terminal.out.json(&as_json(overview));
    }
    for provider in &overview.providers {
        terminal.line(&head(provider))?;
        let widths = provider
            .models
            .iter()
            .map(|model| model.name.chars().count());
        let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or(0);
        for model in &provider.models {
            terminal.line(&line(model, width))?;
        }
    }
    let chain = overview.chain.join(", ");
    terminal.line(&format!("\nasked are {chain}, {}", overview.because))?;
    for advice in &overview.advice {
        terminal.line(advice)?;
    }
    Ok(())
}

fn head(provider: &Listed) -> String {
    let mut head = provider.name.clone();
    match &provider.server {
        None if provider.problem.is_some() => {}
        None => head.push_str("  built in, needs no key and no network"),
        Some(server) => {
            let (url, dialect, key) = (&server.base_url, server.dialect, server.key.told());
            head.push_str(&format!("  {url} ({dialect}), {key}"));
        }
    }
    if let Some(problem) = &provider.problem {
        head.push_str(&format!("; not to be asked: {}", harmless(problem)));
    }
    head
}

impl KeyFrom {
    /// In words.
    #[must_use]
    pub fn told(&self) -> String {
        match self {
            Self::Nowhere => "no key".to_owned(),
            Self::Variable(name) => format!("key from {name}"),
            Self::File(path) => format!("key from `{}`", path.display()),
        }
    }
}

fn line(model: &ListedModel, width: usize) -> String {
    let mut facts = Vec::new();
    if let Some(window) = model.context_window {
        facts.push(format!("{window} tokens"));
    }
    if let Some(price) = &model.price {
        let [input, cached, output] = [price.input, price.cached, price.output].map(dollars);
        facts.push(format!("{input} in, {cached} cached, {output} out"));
    }
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
        let server = provider.server.as_ref();
        json!({
            "name": provider.name,
            "dialect": server.map(|server| server.dialect),
            "base_url": server.map(|server| &server.base_url),
            "key": server.map(|server| &server.key),
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
    })
}

fn usd_of<S: Serializer>(price: &Option<Price>, serializer: S) -> Result<S::Ok, S::Error> {
    let price = price.map(|price| {
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
    fn money_has_no_idle_zeros() {
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
