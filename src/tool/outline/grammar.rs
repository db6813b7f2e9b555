//! Decides what a statement defines, where its body opens or where it ends without one.

mod c;
mod rules;

use regex::Captures;

use super::{
    SymbolKind,
    blocks::Head,
    collect::{Definition, Language},
    lex::{Token, TokenKind},
};
use rules::{Grammar, Rule};

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

/// The meaning of a `{`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening<'a> {
    Body(Definition<'a>, Role<'a>),
    Block(Role<'a>),
    Part(Role<'a>),
}

/// The head of a statement for patterns: its tokens, each followed by a blank, without what is in
/// brackets and in generics.
#[derive(Debug)]
struct Statement<'a> {
    text: String,
    /// Tokens with their offsets in the text.
    tokens: Vec<(usize, Token<'a>)>,
    /// Length of the modifiers and annotations at the beginning.
    prelude: usize,
    /// What is directly in the first parentheses.
    group: Vec<Token<'a>>,
}

impl<'a> Statement<'a> {
    fn new(language: Language, head: &Head<'a>) -> Self {
        let mut tokens: Vec<Token<'a>> = Vec::new();
        // Positions of angle brackets without an end.
        let mut open = Vec::new();
        for piece in head.pieces.iter().filter(|piece| piece.nest == 0) {
            let mut before = tokens.iter().rev().take(2);
            let is_operator = language == Language::C && before.any(|token| token.is("operator"));
            if piece.token.is(">")
                && let Some(start) = open.pop()
            {
                tokens.truncate(start);
                continue;
            }
            if piece.token.is("<") && !is_operator {
                open.push(tokens.len());
            }
            if piece.token.is("interface") {
                // `@interface` is no annotation.
                tokens.pop_if(|token| token.is("@"));
            }
            tokens.push(piece.token);
        }
        let mut text = String::with_capacity(8 * tokens.len());
        let mut place = |token: Token<'a>| {
            let at = text.len();
            text.push_str(match token.kind {
                TokenKind::Text => "\"\"",
                _ if token.text.starts_with('`') => "_",
                _ => token.text,
            });
            text.push(' ');
            (at, token)
        };
        let tokens = tokens.into_iter().map(&mut place).collect();
        let prelude = rules::of(language).and_then(|grammar| grammar.prelude.find(&text));
        Self {
            prelude: prelude.map_or(0, |prelude| prelude.end()),
            tokens,
            text,
            group: head.first_group().collect(),
        }
    }

    fn prelude(&self) -> &str {
        &self.text[..self.prelude]
    }

    fn rest(&self) -> &str {
        &self.text[self.prelude..]
    }

    fn first_word(&self) -> &str {
        self.rest().split(' ').next().unwrap_or_default()
    }

    fn last(&self) -> Option<Token<'a>> {
        Some(self.tokens.last()?.1)
    }

    /// The token that a group of a match in [`Self::rest`] captured.
    fn token(&self, captures: &Captures<'_>, group: &str) -> Option<Token<'a>> {
        let at = captures.name(group)?.start() + self.prelude;
        let found = self.tokens.binary_search_by_key(&at, |(at, _)| *at);
        Some(self.tokens[found.ok()?].1)
    }
}

/// Classifies the `{` after this head.
pub(super) fn opening<'a>(language: Language, head: &Head<'a>, place: Role<'a>) -> Opening<'a> {
    let statement = Statement::new(language, head);
    if language == Language::C {
        return c::opening(&statement, place);
    }
    let found = definition(language, &statement, place, true);
    let (first, has_value) = (statement.first_word(), statement.text.contains(" = "));
    let part = Opening::Part(Role::Other);
    match language {
        Language::Script => script_opening(&statement, found),
        Language::Rust => match (found, first) {
            (Some(found), _) if is_value(&found) => part,
            (_, "type" | "let" | "use" | "const" | "static")
                if found.is_none() || first == "type" =>
            {
                part
            }
            (Some(found), _) => body(found),
            (None, "mod") => Opening::Block(Role::Module),
            // Items of a foreign block belong to the file.
            (None, "extern") => Opening::Block(place),
            _ => Opening::Block(Role::Other),
        },
        Language::Go => match (found, first) {
            (Some(found), _) if is_value(&found) => part,
            // A function's result may be `struct{}` or `interface{}`.
            (Some(_), "func")
                if statement
                    .last()
                    .is_some_and(|last| last.is_one_of("struct interface")) =>
            {
                part
            }
            (Some(found), _) => body(found),
            (None, "func" | "if" | "for" | "switch" | "select" | "go" | "defer" | "else") => {
                Opening::Block(Role::Function)
            }
            _ if matches!(place, Role::Type(_)) => part,
            _ => Opening::Block(Role::Other),
        },
        Language::Java | Language::CSharp => match found {
            Some(found) if found.kind != SymbolKind::Constant => body(found),
            None if !has_value => Opening::Block(Role::Other),
            _ => part,
        },
        _ => match (found, first) {
            (_, "val" | "var" | "let" | "const") => part,
            (Some(_), "fun") if has_value => part,
            (Some(found), _) => body(found),
            _ => Opening::Block(Role::Other),
        },
    }
}

fn script_opening<'a>(statement: &Statement<'a>, found: Option<Definition<'a>>) -> Opening<'a> {
    let part = Opening::Part(Role::Other);
    let last = statement.last();
    let ends = |words: &str| last.is_some_and(|last| last.is_one_of(words));
    let is_generic = statement.text.contains("< ");
    // In `pick<T extends {a: string}>() {`, the first brace is a bound.
    let bounds = ends("extends keyof");
    match found {
        // In `function f(): {a: string} {`, the first brace is a type.
        Some(_) if ends(": | & < , ? =") || bounds || is_generic => part,
        None if bounds && is_generic => part,
        Some(found) if is_value(&found) || statement.first_word() == "type" => part,
        Some(found) => body(found),
        None if ends("=> ) else try") => Opening::Block(Role::Function),
        None if last.is_some_and(|last| last.kind == TokenKind::Sign) => part,
        None if ends("default return") => part,
        None if statement.text.starts_with("export ") || statement.first_word() == "import" => part,
        // A static block in a class: `static {`.
        None => Opening::Block(Role::Other),
    }
}

const fn is_value(found: &Definition<'_>) -> bool {
    matches!(found.kind, SymbolKind::Constant | SymbolKind::Variable)
}

pub(super) fn ended<'a>(
    language: Language,
    head: &Head<'a>,
    place: Role<'a>,
) -> Option<Definition<'a>> {
    let statement = Statement::new(language, head);
    if language == Language::C {
        return c::ended(&statement, place);
    }
    let found = definition(language, &statement, place, false)?;
    // A module declaration without a body defines nothing here.
    let here = language != Language::Rust
        || !matches!(found.kind, SymbolKind::Module | SymbolKind::Implementation);
    here.then_some(found)
}

fn definition<'a>(
    language: Language,
    statement: &Statement<'a>,
    place: Role<'a>,
    opens: bool,
) -> Option<Definition<'a>> {
    if let Role::Group(kind) = place {
        let name = statement.tokens.first()?.1;
        let named = |at: usize| {
            statement
                .tokens
                .get(at)
                .is_some_and(|token| token.1.is("interface"))
        };
        let kind = match kind {
            // `Set[T] interface`
            SymbolKind::Type if named(1) || named(3) => SymbolKind::Interface,
            kind => kind,
        };
        return (name.is_word() && !name.is("_")).then(|| define(kind, name));
    }
    let rest = statement.rest();
    let grammar = rules::of(language)?;
    let found = grammar.patterns.matches(rest).into_iter().find_map(|at| {
        let rule = &grammar.rules[at];
        let fits = rule.place.fits(statement, place, opens);
        let captures = fits.then(|| rule.pattern.captures(rest)).flatten()?;
        named(language, statement, place, (grammar, rule), &captures)
    });
    found.or_else(|| {
        // `export default class {`
        let kind = match statement.first_word() {
            "class" => SymbolKind::Type,
            "function" => SymbolKind::Function,
            _ if rest.contains("=> ") => SymbolKind::Function,
            _ => return None,
        };
        let unnamed = statement.prelude().ends_with("default ") && language == Language::Script;
        let at = statement.prelude - "default ".len().min(statement.prelude);
        let name = statement.tokens.iter().find(|(start, _)| *start == at)?;
        unnamed.then(|| define(kind, name.1))
    })
}

fn named<'a>(
    language: Language,
    statement: &Statement<'a>,
    place: Role<'a>,
    (grammar, rule): (&Grammar, &Rule),
    captures: &Captures<'_>,
) -> Option<Definition<'a>> {
    let name = statement.token(captures, "name")?;
    let is_no_name = |word: &str| grammar.no_names.split(' ').any(|no_name| no_name == word);
    let mut types = captures
        .name("type")
        .map_or("", |types| types.as_str())
        .split(' ');
    if !name.is_word()
        || is_no_name(name.text)
        || types.any(|word| !word.is_empty() && is_no_name(word))
    {
        return None;
    }
    let is_receiver = language == Language::Go && statement.text.starts_with("func (");
    let receiver = || {
        statement
            .group
            .iter()
            .rfind(|token| token.is_word())
            .copied()
    };
    let owner = match is_receiver {
        true => receiver(),
        false => statement.token(captures, "owner"),
    };
    if rule.place == rules::Place::Constructor && place != Role::Type(name.text) {
        return None;
    }
    let mut definition = match rule.kind {
        SymbolKind::Function => function_of(owner, place, name),
        kind => define_in(owner, kind, name),
    };
    if language == Language::Kotlin && name.is("object") {
        // An object without a name is its class's companion.
        definition.name = "Companion";
    }
    Some(definition)
}

/// Classifies the `(` after this head, if it opens a group of definitions.
pub(super) fn group<'a>(language: Language, head: &Head<'a>, place: Role<'a>) -> Option<Role<'a>> {
    let first = head.pieces.first()?.token;
    match language {
        // `const (`, `var (` and `type (`
        Language::Go if head.pieces.len() == 1 => match first.text {
            "const" => Some(Role::Group(SymbolKind::Constant)),
            "var" => Some(Role::Group(SymbolKind::Variable)),
            "type" => Some(Role::Group(SymbolKind::Type)),
            "import" => Some(Role::Other),
            _ => None,
        },
        // `cfg_if!(…)` at file level may contain items.
        Language::Rust => {
            let is_call = head.last.is_some_and(|last| last.is("!")) && head.pieces.len() <= 8;
            let is_around = matches!(place, Role::File | Role::Module | Role::Type(_));
            (is_call && first.is_word() && is_around).then_some(place)
        }
        _ => None,
    }
}

pub(super) fn ends_statement(language: Language, head: &Head<'_>, next: &Token<'_>) -> bool {
    const CONTINUATIONS: &str = "where extends implements throws rethrows by as in is instanceof of \
        else catch finally satisfies";
    let Some(last) = head.last else { return false };
    let is_value = |signs: &str| last.kind != TokenKind::Sign || last.is_one_of(signs);
    match language {
        Language::Go => return is_value(") ] }"),
        Language::Script | Language::Kotlin | Language::Swift => {}
        _ => return false,
    }
    let begins = next.is_word() || matches!(next.text, "@" | "#");
    let continues = next.is_one_of(CONTINUATIONS)
        || (language == Language::Kotlin && next.is_one_of("get set constructor"));
    begins
        && is_value(") ] } > ? !")
        && !continues
        && !Statement::new(language, head).rest().is_empty()
}

/// A function with this name, or a method if it has an owner.
fn function_of<'a>(owner: Option<Token<'a>>, place: Role<'a>, name: Token<'a>) -> Definition<'a> {
    let kind = match (owner, place) {
        (None, Role::File | Role::Module | Role::Function | Role::Group(_) | Role::Other) => {
            SymbolKind::Function
        }
        _ => SymbolKind::Method,
    };
    define_in(owner, kind, name)
}

fn define_in<'a>(owner: Option<Token<'a>>, kind: SymbolKind, name: Token<'a>) -> Definition<'a> {
    let owner = owner.map(|token| token.text);
    Definition {
        owner,
        ..define(kind, name)
    }
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
