use serde_json::json;

use super::*;
use crate::kernel::DecisionContext;

const UNCHECKED: &str = "takes too much work";

fn problem(checked: Checked) -> Option<String> {
    let problem = checked.err()?;
    Some(problem.unwrap_or_else(|| UNCHECKED.to_owned()))
}

fn problem_of_answer(schema: &Value, answer: &Value) -> Option<String> {
    problem(check_answer(
        schema,
        answer,
        &mut Work::new(DecisionContext::MOST_WORK),
    ))
}

fn problem_of_arguments(schema: &Value, arguments: &Value) -> Option<String> {
    problem(check_arguments(
        schema,
        arguments,
        &mut Work::new(DecisionContext::MOST_WORK),
    ))
}

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

/// A schema that applies `leaf` `count` × `count` times to a value.
fn fanned(leaf: &Value, count: usize) -> Value {
    let refer = |name: &str| vec![json!({"$ref": format!("#/$defs/{name}")}); count];
    json!({"$defs": {"leaf": leaf, "all": {"oneOf": refer("leaf")}}, "oneOf": refer("all")})
}

/// Text of two letters without a pattern.
fn letters(length: usize) -> String {
    let mut bits = 1_u64;
    let mut letter = || {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if bits >> 63 == 0 { 'a' } else { 'b' }
    };
    (0..length).map(|_| letter()).collect()
}

#[test]
fn work_of_a_check_is_bounded() {
    let array = json!({"type": "array", "items": {"$ref": "#"}});
    let deep = (0..60).fold(json!("end"), |inner, _| json!([inner]));
    let numbers: Vec<usize> = (0..4_000).collect();
    let wide: Map<String, Value> = numbers
        .iter()
        .map(|n| (format!("f{n}"), json!(n)))
        .collect();
    let names: Vec<&String> = wide.keys().collect();
    let duplicates = json!({"allOf": [{"uniqueItems": true}, {"maxItems": 0}]});
    let patterns: Vec<Value> = (0..200)
        .map(|n| json!({"pattern": format!("c.{{{n}}}")}))
        .collect();
    let one = "must match exactly one";
    for (what, schema, given, says) in [
        (
            "two trees",
            json!({"anyOf": [array, array]}),
            deep.clone(),
            UNCHECKED,
        ),
        (
            "one tree of two",
            json!({"oneOf": [array, array]}),
            deep,
            UNCHECKED,
        ),
        ("itself", json!({"$ref": "#"}), json!("a"), UNCHECKED),
        (
            "itself, twice",
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!("a"),
            UNCHECKED,
        ),
        (
            "a large program",
            fanned(&json!({"pattern": "[ab]*a[ab]{800}[cd]"}), 100),
            letters(10_000).into(),
            UNCHECKED,
        ),
        (
            "a match that is repeated",
            fanned(&json!({"pattern": "[ab]*a[ab]{100}[cd]"}), 50),
            letters(1_000).into(),
            one,
        ),
        (
            "200 patterns",
            json!({"anyOf": patterns}),
            letters(20_000).into(),
            UNCHECKED,
        ),
        (
            "a const that no problem shows",
            fanned(&json!({"const": "x".repeat(40_000)}), 30),
            json!({}),
            one,
        ),
        (
            "a long const",
            fanned(&json!({"const": "x".repeat(40_000)}), 300),
            json!("x"),
            UNCHECKED,
        ),
        (
            "an enum",
            fanned(&json!({"enum": numbers}), 300),
            json!("a"),
            UNCHECKED,
        ),
        (
            "types",
            fanned(&json!({"type": vec!["array"; 5_000]}), 300),
            json!("a"),
            UNCHECKED,
        ),
        (
            "a length",
            fanned(&json!({"minLength": 200_000}), 300),
            "é".repeat(50_000).into(),
            UNCHECKED,
        ),
        (
            "items",
            fanned(&json!({"items": {}}), 300),
            json!(numbers),
            UNCHECKED,
        ),
        (
            "unique items",
            fanned(&duplicates, 300),
            json!(numbers),
            UNCHECKED,
        ),
        (
            "fields",
            fanned(&json!({"properties": {"a": {}}}), 300),
            json!(wide),
            UNCHECKED,
        ),
        (
            "required",
            fanned(&json!({"required": names}), 300),
            json!(wide),
            UNCHECKED,
        ),
        ("references", fanned(&json!({}), 300), json!("a"), UNCHECKED),
        (
            "empty items",
            fanned(&json!({"uniqueItems": true}), 300),
            json!(vec![json!([]); 5_000]),
            UNCHECKED,
        ),
        (
            "empty constants",
            fanned(&json!({"const": vec![json!({}); 20_000]}), 300),
            json!(vec![json!({}); 20_000]),
            UNCHECKED,
        ),
        (
            "names that are missing",
            fanned(&json!({"required": vec![""; 20_000]}), 300),
            json!({}),
            UNCHECKED,
        ),
    ] {
        let found = problem_of_answer(&schema, &given).unwrap();
        assert!(found.contains(says), "{what}: {found}");
    }
}

#[test]
fn work_of_a_decision_is_shared() {
    let schema = json!({"properties": {"a": {"minLength": 1}}});
    let given = json!({"a": "x".repeat(20_000_000)});
    let mut work = Work::new(DecisionContext::MOST_WORK);
    let mut check = || check_arguments(&schema, &given, &mut work);
    assert_eq!([check(), check(), check()], [Ok(()), Ok(()), Err(None)]);
}

#[test]
fn a_pattern_that_cannot_be_checked_refuses_nothing_of_a_tool() {
    let ahead = json!({"pattern": "^(?!a)"});
    for schema in [
        ahead.clone(),
        json!({"not": ahead}),
        json!({"pattern": "(?i)X"}),
        json!({"pattern": "(?x)( ?i)[[^a]]X"}),
        json!({"oneOf": [ahead, {"pattern": "(?<=b)"}]}),
        json!({"pattern": "x".repeat(LONGEST_PATTERN + 1)}),
    ] {
        let schema = json!({"properties": {"a": schema}, "patternProperties": {"(?=b)": false}, "additionalProperties": false});
        let given = json!({"a": "abc", "b": 1});
        assert_eq!(problem_of_arguments(&schema, &given), None, "{schema}");
    }
}

#[test]
fn patterns_are_those_of_json_schema() {
    for (pattern, fits, does_not) in [
        (r"^\w{1,64}$", "Bern_3", "Zürich"),
        (r"^[\w.-]+@\w+$", "a.b-c@d", "a b@c"),
        (r"^\d+\D$", "12x", "٣x"),
        (r"^\\w\W$", r"\w!", "aw!"),
        (r"^.{1,500}$", "é", ""),
        (r"^\(?i\)?$", "(i)", "I"),
    ] {
        let schema = json!({"pattern": pattern});
        assert_eq!(check_schema(&schema), Ok(()), "{pattern}");
        assert_eq!(problem_of_answer(&schema, &json!(fits)), None, "{pattern}");
        assert!(
            problem_of_answer(&schema, &json!(does_not)).is_some(),
            "{pattern}"
        );
    }
    let many = |pattern: &str| {
        (0..90)
            .map(|n| json!({"pattern": format!("{pattern}{n}")}))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        check_schema(&json!({"allOf": many(r"^\w{5}[a-f]+")})),
        Ok(())
    );
    for pattern in [r"\S{100}", ".{500}"] {
        let refused = check_schema(&json!({"allOf": many(pattern)}));
        assert_eq!(
            refused,
            Err("its patterns are too large together".to_owned()),
            "{pattern}"
        );
    }
}
