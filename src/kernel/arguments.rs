//! Checks arguments against the JSON schema of their tool, so that no person is asked to approve a
//! call that the tool cannot carry out.
//!
//! Keywords other than `type`, `enum`, `required`, `properties`, `additionalProperties` and `items`
//! are left to the tool. An optional field may be null, as in a tool with optional fields.

use serde_json::{Map, Value};

use super::guidance::quote;

/// Describes the first problem of the arguments.
pub(super) fn find_problem(schema: &Value, arguments: &Value) -> Option<String> {
    problem(schema, arguments, "")
}

fn problem(schema: &Value, given: &Value, at: &str) -> Option<String> {
    let subject = || match at {
        "" => "the arguments".to_owned(),
        at => format!("the argument {}", quote(at)),
    };
    let types = match &schema["type"] {
        Value::Array(types) => types.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    };
    let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
    if given.is_null() && schema["nullable"] == true {
        return None;
    }
    if !types.is_empty() && !types.iter().any(|name| is_of_type(given, name)) {
        return Some(format!(
            "{} must be of type {}",
            subject(),
            types.join(" or ")
        ));
    }
    if let Value::Array(values) = &schema["enum"]
        && !values.iter().any(|value| is_equal(value, given))
    {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return Some(format!(
            "{} must be one of {}",
            subject(),
            values.join(", ")
        ));
    }
    match given {
        Value::Object(fields) => problem_of_fields(schema, fields, at),
        Value::Array(items) => {
            let each = items.iter().enumerate();
            let found = each
                .map(|(index, item)| problem(&schema["items"], item, &format!("{at}[{index}]")));
            found.flatten().next()
        }
        _ => None,
    }
}

fn problem_of_fields(schema: &Value, fields: &Map<String, Value>, at: &str) -> Option<String> {
    let path = |name: &str| match at {
        "" => name.to_owned(),
        at => format!("{at}.{name}"),
    };
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let mut required_names = required.iter().filter_map(Value::as_str);
    if let Some(missing) = required_names.find(|name| !fields.contains_key(*name)) {
        return Some(format!("the argument {} is missing", quote(&path(missing))));
    }
    let is_closed =
        schema["additionalProperties"] == false && schema["patternProperties"].is_null();
    let found = fields
        .iter()
        .map(|(name, value)| match schema["properties"].get(name) {
            None if is_closed => Some(format!("there is no argument {}", quote(&path(name)))),
            None => None,
            Some(_) if value.is_null() && !required.iter().any(|one| one == name.as_str()) => None,
            Some(field) => problem(field, value, &path(name)),
        });
    found.flatten().next()
}

/// Compares numbers by value: 1 and 1.0 are equal.
fn is_equal(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && one.as_f64() == other.as_f64()
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn problem_names_the_argument_and_what_it_must_be() {
        let schema = json!({
            "type": "object",
            "required": ["note", "count"],
            "additionalProperties": false,
            "properties": {
                "note": {"type": "string"},
                "count": {"type": "integer"},
                "mode": {"type": "string", "enum": ["create", "append"]},
                "share": {"type": ["number", "string"]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "place": {
                    "type": "object",
                    "required": ["path"],
                    "properties": {"path": {"type": "string"}},
                },
                "any": {},
                "sure": {"type": "boolean"},
                "level": {"enum": [1, 2]},
                "owner": {"type": "string", "nullable": true},
                "other": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
        });
        for (more, says) in [
            (json!({}), None),
            (json!({"level": 2.0, "owner": null}), None),
            (
                json!({"mode": null, "tags": ["a", "b"], "any": [1], "extra": null}),
                Some("there is no argument \"extra\""),
            ),
            (
                json!({"mode": "append", "share": 0.5, "sure": true, "count": 3.0, "other": 1}),
                None,
            ),
            (
                json!({"note": 1}),
                Some("the argument \"note\" must be of type string"),
            ),
            (
                json!({"note": null}),
                Some("the argument \"note\" must be of type string"),
            ),
            (
                json!({"count": 1.5}),
                Some("the argument \"count\" must be of type integer"),
            ),
            (
                json!({"count": "1"}),
                Some("the argument \"count\" must be of type integer"),
            ),
            (
                json!({"mode": "fuzzy"}),
                Some("the argument \"mode\" must be one of \"create\", \"append\""),
            ),
            (
                json!({"share": true}),
                Some("the argument \"share\" must be of type number or string"),
            ),
            (
                json!({"tags": ["a", 1]}),
                Some("the argument \"tags[1]\" must be of type string"),
            ),
            (
                json!({"place": {}}),
                Some("the argument \"place.path\" is missing"),
            ),
            (
                json!({"place": {"path": [], "line": 1}}),
                Some("the argument \"place.path\" must be of type string"),
            ),
            (
                json!({"sure": "yes"}),
                Some("the argument \"sure\" must be of type boolean"),
            ),
        ] {
            let mut given = json!({"note": "n", "count": 1});
            let more_fields = more.as_object().unwrap().clone();
            given.as_object_mut().unwrap().extend(more_fields);
            assert_eq!(find_problem(&schema, &given).as_deref(), says, "{given}");
        }
        let missing = find_problem(&schema, &json!({"note": "n"}));
        assert_eq!(
            missing.as_deref(),
            Some("the argument \"count\" is missing")
        );
        assert_eq!(find_problem(&json!({}), &json!({"a": 1})), None);
    }
}
