//! Passages of documents that would be headings and nothing else: with the first paragraph below. Pure.

use super::{
    super::source::{FileKind, Introduces, Lines, introduces},
    Passage,
};

/// So far below a heading its first paragraph may begin, and so long it may be, in lines.
const MOST_BLANK: u32 = 6;
const MOST_LINES: u32 = 12;

/// A passage that goes on to the end of a paragraph, if it is headings alone and that is known.
pub(super) fn with_paragraph(mut passage: Passage, lines: &Lines) -> Passage {
    let (first, last) = passage.lines;
    let says = |at: u32| {
        let text = lines.get(&at).map_or("", |line| line.trim());
        text.contains(char::is_alphanumeric) && !is_heading(&passage.path, lines, at)
    };
    let is_of_headings = (first..=last).any(|at| is_heading(&passage.path, lines, at));
    if passage.kind != FileKind::Docs || !is_of_headings || (first..=last).any(says) {
        return passage;
    }
    let below = (last + 1..=last + MOST_BLANK).take_while(|at| lines.contains_key(at));
    let begins = below.clone().find(|at| says(*at));
    if let Some(begins) = begins {
        let goes_on = |at: &u32| {
            let is_blank = lines.get(at).is_none_or(|line| line.trim().is_empty());
            !is_blank && !is_heading(&passage.path, lines, *at)
        };
        let paragraph = (begins..begins + MOST_LINES).take_while(goes_on);
        passage.lines.1 = paragraph.last().unwrap_or(begins);
    }
    passage
}

/// Passages without those that lie in an earlier one.
pub(super) fn distinct(passages: impl Iterator<Item = Passage>) -> Vec<Passage> {
    let mut distinct: Vec<Passage> = Vec::new();
    for passage in passages {
        let is_within = |known: &Passage| {
            let (first, last) = known.lines;
            known.path == passage.path && first <= passage.lines.0 && passage.lines.1 <= last
        };
        if passage.lines.0 == 0 || !distinct.iter().any(is_within) {
            distinct.push(passage);
        }
    }
    distinct
}

fn is_heading(path: &str, lines: &Lines, at: u32) -> bool {
    matches!(
        introduces(path, lines, at),
        Some(Introduces::Heading { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_shown_with_what_stands_below_it() {
        for (name, text, lines, want) in [
            (
                "a paragraph",
                "# A\n\nOne.\nTwo.\n\nThree.\n",
                (1, 1),
                (1, 4),
            ),
            ("blank lines are no text", "# A\n\nOne.\n", (1, 2), (1, 3)),
            (
                "headings below one another",
                "# A\n\n## B\nOne.\n## C\n",
                (1, 1),
                (1, 4),
            ),
            ("it has text", "# A\nOne.\nTwo.\n", (1, 2), (1, 2)),
            ("text alone", "One.\n\nTwo.\n", (1, 1), (1, 1)),
            ("nothing below", "# A\n", (1, 1), (1, 1)),
        ] {
            let known: Lines = (1..).zip(text.lines().map(str::to_owned)).collect();
            let passage = Passage::at("a.md", lines, lines.0);
            assert_eq!(with_paragraph(passage, &known).lines, want, "{name}");
        }
        let code: Lines = [(1, "# a comment".to_owned()), (2, "x = 1".to_owned())].into();
        let passage = Passage::at("a.py", (1, 1), 1);
        assert_eq!(with_paragraph(passage, &code).lines, (1, 1));
    }
}
