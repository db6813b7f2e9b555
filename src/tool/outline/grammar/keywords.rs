//! Kotlin, Swift and PHP, whose definitions begin with keywords.

use super::{Definition, Language, Opening, Role, SymbolKind, Top, body, define, function_of};

pub(super) const KOTLIN: &str = "public private protected internal open abstract final sealed data \
    inner enum annotation value inline override suspend operator infix tailrec external lateinit \
    expect actual const";
pub(super) const SWIFT: &str = "public private internal open fileprivate final override mutating \
    nonmutating static indirect required convenience lazy weak unowned dynamic optional \
    nonisolated prefix postfix infix package distributed";
const PHP: &str = "public private protected static abstract final readonly var";

pub(super) fn opening<'a>(language: Language, top: &Top<'a>, place: Role<'a>) -> Opening<'a> {
    let at = keyword(language, top);
    let assigned = top.find(at, "=").is_some_and(|_| language != Language::Php);
    if top.is_one_of(at, "val var let const") || (assigned && top.is(at, "fun")) {
        return Opening::Part(Role::Other);
    }
    match definition(language, top, at, place) {
        Some(found) => body(found),
        None => Opening::Block(Role::Other),
    }
}

pub(super) fn ended<'a>(
    language: Language,
    top: &Top<'a>,
    place: Role<'a>,
) -> Option<Definition<'a>> {
    let at = keyword(language, top);
    definition(language, top, at, place)
}

fn keyword(language: Language, top: &Top<'_>) -> usize {
    let modifiers = match language {
        Language::Kotlin => KOTLIN,
        Language::Swift => SWIFT,
        _ => PHP,
    };
    let at = top.past_prelude(modifiers);
    // `class func` is a function of the type, and `companion object` an object.
    let leads = (top.is(at, "class") && top.is_one_of(at + 1, "func var let"))
        || (top.is(at, "companion") && top.is(at + 1, "object"))
        || (top.is(at, "fun") && top.is(at + 1, "interface"));
    if leads { at + 1 } else { at }
}

fn definition<'a>(
    language: Language,
    top: &Top<'a>,
    at: usize,
    place: Role<'a>,
) -> Option<Definition<'a>> {
    let word = top.get(at)?;
    let next = top.word(at + 1);
    let named = |kind| next.map(|name| define(kind, name));
    match (word.text, language) {
        ("class", _)
        | ("struct" | "enum" | "actor" | "typealias", Language::Swift)
        | ("typealias", Language::Kotlin)
        | ("enum" | "trait", Language::Php) => named(SymbolKind::Type),
        // An object without a name is its class's companion.
        ("object", Language::Kotlin) => {
            let unnamed = Definition {
                name: "Companion",
                ..define(SymbolKind::Type, word)
            };
            Some(next.map_or(unnamed, |name| define(SymbolKind::Type, name)))
        }
        ("interface", _) | ("protocol", Language::Swift) => named(SymbolKind::Interface),
        ("extension", Language::Swift) => top.define_path(SymbolKind::Implementation, at + 1),
        ("namespace", Language::Php) => top.define_path(SymbolKind::Module, at + 1),
        ("fun", Language::Kotlin) => kotlin_function(top, at + 1, place),
        ("func", Language::Swift) => named(place.function()),
        ("init" | "deinit" | "subscript", Language::Swift) | ("constructor", Language::Kotlin)
            if matches!(place, Role::Type(_)) =>
        {
            Some(define(SymbolKind::Method, word))
        }
        ("function", Language::Php) => {
            let at = if top.is(at + 1, "&") { at + 2 } else { at + 1 };
            top.define(place.function(), at)
        }
        ("const", Language::Php) => {
            let end = top.find(at, "=")?;
            top.define(SymbolKind::Constant, end - 1)
        }
        ("val" | "let", _) if place.is_open() => named(SymbolKind::Constant),
        ("val", Language::Kotlin) if at > 0 && top.is(at - 1, "const") => {
            named(SymbolKind::Constant)
        }
        ("var", Language::Kotlin | Language::Swift) if place.is_open() => {
            named(SymbolKind::Variable)
        }
        _ => None,
    }
}

/// Matches `fun <T> Receiver<T>.name(`.
fn kotlin_function<'a>(top: &Top<'a>, at: usize, place: Role<'a>) -> Option<Definition<'a>> {
    let from = top.past_angles(at);
    let end = top.find(from, "(")?;
    let name = top.word(end.checked_sub(1)?)?;
    let mut before = end
        .checked_sub(2)
        .filter(|&dot| dot >= from && top.is(dot, "."));
    let mut owner = None;
    while let Some(at) = before {
        owner = top.word(at).or(owner);
        let continues = owner.is_none() && at > from;
        let end = || top.angles_before(from, at).saturating_sub(1);
        before = continues.then(|| end().max(from));
    }
    Some(function_of(owner, place, name))
}
