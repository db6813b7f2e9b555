//! Reads what is nearly JSON, as Python, JavaScript and models write it, and writes it as JSON.
//!
//! One pass with a bounded depth. What is JSON keeps its values byte for byte, without white
//! space and repeated keys.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::de::IgnoredAny;
use serde_json::{Number, Value};

use super::surrogates;

/// Bound on the depth, that of `serde_json`.
const DEPTH: usize = 128;
/// The quotes of texts: the last two are of Gemma's templates.
const QUOTES: [&str; 4] = ["\"", "'", "<|\"|>", "<escape>"];
/// Where a word ends, besides white space.
const STOPS: &str = ",:[]{}()\"'=<";

/// Writes the value that a text begins with as JSON. Returns it with its length in the text, or
/// `None` if there is none.
///
/// Texts may have other quotes, line ends and unknown escapes; keys need no quotes, and of a
/// repeated one the last value that is not `null` counts. Words and numbers are those of Python and
/// JavaScript, and `NaN` and `Infinity` become `null`. Halves of characters are replaced.
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
    let json = surrogates::mended(&json).into_owned();
    Some((json, text.len() - reader.0.len()))
}

/// The one object that a text means: itself, in a list or a fence, or followed by the same once more
/// or by what holds no text, such as a token or brackets. Anything with quotes after it is refused:
/// it may be the rest of the object. An empty object counts only if no other one follows.
pub(crate) fn object(text: &str) -> Option<String> {
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
mod tests;
