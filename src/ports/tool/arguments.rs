//! Deserializes arguments of a call, with errors that name the field, and derives their schema for
//! the tool list.
//!
//! The JSON text was parsed before ([`crate::model::ToolCall::parsed`]). Each tool checks its own
//! ranges.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::{ToolError, text};
use crate::model::tool::{ToolNeed, ToolSpec};

/// Longest error text, in characters; serde quotes its input, which can be long.
const MAX_ERROR_CHARS: usize = 400;

/// Deserializes the arguments of a call.
///
/// # Errors
/// [`ToolError::ForModel`], which names a field that is missing, unknown or of the wrong type. Unknown
/// fields are refused if `T` denies them, with a list of the known ones.
pub fn arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    if !arguments.is_object() {
        refuse!("the arguments must be one JSON object");
    }
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let message = text::shortened(&error.inner().to_string(), MAX_ERROR_CHARS);
        ToolError::ForModel(match error.path().iter().next() {
            Some(Segment::Map { key }) => {
                format!("the argument {}: {message}", text::quoted(key))
            }
            _ => format!("the arguments: {message}"),
        })
    })
}

/// The spec of a read-only tool with arguments `T`: it can be repeated and needs no approval. Its
/// schema spends no tokens on lower bounds, which the tool checks.
#[doc(hidden)]
pub fn spec<T: JsonSchema>(name: &str, description: String, serves: ToolNeed) -> ToolSpec {
    let mut schema = schema_of::<T>();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.remove("minimum");
        }
    }
    ToolSpec {
        serves,
        ..ToolSpec::new(name, description, schema).read_only()
    }
}

/// The JSON schema of `T`: one object, without references, which not every provider resolves, and
/// without titles and formats, which only cost tokens.
pub fn schema_of<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            for noise in ["title", "format", "default"] {
                property.remove(noise);
            }
            // An optional field need not accept null.
            if let Some(Value::Array(types)) = property.get("type")
                && let Some(only) = types.iter().find(|one| *one != "null").cloned()
            {
                property.insert("type".to_owned(), only);
            }
            if let Some(Value::Array(values)) = property.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
        }
    }
    schema.to_value()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// What to look for.
        query: String,
        /// How.
        #[serde(default)]
        mode: Mode,
        /// How many.
        #[schemars(range(min = 1, max = 9))]
        count: Option<u32>,
        /// Whose.
        owner: Option<Mode>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        #[default]
        Literal,
        Regex,
    }

    #[test]
    fn valid_arguments_deserialize() {
        let all = json!({"query": "x", "mode": "regex", "count": 3});
        let want = Sample {
            query: "x".into(),
            mode: Mode::Regex,
            count: Some(3),
            owner: None,
        };
        assert_eq!(arguments(all), Ok(want));
        let few = json!({"query": "x", "count": null});
        let want = Sample {
            query: "x".into(),
            mode: Mode::Literal,
            count: None,
            owner: None,
        };
        assert_eq!(arguments(few), Ok(want));
    }

    #[test]
    fn argument_errors_name_the_field() {
        let known = "expected one of `query`, `mode`, `count`, `owner`";
        let unknown = format!("the argument `colour`: unknown field `colour`, {known}");
        for (name, given, says) in [
            ("missing", json!({}), "the arguments: missing field `query`"),
            (
                "wrong type",
                json!({"count": "3", "query": "x"}),
                "the argument `count`: invalid type: string \"3\", expected u32",
            ),
            (
                "unknown variant",
                json!({"query": "x", "mode": "fuzzy"}),
                "the argument `mode`: unknown variant `fuzzy`, expected `literal` or `regex`",
            ),
            (
                "unknown field",
                json!({"colour": 1, "query": "x"}),
                unknown.as_str(),
            ),
            (
                "no object",
                json!([1]),
                "the arguments must be one JSON object",
            ),
        ] {
            let error = arguments::<Sample>(given).unwrap_err();
            assert_eq!(error, ToolError::ForModel(says.to_owned()), "{name}");
        }
    }

    #[test]
    fn argument_errors_are_bounded() {
        let given = json!({ "count": "9".repeat(100_000), "query": "x" });
        let error = arguments::<Sample>(given).unwrap_err().to_string();
        assert!(
            error.chars().count() < MAX_ERROR_CHARS + 100,
            "{}",
            error.len()
        );
    }

    #[test]
    fn schemas_are_flat_and_documented() {
        let want = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "query": {"description": "What to look for.", "type": "string"},
                "mode": {"description": "How.", "type": "string", "enum": ["literal", "regex"]},
                "count": {
                    "description": "How many.", "type": "integer", "minimum": 1, "maximum": 9
                },
                "owner": {"description": "Whose.", "type": "string", "enum": ["literal", "regex"]},
            },
            "required": ["query"],
        });
        assert_eq!(schema_of::<Sample>(), want);
    }
}
