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
            json!({"mode": "append", "share": 0.5, "sure": true, "count": 3.0, "other": "x"}),
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
        assert_eq!(
            problem_of_arguments(&schema, &given).as_deref(),
            says,
            "{given}"
        );
    }
    let missing = problem_of_arguments(&schema, &json!({"note": "n"}));
    assert_eq!(
        missing.as_deref(),
        Some("the argument \"count\" is missing")
    );
    assert_eq!(problem_of_arguments(&json!({}), &json!({"a": 1})), None);
}

#[test]
fn answer_is_checked_by_every_keyword() {
    for (schema, good, bad, problem) in [
        (json!({"const": 1}), json!(1.0), json!(2), "must be 1"),
        (
            json!({"minLength": 2, "maxLength": 3}),
            json!("äöü"),
            json!("ä"),
            "at least 2 characters",
        ),
        (
            json!({"maxLength": 1}),
            json!(5),
            json!("ab"),
            "at most 1 characters",
        ),
        (
            json!({"pattern": "^a+$"}),
            json!("aa"),
            json!("b"),
            "must match the pattern",
        ),
        (json!({"minimum": 1}), json!(1), json!(0.5), "at least 1"),
        (
            json!({"exclusiveMaximum": 1}),
            json!(0),
            json!(1),
            "less than 1",
        ),
        (
            json!({"multipleOf": 0.1}),
            json!(0.3),
            json!(0.25),
            "multiple of 0.1",
        ),
        (
            json!({"minItems": 1}),
            json!([0]),
            json!([]),
            "at least 1 items",
        ),
        (
            json!({"uniqueItems": true}),
            json!([1, 2]),
            json!([1, 1]),
            "duplicate items",
        ),
        (
            json!({"prefixItems": [{"type": "string"}], "items": false}),
            json!(["a"]),
            json!(["a", 1]),
            "\"[1]\" is not allowed",
        ),
        (
            json!({"maxProperties": 1}),
            json!({"a": 1}),
            json!({"a": 1, "b": 2}),
            "at most 1 fields",
        ),
        (
            json!({"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false}),
            json!({"x1": "a"}),
            json!({"y": "a"}),
            "there is no field \"y\"",
        ),
        (
            json!({"additionalProperties": {"type": "integer"}}),
            json!({"a": 1}),
            json!({"a": "1"}),
            "\"a\" must be of type integer",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            json!(null),
            json!(1),
            "must match at least one of the schemas",
        ),
        (
            json!({"oneOf": [{"minimum": 0}, {"maximum": 0}]}),
            json!(1),
            json!(0),
            "must match exactly one of the schemas",
        ),
        (
            json!({"allOf": [{"type": "integer"}, {"minimum": 2}]}),
            json!(2),
            json!(1),
            "at least 2",
        ),
        (
            json!({"not": {"type": "null"}}),
            json!(1),
            json!(null),
            "must not match the schema",
        ),
        (
            json!({
                "$ref": "#/$defs/node",
                "$defs": {"node": {
                    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
                    "required": ["next"],
                }},
            }),
            json!({"next": {"next": null}}),
            json!({"next": {}}),
            "\"next\" must match at least one",
        ),
        (
            json!({"properties": {"a": {"type": "string"}}}),
            json!({}),
            json!({"a": null}),
            "\"a\" must be of type string",
        ),
    ] {
        assert_eq!(check_schema(&schema), Ok(()), "{schema}");
        assert_eq!(problem_of_answer(&schema, &good), None, "{schema}");
        let found = problem_of_answer(&schema, &bad).unwrap();
        assert!(found.contains(problem), "{found}");
    }
}

#[test]
fn unusable_schema_is_refused() {
    for (schema, problem) in [
        (json!({"type": "thing"}), "unknown type"),
        (
            json!({"$ref": "https://example.org/schema.json"}),
            "does not resolve",
        ),
        (
            json!({"items": {"$ref": "#/$defs/none"}}),
            "does not resolve",
        ),
        (json!({"anyOf": [{"pattern": "("}]}), "not a valid pattern"),
        (
            json!({"properties": {"a": {"if": {}}}}),
            "`if` is not supported",
        ),
        (json!({"not": 1}), "not a schema"),
        (json!(1), "not a schema"),
    ] {
        let found = check_schema(&schema).unwrap_err();
        assert!(found.contains(problem), "{found}");
    }
}

#[test]
fn work_of_a_check_is_bounded() {
    let array = json!({"type": "array", "items": {"$ref": "#"}});
    let deep = (0..60).fold(json!("end"), |inner, _| json!([inner]));
    for schema in [
        json!({"anyOf": [array, array]}),
        json!({"oneOf": [array, array]}),
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
    ] {
        assert_eq!(check_schema(&schema), Ok(()));
        let found = problem_of_answer(&schema, &deep).unwrap();
        assert!(found.contains("too complex"), "{found}");
    }
}
