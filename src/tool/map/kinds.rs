//! In which languages the files are, by the ends of their names.

use std::{cmp::Reverse, collections::BTreeMap};

use super::list::Listed;

/// Most kinds that are told by name.
const MOST: usize = 6;

/// Languages, each with the ends of names that its files have.
const KINDS: &[(&str, &[&str])] = &[
    ("Rust", &["rs"]),
    ("Python", &["py", "pyi", "pyx"]),
    ("JavaScript", &["js", "mjs", "cjs", "jsx"]),
    ("TypeScript", &["ts", "mts", "cts", "tsx"]),
    ("Go", &["go"]),
    ("C", &["c", "h"]),
    ("C++", &["cc", "cpp", "cxx", "hh", "hpp", "hxx", "inl"]),
    ("C#", &["cs"]),
    ("Java", &["java"]),
    ("Kotlin", &["kt", "kts"]),
    ("Scala", &["scala", "sc"]),
    ("Swift", &["swift"]),
    ("Ruby", &["rb", "rake", "gemspec"]),
    ("PHP", &["php"]),
    ("Perl", &["pl", "pm"]),
    ("Lua", &["lua"]),
    ("Elixir", &["ex", "exs"]),
    ("Erlang", &["erl", "hrl"]),
    ("Haskell", &["hs", "lhs"]),
    ("OCaml", &["ml", "mli"]),
    ("Clojure", &["clj", "cljs", "cljc"]),
    ("Dart", &["dart"]),
    ("R", &["r"]),
    ("Julia", &["jl"]),
    ("Zig", &["zig"]),
    ("Assembly", &["s", "asm"]),
    ("Shell", &["sh", "bash", "zsh"]),
    ("PowerShell", &["ps1"]),
    ("SQL", &["sql"]),
    ("HTML", &["html", "htm"]),
    ("CSS", &["css", "scss", "sass", "less"]),
    ("Vue", &["vue"]),
    ("Svelte", &["svelte"]),
    ("Markdown", &["md", "mdx", "markdown"]),
    ("reStructuredText", &["rst"]),
    ("text", &["txt"]),
    ("JSON", &["json", "json5", "jsonc"]),
    ("YAML", &["yaml", "yml"]),
    ("TOML", &["toml"]),
    ("XML", &["xml"]),
    ("CMake", &["cmake"]),
    ("Protocol Buffers", &["proto"]),
];

/// ` (300 Rust, 40 Markdown, 12 others)`, the commonest first; nothing where there is no file.
pub(super) fn told(files: &[Listed]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut others = 0;
    for file in files {
        match kind_of(&file.shown) {
            Some(kind) => *counts.entry(kind).or_default() += 1,
            None => others += 1,
        }
    }
    let mut kinds: Vec<(&str, usize)> = counts.into_iter().collect();
    kinds.sort_by_key(|(_, count)| Reverse(*count));
    others += kinds
        .iter()
        .skip(MOST)
        .map(|(_, count)| count)
        .sum::<usize>();
    let mut parts: Vec<String> = kinds
        .iter()
        .take(MOST)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    match others {
        0 => {}
        1 => parts.push("1 other".to_owned()),
        count => parts.push(format!("{count} others")),
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!(" ({})", parts.join(", ")),
    }
}

fn kind_of(path: &str) -> Option<&'static str> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let end = file.rsplit_once('.')?.1.to_lowercase();
    let mut kinds = KINDS.iter();
    kinds
        .find(|(_, ends)| ends.contains(&&*end))
        .map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commonest_languages_come_first_and_nothing_is_left_out() {
        let listed = |path: &str| Listed {
            shown: path.to_owned(),
            path: path.into(),
            bytes: 1,
        };
        for (paths, want) in [
            (&[][..], ""),
            (&["a/x.rs", "b.RS", "c.md"], " (2 Rust, 1 Markdown)"),
            (&["LICENSE", "a.b/Makefile"], " (2 others)"),
            (
                &["a.c", "a.go", "a.js", "a.py", "a.rb", "a.rs", "a.ts"],
                " (1 C, 1 Go, 1 JavaScript, 1 Python, 1 Ruby, 1 Rust, 1 other)",
            ),
        ] {
            let files: Vec<Listed> = paths.iter().map(|path| listed(path)).collect();
            assert_eq!(told(&files), want, "{paths:?}");
        }
    }
}
