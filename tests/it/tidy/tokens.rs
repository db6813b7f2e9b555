//! The tokens of a file, flat, each with what it stands in.
//!
//! They come from `proc_macro2`, so there are no comments among them and a string is one token. This
//! does not parse Rust: an item is what reaches from its attributes to the next `;` or `}`.

use proc_macro2::{Delimiter, LexError, Spacing, TokenStream, TokenTree};

/// When a piece of code is compiled at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gate {
    /// Always.
    Open,
    /// Only with the feature `testkit`, or with the dev-dependencies (benches, examples).
    TestKit,
    /// Only in tests.
    Test,
}

/// What a token is, as far as a rule wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ident,
    Literal,
    /// Punctuation, brackets included; `::` is one token.
    Mark,
}

/// A token and what it stands in.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) line: usize,
    pub(super) gate: Gate,
    /// How many inline modules (`mod name { … }`) are around it.
    pub(super) inline: usize,
}

impl Token {
    pub(super) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }
}

/// The tokens of `text`, which as a whole stands behind `gate`.
pub(super) fn read(text: &str, gate: Gate) -> Result<Vec<Token>, LexError> {
    let mut tokens = Vec::new();
    flatten(text.parse()?, gate, 0, &mut tokens);
    Ok(tokens)
}

fn flatten(stream: TokenStream, mut around: Gate, inline: usize, out: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut gate = around;
    for (at, tree) in trees.iter().enumerate() {
        if let Some((inner, found)) = gate_of_attribute(&trees[at..]) {
            gate = gate.max(found);
            if inner {
                around = gate; // `#![cfg(…)]` holds for all that follows.
            }
        }
        let start = tree.span().start().line;
        let mark = |text: &str, line| Token {
            kind: Kind::Mark,
            text: text.into(),
            line,
            gate,
            inline,
        };
        match tree {
            TokenTree::Ident(name) => {
                out.push(Token {
                    kind: Kind::Ident,
                    ..mark(&name.to_string(), start)
                });
            }
            TokenTree::Literal(value) => {
                out.push(Token {
                    kind: Kind::Literal,
                    ..mark(&value.to_string(), start)
                });
            }
            TokenTree::Punct(punct) => match (punct.as_char(), out.last_mut()) {
                (':', Some(last)) if last.text == ":" && follows_jointly(&trees, at) => {
                    last.text.push(':');
                }
                (char, _) => out.push(mark(&char.to_string(), start)),
            },
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::None => ("", ""),
                };
                let module = open == "{"
                    && at >= 2
                    && matches!(&trees[at - 2], TokenTree::Ident(key) if key == "mod");
                out.push(mark(open, start));
                flatten(group.stream(), gate, inline + usize::from(module), out);
                out.push(mark(close, group.span_close().start().line));
            }
        }
        if ends_item(tree) {
            gate = around;
        }
    }
}

fn follows_jointly(trees: &[TokenTree], at: usize) -> bool {
    at > 0
        && matches!(&trees[at - 1], TokenTree::Punct(before)
            if before.as_char() == ':' && before.spacing() == Spacing::Joint)
}

fn ends_item(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    }
}

/// The gate of `#[cfg(…)]` or `#![cfg(…)]` if `trees` start with one; true for the inner form.
fn gate_of_attribute(trees: &[TokenTree]) -> Option<(bool, Gate)> {
    if !is_mark(trees.first(), '#') {
        return None;
    }
    let inner = is_mark(trees.get(1), '!');
    let Some(TokenTree::Group(body)) = trees.get(1 + usize::from(inner)) else {
        return None;
    };
    let mut body = body.stream().into_iter();
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(condition))) =
        (body.next(), body.next())
    else {
        return None;
    };
    (name == "cfg").then(|| (inner, gate_of_condition(condition.stream())))
}

fn is_mark(tree: Option<&TokenTree>, char: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}

fn gate_of_condition(condition: TokenStream) -> Gate {
    let mut words = Vec::new();
    flatten(condition, Gate::Open, 0, &mut words);
    let has = |text: &str| words.iter().any(|word| word.text == text);
    if has("not") {
        Gate::Open // `not(test)` is production code; so is what we cannot read.
    } else if has("\"testkit\"") {
        Gate::TestKit
    } else if has("test") && !has("any") {
        Gate::Test
    } else {
        Gate::Open
    }
}

#[test]
fn words_in_comments_and_strings_are_no_tokens() {
    let tokens = read(
        "//! [`one`]\n/* two /* two */ */\nconst A: &str = r#\"three \" three\"#; // four\n",
        Gate::Open,
    )
    .unwrap();
    let names: Vec<&str> = tokens
        .iter()
        .filter(|token| token.kind == Kind::Ident)
        .map(|token| token.text.as_str())
        .collect();
    assert_eq!(names, ["doc", "const", "A", "str"]);
}
