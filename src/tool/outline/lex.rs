//! Splits code with braces, and JSON, into pieces: words, texts (as one piece), numbers and signs,
//! without comments.
//!
//! **Invariant:** linear, because the search for a missing end is tried a bounded number of times.

use memchr::memchr;

use super::{
    collect::{Language, Language as L},
    quotes,
};
use crate::tool::text::is_one_of;

/// Number of unclosed texts that are tried; later quotes are signs.
const MAX_TRIES: u32 = 32;
/// Number of unclosed regular expressions that are tried; they are short.
const MAX_SLIPS: u32 = 10_000;

/// The mark of texts of several lines.
const TRIPLE: &[u8] = b"\"\"\"";

/// Words before a regular expression instead of a division.
const BEFORE_VALUE: &str =
    "return case typeof in of do else void yield await delete throw instanceof new";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Number,
    Text,
    /// One sign, or `->`, `=>`, `::`.
    Sign,
    Directive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) is_line_start: bool,
    pub(super) is_unindented: bool,
    /// In the pieces of a statement's head, the number of brackets around it; else 0.
    pub(super) nest: u32,
}

impl Token<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text && self.kind != TokenKind::Text
    }

    pub(super) fn is_one_of(&self, words: &str) -> bool {
        self.kind != TokenKind::Text && is_one_of(words, self.text)
    }

    pub(super) fn is_word(&self) -> bool {
        self.kind == TokenKind::Word
    }

    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

pub(super) struct Lexer<'a> {
    language: Language,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    is_line_start: bool,
    after_value: bool,
    after_less: bool,
    tries: u32,
    slips: u32,
    lines: quotes::OnLine,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(language: Language, text: &'a str) -> Self {
        let mut lexer = Self {
            language,
            text,
            bytes: text.as_bytes(),
            at: 0,
            is_line_start: true,
            after_value: false,
            after_less: false,
            tries: MAX_TRIES,
            slips: MAX_SLIPS,
            lines: quotes::OnLine::default(),
        };
        if text.starts_with("#!") && language != L::Rust {
            lexer.skip_line();
        }
        if language == L::Php {
            lexer.skip_page();
        }
        lexer
    }

    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            match byte {
                b'\n' => {
                    self.is_line_start = true;
                    self.at += 1;
                }
                _ if byte.is_ascii_whitespace() => self.at += 1,
                b'/' if self.follows(b"//") => self.skip_line(),
                b'/' if self.follows(b"/*") && self.language != L::Json => {
                    let nests = matches!(self.language, L::Rust | L::Kotlin | L::Swift);
                    let end = self.tried(|bytes, at| quotes::comment(bytes, at, nests));
                    self.at = end.unwrap_or(self.at + 2);
                }
                b'#' if self.language == L::Php && !self.follows(b"#[") => self.skip_line(),
                b'#' if matches!(self.language, L::C | L::CSharp) && self.is_line_start => {
                    return Some(self.directive());
                }
                b'?' if self.language == L::Php && self.follows(b"?>") => self.skip_page(),
                _ => return Some(self.piece(byte)),
            }
        }
    }

    fn piece(&mut self, byte: u8) -> Token<'a> {
        let start = self.at;
        let (kind, end) = if let Some(end) = self.quoted(byte) {
            (TokenKind::Text, end)
        } else if self.begins_word(byte) {
            (TokenKind::Word, self.word_end(start + 1))
        } else if byte.is_ascii_digit() {
            (TokenKind::Number, self.number_end(start + 1))
        } else {
            let mut pairs = [b"->", b"=>", b"::"].into_iter();
            let two = pairs.any(|pair| self.follows(pair));
            (TokenKind::Sign, start + if two { 2 } else { 1 })
        };
        self.token(kind, end)
    }

    fn token(&mut self, kind: TokenKind, end: usize) -> Token<'a> {
        let start = self.at;
        let text = self.text.get(start..end).unwrap_or("");
        let is_line_start = std::mem::take(&mut self.is_line_start);
        let is_unindented = is_line_start && (start == 0 || self.bytes[start - 1] == b'\n');
        self.after_value = match kind {
            TokenKind::Word => !is_one_of(BEFORE_VALUE, text),
            TokenKind::Number | TokenKind::Text => true,
            TokenKind::Sign => matches!(text, ")" | "]" | "}"),
            TokenKind::Directive => false,
        };
        self.after_less = text == "<";
        self.at = end;
        // A text of several lines ends in a later one, so it does not begin the line of what
        // follows.
        Token {
            kind,
            text,
            at: start,
            is_line_start,
            is_unindented,
            nest: 0,
        }
    }

    fn quoted(&mut self, byte: u8) -> Option<usize> {
        let language = self.language;
        match (byte, language) {
            (b'b' | b'c', L::Rust) if self.follows(&[byte, b'\'']) => {
                quotes::character(self.bytes, self.at + 1)
            }
            (b'r' | b'b' | b'c', L::Rust) => self.raw_rust(),
            (b'R', L::C) if self.follows(b"R\"") => self.tried(quotes::cpp_raw),
            (b'#', L::Swift) if self.follows(b"#\"") || self.follows(b"##\"") => {
                self.tried(quotes::hashed)
            }
            (b'"', L::Rust | L::Php) => self.tried(|bytes, at| quotes::escaped(bytes, at, b'"')),
            (b'"', L::Kotlin | L::Swift) => {
                let mark = &TRIPLE[..if self.follows(TRIPLE) { 3 } else { 1 }];
                self.tried(|bytes, at| quotes::template(bytes, at, mark, language))
                    .or_else(|| self.lines.end(self.bytes, self.at, b'"'))
            }
            (b'"', L::Java | L::CSharp) if self.follows(TRIPLE) => {
                self.tried(|bytes, at| quotes::until(bytes, at + 3, TRIPLE))
            }
            (b'@' | b'$', L::CSharp) => {
                let rest = &self.bytes[self.at..];
                let leads = rest.iter().take(2);
                let lead = leads.take_while(|byte| b"@$".contains(byte)).count();
                let (marks, rest) = rest.split_at(lead);
                if !rest.starts_with(b"\"") {
                    None
                } else if rest.starts_with(TRIPLE) {
                    self.tried(|bytes, at| quotes::until(bytes, at + lead + 3, TRIPLE))
                } else if marks.contains(&b'@') {
                    self.tried(|bytes, at| quotes::doubled(bytes, at + lead, b'"'))
                } else {
                    self.lines.end(self.bytes, self.at + lead, b'"')
                }
            }
            (b'"', _) => self.lines.end(self.bytes, self.at, b'"'),
            (b'\'', L::Php) => self.tried(|bytes, at| quotes::escaped(bytes, at, b'\'')),
            (b'\'', L::Script) => self.lines.end(self.bytes, self.at, b'\''),
            (b'\'', _) => quotes::character(self.bytes, self.at),
            (b'`', L::Go) => self.tried(|bytes, at| quotes::until(bytes, at + 1, b"`")),
            (b'`', L::Script) => {
                self.tried(|bytes, at| quotes::template(bytes, at, b"`", language))
            }
            (b'/', L::Script) if !self.after_value && !self.after_less && self.slips > 0 => {
                let end = quotes::expression(self.bytes, self.at);
                self.slips -= u32::from(end.is_none());
                end
            }
            (b'<', L::Php) if self.follows(b"<<<") => self.tried(quotes::php_heredoc),
            _ => None,
        }
    }

    fn raw_rust(&mut self) -> Option<usize> {
        let rest = self.bytes[self.at..].iter().take(4);
        let mut rest = rest.skip_while(|byte| b"brc".contains(byte));
        let is_raw = matches!(rest.next(), Some(b'"' | b'#'));
        let third = self.bytes.get(self.at + 2);
        let named = self.follows(b"r#") && third.is_some_and(u8::is_ascii_alphabetic);
        if !is_raw || named {
            return None;
        }
        if self.follows(b"b\"") || self.follows(b"c\"") {
            return self.tried(|bytes, at| quotes::escaped(bytes, at + 1, b'"'));
        }
        self.tried(quotes::rust_raw)
    }

    fn tried(&mut self, end: impl FnOnce(&'a [u8], usize) -> Option<usize>) -> Option<usize> {
        if self.tries == 0 {
            return None;
        }
        let found = end(self.bytes, self.at);
        if found.is_none() {
            self.tries -= 1;
        }
        found
    }

    fn follows(&self, what: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(what)
    }

    fn begins_word(&self, byte: u8) -> bool {
        let next = self.bytes.get(self.at + 1).copied().unwrap_or(b' ');
        match byte {
            b'_' | 0x80.. => true,
            b'$' => matches!(self.language, L::Php | L::Script | L::Java),
            b'#' => self.language == L::Script && (next.is_ascii_alphabetic() || next == b'_'),
            b'`' => matches!(self.language, L::Kotlin | L::Swift),
            _ => byte.is_ascii_alphabetic(),
        }
    }

    fn word_end(&mut self, from: usize) -> usize {
        if self.bytes[from - 1] == b'`' {
            return self.lines.end(self.bytes, from - 1, b'`').unwrap_or(from);
        }
        let is_raw = self.language == L::Rust && self.follows(b"r#");
        let from = from + usize::from(is_raw);
        let dollar = matches!(self.language, L::Script | L::Java);
        let rest = &self.bytes[from..];
        let continues =
            |byte: &&u8| quotes::is_name_byte(byte) || **byte >= 0x80 || (dollar && **byte == b'$');
        from + rest.iter().take_while(continues).count()
    }

    fn number_end(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(&byte) = self.bytes.get(at) {
            let next = self.bytes.get(at + 1).copied().unwrap_or(b' ');
            let joins = match byte {
                b'.' => next.is_ascii_digit(),
                b'\'' => self.language == L::C && next.is_ascii_alphanumeric(),
                _ => quotes::is_name_byte(&byte),
            };
            if !joins {
                break;
            }
            at += 1;
        }
        at
    }

    fn skip_line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr(b'\n', rest).unwrap_or(rest.len());
    }

    /// Skips the text outside of `<?php … ?>`.
    fn skip_page(&mut self) {
        let rest = &self.bytes[self.at..];
        let end = memchr::memmem::find(rest, b"<?").map_or(rest.len(), |at| at + 2);
        self.is_line_start = true;
        self.at += end;
        for lead in ["php", "="] {
            if self.follows(lead.as_bytes()) {
                self.at += lead.len();
            }
        }
    }

    fn directive(&mut self) -> Token<'a> {
        let mut end = self.at;
        loop {
            let rest = &self.bytes[end..];
            let line = memchr(b'\n', rest).unwrap_or(rest.len());
            let continues = rest[..line].trim_ascii_end().ends_with(b"\\") && line < rest.len();
            end += line;
            if !continues {
                break;
            }
            end += 1;
        }
        self.token(TokenKind::Directive, end)
    }
}
