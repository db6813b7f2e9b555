//! JSON from outside: bounds it before anything is made of it, and reads what is nearly JSON, as
//! Python, JavaScript and models write it, and writes it as JSON.
//!
//! One pass with a bounded depth and number of values. What is JSON keeps its values byte for byte,
//! without white space and repeated keys.

use std::{collections::BTreeMap, fmt::Write as _};

use memchr::memchr2;
use serde::de::{self, Deserialize, IgnoredAny};
use serde_json::{Number, Value};

use super::surrogates;

/// Bound on the depth, that of `serde_json`: the innermost list or object counts with its values.
const DEPTH: usize = 128;
/// Bound on the values of a text: as a tree, a value of two bytes takes a hundred. A conversation of
/// 3,000 messages has about 12,000.
const VALUES: usize = 65_536;
/// How the keys begin that `serde_json` takes as its own: it reads a text as JSON for them.
const RESERVED: &str = "$serde_json::private::";
/// The quotes of texts: the last two are of Gemma's templates.
const QUOTES: [&str; 4] = ["\"", "'", "<|\"|>", "<escape>"];
/// Where a word ends, besides white space.
const STOPS: &str = ",:[]{}()\"'=<";

/// Parses JSON from outside, if it is [bounded](check).
pub fn read<'a, T: Deserialize<'a>>(json: &'a str) -> serde_json::Result<T> {
    check(json.as_bytes())?;
    serde_json::from_str(json)
}

/// Refuses JSON that would become a large tree, in one pass without a tree. An empty list or object
/// counts as two values. What is no JSON is left to the parser.
pub fn check(json: &[u8]) -> serde_json::Result<()> {
    let (mut values, mut depth, mut rest) = (1, 0_usize, json);
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b',' => values += 1,
            b'[' | b'{' => (values, depth) = (values + 1, depth + 1),
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(end) = text_length(tail) else { break };
                let (text, after) = tail.split_at(end);
                rest = &after[1..];
                let is_key = || rest.trim_ascii_start().starts_with(b":");
                if matches!(text, [b'$' | b'\\', ..]) && is_key() && is_reserved(text) {
                    let what = format_args!("keys like `{RESERVED}` are reserved: rename them");
                    return Err(de::Error::custom(what));
                }
            }
            _ => continue,
        }
        let (what, most, advice) = match values > VALUES {
            true => ("values", VALUES, "send less, or split it"),
            false if depth >= DEPTH => ("levels", DEPTH, "nest it less"),
            false => continue,
        };
        let what = format_args!("the JSON has more than {most} {what}: {advice}");
        return Err(de::Error::custom(what));
    }
    Ok(())
}

/// Whether a key, without its quotes, is one of `serde_json`'s own.
fn is_reserved(key: &[u8]) -> bool {
    let key = serde_json::from_slice(&[b"\"", key, b"\""].concat());
    key.is_ok_and(|key: String| key.starts_with(RESERVED))
}

/// The length of a text up to its closing quote.
fn text_length(json: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Writes the value that a text begins with as JSON. Returns it with its length in the text, or
/// `None` if there is none.
///
/// Texts may have other quotes, line ends and unknown escapes; keys need no quotes, and of a
/// repeated one the last value that is not `null` counts. Words and numbers are those of Python and
/// JavaScript, and `NaN` and `Infinity` become `null`. Halves of characters are replaced.
pub fn value(text: &str) -> Option<(String, usize)> {
    let (mut reader, mut json) = (Reader(text, VALUES), String::new());
    reader.value(DEPTH, &mut json)?;
    let json = surrogates::mended(&json).into_owned();
    Some((json, text.len() - reader.0.len()))
}

/// Reads the arguments that follow the name of a called function, as in `(path="a", at=1)`.
pub fn arguments(text: &str) -> Option<(String, usize)> {
    let (mut reader, mut json) = (Reader(text, VALUES), String::new());
    reader.take("(").then_some(())?;
    reader.members([")", "="], DEPTH, &mut json)?;
    let json = surrogates::mended(&json).into_owned();
    Some((json, text.len() - reader.0.len()))
}

/// The one object that a text means: itself, in a list or a fence, or followed by the same once more
/// or by what holds no text, such as a token or brackets. Anything with quotes after it is refused:
/// it may be the rest of the object. An empty object counts only if no other one follows.
pub fn object(text: &str) -> Option<String> {
    let (mut rest, mut found) = (text, String::new());
    while let Some(start) = rest.find('{') {
        if rest[..start].contains(['"', '\'']) {
            return None;
        }
        let (json, length) = value(&rest[start..])?;
        if !matches!(&*found, "" | "{}") && json != "{}" && json != found {
            return None;
        }
        if found.is_empty() || json != "{}" {
            found = json;
        }
        rest = &rest[start + length..];
    }
    let before = text.split('{').next()?.trim();
    let before = before.trim_start_matches("```").trim();
    let is_alone = matches!(before.trim_end_matches('['), "" | "json");
    let is_whole = is_alone && !rest.contains(['"', '\'']);
    (is_whole && !found.is_empty()).then_some(found)
}

/// The rest of a text, and how many more values it may have.
struct Reader<'a>(&'a str, usize);

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
        self.1 = self.1.checked_sub(1)?;
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
                // The text goes on in the next line.
                '\\' if quote.len() == 1 && self.0[at + 1..].starts_with(['\r', '\n']) => {
                    chars.next();
                }
                '\\' if quote.len() > 1 || self.0[at + 1..].starts_with(char::is_control) => {
                    json.push_str("\\\\");
                }
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

/// A number as JSON: `null` for `NaN` and `Infinity`.
fn number(word: &str) -> Option<String> {
    if serde_json::from_str::<IgnoredAny>(word).is_ok() {
        return Some(word.to_owned());
    }
    let hex = word.strip_prefix("0x");
    let hex = hex.map(|digits| i64::from_str_radix(digits, 16));
    if let Ok(whole) = hex.unwrap_or_else(|| word.parse::<i64>()) {
        return Some(whole.to_string());
    }
    let number = Number::from_f64(word.parse().ok()?);
    Some(number.map_or_else(|| "null".to_owned(), |number| number.to_string()))
}

#[cfg(test)]
mod tests;
