//! Reads the bytes of an answer into the pieces of a reply, in any dialect.
//!
//! An answer is a stream of events or one JSON text, whatever was requested and whatever its
//! content type: the first byte decides. No I/O and no clock, so that tests can feed any bytes in
//! any chunks.
//!
//! **Invariant:** the bytes of an answer are bounded, and so is everything made from them.

use super::{
    Delta,
    decode::{Decode, Flow},
    fault,
    sse::{Parser, TooLong},
};
use crate::model::{Fault, FaultClass, FaultCode, Reply};

/// Byte limit of an answer.
pub(super) const REPLY_LIMIT: usize = 32 << 20;
/// Byte limit of an event.
pub(super) const EVENT_LIMIT: usize = 4 << 20;

/// Bytes of an event that may be an error without a known form.
const SHORT: usize = 8 << 10;

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
    form: ReplyForm,
    bytes: usize,
    bounds: Bounds,
    /// Whether content has arrived.
    begun: bool,
    /// The last event before any content, which may be an error in disguise.
    last: String,
}

enum ReplyForm {
    Unknown,
    Events(Parser),
    Whole(Vec<u8>),
}

impl From<TooLong> for Fault {
    fn from(_: TooLong) -> Self {
        fault::too_much("an event of the reply is too long")
    }
}

impl Reading {
    pub(super) const fn new(decoder: Box<dyn Decode>, bounds: Bounds) -> Self {
        Self {
            decoder,
            form: ReplyForm::Unknown,
            bytes: 0,
            bounds,
            begun: false,
            last: String::new(),
        }
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, chunk: &[u8], out: &mut Vec<Delta>) -> Result<Flow, Fault> {
        let fed = self.take(chunk, out);
        self.judged(fed, out)
    }

    /// After the first content, an error is an ordinary failed attempt, whose server is neither
    /// away nor refuses calls.
    fn judged<T>(&mut self, taken: Result<T, Fault>, out: &[Delta]) -> Result<T, Fault> {
        self.begun = self.begun || out.iter().any(is_content);
        taken.map_err(|mut fault| {
            if let FaultClass::Unavailable { after_ms } = fault.class
                && self.begun
            {
                fault.class = FaultClass::Retryable { after_ms };
            }
            fault
        })
    }

    fn take(&mut self, chunk: &[u8], out: &mut Vec<Delta>) -> Result<Flow, Fault> {
        self.bytes = self.bytes.saturating_add(chunk.len());
        if self.bytes > self.bounds.reply {
            let limit = self.bounds.reply;
            let what = format!("the reply is longer than {limit} bytes");
            return Err(fault::too_much(&what));
        }
        let chunk = match self.form {
            ReplyForm::Unknown => self.begin(chunk)?,
            ReplyForm::Events(_) | ReplyForm::Whole(_) => chunk,
        };
        match &mut self.form {
            ReplyForm::Unknown => Ok(Flow::More),
            ReplyForm::Whole(body) => {
                body.extend_from_slice(chunk);
                Ok(Flow::More)
            }
            ReplyForm::Events(parser) => {
                let mut rest = chunk;
                while let Some(event) = parser.next(&mut rest)? {
                    if self.decoder.event(&event.name, &event.data, out)? == Flow::End {
                        return Ok(Flow::End);
                    }
                    if !self.begun && event.data.len() < SHORT {
                        self.last.clear();
                        self.last.push_str(&event.data);
                    }
                }
                Ok(Flow::More)
            }
        }
    }

    /// Upper bounds of the bytes held: by the incomplete event or answer, and by the decoder.
    #[cfg(test)]
    fn held(&self) -> (usize, usize) {
        let begun = match &self.form {
            ReplyForm::Unknown => 0,
            ReplyForm::Events(parser) => parser.held(),
            ReplyForm::Whole(body) => body.capacity(),
        };
        (begun, self.decoder.held())
    }

    fn begin<'a>(&mut self, chunk: &'a [u8]) -> Result<&'a [u8], Fault> {
        // Either form may begin with white space or a byte order mark.
        let blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF);
        let Some(start) = chunk.iter().position(|byte| !blank(byte)) else {
            return Ok(&[]);
        };
        let rest = &chunk[start..];
        self.form = match rest {
            [b'{' | b'[', ..] => ReplyForm::Whole(Vec::new()),
            [0x1F, 0x8B, ..] => return Err(fault::encoded("gzip")),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => return Err(fault::encoded("zstd")),
            [0x78, 0x01 | 0x9C | 0xDA, ..] => return Err(fault::encoded("deflate")),
            [b'<', ..] => {
                let detail = "received an HTML page instead of a reply: check the base URL";
                return Err(Fault::permanent(FaultCode::BadStream, detail));
            }
            // `data`, `event`, `id`, `retry`, or a comment.
            [b'd' | b'e' | b'i' | b'r' | b':', ..] => {
                ReplyForm::Events(Parser::new(self.bounds.event))
            }
            _ => ReplyForm::Whole(Vec::new()),
        };
        Ok(rest)
    }

    /// Finishes the reply at its end mark or at the end of the bytes.
    pub(super) fn end(&mut self, flow: Flow, out: &mut Vec<Delta>) -> Result<Reply, Fault> {
        let ended = self.finish(flow, out).map_err(|fault| match fault.code {
            FaultCode::EmptyReply | FaultCode::Cut if !self.begun => {
                fault::instead_of_reply(&self.last).unwrap_or(fault)
            }
            _ => fault,
        });
        self.judged(ended, out)
    }

    fn finish(&mut self, flow: Flow, out: &mut Vec<Delta>) -> Result<Reply, Fault> {
        match (flow, std::mem::replace(&mut self.form, ReplyForm::Unknown)) {
            (Flow::End, _) | (Flow::More, ReplyForm::Unknown) => {}
            (Flow::More, ReplyForm::Whole(body)) => {
                self.last = String::from_utf8_lossy(&body).into_owned();
                if !self.last.starts_with(['{', '[']) {
                    return Err(fault::in_reply(&self.last));
                }
                self.decoder.whole(&self.last, out)?;
            }
            (Flow::More, ReplyForm::Events(mut parser)) => {
                while let Some(event) = parser.finish()? {
                    // Half an event at the end is ignored: the reply is complete without it, or cut
                    // off.
                    if let Err(fault) = self.decoder.event(&event.name, &event.data, out)
                        && !matches!(fault.code, FaultCode::BadStream | FaultCode::Cut)
                    {
                        return Err(fault);
                    }
                }
            }
        }
        self.decoder.reply()
    }
}

/// Whether it is a piece of the reply.
pub(super) fn is_content(delta: &Delta) -> bool {
    use Delta::{Progress, Reasoning, Text};
    matches!(delta, Text(_) | Reasoning(_) | Progress(_))
}

/// Decodes an answer that arrives in these chunks.
#[cfg(any(test, feature = "testkit"))]
pub fn decode<'a>(
    dialect: super::Dialect,
    request: super::Request,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Delta>, Result<Reply, Fault>) {
    let draft = super::decode::Draft::new("test".into(), request, "seed".to_owned());
    let mut reading = Reading::new((dialect.protocol().decoder)(draft), Bounds::default());
    let mut deltas = Vec::new();
    let ended = chunks
        .into_iter()
        .map(|chunk| reading.feed(chunk, &mut deltas))
        .find(|fed| !matches!(fed, Ok(Flow::More)));
    let ended = ended.unwrap_or(Ok(Flow::More));
    let reply = ended.and_then(|flow| reading.end(flow, &mut deltas));
    (deltas, reply)
}

#[cfg(test)]
mod tests;
