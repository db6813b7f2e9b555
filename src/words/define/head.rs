//! Heads of functions that are told by a type before them and a block behind: C, C++, C#, Java. Pure.

use super::{WIDEST, is_control};

/// Most lines that a head may have.
const LONGEST: usize = 24;

/// What the line does with the name before its first bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// It begins a function of that name.
    Begins,
    /// It says that there is one elsewhere.
    Announces,
}

/// Where the name stands of the function that this line begins. `behind` are the lines after it, as far as they are
/// known.
pub(super) fn function<'a>(
    line: &'a str,
    behind: impl Iterator<Item = &'a str>,
) -> Option<(usize, usize)> {
    let line = line.trim_end();
    // What is called, or is only announced.
    if line.ends_with(';') {
        return None;
    }
    let Head {
        name,
        open,
        has_type,
    } = named(line)?;
    let mut behind = behind.peekable();
    // Where no more is known, what has no end goes on.
    if has_type && behind.peek().is_none() && line.ends_with(')') {
        return Some(name);
    }
    (does(line, open, behind)? == Does::Begins).then_some(name)
}

/// Whether the line says that there is a function of this name elsewhere: `int parse(char *text);`
pub(crate) fn announces<'a>(
    line: &'a str,
    name: &str,
    behind: impl Iterator<Item = &'a str>,
) -> bool {
    let Some(open) = line.find(&format!("{name}(")).map(|at| at + name.len()) else {
        return false;
    };
    let before = line[..open - name.len()].trim_start();
    let is_type = |c: char| c.is_alphanumeric() || "_*& <>:()".contains(c);
    let first = before
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .next();
    before.ends_with([' ', '*', '&'])
        && before.chars().all(is_type)
        && before.matches('(').count() == before.matches(')').count()
        && first.is_some_and(|first| !first.is_empty() && !is_control(first))
        && does(line, open, behind) == Some(Does::Announces)
}

/// What may begin a function.
struct Head {
    name: (usize, usize),
    /// Where the bracket behind it is.
    open: usize,
    /// Whether something stands before the name; else it is at the margin.
    has_type: bool,
}

fn named(line: &str) -> Option<Head> {
    let open = line.find('(')?;
    let before = line[..open].trim_end();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_head = |c: char| {
        is_part(c)
            || matches!(
                c,
                ' ' | '\t' | '*' | '&' | '<' | '>' | ':' | ',' | '~' | '[' | ']'
            )
    };
    if before.is_empty() || !before.chars().all(is_head) {
        return None;
    }
    let start = before.rfind(|c: char| !is_part(c)).map_or(0, |at| at + 1);
    let name = &before[start..];
    let mut words = before
        .split(|c: char| !is_part(c))
        .filter(|word| !word.is_empty());
    let first = words.next()?;
    let has_type = words.next().is_some();
    // Macros are spelt in capitals.
    let at_margin = start == 0 && before.contains(char::is_lowercase);
    let names_a_place = before.replace("::", "").contains(':');
    let is_name = !names_a_place
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !is_control(name);
    let head = Head {
        name: (start, before.len()),
        open,
        has_type,
    };
    (is_name && !is_control(first) && (has_type || at_margin)).then_some(head)
}

/// What stands behind the bracket that closes the one at `open`: a block, or an end.
fn does<'a>(line: &'a str, open: usize, behind: impl Iterator<Item = &'a str>) -> Option<Does> {
    let mut depth = 0_usize;
    let mut closed = false;
    // What is wider belongs to no head, and would cost too much.
    let behind = behind.take_while(|line| line.len() <= WIDEST);
    let lines = std::iter::once(&line[open..]).chain(behind.map(str::trim));
    for text in lines.take(LONGEST) {
        let mut rest = text;
        if !closed {
            let end = text.char_indices().find(|(_, c)| {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0
            });
            let Some((end, _)) = end else { continue };
            closed = true;
            rest = &text[end + 1..];
        }
        let rest = rest.split("//").next().unwrap_or_default();
        let rest = rest.split("/*").next().unwrap_or_default().trim();
        if rest.starts_with('{') || (rest.ends_with('{') && says_more(&rest[..rest.len() - 1])) {
            return Some(Does::Begins);
        }
        if rest.ends_with(';') {
            let ends = rest.trim_end_matches([';', ' ']);
            return (says_more(ends) || ends.starts_with('=')).then_some(Does::Announces);
        }
        // A constructor begins with what it sets: `: size_(size) {`.
        let set = rest.strip_prefix(':').map(str::trim_start);
        if set.is_some_and(|set| set.starts_with(|c: char| c.is_alphabetic() || c == '_')) {
            return Some(Does::Begins);
        }
        if !says_more(rest) {
            return None;
        }
    }
    // Of a body something would be known.
    (!closed).then_some(Does::Announces)
}

/// Whether a text has nothing but what may stand between arguments and a block.
fn says_more(text: &str) -> bool {
    let is_known = |word: &str| {
        matches!(
            word,
            "const" | "noexcept" | "override" | "final" | "throws" | "volatile" | "&" | "&&"
        )
    };
    let mut words = text.split_whitespace();
    match words.next() {
        None | Some("->" | "throws" | "where") => true,
        Some(word) => is_known(word) && words.all(is_known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_before_a_name_and_a_block_behind_it_make_a_function() {
        for (text, name) in [
            ("int oid_cmp(const oid *a, const oid *b)\n{", "oid_cmp"),
            (
                "static topic_t *topic_new(conf_t *c,\n    int n) {",
                "topic_new",
            ),
            (
                "Status DBImpl::Flush(const Options& o,\n  Handle* h) {",
                "Flush",
            ),
            ("DBImpl::DBImpl(const Options& o)\n    : o_(o) {", "DBImpl"),
            ("bool Empty() const\n{", "Empty"),
            ("    public async Task<int> Run(int a)\n    {", "Run"),
            ("main(argc, argv)\n{", "main"),
            ("int f(int (*by)(int))\n{", "f"),
            ("int oid_cmp(const oid *a, const oid *b);", ""),
            ("int oid_cmp(const oid *a,\n    const oid *b);", ""),
            ("virtual Status Flush() = 0;", ""),
            ("    oid_cmp(a, b)\n    {", ""),
            ("if (a)\n{", ""),
            ("else if (a)\n{", ""),
            ("return oid_cmp(a,\n  b)\n{", ""),
            ("int n = oid_cmp(a, b)\n{", ""),
            ("TEST(Journal, Reads)\n{", ""),
            ("PyList_New(int n)\n{", "PyList_New"),
            ("int f(int n) /* why */\n{", "f"),
            ("default: f(a)\n{", ""),
            ("void f(int a):", ""),
            ("print(a)\nb = {", ""),
            ("int oid_cmp(const oid *a, const oid *b)", "oid_cmp"),
            ("int oid_cmp(const oid *a", ""),
        ] {
            let mut lines = text.lines();
            let line = lines.next().unwrap();
            let found = function(line, lines).map_or("", |(start, end)| &line[start..end]);
            assert_eq!(found, name, "{text}");
        }
    }

    #[test]
    fn what_announces_a_function_is_told_from_what_calls_it() {
        for (text, announces) in [
            ("int cmp(const oid *a, const oid *b);", true),
            (
                "GIT_EXTERN(int) cmp(\n    const oid *a,\n    const oid *b);",
                true,
            ),
            ("GIT_EXTERN(int) cmp(\n    const oid *a,", true),
            ("virtual Status cmp() const override;", true),
            ("virtual Status cmp() = 0;", true),
            ("    cmp(a, b);", false),
            ("    return cmp(a, b);", false),
            ("    defer cmp(a,", false),
            ("    n = cmp(a, b);", false),
            ("    self.cmp(a, b);", false),
            ("    Oid::cmp(a, b);", false),
            ("int cmp(const oid *a)\n{", false),
        ] {
            let mut lines = text.lines();
            let line = lines.next().unwrap();
            assert_eq!(super::announces(line, "cmp", lines), announces, "{text}");
        }
    }
}
