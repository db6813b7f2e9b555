use super::*;

fn kept(pieces: &[&str]) -> (Vec<String>, Option<String>) {
    let mut thoughts = Thoughts::default();
    let add = |piece: &&str| {
        let raw = RawValue::from_string((*piece).to_owned()).unwrap();
        thoughts.add(&raw).unwrap()
    };
    (pieces.iter().map(add).collect(), thoughts.take())
}

#[test]
fn complete_reasoning_block_is_kept_byte_for_byte() {
    let text =
        r#"{ "type":"reasoning.text", "signature":"s\/", "text":"hm", "index":0 , "new":[1.0]}"#;
    let sealed = r#"{"type":"reasoning.encrypted","data":"a","index":0}"#;
    let (said, list) = kept(&[text, sealed, sealed]);
    assert_eq!(said, ["hm", "", ""]);
    assert_eq!(list.unwrap(), format!("[{text},{sealed},{sealed}]"));
    assert_eq!(kept(&[]).1, None);
    assert_eq!(kept(&["null", "7", "[]"]), (vec![String::new(); 3], None));
}

#[test]
fn reasoning_block_fragments_are_joined() {
    for (name, pieces, expected) in [
        (
            "a signature at the end",
            &[
                r#"{"type":"reasoning.text","text":"a\"","signature":null,"format":"f","index":0}"#,
                r#"{"type":"reasoning.text","text":"b","index":0}"#,
                r#"{"type":"reasoning.text","signature":"s","text":null,"index":0}"#,
            ] as &[&str],
            r#"[{"format":"f","index":0,"signature":"s","type":"reasoning.text","text":"a\"b"}]"#,
        ),
        (
            "two by turns",
            &[
                r#"{"type":"reasoning.summary","summary":"a","index":0}"#,
                r#"{"type":"reasoning.summary","summary":"c","index":1}"#,
                r#"{"type":"reasoning.summary","summary":"b","index":0}"#,
            ],
            r#"[{"index":0,"type":"reasoning.summary","summary":"ab"},{"type":"reasoning.summary","summary":"c","index":1}]"#,
        ),
        (
            "no index, and a sealed one between",
            &[
                r#"{"type":"reasoning.text","text":"a"}"#,
                r#"{"type":"reasoning.text","text":"b"}"#,
                r#"{"type":"reasoning.encrypted","data":"x"}"#,
                r#"{"type":"reasoning.text","text":"c"}"#,
            ],
            r#"[{"type":"reasoning.text","text":"ab"},{"type":"reasoning.encrypted","data":"x"},{"type":"reasoning.text","text":"c"}]"#,
        ),
        (
            "other ids under one index",
            &[
                r#"{"type":"reasoning.text","id":"1","text":"a","index":0}"#,
                r#"{"type":"reasoning.text","id":"2","text":"b","index":0}"#,
            ],
            r#"[{"type":"reasoning.text","id":"1","text":"a","index":0},{"type":"reasoning.text","id":"2","text":"b","index":0}]"#,
        ),
    ] {
        assert_eq!(kept(pieces).1.unwrap(), expected, "{name}");
    }
}

#[test]
fn blocks_are_bounded() {
    let sealed = RawValue::from_string(r#"{"type":"reasoning.encrypted"}"#.to_owned()).unwrap();
    let mut thoughts = Thoughts::default();
    for _ in 0..MOST {
        thoughts.add(&sealed).unwrap();
    }
    let want = fault::too_much("the reply has too many reasoning blocks");
    assert_eq!(thoughts.add(&sealed), Err(want));
}
