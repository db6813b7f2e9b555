//! Passages as they are shown: their place on a line, then their lines in a fence.
//!
//! **Invariant:** nothing in a quote can end its fence, and no control character gets out. Pure.

use super::{
    evidence::Evidence,
    protocol::{inert_path, shortened},
    rank::Passage,
};

/// Longest quoted line, in characters.
const LONGEST_LINE: usize = 200;

/// Where a passage is: `path:line` or `path:start-end`.
pub(super) fn place(passage: &Passage) -> String {
    let path = inert_path(&passage.path);
    match passage.lines {
        (start, end) if start == end => format!("{path}:{start}"),
        (start, end) => format!("{path}:{start}-{end}"),
    }
}

/// A place as it stands in a sentence: marked if it could not be told from the words around it.
pub(super) fn in_sentence(place: &str) -> String {
    let parts = |c: char| c.is_whitespace() || "\"'`()[],;‹›*".contains(c);
    match place.contains(parts) {
        true => format!("`{place}`"),
        false => place.to_owned(),
    }
}

/// A place as it stands on a line of its own: marked if it would begin something there, such as a fence, in
/// which all that follows would be code.
fn alone(place: String) -> String {
    let begins = |c: char| c.is_whitespace() || c == '~';
    match place.starts_with(begins) {
        true => format!("`{place}`"),
        false => place,
    }
}

/// Its place, and under it what stands there.
pub(super) fn quote(passage: &Passage, evidence: &Evidence) -> String {
    let lines = evidence
        .files
        .get(&passage.path)
        .into_iter()
        .flat_map(|lines| {
            lines
                .range(passage.lines.0..=passage.lines.1)
                .map(|(_, line)| shown(line))
        });
    // Signal tags reach a model escaped; in a fence they are content and may stand as they are.
    let text = lines
        .collect::<Vec<_>>()
        .join("\n")
        .replace("&lt;signal", "<signal");
    let text = text.replace("&lt;/signal", "</signal");
    let place = alone(place(passage));
    format!("{place}\n{}", fenced(&text, language(&passage.path)))
}

/// Lines of code that stand for themselves, each with its place.
pub(super) fn listing<'a>(lines: impl Iterator<Item = (&'a str, u32, &'a str)>) -> String {
    let lines = lines.map(|(path, line, text)| {
        let path = inert_path(path);
        shown(&format!("{path}:{line}: {text}"))
    });
    fenced(&lines.collect::<Vec<_>>().join("\n"), "")
}

fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

fn shown(line: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\t' { ' ' } else { c };
    shortened(line.trim_end(), LONGEST_LINE)
        .chars()
        .map(plain)
        .collect()
}

/// Length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn language(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or("") {
        "rs" => "rust",
        "py" => "python",
        "js" | "mjs" | "jsx" => "javascript",
        "ts" | "tsx" => "typescript",
        "go" => "go",
        "c" | "h" => "c",
        "cc" | "cpp" | "hpp" => "cpp",
        "java" => "java",
        "sh" => "sh",
        "md" | "markdown" => "markdown",
        "toml" => "toml",
        "json" => "json",
        "yaml" | "yml" => "yaml",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::offline::{rank::About, source::FileKind, source::Lines, term::TermSet};

    fn passage(path: &str, lines: (u32, u32)) -> Passage {
        Passage {
            path: path.to_owned(),
            kind: FileKind::Code,
            lines,
            hit: lines.0,
            terms: TermSet::default(),
            path_terms: TermSet::default(),
            about: None::<About>,
            exact: false,
            is_note: false,
            record: None,
            score: 1,
        }
    }

    fn evidence(path: &str, text: &str) -> Evidence {
        let lines: Lines = (1..).zip(text.split('\n').map(str::to_owned)).collect();
        Evidence {
            files: [(path.to_owned(), lines)].into(),
            ..Evidence::default()
        }
    }

    #[test]
    fn a_quote_cannot_leave_its_fence() {
        let long = "x".repeat(300);
        let cut = format!("a.txt:1\n```\n{}…\n```", "x".repeat(199));
        for (name, path, text, lines, quoted) in [
            (
                "one line",
                "a.rs",
                "fn a() {}",
                (1, 1),
                "a.rs:1\n```rust\nfn a() {}\n```",
            ),
            (
                "several",
                "a.zig",
                "a\n  b\nc",
                (1, 2),
                "a.zig:1-2\n```\na\n  b\n```",
            ),
            (
                "a fence inside",
                "a.md",
                "```\nx\n```",
                (1, 3),
                "a.md:1-3\n````markdown\n```\nx\n```\n````",
            ),
            (
                "a longer one",
                "a.md",
                "`````",
                (1, 1),
                "a.md:1\n``````markdown\n`````\n``````",
            ),
            (
                "an escape sequence",
                "a.txt",
                "\u{1b}[2Jx\ty\r",
                (1, 1),
                "a.txt:1\n```\n [2Jx\ty\n```",
            ),
            ("a long line", "a.txt", long.as_str(), (1, 1), cut.as_str()),
            (
                "a path that would open one",
                "~~~x/a.rs",
                "a();",
                (1, 1),
                "`~~~x/a.rs:1`\n```rust\na();\n```",
            ),
            (
                "a path that would be code",
                "    a b.md",
                "# A",
                (1, 1),
                "`    a b.md:1`\n```markdown\n# A\n```",
            ),
        ] {
            assert_eq!(
                quote(&passage(path, lines), &evidence(path, text)),
                quoted,
                "{name}"
            );
        }
    }
}
