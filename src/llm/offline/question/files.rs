//! Files that a question names, with the line that it means: as people write them, as answers cite
//! them and as programs report faults.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::words::is_prose;

use super::super::{
    lexicon::holds,
    term::{Term, TermKind},
};

/// Endings of files in no folder and without a line: `reply.send` is no file.
const COMMON: &str = "\
    adoc asm awk bash bat bazel bib bzl c cc cfg cjs clj cmake cmd conf cpp cs css csv cts cxx d dart db diff ejs el \
    elm env erb erl ex exs f90 fish fs fsx gem go gql gradle graphql groovy h hbs hcl hh hpp hrl hs htm html hxx in \
    ini ipynb java jl js json json5 jsonl jsx kt kts less lhs lisp lock log lua m map markdown md mdx mjs mk ml mli \
    mm mod mts nim nix nu org patch pem php pl plist pm po prisma proto ps1 pug py pyi pyx r rb rego rkt rs rst s \
    sass sbt scala scm scss sh snap sol sql stan sty sum sv svelte svg swift tcl tex tf thrift tmpl toml ts tsv tsx \
    txt v vb vhdl vim vue wasm wat wit x xhtml xml xsd xsl yaml yml zig zsh \
    bin bmp dll docx exe gif gz ico jar jpeg jpg mp3 mp4 odt pdf png pyc sqlite tar tgz ttf webp woff woff2 xlsx xz zip";

/// `"a.py", line 12`, `a.py lines 12 to 20`, and `lines 12-20 of a.py`, in four languages.
static SPELT_OUT: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    let file = r#"["'`]?([\w./-]+\.[A-Za-z][A-Za-z0-9]{0,4})["'`]?"#;
    let line = r"(?:lines?|zeilen?|lignes?|l[ií]neas?)";
    let to = r"(?:\s?[-–]\s?| (?:to|until|through|and|bis|und|à|a|et|hasta|y) )";
    let numbers = format!(r"(\d{{1,7}})(?:{to}(\d{{1,7}}))?");
    let in_file = r"(?:of|in|from|von|aus|de|du|dans|en|del)(?: the)?(?: file)?";
    let behind = format!(r"(?i){file},? (?:(?:on|at|in) )?{line} {numbers}\b");
    let before = format!(r"(?i)\b{line} {numbers} {in_file} {file}");
    Some([Regex::new(&behind).ok()?, Regex::new(&before).ok()?])
});

/// `a.py:12`, `a.py:12:5`, `a.py:12-20`, `a.cs(12)` and `a.cs(12,5)`, less the path.
static NUMBERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let behind_colon = r":(\d{1,7})(?:[–-](\d{1,7}))?(?:[:–-]\d{1,7})*:?";
    let in_brackets = r"\((\d{1,7})(?:,\s?\d{1,7})*\)?:?";
    Regex::new(&format!("(?:{behind_colon}|{in_brackets})$")).ok()
});

/// A text in which lines of files are written as answers cite them.
pub(super) fn with_lines(text: &str) -> String {
    let Some([behind, before]) = &*SPELT_OUT else {
        return text.to_owned();
    };
    let place = |found: &Captures<'_>, [file, first, last]: [usize; 3]| {
        let group = |at| found.get(at).map_or("", |group| group.as_str());
        let last = Some(group(last)).filter(|last| !last.is_empty());
        let last = last.map_or_else(String::new, |last| format!("-{last}"));
        format!(" {}:{}{last} ", group(file), group(first))
    };
    let text = behind.replace_all(text, |found: &Captures<'_>| place(found, [1, 2, 3]));
    let text = before.replace_all(&text, |found: &Captures<'_>| place(found, [3, 1, 2]));
    text.into_owned()
}

/// The file that a word names.
pub(super) fn in_word(word: &str) -> Option<Term> {
    file(word, is_path)
}

/// The file that a quotation names.
pub(super) fn in_quotes(inside: &str) -> Option<Term> {
    file(inside, |path| is_path(path) || is_note(path))
        .or_else(|| file(inside, is_name).filter(|term| term.lines().is_some()))
}

fn file(text: &str, names: impl Fn(&str) -> bool) -> Option<Term> {
    let numbers = NUMBERS.as_ref().and_then(|numbers| numbers.captures(text));
    let (path, lines) = match &numbers {
        Some(found) => {
            let number = |at| found.get(at)?.as_str().parse::<u32>().ok();
            let first = number(1).or_else(|| number(3)).filter(|first| *first > 0);
            let lines = first.map(|first| {
                let last = number(2).filter(|last| *last >= first).unwrap_or(first);
                (first, last)
            });
            (&text[..text.len() - found[0].len()], lines)
        }
        None => (text, None),
    };
    let ending = path.rsplit('.').next().unwrap_or_default();
    let is_file = path.contains('/') || lines.is_some() || holds(COMMON, &ending.to_lowercase());
    (is_file && names(path)).then(|| Term::new(TermKind::Path, path).at_lines(lines))
}

/// Whether this names a file: it ends with an extension that begins with a letter.
fn is_path(token: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    token.chars().all(part) && is_name(token)
}

/// The same with anything before the extension.
fn is_name(token: &str) -> bool {
    let Some((stem, extension)) = token.rsplit_once('.') else {
        return false;
    };
    let file = stem.rsplit('/').next().unwrap_or(stem);
    (file.len() >= 2 || token.contains('/'))
        && (1..=5).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_lowercase())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_note(token: &str) -> bool {
    is_prose(token) && is_name(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_to_their_end_as_people_say_them() {
        for (text, lines) in [
            ("show me lines 10-20 of src/a.py", Some((10, 20))),
            ("lines 10 – 20 in `src/a.py`", Some((10, 20))),
            ("lines 10 to 20 of the file src/a.py", Some((10, 20))),
            ("src/a.py lines 100 to 120", Some((100, 120))),
            ("src/a.py, lines 100 through 120", Some((100, 120))),
            ("src/a.py:100-104", Some((100, 104))),
            ("src/a.py:100:5", Some((100, 100))),
            ("src/a.py:9-3", Some((9, 9))),
            ("src/a.py:1-9999", Some((1, 60))),
            ("zeige Zeile 12 von src/a.py", Some((12, 12))),
            ("Zeilen 12 bis 14 aus src/a.py", Some((12, 14))),
            ("src/a.py Zeile 12", Some((12, 12))),
            ("ligne 12 de src/a.py", Some((12, 12))),
            ("lignes 12 à 14 de src/a.py", Some((12, 14))),
            ("línea 12 de src/a.py", Some((12, 12))),
            ("las líneas 12 a 14 de src/a.py", Some((12, 14))),
            ("src/a.py:0", None),
            ("12 lines of src/a.py", None),
        ] {
            let text = with_lines(text);
            let mut words = text.split_whitespace();
            let file = words.find_map(|word| in_word(word.trim_matches('`')));
            let file = file.map(|file| (file.shown.clone(), file.lines()));
            assert_eq!(file, Some(("src/a.py".to_owned(), lines)), "{text}");
        }
    }
}
