//! What a line of code defines, by the words that it begins with and, of functions, by what follows the brackets.
//! No parser: by the look of lines, for any common language. Pure.

mod head;

pub(crate) use head::announces;

/// Longest line that is looked at for a definition, in bytes.
pub(crate) const WIDEST: usize = 300;

/// What tells in a language that something is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tongue {
    /// C and what looks like it: a type before the name, a block behind the brackets.
    C,
    Rust,
    /// A word before the name.
    Other,
}

impl Tongue {
    /// By the ending of a path.
    pub(crate) fn of(path: &str) -> Self {
        match path.rsplit('.').next().unwrap_or_default() {
            "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" | "m" | "mm" | "cs"
            | "java" => Self::C,
            "rs" => Self::Rust,
            _ => Self::Other,
        }
    }

    /// Whether a bare line with this word only says that something is defined elsewhere: `class Index;`,
    /// `mod tests;`.
    fn announces(self, keyword: &str, bare: &str) -> bool {
        let may = match self {
            Self::C => matches!(keyword, "class" | "struct" | "enum" | "union"),
            Self::Rust => keyword == "mod",
            Self::Other => false,
        };
        may && bare.ends_with(';') && !bare.contains(['{', '(', '='])
    }
}

/// Where in a line the name stands that it defines, in bytes. `behind` are the lines after it, as far as they are
/// known: without them a function is told by its first line alone.
pub(crate) fn name_defined<'a>(
    tongue: Tongue,
    line: &'a str,
    behind: impl Iterator<Item = &'a str>,
) -> Option<(usize, usize)> {
    if line.len() > WIDEST {
        return None;
    }
    let bare = line.trim();
    if is_note(bare) {
        return None;
    }
    if let Some((start, end)) = defined(tongue, bare) {
        let shift = line.len() - line.trim_start().len();
        return Some((start + shift, end + shift));
    }
    match tongue {
        Tongue::C => head::function(line, behind),
        Tongue::Rust | Tongue::Other => None,
    }
}

/// Whether a bare line of code is a comment, an attribute or a decorator.
pub(crate) fn is_note(bare: &str) -> bool {
    let note = [
        "//", "#[", "#!", "# ", "/*", "* ", "*/", "@", "--", ";;", "\"\"\"", "'''",
    ];
    bare == "*" || bare == "#" || note.iter().any(|start| bare.starts_with(start))
}

/// Whether a word may stand before one that defines. By patterns, which cost a fraction of a look through a
/// list: this is asked of each line.
fn is_modifier(word: &str) -> bool {
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
            | "pub(crate)"
            | "pub(super)"
            | "\"C\""
            | "constexpr"
            | "typedef"
            | "native"
            | "synchronized"
            | "get"
            | "set"
    )
}

/// Whether a word defines what follows it.
fn is_keyword(word: &str) -> bool {
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
fn is_control(word: &str) -> bool {
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
    )
}

/// Where in a bare line of code the name stands that it defines.
fn defined(tongue: Tongue, bare: &str) -> Option<(usize, usize)> {
    let word = |from: usize| {
        let rest = &bare[from..];
        let end = rest
            .find(|c: char| c.is_whitespace() || c == '(' && !rest.starts_with("pub("))
            .unwrap_or(rest.len());
        (&rest[..end], from + end)
    };
    let name_at = |from: usize| {
        let rest = &bare[from..];
        let skip = rest.len()
            - rest
                .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '&'))
                .len();
        let start = from + skip;
        let end = bare[start..]
            .find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$'))
            .map_or(bare.len(), |end| start + end);
        (start < end).then_some((start, end))
    };
    if bare.starts_with("impl<") {
        return implemented(bare, "impl".len());
    }
    let mut at = 0;
    let mut keyword = None;
    loop {
        let (token, end) = word(at);
        let spaced = bare[end..].starts_with([' ', '\t', '<']);
        if keyword.is_none() && is_modifier(token) && spaced {
            at = end + 1;
        } else if is_keyword(token) && spaced {
            keyword = Some(token);
            at = end + 1;
        } else {
            break;
        }
        at += bare[at..].len() - bare[at..].trim_start().len();
    }
    match keyword {
        // Go's methods name their receiver first.
        Some("func") if bare[at..].starts_with('(') => {
            let behind = at + bare[at..].find(')')? + 1;
            name_at(behind)
        }
        Some("impl") => implemented(bare, at),
        Some(keyword) if tongue.announces(keyword, bare) => None,
        // Only functions and the like: a local variable defines nothing that people look for.
        Some("let" | "var" | "val") if !(bare.contains("=>") || bare.contains("function")) => None,
        Some("const") if at > 0 && bare.contains("require(") => None,
        Some(_) => name_at(at),
        None => assigned(bare).or_else(|| method(bare)),
    }
}

/// What an `impl` block is of: the type, behind `for` if there is one.
fn implemented(bare: &str, at: usize) -> Option<(usize, usize)> {
    let mut from = at;
    if let Some(found) = bare[at..].find(" for ") {
        from = at + found + 5;
    } else if bare[at..].starts_with('<') {
        from = at + bare[at..].find("> ").map_or(0, |end| end + 2);
    }
    let rest = &bare[from..];
    let end = rest
        .find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':'))
        .unwrap_or(rest.len());
    (end > 0).then_some((from, from + end))
}

/// `NAME = …` at a module's level, `exports.name = function`, `name: function (`, `name = (a) =>`.
fn assigned(bare: &str) -> Option<(usize, usize)> {
    let sign = bare.find([' ', '=', ':'])?;
    let target = &bare[..sign];
    let plain = target
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '$'));
    if !plain || target.is_empty() {
        return None;
    }
    let behind = bare[sign..].trim_start();
    let constant = target.len() > 2
        && target
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        && behind.starts_with(['=', ':']);
    let function = behind.starts_with(['=', ':'])
        && !behind.starts_with("==")
        && (behind.contains("function") || behind.contains("=>"));
    if !(constant || function) {
        return None;
    }
    let start = target.rfind('.').map_or(0, |dot| dot + 1);
    (start < sign).then_some((start, sign))
}

/// `type name(arguments) {` and `name (arguments) {`.
fn method(bare: &str) -> Option<(usize, usize)> {
    if !bare.ends_with('{') {
        return None;
    }
    let open = bare.find('(')?;
    let before = bare[..open].trim_end();
    let first = before
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next()?;
    let plain = before.chars().all(|c| {
        c.is_alphanumeric()
            || matches!(
                c,
                '_' | ' ' | '$' | '*' | '&' | '<' | '>' | ':' | ',' | '~' | '[' | ']'
            )
    });
    if is_control(first) || !plain || before.is_empty() {
        return None;
    }
    let start = before
        .rfind(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '$'))
        .map_or(0, |at| at + 1);
    let named = before[start..].starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'));
    (named && !is_control(&before[start..])).then_some((start, before.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_of_common_languages_are_seen() {
        for (line, name) in [
            ("pub(crate) async fn read_it(&self) {", "read_it"),
            ("    fn inner() {", "inner"),
            ("impl<T> Stream for KeepAlive<T> {", "KeepAlive"),
            ("impl Kind {", "Kind"),
            ("class Builder(Base):", "Builder"),
            ("    async def run(self):", "run"),
            ("func (s *Server) Serve() {", "Serve"),
            ("export default function start (a) {", "start"),
            ("const onSend = (a) => {", "onSend"),
            ("Reply.prototype.send = function (payload) {", "send"),
            ("public static void main(String[] args) {", "main"),
            ("static int parse_it(char *text) {", "parse_it"),
            ("  handler (request) {", "handler"),
            ("MAX_TURNS = 3", "MAX_TURNS"),
            ("#define LIMIT 3", "LIMIT"),
            ("if (a) {", ""),
            ("let x = 3;", ""),
            ("return foo(1)", ""),
            ("foo(1);", ""),
        ] {
            let bare = line.trim();
            let found = defined(Tongue::Other, bare).map_or("", |(start, end)| &bare[start..end]);
            assert_eq!(found, name, "{line}");
        }
    }
    #[test]
    fn what_is_announced_is_defined_elsewhere() {
        for (path, line, name) in [
            ("a.h", "class Index;", ""),
            ("a.c", "struct Index;", ""),
            ("a.c", "typedef struct index index;", ""),
            ("a.rs", "struct Index;", "Index"),
            ("a.rs", "struct Index(u32);", "Index"),
            ("a.rs", "pub mod index;", ""),
            ("a.rs", "mod index {", "index"),
            ("a.sv", "module counter;", "counter"),
        ] {
            let found = name_defined(Tongue::of(path), line, std::iter::empty());
            let found = found.map_or("", |(start, end)| &line[start..end]);
            assert_eq!(found, name, "{path}: {line}");
        }
    }

    #[test]
    fn calls_before_a_colon_or_at_an_end_define_nothing_where_a_word_would() {
        for (path, text) in [
            ("a.py", "async with hold_lock(a):\n    pass"),
            ("a.py", "described in backoff (see the guide):"),
            ("a.js", "export default createHandler(opts)"),
            ("a.js", "handler: createHandler(opts)"),
            ("a.rs", "    F: FnMut() -> io::Result<()> + Send,\n{"),
        ] {
            let mut lines = text.lines();
            let line = lines.next().unwrap();
            assert_eq!(name_defined(Tongue::of(path), line, lines), None, "{text}");
        }
    }
}
