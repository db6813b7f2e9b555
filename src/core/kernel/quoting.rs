//! How foreign text is quoted for the model: as data, and not as instructions.

use crate::signal::escape;

/// Begins each line of a longer quotation.
pub(super) const QUOTE: &str = "| ";
/// Most characters of a quotation on one line.
const ONE_LINE: usize = 500;

/// Quotes foreign text, shortened, on one line and without signals.
pub(super) fn quote(text: &str) -> String {
    let mut cut: String = text.chars().take(ONE_LINE).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    let one_line = cut.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("\"{}\"", escape(&one_line).replace('"', "'"))
}

pub(super) fn quoted_as_data(text: &str) -> String {
    quoted(&escape(text))
}

pub(super) fn quoted(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(ends_a_line, "\n");
    let lines: Vec<String> = text.lines().map(|line| format!("{QUOTE}{line}")).collect();
    lines.join("\n")
}

/// Whether a reader may take the character for a line break.
pub(super) const fn ends_a_line(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}
