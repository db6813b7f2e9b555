//! Headings of Markdown and reStructuredText. A section ends before the next heading of its level
//! or above.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{
    SymbolKind,
    collect::{Collector, Definition},
};

/// Longest underlined heading, in bytes.
const MAX_LINE: usize = 400;

/// Opens the section of a heading with its text at `at`; its first line begins at `start`.
fn open<'a>(found: &mut Collector<'a>, level: usize, name: &'a str, at: usize, start: usize) {
    found.close(level, start.saturating_sub(1));
    found.open(level, Definition::new(SymbolKind::Heading, name, at), start);
}

fn close_all(text: &str, found: &mut Collector<'_>) {
    found.close(0, text.trim_end().len().saturating_sub(1));
}

pub(super) fn markdown<'a>(text: &'a str, found: &mut Collector<'a>) {
    let front = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut nested = 0_usize;
    for (event, range) in Parser::new_ext(text, front).into_offset_iter() {
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::List(_)) => nested += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_)) => nested -= 1,
            Event::Start(Tag::Heading { level, .. }) if nested == 0 => {
                let line = text[range.clone()].trim_start().lines().next();
                let name = heading(line.unwrap_or_default());
                let at = range.start + text[range.clone()].find(name).unwrap_or(0);
                open(found, level as usize, name, at, range.start);
            }
            _ => {}
        }
    }
    close_all(text, found);
}

fn heading(line: &str) -> &str {
    let line = line.trim_start_matches('#').trim();
    let bare = line.trim_end_matches('#');
    let closed = bare.is_empty() || bare.ends_with([' ', '\t']);
    let name = if closed { bare.trim_end() } else { line };
    // Without a final `{#anchor}`.
    match name.rfind("{#") {
        Some(at) if name.ends_with('}') => name[..at].trim_end(),
        _ => name,
    }
}

pub(super) fn rest<'a>(text: &'a str, found: &mut Collector<'a>) {
    // Heading styles, in order of appearance.
    let mut styles: Vec<(u8, bool)> = Vec::new();
    // Start and text of the two previous lines.
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
        // A line below other text is no title.
        if !is_over && !above.1.trim().is_empty() && adornment(above.1).is_none() {
            continue;
        }
        let style = (mark, is_over);
        let known = styles.iter().position(|known| *known == style);
        let level = known.unwrap_or(styles.len());
        if known.is_none() {
            styles.push(style);
        }
        let indent = name.1.len() - name.1.trim_start().len();
        let from = if is_over { above.0 } else { name.0 };
        open(found, level + 1, title, name.0 + indent, from);
        lines = [(start, ""); 2];
    }
    close_all(text, found);
}

fn adornment(body: &str) -> Option<u8> {
    let first = *body.as_bytes().first()?;
    let is_one = first.is_ascii_punctuation() && body.bytes().all(|byte| byte == first);
    (is_one && body.len() >= 3).then_some(first)
}
