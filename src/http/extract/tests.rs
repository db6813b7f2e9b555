//! Each mistake is detected, with the name of its field.

use serde::Deserialize;

use super::*;
use crate::model::{BusyPolicy, SessionName};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Outer {
    name: SessionName,
    #[serde(default)]
    busy: BusyPolicy,
    inner: Option<Inner>,
    #[serde(default)]
    list: Vec<Inner>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Inner {
    count: u32,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Wanted {
    limit: Option<u16>,
    #[serde(
        default,
        deserialize_with = "oracle_control::verb::commas::deserialize"
    )]
    kinds: Vec<String>,
    #[serde(default, deserialize_with = "flag")]
    frames: bool,
}

fn param(problem: &Problem) -> (String, String) {
    let body = serde_json::to_value(problem.body()).unwrap();
    let text_of = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    (text_of("code"), text_of("param"))
}

#[test]
fn invalid_body_names_the_field() {
    for (body, code, field) in [
        ("", "invalid_json", "body"),
        ("{", "invalid_json", "body"),
        (r#"{"name": "a"} {}"#, "invalid_json", "body"),
        ("[1]", "invalid_value", "body"),
        ("7", "invalid_value", "body"),
        (r#"["a"]"#, "invalid_value", "body"),
        (
            r#"{"name": "a", "inner": [-1]}"#,
            "invalid_value",
            "inner[0]",
        ),
        ("{}", "invalid_value", "name"),
        (r#"{"name": 5}"#, "invalid_value", "name"),
        (r#"{"name": "a/b"}"#, "invalid_value", "name"),
        (r#"{"name": "a", "x": 1}"#, "invalid_value", "x"),
        (r#"{"name": "a", "": 1}"#, "invalid_value", ""),
        (r#"{"name": "a", "busy": "x"}"#, "invalid_value", "busy"),
        (r#"{"name": "a", "busy": 1}"#, "invalid_value", "busy"),
        (
            r#"{"name": "a", "busy": {"queue": 1}}"#,
            "invalid_value",
            "busy",
        ),
        (
            r#"{"name": "a", "inner": {}}"#,
            "invalid_value",
            "inner.count",
        ),
        (
            r#"{"name": "a", "inner": {"count": -1}}"#,
            "invalid_value",
            "inner.count",
        ),
        (
            r#"{"name": "a", "inner": {"count": 1.5}}"#,
            "invalid_value",
            "inner.count",
        ),
        (
            r#"{"name": "a", "inner": {"count": 1, "y": 1}}"#,
            "invalid_value",
            "inner.y",
        ),
        (
            r#"{"name": "a", "list": [{"count": 1}, {"count": "2"}]}"#,
            "invalid_value",
            "list[1].count",
        ),
    ] {
        let problem = read::<Outer>(body.as_bytes()).unwrap_err();
        assert_eq!(param(&problem), (code.into(), field.into()), "{body}");
    }
}

#[test]
fn errors_name_types_of_json() {
    for (body, says) in [
        (
            r#"{"name": "a", "inner": {"count": 1.5}}"#,
            "invalid `inner.count`: expected a whole number from 0 to 4294967295, found number `1.5`",
        ),
        (
            r#"{"name": "a", "inner": {"count": null}}"#,
            "invalid `inner.count`: expected a whole number from 0 to 4294967295, found null",
        ),
        (
            r#"{"name": "a", "inner": 1}"#,
            "invalid `inner`: expected an object, found integer `1`",
        ),
        (
            r#"{"name": {}}"#,
            "invalid `name`: expected a string, found an object",
        ),
        (
            r#"{"name": "a", "list": {}}"#,
            "invalid `list`: expected an array, found an object",
        ),
        (
            r#"{"name": "u32, expected map", "busy": 1}"#,
            "invalid `name`: the session name `u32, expected map` contains the character `,`: use \
             1 to 128 characters from A-Z a-z 0-9 . _ : -",
        ),
    ] {
        let problem = read::<Outer>(body.as_bytes()).unwrap_err();
        assert_eq!(problem.body().message(), says, "{body}");
    }
}

#[test]
fn valid_bodies_deserialize_as_with_serde() {
    for body in [
        r#"{"name": "a"}"#,
        r#"{"name": "a", "inner": null, "busy": "steer"}"#,
        r#"{"name": "a", "inner": {"count": 3}, "list": [{"count": 4294967295}]}"#,
    ] {
        let want: Outer = serde_json::from_str(body).unwrap();
        assert_eq!(read::<Outer>(body.as_bytes()).unwrap(), want, "{body}");
    }
}

#[test]
fn half_a_character_is_replaced_and_other_broken_json_refused() {
    let body = |text: &str| format!(r#"{{"text": "{text}"}}"#);
    let read = |text: &str| read::<serde_json::Value>(body(text).as_bytes());
    let halves = read("a\\ud83d\\ud83d\\ude00").unwrap();
    assert_eq!(halves["text"], "a\u{fffd}\u{1f600}");
    for broken in [
        "a\\ud8",
        "a\", \"n\": NaN, \"b\": \"",
        "a\", \"n\": Infinity, \"b\": \"",
    ] {
        assert!(read(broken).is_err(), "{broken}");
    }
}

#[test]
fn query_parameters_are_parsed_into_their_types() {
    let wanted = |encoded: &str| texts::<Wanted>(encoded, "query");
    let (limit, frames) = (Some(7), true);
    let kinds = ["a", "b c"].map(str::to_owned).to_vec();
    assert_eq!(
        wanted("limit=7&kinds=a,b%20c&frames=1").unwrap(),
        Wanted {
            limit,
            kinds,
            frames
        }
    );
    for (encoded, field) in [
        ("limit=x", "limit"),
        ("limit=70000", "limit"),
        ("limit=", "limit"),
        ("limit=1&limit=1", "limit"),
        ("kinds=a&kinds=b", "kinds"),
        ("frames=yes", "frames"),
        ("more=1", "more"),
    ] {
        let problem = wanted(encoded).unwrap_err();
        assert_eq!(param(&problem).1, field, "{encoded}");
    }
}

#[test]
fn invalid_tagged_body_names_the_field() {
    let json = HeaderMap::from_iter([(header::CONTENT_TYPE, "application/json".parse().unwrap())]);
    let fork = |more: &str| format!(r#"{{"verb": "fork", "session": "s"{more}}}"#);
    for (body, field) in [
        ("{", "body"),
        ("[]", "body"),
        (r#""list""#, "body"),
        ("{}", "verb"),
        (r#"{"verb": 1}"#, "verb"),
        (r#"{"verb": "no", "session": "s"}"#, "verb"),
        (r#"{"verb": {"list": 1}, "session": "a b"}"#, "verb"),
        (r#"{"verb": "inspect"}"#, "session"),
        (r#"{"verb": "inspect", "session": "a b"}"#, "session"),
        (r#"{"verb": "inspect", "session": 3}"#, "session"),
        (r#"{"verb": "inspect", "session": "a/b/c"}"#, "session"),
        (r#"{"verb": "inspect", "session": "s", "to": 1}"#, "to"),
        (r#"{"verb": "inspect", "session": "s", "": 1}"#, ""),
        (r#"{"verb": "tail", "session": "s", "after": -1}"#, "after"),
        (r#"{"verb": "list", "limit": 0}"#, "limit"),
        (
            r#"{"verb": "list", "updated_since": "now"}"#,
            "updated_since",
        ),
        (&fork(r#", "into": "t""#), "query"),
        (&fork(r#", "into": "", "query": 1"#), "into"),
        (&fork(r#", "into": "t", "query": "1""#), "query"),
        (
            r#"{"verb": "set_budget", "session": "s", "limits": {"max_turns": -1}}"#,
            "limits",
        ),
        (
            r#"{"verb": "set_budget", "session": "s", "limits": 4}"#,
            "limits",
        ),
    ] {
        let problem = verb(&json, body.as_bytes()).unwrap_err();
        assert_eq!(param(&problem).1, field, "{body}: {problem:?}");
    }
    let read = verb(&json, fork(r#", "into": "t", "query": 1"#).as_bytes());
    assert!(matches!(read.unwrap(), Verb::Fork { session, .. } if session.to_string() == "s"));
    let problem = verb(&HeaderMap::new(), b"{}").unwrap_err();
    assert_eq!(problem.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}
