//! Where what a bracket opens ends. Pure.

/// Where the bracket stands that closes the one a text begins with; none if that is not in the text. What stands in
/// quotes closes nothing.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if open == c => quote = None,
            // It was an apostrophe.
            (Some('"' | '\''), '\n') => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            (Some(_) | None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bracket_ends_where_its_own_is_closed() {
        for (text, end) in [
            ("(a) {", Some(2)),
            ("(a = {}, [b]) {", Some(12)),
            ("(a, ')') {", Some(7)),
            (r"(a, '\'', b)", Some(11)),
            ("('a', () => {", None),
            ("(a, // don't\nb) {", Some(14)),
            ("(", None),
            ("", None),
        ] {
            assert_eq!(closing(text), end, "{text}");
        }
    }
}
