//! Definitions in Rust.

use super::{BLOCK, Definition, Head, Opening, PART, Role, SymbolKind, Top, body, define_in};

const MODIFIERS: &str = "pub default async unsafe crate auto safe";

pub(super) fn opening<'a>(top: &Top<'a, '_>) -> Opening<'a> {
    let at = keyword(top);
    if top.is_one_of(at, "const static type let use") {
        return PART;
    }
    match definition(top, at) {
        Some(found) => body(found),
        None if top.is(at, "mod") => Opening::Block(Role::Module),
        // Items of a foreign block belong to the file.
        None if top.is(at, "extern") => Opening::Block(top.place),
        None => BLOCK,
    }
}

pub(super) fn ended<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    let at = keyword(top);
    // A module declaration without a body defines nothing here.
    let here = !top.is_one_of(at, "mod impl");
    here.then(|| definition(top, at)).flatten()
}

/// `cfg_if!(…)` at file level may contain items.
pub(super) fn group<'a>(head: &Head<'a>, place: Role<'a>) -> Option<Role<'a>> {
    let is_call = head.last.is_some_and(|last| last.is("!")) && head.pieces.len() <= 8;
    let is_macro = is_call && head.pieces.first().is_some_and(|piece| piece.is_word());
    (is_macro && matches!(place, Role::File | Role::Module | Role::Type(_))).then_some(place)
}

fn keyword(top: &Top<'_, '_>) -> usize {
    let mut at = top.past_prelude(MODIFIERS);
    loop {
        at = match top.get(at).map(|token| token.text) {
            Some("const") if top.is_one_of(at + 1, "fn unsafe async extern") => at + 1,
            Some("pub" | "async" | "unsafe" | "default" | "safe") => top.past_group(at + 1),
            Some("extern") if top.is(at + 1, "fn") => at + 1,
            Some("extern") if top.is(at + 2, "fn") => at + 2,
            _ => return at,
        };
    }
}

fn definition<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let kind = match top.get(at)?.text {
        "fn" => top.place.function(),
        "struct" | "enum" | "type" => SymbolKind::Type,
        "union" if top.word(at + 1).is_some() => SymbolKind::Type,
        "trait" => SymbolKind::Interface,
        "mod" => SymbolKind::Module,
        "macro" => SymbolKind::Macro,
        "macro_rules" if top.is(at + 1, "!") => {
            return top.define(SymbolKind::Macro, at + 2);
        }
        "const" | "static" => {
            let at = at + 1 + usize::from(top.is(at + 1, "mut"));
            let found = top.define(SymbolKind::Constant, at);
            return found.filter(|found| found.name != "_" && top.is(at + 1, ":"));
        }
        "impl" => return implementation(top, at + 1),
        _ => return None,
    };
    top.define(kind, at + 1)
}

/// Matches `impl<…> Trait<…> for Type<…> where …`: the type is its name, the trait its owner.
fn implementation<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let start = top.past_angles(at);
    let end = top.find(start, "where").unwrap_or(top.tokens.len());
    let of = (start..end).find(|&at| top.is(at, "for") && !top.is(at + 1, "<"));
    let owner = of.and_then(|_| top.path_end(start));
    let name = match of {
        Some(of) => top.path_end(of + 1).or(owner)?,
        None => top.path_end(start)?,
    };
    Some(define_in(owner, SymbolKind::Implementation, name))
}
