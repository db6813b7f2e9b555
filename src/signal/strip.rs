//! The visible text of a reply as it streams in.

use super::{
    sift::Sift,
    view::{Rest, View},
};

/// Shows a reply's visible text piece by piece; together the pieces are exactly the text that
/// [`read`](super::read) gives for the whole, however the chunks cut it.
///
/// No byte of a signal block or of inline reasoning is ever shown. Kept back are only: a tag that is
/// not whole, all that follows an open signal tag or near miss, a fence that may yet be the reply's signal, tags on a line whose
/// backticks do not yet say whether they are code, and white space that may be trimmed or folded.
#[derive(Debug, Default)]
pub struct Stripper {
    sift: Sift,
    /// What is kept back, and where in the reply it begins.
    kept: String,
    base: usize,
}

impl Stripper {
    /// At the start of a reply.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk; gives what became visible, which may be empty.
    #[must_use = "what became visible is given once"]
    pub fn push(&mut self, chunk: &str) -> String {
        self.kept.push_str(chunk);
        let mut shown = String::new();
        let view = View::new(&self.kept, self.base, Rest::MayCome);
        self.sift.feed(view, &mut shown, &mut ());
        self.forget();
        shown
    }

    /// The reply is whole; gives what is visible of the rest.
    #[must_use = "what became visible is given once"]
    pub fn finish(mut self) -> String {
        let mut shown = String::new();
        let view = View::new(&self.kept, self.base, Rest::None);
        self.sift.feed(view, &mut shown, &mut ());
        shown
    }

    /// Drops what is no longer needed, once that is most of it: each byte moves at most once.
    fn forget(&mut self) {
        let gone = self.sift.needs_from() - self.base;
        if gone > self.kept.len() / 2 {
            self.kept.drain(..gone);
            self.base += gone;
        }
    }
}

#[cfg(test)]
mod tests;
