//! TOML, YAML and JSON: the keys and tables at the top.

use super::{
    SymbolKind,
    collect::{Collector, Definition},
    indent::leading_word,
    quotes,
};
use crate::tool::outline::language::Language;

/// Finds the keys of a text.
pub(super) fn scan<'a>(language: Language, text: &'a str, found: &mut Collector<'a>) {
    match language {
        Language::Toml => toml(text, found),
        Language::Yaml => yaml(text, found),
        _ => json(text, found),
    }
}

fn key<'a>(name: &'a str, at: usize) -> Definition<'a> {
    Definition {
        kind: SymbolKind::Key,
        name,
        owner: None,
        at,
    }
}

/// `[table]`, `[[table]]`, and keys before the first of them.
fn toml<'a>(text: &'a str, found: &mut Collector<'a>) {
    let mut in_text: Option<&str> = None;
    let mut open: Option<usize> = None;
    let mut has_table = false;
    let mut brackets = 0_i64;
    let (mut at, mut last) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let body = line.trim();
        let from = start + (line.len() - line.trim_start().len());
        let inside = in_text.is_some() || brackets > 0;
        if !inside && !body.is_empty() && !body.starts_with('#') {
            let table = body
                .strip_prefix('[')
                .map(|rest| rest.trim_start_matches('['));
            let name = match table {
                Some(table) => table.split(']').next().unwrap_or(""),
                None => body
                    .split('=')
                    .next()
                    .filter(|key| key.len() < body.len())
                    .unwrap_or(""),
            };
            let name = name.trim();
            if table.is_some() || !has_table {
                if let Some(open) = open.take() {
                    found.end(open, last);
                }
                let place = from + body.find(name).unwrap_or(0);
                open = found.add(key(unquoted(name), place), from, from);
                has_table |= table.is_some();
            }
            if table.is_some() {
                last = from + body.len() - 1;
                continue;
            }
        }
        (in_text, brackets) = toml_state(body, in_text, brackets);
        if !body.is_empty() && !body.starts_with('#') {
            last = from + body.len() - 1;
        }
    }
    if let Some(open) = open {
        found.end(open, last);
    }
}

fn unquoted(name: &str) -> &str {
    let within = |mark: char| name.strip_prefix(mark)?.strip_suffix(mark);
    within('"').or(within('\'')).unwrap_or(name)
}

/// What is open after a line: a text of several lines, or an array.
fn toml_state(
    body: &str,
    mut in_text: Option<&'static str>,
    mut brackets: i64,
) -> (Option<&'static str>, i64) {
    let bytes = body.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        if let Some(mark) = in_text {
            let ends = rest.starts_with(mark.as_bytes());
            at += if ends {
                3
            } else if byte == b'\\' {
                2
            } else {
                1
            };
            in_text = (!ends).then_some(mark);
            continue;
        }
        at = match byte {
            b'#' => break,
            b'"' if rest.starts_with(b"\"\"\"") => {
                in_text = Some("\"\"\"");
                at + 3
            }
            b'\'' if rest.starts_with(b"'''") => {
                in_text = Some("'''");
                at + 3
            }
            b'"' => quotes::on_line(bytes, at, b'"').unwrap_or(bytes.len()),
            b'\'' => {
                memchr::memchr(b'\'', &bytes[at + 1..]).map_or(bytes.len(), |end| at + end + 2)
            }
            b'[' | b'{' => {
                brackets += 1;
                at + 1
            }
            b']' | b'}' => {
                brackets = (brackets - 1).max(0);
                at + 1
            }
            _ => at + 1,
        };
    }
    (in_text, brackets)
}

/// Keys that stand at the margin.
fn yaml<'a>(text: &'a str, found: &mut Collector<'a>) {
    let mut open: Option<usize> = None;
    let (mut at, mut last) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let body = line.trim_end();
        if body.trim_start().is_empty() || body.trim_start().starts_with('#') {
            continue;
        }
        let name = yaml_key(body);
        let ends = name.is_some() || body.starts_with("---") || body == "...";
        if ends && let Some(open) = open.take() {
            found.end(open, last);
        }
        if let Some(name) = name {
            open = found.add(key(name, start), start, start);
        }
        last = start + body.len() - 1;
    }
    if let Some(open) = open {
        found.end(open, last);
    }
}

fn yaml_key(body: &str) -> Option<&str> {
    if let Some(mark) = body.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (name, rest) = body[1..].split_once(mark)?;
        return rest.trim_start().starts_with(':').then_some(name);
    }
    let name = leading_word(body, "-./$ ");
    let rest = &body[name.len()..];
    let is_key = rest
        .strip_prefix(':')
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    (is_key && !name.starts_with([' ', '-'])).then_some(name)
}

/// Keys of the outermost object.
fn json<'a>(text: &'a str, found: &mut Collector<'a>) {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut open: Option<usize> = None;
    let mut name: Option<(usize, &str)> = None;
    let (mut at, mut last) = (0, 0);
    let mut lines = quotes::OnLine::default();
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                at = lines.end(bytes, start, b'"').unwrap_or(at);
                if depth == 1 && open.is_none() {
                    name = text.get(start + 1..at - 1).map(|name| (start, name));
                }
            }
            b':' if depth == 1 => {
                if let Some((from, name)) = name.take() {
                    open = found.add(key(name, from), from, from);
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0
                    && let Some(open) = open.take()
                {
                    found.end(open, last);
                }
            }
            b',' if depth == 1 => {
                if let Some(open) = open.take() {
                    found.end(open, last);
                }
            }
            b'/' if bytes.get(at) == Some(&b'/') => {
                at += memchr::memchr(b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                continue;
            }
            _ if byte.is_ascii_whitespace() => continue,
            _ => {}
        }
        last = at - 1;
        if found.is_full() {
            break;
        }
    }
    if let Some(open) = open {
        found.end(open, last);
    }
}
