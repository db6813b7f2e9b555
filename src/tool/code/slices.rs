//! A text in slices of whole lines, so that whoever looks through it can stop in between. Pure.

use memchr::{memchr, memrchr};

/// The slices of a text, each of as many whole lines as have room in so many bytes; a longer line is one by
/// itself.
pub(super) fn slices(text: &[u8], most: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = match rest.get(..most) {
            None => rest.len(),
            Some(near) => {
                let last = memrchr(b'\n', near);
                let end = last.or_else(|| Some(most + memchr(b'\n', &rest[most..])?));
                end.map_or(rest.len(), |at| at + 1)
            }
        };
        let (slice, others) = rest.split_at(end);
        rest = others;
        Some(slice)
    })
}

/// Where the parts of a line begin and end, each of so many bytes, with so many of the one before.
pub(super) fn parts(
    line: usize,
    most: usize,
    again: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let step = (most - again).max(1);
    let last = line.saturating_sub(again.min(line.saturating_sub(1)));
    (0..last)
        .step_by(step)
        .map(move |start| (start, (start + most).min(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_whole_lines() {
        for (name, text, most, want) in [
            ("nothing", "", 4, vec![]),
            ("all", "a\nb", 4, vec!["a\nb"]),
            ("some", "a\nb\nc\nd\n", 5, vec!["a\nb\n", "c\nd\n"]),
            (
                "a long one",
                "a\nlong line\nb\n",
                4,
                vec!["a\n", "long line\n", "b\n"],
            ),
            ("long without end", "long line", 4, vec!["long line"]),
            ("blank", "\n\n\n\n\n", 2, vec!["\n\n", "\n\n", "\n"]),
        ] {
            let got: Vec<&[u8]> = slices(text.as_bytes(), most).collect();
            let want: Vec<&[u8]> = want.into_iter().map(str::as_bytes).collect();
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn parts_reach_into_each_other_and_are_all_of_a_line() {
        for (line, want) in [
            (0, vec![]),
            (1, vec![(0, 1)]),
            (8, vec![(0, 8)]),
            (9, vec![(0, 8), (6, 9)]),
            (14, vec![(0, 8), (6, 14)]),
            (15, vec![(0, 8), (6, 14), (12, 15)]),
        ] {
            let got: Vec<(usize, usize)> = parts(line, 8, 2).collect();
            assert_eq!(got, want, "{line}");
        }
    }
}
