//! One note, taken apart: what stands before it, its sections, its links, its tags.
//!
//! Markdown by the rules of CommonMark, so that a `#` in fenced code is no heading; `[[links]]` as in
//! wikis. A section goes from its heading to the next one of any level; what stands before the first
//! heading is a section without one. Headings inside of quotes and lists divide nothing. Pure.
//!
//! **Invariants:** the sections cover lines of the text, in order and without overlap; whatever the
//! text, a note has at most [`MAX_SECTIONS`] sections, [`MAX_LINKS`] links and [`MAX_TAGS`] tags.

mod plain;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use percent_encoding::percent_decode_str;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd, TextMergeWithOffset};

use super::front::{self, Front};
use crate::tool::text::{clipped, on_one_line};

/// Most sections of one note; the last one then has the rest.
pub(super) const MAX_SECTIONS: usize = 2_000;
/// Most links of one note that are followed.
pub(super) const MAX_LINKS: usize = 1_000;
/// Most tags of one note.
pub(super) const MAX_TAGS: usize = 200;
/// Longest heading, link and tag that is kept, in characters.
const MAX_TEXT: usize = 200;

/// A note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) front: Front,
    /// As its front matter or its first heading says.
    pub(super) title: Option<String>,
    pub(super) sections: Vec<Section>,
    pub(super) links: Vec<Link>,
    /// In lower case, those of the front matter and those of the text.
    pub(super) tags: BTreeSet<String>,
    pub(super) lines: u32,
}

/// A heading and what stands below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Section {
    /// The headings that it stands under, its own last; none before the first heading. Shared with the
    /// sections below it, which may be very many.
    pub(super) path: Vec<Arc<str>>,
    /// Its first and last line, from 1.
    pub(super) first: u32,
    pub(super) last: u32,
}

impl Section {
    /// Its own heading.
    pub(super) fn heading(&self) -> Option<&str> {
        self.path.last().map(|heading| &**heading)
    }

    /// All headings, as they are told.
    pub(super) fn full_name(&self) -> String {
        self.path.join(" › ")
    }
}

/// A link to another note, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) to: Target,
    pub(super) line: u32,
}

/// What a link names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A file, relative to the note.
    Path(String),
    /// A name, a title, an alias or the end of a path.
    Name(String),
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let after = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self(std::iter::once(0).chain(after).collect())
    }

    /// Which line has this byte, from 1.
    fn at(&self, byte: usize) -> u32 {
        let line = self.0.partition_point(|&start| start <= byte);
        u32::try_from(line.max(1)).unwrap_or(u32::MAX)
    }
}

impl Note {
    /// Reads a note.
    pub(super) fn read(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (front, body) = front::split(text);
        let lines = Lines::of(text);
        let mut walk = Walk {
            offset: text.len() - body.len(),
            lines: &lines,
            note: Self {
                title: front.title.clone(),
                tags: front.tags.iter().filter_map(|tag| as_tag(tag)).collect(),
                lines: u32::try_from(text.lines().count()).unwrap_or(u32::MAX),
                front,
                ..Self::default()
            },
            open: Vec::new(),
            heading: None,
            nested: 0,
            in_code: false,
        };
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_WIKILINKS | Options::ENABLE_FOOTNOTES;
        let events = Parser::new_ext(body, options).into_offset_iter();
        for (event, range) in TextMergeWithOffset::new(events) {
            walk.take(event, range);
        }
        let mut note = walk.note;
        note.close_sections(text, &lines);
        note
    }

    /// Ends each section before the next, and finds the one before the first heading.
    fn close_sections(&mut self, text: &str, lines: &Lines) {
        let body = self.front.lines.saturating_add(1);
        let first_heading = self
            .sections
            .first()
            .map_or(u32::MAX, |section| section.first);
        if first_heading > body {
            let before = Section {
                path: Vec::new(),
                first: body,
                last: body,
            };
            self.sections.insert(0, before);
        }
        let begins: Vec<u32> = self.sections.iter().map(|section| section.first).collect();
        let ends = begins.iter().skip(1).map(|next| next - 1);
        let ends: Vec<u32> = ends.chain([self.lines]).collect();
        for (section, end) in self.sections.iter_mut().zip(ends) {
            section.last = end;
            while section.last > section.first && lines.is_blank(text, section.last) {
                section.last -= 1;
            }
        }
        // A note of front matter alone still is one; blank lines before a heading are nothing.
        let only = self.sections.len() == 1;
        let told = |section: &Section| {
            let blank = section.first > section.last || lines.is_blank(text, section.last);
            !(section.path.is_empty() && blank)
        };
        self.sections.retain(told);
        if only && self.sections.is_empty() && self.lines > 0 {
            self.sections.push(Section {
                path: Vec::new(),
                first: 1,
                last: self.lines,
            });
        }
    }
}

impl Lines {
    fn is_blank(&self, text: &str, line: u32) -> bool {
        let number = line as usize;
        let start = self
            .0
            .get(number.wrapping_sub(1))
            .copied()
            .unwrap_or(text.len());
        let end = self.0.get(number).copied().unwrap_or(text.len());
        text.get(start..end).unwrap_or_default().trim().is_empty()
    }
}

/// A way through a text.
struct Walk<'a> {
    /// Bytes before the body.
    offset: usize,
    lines: &'a Lines,
    note: Note,
    /// The headings that are open, with their levels.
    open: Vec<(u8, Arc<str>)>,
    /// The heading that is being read: its line and its words.
    heading: Option<(u32, String)>,
    /// How many quotes and lists are open.
    nested: usize,
    in_code: bool,
}

impl Walk<'_> {
    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        let line = self.lines.at(self.offset + range.start);
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::FootnoteDefinition(_)) => {
                self.nested += 1
            }
            Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::FootnoteDefinition) => {
                self.nested = self.nested.saturating_sub(1);
            }
            Event::Start(Tag::Heading { .. }) if self.nested == 0 => {
                self.heading = Some((line, String::new()));
            }
            Event::End(TagEnd::Heading(level)) => self.end_heading(level as u8),
            Event::Start(Tag::CodeBlock(_)) => self.in_code = true,
            Event::End(TagEnd::CodeBlock) => self.in_code = false,
            Event::Start(
                Tag::Link {
                    link_type,
                    dest_url,
                    ..
                }
                | Tag::Image {
                    link_type,
                    dest_url,
                    ..
                },
            ) => {
                self.link(link_type, &dest_url, line);
            }
            Event::Text(text) => {
                if let Some((_, heading)) = &mut self.heading {
                    heading.push_str(&text);
                }
                if !self.in_code {
                    self.tags(&text);
                }
            }
            Event::Code(code) => {
                if let Some((_, heading)) = &mut self.heading {
                    heading.push_str(&code);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some((_, heading)) = &mut self.heading {
                    heading.push(' ');
                }
            }
            _ => {}
        }
    }

    fn end_heading(&mut self, level: u8) {
        let Some((line, words)) = self.heading.take() else {
            return;
        };
        let words = tidy(&words);
        if self.note.title.is_none() && !words.is_empty() {
            self.note.title = Some(words.clone());
        }
        self.open.retain(|(outer, _)| *outer < level);
        self.open.push((level, words.into()));
        // Two on one line there are not, but the promise is ours.
        let after_last = self
            .note
            .sections
            .last()
            .is_none_or(|last| last.first < line);
        if self.note.sections.len() < MAX_SECTIONS && after_last {
            let path = self
                .open
                .iter()
                .map(|(_, words)| Arc::clone(words))
                .collect();
            let (first, last) = (line, line);
            self.note.sections.push(Section { path, first, last });
        }
    }

    fn link(&mut self, kind: LinkType, target: &str, line: u32) {
        if self.note.links.len() >= MAX_LINKS {
            return;
        }
        let (whole, _) = clipped(target, MAX_TEXT);
        let file = whole.split('#').next().unwrap_or_default().trim();
        let to = match kind {
            LinkType::WikiLink { .. } => Target::Name(file.to_owned()),
            LinkType::Autolink | LinkType::Email => return,
            _ => {
                // An address, or a place that is no file of ours.
                if file.contains("://") || file.starts_with("mailto:") || file.starts_with('/') {
                    return;
                }
                let file = file.split('?').next().unwrap_or_default();
                Target::Path(percent_decode_str(file).decode_utf8_lossy().into_owned())
            }
        };
        if !file.is_empty() {
            self.note.links.push(Link { to, line });
        }
    }

    /// `#tag` after nothing or a space.
    fn tags(&mut self, text: &str) {
        for (at, _) in text.match_indices('#') {
            if !(at == 0 || text[..at].ends_with(char::is_whitespace))
                || self.note.tags.len() >= MAX_TAGS
            {
                continue;
            }
            let rest = &text[at + 1..];
            let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/');
            let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
            self.note.tags.extend(as_tag(&rest[..end]));
        }
    }
}

/// A tag in its one spelling; none if it has no letter, as the number of an issue.
fn as_tag(text: &str) -> Option<String> {
    let text = text.trim_matches(['/', '#']);
    let short = text.chars().nth(MAX_TEXT).is_none();
    (short && text.contains(char::is_alphabetic)).then(|| text.to_lowercase())
}

/// Words on one line, with single spaces.
fn tidy(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let words = words.join(" ");
    on_one_line(clipped(&words, MAX_TEXT).0).into_owned()
}
