//! The events of a stream, written into one buffer whose parts are known.

use std::fmt::Write as _;

use bytes::Bytes;

/// What an event holds, as far as faults care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// What stands before and between contents.
    Frame,
    /// A piece of text, reasoning or a call.
    Content,
    /// Why it ended, what was used.
    End,
    /// The end mark.
    Mark,
}

/// The events of a stream, in order.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: String,
    /// Where each ends, and what it holds.
    ends: Vec<(usize, Holds)>,
}

impl Events {
    pub(super) fn with_capacity(bytes: usize, events: usize) -> Self {
        Self {
            buffer: String::with_capacity(bytes),
            ends: Vec::with_capacity(events),
        }
    }

    /// Adds an event whole.
    pub(super) fn push(&mut self, holds: Holds, parts: &[&str]) {
        for part in parts {
            self.buffer.push_str(part);
        }
        self.buffer.push_str("\n\n");
        self.ends.push((self.buffer.len(), holds));
    }

    /// Adds an event that has its type beside it, as Anthropic's have.
    pub(super) fn named(&mut self, holds: Holds, name: &str, fields: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = write!(
            self.buffer,
            "event: {name}\ndata: {{\"type\":\"{name}\"{fields}}}\n\n"
        );
        self.ends.push((self.buffer.len(), holds));
    }

    /// All of them in one piece.
    pub(super) fn whole(self) -> Bytes {
        Bytes::from(self.buffer)
    }

    /// One by one.
    pub(super) fn parted(self) -> Vec<(Bytes, Holds)> {
        let whole = Bytes::from(self.buffer);
        let mut from = 0;
        let part = |(to, holds)| {
            let part = whole.slice(from..to);
            from = to;
            (part, holds)
        };
        self.ends.into_iter().map(part).collect()
    }
}
