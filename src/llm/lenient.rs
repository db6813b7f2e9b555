//! JSON as servers send it, not as they document it: fields of another type count as absent, and
//! what clients in Python and JavaScript read is read.
//!
//! A value is taken as text first, and its first character says what it is. Only a text that
//! `serde_json` refuses is [`mended`] and parsed again. Lists, and
//! the number of all values, are bounded, so that a small text cannot become a large value.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::fault;
use crate::model::{Fault, json, surrogates};

/// Bound on the elements of a list.
pub(super) const MOST: usize = 256;

/// Below this length, values are not counted before parsing. Most events are shorter.
const SHORT: usize = 4 << 10;

/// Parses a text; a text that needs mending is mended in `space`.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    json: &'a str,
    space: &'a mut String,
) -> Result<T, Fault> {
    let is_whole = matches!(surrogates::mended(json), Cow::Borrowed(_));
    let unmended = || match json.len() < SHORT {
        true => serde_json::from_str(json),
        false => json::read(json),
    };
    if is_whole && let Ok(read) = unmended() {
        return Ok(read);
    }
    *space = mended(json);
    json::read(space).map_err(|error| fault::bad_stream(&error))
}

/// Parses a text of which the outermost value should be an object.
pub(super) fn parse_object<'a, T: Deserialize<'a> + Default>(
    json: &'a str,
    space: &'a mut String,
) -> Result<T, Fault> {
    parse::<Object<T>>(json, space).map(|read| read.0.unwrap_or_default())
}

/// Rewrites [what only other languages read](json::value), unless anything but the end of a stream
/// follows it.
pub fn mended(text: &str) -> String {
    let ends = |rest: &str| ["[DONE]", "data:"].iter().any(|end| rest.starts_with(end));
    match json::value(text) {
        Some((json, end)) if text[end..].trim().is_empty() || ends(&text[end..]) => json,
        _ => text.to_owned(),
    }
}

/// An object's members.
#[derive(Default)]
pub(super) struct Members<'a>(pub(super) BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self::default())
    }
}

impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
            if value.get() != "null" || !self.0.contains_key(&key) {
                self.0.insert(key, value);
            }
        }
        Ok(self)
    }
}

/// Takes the text of a value of any type.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'de str, D::Error> {
    <&RawValue>::deserialize(deserializer).map(RawValue::get)
}

fn read<'de, T: Deserialize<'de>, E: Error>(json: &'de str) -> Result<T, E> {
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

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = raw(deserializer)?;
        let is_whole = json.bytes().all(|c| c == b'-' || c.is_ascii_digit());
        Ok(Self(match json.as_bytes().first() {
            Some(b'"') => read::<Quoted<'_>, _>(json)?.0,
            Some(b'[') => {
                let pieces: Few<Object<ContentPart<'_>>> = read(json)?;
                let pieces = pieces.0.iter().filter_map(|piece| piece.0.as_ref());
                let texts =
                    pieces.filter(|piece| matches!(&*piece.kind.0, "" | "text" | "output_text"));
                texts.map(|piece| &*piece.text.0).collect::<String>().into()
            }
            _ if is_whole => json.into(),
            _ => Cow::default(),
        }))
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let figures = raw(deserializer)?.trim_matches('"').trim();
        let whole = figures.split('.').next().unwrap_or_default();
        Ok(Self(whole.parse().ok()))
    }
}

/// A list of at most `N` elements; empty if absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Few<T, const N: usize = MOST>(pub(super) Vec<T>);

impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Few<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = raw(deserializer)?;
        if !json.starts_with('[') {
            return Ok(Self::default());
        }
        // A list of what is ignored takes no memory.
        if read::<Vec<IgnoredAny>, D::Error>(json)?.len() > N {
            return Err(D::Error::custom(format_args!("more than {N} elements")));
        }
        read(json).map(Self)
    }
}

/// An object read as `T`; `None` for any other value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = raw(deserializer)?;
        let object = json.starts_with('{').then(|| read(json));
        object.transpose().map(Self)
    }
}

#[cfg(test)]
mod tests;
