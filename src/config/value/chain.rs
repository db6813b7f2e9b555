//! Which models are asked, in which order.

use serde::{Deserialize, Deserializer, Serialize, de};

use super::NotAllowed;

/// Most models in a chain.
const MOST: usize = 8;

/// Models as `provider/model`, the first choice first; one to eight, none twice. In text one name,
/// or several with commas between them; `offline` is short for `offline/offline`. The model of
/// `scripted` is a path, which may hold white space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ModelChain(Vec<String>);

impl ModelChain {
    /// The built-in model alone, which needs no key and no network.
    #[must_use]
    pub fn offline() -> Self {
        Self(vec!["offline/offline".to_owned()])
    }

    /// A chain of these models.
    ///
    /// # Errors
    /// If there are none, too many or a double, or a name has not the form `provider/model`.
    pub fn new<'a>(models: impl IntoIterator<Item = &'a str>) -> Result<Self, NotAllowed> {
        let models: Option<Vec<String>> = models.into_iter().map(full_name).collect();
        let fits = |models: &Vec<String>| {
            let double = |at: usize| models[..at].contains(&models[at]);
            (1..=MOST).contains(&models.len()) && !(0..models.len()).any(double)
        };
        models.filter(fits).map(Self).ok_or_else(|| {
            NotAllowed(format!(
                "1 to {MOST} different models, each written provider/model"
            ))
        })
    }

    /// One model, which is known to have the form.
    pub(in crate::config) fn one(provider: &str, model: &str) -> Self {
        Self(vec![format!("{provider}/{model}")])
    }

    /// The providers of its models, each once, in order.
    #[must_use]
    pub fn providers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for model in &self.0 {
            let name = model
                .split_once('/')
                .map_or(model.as_str(), |(name, _)| name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The models as `provider/model`, the first choice first; at least one.
    #[must_use]
    pub fn models(&self) -> &[String] {
        &self.0
    }
}

/// One model as `provider/model`, as in a [`ModelChain`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OneModel(String);

impl OneModel {
    /// A model of this name.
    ///
    /// # Errors
    /// If the name has not the form `provider/model`.
    pub fn new(name: &str) -> Result<Self, NotAllowed> {
        let form = || NotAllowed("a model, written provider/model".to_owned());
        full_name(name).map(Self).ok_or_else(form)
    }

    /// The chain of this model alone.
    #[must_use]
    pub fn chain(&self) -> ModelChain {
        ModelChain(vec![self.0.clone()])
    }
}

impl<'de> Deserialize<'de> for OneModel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = match Written::deserialize(deserializer)? {
            Written::Text(name) => name,
            Written::List(_) | Written::Other(_) => String::new(),
        };
        Self::new(&name).map_err(de::Error::custom)
    }
}

fn full_name(name: &str) -> Option<String> {
    let name = name.trim();
    if name == "offline" {
        return Some("offline/offline".to_owned());
    }
    let (provider, model) = name.split_once('/')?;
    let provider_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let path_char = |c: char| !c.is_control() && c != ',';
    let model_char = |c| match provider {
        "scripted" => path_char(c),
        _ => is_name_char(c),
    };
    let good = !provider.is_empty() && provider.chars().all(provider_char);
    (good && !model.is_empty() && model.chars().all(model_char)).then(|| name.to_owned())
}

/// What the name of a model may be made of.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_graphic() && !"\"'`,".contains(c)
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    List(Vec<String>),
    /// Anything else; refused with what is allowed, like an empty list.
    Other(de::IgnoredAny),
}

impl<'de> Deserialize<'de> for ModelChain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let chain = match Written::deserialize(deserializer)? {
            Written::Text(text) => Self::new(text.split(',')),
            Written::List(list) => Self::new(list.iter().map(String::as_str)),
            Written::Other(_) => Self::new([]),
        };
        chain.map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_model_is_read_as_in_a_chain_and_alone() {
        for (text, model) in [
            ("offline", Some("offline/offline")),
            (" a/b ", Some("a/b")),
            ("a/b, c/d", None),
            ("b", None),
            ("", None),
        ] {
            let found = OneModel::new(text).ok().map(|model| model.chain());
            let found = found.as_ref().map(|chain| chain.models()[0].as_str());
            assert_eq!(found, model, "{text}");
        }
    }

    #[test]
    fn chains_are_read_from_text() {
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
