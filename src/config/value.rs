//! Chains of models, and money as the file has it.

use serde::{Deserialize, Deserializer, Serialize, de};

/// A value that is not allowed; the text says what is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAllowed(pub(super) String);

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

    /// The providers of its models, each once, in order.
    #[must_use]
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

    /// The models as `provider/model`, the first choice first; at least one.
    #[must_use]
    pub fn models(&self) -> &[String] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ModelChain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Text(String),
            List(Vec<String>),
        }
        let chain = match Written::deserialize(deserializer)? {
            Written::Text(text) => Self::new(text.split(',')),
            Written::List(list) => Self::new(list.iter().map(String::as_str)),
        };
        chain.map_err(de::Error::custom)
    }
}

/// A model as `provider/model`, if the name has the form.
pub(super) fn full_name(name: &str) -> Option<String> {
    let name = name.trim();
    if name == "offline" {
        return Some("offline/offline".to_owned());
    }
    let (provider, model) = name.split_once('/')?;
    let provider_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let model_char = |c: char| match provider {
        "scripted" => !c.is_control() && c != ',',
        _ => is_name_char(c),
    };
    let good = !provider.is_empty() && provider.chars().all(provider_char);
    (good && !model.is_empty() && model.chars().all(model_char)).then(|| name.to_owned())
}

/// Whether the name of a model may hold this character.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_graphic() && !"\"'`,".contains(c)
}

/// Money as US dollars, to a millionth.
pub(super) mod usd {
    use serde::{Deserializer, Serializer, de};

    use crate::model::{NanoUsd, decimal};

    /// Most that is allowed, in millionths.
    const MOST: u64 = 1_000_000 * 1_000_000;

    /// US dollars from 0 to 1,000,000 with at most 6 decimals.
    pub(in crate::config) fn parse(text: &str) -> Option<NanoUsd> {
        let micros = decimal::scaled(text, 6).filter(|micros| *micros <= MOST)?;
        Some(NanoUsd(micros * 1_000))
    }

    /// The nearest float, whose shortest decimal is the amount again: it has 13 digits at most.
    #[expect(clippy::cast_precision_loss, reason = "a float holds 15 digits")]
    pub(in crate::config) fn dollars(money: NanoUsd) -> f64 {
        (money.0 / 1_000) as f64 / 1_000_000.0
    }

    pub(in crate::config) fn serialize<S: Serializer>(
        money: &Option<NanoUsd>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match money {
            Some(money) => serializer.serialize_some(&dollars(*money)),
            None => serializer.serialize_none(),
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<NanoUsd>, D::Error> {
        let allowed = "a price is US dollars from 0 to 1000000, with at most 6 decimals";
        let text = decimal::digits(deserializer)?;
        parse(&text)
            .map(Some)
            .ok_or_else(|| de::Error::custom(allowed))
    }

    pub(in crate::config) fn required<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<NanoUsd, D::Error> {
        Ok(deserialize(deserializer)?.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NanoUsd;

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

    #[test]
    fn money_is_exact() {
        for (text, nanos) in [
            ("0.000001", Some(1_000)),
            ("2.5", Some(2_500_000_000)),
            ("1000000", Some(1_000_000_000_000_000)),
            ("999999.999999", Some(999_999_999_999_000)),
            ("0", Some(0)),
            ("1000000.000001", None),
            ("0.0000001", None),
            ("$5", None),
        ] {
            let money = usd::parse(text);
            assert_eq!(money, nanos.map(NanoUsd), "{text}");
            if let Some(money) = money {
                assert_eq!(usd::parse(&usd::dollars(money).to_string()), Some(money));
            }
        }
    }
}
