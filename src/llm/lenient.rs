//! JSON as servers send it, not as they document it: fields of another type count as absent, and
//! what clients in Python and JavaScript read is read.
//!
//! Parsing is one pass that borrows where possible. Only a text that it refuses is [`mended`] and
//! parsed again. Lists are bounded, so that a small text cannot become a large value.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Value, value::RawValue};

use super::surrogates;

/// Bound on the elements of a list.
pub(super) const MOST: usize = 256;
/// Bound on the depth, that of `serde_json`.
const DEPTH: usize = 128;

/// Parses a text; a text that needs mending is mended in `space`.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    json: &'a str,
    space: &'a mut String,
) -> serde_json::Result<T> {
    let is_whole = matches!(surrogates::mended(json), Cow::Borrowed(_));
    if is_whole && let Ok(read) = serde_json::from_str(json) {
        return Ok(read);
    }
    *space = mended(json);
    serde_json::from_str(space)
}

/// Parses a text of which the outermost value should be an object.
pub(super) fn parse_object<'a, T: Deserialize<'a> + Default>(
    json: &'a str,
    space: &'a mut String,
) -> serde_json::Result<T> {
    parse::<Object<T>>(json, space).map(|read| read.0.unwrap_or_default())
}

/// Rewrites what only other languages read: of a repeated key, the last value that is not `null`
/// counts; numbers that are none and a byte order mark go, halves of characters are replaced.
/// Other values stay byte for byte.
pub(crate) fn mended(json: &str) -> String {
    let json = without_words(surrogates::mended(json).trim_start_matches('\u{feff}'));
    let mut merged = String::with_capacity(json.len());
    match merge_keys(&json, DEPTH, &mut merged) {
        Ok(()) => merged,
        Err(_) => json,
    }
}

/// Replaces the numbers of Python and JavaScript that JSON does not have.
fn without_words(json: &str) -> String {
    let (mut text, mut quoted, mut escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        text.push(c);
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            'N' | 'y' if !quoted => {
                let words = ["-Infinity", "Infinity", "NaN"];
                let left = words.iter().find_map(|word| text.strip_suffix(word));
                if let Some(left) = left.map(str::len) {
                    text.truncate(left);
                    text.push_str("null");
                }
            }
            _ => {}
        }
    }
    text
}

fn merge_keys(json: &str, depth: usize, out: &mut String) -> serde_json::Result<()> {
    let below = depth.saturating_sub(1);
    let closes = match json.trim_start().as_bytes().first() {
        Some(b'{') if depth > 0 => {
            out.push('{');
            for (key, value) in serde_json::from_str::<Members<'_>>(json)?.0 {
                out.extend([&*Value::from(key).to_string(), ":"]);
                merge_keys(value.get(), below, out)?;
                out.push(',');
            }
            '}'
        }
        Some(b'[') if depth > 0 => {
            out.push('[');
            for value in serde_json::from_str::<Vec<&RawValue>>(json)? {
                merge_keys(value.get(), below, out)?;
                out.push(',');
            }
            ']'
        }
        _ => {
            out.push_str(json);
            return Ok(());
        }
    };
    // A value never ends with a comma.
    out.truncate(out.trim_end_matches(',').len());
    out.push(closes);
    Ok(())
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

/// Reads values of other types as absent.
macro_rules! absent {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, _: $type) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        })*

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
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
        deserializer.deserialize_any(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    absent!(visit_f64: f64, visit_bool: bool);

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut joined = String::new();
        while let Some(piece) = list.next_element::<Object<ContentPart<'de>>>()? {
            let Some(piece) = piece.0 else { continue };
            if matches!(&*piece.kind.0, "" | "text" | "output_text") {
                joined.push_str(&piece.text.0);
            }
        }
        Ok(Cow::Owned(joined))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(map).map(|_| Cow::default())
    }
}

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
        deserializer.deserialize_any(CountVisitor).map(Self)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(u64::try_from(number).ok())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked before"
    )]
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok((0.0..1e15).contains(&number).then_some(number as u64))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.trim().parse().ok())
    }

    absent!(visit_bool: bool);

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(list).map(|_| None)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(map).map(|_| None)
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
        let visitor = ListVisitor::<T, N>(PhantomData);
        deserializer.deserialize_any(visitor).map(Self)
    }
}

struct ListVisitor<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for ListVisitor<T, N> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
            if elements.len() > N {
                return Err(A::Error::custom(format_args!("more than {N} elements")));
            }
        }
        Ok(elements)
    }

    absent!(visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str);

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(map).map(|_| Vec::new())
    }
}

/// An object read as `T`; `None` for any other value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = ObjectVisitor(PhantomData);
        deserializer.deserialize_any(visitor).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }

    absent!(visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_f64: f64, visit_str: &str);

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(list).map(|_| None)
    }
}

#[cfg(test)]
mod tests;
