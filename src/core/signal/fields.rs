//! Splits a block into field elements, still untyped.
//!
//! An element ends at its balanced closing tag, else at the next closing tag of its name. Tags
//! inside an element are text; attributes are ignored. Every name is looked up once, so unclosed
//! tags cost no more than others.

use std::{borrow::Cow, collections::HashMap};

use memchr::{memchr, memchr2};

use super::{
    block::Block,
    tag::white_space,
    view::{Span, View, visit},
};

/// A field with its name in lower case and its text trimmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Open,
    Close,
    Empty,
}

#[derive(Debug)]
struct FieldTag<'a> {
    start: usize,
    end: usize,
    side: Side,
    name: Cow<'a, str>,
    mate: Option<usize>,
}

/// Returns the elements of a block in order.
pub(super) fn elements<'a>(block: &Block, view: View<'a>) -> Vec<Field<'a>> {
    let inside = view.slice(block.inside);
    let tags = tags(inside, block.inside.start, &block.nested);
    let mut fields = Vec::new();
    let mut next = 0;
    while let Some(tag) = tags.get(next) {
        next += 1;
        let text = match (tag.side, tag.mate) {
            (Side::Open, Some(closing)) => {
                next = closing + 1;
                inside[tag.end..tags[closing].start].trim()
            }
            (Side::Empty, _) => "",
            (Side::Open, None) | (Side::Close, _) => continue,
        };
        let name = tag.name.clone();
        fields.push(Field { name, text });
    }
    fields
}

/// Whether the text contains only field elements, of which the last may be cut, and white space.
pub(super) fn are_all(text: &str) -> bool {
    let tags = tags(text, 0, &[]);
    let (mut at, mut next) = (0, 0);
    loop {
        let rest = text[at..].trim_start();
        at = text.len() - rest.len();
        let Some(tag) = tags.get(next).filter(|tag| tag.start == at) else {
            return rest.is_empty() || is_cut_tag(rest);
        };
        match (tag.side, tag.mate) {
            (Side::Open, Some(closing)) => {
                at = tags[closing].end;
                next = closing + 1;
            }
            (Side::Empty, _) => {
                at = tag.end;
                next += 1;
            }
            (Side::Open, None) => return true,
            (Side::Close, _) => return false,
        }
    }
}

/// Matches `<`, `</rea` and `<reason `.
fn is_cut_tag(text: &str) -> bool {
    text.strip_prefix('<').is_some_and(|name| {
        let name = name.strip_prefix('/').unwrap_or(name).trim_end();
        name.bytes().all(is_name_byte)
    })
}

/// The tags of a text that begins at `base`, outside of the nested blocks.
fn tags<'a>(text: &'a str, base: usize, nested: &[Span]) -> Vec<FieldTag<'a>> {
    let bytes = text.as_bytes();
    let (mut tags, mut at) = (Vec::new(), 0);
    let mut nested = nested.iter().peekable();
    while let Some(offset) = memchr(b'<', &bytes[at..]) {
        visit(offset + 1);
        at += offset;
        if let Some(block) = nested.next_if(|block| block.start == base + at) {
            at = block.end - base;
            continue;
        }
        let tag = tag_at(text, at);
        // A tag ends at the latest where the next `<` begins, so no byte is searched twice.
        at = tag.as_ref().map_or(at + 1, |tag| tag.end);
        tags.extend(tag);
    }
    visit(bytes.len() - at);
    pair(&mut tags);
    tags
}

fn tag_at<'a>(text: &'a str, start: usize) -> Option<FieldTag<'a>> {
    let bytes = text.as_bytes();
    let closing = bytes.get(start + 1) == Some(&b'/');
    let from = start + 1 + usize::from(closing);
    let rest = &bytes[from..];
    let of_name = |at: &usize| is_name_byte(rest[*at]) && white_space(&rest[*at..]) == 0;
    let length = (0..rest.len()).take_while(of_name).count();
    // One pass finds the name's end, another its letter case.
    visit(2 * length + 2);
    if length == 0 || !begins_name(rest[0]) {
        return None;
    }
    let after = &bytes[from + length..];
    let stop = memchr2(b'<', b'>', after);
    visit(stop.unwrap_or(after.len()));
    let stop = stop.filter(|stop| after[*stop] == b'>')?;
    if stop > 0 && white_space(after) == 0 && after[0] != b'/' {
        return None;
    }
    let side = match (closing, after[..stop].last()) {
        (true, _) => Side::Close,
        (false, Some(b'/')) => Side::Empty,
        (false, _) => Side::Open,
    };
    let name = &text[from..from + length];
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let name = match name.bytes().all(is_lower) {
        true => Cow::Borrowed(name),
        false => Cow::Owned(name.to_lowercase()),
    };
    Some(FieldTag {
        start,
        end: from + length + stop + 1,
        side,
        name,
        mate: None,
    })
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte) || !byte.is_ascii()
}

/// Finds the closing tag of every element.
fn pair(tags: &mut [FieldTag<'_>]) {
    // Of each name: the closing tags that balance no opening tag yet, and the next closing tag.
    let mut after: HashMap<Cow<'_, str>, (Vec<usize>, usize)> = HashMap::new();
    for (index, tag) in tags.iter_mut().enumerate().rev() {
        match tag.side {
            Side::Open => {
                let closing = after.get_mut(&tag.name);
                tag.mate = closing.map(|(free, next)| free.pop().unwrap_or(*next));
            }
            Side::Close => {
                let (free, next) = after.entry(tag.name.clone()).or_default();
                free.push(index);
                *next = index;
            }
            Side::Empty => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every text made of `tags` tags.
    fn texts(tags: usize) -> Vec<String> {
        let all = ["<a>", "</a>", "<b>", "</b>", "<c/>"];
        (0..tags).fold(vec![String::new()], |texts, _| {
            let longer = |text: &String| all.map(|tag| format!("{text}{tag}"));
            texts.iter().flat_map(longer).collect()
        })
    }

    /// The closing tag of an element by its definition: the balanced one, else the next of its name.
    fn mate(tags: &[FieldTag<'_>], opening: usize) -> Option<usize> {
        let mut depth = 0;
        let of_name = |at: &usize| tags[*at].name == tags[opening].name;
        let rest = (opening..tags.len()).filter(of_name);
        let balanced = rest.clone().find(|&at| {
            depth += match tags[at].side {
                Side::Open => 1,
                Side::Close => -1,
                Side::Empty => 0,
            };
            depth == 0
        });
        let mut next = rest.filter(|&at| tags[at].side == Side::Close);
        balanced.or_else(|| next.next())
    }

    #[test]
    fn an_element_ends_at_its_balanced_closing_tag_else_at_the_next() {
        for text in (0..=6).flat_map(texts) {
            let tags = tags(&text, 0, &[]);
            let opening = (0..tags.len()).filter(|&at| tags[at].side == Side::Open);
            for at in opening {
                assert_eq!(tags[at].mate, mate(&tags, at), "{text} {at}");
            }
        }
    }
}
