//! Words of languages that define something, stand before one that does, or are followed by brackets and are no
//! function. Data and look-ups.

/// Whether a word may stand before one that defines. By patterns, which cost a fraction of a look through a
/// list: this is asked of each line.
pub(super) fn is_modifier(word: &str) -> bool {
    // With what belongs to it.
    let is_told = word.starts_with("pub(") || word.starts_with("extern \"");
    is_told || is_known_modifier(word)
}

fn is_known_modifier(word: &str) -> bool {
    matches!(
        word,
        "pub"
            | "async"
            | "unsafe"
            | "extern"
            | "export"
            | "default"
            | "public"
            | "private"
            | "protected"
            | "internal"
            | "static"
            | "final"
            | "abstract"
            | "sealed"
            | "override"
            | "inline"
            | "virtual"
            | "local"
            | "declare"
            | "open"
            | "suspend"
            | "data"
            | "readonly"
            | "partial"
            | "constexpr"
            | "typedef"
            | "native"
            | "synchronized"
            | "get"
            | "set"
    )
}

/// Whether a word defines what follows it.
pub(super) fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "fn" | "struct"
            | "enum"
            | "trait"
            | "type"
            | "mod"
            | "union"
            | "const"
            | "class"
            | "interface"
            | "def"
            | "function"
            | "func"
            | "module"
            | "namespace"
            | "protocol"
            | "object"
            | "record"
            | "fun"
            | "macro_rules!"
            | "impl"
            | "sub"
            | "defmodule"
            | "defp"
            | "let"
            | "var"
            | "val"
            | "#define"
            | "function*"
            | "define"
    )
}

/// Whether a word with brackets behind it is no function.
pub(super) fn is_control(word: &str) -> bool {
    matches!(
        word,
        "if" | "for"
            | "while"
            | "switch"
            | "catch"
            | "return"
            | "else"
            | "match"
            | "do"
            | "try"
            | "throw"
            | "new"
            | "await"
            | "yield"
            | "with"
            | "elif"
            | "except"
            | "case"
            | "assert"
            | "delete"
            | "typeof"
            | "in"
            | "of"
            | "not"
            | "and"
            | "or"
            | "super"
            | "this"
            | "use"
            | "import"
            | "from"
            | "loop"
            | "where"
            | "then"
            | "raise"
            | "defer"
            | "go"
            | "function"
            | "extends"
    )
}
