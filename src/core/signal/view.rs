//! A window on the reply, spans in it, and a count of steps for tests.
//!
//! **Invariant:** positions are byte offsets in the reply, not in the window.

/// The range `start..end` of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    text: &'a str,
    base: usize,
    /// Whether the window contains the end of the reply; else it may grow.
    is_last: bool,
}

impl<'a> View<'a> {
    /// A window with `text` at `base` in the reply.
    pub(super) const fn new(text: &'a str, base: usize, is_last: bool) -> Self {
        Self {
            text,
            base,
            is_last,
        }
    }

    pub(super) const fn whole(text: &'a str) -> Self {
        Self::new(text, 0, true)
    }

    /// This window with an earlier end.
    pub(super) fn until(self, end: usize, is_last: bool) -> Self {
        Self::new(&self.text[..end - self.base], self.base, is_last)
    }

    pub(super) const fn end(self) -> usize {
        self.base + self.text.len()
    }

    pub(super) const fn is_last(self) -> bool {
        self.is_last
    }

    pub(super) fn byte(self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at - self.base).copied()
    }

    pub(super) fn bytes_from(self, at: usize) -> &'a [u8] {
        &self.text.as_bytes()[at - self.base..]
    }

    /// The text from a position where a character begins.
    pub(super) fn text_from(self, at: usize) -> &'a str {
        &self.text[at - self.base..]
    }

    pub(super) fn slice(self, span: Span) -> &'a str {
        &self.text[span.start - self.base..span.end - self.base]
    }
}

/// Counts the bytes that are read, in tests of the cost.
#[cfg(not(test))]
#[inline]
pub(super) const fn visit(_bytes: usize) {}

#[cfg(test)]
pub(super) fn visit(bytes: usize) {
    STEPS.set(STEPS.get() + bytes);
}

#[cfg(test)]
thread_local! {
    /// The bytes that this thread's test has read.
    pub(super) static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
