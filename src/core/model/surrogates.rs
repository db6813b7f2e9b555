//! Replaces lone surrogates in JSON (`\ud83d` alone, where a server has cut a text between the
//! halves of a character) by U+FFFD. Otherwise the whole reply would be refused.

use std::borrow::Cow;

use memchr::memchr;

/// Bytes of `\uXXXX`.
const ESCAPE: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

pub fn mended(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let (mut mended, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += found;
        match half(bytes, at) {
            // Any other escape has at least two bytes, and longer ones contain no further
            // backslash.
            None => at += 2,
            Some(Half::High) if half(bytes, at + ESCAPE) == Some(Half::Low) => at += 2 * ESCAPE,
            Some(_) => {
                mended.push_str(&json[kept..at]);
                mended.push_str("\\ufffd");
                at += ESCAPE;
                kept = at;
            }
        }
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    mended.push_str(&json[kept..]);
    Cow::Owned(mended)
}

fn half(bytes: &[u8], at: usize) -> Option<Half> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    if !matches!(digits[0], b'd' | b'D') || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    match digits[1].to_ascii_lowercase() {
        b'8' | b'9' | b'a' | b'b' => Some(Half::High),
        b'c'..=b'f' => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced() {
        for (name, json, expected) in [
            ("nothing to do", r#"{"a":"b\n"}"#, r#"{"a":"b\n"}"#),
            ("a whole one", r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            ("a high one", r#""x\uD83Dy""#, r#""x\ufffdy""#),
            ("a low one", r#""\ude00""#, r#""\ufffd""#),
            (
                "the wrong way round",
                r#""\ude00\ud83d""#,
                r#""\ufffd\ufffd""#,
            ),
            (
                "two high ones",
                r#""\ud83d\ud83d\ude00""#,
                r#""\ufffd\ud83d\ude00""#,
            ),
            ("not an escape", r#""\\ud83d""#, r#""\\ud83d""#),
            ("behind a backslash", r#""\\\ud83d""#, r#""\\\ufffd""#),
            (
                "another character",
                r#""\ud7ff\u00d8""#,
                r#""\ud7ff\u00d8""#,
            ),
            ("no digits", r#""\ud8x0 ä""#, r#""\ud8x0 ä""#),
            ("cut", r#""\ud83"#, r#""\ud83"#),
            ("a backslash at the end", "\\", "\\"),
        ] {
            assert_eq!(mended(json), expected, "{name}");
        }
        assert!(matches!(mended(r#""\ud83d\ude00""#), Cow::Borrowed(_)));
    }
}
