//! Which words may be misspelt ones.

/// Longest words that are compared without room of their own, in letters.
const SHORT: usize = 64;

/// How many letters have to be put in, left out, changed or swapped with their neighbour to make
/// one word of the other; none if that is more than `most`.
pub(crate) fn apart(a: &str, b: &str, most: usize) -> Option<usize> {
    // Of a large project a million words are compared with each that is misspelt.
    if a.is_ascii() && b.is_ascii() && b.len() <= SHORT {
        return between(a.as_bytes(), b.as_bytes(), most, &mut [0; 3 * (SHORT + 1)]);
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    between(&a, &b, most, &mut vec![0; 3 * (b.len() + 1)])
}

/// The same of letters, with room for three rows of costs.
fn between<T: PartialEq>(a: &[T], b: &[T], most: usize, room: &mut [usize]) -> Option<usize> {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    let (mut before, rest) = room.split_at_mut(room.len() / 3);
    let (mut above, mut row) = rest.split_at_mut(rest.len() / 2);
    for (at, cost) in above.iter_mut().enumerate() {
        *cost = at;
    }
    for i in 1..=a.len() {
        row[0] = i;
        let mut least_of_row = i;
        for j in 1..=b.len() {
            let changed = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row[j] = least;
            least_of_row = least_of_row.min(least);
        }
        if least_of_row > most {
            return None;
        }
        std::mem::swap(&mut before, &mut above);
        std::mem::swap(&mut above, &mut row);
    }
    Some(above[b.len()]).filter(|cost| *cost <= most)
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
            ("größe", "grösse", 2, Some(2)),
            ("ab", "ba", 1, Some(1)),
            ("xab", "xba", 1, Some(1)),
            ("aab", "aba", 1, Some(1)),
        ] {
            assert_eq!(apart(a, b, most), expected, "{a} {b}");
            assert_eq!(apart(b, a, most), expected, "{b} {a}");
        }
        let long = "x".repeat(3 * SHORT);
        assert_eq!(apart(&long, &format!("{long}y"), 1), Some(1));
        assert_eq!(apart(&format!("{long}y"), &long, 1), Some(1));
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
