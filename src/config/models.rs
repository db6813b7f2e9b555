//! Names and chains of models.

use serde::{Deserialize, Serialize};

use super::{
    catalogue::Prices,
    presets::{PRESETS, Preset},
};

/// A value is not allowed; the text describes the allowed ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAllowed(pub(super) String);

const MOST: usize = 8;

/// One to eight different models as `provider/model`, the first choice first. The configuration
/// also takes them as text with commas between them. `offline` is short for `offline/offline`; a
/// model of `scripted` is a path, which may contain white space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct ModelChain(Vec<String>);

impl ModelChain {
    /// The offline model alone, which needs no key and no network.
    pub fn offline() -> Self {
        Self(vec!["offline/offline".to_owned()])
    }

    /// Creates a chain.
    ///
    /// # Errors
    /// When it has no models, more than eight or duplicates, or a name does not have the form
    /// `provider/model`.
    pub fn new<'a>(models: impl IntoIterator<Item = &'a str>) -> Result<Self, NotAllowed> {
        let names: Vec<&str> = models.into_iter().collect();
        let models: Option<Vec<String>> = names.iter().map(|name| full_name(name)).collect();
        let fits = |models: &Vec<String>| {
            let double = |at: usize| models[..at].contains(&models[at]);
            (1..=MOST).contains(&models.len()) && !(0..models.len()).any(double)
        };
        models.filter(fits).map(Self).ok_or_else(|| {
            let mut wrong = names.iter().filter(|name| full_name(name).is_none());
            let near = wrong.find_map(|name| near_model(name));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let form = "each written provider/model, such as ollama/qwen3";
            NotAllowed(format!("1 to {MOST} different models, {form}{near}"))
        })
    }

    /// The providers of its models, without duplicates, in order.
    pub fn providers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for model in &self.0 {
            let name = model.split_once('/').map_or(&**model, |(name, _)| name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The models as `provider/model`, the first choice first; never empty.
    pub fn models(&self) -> &[String] {
        &self.0
    }
}

impl TryFrom<Vec<String>> for ModelChain {
    type Error = NotAllowed;

    fn try_from(models: Vec<String>) -> Result<Self, NotAllowed> {
        Self::new(models.iter().map(String::as_str))
    }
}

/// `None` if the name does not have the form `provider/model`.
pub(super) fn full_name(name: &str) -> Option<String> {
    let name = name.trim();
    if name == "offline" {
        return Some("offline/offline".to_owned());
    }
    let (provider, model) = name.split_once('/')?;
    let model_char = |c: char| match provider {
        "scripted" => !c.is_control() && c != ',',
        _ => c.is_ascii_graphic() && !"\"'`,".contains(c),
    };
    let good = is_provider(provider) && !model.is_empty() && model.chars().all(model_char);
    good.then(|| name.to_owned())
}

/// The known model that a name most likely means: `openai/gpt-6.1-terra` for `gpt-6.1-terra`.
pub(crate) fn near_model(name: &str) -> Option<String> {
    let default = |preset: &Preset| Some(format!("{}/{}", preset.name, preset.default_model?));
    let mut known = vec!["offline".to_owned()];
    known.extend(PRESETS.iter().filter_map(default));
    let builtin = Prices::builtin();
    let names = builtin.names().filter(|name| !name.ends_with('*'));
    known.extend(names.map(str::to_owned));
    let near = known.iter().map(|full| {
        let (provider, model) = full.split_once('/').unwrap_or(("", full));
        let is_built_in = provider.is_empty() || Preset::named(provider).is_some();
        ((strsim::osa_distance(name, model), !is_built_in), full)
    });
    let ((edits, _), near) = near.min_by_key(|(rank, _)| *rank)?;
    (edits <= 1.max(name.len() / 5)).then(|| near.clone())
}

pub(super) fn is_provider(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    !name.is_empty() && name.chars().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_chains_are_parsed_from_text() {
        for (text, models) in [
            ("offline", Some(vec!["offline/offline"])),
            ("openai/gpt-x", Some(vec!["openai/gpt-x"])),
            ("local-1/meta/llama:8b", Some(vec!["local-1/meta/llama:8b"])),
            ("a/b, c/d", Some(vec!["a/b", "c/d"])),
            (
                "scripted/my scripts/größe.json",
                Some(vec!["scripted/my scripts/größe.json"]),
            ),
            (
                "scripted//tmp/it's.json",
                Some(vec!["scripted//tmp/it's.json"]),
            ),
            ("scripted/a\nb", None),
            ("", None),
            ("gpt-x", None),
            ("/x", None),
            ("x/", None),
            ("Open AI/x", None),
            ("a/b c", None),
            ("a/b,", None),
            ("a/b,a/b", None),
            ("a/1,a/2,a/3,a/4,a/5,a/6,a/7,a/8,a/9", None),
        ] {
            let chain = ModelChain::new(text.split(',')).ok();
            let got = chain
                .as_ref()
                .map(|c| c.models().iter().map(String::as_str).collect());
            assert_eq!(got, models, "{text}");
        }
    }
}
