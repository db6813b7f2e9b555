//! Finds the ends of strings, characters and comments. Each function takes the offset of the first
//! byte and returns the one after the last. It returns `None` if there is no end, so that a lone
//! quote in prose (JSX, broken code) does not swallow the rest of the file.

use std::sync::LazyLock;

use memchr::{memchr, memchr2, memchr3, memmem};
use regex::bytes::Regex;

use super::collect::Language;

/// Longest regular expression that is recognized, in bytes.
const MAX_EXPRESSION: usize = 1_024;

pub(super) fn is_name_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

pub(super) fn on_line(text: &[u8], start: usize, mark: u8) -> Option<usize> {
    ended(text, start, mark).ok()
}

fn ended(text: &[u8], start: usize, mark: u8) -> Result<usize, usize> {
    let mut at = start + 1;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        match memchr3(mark, b'\\', b'\n', rest).map(|next| at + next) {
            None => return Err(text.len()),
            Some(next) if text[next] == b'\n' => return Err(next),
            Some(next) if text[next] == mark => return Ok(next + 1),
            Some(next) => at = next + 2,
        }
    }
}

/// Finds ends of strings on their line, like [`on_line`], in linear time over all marks.
#[derive(Debug, Default)]
pub(super) struct OnLine {
    endless: [usize; 3],
}

impl OnLine {
    pub(super) fn end(&mut self, text: &[u8], start: usize, mark: u8) -> Option<usize> {
        let endless = match mark {
            b'"' => &mut self.endless[0],
            b'\'' => &mut self.endless[1],
            _ => &mut self.endless[2],
        };
        if start < *endless {
            return None;
        }
        ended(text, start, mark).map_err(|end| *endless = end).ok()
    }
}

pub(super) fn escaped(text: &[u8], start: usize, mark: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr2(mark, b'\\', text.get(at..)?)?;
        if text[at] == mark {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// A text without backslash escapes, in which a doubled mark is literal (`'it''s'`).
pub(super) fn doubled(text: &[u8], start: usize, mark: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr(mark, text.get(at..)?)? + 1;
        if text.get(at) != Some(&mark) {
            return Some(at);
        }
        at += 1;
    }
}

pub(super) fn until(text: &[u8], start: usize, mark: &[u8]) -> Option<usize> {
    Some(start + memmem::find(text.get(start..)?, mark)? + mark.len())
}

/// A comment between `/*` and `*/`, which nests in some languages.
pub(super) fn comment(text: &[u8], start: usize, nests: bool) -> Option<usize> {
    if !nests {
        return until(text, start + 2, b"*/");
    }
    let (mut at, mut depth) = (start + 2, 1_usize);
    loop {
        at += memchr2(b'*', b'/', text.get(at..)?)?;
        match text.get(at..at + 2) {
            Some(b"*/") if depth == 1 => return Some(at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            _ => at += 1,
        }
    }
}

/// A text with embedded code: `${…}` in JavaScript and Kotlin, `\(…)` in Swift.
pub(super) fn template(
    text: &[u8],
    start: usize,
    mark: &[u8],
    language: Language,
) -> Option<usize> {
    // Open levels: texts by mark, code by bracket depth.
    let mut open: Vec<QuoteLevel<'_>> = vec![QuoteLevel::Text(mark)];
    let mut at = start + mark.len();
    let mut lines = OnLine::default();
    let (brackets, lead): ((u8, u8), &[u8]) = match language {
        Language::Swift => ((b'(', b')'), b"\\("),
        _ => ((b'{', b'}'), b"${"),
    };
    loop {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        if open.len() > 64 {
            return None;
        }
        match open.last_mut()? {
            QuoteLevel::Text(mark) => {
                if rest.starts_with(mark) {
                    at += mark.len();
                    open.pop();
                    if open.is_empty() {
                        return Some(at);
                    }
                } else if rest.starts_with(lead) {
                    at += lead.len();
                    open.push(QuoteLevel::Code(1));
                } else if rest[0] == b'\n' && mark == b"\"" {
                    // Only texts with longer marks may span lines.
                    return None;
                } else {
                    let is_escaped = rest[0] == b'\\' && mark.len() == 1;
                    at += 1 + usize::from(is_escaped);
                }
            }
            QuoteLevel::Code(depth) => {
                at += 1;
                match rest[0] {
                    b'"' | b'`' if (rest[0] == b'`') == (language == Language::Script) => {
                        let is_triple = rest.starts_with(b"\"\"\"");
                        let mark = &rest[..if is_triple { 3 } else { 1 }];
                        open.push(QuoteLevel::Text(mark));
                        at += mark.len() - 1;
                    }
                    quote @ (b'"' | b'\'') => at = lines.end(text, at - 1, quote).unwrap_or(at),
                    byte if byte == brackets.0 => *depth += 1,
                    byte if byte == brackets.1 && *depth == 1 => drop(open.pop()),
                    byte if byte == brackets.1 => *depth -= 1,
                    _ => {}
                }
            }
        }
    }
}

enum QuoteLevel<'a> {
    Text(&'a [u8]),
    Code(u32),
}

/// Raw strings of Rust: `r"…"`, `r#"…"#`, also prefixed by `b` or `c`.
pub(super) fn rust_raw(text: &[u8], start: usize) -> Option<usize> {
    let after = text.get(start..)?;
    let is_lead = |byte: &&u8| b"brc".contains(byte);
    let letters = after.iter().take_while(is_lead).count();
    let is_raw = (1..=2).contains(&letters) && after[..letters].contains(&b'r');
    is_raw.then(|| hashed(text, start + letters)).flatten()
}

/// `"…"`, `#"…"#` and `##"…"##`, without backslash escapes.
pub(super) fn hashed(text: &[u8], start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    let hashes = rest.iter().take_while(|byte| **byte == b'#').count();
    if text.get(start + hashes) != Some(&b'"') || hashes > 255 {
        return None;
    }
    let mut mark = vec![b'"'];
    mark.resize(hashes + 1, b'#');
    until(text, start + hashes + 1, &mark)
}

/// `R"tag(…)tag"` of C++, from the `R`.
pub(super) fn cpp_raw(text: &[u8], start: usize) -> Option<usize> {
    let rest = text.get(start..)?.strip_prefix(b"R\"")?;
    let tag = &rest[..memchr(b'(', rest.get(..rest.len().min(18))?)?];
    let mark = [b")", tag, b"\""].concat();
    until(text, start + 2 + tag.len() + 1, &mark)
}

/// `<<<EOT` and `<<<'EOT'` of PHP, from the first `<` to the line that begins with the word.
pub(super) fn php_heredoc(text: &[u8], start: usize) -> Option<usize> {
    let rest = text.get(start..)?.strip_prefix(b"<<<")?;
    let line = &rest[..memchr(b'\n', rest)?];
    let word = line.trim_ascii();
    let quoted = word.strip_prefix(b"'").or(word.strip_prefix(b"\""));
    let word = quoted.unwrap_or(word);
    let length = word.iter().take_while(|byte| is_name_byte(byte)).count();
    let word = word.get(..length).filter(|word| !word.is_empty())?;
    let mut at = start + 3 + line.len() + 1;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        let indent = line.len() - line.trim_ascii_start().len();
        if let Some(after) = line[indent..].strip_prefix(word)
            && !after.first().is_some_and(is_name_byte)
        {
            return Some(at + indent + word.len());
        }
        at += end + 1;
    }
    None
}

/// A regular expression of JavaScript, from its `/`.
pub(super) fn expression(text: &[u8], start: usize) -> Option<usize> {
    static EXPRESSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let class = r"\[(?:\\.|[^\]\n\\])*\]";
        Regex::new(&format!(r"(?s-u)\A/(?:\\.|{class}|[^/\[\\\n])*/[A-Za-z]*")).ok()
    });
    let text = &text[start..text.len().min(start + MAX_EXPRESSION)];
    Some(start + EXPRESSION.as_ref()?.find(text)?.end())
}

/// A character such as `'a'`, `'\n'` or `'\u{1f980}'`, but no lifetime.
pub(super) fn character(text: &[u8], start: usize) -> Option<usize> {
    if text.get(start + 1) == Some(&b'\\') {
        let line = &text[start..text.len().min(start + 16)];
        return on_line(line, 0, b'\'').map(|end| start + end);
    }
    let first = *text
        .get(start + 1)
        .filter(|first| !b"'\n".contains(first))?;
    // Of the first byte of a longer character, as many bits are set as it has bytes.
    let width = first.leading_ones().max(1) as usize;
    (text.get(start + 1 + width) == Some(&b'\'')).then_some(start + width + 2)
}
