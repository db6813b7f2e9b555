//! Definitions in Go.

use super::{
    BLOCK, Definition, Head, Opening, PART, Role, SymbolKind, Top, body, define, define_in,
};
use crate::tool::outline::lex::{Token, TokenKind};

pub(super) fn opening<'a>(top: &Top<'a, '_>) -> Opening<'a> {
    match (definition(top), top.get(0).map(|first| first.text)) {
        (Some(found), _) if found.is_value() => PART,
        // A function's result may be `struct{}` or `interface{}`.
        (Some(_), Some("func")) if top.is_one_of(top.tokens.len() - 1, "struct interface") => PART,
        (Some(found), _) => body(found),
        (None, Some("func" | "if" | "for" | "switch" | "select" | "go" | "defer" | "else")) => {
            Opening::Block(Role::Function)
        }
        (None, _) if matches!(top.place, Role::Type(_)) => PART,
        (None, _) => BLOCK,
    }
}

/// Matches `const (`, `var (` and `type (`.
pub(super) fn group<'a>(head: &Head<'a>) -> Option<Role<'a>> {
    let [piece] = head.pieces.as_slice() else {
        return None;
    };
    match piece.text {
        "const" => Some(Role::Group(SymbolKind::Constant)),
        "var" => Some(Role::Group(SymbolKind::Variable)),
        "type" => Some(Role::Group(SymbolKind::Type)),
        "import" => Some(Role::Other),
        _ => None,
    }
}

pub(super) fn ends_statement(last: &Token<'_>) -> bool {
    last.kind != TokenKind::Sign || matches!(last.text, ")" | "]" | "}")
}

pub(super) fn definition<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    match (top.get(0)?.text, top.place) {
        ("func", Role::File) => function(top),
        ("type", Role::File | Role::Function) => type_definition(top, 1),
        ("const", Role::File) => top.define(SymbolKind::Constant, 1),
        ("var", Role::File) => top.define(SymbolKind::Variable, 1),
        (_, Role::Group(SymbolKind::Type)) => type_definition(top, 0),
        (name, Role::Group(kind)) if name != "_" => top.define(kind, 0),
        // A method of an interface; a struct's fields have no parenthesis after their names.
        (_, Role::Type(_)) if top.is(1, "(") => top.define(SymbolKind::Method, 0),
        _ => None,
    }
}

fn function<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    if let Some(name) = top.word(1) {
        return Some(define(SymbolKind::Function, name));
    }
    let name = top.word(top.past_group(1))?;
    let receiver = top.words_inside().last();
    Some(define_in(receiver, SymbolKind::Method, name))
}

fn type_definition<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let kind = match top.is(top.past_group(at + 1), "interface") {
        true => SymbolKind::Interface,
        false => SymbolKind::Type,
    };
    top.define(kind, at)
}
