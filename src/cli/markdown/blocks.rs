//! The blocks of a text, as rows.

use std::{mem, path::Path};

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};
use reqwest::Url;
use unicode_width::UnicodeWidthStr as _;

use super::{
    SYNTAX, code,
    inline::{Look, Paint, Text},
};

const RULE: usize = 40;
const MIN_COLUMN: usize = 6;
/// What may surround a place in a text.
const SEPARATORS: [char; 7] = [' ', '\n', '(', ')', '`', ',', ';'];
/// Between two columns of a table.
const GAP: &str = "  ";

/// What each row of a container begins with.
struct Margin {
    /// For its first row only.
    first: Option<String>,
    rest: String,
}

pub(super) struct Blocks<'a> {
    look: &'a Look,
    rows: Vec<String>,
    margins: Vec<Margin>,
    /// The next numbers of the lists; `None` for bullets.
    lists: Vec<Option<u64>>,
    paints: Vec<Paint>,
    /// The targets of the open links.
    targets: Vec<String>,
    text: Text,
    /// The text of a block of code, and its language.
    code: Option<(String, String)>,
    table: Option<Table>,
    /// Whether a blank row separates the next block from the last one.
    is_apart: bool,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Text>>,
}

impl<'a> Blocks<'a> {
    pub(super) fn render(text: &str, look: &'a Look) -> Vec<String> {
        let mut blocks = Self {
            look,
            rows: Vec::new(),
            margins: Vec::new(),
            lists: Vec::new(),
            paints: vec![Paint::default()],
            targets: Vec::new(),
            text: Text::default(),
            code: None,
            table: None,
            is_apart: false,
        };
        for event in Parser::new_ext(text, SYNTAX) {
            blocks.event(event);
        }
        blocks.flush();
        blocks.rows
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((code, _)) => code.push_str(&text),
                None => self.push_text(&text),
            },
            Event::Code(text) => {
                self.places(&self.paint(|paint| paint.colour = Some(6)), &text);
            }
            Event::InlineHtml(html) | Event::Html(html) => self.push_text(&html),
            Event::SoftBreak => self.push_text(" "),
            Event::HardBreak => self.push_text("\n"),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(RULE.min(self.columns()));
                self.text.push(&self.paint(|paint| paint.dim = true), &rule);
                self.flush();
                self.is_apart = true;
            }
            Event::TaskListMarker(is_done) => self.push_text(if is_done { "☑ " } else { "☐ " }),
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                let is_top = level == HeadingLevel::H1;
                self.push_style(|paint| (paint.bold, paint.underline) = (true, is_top));
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                let (first, rest) = (None, "│ ".to_owned());
                self.margins.push(Margin { first, rest });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.begin_block();
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((String::new(), info));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                self.begin_block();
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                self.margins.push(Margin {
                    rest: " ".repeat(mark.width()),
                    first: Some(mark),
                });
            }
            Tag::Table(alignments) => {
                self.begin_block();
                let rows = Vec::new();
                self.table = Some(Table { alignments, rows });
            }
            Tag::TableHead => {
                self.push_style(|paint| paint.bold = true);
                self.begin_table_row();
            }
            Tag::TableRow => self.begin_table_row(),
            Tag::Emphasis => self.push_style(|paint| paint.italic = true),
            Tag::Strong => self.push_style(|paint| paint.bold = true),
            Tag::Strikethrough => self.push_style(|paint| paint.strike = true),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.push_style(|paint| {
                    paint.underline = true;
                    let is_url = dest_url.contains("://") && !dest_url.contains(char::is_control);
                    paint.link = is_url.then(|| dest_url.to_string());
                });
                self.targets.push(dest_url.to_string());
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush_apart(),
            TagEnd::Heading(_) => {
                self.flush_apart();
                self.paints.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.margins.pop();
                self.is_apart = true;
            }
            TagEnd::CodeBlock => {
                let (text, info) = self.code.take().unwrap_or_default();
                for row in code::rows(&text, &info, self.look) {
                    self.row(row);
                }
                self.is_apart = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.is_apart |= self.lists.is_empty();
            }
            TagEnd::Item => {
                self.flush();
                // An empty item has its mark.
                let margin = self.margins.last();
                if margin.is_some_and(|margin| margin.first.is_some()) {
                    self.row(String::new());
                }
                self.margins.pop();
            }
            TagEnd::Table => self.table(),
            TagEnd::TableCell => {
                let cell = mem::take(&mut self.text);
                let row = self.table.as_mut().and_then(|table| table.rows.last_mut());
                if let Some(row) = row {
                    row.push(cell);
                }
            }
            TagEnd::TableHead | TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.paints.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                let linked = self.paints.pop().and_then(|paint| paint.link);
                let is_linked = linked.is_some() && self.look.links.is_some();
                let target = self.targets.pop().unwrap_or_default();
                if !is_linked && !self.text.ends_with(&target) {
                    self.push_text(&format!(" ({target})"));
                }
            }
            _ => {}
        }
    }

    fn push_style(&mut self, change: impl FnOnce(&mut Paint)) {
        self.paints.push(self.paint(change));
    }

    fn paint(&self, change: impl FnOnce(&mut Paint)) -> Paint {
        let mut paint = self.paints.last().cloned().unwrap_or_default();
        change(&mut paint);
        paint
    }

    fn push_text(&mut self, text: &str) {
        self.places(&self.paint(|_| {}), text);
    }

    /// Adds text whose places, such as `src/main.rs:12`, link to their files.
    fn places(&mut self, paint: &Paint, text: &str) {
        for piece in text.split_inclusive(SEPARATORS) {
            let word = piece.trim_end_matches(SEPARATORS);
            let link = self.look.links.as_ref().filter(|_| paint.link.is_none());
            let link = link.and_then(|root| file(root, word));
            let linked = Paint {
                link: link.or_else(|| paint.link.clone()),
                ..paint.clone()
            };
            self.text.push(&linked, word);
            self.text
                .push(paint, piece.get(word.len()..).unwrap_or_default());
        }
    }

    fn columns(&self) -> usize {
        let margins = self.margins.iter().map(|margin| margin.rest.width());
        self.look.columns.saturating_sub(margins.sum())
    }

    /// Begins a block.
    fn begin_block(&mut self) {
        if mem::take(&mut self.is_apart) && !self.rows.is_empty() {
            let margins = self.margins.iter().map(|margin| margin.rest.as_str());
            let margin = margins.collect::<String>();
            self.rows.push(margin.trim_end().to_owned());
        }
    }

    fn flush_apart(&mut self) {
        self.flush();
        self.is_apart = true;
    }

    fn flush(&mut self) {
        let text = mem::take(&mut self.text);
        if text.is_blank() {
            return;
        }
        for (row, _) in text.wrap(self.columns(), self.look) {
            self.row(row);
        }
    }

    fn row(&mut self, row: String) {
        let margins = self.margins.iter_mut();
        let margins =
            margins.map(|margin| margin.first.take().unwrap_or_else(|| margin.rest.clone()));
        let whole = margins.collect::<String>() + &row;
        self.rows.push(whole.trim_end().to_owned());
    }

    fn begin_table_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.rows.push(Vec::new());
        }
    }

    fn table(&mut self) {
        let Table { alignments, rows } = self.table.take().unwrap_or_default();
        let natural = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(Text::width).max().unwrap_or(0)
        };
        let natural = (0..alignments.len()).map(natural).collect::<Vec<_>>();
        let gaps = GAP.len() * alignments.len().saturating_sub(1);
        let widths = fit_columns(natural, self.columns().saturating_sub(gaps));
        for (number, row) in rows.iter().enumerate() {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| cell.wrap(*width, self.look));
            let cells: Vec<_> = cells.collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                let mut whole = String::new();
                for (at, ((cell, width), alignment)) in
                    cells.iter().zip(&widths).zip(&alignments).enumerate()
                {
                    let (text, used) = cell.get(line).cloned().unwrap_or_default();
                    let space = width.saturating_sub(used);
                    let before = match alignment {
                        Alignment::Right => space,
                        Alignment::Center => space / 2,
                        Alignment::Left | Alignment::None => 0,
                    };
                    let gap = if at == 0 { "" } else { GAP };
                    let [before, after] = [before, space - before].map(|space| " ".repeat(space));
                    whole += &format!("{gap}{before}{text}{after}");
                }
                self.row(whole.trim_end().to_owned());
            }
            if number == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let mut rule = String::new();
                let paint = self.paint(|paint| paint.dim = true);
                self.look.paint(&mut rule, &paint, &rules.join(GAP));
                self.row(rule);
            }
        }
        self.is_apart = true;
    }
}

/// Narrows the widest columns until all fit.
fn fit_columns(mut widths: Vec<usize>, columns: usize) -> Vec<usize> {
    let mut over = widths.iter().sum::<usize>().saturating_sub(columns);
    while over > 0 {
        let Some(widest) = widths.iter_mut().max_by_key(|width| **width) else {
            break;
        };
        if *widest <= MIN_COLUMN {
            break;
        }
        *widest -= 1;
        over -= 1;
    }
    widths
}

/// The URL of the file in a place such as `src/main.rs:12` or `src/main.rs:12-20`.
fn file(root: &Path, word: &str) -> Option<String> {
    let (path, lines) = word.trim_end_matches(['.', ':']).split_once(':')?;
    let is_line = |c: char| c.is_ascii_digit() || matches!(c, '-' | ':');
    let file = root.join(path);
    let is_place = !lines.is_empty() && lines.chars().all(is_line) && file.is_file();
    let url = is_place.then(|| Url::from_file_path(file).ok())??;
    Some(url.to_string())
}
