use serde_json::value::RawValue;

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
