//! Heads of functions that are told by a type before them and a block behind: C, C++, C#, Java. Pure.

use std::borrow::Cow;

use super::{Tongue, WIDEST, brackets::closing, is_control, is_part};

/// Most lines that a head may have.
pub(super) const LONGEST: usize = 24;

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
    tongue: Tongue,
    line: &'a str,
    behind: impl Iterator<Item = &'a str>,
) -> Option<(usize, usize)> {
    let line = line.trim_end();
    // What is called, or is only announced.
    if line.ends_with(';') {
        return None;
    }
    if let Some((name, open)) = by_macro(line) {
        return (does(line, open, behind)? == Does::Begins).then_some(name);
    }
    let Head {
        name,
        open,
        has_type,
    } = named(tongue, line)?;
    let mut behind = behind.peekable();
    // Where no more is known, what has no end goes on.
    if has_type && behind.peek().is_none() && line.ends_with(')') {
        return Some(name);
    }
    (does(line, open, behind)? == Does::Begins).then_some(name)
}

/// What a macro at the margin defines that has a block behind it, and where its bracket is: a test is called as the
/// last thing in its brackets (`TEST_F(Journal, Reads)`), and else it is the first (`PHP_FUNCTION(strlen)`).
fn by_macro(line: &str) -> Option<((usize, usize), usize)> {
    let open = line.find('(')?;
    let word = line[..open].trim_end();
    if !word.chars().all(is_part) || !is_attribute(word) || word.starts_with("__") {
        return None;
    }
    let end = open + closing(&line[open..])?;
    // What goes on in the same line has a name of its own.
    if !matches!(line[end + 1..].trim(), "" | "{") {
        return None;
    }
    let arguments = &line[open + 1..end];
    let from = match word.starts_with("TEST") {
        true => arguments.rfind(',').map_or(0, |at| at + 1),
        false => 0,
    };
    let name = arguments[from..].split(',').next()?;
    let start = open + 1 + from + name.len() - name.trim_start().len();
    let name = name.trim();
    let is_name = name.chars().all(is_part) && name.starts_with(|c: char| !c.is_numeric());
    is_name.then_some(((start, start + name.len()), open))
}

/// What may begin a function.
struct Head {
    name: (usize, usize),
    /// Where the bracket behind it is.
    open: usize,
    /// Whether something stands before the name; else it is at the margin.
    has_type: bool,
}

fn named(tongue: Tongue, line: &str) -> Option<Head> {
    let is_head = |c: char| is_part(c) || " \t*&<>:,~[]".contains(c);
    let first = line.trim_start().split(|c| !is_part(c)).next()?;
    let (from, open) = bracket(line, 0)?;
    let before = line[from..open].trim_end();
    if is_control(first) || before.is_empty() || !before.chars().all(is_head) {
        return None;
    }
    let start = before.rfind(|c: char| !is_part(c)).map_or(0, |at| at + 1);
    let name = &before[start..];
    let words = before.split(|c| !is_part(c));
    let has_type = from > 0 || words.filter(|word| !word.is_empty()).count() > 1;
    let has_small = name.contains(char::is_lowercase);
    // Macros are spelt in capitals.
    let at_margin = before[..start].chars().all(|c| matches!(c, '*' | '&')) && has_small;
    // A constructor is called as its type; what else stands alone within a block is called.
    let builds = tongue == Tongue::C
        && line.ends_with('{')
        && name.starts_with(char::is_uppercase)
        && has_small;
    let names_a_place = before.replace("::", "").contains(':');
    let is_name = !names_a_place
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && !is_control(name);
    let head = Head {
        name: (from + start, from + before.len()),
        open,
        has_type,
    };
    (is_name && (has_type || at_margin || builds)).then_some(head)
}

/// The bracket behind the name of a function, and where the words before that begin: behind what an attribute or a
/// macro says of it, which has brackets as well.
fn bracket(line: &str, from: usize) -> Option<(usize, usize)> {
    let open = from + line[from..].find('(')?;
    let before = line[from..open].trim_end();
    let word = before.rsplit(|c| !is_part(c)).next()?;
    if !is_attribute(word) {
        return Some((from, open));
    }
    let end = open + closing(&line[open..])? + 1;
    let rest = line[end..].trim_start();
    let goes_on = rest.starts_with(|c: char| is_part(c) || c == '*') && rest.contains('(');
    match goes_on {
        true => bracket(line, end),
        false => Some((from, open)),
    }
}

/// Whether a word only tells a compiler more of what is defined, as what is spelt in capitals does.
pub(super) fn is_attribute(word: &str) -> bool {
    matches!(
        word,
        "__attribute__" | "__declspec" | "alignas" | "_Alignas"
    ) || (word.len() > 2
        && word.contains(char::is_alphabetic)
        && !word.contains(char::is_lowercase))
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
        let rest = rest.split("/*").next().unwrap_or_default();
        let rest = without_attributes(rest);
        let rest = rest.trim();
        let opens = rest.split_once('{');
        if opens.is_some_and(|(before, _)| says_more(before)) {
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

/// Without what attributes and macros say: `__attribute__((cold))`, `REQUIRES(lock)`.
fn without_attributes(text: &str) -> Cow<'_, str> {
    let words = text.split(|c| !is_part(c));
    let mut attributes = words.filter(|word| is_attribute(word));
    let Some(attribute) = attributes.next() else {
        return Cow::Borrowed(text);
    };
    let Some((before, behind)) = text.split_once(attribute) else {
        return Cow::Borrowed(text);
    };
    let rest = behind.trim_start();
    let rest = match rest.starts_with('(') {
        true => closing(rest).map_or("", |end| &rest[end + 1..]),
        false => rest,
    };
    Cow::Owned(format!("{before} {}", without_attributes(rest)))
}

/// Whether a text has nothing but what may stand between arguments and a block.
pub(super) fn says_more(text: &str) -> bool {
    let is_known = |word: &str| {
        matches!(
            word,
            "const" | "noexcept" | "override" | "final" | "throws" | "volatile" | "&" | "&&"
        )
    };
    let mut words = text.split_whitespace();
    match words.next() {
        None | Some("->" | "throws" | "where" | "async" | "async*" | "sync*") => true,
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
            ("bool Empty() const { return n == 0; }", "Empty"),
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
            ("TEST(Journal, Reads)\n{", "Reads"),
            ("TEST_F(Journal, Reads) {", "Reads"),
            ("PHP_FUNCTION(read_it)\n{", "read_it"),
            ("READ_IT(journal)", ""),
            ("READ_IT(journal)\n\nint a;", ""),
            ("PyList_New(int n)\n{", "PyList_New"),
            ("int f(int n) /* why */\n{", "f"),
            ("default: f(a)\n{", ""),
            ("void f(int a):", ""),
            ("print(a)\nb = {", ""),
            ("static int\nwalk(int a)\n{", ""),
            ("walk(int a)\n{", "walk"),
            ("*walk (int a)\n{", "walk"),
            ("const char *walk(int a)\n{", "walk"),
            ("GIT_INLINE(int) walk(int a)\n{", "walk"),
            ("__attribute__((cold)) static void walk(int a)\n{", "walk"),
            ("static __attribute__((cold)) void walk(int a) {", "walk"),
            ("void walk(int a) __attribute__((cold))\n{", "walk"),
            ("walk(int a) __attribute__((cold, used))\n{", "walk"),
            ("void walk(int a) REQUIRES(lock_) {", "walk"),
            ("void walk(int a) __attribute__((cold));", ""),
            ("    Walk(int a) {", "Walk"),
            ("    Walk(int a)\n    {", ""),
            ("    walk_each(&a, i, x) {", ""),
            ("    Q_FOREACH(a, b) {", ""),
            ("    else walk_each(&a, i, x) {", ""),
            ("int oid_cmp(const oid *a, const oid *b)", "oid_cmp"),
            ("int oid_cmp(const oid *a", ""),
        ] {
            let mut lines = text.lines();
            let line = lines.next().unwrap();
            let found = function(Tongue::C, line, lines);
            let found = found.map_or("", |(start, end)| &line[start..end]);
            assert_eq!(found, name, "{text}");
        }
    }
}
