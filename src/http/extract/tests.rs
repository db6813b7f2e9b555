//! What is wrong is found, and named.

use serde::Deserialize;

use super::*;
use crate::{
    control::Verb,
    model::{BusyPolicy, SessionName},
};

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
    #[serde(default)]
    kinds: Vec<String>,
    #[serde(default)]
    frames: bool,
}

fn param(problem: &Problem) -> (String, String) {
    let body = serde_json::to_value(problem.body()).unwrap();
    let said = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    (said("code"), said("param"))
}

#[test]
fn a_wrong_field_of_a_body_is_named() {
    for (body, code, field) in [
        ("", "invalid_json", "body"),
        ("{", "invalid_json", "body"),
        (r#"{"name": "a"} {}"#, "invalid_json", "body"),
        ("[1]", "invalid_value", "body"),
        ("7", "invalid_value", "body"),
        (r#"["a"]"#, "invalid_value", "body"),
        (r#"{"name": "a", "inner": [1]}"#, "invalid_value", "inner"),
        ("{}", "invalid_value", "name"),
        (r#"{"name": 5}"#, "invalid_value", "name"),
        (r#"{"name": "a/b"}"#, "invalid_value", "name"),
        (r#"{"name": "a", "x": 1}"#, "invalid_value", "x"),
        (r#"{"name": "a", "busy": "x"}"#, "invalid_value", "busy"),
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
            "list.1.count",
        ),
    ] {
        let problem = read::<Outer>(body.as_bytes()).unwrap_err();
        assert_eq!(param(&problem), (code.into(), field.into()), "{body}");
    }
}

#[test]
fn a_wrong_field_of_a_verb_is_named() {
    for (body, field) in [
        (r#"{}"#, "verb"),
        (r#"{"verb": null}"#, "verb"),
        (r#"{"verb": "fly"}"#, "verb"),
        (r#"{"verb": "pause"}"#, "session"),
        (r#"{"verb": "pause", "session": 7}"#, "session"),
        (r#"{"verb": "pause", "session": "s", "loud": 1}"#, "loud"),
        (
            r#"{"verb": "tail", "session": "s", "limit": "all"}"#,
            "limit",
        ),
        (r#"{"limit": -1, "verb": "tail", "session": "s"}"#, "limit"),
        (
            r#"{"verb": "set_budget", "session": "s", "limits": {"max_turns": "x"}}"#,
            "limits",
        ),
        (r#"{"verb": "list", "state": "odd"}"#, "state"),
    ] {
        let problem = read::<Verb>(body.as_bytes()).unwrap_err();
        let want = ("invalid_value".into(), field.into());
        assert_eq!(param(&problem), want, "{body}");
    }
}

#[test]
fn what_is_in_order_is_read_as_serde_reads_it() {
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
fn texts_are_read_as_what_is_wanted() {
    let wanted = |pairs: &[(&str, &str)]| {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Wanted::deserialize(Node::texts(pairs.iter().map(own).collect()))
    };
    let (limit, frames) = (Some(7), true);
    let kinds = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert_eq!(
        wanted(&[
            ("limit", "7"),
            ("kinds", "a,b"),
            ("kinds", "c"),
            ("frames", "1")
        ]),
        Ok(Wanted {
            limit,
            kinds,
            frames
        })
    );
    for (pairs, field) in [
        (&[("limit", "x")][..], "limit"),
        (&[("limit", "70000")], "limit"),
        (&[("limit", "")], "limit"),
        (&[("limit", "1"), ("limit", "1")], "limit"),
        (&[("frames", "yes")], "frames"),
        (&[("more", "1")], "more"),
    ] {
        let fault = wanted(pairs).unwrap_err();
        assert_eq!(fault.field().as_deref(), Some(field), "{pairs:?}");
    }
}
