//! From the bytes of an answer to the pieces of a reply, in any dialect.
//!
//! An answer is a stream of events or one JSON text, whatever was asked for and whatever its type is
//! said to be: the first byte tells. No I/O and no clock, so that any bytes in any chunks can be tried.
//!
//! **Invariant:** the bytes of one answer are bounded, and so is all that is made of them.

use super::{
    Delta,
    decode::{Decode, Flow},
    fault,
    sse::{Parser, TooLong},
};
use crate::model::{Fault, Reply};

/// Most bytes of one answer.
pub(super) const REPLY_LIMIT: usize = 32 << 20;
/// Most bytes of one event of it.
pub(super) const EVENT_LIMIT: usize = 4 << 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) reply: usize,
    pub(super) event: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            reply: REPLY_LIMIT,
            event: EVENT_LIMIT,
        }
    }
}

pub(super) struct Reading {
    decoder: Box<dyn Decode>,
    form: Form,
    bytes: usize,
    bounds: Bounds,
}

enum Form {
    Unknown,
    Events(Parser),
    Whole(Vec<u8>),
}

enum Stop {
    End,
    Fault(Fault),
}

impl From<TooLong> for Stop {
    fn from(_: TooLong) -> Self {
        Self::Fault(fault::too_much("one event of the reply is too long"))
    }
}

impl Reading {
    pub(super) const fn new(decoder: Box<dyn Decode>, bounds: Bounds) -> Self {
        Self {
            decoder,
            form: Form::Unknown,
            bytes: 0,
            bounds,
        }
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, chunk: &[u8], out: &mut Vec<Delta>) -> Result<Flow, Fault> {
        self.bytes = self.bytes.saturating_add(chunk.len());
        if self.bytes > self.bounds.reply {
            let limit = self.bounds.reply;
            return Err(fault::too_much(&format!(
                "the reply is longer than {limit} bytes"
            )));
        }
        let chunk = match self.form {
            Form::Unknown => self.begin(chunk)?,
            Form::Events(_) | Form::Whole(_) => chunk,
        };
        match &mut self.form {
            Form::Unknown => Ok(Flow::More),
            Form::Whole(body) => {
                body.extend_from_slice(chunk);
                Ok(Flow::More)
            }
            Form::Events(parser) => {
                let mut each = |event: super::sse::Event<'_>| match self.decoder.event(
                    event.name,
                    &event.data,
                    out,
                ) {
                    Ok(Flow::More) => Ok(()),
                    Ok(Flow::End) => Err(Stop::End),
                    Err(fault) => Err(Stop::Fault(fault)),
                };
                match parser.feed(chunk, &mut each) {
                    Ok(()) => Ok(Flow::More),
                    Err(Stop::End) => Ok(Flow::End),
                    Err(Stop::Fault(fault)) => Err(fault),
                }
            }
        }
    }

    /// Bytes that are held, at most: what has begun, and what has been made of all before it.
    #[cfg(test)]
    fn held(&self) -> (usize, usize) {
        let begun = match &self.form {
            Form::Unknown => 0,
            Form::Events(parser) => parser.held(),
            Form::Whole(body) => body.capacity(),
        };
        (begun, self.decoder.held())
    }

    fn begin<'a>(&mut self, chunk: &'a [u8]) -> Result<&'a [u8], Fault> {
        // White space and the bytes of a byte order mark say nothing before either form.
        let blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF);
        let Some(start) = chunk.iter().position(|byte| !blank(byte)) else {
            return Ok(&[]);
        };
        let rest = &chunk[start..];
        self.form = match rest[0] {
            b'{' | b'[' => Form::Whole(Vec::new()),
            b'<' => {
                let detail = "a page came instead of a reply: is the base URL right?";
                return Err(Fault::permanent(fault::BAD_STREAM, detail));
            }
            _ => Form::Events(Parser::new(self.bounds.event)),
        };
        Ok(rest)
    }

    /// The end mark was there, or the bytes have ended.
    pub(super) fn end(&mut self, flow: Flow, out: &mut Vec<Delta>) -> Result<Reply, Fault> {
        match (flow, std::mem::replace(&mut self.form, Form::Unknown)) {
            (Flow::End, _) | (Flow::More, Form::Unknown) => {}
            (Flow::More, Form::Whole(body)) => {
                self.decoder.whole(&String::from_utf8_lossy(&body), out)?;
            }
            (Flow::More, Form::Events(mut parser)) => {
                let mut each = |event: super::sse::Event<'_>| {
                    let taken = self.decoder.event(event.name, &event.data, out);
                    taken.map(drop).map_err(Stop::Fault)
                };
                match parser.finish(&mut each) {
                    // Half an event at the end is no news: the reply is whole without it, or cut.
                    Err(Stop::Fault(fault))
                        if !matches!(&*fault.code, fault::BAD_STREAM | fault::CUT) =>
                    {
                        return Err(fault);
                    }
                    Ok(()) | Err(Stop::End | Stop::Fault(_)) => {}
                }
            }
        }
        self.decoder.reply()
    }
}

#[cfg(test)]
mod tests;
