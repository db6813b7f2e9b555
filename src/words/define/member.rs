//! Functions without a word that says so, told by the block behind their brackets: members of classes and objects, and
//! in other languages what has at least a type before its name. Pure.
//!
//! A call that ends in `{` is none: what opens there is its last argument, so that its bracket is still open.

use super::{
    Tongue, WIDEST,
    brackets::closing,
    head::{LONGEST, says_more},
    is_control, is_part,
};

/// Where in a bare line the name stands of the function that it begins: `type name(arguments) {`, `name(arguments) {`.
pub(super) fn function(tongue: Tongue, bare: &str) -> Option<(usize, usize)> {
    let head = bare.strip_suffix('{')?;
    let (start, end, open) = named(head)?;
    let before = &head[..start];
    let has_type =
        before.ends_with([' ', '*', '&', '>', ']']) && before.contains(char::is_alphanumeric);
    let close = open + closing(&head[open..])?;
    let is_empty = head[open + 1..close].trim().is_empty();
    let may = match tongue {
        // There a function has a word or a type, and macros look the same.
        Tongue::Rust | Tongue::C => false,
        Tongue::Java => has_type || !is_block(&head[start..end]),
        Tongue::Script => true,
        // A shell's functions name no arguments; elsewhere a block behind a bare call belongs to that.
        Tongue::Other => has_type || is_empty,
    };
    let is_told = may && may_precede_block(tongue, head[close + 1..].trim());
    is_told.then_some((start, end))
}

/// The same of a member of a script whose brackets are closed only in the lines behind.
pub(super) fn over_lines<'a>(
    bare: &str,
    behind: impl Iterator<Item = &'a str>,
) -> Option<(usize, usize)> {
    if !bare.ends_with(['(', '{', '[', ',']) {
        return None;
    }
    let (start, end, open) = named(bare)?;
    let mut text = bare[open..].to_owned();
    for line in behind.take_while(|line| line.len() <= WIDEST).take(LONGEST) {
        text.push('\n');
        text.push_str(line);
    }
    let rest = &text[closing(&text)? + 1..];
    let rest = rest.lines().next()?.trim().strip_suffix('{')?;
    may_precede_block(Tongue::Script, rest.trim()).then_some((start, end))
}

/// Where in a head the name before the first bracket begins and ends, and where that bracket is.
fn named(head: &str) -> Option<(usize, usize, usize)> {
    let open = head.find('(')?;
    let before = without_types(head[..open].trim_end());
    let first = before.split(|c| !is_part(c)).next()?;
    let is_plain = |c: char| is_part(c) || " $#*&<>:,~[]".contains(c);
    if is_control(first) || !before.chars().all(is_plain) {
        return None;
    }
    let start = before
        .rfind(|c: char| !is_part(c) && c != '$')
        .map_or(0, |at| at + 1);
    let name = &before[start..];
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'));
    (is_name && !is_control(name)).then_some((start, before.len(), open))
}

/// Whether it may stand between arguments and a block: the type of what is returned, or what a constructor sets first.
fn may_precede_block(tongue: Tongue, rest: &str) -> bool {
    (rest.starts_with(':') && tongue != Tongue::Other) || says_more(rest)
}

/// Without the types in brackets behind a name: `map<T>`.
fn without_types(before: &str) -> &str {
    let mut depth = 0_usize;
    let cut = before.char_indices().rev().find_map(|(at, c)| {
        match c {
            '>' => depth += 1,
            '<' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some((at, c))
    });
    match cut {
        Some((at, '<')) => before[..at].trim_end(),
        _ => before,
    }
}

/// Whether a word with brackets and a block behind it sets that block off.
fn is_block(word: &str) -> bool {
    matches!(
        word,
        "synchronized" | "using" | "lock" | "fixed" | "foreach" | "checked" | "unchecked"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_behind_closed_brackets_makes_a_member() {
        for (path, line, name) in [
            ("a.js", "handler (request) {", "handler"),
            ("a.js", "async load(a = {}, [b]) {", "load"),
            ("a.js", "*walk(tree) {", "walk"),
            ("a.js", "#close() {", "close"),
            ("a.ts", "get size(): number {", "size"),
            ("a.ts", "map<T, U>(by: (a: T) => U): List<U> {", "map"),
            ("a.js", "withLock('a', () => {", ""),
            ("a.js", "withLock('a', function () {", ""),
            ("a.js", "withLock(function(then) {", ""),
            ("a.js", "async function(a) {", ""),
            ("a.js", "if (ready(a)) {", ""),
            ("a.js", "switch(a) {", ""),
            ("a.js", "while (a) {", ""),
            ("a.js", "for (const a of walk(b)) {", ""),
            ("a.js", "catch (error) {", ""),
            ("a.js", "return load(a) {", ""),
            ("a.js", "load(a) || save(b) {", ""),
            ("a.java", "Pool(int size) {", "Pool"),
            ("a.java", "public List<Pool> all() throws Broken {", "all"),
            ("a.java", "synchronized (this) {", ""),
            ("a.java", "synchronized void close() {", "close"),
            ("a.java", "run(new Job() {", ""),
            ("a.java", "return new Job(a) {", ""),
            ("a.cs", "foreach (var a in b) {", ""),
            ("a.cs", "using (Open(a)) {", ""),
            ("a.cs", "public Pool(int a) : base(a) {", "Pool"),
            ("a.dart", "Future<void> load() async {", "load"),
            ("a.groovy", "void load(a) {", "load"),
            ("a.groovy", "load(a) {", ""),
            ("a.kt", "withContext(io) {", ""),
            ("a.scala", "extends Pool(a) {", ""),
            ("a.sh", "deploy_app() {", "deploy_app"),
            ("a.rs", "run_blocking(move || {", ""),
            ("a.rs", "match load(a) {", ""),
            ("a.rs", "spawn_all(a) {", ""),
            ("a.c", "git_vector_foreach(&a, i, x) {", ""),
        ] {
            let found =
                function(Tongue::of(path), line).map_or("", |(start, end)| &line[start..end]);
            assert_eq!(found, name, "{path}: {line}");
        }
    }

    #[test]
    fn arguments_may_have_lines_of_their_own() {
        for (text, name) in [
            ("load(\n  a,\n  b\n) {\n", "load"),
            ("load({\n  a,\n  b,\n}) {\n", "load"),
            ("load(\n  a: A,\n): Promise<B> {\n", "load"),
            ("load({\n  a,\n})\n", ""),
            ("load({\n  a,\n}).then(b => {\n", ""),
            ("load('a', () => {\n  save()\n})\nif (a) {", ""),
            ("if (load(\n  a\n)) {\n", ""),
            ("return load(\n  a\n) {\n", ""),
            ("load(\n  a,\n", ""),
        ] {
            let mut lines = text.lines();
            let line = lines.next().unwrap();
            let found = over_lines(line, lines).map_or("", |(start, end)| &line[start..end]);
            assert_eq!(found, name, "{text}");
        }
    }
}
