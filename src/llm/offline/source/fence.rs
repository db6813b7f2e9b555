//! Which lines of a text stand within a fence of code. Pure.

use super::Lines;

/// The signs of fences, and of how many one consists at least.
const SIGNS: [char; 2] = ['`', '~'];
const SHORTEST: usize = 3;

/// What opens or closes a block of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    sign: char,
    length: usize,
    /// Whether a language stands behind it, so that it closes nothing.
    names_language: bool,
}

impl Fence {
    /// That of the same sign, at least as long.
    fn is_closed_by(self, other: Self) -> bool {
        other.sign == self.sign && other.length >= self.length && !other.names_language
    }
}

/// Whether a line stands within a fence, as far as the lines right above it are known. Where they do not reach up to
/// the first line, only a fence that names a language surely opens something.
pub(in super::super) fn is_fenced(lines: &Lines, at: u32) -> bool {
    let run = (1..at).rev().take_while(|at| lines.contains_key(at));
    let first = run.last().unwrap_or(at);
    let mut open = (first == 1).then_some(None);
    for line in lines.range(first..at).map(|(_, line)| line.as_str()) {
        let Some(fence) = fence(line) else {
            continue;
        };
        open = match open {
            None if fence.names_language => Some(Some(fence)),
            Some(None) => Some(Some(fence)),
            Some(Some(opened)) if opened.is_closed_by(fence) => Some(None),
            unknown_or_within => unknown_or_within,
        };
    }
    matches!(open, Some(Some(_)))
}

fn fence(line: &str) -> Option<Fence> {
    let bare = line.trim_start();
    let sign = SIGNS.into_iter().find(|sign| bare.starts_with(*sign))?;
    let behind = bare.trim_start_matches(sign);
    let fence = Fence {
        sign,
        length: bare.len() - behind.len(),
        names_language: !behind.trim().is_empty(),
    };
    // What ends on the same line is code within a sentence.
    (fence.length >= SHORTEST && !behind.contains('`')).then_some(fence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_between_fences_are_code() {
        for (name, first, text, fenced) in [
            ("one fence", 1, "a\n```\n# b\n```\n# c", vec![3]),
            ("with a language", 1, "```sh\n# b\n```\n# c", vec![2]),
            ("set in", 1, "- a\n  ```\n# b\n  ```\n# c", vec![3]),
            ("others within", 1, "~~~\n```\n# b\n~~~\n# c", vec![3]),
            (
                "a shorter one within",
                1,
                "````md\n```\n# b\n```\n# c\n````\n# d",
                vec![3, 5],
            ),
            ("a longer one closes", 1, "```\n# b\n`````\n# c", vec![2]),
            ("on one line", 1, "```a```\n# b", vec![]),
            ("no end", 1, "```\n# b", vec![2]),
            ("from the middle on", 7, "# b\n```\n# c", vec![]),
            (
                "a language in the middle",
                7,
                "# b\n```\n# c\n```sh\n# d\n```\n# e",
                vec![11],
            ),
        ] {
            let lines: Lines = (first..).zip(text.lines().map(str::to_owned)).collect();
            let found: Vec<u32> = lines
                .keys()
                .copied()
                .filter(|at| lines[at].starts_with('#') && is_fenced(&lines, *at))
                .collect();
            assert_eq!(found, fenced, "{name}");
        }
    }
}
