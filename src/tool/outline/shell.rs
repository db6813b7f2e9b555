//! Shell scripts: functions and variables. A function ends with the brace that stands as deep as it.

use super::{
    SymbolKind,
    collect::{Collector, Definition},
    indent::{depth, leading_word},
};

/// Finds the definitions of a text.
pub(super) fn scan<'a>(text: &'a str, found: &mut Collector<'a>) {
    let mut here: Option<String> = None;
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    let (mut at, mut last) = (0, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if found.is_full() {
            break;
        }
        let code = line.trim();
        if let Some(word) = &here {
            if code == word {
                here = None;
            }
            continue;
        }
        if code.is_empty() || code.starts_with('#') {
            continue;
        }
        let depth = depth(line);
        let from = start + line.find(code).unwrap_or(0);
        let end = from + code.len() - 1;
        if code.starts_with(['}', ')']) {
            while let Some((_, symbol)) = open.pop_if(|(level, _)| *level >= depth) {
                symbol.into_iter().for_each(|symbol| found.end(symbol, end));
            }
        } else if let Some((name, body)) = function(code) {
            while let Some((_, symbol)) = open.pop_if(|(level, _)| *level >= depth) {
                symbol
                    .into_iter()
                    .for_each(|symbol| found.end(symbol, last));
            }
            let at = from + code.find(name).unwrap_or(0);
            let kind = SymbolKind::Function;
            let symbol = found.add(
                Definition {
                    kind,
                    name,
                    owner: None,
                    at,
                },
                from,
                end,
            );
            let is_whole = body.len() > 1 && body.ends_with(['}', ')']);
            if !is_whole {
                open.push((depth, symbol));
            }
        } else if depth == 0
            && let Some((kind, name)) = variable(code)
        {
            let at = from + code.find(name).unwrap_or(0);
            found.add(
                Definition {
                    kind,
                    name,
                    owner: None,
                    at,
                },
                from,
                end,
            );
        }
        here = here_word(code);
        last = end;
    }
    for (_, symbol) in open {
        symbol
            .into_iter()
            .for_each(|symbol| found.end(symbol, last));
    }
}

/// `name() {`, `function name {`: the name, and what follows it.
fn function(code: &str) -> Option<(&str, &str)> {
    let is_word = |rest: &&str| rest.starts_with([' ', '\t']);
    let (named, code) = match code.strip_prefix("function").filter(is_word) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, code),
    };
    let name = leading_word(code, "-:.");
    let rest = code[name.len()..].trim_start();
    let brackets = rest
        .strip_prefix('(')
        .and_then(|rest| rest.trim_start().strip_prefix(')'));
    let is_name = !name.is_empty() && !name.starts_with(['-', '.', ':']);
    let rest = brackets
        .or(named.then_some(rest))
        .filter(|_| is_name)?
        .trim();
    (rest.is_empty() || rest.starts_with(['{', '(', '#'])).then_some((name, rest))
}

fn variable(code: &str) -> Option<(SymbolKind, &str)> {
    let mut kind = SymbolKind::Variable;
    let mut rest = code;
    for word in ["export", "readonly", "declare", "typeset"] {
        if let Some(after) = rest
            .strip_prefix(word)
            .filter(|after| after.starts_with(' '))
        {
            rest = after.trim_start();
            if word == "readonly" || rest.starts_with("-r") {
                kind = SymbolKind::Constant;
            }
            while rest.starts_with('-') {
                rest = rest
                    .split_once(' ')
                    .map_or("", |(_, after)| after)
                    .trim_start();
            }
        }
    }
    let name = leading_word(rest, "");
    let is_given = rest[name.len()..].starts_with('=');
    let is_loud = name.starts_with(|c: char| c.is_ascii_uppercase());
    (is_given && is_loud).then_some((kind, name))
}

/// The word of `<<WORD`, `<<-'WORD'`; not of `<<<`.
fn here_word(code: &str) -> Option<String> {
    let (_, rest) = code.split_once("<<")?;
    if rest.starts_with('<') {
        return None;
    }
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start();
    let word = leading_word(rest.trim_start_matches(['"', '\'', '\\']), "");
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        .then(|| word.to_owned())
}
