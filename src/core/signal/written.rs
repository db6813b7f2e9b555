//! Calls of tools that a model writes as text, in the forms of its chat template.
//!
//! A call names a tool and has a body: JSON, elements with one argument each, or the arguments of a
//! function in Python. The name is in the JSON, or in the marks before the body. Without a mark,
//! only the names of offered tools count.

use serde_json::{Map, Value};

use super::{
    mark::{begins, of_call},
    view::Span,
};
use crate::model::{CallId, ToolCall, ToolSpec, json};

/// Longest text between the first mark and the body, in bytes and in words.
const HEAD: usize = 400;
const HEAD_WORDS: usize = 6;
/// What a body begins with, or what follows a call without one.
const BODIES: [&str; 6] = [
    "{",
    "<parameter",
    "<\u{ff5c}DSML\u{ff5c}parameter",
    "parameter name=",
    "<arg_key",
    "</",
];
/// How JSON with a call begins, in lists or not.
const JSON: &str = r#"{"name" {"tool {"function {"action {"arg {"param {"input" {"type" {"id""#;
/// How other calls begin, besides the names of tools.
const STARTS: &str = "print(default_api. default_api. functools[ Action:";
/// What may follow a tool's name, besides numbers: the words of marks, and a method.
const TAILS: &str = "analysis call channel commentary constrain final json message";
/// Keys of the tool's name, and of its arguments, in JSON.
const NAMES: &str = "name tool tool_name function function_name action";
const ARGUMENTS: &str = "arguments parameters input args params tool_input action_input";
/// Keys of an object or list in which the call is.
const WRAPPERS: &str = "tool_calls tool_call function_call function";

/// A written call, or several in one list.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) span: Span,
    /// Whether it is unmistakable: outside of code, with a mark or at the beginning of the reply.
    pub(super) is_marked: bool,
    /// The calls without ids, or the tool if its call cannot be read.
    pub(super) calls: Result<Vec<ToolCall>, String>,
}

/// The offered tool that a model means: exactly this one, else the only one whose name is the last
/// word before numbers and words of marks, without namespace, letter case, `-` and `_`.
pub fn meant<'a>(asked: &str, tools: &'a [ToolSpec]) -> Option<&'a ToolSpec> {
    if let Some(spec) = tools.iter().find(|spec| spec.name == asked) {
        return Some(spec);
    }
    let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
    let only = |name: &str| {
        let name = plain(name);
        let mut fitting = tools.iter().filter(|spec| plain(&spec.name) == name);
        let first = fitting.next().filter(|_| !name.is_empty())?;
        fitting.next().is_none().then_some(first)
    };
    let mut words = asked.rsplit(|c| !is_word(c));
    let is_tail = |word: &str| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        is_number || TAILS.split(' ').any(|tail| tail == word)
    };
    let word = words.find(|word| only(word).is_some() || !is_tail(word))?;
    only(word).or_else(|| only(word.rsplit("__").next()?))
}

/// Whether a text begins like a call without a mark: with JSON whose first key is that of a call, or
/// with the name of a tool and its arguments; `None` if it may with more text.
pub(super) fn begins_call(text: &str, tools: &[ToolSpec]) -> Option<bool> {
    let names = tools.iter().map(|spec| &*spec.name);
    let mut starts = names.chain(["[", "{"]).chain(STARTS.split(' '));
    // Most lines begin otherwise.
    if starts.all(|start| begins(&text[..text.ceil_char_boundary(8)], start) == Some(false)) {
        return Some(false);
    }
    let head = &text[..text.floor_char_boundary(64)];
    let plain: String = head.split_whitespace().collect();
    let inside = plain.trim_start_matches('[');
    let json = JSON.split(' ').map(|start| begins(inside, start));
    let named = tools.iter().map(|spec| match begins(inside, &spec.name) {
        Some(true) => begins(&inside[spec.name.len()..], "("),
        other => other,
    });
    let others = STARTS.split(' ').map(|start| begins(inside, start));
    let mut fits = json.chain(named).chain(others);
    let may_fit = fits.clone().any(|fits| fits.is_none());
    match fits.any(|fits| fits == Some(true)) {
        false if may_fit && head.len() == text.len() => None,
        is_call => Some(is_call),
    }
}

/// Reads the call that a text begins with: its length and what it calls. `None` if it is none of
/// an offered tool. `is_bare` says that no mark precedes it.
pub(super) fn read(
    text: &str,
    tools: &[ToolSpec],
    is_bare: bool,
) -> Option<(usize, Result<Vec<ToolCall>, String>)> {
    let head = &text[..text.floor_char_boundary(HEAD)];
    let head = head.split("<signal").next().unwrap_or(head);
    // A name in an element is followed by the body.
    let plain = head.replace("name>", "name_");
    let body = BODIES.iter().filter_map(|body| {
        let mut places = plain.match_indices(body);
        let named = |at: usize| plain[at..].split('>').next()?.find("name_");
        places.find_map(|(at, _)| named(at).is_none().then_some(at))
    });
    let (before, inside) = head.split_at(body.min().unwrap_or(head.len()));
    let python = python(text, tools).filter(|_| before.contains('('));
    if python.is_none() && before.split_whitespace().count() > HEAD_WORDS {
        return None;
    }
    let named = |text: &str| {
        let mut words = text.split(|c| !is_word(c));
        words.find_map(|word| meant(word, tools))
    };
    let tool = named(before);
    let body = if python.is_some() {
        python
    } else if inside.starts_with('{') {
        json(text, before, tool, is_bare)
    } else {
        let called = before.trim_end_matches([' ', '\n', '\t', '"', '\'', '>']);
        let last = called.rsplit(|c| !is_word(c)).next().unwrap_or(called);
        let is_call = !inside.starts_with("</") || meant(last, tools).is_some();
        let read = elements(&text[before.len()..]).filter(|_| is_call && !inside.is_empty());
        read.map(|(length, arguments)| {
            let name = tool.map_or(last, |tool| &tool.name);
            let call = call(name, Value::Object(arguments));
            (before.len() + length, vec![call])
        })
    };
    let Some((end, calls)) = body else {
        // A call that cannot be read names a tool, and has a mark or an argument's key.
        let says = !is_bare || ARGUMENTS.split(' ').any(|key| head.contains(key));
        let tool = named(head).filter(|_| says)?;
        let length = text.find("<signal").unwrap_or(text.len());
        return Some((length, Err(tool.name.clone())));
    };
    let mut offered = calls.iter().map(|call| meant(&call.name, tools).is_some());
    // What has a mark is a call of any tool: the model learns which there are.
    let is_call = !calls.is_empty() && (!is_bare || offered.all(|is_offered| is_offered));
    is_call.then(|| (end + closing(&text[end..]), Ok(calls)))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: CallId::new(""),
        name: name.to_owned(),
        arguments: match arguments {
            Value::String(text) => text,
            Value::Null => String::new(),
            value => value.to_string(),
        },
    }
}

/// The calls in the JSON after `before`, which are of the tool that is named there, and their end.
fn json(
    text: &str,
    before: &str,
    tool: Option<&ToolSpec>,
    is_bare: bool,
) -> Option<(usize, Vec<ToolCall>)> {
    let start = before.trim_end().strip_suffix('[').unwrap_or(before).len();
    let (json, length) = json::value(&text[start..])?;
    let value = json::read(&json).ok()?;
    let calls = match tool {
        Some(tool) => vec![call(&tool.name, value)],
        None => calls(value, is_bare),
    };
    Some((start + length, calls))
}

/// The calls in `[name(key="value"), …]`, and their end.
fn python(text: &str, tools: &[ToolSpec]) -> Option<(usize, Vec<ToolCall>)> {
    let (mut rest, mut calls) = (text, Vec::new());
    while let Some(open) = rest[..rest.floor_char_boundary(HEAD)].find('(')
        && !rest[..open].contains(['{', '"', '\''])
        && rest[..open].split_whitespace().count() <= HEAD_WORDS
    {
        let name = rest[..open].rsplit(|c| !is_word(c) && c != '.').next()?;
        let arguments = json::arguments(&rest[open..]);
        match meant(name, tools).zip(arguments) {
            Some((tool, (arguments, length))) => {
                calls.push(call(&tool.name, Value::String(arguments)));
                rest = &rest[open + length..];
            }
            None if name == "print" => rest = &rest[open + 1..],
            None => break,
        }
    }
    (!calls.is_empty()).then(|| (text.len() - rest.len(), calls))
}

fn calls(value: Value, is_bare: bool) -> Vec<ToolCall> {
    let mut map = match value {
        Value::Array(list) => {
            let calls = list.into_iter().flat_map(|one| calls(one, is_bare));
            return calls.collect();
        }
        Value::Object(map) => map,
        _ => return Vec::new(),
    };
    let wraps = |key: &&str| matches!(map.get(*key), Some(Value::Object(_) | Value::Array(_)));
    if let Some(inner) = WRAPPERS.split(' ').find(wraps) {
        return calls(map[inner].take(), is_bare);
    }
    let named = |key| Some((key, map.get(key)?.as_str()?.to_owned()));
    let Some((key, name)) = NAMES.split(' ').find_map(named) else {
        return Vec::new();
    };
    let arguments = ARGUMENTS.split(' ').find_map(|key| map.remove(key));
    // An object with a name alone may be anything.
    if arguments.is_none() && is_bare && key == "name" {
        return Vec::new();
    }
    let arguments = arguments.unwrap_or_else(|| {
        let is_of_call =
            |other: &str| other == key || key == "name" && matches!(other, "type" | "id");
        map.retain(|other, _| !is_of_call(other));
        Value::Object(map)
    });
    vec![call(&name, arguments)]
}

/// The arguments in elements, each as text, and their length.
fn elements(text: &str) -> Option<(usize, Map<String, Value>)> {
    let (mut rest, mut arguments) = (text, Map::new());
    while let Some((tag, after)) = rest.trim_start().split_once('>')
        && !tag.starts_with("</")
        && (tag.contains("parameter") || tag == "<arg_key")
    {
        let (key, value, close) = match tag.split_once('=') {
            Some((_, key)) => (key.trim_start_matches(['"', '\'']), after, "parameter>"),
            None => {
                let (key, after) = after.split_once("</arg_key>")?;
                let value = after.trim_start().strip_prefix("<arg_value>")?;
                (key, value, "arg_value>")
            }
        };
        let key = key.split(['"', '\'']).next()?.trim();
        let (inside, after) = value.split_once(close)?;
        let inside = &inside[..inside.rfind("</")?];
        let inside = inside.strip_prefix('\n').unwrap_or(inside);
        let inside = inside.strip_suffix('\n').unwrap_or(inside);
        arguments.insert(key.to_owned(), inside.into());
        rest = after;
    }
    Some((text.len() - rest.len(), arguments))
}

/// The length of the closing tags and brackets after a call's body.
fn closing(text: &str) -> usize {
    let mut rest = text;
    loop {
        let next = rest.trim_start();
        // A run of backticks is one token, so that no call ends within it.
        let fence = next.strip_prefix("```");
        let fence = fence.map(|rest| rest.trim_start_matches('`'));
        let bracket = fence.or(next.strip_prefix([')', ']']));
        let after = bracket.or_else(|| {
            let (tag, _) = next[..next.floor_char_boundary(40)].split_once('>')?;
            let closes = tag.starts_with("</")
                || tag.starts_with("<end_")
                || tag.ends_with('|') && !tag.starts_with("<|");
            (closes && (of_call(tag) || tag.contains("arg"))).then(|| &next[tag.len() + 1..])
        });
        match after {
            Some(after) => rest = after,
            None => return text.len() - rest.len(),
        }
    }
}
