//! Kotlin, Swift and PHP, whose definitions begin with keywords.

use super::{BLOCK, Definition, Language, Opening, PART, Role, SymbolKind, Top, body, define};

pub(super) const KOTLIN: &str = "public private protected internal open abstract final sealed data \
    inner enum annotation value inline override suspend operator infix tailrec external lateinit \
    expect actual const";
pub(super) const SWIFT: &str = "public private internal open fileprivate final override mutating \
    nonmutating static indirect required convenience lazy weak unowned dynamic optional \
    nonisolated prefix postfix infix package distributed";
const PHP: &str = "public private protected static abstract final readonly var";

pub(super) fn opening<'a>(top: &Top<'a, '_>) -> Opening<'a> {
    let at = keyword(top);
    let assigned = top.language != Language::Php && top.find(at, "=").is_some();
    if top.is_one_of(at, "val var let const") || (assigned && top.is(at, "fun")) {
        return PART;
    }
    definition(top, at).map_or(BLOCK, body)
}

pub(super) fn ended<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    definition(top, keyword(top))
}

fn keyword(top: &Top<'_, '_>) -> usize {
    let modifiers = match top.language {
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

fn definition<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let word = top.get(at)?;
    let named = |kind| top.define(kind, at + 1);
    match (word.text, top.language) {
        ("class", _)
        | ("struct" | "enum" | "actor" | "typealias", Language::Swift)
        | ("typealias", Language::Kotlin)
        | ("enum" | "trait", Language::Php) => named(SymbolKind::Type),
        // An object without a name is its class's companion.
        ("object", Language::Kotlin) => named(SymbolKind::Type)
            .or_else(|| Some(Definition::new(SymbolKind::Type, "Companion", word.at))),
        ("interface", _) | ("protocol", Language::Swift) => named(SymbolKind::Interface),
        ("extension", Language::Swift) => top.define_path(SymbolKind::Implementation, at + 1),
        ("namespace", Language::Php) => top.define_path(SymbolKind::Module, at + 1),
        ("fun", Language::Kotlin) => kotlin_function(top, at + 1),
        ("func", Language::Swift) => named(top.place.function()),
        ("init" | "deinit" | "subscript", Language::Swift) | ("constructor", Language::Kotlin)
            if matches!(top.place, Role::Type(_)) =>
        {
            Some(define(SymbolKind::Method, word))
        }
        ("function", Language::Php) => {
            let at = if top.is(at + 1, "&") { at + 2 } else { at + 1 };
            top.define(top.place.function(), at)
        }
        ("const", Language::Php) => top.define(SymbolKind::Constant, top.find(at, "=")? - 1),
        ("val" | "let", _) if top.place.is_open() => named(SymbolKind::Constant),
        ("val", Language::Kotlin) if at > 0 && top.is(at - 1, "const") => {
            named(SymbolKind::Constant)
        }
        ("var", Language::Kotlin | Language::Swift) if top.place.is_open() => {
            named(SymbolKind::Variable)
        }
        _ => None,
    }
}

/// Matches `fun <T> Receiver<T>.name(`.
fn kotlin_function<'a>(top: &Top<'a, '_>, at: usize) -> Option<Definition<'a>> {
    let from = top.past_angles(at);
    let end = top.find(from, "(")?;
    let name = top.word(end.checked_sub(1)?)?;
    let dot = end.checked_sub(2);
    let mut before = dot.filter(|&dot| dot >= from && top.is(dot, "."));
    let mut owner = None;
    while let Some(at) = before {
        owner = top.word(at).or(owner);
        let continues = owner.is_none() && at > from;
        let end = || top.angles_before(from, at).saturating_sub(1);
        before = continues.then(|| end().max(from));
    }
    Some(top.function(owner, name))
}
