//! The lines of a manifest that give something a value. Pure.

use super::{super::source::Lines, Form};
use crate::llm::offline::{interest::Fact, lexicon::holds};

/// `key = value`, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) line: u32,
    /// What it stands in, if a line above says so.
    pub(super) section: String,
    /// In small letters; empty for the line that begins a section.
    pub(super) key: String,
    /// What stands behind it on its line.
    pub(super) value: &'a str,
    form: Form,
}

/// All of a manifest that belong to the project itself as its form has them.
pub(super) fn entries(form: Form, lines: &Lines) -> Vec<Entry<'_>> {
    let mut section = String::new();
    let mut depth = 0_i32;
    let mut of_project = 0_i32;
    let mut inside: Option<&str> = None;
    let mut all = Vec::new();
    for (&line, text) in lines {
        let entry = |section: &str, key: &str, value| Entry {
            line,
            section: section.to_owned(),
            key: key.trim().to_lowercase(),
            value,
            form,
        };
        match form {
            Form::Sections => {
                if let Some(header) = header(text) {
                    header.clone_into(&mut section);
                    all.push(entry(&section, "", ""));
                } else if let Some((key, value)) = text.split_once('=')
                    && !text.starts_with([' ', '\t', '#', ';'])
                {
                    all.push(entry(&section, key.trim().trim_matches('"'), value));
                }
            }
            Form::Object => {
                let own = text.trim_start().strip_prefix('"').filter(|_| depth == 1);
                if let Some((key, value)) = own.and_then(|own| own.split_once('"')) {
                    let value = value.trim_start().strip_prefix(':');
                    all.extend(value.map(|value| entry("", key, value)));
                }
                depth += balance(text);
            }
            Form::Fields => {
                let own = text.split_once(':');
                let own =
                    own.filter(|(key, _)| !key.contains(|c: char| c.is_whitespace() || c == '#'));
                all.extend(own.map(|(key, value)| entry("", key, value)));
            }
            Form::Code => {
                let given = in_code(text);
                let begins = given
                    .iter()
                    .any(|(key, _)| key.eq_ignore_ascii_case("project"));
                let is_of_project = begins || of_project > 0;
                if is_of_project {
                    of_project += balance(text);
                }
                // `VERSION 1.0` says that of whatever it is an argument of.
                let is_argument = |value: &str| value.starts_with(|c: char| c.is_ascii_digit());
                let own = given.into_iter().filter(|(key, value)| {
                    *key != "VERSION" || is_of_project || !is_argument(value)
                });
                all.extend(own.map(|(key, value)| entry("", key, value)));
            }
            Form::Tags => {
                if let Some(outer) = inside {
                    inside = inside.filter(|_| !text.contains(&format!("</{outer}>")));
                } else if let Some((key, value)) = tag(text) {
                    all.push(entry("", key, value));
                    let others = OF_OTHERS.iter().find(|outer| **outer == key);
                    inside = others
                        .copied()
                        .filter(|outer| !text.contains(&format!("</{outer}>")));
                }
            }
        }
    }
    all
}

/// `[package]` or `[[bin]]`, without the brackets.
fn header(line: &str) -> Option<&str> {
    let line = line.trim();
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let inner = inner
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(inner);
    Some(inner.trim())
}

/// What in a manifest of tags is about other things than the project.
const OF_OTHERS: &[&str] = &[
    "parent",
    "dependencies",
    "dependencyManagement",
    "build",
    "plugins",
    "profiles",
    "reporting",
];

fn tag(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.trim_start().strip_prefix('<')?.split_once('>')?;
    key.starts_with(|c: char| c.is_alphabetic())
        .then_some((key, value))
}

/// Calls that take what they name as arguments of their own line.
const CALLS: &str = "setup project ac_init";

/// The names that a line of code gives values, each with the rest of the line.
fn in_code(line: &str) -> Vec<(&str, &str)> {
    let code = line.trim_start();
    if code.starts_with(['#', '/', '*', ';']) {
        return Vec::new();
    }
    let Some((key, value)) = given(code) else {
        return Vec::new();
    };
    let mut all = vec![(key, value)];
    if holds(CALLS, &key.to_lowercase()) {
        all.extend(value.split(['(', ',']).filter_map(given));
        // CMake parts arguments by blanks.
        let version = value
            .split_once(" VERSION ")
            .map(|(_, version)| ("version", version));
        all.extend(version);
    }
    all
}

/// `version = "1.0"`, `spec.version = "1.0"`, `version: '1.0'`, `VERSION 1.0`, `project(x`.
fn given(code: &str) -> Option<(&str, &str)> {
    let code = code.trim_start().trim_start_matches(['@', ':']);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let end = code.find(|c| !is_name(c))?;
    let (name, rest) = code.split_at(end);
    let key = name.rsplit('.').next().filter(|key| !key.is_empty())?;
    let rest = rest.trim_start();
    let value = ["=>", "=", ":"]
        .iter()
        .find_map(|sign| rest.strip_prefix(sign))
        .or_else(|| rest.starts_with('(').then_some(rest));
    let value = match value {
        Some(value) if !value.starts_with('=') => value,
        Some(_) => return None,
        None if rest.starts_with(['"', '\'']) => rest,
        None if rest.starts_with(|c: char| c.is_ascii_digit()) => rest,
        None => return None,
    };
    Some((key, value))
}

impl Entry<'_> {
    /// Whether what it says is a fact of this kind: a version has a number, and what is worked out when it is
    /// built says nothing.
    pub(super) fn says_something(&self, fact: Fact) -> bool {
        match fact {
            Fact::Version => {
                let plain = self.plain();
                let number = plain.trim_start_matches(['v', 'V']);
                number.starts_with(|c: char| c.is_ascii_digit()) && self.key != "project"
            }
            // Said for all of a workspace in another place.
            Fact::Needs(_) => !self.value.contains("workspace"),
            // Said in another file, or of the workspace.
            Fact::License if self.value.trim().starts_with('{') => self.value.contains("text"),
            _ if self.form == Form::Code && self.key != "gem" => {
                self.value.contains(['"', '\'', '[', '(', '{']) || self.value.trim().is_empty()
            }
            _ => true,
        }
    }

    /// What it says, without quotes and what ends it.
    pub(super) fn plain(&self) -> String {
        let value = self.value.trim();
        // `{ text = "MIT" }`
        let value = match value.strip_prefix('{') {
            Some(table) => table.find(['"', '\'']).map_or(value, |at| &table[at..]),
            None => value,
        };
        let value = match (self.key.as_str(), value.chars().next()) {
            // Autoconf names the program before its version.
            ("ac_init", _) => value
                .split(',')
                .nth(1)
                .unwrap_or("")
                .trim()
                .trim_matches(['[', ']', ')']),
            (_, Some(quote @ ('"' | '\''))) => {
                let inner = &value[1..];
                inner.split(quote).next().unwrap_or(inner)
            }
            _ => match self.form {
                Form::Tags => value.split('<').next().unwrap_or(value),
                Form::Sections => value.split(" #").next().unwrap_or(value),
                Form::Code => value.split_whitespace().next().unwrap_or(value),
                Form::Object | Form::Fields => value,
            },
        };
        value
            .trim()
            .trim_end_matches([',', ';', ')'])
            .trim()
            .to_owned()
    }
}

/// The last line of what an entry says, as far as lines are known.
pub(super) fn last_line(entry: &Entry<'_>, lines: &Lines) -> u32 {
    let behind = || (entry.line + 1..).map_while(|at| Some((at, lines.get(&at)?.as_str())));
    if entry.key.is_empty() {
        return end_of_section(entry, behind());
    }
    if entry.form == Form::Tags {
        let end = format!("</{}>", entry.key);
        let is_end = |text: &str| text.to_lowercase().contains(&end);
        if is_end(entry.value) {
            return entry.line;
        }
        return behind()
            .find(|(_, text)| is_end(text))
            .map_or(entry.line, |(at, _)| at);
    }
    let mut open = balance(entry.value);
    let mut last = entry.line;
    if open > 0 {
        for (at, text) in behind() {
            open += balance(text);
            last = at;
            if open <= 0 {
                break;
            }
        }
    } else if entry.value.trim().is_empty() {
        let set_in = behind().take_while(|(_, text)| text.starts_with([' ', '\t']));
        last = set_in.last().map_or(last, |(at, _)| at);
    }
    last
}

/// Up to the next section of another name; `[dependencies.x]` belongs to `[dependencies.a]`.
fn end_of_section<'a>(entry: &Entry<'_>, behind: impl Iterator<Item = (u32, &'a str)>) -> u32 {
    let first = |name: &str| name.split('.').next().unwrap_or("").to_owned();
    let own = first(&entry.section);
    let is_split = entry.section.starts_with("dependencies.");
    let rest = behind
        .take_while(|(_, text)| header(text).is_none_or(|name| is_split && first(name) == own));
    let said = rest.filter(|(_, text)| !text.trim().is_empty());
    said.last().map_or(entry.line, |(at, _)| at)
}

/// How many brackets a line opens more than it closes, outside of strings.
pub(in super::super) fn balance(text: &str) -> i32 {
    let (mut open, mut quote, mut is_escaped) = (0, None, false);
    for c in text.chars() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(within), c) if within == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{' | '(') => open += 1,
            (None, ']' | '}' | ')') => open -= 1,
            (None, _) => {}
        }
    }
    open
}
