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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowEnd {
    /// The window may grow.
    MayGrow,
    /// The window contains the end of the reply.
    None,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    text: &'a str,
    base: usize,
    window_end: WindowEnd,
}

impl<'a> View<'a> {
    /// A window with `text` at `base` in the reply.
    pub(super) const fn new(text: &'a str, base: usize, window_end: WindowEnd) -> Self {
        Self {
            text,
            base,
            window_end,
        }
    }

    pub(super) const fn whole(text: &'a str) -> Self {
        Self::new(text, 0, WindowEnd::None)
    }

    /// This window with an earlier end.
    pub(super) fn until(self, end: usize, window_end: WindowEnd) -> Self {
        Self::new(&self.text[..end - self.base], self.base, window_end)
    }

    pub(super) const fn end(self) -> usize {
        self.base + self.text.len()
    }

    pub(super) fn is_last(self) -> bool {
        self.window_end == WindowEnd::None
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
