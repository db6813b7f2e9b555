//! C and C++, where a function is a name before parentheses.

use std::sync::LazyLock;

use regex::Regex;

use super::{Opening, Role, Statement, body, define, define_in, function_of};
use crate::tool::outline::{SymbolKind, collect::Definition, lex::Token};

/// Words before parentheses that are no function names.
const NO_NAMES: &str = "if for while switch catch return sizeof do else decltype alignas \
    __attribute__ __declspec noexcept throw requires asm defined static_assert _Static_assert";
/// Words that can follow a function's parameters.
const TRAILS: &str =
    "const noexcept override final throw volatile requires __attribute__ mutable try asm";

static FUNCTION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let operator = r"(?<operator>operator) (?:\S+ ){1,3}?";
    let owner = r"(?:(?<owner>\w+) :: )?(?<inverse>~ )?";
    Regex::new(&format!(r"{owner}(?:(?<name>\w+) |{operator})\( \) ")).ok()
});

/// A name before its value.
static VALUE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:[^\s=]+ )*?(?<name>\w+) (?:\[ \] )*= ").ok());

static NAMESPACE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^namespace (?:\w+ :: (?:inline )?)*(?<name>\w+) ").ok());

pub(super) fn opening<'a>(statement: &Statement<'a>, place: Role<'a>) -> Opening<'a> {
    let part = Opening::Part(Role::Other);
    let (rest, has_value) = (statement.rest(), statement.text.contains(" = "));
    match statement.first_word() {
        "namespace" => {
            let captures = NAMESPACE
                .as_ref()
                .and_then(|namespace| namespace.captures(rest));
            let name = captures.and_then(|captures| statement.token(&captures, "name"));
            let module = name.map(|name| define(SymbolKind::Module, name));
            return module.map_or(Opening::Block(Role::Module), body);
        }
        // `extern "C" {` is a block at file level.
        "\"\"" => return Opening::Block(place),
        "typedef" => return part,
        _ => {}
    }
    if place == Role::Function {
        let local = type_definition(statement).filter(|_| !rest.contains("( "));
        return local.map_or(Opening::Block(Role::Function), body);
    }
    if let Some((found, after)) = function(statement, place) {
        // In `Foo::Foo() : a{1}, b{2} {`, the members' braces come first.
        let is_word = statement.last().is_some_and(|last| last.is_word());
        return if after.starts_with(": ") && is_word {
            part
        } else {
            body(found)
        };
    }
    let is_open = matches!(place, Role::File | Role::Module);
    if let Some(found) = macro_definition(statement).filter(|_| is_open) {
        return body(found);
    }
    match (type_definition(statement), statement.first_word()) {
        (Some(found), _) => body(found),
        _ if has_value => part,
        (None, "struct" | "union" | "class") => Opening::Part(place),
        (None, "enum") => part,
        _ => Opening::Block(Role::Other),
    }
}

pub(super) fn ended<'a>(statement: &Statement<'a>, place: Role<'a>) -> Option<Definition<'a>> {
    if matches!(place, Role::Function | Role::Other | Role::Group(_)) {
        return None;
    }
    let (rest, text) = (statement.rest(), &statement.text);
    let named = || {
        let captures = VALUE.as_ref()?.captures(rest)?;
        statement.token(&captures, "name")
    };
    match statement.first_word() {
        "typedef" => {
            // `typedef int (*name)(…);`
            let is_pointer = rest.contains("( ) ( ) ");
            let last = statement.tokens.iter().rfind(|(_, token)| token.is_word());
            let name = match is_pointer {
                true => statement
                    .group
                    .iter()
                    .rfind(|token| token.is_word())
                    .copied(),
                false => last.map(|(_, token)| *token),
            };
            return name.map(|name| define(SymbolKind::Type, name));
        }
        "using" => return named().map(|name| define(SymbolKind::Type, name)),
        _ => {}
    }
    let value = rest.split_once("= ").map(|(_, value)| value);
    let is_pure = value.is_none_or(|value| {
        value.starts_with(|c: char| c.is_ascii_digit()) || ["default ", "delete "].contains(&value)
    });
    if let Some((found, _)) = function(statement, place).filter(|_| is_pure) {
        return Some(found);
    }
    let is_constant = text
        .split(' ')
        .any(|word| matches!(word, "const" | "constexpr"));
    let kind = match is_constant {
        true => SymbolKind::Constant,
        false if matches!(place, Role::File | Role::Module) => SymbolKind::Variable,
        false => return None,
    };
    let is_first = |name: &Token<'_>| statement.tokens[0].1.at == name.at;
    let name = named().filter(|name| !is_first(name))?;
    Some(define(kind, name))
}

/// Matches `struct name`, `enum class name : int`, `class EXPORT name final : public base`.
fn type_definition<'a>(statement: &Statement<'a>) -> Option<Definition<'a>> {
    const NO_TYPES: &str = "class struct final";
    if !["struct", "class", "union", "enum"].contains(&statement.first_word()) {
        return None;
    }
    let tokens = statement
        .tokens
        .iter()
        .filter(|(at, _)| *at > statement.prelude);
    let before = tokens.take_while(|(_, token)| !token.is_one_of(": ="));
    let words = before.filter(|(_, token)| token.is_word() && !token.is_one_of(NO_TYPES));
    let (_, name) = words.last()?;
    Some(define(SymbolKind::Type, *name))
}

/// Finds a name before parentheses, and returns what follows them.
fn function<'a, 's>(
    statement: &'s Statement<'a>,
    place: Role<'a>,
) -> Option<(Definition<'a>, &'s str)> {
    let rest = statement.rest();
    let mut found = None;
    for captures in FUNCTION.as_ref()?.captures_iter(rest) {
        let (before, after) = (
            &rest[..captures.get(0)?.start()],
            &rest[captures.get(0)?.end()..],
        );
        let is_behind = before.contains("= ") || before.contains(" : ");
        if is_behind && !before.contains("operator ") {
            break;
        }
        let name = statement.token(&captures, "name");
        let Some(name) = name.or_else(|| statement.token(&captures, "operator")) else {
            continue;
        };
        // A name alone is a call or a macro, unless it is a constructor.
        let is_typed = !before.is_empty()
            || captures
                .name("owner")
                .or(captures.name("inverse"))
                .is_some()
            || place == Role::Type(name.text);
        if !is_typed || name.is_one_of(NO_NAMES) {
            continue;
        }
        let definition = function_of(statement.token(&captures, "owner"), place, name);
        found = Some((definition, after));
        // A macro on its own line is separate from what follows.
        let next = statement
            .tokens
            .iter()
            .find(|(at, _)| *at + after.len() == statement.text.len());
        let is_alone = next.is_some_and(|(_, next)| {
            next.is_line_start && next.is_word() && !next.is_one_of(TRAILS)
        });
        if !is_alone || !after.contains("( ") {
            break;
        }
    }
    found
}

/// Macros that define a function: `TEST(Suite, Name) {`, `SYSCALL_DEFINE2(name, …) {`.
fn macro_definition<'a>(statement: &Statement<'a>) -> Option<Definition<'a>> {
    let (name, brackets) = statement.rest().split_once(' ')?;
    if name.contains(char::is_lowercase) || brackets != "( ) " {
        return None;
    }
    let mut words = statement.group.iter().copied().filter(Token::is_word);
    let first = words.next()?;
    let second = words.next().filter(|_| name.starts_with("TEST"));
    let owner = second.map(|_| first);
    Some(define_in(
        owner,
        SymbolKind::Function,
        second.unwrap_or(first),
    ))
}
