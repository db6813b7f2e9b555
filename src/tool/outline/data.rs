//! TOML, YAML and JSON: the keys and tables at the top. SQL: what is created.

use memchr::memmem;

use super::{
    SymbolKind,
    collect::{Collector, Definition, Language},
    indent::leading_word,
    quotes,
};

/// Most words of a statement that are looked at for what it makes.
const MAX_WORDS: usize = 16;
/// How many texts without an end are tried.
const TRIES: u32 = 32;

/// Finds the keys of a text.
pub(super) fn scan<'a>(language: Language, text: &'a str, found: &mut Collector<'a>) {
    match language {
        Language::Toml => toml(text, found),
        Language::Yaml => yaml(text, found),
        _ => json(text, found),
    }
}

fn key(name: &str, at: usize) -> Definition<'_> {
    Definition::new(SymbolKind::Key, name, at)
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

/// SQL: what `create` makes, up to its semicolon. Bodies in `$$ … $$` and between `begin` and `end` may hold
/// semicolons of their own.
pub(super) fn sql<'a>(text: &'a str, found: &mut Collector<'a>) {
    let mut reader = Reader {
        text,
        at: 0,
        tries: TRIES,
    };
    let mut words: Vec<(usize, &'a str)> = Vec::new();
    let mut symbol = None;
    let mut is_routine = false;
    let (mut brackets, mut blocks) = (0_usize, 0_usize);
    let mut last = 0;
    while let Some((at, piece)) = reader.next() {
        if found.is_full() {
            break;
        }
        let is = |word: &str| piece.eq_ignore_ascii_case(word);
        match piece {
            ";" if blocks == 0 => {
                if let Some(symbol) = symbol.take() {
                    found.end(symbol, at);
                }
                words.clear();
                (brackets, is_routine) = (0, false);
            }
            "(" => brackets += 1,
            ")" => brackets = brackets.saturating_sub(1),
            _ if is_routine && (is("begin") || is("case")) => blocks += 1,
            // `end if`, `end loop` end what was not counted.
            _ if is_routine && is("end") && !reader.is_next(&["if", "loop", "while", "repeat"]) => {
                blocks = blocks.saturating_sub(1);
            }
            _ => {}
        }
        let is_name = piece.starts_with(|c: char| c.is_alphanumeric() || "_\"`[.".contains(c));
        if brackets == 0 && is_name && symbol.is_none() && words.len() < MAX_WORDS {
            words.push((at, piece));
            if let Some(definition) = definition(&words) {
                let start = words.first().map_or(at, |word| word.0);
                is_routine = matches!(definition.kind, SymbolKind::Function);
                symbol = found.add(definition, start, at);
            }
        }
        last = at + piece.len() - 1;
    }
    if let Some(symbol) = symbol {
        found.end(symbol, last);
    }
}

/// `create or replace function schema.name`.
fn definition<'a>(words: &[(usize, &'a str)]) -> Option<Definition<'a>> {
    const BETWEEN: &str = "or replace alter temp temporary unlogged global local unique \
        materialized recursive external virtual definer aggregate algorithm";
    let (first, rest) = words.split_first()?;
    if !first.1.eq_ignore_ascii_case("create") {
        return None;
    }
    let at = rest.iter().position(|word| !is_of(BETWEEN, word.1))?;
    let kind = match rest[at].1.to_ascii_lowercase().as_str() {
        "table" | "view" => SymbolKind::Table,
        "function" | "procedure" | "trigger" => SymbolKind::Function,
        "type" | "domain" | "enum" => SymbolKind::Type,
        "schema" | "database" | "extension" => SymbolKind::Module,
        "index" | "sequence" | "policy" | "role" => SymbolKind::Variable,
        _ => return None,
    };
    let name = &rest[at + 1..];
    let at = name
        .iter()
        .position(|word| !is_of("if not exists concurrently", word.1))?;
    let mut name = name[at];
    // The last part of `schema.name`.
    let quote: &[char] = &['"', '`', '[', ']'];
    if let Some(dot) = name.1.trim_end_matches(quote).rfind('.') {
        name = (name.0 + dot + 1, &name.1[dot + 1..]);
    }
    let bare = name.1.trim_matches(quote);
    Some(Definition::new(kind, bare, name.0))
}

fn is_of(words: &str, word: &str) -> bool {
    let mut words = words.split_ascii_whitespace();
    words.any(|known| known.eq_ignore_ascii_case(word))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    tries: u32,
}

impl<'a> Reader<'a> {
    /// The next word (with its dots and quotes) or sign; not what is in texts and comments.
    fn next(&mut self) -> Option<(usize, &'a str)> {
        let bytes = self.text.as_bytes();
        loop {
            let start = self.at;
            let rest = bytes.get(start..).filter(|rest| !rest.is_empty())?;
            match rest[0] {
                byte if byte.is_ascii_whitespace() => self.at += 1,
                b'-' if rest.starts_with(b"--") => self.to(memchr::memchr(b'\n', rest)),
                b'/' if rest.starts_with(b"/*") => {
                    let end = self.tried(|| quotes::comment(bytes, start, false));
                    self.at = end.unwrap_or(start + 2);
                }
                b'\'' => {
                    self.at = self
                        .tried(|| quotes::doubled(bytes, start, b'\''))
                        .unwrap_or(start + 1)
                }
                b'$' => {
                    // `$1` is a parameter, and `a$b` a name.
                    let within = start.checked_sub(1).is_some_and(|at| is_letter(bytes[at]));
                    let mark = dollar_mark(rest).filter(|_| !within);
                    let end = mark.and_then(|mark| self.tried(|| dollars(bytes, start, mark)));
                    self.at = end.unwrap_or(start + 1);
                }
                _ => {
                    let length = name_length(rest).max(1);
                    self.at += length;
                    return self.text.get(start..self.at).map(|piece| (start, piece));
                }
            }
        }
    }

    fn to(&mut self, end: Option<usize>) {
        self.at = end.map_or(self.text.len(), |end| self.at + end);
    }

    fn tried(&mut self, end: impl FnOnce() -> Option<usize>) -> Option<usize> {
        if self.tries == 0 {
            return None;
        }
        let found = end();
        if found.is_none() {
            self.tries -= 1;
        }
        found
    }

    fn is_next(&self, words: &[&str]) -> bool {
        let rest = self.text[self.at..].trim_start();
        words.iter().any(|word| {
            rest.get(..word.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(word))
        })
    }
}

/// The length of a name with its dots and quotes: `a.b`, `"a"."b"`, `[a].[b c]`.
fn name_length(text: &[u8]) -> usize {
    let belongs =
        |byte: u8| byte.is_ascii_alphanumeric() || byte >= 0x80 || b"_.\"`".contains(&byte);
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte == b'[' && (at == 0 || text[at - 1] == b'.') {
            match text[at..].iter().take(130).position(|&byte| byte == b']') {
                Some(end) => at += end + 1,
                None => break,
            }
        } else if belongs(byte) {
            at += 1;
        } else {
            break;
        }
    }
    at
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// `$tag$` or `$$`, if that begins here.
fn dollar_mark(rest: &[u8]) -> Option<&[u8]> {
    let tag = rest[1..].iter().take(64).position(|&byte| byte == b'$')?;
    let mark = &rest[..tag + 2];
    let tag = &mark[1..=tag];
    let is_tag =
        tag.iter().all(|&byte| is_letter(byte)) && !tag.first().is_some_and(u8::is_ascii_digit);
    is_tag.then_some(mark)
}

/// `$tag$ … $tag$`.
fn dollars(text: &[u8], start: usize, mark: &[u8]) -> Option<usize> {
    let from = start + mark.len();
    memmem::find(&text[from..], mark).map(|at| from + at + mark.len())
}
