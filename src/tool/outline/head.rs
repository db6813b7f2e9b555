//! The beginning of a statement: what stands before its `{` or `;`, and ways to read it.

use super::lex::{Kind, Token};

/// Most pieces that are kept of a statement; definitions say what they are in fewer.
const MAX_PIECES: usize = 192;
/// Most pieces that are kept of what stands in brackets: attributes may be long.
const MAX_INSIDE: usize = 32;

/// A piece and how many round and square brackets it stands in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) token: Token<'a>,
    pub(super) nest: u32,
}

/// What there is of a statement so far.
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) pieces: Vec<Piece<'a>>,
    pub(super) nest: u32,
    /// How many pieces of the brackets that are open are kept.
    inside: usize,
    /// Where it begins.
    start: Option<usize>,
    /// The last piece, kept or not.
    pub(super) last: Option<Token<'a>>,
}

impl<'a> Head<'a> {
    pub(super) fn push(&mut self, token: Token<'a>) {
        if token.kind == Kind::Sign && matches!(token.text, ")" | "]") {
            self.nest = self.nest.saturating_sub(1);
        }
        self.last = Some(token);
        self.start.get_or_insert(token.at);
        let nest = self.nest;
        self.inside = if nest == 0 { 0 } else { self.inside + 1 };
        if self.pieces.len() < MAX_PIECES && self.inside <= MAX_INSIDE {
            self.pieces.push(Piece { token, nest });
        }
        if token.kind == Kind::Sign && matches!(token.text, "(" | "[") {
            self.nest += 1;
        } else if nest == 0 && token.is("]") && self.is_attribute() {
            // There may be many of them, and nothing needs them.
            self.pieces.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.nest = 0;
        self.inside = 0;
        self.start = None;
        self.last = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Where it begins.
    pub(super) fn start(&self) -> Option<usize> {
        self.start
    }

    /// Whether what is kept is `#[…]` or `[…]`.
    fn is_attribute(&self) -> bool {
        let mut pieces = self.pieces.iter().map(|piece| piece.token);
        let first = pieces.next();
        first.is_some_and(|first| {
            first.is("[") || (first.is("#") && pieces.next().is_some_and(|next| next.is("[")))
        })
    }

    /// What stands in no brackets; the brackets themselves do.
    pub(super) fn top(&self) -> Top<'a> {
        let outer = self.pieces.iter().filter(|piece| piece.nest == 0);
        Top(outer.map(|piece| piece.token).collect())
    }

    /// The words directly in the round brackets that open first.
    pub(super) fn first_group(&self) -> impl Iterator<Item = Token<'a>> {
        let from = self.pieces.iter().position(|piece| piece.token.is("("));
        let inside = self
            .pieces
            .iter()
            .skip(from.map_or(usize::MAX, |at| at + 1));
        inside
            .take_while(|piece| piece.nest > 0)
            .filter(|piece| piece.nest == 1)
            .map(|piece| piece.token)
    }
}

/// The pieces of a statement that stand in no brackets.
#[derive(Debug)]
pub(super) struct Top<'a>(pub(super) Vec<Token<'a>>);

impl<'a> Top<'a> {
    pub(super) fn get(&self, at: usize) -> Option<Token<'a>> {
        self.0.get(at).copied()
    }

    pub(super) fn is(&self, at: usize, text: &str) -> bool {
        self.get(at).is_some_and(|token| token.is(text))
    }

    pub(super) fn is_any(&self, at: usize, texts: &[&str]) -> bool {
        self.get(at)
            .is_some_and(|token| token.kind != Kind::Text && texts.contains(&token.text))
    }

    pub(super) fn word(&self, at: usize) -> Option<Token<'a>> {
        self.get(at).filter(Token::is_word)
    }

    pub(super) fn has(&self, text: &str) -> bool {
        self.0.iter().any(|token| token.is(text))
    }

    pub(super) fn find(&self, from: usize, text: &str) -> Option<usize> {
        (from..self.0.len()).find(|&at| self.is(at, text))
    }

    /// The place after `<…>`, if that begins here, else this one.
    pub(super) fn past_angles(&self, at: usize) -> usize {
        if !self.is(at, "<") {
            return at;
        }
        let mut depth = 0_usize;
        for (next, token) in self.0.iter().enumerate().skip(at) {
            match token.text {
                "<" => depth += 1,
                ">" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return next + 1;
            }
        }
        self.0.len()
    }

    /// Whether a `<` has no `>` yet.
    pub(super) fn has_open_angle(&self) -> bool {
        let open = self.0.iter().fold(0_usize, |open, token| {
            if token.is("<") {
                open + 1
            } else if token.is(">") {
                open.saturating_sub(1)
            } else {
                open
            }
        });
        open > 0
    }

    /// The place after `(…)` or `[…]`, if that begins here, else this one.
    pub(super) fn past_group(&self, at: usize) -> usize {
        // What is in it does not stand here.
        if self.is_any(at, &["(", "["]) && self.is_any(at + 1, &[")", "]"]) {
            at + 2
        } else {
            at
        }
    }

    /// The place after attributes, annotations and words that only qualify.
    pub(super) fn past_prelude(&self, modifiers: &[&str]) -> usize {
        let mut at = 0;
        loop {
            let before = at;
            if self.is(at, "#") {
                let bracket = if self.is(at + 1, "!") { at + 2 } else { at + 1 };
                if self.is(bracket, "[") {
                    at = self.past_group(bracket);
                }
            } else if self.is(at, "@") && !self.is(at + 1, "interface") {
                at = self.past_annotation(at);
            } else if self.is(at, "[") || self.is(at, ",") {
                at = if self.is(at, ",") {
                    at + 1
                } else {
                    self.past_group(at)
                };
            } else if self.is_any(at, modifiers) {
                at += 1;
                if self.is_any(
                    at - 1,
                    &[
                        "pub",
                        "private",
                        "public",
                        "internal",
                        "fileprivate",
                        "unowned",
                        "nonisolated",
                    ],
                ) {
                    at = self.past_group(at);
                }
            }
            if at == before {
                return at;
            }
        }
    }

    /// `@a.b.C(…)`, and `@get:C`.
    fn past_annotation(&self, at: usize) -> usize {
        let mut next = at + 1;
        while self.word(next).is_some() {
            next += 1;
            if self.is_any(next, &[".", ":"]) && self.word(next + 1).is_some() {
                next += 1;
            } else {
                break;
            }
        }
        self.past_group(next)
    }

    /// The last word of a path that begins here (`a::b::C<…>`, `&'a mut C`, `a.b.C`), generics aside.
    pub(super) fn path_end(&self, from: usize) -> Option<Token<'a>> {
        let mut at = from;
        let mut last = None;
        while let Some(token) = self.get(at) {
            match token.text {
                "&" | "*" | "dyn" | "mut" | "const" | "!" | "?" => at += 1,
                "::" | "." => at += 1,
                "<" => at = self.past_angles(at),
                _ if token.is_word() => {
                    let joined = at == from
                        || self.is_any(
                            at - 1,
                            &["&", "*", "dyn", "mut", "const", "!", "::", ".", "?"],
                        );
                    if !joined {
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
