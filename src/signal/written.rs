//! Calls of tools that a model writes as text, in the forms of its chat template.
//!
//! A call names a tool and has a body: JSON, or elements with one argument each. The name stands in
//! the JSON, or in the marks before the body; only the names of offered tools count.

use serde_json::{Deserializer, Map, Value};

use super::view::Span;
use crate::model::{CallId, ToolCall, ToolSpec};

/// Marks that begin a call, besides tokens of chat templates.
const MARKS: [&str; 12] = [
    "<tool_call",
    "<tool_use",
    "<toolcall",
    "<function_call",
    "<functioncall",
    "<function=",
    "<invoke ",
    "<minimax:tool_call",
    "<seed:tool_call",
    "<\u{ff5c}DSML\u{ff5c}",
    "<|tool_call>",
    "assistantcommentary to=",
];
/// Longest text between the first mark and the body, in bytes and in words.
const HEAD: usize = 400;
const HEAD_WORDS: usize = 6;
/// Keys of the tool's name, and of its arguments, in JSON.
const NAMES: [&str; 6] = [
    "name",
    "tool",
    "tool_name",
    "function",
    "function_name",
    "action",
];
const ARGUMENTS: [&str; 7] = [
    "arguments",
    "parameters",
    "input",
    "args",
    "params",
    "tool_input",
    "action_input",
];
/// Keys of an object or list in which the call is.
const WRAPPERS: [&str; 4] = ["tool_calls", "tool_call", "function_call", "function"];

/// A written call, or several in one list.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) span: Span,
    /// Whether it is unmistakable: outside of code, with a mark.
    pub(super) is_marked: bool,
    /// The calls without ids, or the tool if its call cannot be read.
    pub(super) calls: Result<Vec<ToolCall>, String>,
}

/// The offered tool that a model means: exactly this one, else the only one whose name is the same
/// without marks, namespace, number, letter case, `-` and `_`.
pub fn meant<'a>(asked: &str, tools: &'a [ToolSpec]) -> Option<&'a ToolSpec> {
    if let Some(spec) = tools.iter().find(|spec| spec.name == asked) {
        return Some(spec);
    }
    let mut name = asked;
    for mark in ["<|", "<\u{ff5c}"] {
        name = name.split(mark).next().unwrap_or(name).trim();
    }
    for space in ["functions.", "function.", "default_api.", "tools.", "tool."] {
        name = name.strip_prefix(space).unwrap_or(name);
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    name = match name.rsplit_once(':') {
        Some((before, number)) if is_number(number) => before,
        _ => name,
    };
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let wanted = plain(name);
    let mut fitting = tools.iter().filter(|spec| plain(&spec.name) == wanted);
    let first = fitting.next()?;
    (fitting.next().is_none() && !wanted.is_empty()).then_some(first)
}

/// Whether a text begins with a mark of a call; `None` if it may with more text.
pub(super) fn is_mark(text: &str, is_last: bool) -> Option<bool> {
    if MARKS.iter().any(|mark| text.starts_with(mark)) {
        return Some(true);
    }
    let may_become = MARKS.iter().any(|mark| mark.starts_with(text));
    (is_last || !may_become).then_some(false)
}

/// Whether a text begins with JSON whose first key is that of a call; `None` if it may with more
/// text.
pub(super) fn is_json(text: &str, is_last: bool) -> Option<bool> {
    let head = &text[..text.floor_char_boundary(64)];
    let more = (is_last || head.len() == 64).then_some(false);
    let inner = head.trim_start_matches(|c: char| c.is_whitespace() || c == '[');
    let Some(inner) = inner.strip_prefix('{').map(str::trim_start) else {
        return if inner.is_empty() { more } else { Some(false) };
    };
    let Some(key) = inner.strip_prefix('"') else {
        return if inner.is_empty() { more } else { Some(false) };
    };
    let mut keys = NAMES
        .iter()
        .chain(&WRAPPERS)
        .chain(&ARGUMENTS)
        .chain(&["type", "id"]);
    match key.split_once('"') {
        Some((key, _)) => Some(keys.any(|known| *known == key)),
        None if keys.any(|known| known.starts_with(key)) => more,
        None => Some(false),
    }
}

/// Reads the call that a text begins with: its length and what it calls. `None` if it is none of
/// an offered tool. `is_bare` says that it begins with JSON.
pub(super) fn read(
    text: &str,
    tools: &[ToolSpec],
    is_bare: bool,
) -> Option<(usize, Result<Vec<ToolCall>, String>)> {
    let head = &text[..text.floor_char_boundary(HEAD)];
    let head = head.split("<signal").next().unwrap_or(head);
    let bodies = ["{", "<parameter", "parameter name=", "<arg_key", "</"];
    let body = bodies.iter().filter_map(|body| head.find(body)).min();
    let before = &head[..body.unwrap_or(head.len())];
    if before.split_whitespace().count() > HEAD_WORDS {
        return None;
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let named = |text: &str| {
        let words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
        let tools: Vec<&ToolSpec> = words.filter_map(|word| meant(word, tools)).collect();
        tools.first().map(|first| first.name.clone())
    };
    let name = named(before);
    let unreadable = || {
        let says = !is_bare || ARGUMENTS.iter().any(|key| head.contains(key));
        let tool = named(head).filter(|_| says)?;
        Some((text.find("<signal").unwrap_or(text.len()), Err(tool)))
    };
    let Some(at) = body else {
        return unreadable();
    };
    let (end, calls) = if head[at..].starts_with('{') {
        let list = before.trim_end();
        let at = if list.ends_with('[') {
            list.len() - 1
        } else {
            at
        };
        let mut values = Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            return unreadable();
        };
        let calls = match name {
            Some(name) => vec![(name, value)],
            None => of_json(value, is_bare),
        };
        (at + values.byte_offset(), calls)
    } else {
        let called = before.trim_end_matches(|c| " \n\t\"'>".contains(c));
        let is_empty = head[at..].starts_with("</");
        let Some((length, value)) = elements(&text[at..]).filter(|_| {
            let last = called.rsplit(|c| !is_word(c)).next().unwrap_or(called);
            !is_empty || meant(last, tools).is_some()
        }) else {
            return unreadable();
        };
        (at + length, vec![(name?, value)])
    };
    let offered = |(name, _): &(String, Value)| meant(name, tools).is_some();
    let is_call = if is_bare {
        calls.iter().all(offered)
    } else {
        calls.iter().any(offered)
    };
    let calls = calls.into_iter().map(|(name, arguments)| ToolCall {
        id: CallId::new(""),
        name,
        arguments: match arguments {
            Value::String(text) => text,
            Value::Null => String::new(),
            value => value.to_string(),
        },
    });
    let calls: Vec<_> = calls.collect();
    (is_call && !calls.is_empty()).then(|| (end + closing(&text[end..]), Ok(calls)))
}

fn of_json(value: Value, is_bare: bool) -> Vec<(String, Value)> {
    let mut map = match value {
        Value::Array(list) => {
            return list
                .into_iter()
                .flat_map(|one| of_json(one, is_bare))
                .collect();
        }
        Value::Object(map) => map,
        _ => return Vec::new(),
    };
    let wraps = |key: &&&str| matches!(map.get(**key), Some(Value::Object(_) | Value::Array(_)));
    if let Some(inner) = WRAPPERS.iter().find(wraps).and_then(|key| map.remove(*key)) {
        return of_json(inner, is_bare);
    }
    let named = |key: &&'static str| Some((*key, map.get(*key)?.as_str()?.to_owned()));
    let Some((key, name)) = NAMES.iter().find_map(named) else {
        return Vec::new();
    };
    let arguments = ARGUMENTS.iter().find_map(|key| map.remove(*key));
    // An object with a name alone may be anything.
    if arguments.is_none() && is_bare && key == "name" {
        return Vec::new();
    }
    let arguments = arguments.unwrap_or_else(|| {
        map.retain(|other, _| other != key && !["type", "id"].contains(&other.as_str()));
        Value::Object(map)
    });
    vec![(name, arguments)]
}

/// The arguments in elements, each as text, and their length.
fn elements(text: &str) -> Option<(usize, Value)> {
    let (mut rest, mut arguments) = (text, Map::new());
    loop {
        let next = rest.trim_start();
        let (tag, after) = match next.split_once('>') {
            Some((tag, after)) if tag.contains("parameter") || tag == "<arg_key" => (tag, after),
            _ => return Some((text.len() - rest.len(), Value::Object(arguments))),
        };
        if tag.starts_with("</") {
            return Some((text.len() - rest.len(), Value::Object(arguments)));
        }
        let (key, value, name) = if tag == "<arg_key" {
            let (key, after) = after.split_once("</arg_key>")?;
            (
                key,
                after.trim_start().strip_prefix("<arg_value>")?,
                "arg_value>",
            )
        } else {
            let key = tag.split_once('=')?.1.trim_start_matches(['"', '\'']);
            (key.split(['"', '\'']).next()?, after, "parameter>")
        };
        let end = value.find(name)?;
        let open = value[..end].rfind("</")?;
        let inside = &value[..open];
        let inside = inside.strip_prefix('\n').unwrap_or(inside);
        let inside = inside.strip_suffix('\n').unwrap_or(inside);
        arguments.insert(key.trim().to_owned(), inside.into());
        rest = &value[end + name.len()..];
    }
}

/// The length of the closing tags after a call's body.
fn closing(text: &str) -> usize {
    let mut rest = text;
    loop {
        let next = rest.trim_start();
        let after = next.strip_prefix("```").or_else(|| {
            let (tag, after) = next.strip_prefix("</")?.split_once('>')?;
            let names = ["tool", "function", "invoke", "DSML"];
            (tag.len() < 40 && names.iter().any(|name| tag.contains(name))).then_some(after)
        });
        match after {
            Some(after) => rest = after,
            None => return text.len() - rest.len(),
        }
    }
}
