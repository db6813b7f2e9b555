//! The shape of a file by the look of its lines: what introduces something. No parser: at worst a
//! passage is a few lines too long or too short.

use crate::words::{Tongue, WIDEST, is_note, name_defined};

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Blank,
    Text,
    /// A comment, an attribute or a decorator: belongs to what follows it.
    Note,
    /// A definition: how deep it stands, and where its name is.
    Def {
        depth: usize,
        name: (usize, usize),
    },
    /// A heading and its level.
    Head {
        level: usize,
    },
}

/// What each line of a text is; of prose if no language of code is told.
pub(super) fn marks(lines: &[&str], tongue: Option<Tongue>) -> Vec<Mark> {
    let mut marks = Vec::with_capacity(lines.len());
    let mut fenced = false;
    let mut underlines: Vec<u8> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim();
        let mark = if bare.is_empty() {
            Mark::Blank
        } else if line.len() > WIDEST {
            Mark::Text
        } else if let Some(tongue) = tongue {
            code(tongue, line, bare, &lines[at + 1..])
        } else {
            if bare.starts_with("```") || bare.starts_with("~~~") {
                fenced = !fenced;
            }
            let next = lines.get(at + 1).copied().unwrap_or("");
            if fenced {
                Mark::Text
            } else {
                heading(line, next, &mut underlines)
            }
        };
        marks.push(mark);
    }
    marks
}

fn heading(line: &str, next: &str, underlines: &mut Vec<u8>) -> Mark {
    let hashes = line.len() - line.trim_start_matches('#').len();
    let equals = line.len() - line.trim_start_matches('=').len();
    for level in [hashes, equals] {
        if (1..=6).contains(&level) && line[level..].starts_with(' ') {
            return Mark::Head { level };
        }
    }
    if let Some(rest) = line.trim_start().strip_prefix(".. ") {
        return directive(line, rest);
    }
    let under = next.trim_end();
    let ruled = under.len() >= 3
        && under.len() + 2 >= line.trim_end().chars().count()
        && under
            .as_bytes()
            .first()
            .is_some_and(|c| br##"=-~^"'`*+#.:_<>"##.contains(c))
        && under.bytes().all(|c| Some(&c) == under.as_bytes().first())
        && line.chars().any(char::is_alphanumeric)
        && !line.starts_with([' ', '|', '+']);
    if !ruled {
        return Mark::Text;
    }
    let rule = under.as_bytes()[0];
    let level = underlines
        .iter()
        .position(|known| *known == rule)
        .unwrap_or_else(|| {
            underlines.push(rule);
            underlines.len() - 1
        });
    Mark::Head { level: level + 1 }
}

/// `.. confval:: name`: what a manual defines, unless it only sets something off.
fn directive(line: &str, rest: &str) -> Mark {
    const SET_OFF: [&str; 18] = [
        "note",
        "warning",
        "tip",
        "code-block",
        "versionadded",
        "versionchanged",
        "deprecated",
        "image",
        "figure",
        "toctree",
        "seealso",
        "literalinclude",
        "include",
        "highlight",
        "todo",
        "index",
        "hint",
        "important",
    ];
    let Some((kind, name)) = rest.split_once("::") else {
        return Mark::Text;
    };
    let (kind, name) = (kind.trim(), name.trim());
    if name.is_empty() || kind.contains(' ') || SET_OFF.contains(&kind) {
        return Mark::Text;
    }
    let start = line.len() - line.trim_end().len();
    let end = line.len() - start;
    Mark::Def {
        depth: 100 + indent(line),
        name: (end - name.len(), end),
    }
}

fn indent(line: &str) -> usize {
    line.bytes()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .map(|b| if b == b'\t' { 4 } else { 1 })
        .sum()
}

fn code(tongue: Tongue, line: &str, bare: &str, behind: &[&str]) -> Mark {
    match name_defined(tongue, line, behind.iter().copied()) {
        Some(name) => Mark::Def {
            depth: indent(line),
            name,
        },
        None if is_note(bare) => Mark::Note,
        None => Mark::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_levels() {
        for (text, levels) in [
            ("# A\n\ntext\n## B\n", vec![1, 2]),
            ("```\n# no\n```\n", vec![]),
            (
                "Title\n=====\n\nPart\n----\n\nOther\n-----\n",
                vec![1, 2, 2],
            ),
            ("plain\n\n--\n", vec![]),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            let got: Vec<usize> = marks(&lines, None)
                .into_iter()
                .filter_map(|mark| match mark {
                    Mark::Head { level } => Some(level),
                    Mark::Blank | Mark::Text | Mark::Note | Mark::Def { .. } => None,
                })
                .collect();
            assert_eq!(got, levels, "{text}");
        }
    }

    #[test]
    fn definitions_have_depths_and_names() {
        let got = marks(&["    fn inner() {", "/// Doc.", ""], Some(Tongue::Rust));
        let name = (7, 12);
        assert_eq!(got, [Mark::Def { depth: 4, name }, Mark::Note, Mark::Blank]);
    }

    #[test]
    fn a_manual_defines_by_directives() {
        let lines = [".. confval:: the_name", ".. note:: this"];
        let got = marks(&lines, None);
        assert_eq!(
            got,
            [
                Mark::Def {
                    depth: 100,
                    name: (13, 21)
                },
                Mark::Text
            ]
        );
    }
}
