//! Definitions in Java and C#.

use super::{BLOCK, Definition, Opening, PART, Role, SymbolKind, Top, body, define};
use crate::tool::outline::lex::Token;

const MODIFIERS: &str = "public private protected internal static final abstract sealed virtual \
    override async extern unsafe partial readonly new synchronized native default transient \
    volatile strictfp non required file ref";
/// Words before a block that only look like methods.
const CONTROL: &str = "if for foreach while switch catch synchronized lock using fixed try return \
    throw new else do when";

pub(super) fn opening<'a>(top: &Top<'a, '_>) -> Opening<'a> {
    let at = top.past_prelude(MODIFIERS);
    if let Some(found) = type_definition(top, at).or_else(|| method(top, at)) {
        return body(found);
    }
    if top.has("=") {
        return PART;
    }
    // A property of C#, which ends with its block.
    let last = top.tokens.len().checked_sub(1).filter(|&last| last > at);
    let name = last.filter(|_| matches!(top.place, Role::Type(_)) && !top.has("("));
    let property = name.and_then(|name| top.define(SymbolKind::Variable, name));
    property.map_or(BLOCK, body)
}

pub(super) fn ended<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    let at = top.past_prelude(MODIFIERS);
    if let Some(found) = type_definition(top, at) {
        return Some(found);
    }
    if !matches!(top.place, Role::Type(_)) {
        return None;
    }
    let arrow = top.find(at, "=>");
    let equals = top.find(at, "=");
    let Some(end) = equals.filter(|&equals| arrow.is_none_or(|arrow| equals < arrow)) else {
        // A property of C# has an arrow.
        let end = arrow.filter(|&arrow| arrow >= at + 2);
        let property = || top.define(SymbolKind::Variable, end? - 1);
        return method(top, at).or_else(property);
    };
    let is_final = top.has_before("final", at) || top.has_before("readonly", at);
    let is_constant = top.is(at, "const") || top.has_before("static", at) && is_final;
    let constant = top.define(SymbolKind::Constant, end.checked_sub(1)?);
    constant.filter(|_| is_constant)
}

fn type_definition<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let at = if top.is(at, "@") { at + 1 } else { at };
    let kind = match top.get(at)?.text {
        "class" | "enum" | "struct" => SymbolKind::Type,
        // `record struct Point(…)`; a method may also be called `record`.
        "record" if top.is_one_of(at + 1, "class struct") => {
            return top.define(SymbolKind::Type, at + 2);
        }
        "record" if top.get(at + 2).is_none() => SymbolKind::Type,
        "record" if top.is_one_of(top.past_angles(at + 2), "( { : ;") => SymbolKind::Type,
        "delegate" => {
            let end = top.angles_before(at, top.find(at, "(")?);
            return top.define(SymbolKind::Type, end - 1);
        }
        "interface" => SymbolKind::Interface,
        "namespace" => return top.define_path(SymbolKind::Module, at + 1),
        _ => return None,
    };
    top.define(kind, at + 1)
}

/// Matches `Type name(…)`, `<T> List<T> name(…) throws E`, and `Name(…)` in `Name`.
fn method<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let at = top.past_angles(at);
    // `T Parse<T>(…)`
    let end = top.angles_before(at, top.find(at, "(")?).checked_sub(1)?;
    let name = top.word(end).filter(|name| !name.is_one_of(CONTROL))?;
    let before = top.tokens.get(at..end)?;
    let is_statement = before.iter().any(|token| {
        matches!(token.text, "=" | "." | "=>" | "->" | "::") && !is_dot_of_type(before)
            || token.is_one_of(CONTROL)
    });
    let is_typed = !before.is_empty() && !is_statement && top.place != Role::File;
    let fits = is_typed || top.place == Role::Type(name.text);
    fits.then(|| define(SymbolKind::Method, name))
}

/// Whether the dots belong to a qualified type: `java.util.List<String> names()`.
fn is_dot_of_type(before: &[Token<'_>]) -> bool {
    let mut tokens = before.iter();
    !tokens.any(|token| matches!(token.text, "=" | "=>" | "->"))
        && before.last().is_some_and(|last| !last.is("."))
}
