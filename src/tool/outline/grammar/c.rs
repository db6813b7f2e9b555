//! C and C++, where a function is a name before parentheses.

use super::{
    BLOCK, Definition, Opening, PART, Role, SymbolKind, Top, body, constant_if, define, define_in,
};
use crate::tool::outline::lex::{Token, TokenKind};

const MODIFIERS: &str = "static inline virtual explicit friend constexpr consteval extern export";
/// Words before parentheses that are no function names.
const NO_NAMES: &str = "if for while switch catch return sizeof do else decltype alignas \
    __attribute__ __declspec noexcept throw requires asm defined static_assert _Static_assert";
/// Words that can follow a function's parameters.
const TRAILS: &str =
    "const noexcept override final throw volatile requires __attribute__ mutable try asm";

pub(super) fn opening<'a>(top: &Top<'a, '_>) -> Opening<'a> {
    let at = start(top);
    if top.is(at, "namespace") {
        let module = top.define_path(SymbolKind::Module, at + 1);
        return module.map_or(Opening::Block(Role::Module), body);
    }
    // `extern "C" {` is a block at file level.
    if top.get(at).is_some_and(|name| name.kind == TokenKind::Text) {
        return Opening::Block(top.place);
    }
    if top.is(at, "typedef") {
        return PART;
    }
    if matches!(top.place, Role::Function) {
        let local = type_definition(top, at).filter(|_| !top.has("("));
        return local.map_or(Opening::Block(Role::Function), body);
    }
    if let Some((found, after)) = function(top, at) {
        // In `Foo::Foo() : a{1}, b{2} {`, the members' braces come first.
        let in_members = top.is(after, ":") && top.tokens.last().is_some_and(Token::is_word);
        return if in_members { PART } else { body(found) };
    }
    if let Some(found) = macro_definition(top, at).filter(|_| top.place.is_open()) {
        return body(found);
    }
    match type_definition(top, at) {
        Some(found) => body(found),
        None if top.has("=") => PART,
        None if top.is_one_of(at, "struct union class") => Opening::Part(top.place),
        None if top.is(at, "enum") => PART,
        None => BLOCK,
    }
}

pub(super) fn ended<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    let at = start(top);
    if matches!(top.place, Role::Function | Role::Other | Role::Group(_)) {
        return None;
    }
    if top.is(at, "typedef") {
        return typedef(top);
    }
    if top.is(at, "using") {
        let alias = top.define(SymbolKind::Type, at + 1);
        return alias.filter(|_| top.is(at + 2, "="));
    }
    let value = top.find(at, "=");
    let is_declared = |at| {
        let pure = |token: Token<'_>| token.kind == TokenKind::Number;
        top.is_one_of(at + 1, "default delete") || top.get(at + 1).is_some_and(pure)
    };
    if let Some((found, _)) = function(top, at).filter(|_| value.is_none_or(is_declared)) {
        return Some(found);
    }
    let is_constant = top.has("constexpr") || top.has("const");
    let end = value.filter(|_| top.place.is_open() || is_constant)?;
    let mut name = end.checked_sub(1)?;
    while name >= 2 && top.is(name, "]") {
        name -= 2;
    }
    let found = top.define(constant_if(is_constant), name);
    found.filter(|_| name > 0)
}

fn start(top: &Top<'_, '_>) -> usize {
    let mut at = 0;
    loop {
        let next = match top.get(at).map_or("", |token| token.text) {
            "template" => top.past_angles(at + 1),
            "[" => top.past_group(at),
            "__attribute__" | "__declspec" | "alignas" => top.past_group(at + 1),
            "public" | "private" | "protected" if top.is(at + 1, ":") => at + 2,
            _ if top.is_one_of(at, MODIFIERS) => at + 1,
            _ => return at,
        };
        if next == at {
            return at;
        }
        at = next;
    }
}

/// Matches `struct name`, `enum class name : int`, `class EXPORT name final : public base`.
fn type_definition<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    if !top.is_one_of(at, "struct class union enum") {
        return None;
    }
    let mut next = at + 1 + usize::from(top.is_one_of(at + 1, "class struct"));
    let mut name = None;
    while let Some(token) = top.get(next) {
        match token.text {
            ":" | "{" | "=" => break,
            "[" | "(" => next = top.past_group(next).max(next + 1),
            "<" => next = top.past_angles(next),
            "final" => next += 1,
            _ => {
                name = token.is_word().then_some(token).or(name);
                next += 1;
            }
        }
    }
    name.map(|name| define(SymbolKind::Type, name))
}

fn function<'a>(top: &Top<'a, '_>, from: usize) -> Option<(Definition<'a>, usize)> {
    let mut at = from;
    let mut found = None;
    while let Some(token) = top.get(at) {
        match token.text {
            "=" if !top.has_before("operator", at) => break,
            "<" if !top.is(at.wrapping_sub(1), "operator") => {
                at = top.past_angles(at);
                continue;
            }
            "(" => {
                if let Some(definition) = named(top, from, at) {
                    let after = top.past_group(at);
                    found = Some((definition, after));
                    // A macro on its own line is separate from what follows.
                    let alone = top.get(after).is_some_and(|next| {
                        next.is_line_start && next.is_word() && !next.is_one_of(TRAILS)
                    });
                    if !alone || top.find(after, "(").is_none() {
                        return found;
                    }
                }
                at = top.past_group(at).max(at + 1);
            }
            _ => at += 1,
        }
    }
    found
}

fn named<'a>(top: &Top<'a, '_>, from: usize, open: usize) -> Option<Definition<'a>> {
    let before = open.checked_sub(1).filter(|&at| at >= from)?;
    let mut nearest = (from..open).rev().take(4);
    let at = nearest.find(|&at| top.is(at, "operator")).unwrap_or(before);
    let name = top.word(at).filter(|name| !name.is_one_of(NO_NAMES))?;
    let inverse = at > from && top.is(at - 1, "~");
    let head = if inverse { at - 1 } else { at };
    let (owner, first) = owner(top, from, head);
    // A name alone is a call or a macro, unless it is a constructor.
    let is_typed = first > from || top.place == Role::Type(name.text) || owner.is_some() || inverse;
    is_typed.then(|| top.function(owner, name))
}

/// Macros that define a function: `TEST(Suite, Name) {`, `SYSCALL_DEFINE2(name, …) {`.
fn macro_definition<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let name = top.word(at)?;
    let is_call = top.is(at + 1, "(") && top.tokens.len() == at + 3;
    if !is_call || name.text.contains(char::is_lowercase) {
        return None;
    }
    let mut words = top.words_inside();
    let first = words.next().unwrap_or(name);
    let second = words.next().filter(|_| name.text.starts_with("TEST"));
    let (owner, name) = (second.map(|_| first), second.unwrap_or(first));
    Some(define_in(owner, SymbolKind::Function, name))
}

/// The last name of `A::B<T>::` before a name, and the start of the path.
fn owner<'a>(top: &Top<'a, '_>, from: usize, name: usize) -> (Option<Token<'a>>, usize) {
    let mut owner = None;
    let mut first = name;
    while first >= from + 2 && top.is(first - 1, "::") {
        let end = top.angles_before(from, first - 1);
        let at = end.saturating_sub(1).max(from);
        let Some(word) = top.word(at) else { break };
        owner = owner.or(Some(word));
        first = at;
    }
    (owner, first)
}

/// Matches `typedef … name;` and `typedef int (*name)(…);`.
fn typedef<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    let mut pairs = top.head.pieces.windows(2);
    let pointer = pairs
        .find(|two| two[0].is("*") && two[0].nest == 1 && two[1].is_word())
        .filter(|_| top.find(0, "(").is_some_and(|at| top.is(at + 2, "(")));
    let name = match pointer {
        Some(two) => two[1],
        None => *top.tokens.iter().rfind(|token| token.is_word())?,
    };
    Some(define(SymbolKind::Type, name))
}
