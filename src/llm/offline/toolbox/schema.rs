//! What the schemas of tools say of their arguments. Pure.

use serde_json::Value;

use crate::model::ToolSpec;

/// What a tool says of an argument; none if it has no such one.
pub(super) fn property<'a>(tool: &'a ToolSpec, name: &str) -> Option<&'a Value> {
    tool.schema.get("properties")?.get(name)
}

/// Whether a property that names its values has this one; one that names none takes any.
pub(super) fn allows(tool: &ToolSpec, property: &Value, value: &str) -> bool {
    let mut named = Vec::new();
    named_values(tool, property, &mut named);
    named.is_empty() || named.contains(&value)
}

fn named_values<'a>(tool: &'a ToolSpec, property: &'a Value, named: &mut Vec<&'a str>) {
    let list = |name: &str| {
        property
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    named.extend(
        list("enum")
            .chain(property.get("const"))
            .filter_map(Value::as_str),
    );
    // One level of alternatives and references, as schema generators write them.
    let referred = property
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| tool.schema.pointer(reference.strip_prefix('#')?));
    for inner in list("oneOf")
        .chain(list("anyOf"))
        .chain(list("allOf"))
        .chain(referred)
    {
        let is_leaf = inner.get("$ref").is_none();
        if is_leaf {
            named_values(tool, inner, named);
        }
    }
}

/// A number within the bounds of a property.
pub(super) fn bounded(property: &Value, number: u64) -> u64 {
    let bound = |name: &str| property.get(name).and_then(Value::as_u64);
    number
        .min(bound("maximum").unwrap_or(number))
        .max(bound("minimum").unwrap_or(0))
}
