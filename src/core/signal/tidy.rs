//! Normalizes white space of visible text: trims both ends, and reduces three or more newlines to
//! two.
//!
//! **Invariant:** written text never ends in white space; white space that may be trimmed is held
//! back.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::view::visit;

/// Built once, because that takes longer than searching a short reply.
static FOLD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\n\n\n"));

#[derive(Debug, Default)]
pub(super) struct WhitespaceNormalizer {
    /// White space since the last visible character.
    pending: String,
    /// Whether text was written.
    pub(super) begun: bool,
}

impl WhitespaceNormalizer {
    /// Adds a piece and appends to `out` what can be shown.
    pub(super) fn push(&mut self, piece: &str, out: &mut String) {
        let text = piece.trim_start();
        let white = piece.len() - text.len();
        let body = text.trim_end();
        visit(2 * (piece.len() - body.len()));
        if self.begun {
            self.pending.push_str(&piece[..white]);
        }
        if body.is_empty() {
            return;
        }
        if self.begun {
            write(&std::mem::take(&mut self.pending), out);
        }
        self.begun = true;
        write(body, out);
        self.pending.push_str(&text[body.len()..]);
    }
}

fn write(mut text: &str, out: &mut String) {
    visit(text.len());
    while let Some(run) = FOLD.find(text.as_bytes()) {
        let (kept, rest) = text.split_at(run + 2);
        out.push_str(kept);
        text = rest.trim_start_matches('\n');
    }
    out.push_str(text);
}
