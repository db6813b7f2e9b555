//! Headings of Markdown and reStructuredText. A section ends before the next heading of its level
//! or above.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{
    SymbolKind,
    collect::{Collector, Definition, Language},
};

/// Longest underlined heading, in bytes.
const MAX_LINE: usize = 400;

pub(super) fn scan<'a>(language: Language, text: &'a str, found: &mut Collector<'a>) {
    let mut sections = OpenSections {
        found,
        open: Vec::new(),
    };
    match language {
        Language::Markdown => markdown(text, &mut sections),
        _ => rest(text, &mut sections),
    }
    sections.close(0, text.trim_end().len().saturating_sub(1));
}

struct OpenSections<'a, 'f> {
    found: &'f mut Collector<'a>,
    open: Vec<(usize, Option<usize>)>,
}

impl<'a> OpenSections<'a, '_> {
    /// Adds a heading with its text at `at`; its first line begins at `start`.
    fn heading(&mut self, level: usize, name: &'a str, at: usize, start: usize) {
        self.close(level, start.saturating_sub(1));
        let kind = SymbolKind::Heading;
        let symbol = self.found.add(Definition::new(kind, name, at), start, at);
        self.open.push((level, symbol));
    }

    fn close(&mut self, level: usize, end: usize) {
        while let Some((_, symbol)) = self.open.pop_if(|section| section.0 >= level) {
            self.found.end(symbol, end);
        }
    }
}

fn markdown<'a>(text: &'a str, sections: &mut OpenSections<'a, '_>) {
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
                sections.heading(level as usize, name, at, range.start);
            }
            _ => {}
        }
    }
}

fn heading(line: &str) -> &str {
    let line = line.trim_start_matches('#').trim();
    let bare = line.trim_end_matches('#');
    let closed = bare.is_empty() || bare.ends_with([' ', '\t']);
    without_anchor(if closed { bare.trim_end() } else { line })
}

/// Removes a final `{#anchor}`.
fn without_anchor(name: &str) -> &str {
    match name.rfind("{#") {
        Some(at) if name.ends_with('}') => name[..at].trim_end(),
        _ => name,
    }
}

fn rest<'a>(text: &'a str, sections: &mut OpenSections<'a, '_>) {
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
        sections.heading(level + 1, title, name.0 + indent, from);
        lines = [(start, ""); 2];
    }
}

fn adornment(body: &str) -> Option<u8> {
    let first = *body.as_bytes().first()?;
    let is_one = first.is_ascii_punctuation() && body.bytes().all(|byte| byte == first);
    (is_one && body.len() >= 3).then_some(first)
}
