use super::*;

#[test]
fn nearly_json_is_written_as_json() {
    for (name, text, expected) in [
        (
            "JSON",
            r#"{"a":[1.0,"b\n",{}],"c":[]}"#,
            r#"{"a":[1.0,"b\n",{}],"c":[]}"#,
        ),
        (
            "a repeated key",
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"a":3,"b":2}"#,
        ),
        ("null at the end", r#"{"a":1,"a":null}"#, r#"{"a":1}"#),
        ("null at first", r#"{"a":null,"a":1}"#, r#"{"a":1}"#),
        ("null alone", r#"{"a":null,"a":null}"#, r#"{"a":null}"#),
        (
            "a key written in two ways",
            r#"{"a":1,"\u0061":2}"#,
            r#"{"a":2}"#,
        ),
        ("beneath", r#"[{"x":{"a":1,"a":2}}]"#, r#"[{"x":{"a":2}}]"#),
        (
            "within another that counts no more",
            r#"{"x":{"a":1,"a":2},"x":3}"#,
            r#"{"x":3}"#,
        ),
        (
            "numbers that are none",
            "[NaN,-Infinity, Infinity,-1,nan,inf]",
            "[null,null,null,-1,null,null]",
        ),
        (
            "words in texts",
            r#"["NaN","\"Infinity",NaN]"#,
            r#"["NaN","\"Infinity",null]"#,
        ),
        (
            "half a character",
            r#"{"a":"\ud83d","b":"\ud83d\ude00"}"#,
            r#"{"a":"\ufffd","b":"\ud83d\ude00"}"#,
        ),
        (
            "a text that goes on in the next line",
            "{\"a\":\"b\\\nc\"}",
            r#"{"a":"bc"}"#,
        ),
        (
            "an escaped tab",
            "{\"a\":\"b\\\tc\"}",
            r#"{"a":"b\\\u0009c"}"#,
        ),
        (
            "a backslash in other quotes",
            r#"{a:<|"|>C:\<|"|>}"#,
            r#"{"a":"C:\\"}"#,
        ),
        ("a byte order mark", "\u{feff}{}", "{}"),
        (
            "large and long numbers",
            "[1e400,123456789012345678901]",
            "[1e400,123456789012345678901]",
        ),
        (
            "other numbers",
            "[01,+5,1.,.5,0x1F,-.5]",
            "[1,5,1.0,0.5,31,-0.5]",
        ),
        ("a comma too many", r#"[{"a":",}", }, ]"#, r#"[{"a":",}"}]"#),
        (
            "Python",
            r#"{'a': 'say "hi", it\'s', 'b': None, 'c': [True, False]}"#,
            r#"{"a":"say \"hi\", it's","b":null,"c":[true,false]}"#,
        ),
        (
            "JavaScript",
            "{a: undefined, $b_1: true, 3: 0}",
            r#"{"$b_1":true,"3":0,"a":null}"#,
        ),
        (
            "Gemma",
            r#"{a:<|"|>x "y"<|"|>,b:<escape>z<escape>}"#,
            r#"{"a":"x \"y\"","b":"z"}"#,
        ),
        (
            "line ends",
            "{\"a\":\"b\tc\n\"}",
            r#"{"a":"b\u0009c\u000a"}"#,
        ),
        ("unknown escapes", r#""\d\u12 C:\x""#, r#""\\d\\u12 C:\\x""#),
        ("something behind it", "{\"a\":1}}<|im_end|>", r#"{"a":1}"#),
    ] {
        let (json, _) = value(text).unwrap();
        assert_eq!(json, expected, "{name}");
        serde_json::from_str::<IgnoredAny>(&json).unwrap();
    }
}

#[test]
fn other_texts_are_none() {
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(value(&deep(DEPTH - 1)).is_some());
    for text in [
        "",
        " ",
        "word",
        "{",
        "{\"a\"",
        "{\"a\":1",
        "{\"a\":1 \"b\":2}",
        "{\"a\":\"b",
        "[1 2]",
        "{:1}",
        "{,}",
        "\"\\",
        "-",
        "{\"a\":}",
        "{a:b}",
        &deep(DEPTH + 9),
    ] {
        assert_eq!(value(text), None, "{text}");
    }
}

#[test]
fn arguments_of_functions_are_read() {
    for (text, expected) in [
        ("()", Some(("{}", 2))),
        (
            "(a=\"b\", c = [1, None],) and",
            Some((r#"{"a":"b","c":[1,null]}"#, 23)),
        ),
        ("(a=\"\\ud83d\")", Some((r#"{"a":"\ufffd"}"#, 12))),
        ("(a)", None),
        ("(\"a\")", None),
        ("(a=1", None),
        (" a=1)", None),
    ] {
        let expected = expected.map(|(json, length)| (json.to_owned(), length));
        assert_eq!(arguments(text), expected, "{text}");
    }
}

#[test]
fn one_object_is_meant() {
    let object = |text| super::object(text).unwrap_or_default();
    for (text, expected) in [
        (r#"{"a":1}"#, r#"{"a":1}"#),
        (r#"{"a":1}}<|im_end|>"#, r#"{"a":1}"#),
        (r#"{"a":1}{"a":1}"#, r#"{"a":1}"#),
        (r#"{}{"a":1}"#, r#"{"a":1}"#),
        (r#"{"a":1}{}"#, r#"{"a":1}"#),
        ("{}{}", "{}"),
        (r#"[{"a":1}]"#, r#"{"a":1}"#),
        ("```json\n{\"a\":1}\n```", r#"{"a":1}"#),
        ("\n```json\n{\"a\":1}\n```\n", r#"{"a":1}"#),
        (r#"{"a":1}{"a":2}"#, ""),
        (r#"{"a":1"#, ""),
        (r#"{"a":1}{"b"#, ""),
        (r#"say {"a":1}"#, ""),
        (r#"{"a":1}, "b":2}"#, ""),
        (r#"{"a":1}, "b":{"a":1}}"#, ""),
        ("", ""),
        ("[]", ""),
    ] {
        assert_eq!(object(text), expected, "{text}");
    }
}

#[test]
fn json_is_refused_beyond_its_bounds_and_only_then() {
    let list = |values: usize| format!("[{}]", vec!["0"; values - 1].join(","));
    let objects = |values: usize| format!("[{}0]", r#"{"":0},"#.repeat(values / 2 - 1));
    let nested = |levels: usize| format!("{}0{}", "[".repeat(levels), "]".repeat(levels));
    let quoted = |text: &str| format!("[{}]", Value::from(text.repeat(VALUES + 1)));
    let many = "more than 65536 values: send less, or split it";
    let deep = "more than 128 levels: nest it less";
    for (name, json, refused) in [
        ("as many as allowed", list(VALUES), None),
        ("one more", list(VALUES + 1), Some(many)),
        ("as many in members", objects(VALUES), None),
        (
            "one more in members",
            format!("[{}]", objects(VALUES)),
            Some(many),
        ),
        (
            "empty ones count twice",
            format!("[{}0]", "[],".repeat(VALUES / 2)),
            Some(many),
        ),
        ("as deep as allowed", nested(DEPTH - 1), None),
        ("one deeper", nested(DEPTH), Some(deep)),
        (
            "many in turn",
            format!("[{}0]", "[0],".repeat(DEPTH * 2)),
            None,
        ),
        ("signs in a text", quoted("[{,:]}"), None),
        ("escapes in a text", quoted("\\\",\\\\[\u{1}é"), None),
        (
            "signs in a key",
            format!(r#"{{"{}":0}}"#, "[,".repeat(VALUES)),
            None,
        ),
        (
            "after a text that ends with an escape",
            format!(r#"["\\",{}]"#, list(VALUES)),
            Some(many),
        ),
        (
            "a key of the parser",
            r#"{"$serde_json::private::RawValue":"[0]"}"#.into(),
            Some("reserved"),
        ),
        (
            "with escapes",
            r#"{"\u0024serde_json\u003a:private::x" : ""}"#.into(),
            Some("reserved"),
        ),
        (
            "as a text",
            r#"["$serde_json::private::RawValue"]"#.into(),
            None,
        ),
        (
            "other keys like it",
            r#"{"$ref":"","$defs":{},"\n":0}"#.into(),
            None,
        ),
    ] {
        let read = read::<Value>(&json).map_err(|error| error.to_string());
        match (read, refused) {
            (Ok(_), None) => {}
            (Err(why), Some(expected)) if why.contains(expected) => {}
            (read, _) => panic!("{name}: {:?}", read.err()),
        }
    }
}

#[test]
fn what_is_no_json_is_left_to_the_parser() {
    for text in [
        "",
        "]]}",
        "[",
        r#""open"#,
        r#""open\"#,
        r#""$"#,
        "{\"$\"",
        "nul",
        "\"\\ud83d\":",
    ] {
        check(text.as_bytes()).unwrap();
        let parsed = serde_json::from_str::<Value>(text).unwrap_err().to_string();
        assert_eq!(
            read::<Value>(text).unwrap_err().to_string(),
            parsed,
            "{text}"
        );
    }
    check(b"\"\xff\\").unwrap();
}

#[test]
fn nearly_json_of_too_many_values_is_none() {
    let list = |values: usize| format!("[{}]", "'',".repeat(values - 1));
    assert!(value(&list(VALUES)).is_some());
    assert!(value(&list(VALUES + 1)).is_none());
    assert!(arguments(&format!("({})", "a=0,".repeat(VALUES + 1))).is_none());
}
