//! Definitions in Java and C#.

use super::{Definition, Opening, Role, SymbolKind, Top, body, define, has_before};
use crate::tool::outline::lex::Token;

const MODIFIERS: &str = "public private protected internal static final abstract sealed virtual \
    override async extern unsafe partial readonly new synchronized native default transient \
    volatile strictfp non required file ref";
/// Words before a block that only look like methods.
const CONTROL: &str = "if for foreach while switch catch synchronized lock using fixed try return \
    throw new else do when";

pub(super) fn opening<'a>(top: &Top<'a>, place: Role<'a>) -> Opening<'a> {
    let at = top.past_prelude(MODIFIERS);
    if let Some(found) = type_definition(top, at).or_else(|| method(top, at, place)) {
        return body(found);
    }
    if top.has("=") {
        return Opening::Part(Role::Other);
    }
    // A property of C#, which ends with its block.
    let name = top.0.len().checked_sub(1).filter(|&last| last > at);
    match name.and_then(|last| top.word(last)) {
        Some(name) if matches!(place, Role::Type(_)) && !top.has("(") => {
            body(define(SymbolKind::Variable, name))
        }
        _ => Opening::Block(Role::Other),
    }
}

pub(super) fn ended<'a>(top: &Top<'a>, place: Role<'a>) -> Option<Definition<'a>> {
    let at = top.past_prelude(MODIFIERS);
    if let Some(found) = type_definition(top, at) {
        return Some(found);
    }
    if !matches!(place, Role::Type(_)) {
        return None;
    }
    let arrow = top.find(at, "=>");
    let equals = top
        .find(at, "=")
        .filter(|&equals| arrow.is_none_or(|arrow| equals < arrow));
    if equals.is_none()
        && let Some(found) = method(top, at, place)
    {
        return Some(found);
    }
    // A property of C#.
    if let Some(arrow) = arrow.filter(|_| equals.is_none()) {
        let name = top
            .word(arrow.checked_sub(1)?)
            .filter(|_| arrow >= at + 2)?;
        return Some(define(SymbolKind::Variable, name));
    }
    let is_constant = top.is(at, "const")
        || (has_before(top, "static", at)
            && (has_before(top, "final", at) || has_before(top, "readonly", at)));
    let end = equals.filter(|_| is_constant)?;
    top.define(SymbolKind::Constant, end.checked_sub(1)?)
}

fn type_definition<'a>(top: &Top<'a>, at: usize) -> Option<Definition<'a>> {
    let at = if top.is(at, "@") { at + 1 } else { at };
    let name = top.word(at + 1);
    let kind = match top.get(at)?.text {
        "class" | "enum" | "struct" => SymbolKind::Type,
        // `record struct Point(…)`; a method may also be called `record`.
        "record" if name.is_some_and(|name| matches!(name.text, "class" | "struct")) => {
            return top.define(SymbolKind::Type, at + 2);
        }
        "record"
            if top.is_one_of(top.past_angles(at + 2), "( { : ;") || top.get(at + 2).is_none() =>
        {
            SymbolKind::Type
        }
        "delegate" => {
            let end = top.angles_before(at, top.find(at, "(")?);
            return top.define(SymbolKind::Type, end - 1);
        }
        "interface" => SymbolKind::Interface,
        "namespace" => return top.define_path(SymbolKind::Module, at + 1),
        _ => return None,
    };
    name.map(|name| define(kind, name))
}

/// Matches `Type name(…)`, `<T> List<T> name(…) throws E`, and `Name(…)` in `Name`.
fn method<'a>(top: &Top<'a>, at: usize, place: Role<'a>) -> Option<Definition<'a>> {
    let at = top.past_angles(at);
    // `T Parse<T>(…)`
    let end = top.angles_before(at, top.find(at, "(")?).checked_sub(1)?;
    let name = top
        .word(end)
        .filter(|name| end >= at && !name.is_one_of(CONTROL))?;
    let before = &top.0[at..end];
    let is_statement = before.iter().any(|token| {
        matches!(token.text, "=" | "." | "=>" | "->" | "::") && !is_dot_of_type(before)
            || token.is_one_of(CONTROL)
    });
    let constructs = matches!(place, Role::Type(of) if of == name.text);
    let is_typed = !before.is_empty();
    let fits = constructs || (is_typed && !is_statement && place != Role::File);
    fits.then(|| define(SymbolKind::Method, name))
}

/// Whether the dots belong to a qualified type: `java.util.List<String> names()`.
fn is_dot_of_type(before: &[Token<'_>]) -> bool {
    !before
        .iter()
        .any(|token| matches!(token.text, "=" | "=>" | "->"))
        && before.last().is_some_and(|last| !last.is("."))
}
