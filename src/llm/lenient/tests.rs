use proptest::prelude::*;
use serde_json::Value;

use super::*;

#[test]
fn text_deserializes_leniently() {
    for (json, text) in [
        (r#""plain""#, "plain"),
        (r#""esc\u0061ped\n""#, "escaped\n"),
        ("null", ""),
        ("7", "7"),
        ("-7", "-7"),
        ("true", ""),
        ("0.5", ""),
        (r#"{"a": [1]}"#, ""),
        ("[]", ""),
        (
            r#"[{"type":"text","text":"a"},{"type":"thinking","text":"b"},{"text":"c"}]"#,
            "ac",
        ),
    ] {
        let read: Text<'_> = serde_json::from_str(json).unwrap();
        assert_eq!(read.0, text, "{json}");
    }
    let borrowed: Text<'_> = serde_json::from_str(r#""plain""#).unwrap();
    assert!(matches!(borrowed.0, Cow::Borrowed(_)));
}

#[test]
fn count_deserializes_leniently() {
    for (json, count) in [
        ("7", Some(7)),
        ("7.9", Some(7)),
        (r#"" 7 ""#, Some(7)),
        ("-7", None),
        ("1e300", None),
        ("null", None),
        ("false", None),
        (r#""seven""#, None),
        ("[7]", None),
        (r#"{"n": 7}"#, None),
    ] {
        let read: Count = serde_json::from_str(json).unwrap();
        assert_eq!(read.0, count, "{json}");
    }
}

#[test]
fn lists_are_bounded() {
    let list = |length: usize| format!("[{}]", vec!["1"; length].join(","));
    let few = |json: &str| serde_json::from_str::<Few<u8>>(json).map(|few| few.0.len());
    assert_eq!(few(&list(MOST)).unwrap(), MOST);
    assert!(few(&list(MOST + 1)).is_err());
    for other in ["null", "{}", "1", "-1", "0.5", "true", r#""x""#] {
        assert_eq!(few(other).unwrap(), 0, "{other}");
    }
}

#[test]
fn non_object_deserializes_as_none() {
    #[derive(Debug, Deserialize)]
    struct Inner<'a> {
        #[serde(borrow, default)]
        text: Text<'a>,
        #[serde(borrow, default)]
        raw: Option<&'a RawValue>,
        #[serde(default)]
        inner: Object<Count>,
    }
    let read = |json| serde_json::from_str::<Object<Inner<'_>>>(json).map(|object| object.0);
    let inner = read(r#"{"text":"a","raw":{"b": 1},"inner":[]}"#)
        .unwrap()
        .unwrap();
    assert!(matches!(inner.text.0, Cow::Borrowed("a")));
    assert_eq!(inner.raw.map(RawValue::get), Some(r#"{"b": 1}"#));
    assert_eq!(inner.inner, Object(None));
    for other in [
        "null", "[{}]", "1", "-1", "0.5", "true", r#""x""#, r#""\n""#,
    ] {
        assert!(read(other).unwrap().is_none(), "{other}");
    }
    assert!(read(r#"{"text":"#).is_err());
}

#[test]
fn json_of_other_languages_is_mended() {
    for (text, expected) in [
        (r#"{"a":NaN,"a":null}"#, r#"{"a":null}"#),
        (" {'a': 1} \n", r#"{"a":1}"#),
        ("{'a': 1}[DONE]", r#"{"a":1}"#),
        ("{'a': 1}data: [DONE]", r#"{"a":1}"#),
        ("{'a': 1} and more", "{'a': 1} and more"),
        (r#"{"a":1,"b""#, r#"{"a":1,"b""#),
        ("", ""),
    ] {
        assert_eq!(mended(text), expected);
    }
}

#[test]
fn fine_json_is_parsed_without_mending() {
    let mut space = String::new();
    let read: Text<'_> = parse(r#""plain""#, &mut space).unwrap();
    assert!(matches!(read.0, Cow::Borrowed(_)));
    assert_eq!(space, "");
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..6)
                .prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn mended_text_is_equal_if_the_original_was_fine(value in json(), pretty in any::<bool>()) {
        let text = match pretty {
            true => serde_json::to_string_pretty(&value).unwrap(),
            false => value.to_string(),
        };
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        prop_assert_eq!(read(&mended(&text)), read(&text));
    }

    #[test]
    fn any_text_can_be_mended(text in r#"[{}\[\],:"'\\Na Infityud18-]{0,40}"#) {
        let again = mended(&mended(&text));
        prop_assert_eq!(mended(&text), again);
    }
}
