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
