//! Lists the models that a provider reports.

use std::time::Duration;

use reqwest::{Response, header::ACCEPT};
use serde::Deserialize;
use tokio::time::timeout;

use super::Shared;
use crate::{
    llm::{
        ModelSettings, fault,
        lenient::{Count, Few, Members, Object, Text, parse, parse_object},
    },
    model::{Fault, FaultCode},
};

/// Byte limit; the longest known lists have hundreds of kilobytes.
const LIST_LIMIT: usize = 8 << 20;
/// Deadline for the body of the list.
const LIST_TIME: Duration = Duration::from_secs(30);

/// Most models of a list; the longest known one has hundreds.
const MODELS: usize = 16_384;

type Models<'a> = Few<Object<Model<'a>>, MODELS>;

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Listed<'a> {
    data: Models<'a>,
}

/// A model's fields. Servers agree on `id` only.
type Model<'a> = Members<'a>;

const WINDOWS: [&str; 5] = [
    "context_length",
    "context_window",
    "max_context_length",
    "max_model_len",
    "max_input_tokens",
];
const OUTPUTS: [&str; 2] = ["max_completion_tokens", "max_output_tokens"];

/// The up to three names nearest to `model`, in backticks; empty if `model` is among them or there
/// are none.
pub fn nearest(names: &[&str], model: &str) -> Vec<String> {
    // Gemini lists models with a folder prefix, which calls may omit.
    let names = names
        .iter()
        .map(|name| name.strip_prefix("models/").unwrap_or(name));
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (strsim::osa_distance(name, model), name))
        .collect();
    near.sort_unstable();
    if near.first().is_some_and(|(edits, _)| *edits == 0) {
        return Vec::new();
    }
    near.truncate(3);
    near.iter().map(|(_, name)| format!("`{name}`")).collect()
}

pub(super) async fn list(shared: &Shared) -> Result<Vec<ModelSettings>, Fault> {
    let connection = &shared.connection;
    let url = (shared.main.protocol().listing)(connection);
    let asked = connection
        .client
        .get(url)
        .headers(connection.headers.clone())
        .header(ACCEPT, "application/json")
        .send();
    let answered = timeout(shared.patience, asked)
        .await
        .map_err(|_| fault::headers_late(&connection.place, shared.patience, shared.local))?;
    let response = answered.map_err(|error| fault::of_send(&error, &connection.place))?;
    if !response.status().is_success() {
        return Err(super::exchange::refusal(response, shared).await);
    }
    let body = timeout(LIST_TIME, whole(response)).await.map_err(|_| {
        let detail = "the list of models did not arrive in time";
        Fault::retryable(FaultCode::Stall, detail)
    })??;
    models(&String::from_utf8_lossy(&body))
}

async fn whole(mut response: Response) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::new();
    let broken = |error| fault::of_body(&error);
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > LIST_LIMIT {
            return Err(fault::too_much("the list of models is too long"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn models(json: &str) -> Result<Vec<ModelSettings>, Fault> {
    let mut space = String::new();
    // Some servers send the list alone.
    let listed = match json.trim_start().starts_with('[') {
        true => parse(json, &mut space)?,
        false => parse_object::<Listed<'_>>(json, &mut space)?.data,
    };
    let models = listed.0.into_iter().filter_map(|model| model.0);
    Ok(models.filter_map(|model| settings(&model)).collect())
}

/// `None` if it has no name.
fn settings(model: &Model<'_>) -> Option<ModelSettings> {
    let name: Text<'_> = field(model, "id")?;
    let top: Object<Model<'_>> = field(model, "top_provider").unwrap_or_default();
    let first = |names: &[&str]| {
        let of_one = |of: &Model<'_>| names.iter().find_map(|name| count(of, name));
        top.0.as_ref().and_then(of_one).or_else(|| of_one(model))
    };
    (!name.is_empty()).then(|| ModelSettings {
        context_window: first(&WINDOWS),
        max_output: first(&OUTPUTS),
        name: name.0.into_owned(),
        ..ModelSettings::default()
    })
}

fn count(model: &Model<'_>, name: &str) -> Option<u64> {
    let count: Count = field(model, name)?;
    count.0.filter(|count| *count > 0)
}

fn field<'a, T: Deserialize<'a>>(model: &Model<'a>, name: &str) -> Option<T> {
    serde_json::from_str(model.0.get(name)?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_models_are_named_unless_the_model_is_listed() {
        let listed = [
            "gpt-5",
            "gpt-4.1",
            "gpt-4o",
            "models/gpt-4.1-mini",
            "whisper-1",
        ];
        for (model, near) in [
            ("gpt-4.2", &["`gpt-4.1`", "`gpt-4o`", "`gpt-5`"][..]),
            ("gpt-4.1-mni", &["`gpt-4.1-mini`", "`gpt-4.1`", "`gpt-4o`"]),
            ("gpt-4.1-mini", &[]),
        ] {
            assert_eq!(nearest(&listed, model), near, "{model}");
        }
        assert!(nearest(&[], "x").is_empty());
    }
}
