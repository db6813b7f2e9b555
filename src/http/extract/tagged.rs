//! Bodies of which one field says what they are.
//!
//! serde puts the other fields of such a body aside until it knows what they belong to, and where they were is
//! lost by then. So what is wrong is looked for field by field, once it is known that something is.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::node::{Fault, Node};

/// What no field is called. It comes last, and fields are read in order: whatever else is wrong with an object
/// that has it is wrong with another field.
const NO_FIELD: &str = "\u{10ffff}";

/// Reads an object of which the field `tag` says what it is. `T` has to refuse fields that it does not know.
pub(super) fn read<T: DeserializeOwned>(
    fields: &Map<String, Value>,
    tag: &str,
) -> Result<T, Fault> {
    // serde would take the number of a variant too.
    if fields.get(tag).is_some_and(|kind| !kind.is_string()) {
        return Err(Fault::new("has to be a word").within(tag));
    }
    T::deserialize(Node::json(fields.clone().into())).map_err(|fault| {
        let found = find::<T>(fields, tag);
        found.unwrap_or_else(|| match fault.field() {
            // One that is missing.
            Some(_) => fault,
            None => fault.within(tag),
        })
    })
}

/// What is wrong with a field that is there, other than with the tag.
fn find<T: DeserializeOwned>(fields: &Map<String, Value>, tag: &str) -> Option<Fault> {
    let kind = fields.get(tag)?;
    let fault_of = |field: Option<(&String, &Value)>| {
        let mut alone = Map::new();
        alone.extend(field.map(|(name, value)| (name.clone(), value.clone())));
        alone.insert(tag.to_owned(), kind.clone());
        alone.insert(NO_FIELD.to_owned(), Value::Null);
        let fault = T::deserialize(Node::json(alone.into())).err()?;
        (fault.field().as_deref() != Some(NO_FIELD)).then_some(fault)
    };
    if fault_of(None).is_some() {
        return None;
    }
    fields.iter().find_map(|(name, value)| {
        let fault = fault_of(Some((name, value)))?;
        let is_unknown = fault.field().as_deref() == Some(name);
        Some(if is_unknown {
            fault
        } else {
            fault.within(name)
        })
    })
}
