//! A line that answers, as it comes in pieces. Pure.

/// The longest line that can be an answer, in bytes.
const MOST: usize = 80;

/// What has come of it.
#[derive(Debug, Default)]
pub(super) struct Line {
    bytes: Vec<u8>,
}

impl Line {
    /// Takes what came. The line where it is whole: of one that is longer than any answer more than can be one.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<String> {
        let mut pieces = bytes.splitn(2, |byte| *byte == b'\n');
        let (piece, ends) = (pieces.next().unwrap_or_default(), pieces.next().is_some());
        // One more than there may be: a beginning is no answer.
        let room = (MOST + 1).saturating_sub(self.bytes.len());
        self.bytes.extend(piece.iter().take(room));
        if !ends {
            return None;
        }
        let line = std::mem::take(&mut self.bytes);
        let line = String::from_utf8_lossy(&line);
        Some(match line.len() > MOST {
            true => format!("{line}…"),
            false => line.into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_heard_at_its_end_however_it_comes() {
        for (pieces, heard) in [
            (&["y\n"][..], vec!["y"]),
            (&["\n"], vec![""]),
            (&["y"], vec![]),
            (&["n", "o\r", "\n", "y\n"], vec!["no\r", "y"]),
        ] {
            let mut line = Line::default();
            let lines = pieces
                .iter()
                .filter_map(|piece| line.take(piece.as_bytes()));
            assert_eq!(lines.collect::<Vec<_>>(), heard, "{pieces:?}");
        }
    }

    #[test]
    fn what_is_longer_than_any_answer_is_none_to_its_end() {
        for (name, begins, ends) in [
            ("an answer at its end", "x".repeat(1_024), "y\n"),
            (
                "an answer at its beginning",
                format!("y{}", " ".repeat(1_023)),
                "no\n",
            ),
            ("nothing but blanks", " ".repeat(1_024), "\n"),
        ] {
            let mut line = Line::default();
            assert_eq!(line.take(begins.as_bytes()), None, "{name}");
            let heard = line.take(ends.as_bytes()).unwrap();
            assert!(
                heard.ends_with('…') && heard.len() < 2 * MOST,
                "{name}: {heard}"
            );
            assert_eq!(line.take(b"y\n").unwrap(), "y", "{name}");
        }
    }
}
