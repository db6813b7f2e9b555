//! Reads a window of lines from a stream in bounded memory.
//!
//! Independent of paths and of wording for the model. A line ends with `\n`; a `\r` before it and a
//! leading byte order mark are dropped. Invalid UTF-8 is replaced.

use std::io::{BufRead, BufReader, ErrorKind, Read};

use memchr::memchr;
use tokio_util::sync::CancellationToken;

use crate::tool::text::clipped;

/// Size of a read, in bytes.
const CHUNK: usize = 64 * 1024;
/// A NUL within this many bytes marks a binary file, as in git.
const BINARY_CHECK_BYTES: usize = 8_000;
const BOM: &[u8] = b"\xef\xbb\xbf";
/// Byte order marks of UTF-16.
const UTF16_BOMS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowLimits {
    pub(crate) bytes: usize,
    pub(crate) line_chars: usize,
    /// Bytes from the start of the file within which lines after the window are counted.
    pub(crate) count_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    Exactly(u64),
    AtLeast(u64),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) lines: Vec<Line>,
    pub(crate) total: Total,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) cut: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WindowError {
    Binary,
    Utf16,
    Stopped(u64),
    Failed(ErrorKind),
}

pub(crate) fn is_utf16(head: &[u8]) -> bool {
    // Two zeros after the mark make it UTF-32.
    let rest = UTF16_BOMS.iter().find_map(|bom| head.strip_prefix(*bom));
    rest.is_some_and(|rest| !rest.starts_with(&[0, 0]))
}

/// Reads the lines of `span`.
pub(crate) fn read(
    source: impl Read,
    span: Span,
    limits: WindowLimits,
    stop: &CancellationToken,
) -> Result<Window, WindowError> {
    let mut source = BufReader::with_capacity(CHUNK, source);
    let mut reading = WindowReader {
        span,
        limits,
        lines: Vec::new(),
        bytes: 0,
        number: 1,
        current: Vec::new(),
        begun: false,
    };
    let mut offset = 0_u64;
    loop {
        let chunk = match source.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(WindowError::Failed(error.kind())),
        };
        let length = chunk.len();
        if length == 0 {
            return Ok(reading.finish());
        }
        if stop.is_cancelled() {
            return reading.abort();
        }
        // A mark split over two reads stays; only a pipe could cause that, and pipes are never
        // opened.
        let mut fresh = chunk;
        if offset == 0 {
            fresh = chunk.strip_prefix(BOM).unwrap_or(chunk);
            if is_utf16(chunk) {
                return Err(WindowError::Utf16);
            }
            if memchr(0, &fresh[..fresh.len().min(BINARY_CHECK_BYTES)]).is_some() {
                return Err(WindowError::Binary);
            }
        }
        reading.take(fresh)?;
        offset += length as u64;
        source.consume(length);
        let is_past = reading.number > reading.span.end;
        if is_past && offset >= limits.count_bytes {
            return reading.abort();
        }
    }
}

struct WindowReader {
    span: Span,
    limits: WindowLimits,
    lines: Vec<Line>,
    bytes: usize,
    number: u64,
    /// The bytes of the line so far, as far as they can be shown.
    current: Vec<u8>,
    begun: bool,
}

impl WindowReader {
    fn take(&mut self, mut chunk: &[u8]) -> Result<(), WindowError> {
        // A character has at most four bytes; one byte more shows that the line was longer, and one
        // may be the `\r`.
        let keep = self.limits.line_chars * 4 + 2;
        while !chunk.is_empty() {
            let end = memchr(b'\n', chunk);
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            if self.is_inside() {
                if memchr(0, piece).is_some() {
                    return Err(WindowError::Binary);
                }
                let room = keep.saturating_sub(self.current.len());
                self.current
                    .extend_from_slice(&piece[..piece.len().min(room)]);
            }
            self.begun |= !piece.is_empty();
            let Some(end) = end else { return Ok(()) };
            self.end_line();
            chunk = &chunk[end + 1..];
        }
        Ok(())
    }

    fn end_line(&mut self) {
        if self.is_inside() {
            let raw = self.current.strip_suffix(b"\r").unwrap_or(&self.current);
            let whole = String::from_utf8_lossy(raw);
            let (text, cut) = clipped(&whole, self.limits.line_chars);
            if !self.lines.is_empty() && self.bytes + text.len() > self.limits.bytes {
                self.span.end = self.number - 1;
            } else {
                self.bytes += text.len();
                self.lines.push(Line {
                    text: text.to_owned(),
                    cut,
                });
            }
            self.current.clear();
        }
        self.number += 1;
        self.begun = false;
    }

    fn is_inside(&self) -> bool {
        (self.span.start..=self.span.end).contains(&self.number)
    }

    fn finish(mut self) -> Window {
        if self.begun {
            self.end_line();
        }
        Window {
            lines: self.lines,
            total: Total::Exactly(self.number - 1),
        }
    }

    fn abort(self) -> Result<Window, WindowError> {
        if self.lines.is_empty() {
            return Err(WindowError::Stopped(self.number));
        }
        let known = self.number - u64::from(!self.begun);
        Ok(Window {
            lines: self.lines,
            total: Total::AtLeast(known),
        })
    }
}
