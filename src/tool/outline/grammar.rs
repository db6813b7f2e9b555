//! Decides what a statement defines, where its body opens or where it ends without one.

mod c;
mod go;
mod java;
mod keywords;
mod rust;
mod script;

use super::{
    SymbolKind,
    blocks::{Head, Top},
    collect::{Definition, Language},
    lex::Token,
};

/// What encloses a statement: the file, or a block by what it is the body of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role<'a> {
    File,
    Module,
    Type(&'a str),
    Function,
    /// A `const (…)` of Go, each line of which defines one symbol.
    Group(SymbolKind),
    Other,
}

impl Role<'_> {
    fn is_open(self) -> bool {
        matches!(self, Self::File | Self::Module)
    }

    fn function(self) -> SymbolKind {
        match self {
            Self::Type(_) => SymbolKind::Method,
            _ => SymbolKind::Function,
        }
    }
}

/// The meaning of a `{`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening<'a> {
    Body(Definition<'a>, Role<'a>),
    Block(Role<'a>),
    Part(Role<'a>),
}

/// A `{` within a statement, whose contents define nothing.
const PART: Opening<'_> = Opening::Part(Role::Other);
/// A block whose contents define nothing.
const BLOCK: Opening<'_> = Opening::Block(Role::Other);

/// Classifies the `{` after this head.
pub(super) fn opening<'a>(top: &Top<'a, '_>) -> Opening<'a> {
    match top.language {
        Language::Rust => rust::opening(top),
        Language::Go => go::opening(top),
        Language::Script => script::opening(top),
        Language::C => c::opening(top),
        Language::Java | Language::CSharp => java::opening(top),
        _ => keywords::opening(top),
    }
}

pub(super) fn ended<'a>(top: &Top<'a, '_>) -> Option<Definition<'a>> {
    match top.language {
        Language::Rust => rust::ended(top),
        Language::Go => go::definition(top),
        Language::Script => script::ended(top),
        Language::C => c::ended(top),
        Language::Java | Language::CSharp => java::ended(top),
        _ => keywords::ended(top),
    }
}

/// Classifies the `(` after this head, if it opens a group of definitions.
pub(super) fn group<'a>(language: Language, head: &Head<'a>, place: Role<'a>) -> Option<Role<'a>> {
    match language {
        Language::Go => go::group(head),
        Language::Rust => rust::group(head, place),
        _ => None,
    }
}

pub(super) fn ends_statement(language: Language, head: &Head<'_>, next: &Token<'_>) -> bool {
    const CONTINUATIONS: &str = "where extends implements throws rethrows by as in is instanceof of else \
        catch finally satisfies";
    let Some(last) = head.last else { return false };
    let modifiers = match language {
        Language::Go => return go::ends_statement(&last),
        Language::Script => script::MODIFIERS,
        Language::Kotlin => keywords::KOTLIN,
        Language::Swift => keywords::SWIFT,
        _ => return false,
    };
    let begins = next.is_word() || matches!(next.text, "@" | "#");
    let is_value = last.kind != super::lex::TokenKind::Sign
        || matches!(last.text, ")" | "]" | "}" | ">" | "?" | "!");
    let continues = next.is_one_of(CONTINUATIONS)
        || (language == Language::Kotlin && next.is_one_of("get set constructor"));
    begins && is_value && !continues && {
        let top = head.top(language, Role::File);
        top.past_prelude(modifiers) < top.tokens.len()
    }
}

impl<'a> Top<'a, '_> {
    /// A definition whose name is the word at `at`.
    fn define(&self, kind: SymbolKind, at: usize) -> Option<Definition<'a>> {
        self.word(at).map(|name| define(kind, name))
    }

    /// A definition whose name ends the path at `at`.
    fn define_path(&self, kind: SymbolKind, at: usize) -> Option<Definition<'a>> {
        self.path_end(at).map(|name| define(kind, name))
    }

    /// A function with this name, or a method if it has an owner.
    fn function(&self, owner: Option<Token<'a>>, name: Token<'a>) -> Definition<'a> {
        let kind = owner.map_or_else(|| self.place.function(), |_| SymbolKind::Method);
        define_in(owner, kind, name)
    }

    /// The words directly inside the first parentheses.
    fn words_inside(&self) -> impl Iterator<Item = Token<'a>> {
        let inside = self.head.inside(|token| token.is("("));
        inside.filter(Token::is_word)
    }

    fn has_before(&self, text: &str, end: usize) -> bool {
        self.find(0, text).is_some_and(|at| at < end)
    }
}

fn define_in<'a>(owner: Option<Token<'a>>, kind: SymbolKind, name: Token<'a>) -> Definition<'a> {
    let mut definition = define(kind, name);
    definition.owner = owner.map(|token| token.text);
    definition
}

fn define<'a>(kind: SymbolKind, name: Token<'a>) -> Definition<'a> {
    Definition::new(kind, name.text.trim_matches('`'), name.at)
}

fn body<'a>(definition: Definition<'a>) -> Opening<'a> {
    let role = match definition.kind {
        SymbolKind::Type | SymbolKind::Interface | SymbolKind::Implementation => {
            Role::Type(definition.name)
        }
        SymbolKind::Module => Role::Module,
        SymbolKind::Function | SymbolKind::Method => Role::Function,
        _ => Role::Other,
    };
    Opening::Body(definition, role)
}

fn constant_if(is_constant: bool) -> SymbolKind {
    match is_constant {
        true => SymbolKind::Constant,
        false => SymbolKind::Variable,
    }
}
