//! Long sections in pieces, so that a list of two hundred changes is no single thing that fits every
//! question a little. Pure.

/// Longest piece, in lines.
pub(super) const MOST_LINES: usize = 24;
/// A piece is cut at the best place from here on.
const FEWEST_LINES: usize = 12;

/// Cuts lines `first` to `last` (from 1) into pieces, at blank lines and between items where it can.
pub(super) fn pieces(lines: &[&str], first: u32, last: u32) -> Vec<(u32, u32)> {
    let mut pieces = Vec::new();
    let mut start = first;
    while (last - start) as usize >= MOST_LINES {
        let at = |offset: usize| start as usize - 1 + offset;
        let line = |offset: usize| lines.get(at(offset)).copied().unwrap_or_default();
        let range = || (FEWEST_LINES..MOST_LINES).rev();
        // A piece begins after a blank line, or with a line that goes on with no other.
        let apart = range().find(|offset| line(offset - 1).trim().is_empty());
        let item = || range().find(|offset| begins(line(*offset)));
        let cut = apart.or_else(item).unwrap_or(MOST_LINES);
        let next = start + u32::try_from(cut).unwrap_or(u32::MAX);
        pieces.push((start, next - 1));
        start = next;
    }
    pieces.push((start, last));
    pieces
}

/// An item of a list or a row of a table.
fn begins(line: &str) -> bool {
    line.starts_with(['-', '*', '+', '|']) || line.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sections_are_cut_where_it_hurts_least() {
        let text = ["x"; 100];
        let mut blank = text;
        blank[15] = "";
        let mut item = text;
        item[14] = "- x";
        let mut early = text;
        early[3] = "";
        for (name, lines, first, last, want) in [
            ("short", text, 1, 24, vec![(1, 24)]),
            ("one line", text, 7, 7, vec![(7, 7)]),
            (
                "nowhere better",
                text,
                1,
                50,
                vec![(1, 24), (25, 48), (49, 50)],
            ),
            ("at a blank line", blank, 1, 30, vec![(1, 16), (17, 30)]),
            ("before an item", item, 1, 30, vec![(1, 14), (15, 30)]),
            ("not too early", early, 1, 30, vec![(1, 24), (25, 30)]),
        ] {
            assert_eq!(pieces(&lines, first, last), want, "{name}");
        }
    }
}
