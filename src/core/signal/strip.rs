//! The visible text of a reply while it streams in.

use std::sync::Arc;

use super::{filter::SignalFilter, scan::Offer, view::View};
use crate::model::ToolSpec;

/// Extracts a reply's visible text chunk by chunk. The pieces add up to the text of
/// [`read`](super::read), however the chunks are cut, after a thought without an opening tag: that
/// may be shown before its end is known.
///
/// Signal blocks and inline reasoning are never shown. Text is held back only after an incomplete
/// or open tag or a near miss, in a fence that may be the signal, on a line of undecided backticks,
/// and for white space that may be trimmed; with tools, from a mark of a call to the end.
#[derive(Debug, Default)]
pub struct Stripper {
    filter: SignalFilter,
    /// Text that is still needed; it begins at `base` in the reply.
    buffer: String,
    base: usize,
}

impl Stripper {
    /// Creates a stripper for the start of a reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a stripper for a reply that may call these tools in its text, as
    /// [`read_reply`](super::read_reply) reads it.
    pub fn for_tools(tools: Arc<[ToolSpec]>, is_text: bool) -> Self {
        Self {
            filter: SignalFilter::new(Offer { tools, is_text }),
            ..Self::default()
        }
    }

    /// Adds a chunk and returns the text that it makes visible.
    #[must_use = "what became visible is given once"]
    pub fn push(&mut self, chunk: &str) -> String {
        self.buffer.push_str(chunk);
        let mut shown = String::new();
        let view = View::new(&self.buffer, self.base, false);
        self.filter.feed(view, &mut shown);
        self.discard_consumed();
        shown
    }

    /// Ends the reply and returns the rest of the visible text.
    #[must_use = "what became visible is given once"]
    pub fn finish(mut self) -> String {
        let mut shown = String::new();
        let view = View::new(&self.buffer, self.base, true);
        self.filter.feed(view, &mut shown);
        shown
    }

    /// Drops unneeded text once it fills most of the buffer, so each byte moves at most once.
    fn discard_consumed(&mut self) {
        let gone = self.filter.first_needed() - self.base;
        if gone > self.buffer.len() / 2 {
            self.buffer.drain(..gone);
            self.base += gone;
        }
    }
}

#[cfg(test)]
mod tests;
