//! Splits a note into sections by its headings.

use crate::tool::{
    outline::{lineage, outline},
    text::{clipped, on_one_line},
};

/// Maximum length of a section's name and of a title, in characters.
const MAX_NAME: usize = 400;
const MAX_FRONT: usize = 100;
/// Separates the headings above a section.
pub(super) const HEADING_SEPARATOR: &str = " › ";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) title: Option<String>,
    pub(super) sections: Vec<Section>,
    pub(super) lines: u32,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) heading: String,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) end: u32,
}

impl Note {
    pub(super) fn read(path: &str, text: &str) -> Self {
        let lines = u32::try_from(text.lines().count()).unwrap_or(u32::MAX);
        let symbols = outline(path, text);
        let begins: Vec<u32> = symbols.iter().map(|symbol| symbol.first_line).collect();
        let first = begins.first().map_or(lines, |first| first - 1);
        let mut sections = Vec::with_capacity(symbols.len() + 1);
        if first > 0 {
            sections.push(Section {
                first: 1,
                last: first,
                end: first,
                ..Section::default()
            });
        }
        let ends = begins.iter().skip(1).map(|next| next - 1).chain([lines]);
        for (symbol, last) in symbols.iter().zip(ends) {
            let names = lineage(&symbols, symbol).map(|one| tidy(&one.name));
            let mut names: Vec<String> = names.collect();
            names.reverse();
            let name = names.join(HEADING_SEPARATOR);
            sections.push(Section {
                name: clipped(&name, MAX_NAME).0.to_owned(),
                heading: tidy(&symbol.name),
                first: symbol.first_line,
                last,
                end: symbol.last_line.max(last),
            });
        }
        let heading = sections.iter().find(|section| !section.heading.is_empty());
        let title = title(text).or_else(|| Some(heading?.heading.clone()));
        Self {
            title,
            sections,
            lines,
        }
    }
}

fn title(text: &str) -> Option<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().take(MAX_FRONT);
    let mark = lines.next()?.trim_end();
    if !["---", "+++"].contains(&mark) {
        return None;
    }
    let mut front = lines.take_while(|line| line.trim_end() != mark.trim_end());
    let title = front.find_map(|line| {
        let rest = line.strip_prefix("title")?.trim_start();
        rest.strip_prefix([':', '='])
    });
    let title = title?.trim().trim_matches(['"', '\'']);
    (!title.is_empty()).then(|| clipped(&tidy(title), MAX_NAME).0.to_owned())
}

fn tidy(words: &str) -> String {
    on_one_line(&words.replace('`', "")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_divide_a_note() {
        for (name, text, title, want) in [
            ("nothing", "", None, &[][..]),
            ("no heading", "x\ny\n", None, &[("", 1, 2, 2)]),
            (
                "levels",
                "a\n# One\nx\n## Two `b`\n\ny\n# Three\n",
                Some("One"),
                &[
                    ("", 1, 1, 1),
                    ("One", 2, 3, 6),
                    ("One › Two b", 4, 6, 6),
                    ("Three", 7, 7, 7),
                ],
            ),
            (
                "underlined",
                "One\n===\nx\n\nTwo\n---\n",
                Some("One"),
                &[("One", 1, 4, 6), ("One › Two", 5, 6, 6)],
            ),
            (
                "code, quotes and lists",
                "# One\n```\n# no\n```\n> # no\n\n- # no\n",
                Some("One"),
                &[("One", 1, 7, 7)],
            ),
            (
                "front matter",
                "---\ntags: [a]\ntitle: \"My note\"\n---\n# One\n",
                Some("My note"),
                &[("", 1, 4, 4), ("One", 5, 5, 5)],
            ),
            (
                "an inner level first, and Windows",
                "\u{feff}### Deep\r\nx\r\n# Up\r\n",
                Some("Deep"),
                &[("Deep", 1, 2, 2), ("Up", 3, 3, 3)],
            ),
        ] {
            let note = Note::read("a.md", text);
            let sections: Vec<(&str, u32, u32, u32)> = note
                .sections
                .iter()
                .map(|one| (one.name.as_str(), one.first, one.last, one.end))
                .collect();
            assert_eq!(sections, want, "{name}");
            assert_eq!(note.title.as_deref(), title, "{name}");
        }
    }
}
