//! Headings of Markdown and reStructuredText. A section goes to the next heading that is not below its own.

use super::{
    SymbolKind,
    collect::{Collector, Definition},
    language::Language,
};

/// Longest line of a heading that is underlined, in bytes.
const MAX_LINE: usize = 400;
/// Longest block before a text, in lines.
const MAX_FRONT: usize = 1_000;

/// Finds the headings of a text.
pub(super) fn scan<'a>(language: Language, text: &'a str, found: &mut Collector<'a>) {
    let mut sections = Sections {
        found,
        open: Vec::new(),
    };
    match language {
        Language::Markdown => markdown(text, &mut sections),
        _ => rest(text, &mut sections),
    }
    sections.close(0, text.trim_end().len().saturating_sub(1));
}

struct Sections<'a, 'f> {
    found: &'f mut Collector<'a>,
    open: Vec<(usize, Option<usize>)>,
}

impl<'a> Sections<'a, '_> {
    /// A heading of a level, whose text stands at `at`; `start` is where it begins.
    fn heading(&mut self, level: usize, name: &'a str, at: usize, start: usize) {
        self.close(level, start.saturating_sub(1));
        let kind = SymbolKind::Heading;
        let symbol = self.found.add(
            Definition {
                kind,
                name,
                owner: None,
                at,
            },
            start,
            at,
        );
        self.open.push((level, symbol));
    }

    fn close(&mut self, level: usize, end: usize) {
        while self.open.last().is_some_and(|section| section.0 >= level) {
            if let Some((_, Some(symbol))) = self.open.pop() {
                self.found.end(symbol, end);
            }
        }
    }
}

fn markdown<'a>(text: &'a str, sections: &mut Sections<'a, '_>) {
    // The mark of the fence that is open.
    let mut fence: Option<&str> = None;
    let mut in_comment = false;
    // A block before the text; a line alone is a rule.
    let ends_front = |line: &str| matches!(line.trim(), "---" | "...");
    let mut in_front = text.lines().next().is_some_and(|line| line.trim() == "---")
        && text.lines().skip(1).take(MAX_FRONT).any(ends_front);
    // A line that the next one may underline.
    let mut before: Option<(usize, &'a str)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let body = line.trim();
        let indent = line.len() - line.trim_start().len();
        let above = before.take();
        if in_front {
            in_front = start == 0 || !ends_front(body);
            continue;
        }
        if let Some(mark) = fence {
            let length = body
                .bytes()
                .take_while(|byte| mark.as_bytes().contains(byte))
                .count();
            if length >= mark.len() && length == body.len() {
                fence = None;
            }
            continue;
        }
        if in_comment {
            in_comment = !body.contains("-->");
            continue;
        }
        if columns(&line[..indent]) > 3 {
            // Code; or more of the text above it, whatever is in it.
            before = above
                .filter(|_| is_text(body))
                .map(|_| (start + indent, body));
            continue;
        }
        if body.starts_with("```") || body.starts_with("~~~") {
            let mark = body.as_bytes()[0];
            let length = body.bytes().take_while(|byte| *byte == mark).count();
            // With another mark on its line it is code within a text.
            if mark != b'`' || !body[length..].contains('`') {
                fence = body.get(..length);
                continue;
            }
        }
        if body.starts_with("<!--") {
            in_comment = !body.contains("-->");
            continue;
        }
        let level = body.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&level) && body[level..].starts_with([' ', '\t']) {
            let name = body[level..].trim().trim_end_matches('#').trim_end();
            let name = without_anchor(name);
            sections.heading(level, name, start + indent, start + indent);
        } else if let Some((from, name)) = above
            && let Some(level) = underline(body)
        {
            sections.heading(level, name, from, from);
        } else if is_text(body) {
            before = Some((start + indent, body));
        }
    }
}

/// How far in a text stands that has these spaces before it.
fn columns(spaces: &str) -> usize {
    spaces.chars().fold(0, |columns, space| match space {
        '\t' => (columns / 4 + 1) * 4,
        _ => columns + 1,
    })
}

/// Without the `{#anchor}` at its end.
fn without_anchor(name: &str) -> &str {
    match name.rfind("{#") {
        Some(at) if name.ends_with('}') => name[..at].trim_end(),
        _ => name,
    }
}

fn underline(body: &str) -> Option<usize> {
    let all = |mark: char| body.len() >= 2 && body.chars().all(|c| c == mark);
    if all('=') {
        Some(1)
    } else if all('-') {
        Some(2)
    } else {
        None
    }
}

/// Whether a line can be a heading once it is underlined.
fn is_text(body: &str) -> bool {
    let first = body.chars().next();
    !body.is_empty()
        && body.len() <= MAX_LINE
        && !first.is_some_and(|c| matches!(c, '>' | '|' | '-' | '*' | '+' | '=' | '<'))
}

fn rest<'a>(text: &'a str, sections: &mut Sections<'a, '_>) {
    // The styles of headings in the order in which they came.
    let mut styles: Vec<(u8, bool)> = Vec::new();
    // The two lines before this one: where they begin, and what they say.
    let mut lines: [(usize, &'a str); 2] = [(0, ""); 2];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let body = line.trim_end();
        let [above, name] = lines;
        lines = [name, (start, body)];
        let Some(mark) = adornment(body) else {
            continue;
        };
        let title = name.1.trim();
        let is_title = !title.is_empty()
            && title.len() <= MAX_LINE
            && adornment(title).is_none()
            && body.chars().count() >= title.chars().count().min(4);
        let is_over = adornment(above.1) == Some(mark) && above.1.len() == body.len();
        if !is_title || (name.1.starts_with([' ', '\t']) && !is_over) {
            continue;
        }
        // Text of several lines before a line is no title.
        if !is_over && !above.1.trim().is_empty() && adornment(above.1).is_none() {
            continue;
        }
        let style = (mark, is_over);
        let level = styles
            .iter()
            .position(|known| *known == style)
            .unwrap_or_else(|| {
                styles.push(style);
                styles.len() - 1
            });
        let indent = name.1.len() - name.1.trim_start().len();
        let from = if is_over { above.0 } else { name.0 };
        sections.heading(level + 1, title, name.0 + indent, from);
        lines = [(start, ""); 2];
    }
}

/// The sign that a line consists of.
fn adornment(body: &str) -> Option<u8> {
    let first = *body.as_bytes().first()?;
    let is_one = first.is_ascii_punctuation() && body.bytes().all(|byte| byte == first);
    (is_one && body.len() >= 3).then_some(first)
}
