//! HTML of untrusted pages to Markdown.
//!
//! html5ever's tree builder and htmd trust their input: deep nesting exhausts the stack, unclosed
//! formatting multiplies elements, wide tables multiply spaces. So a page is cleaned first: only the
//! elements that matter to Markdown are left, closed and with few attributes, and rows of tables
//! become lines.
//!
//! **Invariant:** time, memory and output are linear in the page, because [`MAX_TAGS`] and
//! [`MAX_DEPTH`] bound the cleaned one.

use std::{cell::RefCell, fmt::Write as _, mem};

use htmd::{
    Element, HtmlToMarkdown,
    element_handler::{HandlerResult, Handlers},
};
use html5ever::{
    LocalName,
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink,
        TokenSinkResult::{self, Continue, RawData},
        Tokenizer, TokenizerOpts,
        states::RawKind::{Rawtext, Rcdata, ScriptData},
    },
};
use memchr::memchr;
use reqwest::Url;
use tokio_util::sync::CancellationToken;

use super::MAX_URL;
use crate::tool::text::is_one_of;

/// Maximum tags of a page; what follows is left out.
const MAX_TAGS: usize = 200_000;
/// Maximum nesting; deeper elements lose their tags.
const MAX_DEPTH: usize = 12;
/// Bytes between two looks at the token.
const CHUNK: usize = 4_096;
/// Longest tag, in bytes, because its attributes take quadratic time; a longer one is left out.
const MAX_TAG: usize = 16_384;

/// Elements that are left out with their content.
const SKIPPED: &str = "audio canvas iframe nav noembed noframes noscript object script select \
                       style svg template textarea video";
/// Elements of which only the gap to other text remains.
const BLOCKS: &str = "address article aside body center dd details dialog div dl dt fieldset \
                      figcaption figure footer form header hgroup hr legend main p search section \
                      summary table";
/// Elements that the tree builder ends.
const PARTS: &str = "br li";
/// Elements that nest, apart from links and code.
const NESTED: &str = "blockquote h1 h2 h3 h4 h5 h6 ol pre ul";

/// A gap in a cleaned page.
const GAP: &str = "<p>";
const CELL: &str = " | ";

/// A page as Markdown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: String,
    pub(super) text: String,
    /// Whether the end is missing.
    pub(super) is_cut: bool,
}

/// Converts a page whose links are relative to `base`; `None` if the token fired.
pub(super) fn page(html: &str, base: &Url, stop: &CancellationToken) -> Option<Page> {
    let clean = RefCell::default();
    let mut tokenizer = Tokenizer::new(Cleaner { base, clean }, TokenizerOpts::default());
    let (queue, mut rest) = (BufferQueue::default(), html);
    // The page from its unfinished token on.
    let mut open = html;
    while !rest.is_empty() && tokenizer.sink.clean.borrow().tags < MAX_TAGS {
        if stop.is_cancelled() {
            return None;
        }
        // Where the next token may begin.
        let head = &rest.as_bytes()[..CHUNK.min(rest.len())];
        let end = memchr(b'<', &head[1..]).map_or(CHUNK, |at| at + 1);
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(end));
        queue.push_back(StrTendril::from_slice(chunk));
        // It pauses only at scripts, of which the sink reports none.
        let _ = tokenizer.feed(&queue);
        rest = after;
        if mem::take(&mut tokenizer.sink.clean.borrow_mut().is_complete) {
            open = rest;
        } else if open.len() - rest.len() > MAX_TAG && !open.starts_with("<!") {
            tokenizer = Tokenizer::new(tokenizer.sink, TokenizerOpts::default());
            rest = rest.split_once('>').map_or("", |(_, after)| after);
            open = rest;
        }
    }
    tokenizer.end();
    let clean = tokenizer.sink.clean.take();
    let converter = HtmlToMarkdown::builder()
        .add_handler(vec!["a"], link)
        .build();
    Some(Page {
        title: clean.title.split_whitespace().collect::<Vec<_>>().join(" "),
        text: converter.convert(&clean.html).ok()?,
        is_cut: clean.tags >= MAX_TAGS,
    })
}

struct Cleaner<'a> {
    base: &'a Url,
    clean: RefCell<Clean>,
}

#[derive(Default)]
struct Clean {
    html: String,
    /// Whether a token was complete.
    is_complete: bool,
    tags: usize,
    open: Vec<LocalName>,
    title: String,
    in_title: bool,
    /// The element that is left out, and how many of its name are open.
    skipped: Option<(LocalName, usize)>,
}

impl TokenSink for Cleaner<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut clean = self.clean.borrow_mut();
        clean.is_complete |= !matches!(token, Token::ParseError(_));
        match token {
            Token::CharacterTokens(text) if clean.in_title => clean.title.push_str(&text),
            Token::CharacterTokens(text) if clean.skipped.is_none() => {
                let text = match clean.html.ends_with(GAP) {
                    true => text.trim_ascii_start(),
                    false => &*text,
                };
                clean.html.push_str(&escaped(text));
            }
            Token::TagToken(tag) => {
                clean.tags += 1;
                clean.tag(&tag, self.base);
                return match &*tag.name {
                    _ if tag.kind == TagKind::EndTag => Continue,
                    "script" => RawData(ScriptData),
                    "iframe" | "noembed" | "noframes" | "style" | "xmp" => RawData(Rawtext),
                    "textarea" | "title" => RawData(Rcdata),
                    _ => Continue,
                };
            }
            _ => {}
        }
        Continue
    }
}

impl Clean {
    fn tag(&mut self, tag: &Tag, base: &Url) {
        let (name, is_start) = (&*tag.name, tag.kind == TagKind::StartTag);
        if let Some((skipped, depth)) = &mut self.skipped {
            match is_start {
                _ if *skipped != tag.name => {}
                true => *depth += 1,
                false => *depth -= 1,
            }
            self.skipped.take_if(|(_, depth)| *depth == 0);
            return;
        }
        let is_line = is_one_of(BLOCKS, name) || is_one_of(PARTS, name) || is_one_of(NESTED, name);
        let in_block = self.is_open("pre");
        if is_line && !in_block {
            // The tree builder would begin it again in every line.
            self.close("code");
        }
        let in_link = self.is_open("a");
        let is_flat = in_block || in_link || self.open.len() >= MAX_DEPTH;
        match name {
            "title" => self.in_title = is_start,
            "code" if in_block => {}
            _ if is_one_of(BLOCKS, name) || (is_start && is_flat && is_line) => {
                let gap = match (in_block, in_link) {
                    (true, _) => "\n",
                    (_, true) => " ",
                    _ => GAP,
                };
                if !self.html.ends_with(gap) && !self.html.ends_with(CELL) {
                    self.html.push_str(gap);
                }
            }
            // A row is a line.
            "tr" if is_start && !self.html.ends_with(GAP) => self.html.push_str("<br>"),
            "td" | "th" if is_start => self.html.push_str(CELL),
            "td" | "th" => self.html.truncate(self.html.trim_end_matches(GAP).len()),
            _ if !is_start => self.close(name),
            "svg" if tag.self_closing => {}
            _ if is_one_of(SKIPPED, name) => self.skipped = Some((tag.name.clone(), 1)),
            _ if is_one_of(PARTS, name) => self.push(name, ""),
            "a" => {
                self.close(name);
                let href = tag.attrs.iter().find(|one| &*one.name.local == "href");
                let href = href.filter(|href| !href.value.starts_with('#'));
                let target = href.and_then(|href| base.join(&href.value).ok());
                let is_page = |url: &Url| url.has_host() && url.as_str().len() <= MAX_URL;
                if let Some(target) = target.filter(is_page) {
                    self.open(name, target.as_str());
                }
            }
            "pre" => {
                self.open(name, "");
                self.open("code", "");
            }
            "code" => self.open(name, ""),
            _ if is_one_of(NESTED, name) => self.open(name, ""),
            _ => {}
        }
    }

    fn push(&mut self, name: &str, href: &str) {
        let href = escaped(href).replace('"', "&quot;");
        // htmd joins neighbours that are equal but for their text, in quadratic time.
        let _ = write!(self.html, "<{name} data-n={} href=\"{href}\">", self.tags);
    }

    fn open(&mut self, name: &str, href: &str) {
        if self.open.len() < MAX_DEPTH {
            self.push(name, href);
            self.open.push(LocalName::from(name));
        }
    }

    fn is_open(&self, name: &str) -> bool {
        self.open.iter().any(|open| &**open == name)
    }

    /// Ends the innermost of these elements, and those within it.
    fn close(&mut self, name: &str) {
        if let Some(at) = self.open.iter().rposition(|open| &**open == name) {
            for name in self.open.drain(at..).rev() {
                let _ = write!(self.html, "</{name}>");
            }
        }
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// A link, unless it has no text.
fn link(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let text = handlers.walk_children(element.node).content;
    match text.trim() {
        "" => Some(text.into()),
        _ => handlers.fallback(element),
    }
}
