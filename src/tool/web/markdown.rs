//! HTML of strangers to Markdown.
//!
//! html5ever's tree builder and htmd trust their input: deep nesting exhausts the stack, unclosed
//! formatting multiplies elements, wide tables multiply spaces. So a page is cleaned first: only
//! the elements that matter to Markdown are left, closed and with few attributes.
//!
//! **Invariant:** time, memory and output are linear in the page, because [`MAX_TAGS`],
//! [`MAX_DEPTH`] and [`MAX_INDENTS`] bound the cleaned one.

use std::{cell::RefCell, fmt::Write as _};

use htmd::{
    Element, HtmlToMarkdown,
    element_handler::{HandlerResult, Handlers},
    options::{BulletListMarker, Options},
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
use reqwest::Url;
use tokio_util::sync::CancellationToken;

use super::MAX_URL;

/// Maximum tags of a page; what follows is left out.
const MAX_TAGS: usize = 200_000;
/// Maximum nesting; deeper elements lose their tags.
const MAX_DEPTH: usize = 40;
/// The same for lists and quotations, which indent each line.
const MAX_INDENTS: usize = 8;
/// Bytes between two looks at the token.
const CHUNK: usize = 4_096;

/// Elements that are left out with their content.
const SKIPPED: [&str; 15] = [
    "audio", "canvas", "iframe", "nav", "noembed", "noframes", "noscript", "object", "script",
    "select", "style", "svg", "template", "textarea", "video",
];
const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];
const INDENTS: [&str; 3] = ["ul", "ol", "blockquote"];
const CELLS: [&str; 2] = ["td", "th"];
/// Elements of which only the gap to other text remains.
const BLOCKS: [&str; 25] = [
    "address",
    "article",
    "aside",
    "body",
    "center",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hgroup",
    "hr",
    "legend",
    "main",
    "p",
    "search",
    "section",
    "summary",
];
/// A gap in a cleaned page.
const GAP: &str = "<hr>";

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
    let tokenizer = Tokenizer::new(Cleaner { base, clean }, TokenizerOpts::default());
    let (queue, mut rest) = (BufferQueue::default(), html);
    while !rest.is_empty() && tokenizer.sink.clean.borrow().tags < MAX_TAGS {
        if stop.is_cancelled() {
            return None;
        }
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK));
        queue.push_back(StrTendril::from_slice(chunk));
        // It pauses only at scripts, of which the sink reports none.
        let _ = tokenizer.feed(&queue);
        rest = after;
    }
    tokenizer.end();
    let clean = tokenizer.sink.clean.take();
    let options = Options {
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder()
        .options(options)
        .add_handler(vec!["hr"], |_: &dyn Handlers, _: Element<'_>| {
            Some("\n\n".into())
        })
        .add_handler(vec!["br"], |_: &dyn Handlers, _: Element<'_>| {
            Some("\n".into())
        })
        .add_handler(vec!["a"], link)
        .add_handler(CELLS.to_vec(), cell)
        .add_handler(vec!["tr"], row)
        .add_handler(vec!["table"], table)
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
        clean.tags += usize::from(matches!(token, Token::TagToken(_)));
        match token {
            Token::CharacterTokens(text) => clean.text(&text),
            Token::TagToken(tag) if tag.kind == TagKind::EndTag => clean.end(&tag.name),
            Token::TagToken(tag) => {
                clean.start(&tag, self.base);
                return match &*tag.name {
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
    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.push_str(text);
        } else if self.skipped.is_none() {
            // Only code keeps its lines.
            if self.open.last().is_some_and(|top| &**top == "pre") && !text.trim().is_empty() {
                self.open("code", "class", None);
            }
            self.html.push_str(&escaped(text));
        }
    }

    fn start(&mut self, tag: &Tag, base: &Url) {
        let attribute = |wanted: &str| {
            let one = tag.attrs.iter().find(|one| *one.name.local == *wanted);
            one.map(|one| &*one.value)
        };
        let name = &*tag.name;
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(*skipped == tag.name);
            return;
        }
        match name {
            "title" => self.in_title = true,
            "svg" if tag.self_closing => {}
            _ if SKIPPED.contains(&name) => self.skipped = Some((tag.name.clone(), 1)),
            "br" => self
                .html
                .push_str(if self.is_open(&["pre"]) { "\n" } else { "<br>" }),
            _ if HEADINGS.contains(&name) => {
                self.close(&HEADINGS, &CELLS);
                match self.is_open(&["a"]) {
                    true => self.gap(),
                    false => self.open(name, "id", None),
                }
            }
            _ if INDENTS.contains(&name) => {
                self.close(&["a"], &CELLS);
                let indents = self.open.iter().filter(|open| INDENTS.contains(&&***open));
                match indents.count() < MAX_INDENTS {
                    true => self.open(name, "start", attribute("start")),
                    false => self.gap(),
                }
            }
            "code" if self.is_open(&["code"]) => {}
            "code" => self.open(name, "class", attribute("class")),
            "a" => {
                self.close(&["a"], &CELLS);
                let href = attribute("href").filter(|href| !href.starts_with('#'));
                let target = href.and_then(|href| base.join(href).ok());
                let is_page = |url: &Url| url.has_host() && url.as_str().len() <= MAX_URL;
                if let Some(target) = target.filter(is_page) {
                    self.open(name, "href", Some(target.as_str()));
                }
            }
            "li" | "pre" | "table" | "tr" | "td" | "th" => {
                match name {
                    "li" => self.close(&["li"], &["ul", "ol", "td", "th"]),
                    "tr" => self.close(&["tr"], &["table"]),
                    "td" | "th" => self.close(&CELLS, &["table", "tr"]),
                    _ => self.close(&["a"], &CELLS),
                }
                self.open(name, "id", None);
            }
            _ if BLOCKS.contains(&name) => self.gap(),
            _ => {}
        }
    }

    fn end(&mut self, name: &LocalName) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            self.skipped.take_if(|(_, depth)| *depth == 0);
            return;
        }
        match &**name {
            "title" => self.in_title = false,
            // A block has one.
            "code" if self.is_open(&["pre"]) => {}
            "table" => self.close(&["table"], &[]),
            name @ ("tr" | "td" | "th") => self.close(&[name], &["table"]),
            name if HEADINGS.contains(&name) => self.close(&HEADINGS, &CELLS),
            name if BLOCKS.contains(&name) => self.gap(),
            name => self.close(&[name], &CELLS),
        }
    }

    fn open(&mut self, name: &str, attribute: &str, value: Option<&str>) {
        if self.open.len() < MAX_DEPTH {
            // htmd joins neighbours that are equal but for their text, in quadratic time.
            let _ = write!(self.html, "<{name} data-n={}", self.tags);
            if let Some(value) = value {
                let value = escaped(value).replace('"', "&quot;");
                let _ = write!(self.html, " {attribute}=\"{value}\"");
            }
            self.html.push('>');
            self.open.push(LocalName::from(name));
        }
    }

    /// Ends the innermost of these elements, unless one of the others is nearer.
    fn close(&mut self, wanted: &[&str], others: &[&str]) {
        let either = |open: &LocalName| wanted.contains(&&**open) || others.contains(&&**open);
        let at = self.open.iter().rposition(either);
        if let Some(at) = at.filter(|at| wanted.contains(&&*self.open[*at])) {
            for name in self.open.drain(at..).rev() {
                let _ = write!(self.html, "</{name}>");
            }
        }
    }

    fn is_open(&self, names: &[&str]) -> bool {
        self.open.iter().any(|open| names.contains(&&**open))
    }

    /// Separates blocks.
    fn gap(&mut self) {
        let (gap, is_there) = if self.is_open(&["pre"]) {
            ("\n", self.html.ends_with(['\n', '>']))
        } else if self.is_open(&["a"]) || self.is_open(&HEADINGS) {
            (" ", false)
        } else {
            (GAP, self.html.ends_with(GAP))
        };
        if !is_there {
            self.html.push_str(gap);
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

/// A cell. One of several paragraphs, or with a table, fits no table of Markdown.
fn cell(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let text = handlers.walk_children(element.node).content;
    let text = text.trim();
    Some(match text.contains("\n\n") || text.contains("\n| ") {
        true => format!("\n\n{text}\n\n").into(),
        false => format!(" {} |", text.replace('\n', " ").replace('|', "\\|")).into(),
    })
}

fn row(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let cells = handlers.walk_children(element.node).content;
    Some(match cells.trim() {
        cells if cells.contains('\n') => format!("\n\n{cells}\n\n").into(),
        cells => format!("\n| {cells}").into(),
    })
}

/// A table, whose columns are not padded.
fn table(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let rows = handlers.walk_children(element.node).content;
    let rows = rows.trim();
    let head = rows.lines().next().filter(|head| head.starts_with("| "));
    let (head, others) = rows.split_at(head.map_or(0, str::len));
    let line = " --- |".repeat(head.matches(" |").count());
    let line = if line.is_empty() {
        line
    } else {
        format!("\n|{line}")
    };
    Some(format!("\n\n{head}{line}{others}\n\n").into())
}
