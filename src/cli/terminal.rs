//! The three standard streams, and what is on their other ends.
//!
//! Made once, at the start; commands get it handed in, so that a test can hand in buffers. It
//! decides nothing about what is written.
//!
//! **Invariant:** nothing that goes to standard error can command a terminal: what models, servers and
//! files say is in it. Standard output is data for programs; who shows it to people makes it
//! `harmless`.

use std::{
    fmt::Display,
    io::{self, BufRead, BufReader, Write},
};

use serde::Serialize;

use super::{Environment, Stop};

mod device;

#[cfg(any(test, feature = "testkit"))]
mod recording;

pub use device::{Device, Style};
#[cfg(any(test, feature = "testkit"))]
pub use recording::Recording;

/// The standard streams.
pub struct Terminal {
    /// Standard input.
    pub input: Input,
    /// Standard output: results.
    pub out: Stream,
    /// Standard error: everything else.
    pub err: Stream,
    status: Status,
}

/// Whether a status line stands on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Shown,
    None,
}

impl Terminal {
    /// The streams of this process.
    #[must_use]
    pub fn standard(environment: &Environment) -> Self {
        let style = Style::wanted(environment);
        let (input, out, err) = (io::stdin(), io::stdout(), io::stderr());
        let of_input = Device::of(&input, style);
        let (of_out, of_err) = (Device::of(&out, style), Device::of(&err, style));
        Self::new(
            Input::new(BufReader::new(input), of_input),
            Stream::new(out, of_out),
            Stream::new(err, of_err),
        )
    }

    /// These streams.
    #[must_use]
    pub const fn new(input: Input, out: Stream, err: Stream) -> Self {
        Self {
            input,
            out,
            err,
            status: Status::None,
        }
    }

    /// Whether a person sees standard output.
    #[must_use]
    pub const fn out_is_terminal(&self) -> bool {
        self.out.device.is_terminal()
    }

    /// Whether a person sees standard error.
    #[must_use]
    pub const fn err_is_terminal(&self) -> bool {
        self.err.device.is_terminal()
    }

    /// Writes a piece of a result, and shows it at once.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        self.clear_status();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Writes a line of a result.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.write(&format!("{text}\n"))
    }

    /// Tells people something, a line, as it stands. Where nobody listens, nothing is lost: what is
    /// said on standard error never decides how a command ends.
    pub fn note(&mut self, text: &str) {
        self.clear_status();
        let _ = writeln!(self.err, "{}", harmless(text));
    }

    /// Asks a person to type; nothing where nobody does.
    pub fn prompt(&mut self, text: &str) {
        if !self.input.is_terminal() || !self.err_is_terminal() {
            return;
        }
        self.clear_status();
        let _ = self.err.write_all(text.as_bytes());
        let _ = self.err.flush();
    }

    /// Shows what happens now, in place of what was shown before; nothing where standard error is
    /// no terminal that can take back what it shows. The cursor must be at the start of a line.
    pub fn status(&mut self, text: &str) {
        let Device::Terminal { width, style } = self.err.device else {
            return;
        };
        // One column less than there are: a full line would wrap and could not be taken back.
        let text = harmless(text).replace(['\n', '\t'], " ");
        let text: String = text.chars().take(width.saturating_sub(1)).collect();
        let line = match style {
            Style::Dumb => return,
            Style::Plain => text,
            Style::Coloured => format!("\x1b[2m{text}\x1b[0m"),
        };
        self.status = Status::Shown;
        let _ = write!(self.err, "\r\x1b[K{line}");
        let _ = self.err.flush();
    }

    /// Takes the status line away, if there is one.
    pub fn clear_status(&mut self) {
        match std::mem::replace(&mut self.status, Status::None) {
            Status::None => {}
            Status::Shown => {
                let _ = self.err.write_all(b"\r\x1b[K");
                let _ = self.err.flush();
            }
        }
    }
}

/// A stream to write to.
pub struct Stream {
    writer: Box<dyn Write + Send>,
    device: Device,
}

impl Stream {
    /// A stream with this at its other end.
    #[must_use]
    pub fn new(writer: impl Write + Send + 'static, device: Device) -> Self {
        Self {
            writer: Box::new(writer),
            device,
        }
    }

    /// Writes a result as one line of JSON.
    ///
    /// # Errors
    /// When it has no form in JSON, or the stream cannot be written.
    pub fn json(&mut self, result: &impl Serialize) -> Result<(), Stop> {
        let mut line = serde_json::to_string(result).map_err(Stop::no_json)?;
        line.push('\n');
        Ok(self.write_all(line.as_bytes())?)
    }

    /// Tells people something, with the name of the program before it. Where nobody listens,
    /// nothing is lost.
    pub fn say(&mut self, text: impl Display) {
        let _ = writeln!(self, "oracle: {}", harmless(&text.to_string()));
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Text of a model, a server or a file for a terminal: it must not be able to command it.
pub(super) fn harmless(text: &str) -> String {
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.chars()
        .map(|c| if commands(c) { '\u{fffd}' } else { c })
        .collect()
}

/// A stream to read from.
pub struct Input {
    /// What it says.
    pub reader: Box<dyn BufRead + Send>,
    device: Device,
}

impl Input {
    /// A stream with this at its other end.
    #[must_use]
    pub fn new(reader: impl BufRead + Send + 'static, device: Device) -> Self {
        Self {
            reader: Box::new(reader),
            device,
        }
    }

    /// Whether a person types it.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        self.device.is_terminal()
    }
}

#[cfg(test)]
mod tests;
