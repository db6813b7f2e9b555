//! JSON as servers send it, not as they document it: fields of another type count as absent.
//!
//! The first byte of a value tells its type. Texts are borrowed where possible, and lists are
//! bounded, so that a small text cannot become a large value.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Bound on the elements of a list.
pub(super) const MOST: usize = 256;

fn json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de str, D::Error> {
    <&RawValue>::deserialize(deserializer).map(RawValue::get)
}

fn parsed<'de, T: Deserialize<'de>, E: Error>(json: &'de str) -> Result<T, E> {
    serde_json::from_str(json).map_err(E::custom)
}

/// A text; empty if absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl Text<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Deserialize)]
struct Quoted<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = json(deserializer)?;
        if json.starts_with('"') {
            return parsed(json).map(|Quoted(text)| Self(text));
        }
        if json.starts_with('[') {
            let mut parts: Few<ContentPart<'_>> = parsed(json)?;
            let is_text = |kind: &Text<'_>| matches!(&*kind.0, "" | "text" | "output_text");
            parts.0.retain(|part| is_text(&part.kind));
            return Ok(Self(parts.0.iter().map(|part| &*part.text.0).collect()));
        }
        let is_whole = json.parse::<i128>().is_ok();
        Ok(Self(if is_whole { json.into() } else { "".into() }))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked before"
    )]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = json(deserializer)?.trim_matches('"').trim();
        let fraction = number.parse::<f64>().ok();
        let fraction = fraction.filter(|number| (0.0..1e15).contains(number));
        let whole = number.parse::<u64>().ok();
        Ok(Self(whole.or(fraction.map(|number| number as u64))))
    }
}

/// A list of at most [`MOST`] elements; empty if absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Few<T>(pub(super) Vec<T>);

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        list(deserializer, Some(MOST)).map(Self)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct First<T>(pub(super) Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = list(deserializer, None)?;
        Ok(Self(list.into_iter().next()))
    }
}

fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    most: Option<usize>,
) -> Result<Vec<T>, D::Error> {
    let json = json(deserializer)?;
    if !json.starts_with('[') {
        return Ok(Vec::new());
    }
    let mut json = serde_json::Deserializer::from_str(json);
    let list = json.deserialize_seq(ListVisitor(most, PhantomData));
    list.map_err(D::Error::custom)
}

/// Has a bound on the elements; without one, only the first is kept.
struct ListVisitor<T>(Option<usize>, PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
            match self.0 {
                Some(most) if elements.len() > most => {
                    return Err(A::Error::custom(format_args!("more than {most} elements")));
                }
                Some(_) => {}
                None => while list.next_element::<IgnoredAny>()?.is_some() {},
            }
        }
        Ok(elements)
    }
}

/// An object read as `T`; `None` for any other value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = json(deserializer)?;
        let object = json.starts_with('{').then(|| parsed(json));
        object.transpose().map(Self)
    }
}

#[cfg(test)]
mod tests;
