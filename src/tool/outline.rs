//! Outlines of source files: symbols with their names and line ranges.
//!
//! Pure. The scanner knows strings, comments, brackets and indentation of each language, but is no
//! parser.
//!
//! **Invariants:** symbols are ordered by first line and form a tree; time is linear in the text,
//! and memory is bounded ([`MAX_TEXT`], [`MAX_SYMBOLS`], [`MAX_NAME`]).

mod blocks;
mod collect;
mod grammar;
mod lex;
mod lines;
mod prose;
mod quotes;
#[cfg(test)]
mod tests;

use std::iter;

use collect::{Collector, Language};

use crate::model::words;

/// Length of the text that is scanned, in bytes.
pub const MAX_TEXT: usize = 8 * 1024 * 1024;
/// Maximum number of symbols per text; later ones are omitted.
pub const MAX_SYMBOLS: usize = 20_000;
/// Longest name, in characters; longer ones are cut.
pub const MAX_NAME: usize = 160;

words! {
    /// Kinds of symbols.
    #[derive(PartialOrd, Ord)]
    pub enum SymbolKind {
        /// A free function.
        Function = "function",
        /// A function of a type.
        Method = "method",
        /// A struct, class, enum, record, alias or SQL type.
        Type = "type",
        /// A trait, interface or protocol.
        Interface = "interface",
        /// A block that implements or extends the type of its name.
        Implementation = "implementation",
        /// A module, namespace or schema.
        Module = "module",
        /// A constant.
        Constant = "constant",
        /// A variable of the file, or a property of a type.
        Variable = "variable",
        /// A macro.
        Macro = "macro",
        /// A table or view of a database.
        Table = "table",
        /// A heading; it extends to the end of its section.
        Heading = "heading",
        /// A top-level key or table of a configuration or data file.
        Key = "key",
    }
}

/// A definition in a text. Line numbers start at 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The kind of definition.
    pub kind: SymbolKind,
    /// The unqualified name: `decide`, not `Session::decide`.
    pub name: Box<str>,
    /// The type that it belongs to, if that is not its parent: a receiver in Go, the `Foo` of
    /// `Foo::bar` in C++, the trait of an implementation in Rust.
    pub owner: Option<Box<str>>,
    /// The line of the name, which citations use.
    pub line: u32,
    /// The first line, including comments and attributes right above.
    pub first_line: u32,
    /// The last line, inclusive.
    pub last_line: u32,
    /// Index of the enclosing symbol.
    pub parent: Option<u32>,
    /// Nesting depth; 0 at the top.
    pub depth: u16,
}

impl Symbol {
    /// Whether `line` is within the symbol.
    pub fn contains_line(&self, line: u32) -> bool {
        (self.first_line..=self.last_line).contains(&line)
    }
}

/// Outlines a text; the path determines its language.
pub fn outline(path: &str, text: &str) -> Vec<Symbol> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = &text[..text.floor_char_boundary(MAX_TEXT)];
    let Some(language) = Language::of(path, text) else {
        return Vec::new();
    };
    let mut found = Collector::new(text, language);
    match language {
        Language::Python | Language::Ruby | Language::Shell | Language::Toml | Language::Yaml => {
            lines::scan(text, &mut found)
        }
        Language::Sql => lines::sql(text, &mut found),
        Language::Json => lines::json(text, &mut found),
        Language::Markdown => prose::markdown(text, &mut found),
        Language::Rest => prose::rest(text, &mut found),
        _ => blocks::scan(text, &mut found),
    }
    found.finish()
}

/// Whether files of this name can have an outline.
pub fn is_supported(path: &str) -> bool {
    Language::of(path, "").is_some()
}

/// The innermost symbol that contains `line`.
pub fn enclosing(symbols: &[Symbol], line: u32) -> Option<&Symbol> {
    let begun = symbols.partition_point(|symbol| symbol.first_line <= line);
    let last = symbols.get(begun.checked_sub(1)?)?;
    lineage(symbols, last).find(|symbol| symbol.contains_line(line))
}

/// A symbol and its enclosing symbols, from the inside out.
pub fn lineage<'a>(
    symbols: &'a [Symbol],
    symbol: &'a Symbol,
) -> impl Iterator<Item = &'a Symbol> + 'a {
    iter::successors(Some(symbol), |symbol| symbols.get(symbol.parent? as usize))
}

/// The name qualified by its enclosing symbols: `Session::decide`, `Server.Run`, `Guide > Setup`.
pub fn qualified(path: &str, symbols: &[Symbol], symbol: &Symbol) -> String {
    let joint = match Language::of(path, "") {
        Some(Language::Rust | Language::C | Language::Php | Language::Ruby) => "::",
        Some(Language::Markdown | Language::Rest) => " > ",
        _ => ".",
    };
    let names = lineage(symbols, symbol).map(|symbol| &*symbol.name);
    let mut names: Vec<&str> = names.collect();
    if symbol.kind != SymbolKind::Implementation
        && let Some(owner) = &symbol.owner
    {
        names.insert(1, owner);
    }
    names.reverse();
    names.join(joint)
}
