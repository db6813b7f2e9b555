use super::*;

/// The calls as `id name arguments`, from lists of pieces.
fn read(pieces: &[&str]) -> Vec<String> {
    let mut calls = Calls::default();
    for json in pieces {
        let piece: CallDelta<'_> = serde_json::from_str(json).unwrap();
        calls.add(&piece).unwrap();
    }
    let calls = calls.take();
    calls
        .iter()
        .map(|call| format!("{} {} {}", call.id, call.name, call.arguments))
        .collect()
}

#[test]
fn tool_call_fragments_are_assembled() {
    let tables: &[(&str, &[&str], &[&str])] = &[
        (
            "as documented",
            &[
                r#"{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}"#,
                r#"{"index":0,"function":{"arguments":"{\"q\":"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
                r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}"#,
            ],
            &[r#"a f {"q":1}"#, "b g {}"],
        ),
        (
            "by turns",
            &[
                r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{\"x\":"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"y\":"}}"#,
                r#"{"index":1,"function":{"arguments":"1}"}}"#,
                r#"{"index":0,"function":{"arguments":"2}"}}"#,
            ],
            &[r#"a f {"y":2}"#, r#"b g {"x":1}"#],
        ),
        (
            "no index",
            &[
                r#"{"id":"a","function":{"name":"f","arguments":"{\"q\":"}}"#,
                r#"{"function":{"arguments":"1}"}}"#,
                r#"{"id":"b","function":{"name":"f","arguments":"{}"}}"#,
            ],
            &[r#"a f {"q":1}"#, "b f {}"],
        ),
        (
            "no index, id and name in each",
            &[
                r#"{"id":"a","function":{"name":"f","arguments":"{\"q\":"}}"#,
                r#"{"id":"a","function":{"name":"f","arguments":"1}"}}"#,
                r#"{"id":"b","function":{"name":"f","arguments":"{}"}}"#,
            ],
            &[r#"a f {"q":1}"#, "b f {}"],
        ),
        (
            "index 0 with all, other ids",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":1}"}}"#,
                r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{\"q\":"}}"#,
                r#"{"index":0,"function":{"arguments":"2}"}}"#,
            ],
            &[r#"a f {"q":1}"#, r#"b f {"q":2}"#],
        ),
        (
            "index 0 with all, no ids, other names",
            &[
                r#"{"index":0,"function":{"name":"f","arguments":"{}"}}"#,
                r#"{"index":0,"function":{"name":"g","arguments":"{}"}}"#,
            ],
            &[" f {}", " g {}"],
        ),
        (
            "index 0 with all, no ids, the same tool",
            &[
                r#"{"index":0,"id":"","function":{"name":"f","arguments":"{\"q\":1}"}}"#,
                r#"{"index":0,"id":"","function":{"name":"f","arguments":"{\"q\":2}"}}"#,
            ],
            &[r#" f {"q":1}"#, r#" f {"q":2}"#],
        ),
        (
            "the same id with all",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":1}"}}"#,
                r#"{"index":1,"id":"a","function":{"name":"f","arguments":"{\"q\":1}"}}"#,
            ],
            &[r#"a f {"q":1}"#, r#"a f {"q":1}"#],
        ),
        (
            "name in each piece",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            ],
            &[r#"a f {"q":1}"#],
        ),
        (
            "a new id with each piece",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":"}}"#,
                r#"{"index":0,"id":"b","function":{"arguments":"1}"}}"#,
            ],
            &[r#"a f {"q":1}"#],
        ),
        (
            "the id and the name late",
            &[
                r#"{"index":0,"function":{"arguments":"{\"q\":"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1}"}}"#,
            ],
            &[r#"a f {"q":1}"#],
        ),
        (
            "arguments as an object",
            &[r#"{"index":0,"id":"a","function":{"name":"f","arguments":{"q": 1}}}"#],
            &[r#"a f {"q": 1}"#],
        ),
        (
            "arguments null or none",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":null}}"#,
                r#"{"index":1,"id":"b","function":{"name":"g"}}"#,
                r#"{"index":2,"id":"c","function":null}"#,
            ],
            &["a f ", "b g ", "c  "],
        ),
        (
            "the whole once more",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":1}"}}"#,
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":1}"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"q\":1}"}}"#,
            ],
            &[r#"a f {"q":1}"#],
        ),
        (
            "the end once more stays broken",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
                r#"{"index":0,"function":{"arguments":"1}"}}"#,
            ],
            &[r#"a f {"q":1}1}"#],
        ),
        (
            "braces in strings",
            &[
                r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":\"}\\\"\""}}"#,
                r#"{"index":0,"function":{"name":"f","arguments":"}"}}"#,
            ],
            &[r#"a f {"q":"}\""}"#],
        ),
    ];
    for (name, pieces, calls) in tables {
        assert_eq!(read(pieces), *calls, "{name}");
    }
}

#[test]
fn calls_are_bounded() {
    let mut calls = Calls::default();
    for index in 0..MOST {
        let json = format!(r#"{{"index":{index}}}"#);
        let added = calls.add(&serde_json::from_str(&json).unwrap());
        assert!(added.is_ok_and(|added| added.is_some()));
    }
    let one_more = serde_json::from_str(r#"{"index":9999}"#).unwrap();
    let want = fault::too_much("the reply has too many tool calls");
    assert_eq!(calls.add(&one_more), Err(want));
}
