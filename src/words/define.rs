//! What a line of code defines, by the words that it begins with and, of functions, by what follows the brackets.
//! No parser: by the look of lines, for any common language. Pure.
//!
//! | file | what it knows |
//! |---|---|
//! | `tongue` | what tells in a language that something is defined |
//! | `reserved` | words that define, stand before those, or are no names of functions |
//! | `constant` | constants with a type before their name |
//! | `head` | functions with a type before their name |
//! | `member` | functions without a word that says so |
//! | `brackets` | where what a bracket opens ends |

mod brackets;
mod constant;
mod head;
mod member;
mod reserved;
mod tongue;

pub(crate) use tongue::Tongue;

use reserved::{is_control, is_keyword, is_modifier};

/// Longest line that is looked at for a definition, in bytes.
pub(crate) const WIDEST: usize = 300;

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
    let shift = line.len() - line.trim_start().len();
    let of_line = |(start, end)| (start + shift, end + shift);
    if tongue == Tongue::C && bare.starts_with('#') {
        return macro_named(bare).map(of_line);
    }
    if is_note(bare) {
        return None;
    }
    let defined = defined(tongue, bare).map(of_line);
    match tongue {
        Tongue::C | Tongue::Java => defined
            .or_else(|| constant::set(tongue, line))
            .or_else(|| head::function(tongue, line, behind)),
        Tongue::Script => defined.or_else(|| member::over_lines(bare, behind).map(of_line)),
        Tongue::Rust | Tongue::Other => defined,
    }
}

/// Whether a bare line of code is a comment, an attribute or a decorator.
pub(crate) fn is_note(bare: &str) -> bool {
    let note = [
        "//", "#[", "#!", "# ", "/*", "* ", "*/", "@", "--", ";;", "\"\"\"", "'''",
    ];
    bare == "*" || bare == "#" || note.iter().any(|start| bare.starts_with(start))
}

/// Where in a bare line of code the name stands that it defines.
fn defined(tongue: Tongue, bare: &str) -> Option<(usize, usize)> {
    if bare.starts_with("impl<") {
        return implemented(bare, "impl".len());
    }
    let mut at = 0;
    let mut keyword = None;
    loop {
        let (token, end) = word_at(bare, at);
        let spaced = bare[end..].starts_with([' ', '\t', '<']);
        let defines_here = tongue.is_keyword(keyword, token);
        let is_modifier = !defines_here && (is_modifier(token) || tongue.is_modifier(token));
        if keyword.is_none() && is_modifier && spaced {
            at = end + 1;
        } else if (defines_here || is_keyword(token)) && spaced {
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
            name_at(bare, behind)
        }
        Some("impl") => implemented(bare, at),
        Some(keyword) if tongue.announces(keyword, bare) => None,
        // Only functions and the like: a local variable defines nothing that people look for.
        Some("let" | "var" | "val") if tongue == Tongue::Rust || !is_function(bare) => None,
        Some("const") if at > 0 && bare.contains("require(") => None,
        Some("struct" | "union" | "enum" | "class") if tongue == Tongue::C => of_type(bare, at),
        Some(_) => name_at(bare, at),
        None => assigned(tongue, bare).or_else(|| member::function(tongue, bare)),
    }
}

/// The word at a place, with what belongs to it in `pub(in path)` and `extern "system"`, and where it ends.
fn word_at(bare: &str, from: usize) -> (&str, usize) {
    let rest = &bare[from..];
    let belonging = [("pub(", ')'), ("extern \"", '"')];
    let opened = belonging.iter().find(|(start, _)| rest.starts_with(start));
    let end = match opened {
        Some((start, close)) => {
            let closed = rest[start.len()..].find(*close);
            closed.map(|at| start.len() + at + 1)
        }
        None => rest.find(|c: char| c.is_whitespace() || c == '('),
    };
    let end = end.unwrap_or(rest.len());
    (&rest[..end], from + end)
}

/// Where the name stands that begins at a place, behind the signs of pointers.
fn name_at(bare: &str, from: usize) -> Option<(usize, usize)> {
    let rest = &bare[from..];
    let named = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '&'));
    let start = from + rest.len() - named.len();
    let end = bare[start..]
        .find(|c: char| !is_part(c) && c != '$')
        .map_or(bare.len(), |end| start + end);
    (start < end).then_some((start, end))
}

/// Whether it may stand in a name.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The name of a type of C that a line defines, behind what macros say of it: `class EXPORT Index : public Base`.
/// In `struct index *index_of(` it is only the type of something else.
fn of_type(bare: &str, from: usize) -> Option<(usize, usize)> {
    let (start, end) = name_at(bare, from)?;
    let (name, rest) = (&bare[start..end], bare[end..].trim_start());
    let is_attribute = head::is_attribute(name);
    if is_attribute && rest.starts_with('(') {
        let open = bare.len() - rest.len();
        return of_type(bare, open + brackets::closing(rest)? + 1);
    }
    let goes_on = rest.starts_with(|c: char| is_part(c) || matches!(c, '*' | '&'));
    match goes_on && rest.split(|c| !is_part(c)).next() != Some("final") {
        true if is_attribute => of_type(bare, end),
        true => None,
        false => Some((start, end)),
    }
}

/// `#define NAME`, also with blanks behind the sign.
fn macro_named(bare: &str) -> Option<(usize, usize)> {
    let rest = bare[1..].trim_start().strip_prefix("define")?;
    let is_word = rest.starts_with([' ', '\t']);
    name_at(bare, bare.len() - rest.len()).filter(|_| is_word)
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
fn assigned(tongue: Tongue, bare: &str) -> Option<(usize, usize)> {
    let sign = bare.find([' ', '=', ':'])?;
    let target = &bare[..sign];
    let plain = target.chars().all(|c| is_part(c) || matches!(c, '.' | '$'));
    if !plain || target.is_empty() {
        return None;
    }
    let behind = bare[sign..].trim_start();
    let is_set = behind.starts_with(['=', ':'])
        && !["==", "=>", "::"]
            .iter()
            .any(|sign| behind.starts_with(sign));
    let constant = target.len() > 2
        && target
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let defines = match tongue {
        // There an arrow is an arm of a `match`, and what has a colon is a field.
        Tongue::Rust => constant && behind.starts_with('='),
        Tongue::C | Tongue::Java | Tongue::Script | Tongue::Other => {
            constant || is_function(behind)
        }
    };
    if !is_set || !defines {
        return None;
    }
    let start = target.rfind('.').map_or(0, |dot| dot + 1);
    (start < sign).then_some((start, sign))
}

/// Whether a text has a function as a value.
fn is_function(text: &str) -> bool {
    text.contains("=>") || text.split(|c| !is_part(c)).any(|word| word == "function")
}

#[cfg(test)]
mod tests;
