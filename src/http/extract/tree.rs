//! How large a tree of JSON becomes, before there is one: a value of two bytes takes tens to hundreds of them
//! there. Counted as it is read, and nothing of it is kept.

use std::{cell::Cell, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// Most values of a body that is read as a tree: several times those of the longest conversation that is taken.
pub(super) const MOST: usize = 1 << 16;
/// In fewer bytes are fewer values.
const FEW: usize = 2 * MOST;

/// Whether a text has no more values than a tree may have. One that is no JSON may be taken for one that has:
/// whoever reads it says what is wrong.
pub(super) fn fits(text: &[u8]) -> bool {
    if text.len() < FEW {
        return true;
    }
    let left = Cell::new(Some(MOST));
    let mut json = serde_json::Deserializer::from_slice(text);
    let counted = (&mut json).deserialize_any(Count(&left));
    counted.is_ok() || left.get().is_some()
}

/// How many more there may be; none where there were too many.
#[derive(Clone, Copy)]
struct Count<'a>(&'a Cell<Option<usize>>);

impl Count<'_> {
    fn one<E: Error>(self) -> Result<(), E> {
        let left = self.0.get().and_then(|left| left.checked_sub(1));
        self.0.set(left);
        left.map(drop).ok_or_else(|| E::custom("too many values"))
    }
}

impl<'de> DeserializeSeed<'de> for Count<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.one()
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.one()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.one()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.one()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.one()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.one()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.one()?;
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        self.one()?;
        while fields.next_key::<IgnoredAny>()?.is_some() {
            fields.next_value_seed(self)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(item: &str, times: usize) -> Vec<u8> {
        format!("[{}]", vec![item; times].join(",")).into_bytes()
    }

    #[test]
    fn values_count_wherever_they_are_and_texts_by_none_of_their_length() {
        let long = format!("\"{}\"", "x".repeat(4 * MOST));
        let deep = format!("{{\"a\":{},\"b\":[{long}]}}", list_of("0", MOST - 4));
        for (text, fits_) in [
            (list("0", MOST - 1), true),
            (list("0", MOST), false),
            (list("1.5e3", MOST), false),
            (list("-1", MOST), false),
            (list("null", MOST), false),
            (list("true", MOST), false),
            (list("\"x\"", MOST), false),
            (list("{}", MOST), false),
            (list("{\"a\":[0]}", MOST / 3), true),
            (list("{\"a\":[0]}", MOST / 3 + 1), false),
            (long.clone().into_bytes(), true),
            (deep.clone().into_bytes(), true),
            (format!("[0,{deep}]").into_bytes(), false),
        ] {
            let start = String::from_utf8_lossy(&text[..20]).into_owned();
            assert_eq!(fits(&text), fits_, "{start}");
        }
    }

    fn list_of(item: &str, times: usize) -> String {
        String::from_utf8(list(item, times)).unwrap()
    }

    #[test]
    fn what_is_no_json_is_for_whoever_reads_it() {
        for text in ["{", "[0,", &"[".repeat(4 * MOST), &"x".repeat(4 * MOST)] {
            assert!(fits(text.as_bytes()));
        }
    }
}
