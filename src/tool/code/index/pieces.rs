//! Where one passage of a file ends and the next begins. Pure.

use super::shape::Mark;

/// Lines after which a passage ends at the next blank one, and after which it ends anyway.
const LONG: usize = 28;
const LONGEST: usize = 44;
/// A passage of code shorter than this goes on over what is defined inside.
const SHORT: usize = 8;
/// A piece of a file: its lines from 0, what it opens with, and what it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first: usize,
    pub(super) last: usize,
    /// The lines of headings and definitions around it, outermost first.
    pub(super) within: Vec<usize>,
}

/// The passages of a text whose lines have these marks; together they are all of it.
pub(super) fn pieces(marks: &[Mark]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut around: Vec<(usize, usize)> = Vec::new();
    let (mut first, mut depth, mut opened) = (0, usize::MAX, 0);
    let close = |pieces: &mut Vec<Piece>, first: usize, end: usize, around: &[(usize, usize)]| {
        if first < end && marks[first..end].iter().any(|mark| *mark != Mark::Blank) {
            let within = around.iter().map(|(_, line)| *line).collect();
            pieces.push(Piece {
                first,
                last: end - 1,
                within,
            });
        }
    };
    for (at, mark) in marks.iter().enumerate() {
        let level = match mark {
            Mark::Head { level } => Some(*level),
            Mark::Def { depth, .. } => Some(10 + depth),
            Mark::Blank | Mark::Text | Mark::Note => None,
        };
        if let Some(level) = level {
            let is_head = level < 10;
            if is_head || level <= depth || at - first >= SHORT {
                let start = beginning(marks, first, at);
                close(&mut pieces, first, start, &around);
                first = start;
                depth = level;
                opened = at;
            }
            around.retain(|(outer, _)| *outer < level);
            around.push((level, at));
            continue;
        }
        let long = at - first;
        if (long >= LONG && *mark == Mark::Blank) || long >= LONGEST {
            close(&mut pieces, first, at, &around_of(&around, opened));
            first = at;
            depth = usize::MAX;
        }
    }
    close(&mut pieces, first, marks.len(), &around);
    pieces
}

fn around_of(around: &[(usize, usize)], opened: usize) -> Vec<(usize, usize)> {
    around
        .iter()
        .filter(|(_, line)| *line <= opened || opened == 0)
        .copied()
        .collect()
}

/// Where what line `at` introduces really begins: with its comments and attributes.
fn beginning(marks: &[Mark], first: usize, at: usize) -> usize {
    let notes = marks[first..at]
        .iter()
        .rev()
        .take_while(|mark| **mark == Mark::Note)
        .count();
    at - notes
}

#[cfg(test)]
mod tests {
    use super::{super::shape::marks, *};
    use crate::words::Tongue;

    #[test]
    fn passages_begin_with_the_comments_of_what_they_define() {
        let text = "use a;\n\n/// Doc.\n#[inline]\nfn one() {\n}\n\n// Two.\nfn two() {\n}\n";
        let lines: Vec<&str> = text.lines().collect();
        let got: Vec<(usize, usize)> = pieces(&marks(&lines, Some(Tongue::Other)))
            .iter()
            .map(|piece| (piece.first, piece.last))
            .collect();
        assert_eq!(got, [(0, 1), (2, 6), (7, 9)]);
    }

    #[test]
    fn passages_know_what_they_stand_in_and_end() {
        let mut text = "# A\n## B\n".to_owned();
        text.push_str(&"word\n".repeat(100));
        let lines: Vec<&str> = text.lines().collect();
        let pieces = pieces(&marks(&lines, None));
        assert!(pieces.len() > 2, "{pieces:?}");
        assert_eq!(
            pieces.last().map(|piece| piece.within.clone()),
            Some(vec![0, 1])
        );
        let covered: usize = pieces
            .iter()
            .map(|piece| piece.last + 1 - piece.first)
            .sum();
        assert_eq!(covered, lines.len());
    }
}
