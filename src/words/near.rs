//! Which words may be misspelt ones.

/// How many letters have to be put in, left out, changed or swapped with their neighbour to make
/// one word of the other; none if that is more than `most`.
pub(crate) fn apart(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let same = a[i - 1] == b[j - 1];
            let mut least = (above[j - 1] + usize::from(!same))
                .min(above[j] + 1)
                .min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        if row.iter().all(|cost| *cost > most) {
            return None;
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().filter(|cost| *cost <= most)
}

/// Which letters a word has, as bits: words whose sets differ much are far apart, which is seen
/// without comparing them.
pub(crate) fn letters(word: &str) -> u32 {
    word.bytes().fold(0, |set, byte| {
        set | match byte {
            b'a'..=b'z' => 1 << (byte - b'a'),
            b'0'..=b'9' => 1 << 26,
            _ => 1 << 27,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_put_in_left_out_changed_and_swapped_count_one() {
        for (a, b, most, expected) in [
            ("session", "session", 2, Some(0)),
            ("sesion", "session", 2, Some(1)),
            ("decodign", "decoding", 2, Some(1)),
            ("emtpy", "empty", 1, Some(1)),
            ("kitten", "sitting", 3, Some(3)),
            ("kitten", "sitting", 2, None),
            ("a", "abcd", 2, None),
            ("", "ab", 2, Some(2)),
        ] {
            assert_eq!(apart(a, b, most), expected, "{a} {b}");
        }
    }

    #[test]
    fn sets_of_letters_differ_by_two_at_most_for_each_letter_apart() {
        for (a, b, most) in [
            ("empty", "emtpy", 0),
            ("session", "sesion", 0),
            ("cat", "car", 2),
        ] {
            assert_eq!((letters(a) ^ letters(b)).count_ones(), most, "{a} {b}");
        }
    }
}
