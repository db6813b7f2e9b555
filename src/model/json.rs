//! Reads what is nearly JSON, as Python, JavaScript and models write it, and writes it as JSON.
//!
//! One pass with a bounded depth. What is JSON stays byte for byte, except for white space and the
//! order of keys.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::de::IgnoredAny;
use serde_json::{Number, Value};

use super::surrogates;

/// Bound on the depth, that of `serde_json`.
const DEPTH: usize = 128;
/// What texts stand in: the last two are of Gemma's templates.
const QUOTES: [&str; 4] = ["\"", "'", "<|\"|>", "<escape>"];
/// Where a word ends, besides white space.
const STOPS: &str = ",:[]{}()\"'=<";

/// Writes the value that a text begins with as JSON. Returns it with its length in the text, or
/// `None` if there is none.
///
/// Texts may have other quotes, line ends and unknown escapes; keys need no quotes, and of a
/// repeated one the last value that is not `null` counts. Words and numbers are those of Python and
/// JavaScript, and numbers that are none become `null`. Halves of characters are replaced.
pub(crate) fn value(text: &str) -> Option<(String, usize)> {
    let (mut reader, mut json) = (Reader(text), String::new());
    reader.value(DEPTH, &mut json)?;
    let json = surrogates::mended(&json).into_owned();
    Some((json, text.len() - reader.0.len()))
}

/// Reads the arguments that follow the name of a called function, as in `(path="a", at=1)`.
pub(crate) fn arguments(text: &str) -> Option<(String, usize)> {
    let (mut reader, mut json) = (Reader(text), String::new());
    reader.take("(").then_some(())?;
    reader.members([")", "="], DEPTH, &mut json)?;
    Some((json, text.len() - reader.0.len()))
}

/// The one object that a text means: itself, in a list or a fence, or followed by what is none or
/// by the same once more. An empty object counts only if no other one follows.
pub(crate) fn object(text: &str) -> Option<String> {
    let (mut rest, mut found) = (text, String::new());
    while let Some(start) = rest.find('{') {
        let (json, length) = value(&rest[start..])?;
        if !matches!(&*found, "" | "{}") && json != "{}" && json != found {
            return None;
        }
        if found.is_empty() || json != "{}" {
            found = json;
        }
        rest = &rest[start + length..];
    }
    let before = text.split('{').next()?.trim_start_matches("```").trim();
    let is_alone = matches!(before.trim_end_matches('['), "" | "json");
    (is_alone && !found.is_empty()).then_some(found)
}

struct Reader<'a>(&'a str);

impl Reader<'_> {
    /// Takes this mark, after white space.
    fn take(&mut self, mark: &str) -> bool {
        let blank = |c: char| c.is_whitespace() || c == '\u{feff}';
        self.0 = self.0.trim_start_matches(blank);
        let rest = self.0.strip_prefix(mark);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn value(&mut self, depth: usize, json: &mut String) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        if self.take("{") {
            return self.members(["}", ":"], depth, json);
        }
        if !self.take("[") {
            return self.scalar(json);
        }
        json.push('[');
        while !self.take("]") {
            self.value(depth, json)?;
            json.push(',');
            self.comma("]")?;
        }
        close(json, ']');
        Some(())
    }

    /// The members up to a closing bracket. A sign stands between a key and its value.
    fn members(&mut self, [end, sign]: [&str; 2], depth: usize, json: &mut String) -> Option<()> {
        let mut members = BTreeMap::new();
        while !self.take(end) {
            let (mut key, mut value) = (String::new(), String::new());
            match self.text(&mut key) {
                Some(()) => key = serde_json::from_str(&surrogates::mended(&key)).ok()?,
                None => self.word()?.clone_into(&mut key),
            }
            self.take(sign).then_some(())?;
            self.value(depth, &mut value)?;
            if value != "null" || !members.contains_key(&key) {
                members.insert(key, value);
            }
            self.comma(end)?;
        }
        json.push('{');
        for (key, value) in members {
            json.extend([&*Value::from(key).to_string(), ":", &*value, ","]);
        }
        close(json, '}');
        Some(())
    }

    fn comma(&mut self, end: &str) -> Option<()> {
        (self.take(",") || self.0.starts_with(end)).then_some(())
    }

    fn word(&mut self) -> Option<&str> {
        let ends = |c: char| c.is_whitespace() || STOPS.contains(c);
        let (word, rest) = self.0.split_at(self.0.find(ends).unwrap_or(self.0.len()));
        self.0 = rest;
        (!word.is_empty()).then_some(word)
    }

    fn scalar(&mut self, json: &mut String) -> Option<()> {
        if QUOTES.iter().any(|quote| self.0.starts_with(quote)) {
            return self.text(json);
        }
        match self.word()? {
            "true" | "True" => json.push_str("true"),
            "false" | "False" => json.push_str("false"),
            "null" | "None" | "undefined" => json.push_str("null"),
            word => json.push_str(&number(word)?),
        }
        Some(())
    }

    /// A text in quotes.
    fn text(&mut self, json: &mut String) -> Option<()> {
        let quote = QUOTES.into_iter().find(|quote| self.take(quote))?;
        json.push('"');
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            if self.0[at..].starts_with(quote) {
                self.0 = &self.0[at + quote.len()..];
                json.push('"');
                return Some(());
            }
            match c {
                '\\' => {
                    let escaped = chars.next()?.1;
                    let digits = self.0[at + 1..].bytes().skip(1).take(4);
                    let is_known = match escaped {
                        'u' => digits.filter(u8::is_ascii_hexdigit).count() == 4,
                        _ => "\"\\/bfnrt'".contains(escaped),
                    };
                    json.push_str(match escaped {
                        '\'' => "",
                        _ if is_known => "\\",
                        _ => "\\\\",
                    });
                    json.push(escaped);
                }
                '"' => json.push_str("\\\""),
                '\0'..' ' => write!(json, "\\u{:04x}", u32::from(c)).ok()?,
                _ => json.push(c),
            }
        }
        None
    }
}

fn close(json: &mut String, end: char) {
    // A value never ends with a comma.
    json.truncate(json.trim_end_matches(',').len());
    json.push(end);
}

/// A number as JSON; `null` if it is none.
fn number(word: &str) -> Option<String> {
    if serde_json::from_str::<IgnoredAny>(word).is_ok() {
        return Some(word.to_owned());
    }
    let hex = word
        .strip_prefix("0x")
        .map(|digits| i64::from_str_radix(digits, 16));
    if let Ok(whole) = hex.unwrap_or_else(|| word.parse::<i64>()) {
        return Some(whole.to_string());
    }
    let number = Number::from_f64(word.parse().ok()?);
    Some(number.map_or_else(|| "null".to_owned(), |number| number.to_string()))
}

#[cfg(test)]
mod tests {
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
            (r#"{"a":1}{"a":2}"#, ""),
            (r#"{"a":1"#, ""),
            (r#"{"a":1}{"b"#, ""),
            (r#"say {"a":1}"#, ""),
            ("", ""),
            ("[]", ""),
        ] {
            assert_eq!(object(text), expected, "{text}");
        }
    }
}
