//! SQL: what `create` makes, up to its semicolon. Bodies in `$$ … $$` and between `begin` and `end` may
//! hold semicolons of their own.

use memchr::memmem;

use super::{
    SymbolKind,
    collect::{Collector, Definition},
    quotes,
};

/// Most words of a statement that are looked at for what it makes.
const MAX_WORDS: usize = 16;
/// How many texts without an end are tried.
const TRIES: u32 = 32;

/// Finds the definitions of a text.
pub(super) fn scan<'a>(text: &'a str, found: &mut Collector<'a>) {
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
    const BETWEEN: [&str; 16] = [
        "or",
        "replace",
        "alter",
        "temp",
        "temporary",
        "unlogged",
        "global",
        "local",
        "unique",
        "materialized",
        "recursive",
        "external",
        "virtual",
        "definer",
        "aggregate",
        "algorithm",
    ];
    let (first, rest) = words.split_first()?;
    if !first.1.eq_ignore_ascii_case("create") {
        return None;
    }
    let between = |word: &str| BETWEEN.iter().any(|known| word.eq_ignore_ascii_case(known));
    let at = rest.iter().position(|word| !between(word.1))?;
    let kind = match rest[at].1.to_ascii_lowercase().as_str() {
        "table" | "view" => SymbolKind::Table,
        "function" | "procedure" | "trigger" => SymbolKind::Function,
        "type" | "domain" | "enum" => SymbolKind::Type,
        "schema" | "database" | "extension" => SymbolKind::Module,
        "index" | "sequence" | "policy" | "role" => SymbolKind::Variable,
        _ => return None,
    };
    let name = &rest[at + 1..];
    let skipped = ["if", "not", "exists", "concurrently"];
    let is_skipped = |word: &str| skipped.iter().any(|known| word.eq_ignore_ascii_case(known));
    let at = name.iter().position(|word| !is_skipped(word.1))?;
    let mut name = name[at];
    // The last part of `schema.name`.
    let quote: &[char] = &['"', '`', '[', ']'];
    if let Some(dot) = name.1.trim_end_matches(quote).rfind('.') {
        name = (name.0 + dot + 1, &name.1[dot + 1..]);
    }
    let bare = name.1.trim_matches(quote);
    Some(Definition {
        kind,
        name: bare,
        owner: None,
        at: name.0,
    })
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
