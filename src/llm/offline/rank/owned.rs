//! Whether what a passage defines lies in what the question says: in a type by the names that a search told or by
//! the heads above it, in a module by the name of its file or folder. Pure.

use super::{
    super::{
        evidence::Evidence,
        question::{Sought, has_name, is_that_name},
        source::{Introduces, Lines, implements, indent, introduces},
        uses::has_word,
        words::subwords,
    },
    Passage,
};

/// Where a definition lies, as the question has it; the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Lies {
    /// In that very one.
    Within,
    /// In what that implements.
    InTrait,
    /// In what implements that.
    InImplementor,
    /// In a file or folder of that name.
    InFile,
    Elsewhere,
}

/// Where the definition lies that a passage has; elsewhere if it has none of that name.
pub(in super::super) fn lies(passage: &Passage, evidence: &Evidence, sought: Sought<'_>) -> Lies {
    let path = passage.path.as_str();
    let (Some(owner), Some(lines)) = (sought.owner, evidence.files.get(path)) else {
        return Lies::Elsewhere;
    };
    let defines = |at: &u32| match introduces(path, lines, *at) {
        Some(Introduces::Definition { name }) => name == sought.name,
        Some(Introduces::Heading { .. }) | None => false,
    };
    let Some(at) = (passage.lines.0..=passage.lines.1).find(defines) else {
        return Lies::Elsewhere;
    };
    if is_said_in(&lines[&at], owner, sought.name) {
        return Lies::Within;
    }
    let mut around = around(evidence, path, at);
    around.retain(|name| name != sought.name);
    let best = around.iter().map(|name| names(name, owner)).min();
    match best.unwrap_or(Lies::Elsewhere) {
        // What lies in another type lies in its file by chance.
        Lies::Elsewhere if !is_type(owner) || around.is_empty() => in_file(path, owner),
        best => best,
    }
}

/// What a line lies in, as far as a search told it or the heads above it are known.
pub(in super::super) fn around(evidence: &Evidence, path: &str, at: u32) -> Vec<String> {
    let lines = evidence
        .files
        .get(path)
        .filter(|lines| lines.contains_key(&at));
    let above = lines.map(|lines| names_above(path, lines, at));
    let places = evidence.places.iter().filter(|place| place.path == path);
    let places = places.filter(|place| (place.lines.0..=place.lines.1).contains(&at));
    let told = places.flat_map(|place| place.within.iter().cloned());
    above.unwrap_or_default().into_iter().chain(told).collect()
}

/// Whether a passage has this very name: in a line, or as what its file is called.
pub(in super::super) fn has(passage: &Passage, evidence: &Evidence, name: &str) -> bool {
    let (first, last) = passage.lines;
    let lines = evidence.files.get(&passage.path).into_iter();
    let mut lines = lines.flat_map(|lines| lines.range(first..=last));
    is_in_path(&passage.path, name) || lines.any(|(_, line)| has_name(line, name))
}

/// Whether a file or a folder is called so.
pub(in super::super) fn is_in_path(path: &str, name: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| {
        let stem = part.split_once('.').map_or(part, |(stem, _)| stem);
        is_that_name(stem, name)
    })
}

/// How what encloses a place, as outlines call it, is what the question names: `Router`, `Clone for Router`.
pub(in super::super) fn names(enclosing: &str, owner: &str) -> Lies {
    match enclosing.split_once(" for ") {
        None if enclosing == owner => Lies::Within,
        Some((_, implementor)) if implementor == owner => Lies::InTrait,
        Some((implemented, _)) if implemented == owner => Lies::InImplementor,
        _ => Lies::Elsewhere,
    }
}

/// Whether a line itself says what it lies in: `Status DBImpl::Get(`, `Router.prototype.nest =`.
pub(in super::super) fn is_said_in(line: &str, owner: &str, name: &str) -> bool {
    ["::", ".", ".prototype."]
        .iter()
        .any(|joint| has_word(line, &format!("{owner}{joint}{name}")))
}

/// What encloses a line by the heads above it, as far as those are known.
fn names_above(path: &str, lines: &Lines, at: u32) -> Vec<String> {
    let mut depth = indent(&lines[&at]);
    let above = (1..at)
        .rev()
        .map_while(|above| Some((above, lines.get(&above)?)));
    let mut names = Vec::new();
    for (above, line) in above {
        if depth == 0 {
            break;
        }
        let bare = line.trim_start();
        // What ends a head of several lines is none.
        let is_end = bare.starts_with(['{', '}', ')']) || bare.starts_with("where");
        if bare.is_empty() || is_end || indent(line) >= depth {
            continue;
        }
        depth = indent(line);
        match introduces(path, lines, above) {
            _ if implements(line) => names.extend(implementing(line)),
            Some(Introduces::Definition { name }) => names.push(name.to_owned()),
            Some(Introduces::Heading { .. }) | None => {}
        }
    }
    names
}

/// `impl<S> Clone for Router<S> {` as outlines call it: `Clone for Router`.
pub(in super::super) fn implementing(line: &str) -> Option<String> {
    let mut depth = 0_i32;
    let mut previous = ' ';
    let mut bare = String::new();
    for c in line.trim().chars() {
        match c {
            '<' => depth += 1,
            '>' if previous != '-' => depth -= 1,
            '{' => break,
            _ if depth == 0 => bare.push(c),
            _ => {}
        }
        previous = c;
    }
    let (_, bare) = bare.split_once("impl")?;
    let bare = bare.split(" where ").next().unwrap_or(bare);
    let last = |path: &str| path.trim().rsplit("::").next().unwrap_or(path).to_owned();
    Some(match bare.split_once(" for ") {
        Some((implemented, implementor)) => {
            format!("{} for {}", last(implemented), last(implementor))
        }
        None => last(bare),
    })
}

fn in_file(path: &str, owner: &str) -> Lies {
    let owner = subwords(owner);
    let is_owner = |part: &str| {
        let stem = part.split_once('.').map_or(part, |(stem, _)| stem);
        subwords(stem).concat() == owner.concat()
    };
    match path.split('/').any(is_owner) {
        true => Lies::InFile,
        false => Lies::Elsewhere,
    }
}

fn is_type(owner: &str) -> bool {
    owner.starts_with(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::offline::evidence::Place;

    fn lies_of(path: &str, text: &str, within: &[&str], (owner, name): (&str, &str)) -> Lies {
        let mut evidence = Evidence::default();
        let lines: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
        let last = lines.len() as u32;
        evidence.files.insert(path.to_owned(), lines);
        if !within.is_empty() {
            evidence.places.push(Place {
                path: path.to_owned(),
                lines: (1, last),
                within: within.iter().map(|&name| name.to_owned()).collect(),
                marked: Vec::new(),
                record: None,
                has: Vec::new(),
            });
        }
        let sought = Sought {
            name,
            owner: Some(owner),
        };
        lies(&Passage::at(path, (1, last), last), &evidence, sought)
    }

    #[test]
    fn what_a_definition_lies_in_is_told_by_names_heads_lines_and_files() {
        let nest = ("Router", "nest");
        for (path, text, within, sought, lies) in [
            (
                "a.rs",
                "    fn nest() {",
                &["Router", "nest"][..],
                nest,
                Lies::Within,
            ),
            (
                "a.rs",
                "    fn nest() {",
                &["Tree", "nest"],
                nest,
                Lies::Elsewhere,
            ),
            (
                "a.rs",
                "    fn nest() {",
                &["Nest for Router", "nest"],
                nest,
                Lies::InTrait,
            ),
            (
                "a.rs",
                "    fn nest() {",
                &["Router for Tree", "nest"],
                nest,
                Lies::InImplementor,
            ),
            (
                "a.rs",
                "impl<S> Router<S>\nwhere\n    S: A<B>,\n{\n    fn nest() {",
                &[],
                nest,
                Lies::Within,
            ),
            (
                "a.rs",
                "impl<F: Fn() -> A> a::Nest<F> for b::Router {\n    fn nest() {",
                &[],
                nest,
                Lies::InTrait,
            ),
            (
                "a.rs",
                "impl Tree {\n    fn nest() {",
                &[],
                nest,
                Lies::Elsewhere,
            ),
            (
                "a.rs",
                "impl Router {\n}\nfn nest() {",
                &[],
                nest,
                Lies::Elsewhere,
            ),
            (
                "a.py",
                "class QuerySet(A):\n\n    x = 1\n\n    def filter(self):",
                &[],
                ("QuerySet", "filter"),
                Lies::Within,
            ),
            (
                "a.cc",
                "Status DBImpl::Get(const Options& options) {",
                &[],
                ("DBImpl", "Get"),
                Lies::Within,
            ),
            (
                "a.cc",
                "Status MyDBImpl::Get(const Options& options) {",
                &[],
                ("DBImpl", "Get"),
                Lies::Elsewhere,
            ),
            (
                "query_set.py",
                "def filter():",
                &[],
                ("QuerySet", "filter"),
                Lies::InFile,
            ),
            (
                "src/router/mod.rs",
                "fn nest() {",
                &["nest"],
                ("router", "nest"),
                Lies::InFile,
            ),
            (
                "src/router/mod.rs",
                "fn nest() {",
                &["Tree", "nest"],
                ("router", "nest"),
                Lies::InFile,
            ),
            (
                "src/router/mod.rs",
                "fn nest() {",
                &["Tree", "nest"],
                nest,
                Lies::Elsewhere,
            ),
            (
                "a.rs",
                "    fn nested() {",
                &["Router", "nested"],
                nest,
                Lies::Elsewhere,
            ),
        ] {
            let got = lies_of(path, text, within, sought);
            assert_eq!(got, lies, "{path}: {text}");
        }
    }
}
