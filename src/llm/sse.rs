//! Parses server-sent events from bytes in any chunks.
//!
//! Own code, because `sse-stream` bounds neither a line nor an event, drops a last event without a
//! blank line, and stops at invalid UTF-8.
//!
//! **Invariant:** the parser never holds more than its limit.

use std::mem;

use memchr::{memchr, memchr2};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    name: String,
    after_return: bool,
    has_begun: bool,
    limit: usize,
}

impl Parser {
    /// Creates a parser that holds at most `limit` bytes of an event.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Takes the chunk up to the end of the next event; `None` if that is still to come.
    pub fn next(&mut self, chunk: &mut &[u8]) -> Result<Option<Event>, TooLong> {
        if self.after_return && !chunk.is_empty() {
            self.after_return = false;
            *chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(at) = memchr2(b'\r', b'\n', chunk) {
            let (head, tail) = chunk.split_at(at);
            *chunk = &tail[1..];
            if tail[0] == b'\r' {
                self.after_return = chunk.is_empty();
                *chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
            }
            let event = if self.line.is_empty() {
                self.room_for(head.len())?;
                self.end_of_line(head)?
            } else {
                self.hold(head)?;
                let line = mem::take(&mut self.line);
                self.end_of_line(&line)?
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        self.hold(mem::take(chunk))?;
        Ok(None)
    }

    /// Ends the input: an incomplete event counts as complete. Called until it returns `None`.
    pub fn finish(&mut self) -> Result<Option<Event>, TooLong> {
        self.next(&mut &b"\n\n"[..])
    }

    #[cfg(test)]
    pub fn held(&self) -> usize {
        self.line.capacity() + self.data.capacity() + self.name.capacity()
    }

    fn room_for(&self, more: usize) -> Result<(), TooLong> {
        let held = self.line.len() + self.data.len() + self.name.len();
        if held + more > self.limit {
            return Err(TooLong);
        }
        Ok(())
    }

    fn hold(&mut self, part: &[u8]) -> Result<(), TooLong> {
        self.room_for(part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Returns the event that this line completes.
    fn end_of_line(&mut self, line: &[u8]) -> Result<Option<Event>, TooLong> {
        let line = match mem::replace(&mut self.has_begun, true) {
            true => line,
            false => line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line),
        };
        if line.is_empty() {
            return Ok(self.event());
        }
        let (field, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        // Some servers forget the blank line between events. Within one JSON text, no line that ends
        // a value is followed by one that begins another.
        let begins =
            field == b"event" || (field == b"data" && matches!(value.first(), Some(b'{' | b'[')));
        let ended = begins && matches!(self.data.trim_ascii_end().last(), Some(b'}' | b']'));
        let before = ended.then(|| self.event()).flatten();
        match field {
            b"data" => {
                self.room_for(value.len() + 1)?;
                if mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                // A byte that is not UTF-8 becomes three.
                let name = String::from_utf8_lossy(value);
                self.room_for(name.len())?;
                self.name.push_str(&name);
            }
            // Comments have an empty name; `id`, `retry` and unknown fields are ignored.
            _ => {}
        }
        Ok(before)
    }

    fn event(&mut self) -> Option<Event> {
        let (name, data) = (mem::take(&mut self.name), mem::take(&mut self.data));
        mem::take(&mut self.has_data).then(|| Event {
            name,
            data: String::from_utf8(data)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        })
    }
}

#[cfg(test)]
mod tests;
