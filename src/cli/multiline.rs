//! Decides whether Enter continues a message.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enter {
    Sends,
    ReplacesBackslash,
    ContinuesLine,
}

/// The effect of Enter after this text. Two empty lines at its end send it even within an open
/// fence.
pub(super) fn enter(text: &str) -> Enter {
    if is_continued(text) {
        return Enter::ReplacesBackslash;
    }
    if open_fence(text) && !text.ends_with("\n\n") {
        return Enter::ContinuesLine;
    }
    Enter::Sends
}

/// Whether a backslash at the end becomes a new line; an even number of them is literal.
pub(super) fn is_continued(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}

/// Whether a code fence is open: it closes with at least as many backticks and nothing after them.
fn open_fence(text: &str) -> bool {
    const FENCE: usize = 3;
    let mut open = 0;
    for line in text.lines() {
        let line = line.trim();
        let behind = line.trim_start_matches('`');
        let ticks = line.len() - behind.len();
        if open == 0 && ticks >= FENCE && !behind.contains('`') {
            open = ticks;
        } else if open > 0 && ticks >= open && behind.is_empty() {
            open = 0;
        }
    }
    open > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_sends_complete_input_only() {
        for (text, does) in [
            ("", Enter::Sends),
            ("where is it?", Enter::Sends),
            ("where\\", Enter::ReplacesBackslash),
            ("a\\\nb\\", Enter::ReplacesBackslash),
            ("a\\\nb", Enter::Sends),
            (r"C:\\", Enter::Sends),
            ("why does this fail?\n```", Enter::ContinuesLine),
            ("```rust\nfn f() {}", Enter::ContinuesLine),
            ("```rust\nfn f() {}\n", Enter::ContinuesLine),
            ("```rust\nfn f() {}\n\n", Enter::Sends),
            ("```rust\nfn f() {}\n```", Enter::Sends),
            ("```\na\n```\nand\n  ```\nb", Enter::ContinuesLine),
            ("````\n```\na\n```", Enter::ContinuesLine),
            ("````\n```\n````", Enter::Sends),
            ("```inline``` is code", Enter::Sends),
            ("a ``` in the middle", Enter::Sends),
        ] {
            assert_eq!(enter(text), does, "{text:?}");
        }
    }
}
