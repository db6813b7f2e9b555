//! Scans languages with braces: tracks open blocks and what their statements define.
//!
//! **Invariant:** each piece is visited a bounded number of times, and [`MAX_OPEN`] bounds the
//! state of open blocks.

use super::{
    SymbolKind,
    collect::{Collector, Definition, Language},
    grammar::{self, Opening, Role},
    lex::{Lexer, Token, TokenKind},
    quotes::is_name_byte,
};

/// Maximum nesting of blocks that is tracked.
const MAX_OPEN: usize = 256;

pub(super) fn scan<'a>(text: &'a str, found: &mut Collector<'a>) {
    let mut lexer = Lexer::new(found.language, text);
    let mut blocks = BlockScanner {
        language: found.language,
        found,
        head: Head::default(),
        open: Vec::new(),
        too_deep: 0,
        conditions: Vec::new(),
        passing: 0,
        end: 0,
    };
    while let Some(token) = lexer.next() {
        if blocks.found.is_full() {
            break;
        }
        blocks.take(token);
        blocks.end = token.end().saturating_sub(1);
    }
    blocks.end_statement();
    blocks.close_all();
}

struct Block<'a> {
    role: Role<'a>,
    symbol: Option<usize>,
    rest: Option<Head<'a>>,
    /// Whether `)` ends the block.
    is_group: bool,
}

struct BlockScanner<'a, 'f> {
    language: Language,
    found: &'f mut Collector<'a>,
    head: Head<'a>,
    open: Vec<Block<'a>>,
    too_deep: usize,
    /// Number of open blocks at each `#if`.
    conditions: Vec<usize>,
    /// Depth of `#if` within skipped code.
    passing: usize,
    end: usize,
}

impl<'a> BlockScanner<'a, '_> {
    fn take(&mut self, token: Token<'a>) {
        if token.kind == TokenKind::Directive {
            self.directive(token);
            return;
        }
        if self.passing > 0 {
            return;
        }
        if self.too_deep > 0 {
            match (token.kind, token.text) {
                (TokenKind::Sign, "{") => self.too_deep += 1,
                (TokenKind::Sign, "}") => self.too_deep -= 1,
                _ => {}
            }
            return;
        }
        if token.is_unindented && !self.open.is_empty() && starts_statement(self.language, &token) {
            self.end_statement();
            self.close_all();
        } else if token.is_line_start
            && self.head.nest == 0
            && grammar::ends_statement(self.language, &self.head, &token)
        {
            self.end_statement();
        }
        match (token.kind, token.text) {
            (TokenKind::Sign, "{") => self.open(token),
            (TokenKind::Sign, "}") => self.close(token),
            (TokenKind::Sign, ";") if self.head.nest == 0 => self.end_statement(),
            (TokenKind::Sign, "(") if self.head.nest == 0 => {
                match grammar::group(self.language, &self.head, self.place()) {
                    Some(role) => {
                        self.head.clear();
                        self.push(Block {
                            role,
                            symbol: None,
                            rest: None,
                            is_group: true,
                        });
                    }
                    None => self.head.push(token),
                }
            }
            (TokenKind::Sign, ")")
                if self.head.nest == 0 && self.open.last().is_some_and(|block| block.is_group) =>
            {
                self.end_statement();
                self.pop(token.at);
            }
            _ => self.head.push(token),
        }
    }

    fn place(&self) -> Role<'a> {
        self.open.last().map_or(Role::File, |block| block.role)
    }

    fn open(&mut self, token: Token<'a>) {
        let opening = if self.head.nest > 0 {
            let calls = (self.head.last).is_some_and(|last| last.is_one_of("=> )"));
            Opening::Part(if calls { Role::Function } else { Role::Other })
        } else {
            grammar::opening(&self.head.top(self.language, self.place()))
        };
        let (role, symbol, continues) = match opening {
            Opening::Body(definition, role) => (role, self.add(definition, token.at), false),
            Opening::Block(role) => (role, None, false),
            Opening::Part(role) => (role, None, true),
        };
        let rest = continues.then_some(std::mem::take(&mut self.head));
        self.push(Block {
            role,
            symbol,
            rest,
            is_group: false,
        });
    }

    fn push(&mut self, block: Block<'a>) {
        if self.open.len() < MAX_OPEN {
            self.open.push(block);
        } else {
            self.too_deep += 1;
        }
    }

    fn close(&mut self, token: Token<'a>) {
        self.end_statement();
        while self.open.last().is_some_and(|block| block.is_group) {
            self.pop(token.at);
        }
        if self.open.is_empty() {
            return;
        }
        self.pop(token.at);
        if !self.head.is_empty() {
            // The whole block is a piece of the enclosing statement.
            self.head.push(token);
        }
    }

    fn pop(&mut self, end: usize) {
        let Some(block) = self.open.pop() else { return };
        self.found.end(block.symbol, end);
        self.head = block.rest.unwrap_or_default();
    }

    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.pop(self.end);
        }
        self.head.clear();
        self.too_deep = 0;
    }

    fn end_statement(&mut self) {
        if !self.head.is_empty()
            && let Some(found) = grammar::ended(&self.head.top(self.language, self.place()))
        {
            self.add(found, self.end);
        }
        self.head.clear();
    }

    fn add(&mut self, definition: Definition<'a>, end: usize) -> Option<usize> {
        let start = self.head.start.unwrap_or(definition.at);
        self.found.add(definition, start, end)
    }

    /// Handles `#define`, and skips the second part of `#if … #else …` if the first has opened
    /// blocks that it would open again.
    fn directive(&mut self, token: Token<'a>) {
        let line = token.text.trim_start_matches('#').trim_start();
        let (word, rest) = line.split_at(line.bytes().take_while(u8::is_ascii_alphabetic).count());
        // Whether blocks were opened since the last `#if`. The `#else` of an `#if 0` counts.
        let has_opened = self.conditions.last().map(|open| *open != self.open.len());
        match word {
            "if" | "ifdef" | "ifndef" if self.passing > 0 => self.passing += 1,
            "if" | "ifdef" | "ifndef" => {
                if self.conditions.len() < MAX_OPEN {
                    self.conditions.push(self.open.len());
                }
                if word == "if" && rest.trim() == "0" {
                    self.passing = 1;
                }
            }
            "else" | "elif" if self.passing == 1 && has_opened == Some(false) => self.passing = 0,
            "else" | "elif" if self.passing == 0 && has_opened == Some(true) => self.passing = 1,
            "endif" if self.passing > 1 => self.passing -= 1,
            "endif" => {
                self.passing = 0;
                self.conditions.pop();
            }
            "define" if self.passing == 0 && self.language == Language::C => {
                let name = rest.trim_start();
                let length = name.bytes().take_while(is_name_byte).count();
                let at = token.end() - name.len();
                if let Some(name) = name.get(..length) {
                    let definition = Definition::new(SymbolKind::Macro, name, at);
                    self.found.add(definition, token.at, token.end() - 1);
                }
            }
            _ => {}
        }
    }
}

/// Whether a token at the margin begins a top-level definition despite open blocks, so that broken
/// or misread code affects nothing after it.
fn starts_statement(language: Language, token: &Token<'_>) -> bool {
    let words = match language {
        Language::Rust => "fn pub impl struct enum trait mod use",
        Language::Go => "func type package import",
        Language::Script => "export import function class interface namespace",
        _ => return false,
    };
    token.is_word() && token.is_one_of(words)
}

// The head of a statement: everything before its `{` or `;`.

/// Maximum number of pieces kept of a statement; definitions need fewer.
const MAX_PIECES: usize = 192;
/// Maximum number of pieces kept inside brackets, because attributes can be long.
const MAX_INSIDE: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) pieces: Vec<Token<'a>>,
    pub(super) nest: u32,
    inside: usize,
    start: Option<usize>,
    pub(super) last: Option<Token<'a>>,
}

impl<'a> Head<'a> {
    pub(super) fn push(&mut self, token: Token<'a>) {
        if token.kind == TokenKind::Sign && matches!(token.text, ")" | "]") {
            self.nest = self.nest.saturating_sub(1);
        }
        self.last = Some(token);
        self.start.get_or_insert(token.at);
        let nest = self.nest;
        self.inside = if nest == 0 { 0 } else { self.inside + 1 };
        if self.pieces.len() < MAX_PIECES && self.inside <= MAX_INSIDE {
            self.pieces.push(Token { nest, ..token });
        }
        if token.kind == TokenKind::Sign && matches!(token.text, "(" | "[") {
            self.nest += 1;
        } else if nest == 0 && token.is("]") && self.is_attribute() {
            // No definition needs attributes, of which there can be many.
            self.pieces.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Whether the pieces are `#[…]` or `[…]`.
    fn is_attribute(&self) -> bool {
        let mut pieces = self.pieces.iter().map(|piece| piece.text);
        let first = pieces.next();
        first == Some("[") || first == Some("#") && pieces.next() == Some("[")
    }

    pub(super) fn top(&self, language: Language, place: Role<'a>) -> Top<'a, '_> {
        let outer = self.pieces.iter().filter(|piece| piece.nest == 0);
        Top {
            language,
            place,
            head: self,
            tokens: outer.copied().collect(),
        }
    }

    /// The tokens directly inside the first group that `opens`.
    pub(super) fn inside(
        &self,
        opens: impl Fn(&Token<'a>) -> bool,
    ) -> impl Iterator<Item = Token<'a>> {
        let from = self.pieces.iter().copied();
        let from = from.skip_while(move |piece| !opens(piece));
        let inside = from.skip(1).take_while(|piece| piece.nest > 0);
        inside.filter(|piece| piece.nest == 1)
    }
}

/// A statement's head, with what encloses it and its tokens outside of brackets.
#[derive(Debug)]
pub(super) struct Top<'a, 'h> {
    pub(super) language: Language,
    pub(super) place: Role<'a>,
    pub(super) head: &'h Head<'a>,
    pub(super) tokens: Vec<Token<'a>>,
}

impl<'a> Top<'a, '_> {
    pub(super) fn get(&self, at: usize) -> Option<Token<'a>> {
        self.tokens.get(at).copied()
    }

    pub(super) fn is(&self, at: usize, text: &str) -> bool {
        self.get(at).is_some_and(|token| token.is(text))
    }

    pub(super) fn is_one_of(&self, at: usize, words: &str) -> bool {
        self.get(at).is_some_and(|token| token.is_one_of(words))
    }

    pub(super) fn word(&self, at: usize) -> Option<Token<'a>> {
        self.get(at).filter(Token::is_word)
    }

    pub(super) fn has(&self, text: &str) -> bool {
        self.tokens.iter().any(|token| token.is(text))
    }

    pub(super) fn find(&self, from: usize, text: &str) -> Option<usize> {
        (from..self.tokens.len()).find(|&at| self.is(at, text))
    }

    /// The index after `<…>` if it begins at `at`, else `at`.
    pub(super) fn past_angles(&self, at: usize) -> usize {
        if !self.is(at, "<") {
            return at;
        }
        let mut depth = 0_usize;
        for (next, token) in self.tokens.iter().enumerate().skip(at) {
            match token.text {
                "<" => depth += 1,
                ">" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return next + 1;
            }
        }
        self.tokens.len()
    }

    /// The index of the `<` that the `>` before `end` closes, or else `end`.
    pub(super) fn angles_before(&self, from: usize, end: usize) -> usize {
        let is_closed = end > from && self.is(end - 1, ">");
        let opens = |&at: &usize| self.is(at, "<") && self.past_angles(at) == end;
        let opening = (from..end).rev().filter(|_| is_closed).find(opens);
        opening.unwrap_or(end)
    }

    /// Whether a `<` is unclosed.
    pub(super) fn has_open_angle(&self) -> bool {
        let tokens = self.tokens.iter();
        let open = tokens.fold(0_usize, |open, token| match token.text {
            "<" => open + 1,
            ">" => open.saturating_sub(1),
            _ => open,
        });
        open > 0
    }

    /// The index after `(…)` or `[…]` if it begins at `at`, else `at`.
    pub(super) fn past_group(&self, at: usize) -> usize {
        // The top level omits what is inside.
        if self.is_one_of(at, "( [") && self.is_one_of(at + 1, ") ]") {
            at + 2
        } else {
            at
        }
    }

    /// The index after attributes, annotations and these modifiers.
    pub(super) fn past_prelude(&self, modifiers: &str) -> usize {
        const SCOPES: &str = "pub private public internal fileprivate unowned nonisolated";
        let mut at = 0;
        loop {
            let next = match self.get(at).map_or("", |token| token.text) {
                "#" if self.is(at + 1, "[") => self.past_group(at + 1),
                "#" if self.is(at + 1, "!") && self.is(at + 2, "[") => self.past_group(at + 2),
                "@" if !self.is(at + 1, "interface") => self.past_annotation(at),
                "," => at + 1,
                "[" => self.past_group(at),
                _ if !self.is_one_of(at, modifiers) => at,
                _ if self.is_one_of(at, SCOPES) => self.past_group(at + 1),
                _ => at + 1,
            };
            if next == at {
                return at;
            }
            at = next;
        }
    }

    /// Skips `@a.b.C(…)` and `@get:C`.
    fn past_annotation(&self, at: usize) -> usize {
        let mut next = at + 1;
        while self.word(next).is_some() {
            next += 1;
            if self.is_one_of(next, ". :") && self.word(next + 1).is_some() {
                next += 1;
            } else {
                break;
            }
        }
        self.past_group(next)
    }

    /// The last word of a path that begins here (`a::b::C<…>`, `&'a mut C`, `a.b.C`), without
    /// generics.
    pub(super) fn path_end(&self, from: usize) -> Option<Token<'a>> {
        let mut at = from;
        let mut last = None;
        while let Some(token) = self.get(at) {
            const JOINTS: &str = "& * dyn mut const ! :: . ?";
            match token.text {
                _ if token.is_one_of(JOINTS) => at += 1,
                "<" => at = self.past_angles(at),
                _ if token.is_word() => {
                    if at > from && !self.is_one_of(at - 1, JOINTS) {
                        break;
                    }
                    last = Some(token);
                    at += 1;
                }
                _ => break,
            }
        }
        last
    }
}
