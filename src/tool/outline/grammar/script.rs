//! Definitions in JavaScript and TypeScript.

use super::{
    BLOCK, Definition, Opening, PART, Role, SymbolKind, Top, body, constant_if, define, define_in,
};
use crate::tool::outline::lex::{Token, TokenKind};

pub(super) const MODIFIERS: &str = "export default declare async abstract public private protected \
    static readonly override accessor";
/// Words before a block that only look like calls.
const CONTROL: &str = "if for while switch catch with function return super await";

pub(super) fn opening<'a>(top: &Top<'a, '_>) -> Opening<'a> {
    let at = top.past_prelude(MODIFIERS);
    let last = top.tokens.last();
    let follows = |words| last.is_some_and(|last| last.is_one_of(words));
    // In `function f(): {a: string} {`, the first brace is a type.
    let in_type = follows(": | & < , ? =");
    // In `pick<T extends {a: string}>() {`, the first brace is a bound.
    let bounds = follows("extends keyof");
    match definition(top, at, true) {
        Some(_) if in_type || bounds || top.has_open_angle() => PART,
        None if bounds && top.has_open_angle() => PART,
        Some(found) if found.is_value() => PART,
        Some(found) if found.kind == SymbolKind::Type && top.is(at, "type") => PART,
        Some(found) => body(found),
        None if follows("=> ) else try") => Opening::Block(Role::Function),
        None if last.is_some_and(|last| last.kind == TokenKind::Sign) => PART,
        None if follows("default return") => PART,
        None if top.is_one_of(at, "import export") || top.is(0, "export") => PART,
        // A static block in a class: `static {`.
        None => BLOCK,
    }
}

pub(super) fn ended<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    let at = top.past_prelude(MODIFIERS);
    definition(top, at, false)
}

fn definition<'a>(top: &Top<'a, '_>, at: usize, opens: bool) -> Option<Definition<'a>> {
    let word = top.get(at)?;
    let next = top.word(at + 1);
    let is_default = at > 0 && top.is(at - 1, "default");
    let default = || top.get(at.checked_sub(1)?).filter(|_| is_default);
    let or_default = |kind, name: Option<Token<'a>>| Some(define(kind, name.or_else(default)?));
    let named = |kind| next.map(|name| define(kind, name));
    match word.text {
        _ if word.kind == TokenKind::Text => None,
        "function" => {
            let at = if top.is(at + 1, "*") { at + 2 } else { at + 1 };
            or_default(top.place.function(), top.word(at))
        }
        "class" => or_default(SymbolKind::Type, next.filter(|name| !name.is("extends"))),
        "interface" if next.is_some() => named(SymbolKind::Interface),
        "enum" if next.is_some() => named(SymbolKind::Type),
        "type" if top.is(top.past_angles(at + 2), "=") => named(SymbolKind::Type),
        "namespace" | "module" if next.is_some() => top.define_path(SymbolKind::Module, at + 1),
        "const" if top.is(at + 1, "enum") => top.define(SymbolKind::Type, at + 2),
        "const" | "let" | "var" => variable(top, at),
        _ if is_default && top.has("=>") => or_default(SymbolKind::Function, None),
        _ => member(top, at, opens).or_else(|| assigned(top, at)),
    }
}

/// Matches `const name = …`, classified by its value.
fn variable<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let name = top.word(at + 1)?;
    let Some(equals) = equals(top, at) else {
        let is_plain = top.place.is_open() && top.is(0, "export");
        return is_plain.then(|| define(SymbolKind::Variable, name));
    };
    let kind = value(top, equals + 1).or_else(|| wrapped(top, equals + 1));
    let plain = || constant_if(top.is(at, "const"));
    let kind = kind.or_else(|| top.place.is_open().then(plain))?;
    Some(define(kind, name))
}

/// The `=` of an assignment (`=>` is one piece, `==` two).
fn equals(top: &Top<'_, '_>, from: usize) -> Option<usize> {
    let at = top.find(from, "=")?;
    // A merge conflict marker, `=======`, has nothing before it.
    let before = at.checked_sub(1)?;
    let compared = top.is(at + 1, "=") || top.is_one_of(before, "! < > = + -");
    (!compared || top.is(before, ">")).then_some(at)
}

fn value(top: &Top<'_, '_>, at: usize) -> Option<SymbolKind> {
    let at = if top.is(at, "async") { at + 1 } else { at };
    if top.is(at, "function") {
        return Some(SymbolKind::Function);
    }
    if top.is(at, "class") {
        return Some(SymbolKind::Type);
    }
    let after = top.past_angles(at);
    let after = match top.is(after, "(") {
        true => top.past_group(after),
        false => after + 1,
    };
    let is_arrow = top.is(after, "=>") || (top.is(after, ":") && top.find(after, "=>").is_some());
    is_arrow.then_some(SymbolKind::Function)
}

/// A function inside a call: `useCallback(() => …)`, `React.memo(function …)`.
fn wrapped(top: &Top<'_, '_>, at: usize) -> Option<SymbolKind> {
    let is_react = top.is(at, "React") && top.is(at + 1, ".");
    let at = at + 2 * usize::from(is_react);
    top.word(at)?;
    let open = top.get(top.past_angles(at + 1));
    let open = open.filter(|open| open.is("("))?;
    let mut inside = top.head.inside(|token| token.at == open.at);
    let mut next = || inside.next().map_or("", |token| token.text);
    let first = match next() {
        "async" => next(),
        other => other,
    };
    let is_function = first == "function"
        || (first == "(" && next() == ")" && matches!(next(), "=>" | ":"))
        || (first.starts_with(char::is_alphabetic) && next() == "=>");
    is_function.then_some(SymbolKind::Function)
}

/// Matches `name(…) {` and `name = (…) => {` in classes and objects, and `name(…): T;` in
/// interfaces.
fn member<'a>(top: &Top<'a, '_>, at: usize, opens: bool) -> Option<Definition<'a>> {
    let accessor = top.is_one_of(at, "get set") && top.word(at + 1).is_some();
    let at = at + usize::from(accessor || top.is(at, "*"));
    let name = top.word(at).filter(|name| !name.is_one_of(CONTROL))?;
    let after = if top.is(at + 1, "?") { at + 2 } else { at + 1 };
    let after = top.past_angles(after);
    let in_type = matches!(top.place, Role::Type(_));
    if top.is(after, "(") {
        let end = top.past_group(after);
        let is_signature = end == top.tokens.len() || top.is(end, ":");
        // Elsewhere only a body distinguishes it from a call.
        let opens = opens && (top.head.last.is_some_and(|last| last.is(")")) || top.is(end, ":"));
        let fits = in_type || (top.place == Role::Other && opens);
        return (is_signature && fits).then(|| define(SymbolKind::Method, name));
    }
    let gives = match top.get(after)?.text {
        "=" if in_type => Some(after),
        ":" if in_type => equals(top, after),
        ":" if top.place == Role::Other => Some(after),
        _ => None,
    }?;
    value(top, gives + 1).map(|_| define(SymbolKind::Method, name))
}

/// Matches `exports.name = function` and `Type.prototype.name = (…) => `.
fn assigned<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let equals = equals(top, at)?;
    let name = top.word(equals.checked_sub(1)?)?;
    let path = top.tokens.get(at..equals).filter(|path| path.len() >= 3)?;
    let mut pairs = path.chunks(2);
    let is_path = pairs.all(|pair| pair[0].is_word() && pair.get(1).is_none_or(|dot| dot.is(".")));
    let kind = value(top, equals + 1).filter(|_| is_path)?;
    let prototype = path.iter().position(|token| token.is("prototype"));
    let owner = prototype.and_then(|at| path.get(at.checked_sub(2)?).copied());
    let kind = owner.map_or(kind, |_| SymbolKind::Method);
    Some(define_in(owner, kind, name))
}
