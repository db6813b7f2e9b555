//! Fenced blocks of code, line by line, in the colours of their language.

use std::sync::LazyLock;

use syntect::{easy::HighlightLines, highlighting::Theme, parsing::SyntaxSet};
use two_face::theme::EmbeddedThemeName;

use super::inline::{Look, Paint};
use crate::cli::text::cut;

/// Longer lines have no colours.
const MAX_LINE: usize = 2 << 10;

const INDENT: &str = "  ";

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);
/// Its colours are those of the terminal, so it suits light and dark ones.
pub(super) static THEME: LazyLock<Theme> = LazyLock::new(|| {
    two_face::theme::extra()
        .get(EmbeddedThemeName::Ansi)
        .clone()
});

/// A block of code whose end has not come.
pub(super) struct Code {
    fence: String,
    highlighter: Option<HighlightLines<'static>>,
}

impl Code {
    /// Begins at the text of a fence.
    pub(super) fn begin(text: &str, info: &str) -> Option<Self> {
        let line = text.lines().next()?;
        let mark = line.chars().next();
        let mark = mark.filter(|mark| matches!(mark, '`' | '~'))?;
        let fence = line.chars().take_while(|c| *c == mark).collect();
        Some(Self {
            fence,
            highlighter: highlighter(info),
        })
    }

    /// Takes complete lines off the text; returns whether the block has ended.
    pub(super) fn take_lines(
        &mut self,
        text: &mut String,
        look: &Look,
        rows: &mut Vec<String>,
    ) -> bool {
        while let Some(end) = text.find('\n') {
            let line: String = text.drain(..=end).collect();
            if self.is_end(&line) {
                return true;
            }
            rows.push(self.row(&line, look));
        }
        false
    }

    /// The row of an incomplete line, without colours.
    pub(super) fn open_row(&self, line: &str, look: &Look) -> Option<String> {
        let is_text = !line.is_empty() && !self.is_end(line);
        is_text.then(|| cut(&format!("{INDENT}{}", tabs(line)), look.columns))
    }

    fn is_end(&self, line: &str) -> bool {
        let mark = self.fence.chars().next().unwrap_or('`');
        let fence = line.trim();
        let indent = line.len() - line.trim_start().len();
        indent < 4 && fence.len() >= self.fence.len() && fence.chars().all(|c| c == mark)
    }

    fn row(&mut self, line: &str, look: &Look) -> String {
        let mut row = INDENT.to_owned();
        let highlighted = match &mut self.highlighter {
            Some(of) if look.is_coloured && line.len() <= MAX_LINE => {
                of.highlight_line(line, &SYNTAXES).ok()
            }
            _ => None,
        };
        match highlighted {
            None => look.paint(&mut row, &Paint::default(), &tabs(line)),
            Some(pieces) => {
                for (style, piece) in pieces {
                    // In this theme, such a colour is one of the terminal's.
                    let colour = (style.foreground.a == 0).then_some(style.foreground.r);
                    let paint = Paint {
                        colour,
                        ..Paint::default()
                    };
                    let piece = tabs(piece);
                    if !piece.is_empty() {
                        look.paint(&mut row, &paint, &piece);
                    }
                }
            }
        }
        row.truncate(row.trim_end().len());
        row
    }
}

/// The rows of a whole block.
pub(super) fn rows(text: &str, info: &str, look: &Look) -> Vec<String> {
    let mut code = Code {
        fence: String::new(),
        highlighter: highlighter(info),
    };
    let lines = text.split_inclusive('\n');
    lines.map(|line| code.row(line, look)).collect()
}

fn highlighter(info: &str) -> Option<HighlightLines<'static>> {
    let token = info.split([' ', ',', '{']).next();
    let token = token.filter(|token| !token.is_empty())?;
    let syntax = SYNTAXES.find_syntax_by_token(token)?;
    Some(HighlightLines::new(syntax, &THEME))
}

fn tabs(line: &str) -> String {
    line.trim_end_matches(['\n', '\r']).replace('\t', "    ")
}
