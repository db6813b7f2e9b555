//! JSON and texts for serde, so that what is wrong is known with the field it is wrong in: serde_json's own
//! errors say that in words for people only.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserializer,
    de::{
        self, DeserializeSeed, Expected, IntoDeserializer as _, MapAccess, SeqAccess, Unexpected,
        Visitor,
    },
};
use serde_json::Value;

/// Up to here each whole number has a floating-point form of its own.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The innermost first.
    path: Vec<String>,
    what: String,
}

impl Fault {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            what: what.into(),
        }
    }

    /// It is in this field.
    pub(super) fn within(mut self, field: &str) -> Self {
        self.path.push(field.to_owned());
        self
    }

    /// Which field, with dots between its parts; none where the whole is wrong.
    pub(super) fn field(&self) -> Option<String> {
        let parts: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join("."))
    }

    /// What is wrong, to be read behind the name of the field.
    pub(super) fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self::new(format!("is not in order: {what}"))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("has to be {expected}, and is {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("has to be {expected}, and is {found}"))
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        let expected = expected.join("`, `");
        Self::new(format!("is `{found}`, and has to be one of `{expected}`"))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let expected = expected.join("`, `");
        Self::new(format!("is not known here; there are `{expected}`")).within(field)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is missing").within(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new("is given more than once").within(field)
    }
}

/// Something to be read.
pub(super) enum Node {
    /// A piece of JSON.
    Json(Value),
    /// Texts by name.
    Texts(BTreeMap<String, Vec<String>>),
    /// What stands under one name.
    Text(Vec<String>),
}

impl Node {
    pub(super) const fn json(value: Value) -> Self {
        Self::Json(value)
    }

    pub(super) fn texts(pairs: Vec<(String, String)>) -> Self {
        let mut texts = BTreeMap::<_, Vec<_>>::new();
        for (name, value) in pairs {
            texts.entry(name).or_default().push(value);
        }
        Self::Texts(texts)
    }
}

/// The one text that stands there.
fn only(texts: Vec<String>) -> Result<String, Fault> {
    let mut texts = texts.into_iter();
    match (texts.next(), texts.next()) {
        (Some(text), None) => Ok(text),
        _ => Err(Fault::new("is given more than once")),
    }
}

/// Numbers are written in texts as in JSON.
macro_rules! numbers {
    ($($method:ident $visit:ident $number:ty,)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let Self::Text(texts) = self else {
                return self.deserialize_any(visitor);
            };
            let text = only(texts)?;
            match text.parse::<$number>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => Err(de::Error::invalid_value(Unexpected::Str(&text), &visitor)),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Node {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Json(Value::Null) => visitor.visit_unit(),
            Self::Json(Value::Bool(flag)) => visitor.visit_bool(flag),
            Self::Json(Value::Number(number)) => {
                if let Some(number) = number.as_u64() {
                    visitor.visit_u64(number)
                } else if let Some(number) = number.as_i64() {
                    visitor.visit_i64(number)
                } else {
                    let number = number.as_f64().unwrap_or(f64::NAN);
                    // JSON has one kind of number: 11.0 is 11.
                    if number.fract() == 0.0 && (0.0..LARGEST_WHOLE).contains(&number) {
                        visitor.visit_u64(number as u64)
                    } else {
                        visitor.visit_f64(number)
                    }
                }
            }
            Self::Json(Value::String(text)) => visitor.visit_string(text),
            Self::Json(Value::Array(items)) => {
                let items = items.into_iter().map(Self::Json).enumerate();
                visitor.visit_seq(Items(items))
            }
            Self::Json(Value::Object(fields)) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, value)| (name, Self::Json(value)));
                visitor.visit_map(Fields::new(fields))
            }
            Self::Texts(fields) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, texts)| (name, Self::Text(texts)));
                visitor.visit_map(Fields::new(fields))
            }
            Self::Text(texts) => visitor.visit_string(only(texts)?),
        }
    }

    numbers! {
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_i64 visit_i64 i64,
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Self::Text(texts) = self else {
            return self.deserialize_any(visitor);
        };
        let text = only(texts)?;
        match text.as_str() {
            "1" | "true" => visitor.visit_bool(true),
            "0" | "false" => visitor.visit_bool(false),
            _ => Err(Fault::new(format!("has to be `1` or `0`, and is `{text}`"))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Json(Value::Null) => visitor.visit_none(),
            Self::Json(_) | Self::Texts(_) | Self::Text(_) => visitor.visit_some(self),
        }
    }

    /// A list of texts has commas between them, or is given as often as it has texts.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Self::Text(texts) = self else {
            return self.deserialize_any(visitor);
        };
        let parts = texts.iter().flat_map(|text| text.split(','));
        let nodes = parts.map(|part| Self::Text(vec![part.to_owned()]));
        visitor.visit_seq(Items(nodes.enumerate()))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// Never a list of its fields' values, which serde would take too.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self {
            Self::Json(Value::Object(_)) | Self::Texts(_) => self.deserialize_any(visitor),
            Self::Json(_) | Self::Text(_) => Err(Fault::new("has to be an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let word = match self {
            Self::Json(Value::String(word)) => word,
            Self::Text(texts) => only(texts)?,
            Self::Json(_) | Self::Texts(_) => return Err(Fault::new("has to be a word")),
        };
        visitor.visit_enum(word.into_deserializer())
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct map identifier ignored_any
    }
}

/// A list of which each item knows its place.
struct Items<I>(I);

impl<'de, I: Iterator<Item = (usize, Node)>> SeqAccess<'de> for Items<I> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some((index, node)) = self.0.next() else {
            return Ok(None);
        };
        let read = seed.deserialize(node).map(Some);
        read.map_err(|fault| fault.within(&index.to_string()))
    }
}

/// An object of which each field knows its name.
struct Fields<I> {
    fields: I,
    /// The field whose name was read last.
    at: Option<(String, Node)>,
}

impl<I> Fields<I> {
    const fn new(fields: I) -> Self {
        Self { fields, at: None }
    }
}

impl<'de, I: Iterator<Item = (String, Node)>> MapAccess<'de> for Fields<I> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        self.at = self.fields.next();
        match &self.at {
            Some((name, _)) => seed
                .deserialize(name.as_str().into_deserializer())
                .map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some((name, node)) = self.at.take() else {
            return Err(Fault::new("has a value without a name"));
        };
        seed.deserialize(node).map_err(|fault| fault.within(&name))
    }
}
