//! The three standard streams and the devices behind them.
//!
//! Created once at the start and passed to commands, so that tests can pass buffers. It does not
//! decide what is written.
//!
//! **Invariant:** standard error never carries control sequences from models, servers or files.
//! Standard output is data for programs; a caller that shows it to people makes it `harmless`.

use std::{
    fmt::Display,
    io::{self, BufRead, BufReader, Write},
    mem,
};

use serde::Serialize;

use super::{CliError, CliResult, Environment, text};
use crate::model::visible;

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
    /// Standard output, for results.
    pub out: OutputStream,
    /// Standard error, for everything else.
    pub err: OutputStream,
    /// Whether results are written as JSON.
    pub json: bool,
    /// Whether a status line is displayed on standard error.
    status: bool,
    /// Measures the terminal's columns and rows, which may change; `None` if they are fixed.
    measure: Option<fn() -> (usize, usize)>,
    /// Columns of coloured answers to a standard output that is no terminal.
    forced: Option<usize>,
    /// Widths of the rows at the end of the screen that are drawn again; see [`Self::draw`].
    live: Vec<usize>,
}

impl Terminal {
    /// The streams of this process.
    pub fn standard(environment: &Environment) -> Self {
        let style = Style::wanted(environment);
        let (input, out, err) = (io::stdin(), io::stdout(), io::stderr());
        let of_input = Device::of(&input, style);
        let (of_out, of_err) = (Device::of(&out, style), Device::of(&err, style));
        Self {
            measure: Some(device::size),
            forced: device::forced_columns(environment),
            ..Self::new(
                Input::new(BufReader::new(input), of_input),
                OutputStream::new(out, of_out),
                OutputStream::new(err, of_err),
            )
        }
    }

    /// Creates a terminal from these streams.
    pub const fn new(input: Input, out: OutputStream, err: OutputStream) -> Self {
        Self {
            input,
            out,
            err,
            json: false,
            status: false,
            measure: None,
            forced: None,
            live: Vec::new(),
        }
    }

    /// Whether standard output is a terminal.
    pub const fn out_is_terminal(&self) -> bool {
        self.out.device.is_terminal()
    }

    /// Whether standard error is a terminal.
    pub const fn err_is_terminal(&self) -> bool {
        self.err.device.is_terminal()
    }

    /// Current width and style of the terminal on standard error; `None` if it is not one.
    pub fn progress_style(&self) -> Option<(usize, Style)> {
        let (columns, _, style) = self.size_of(self.err.device)?;
        Some((columns, style))
    }

    /// Width in columns for text on standard error; unlimited if it is no terminal.
    pub fn columns(&self) -> usize {
        self.progress_style().map_or(usize::MAX, |(width, _)| width)
    }

    /// Columns, rows and style of the terminal on standard output; `None` if it is not one.
    pub(super) fn screen(&self) -> Option<(usize, usize, Style)> {
        self.size_of(self.out.device)
    }

    fn size_of(&self, device: Device) -> Option<(usize, usize, Style)> {
        const ROWS: usize = 24;
        let Device::Terminal { width, style } = device else {
            return None;
        };
        let (columns, rows) = self.measure.map_or((width, ROWS), |measure| measure());
        Some((columns, rows, style))
    }

    /// Columns for a coloured answer, if standard output is no terminal but colours are forced.
    pub(super) fn forced_columns(&self) -> Option<usize> {
        self.forced.filter(|_| !self.out_is_terminal())
    }

    /// Writes rows of a result, and below them live ones, which the next call replaces. It is one
    /// write, which overwrites and does not erase first, so that nothing flickers. A terminal that
    /// cannot move its cursor gets no live rows.
    pub(super) fn draw(&mut self, rows: &[String], live: &[String]) -> io::Result<()> {
        let Some((columns, _, style)) = self.screen() else {
            return Ok(());
        };
        let mut text = String::new();
        if style == Style::Dumb {
            text.extend(rows.iter().flat_map(|row| [row, "\n"]));
        } else {
            // Rows that no longer fit were wrapped by the terminal.
            let heights = self.live.iter().map(|width| width.div_ceil(columns).max(1));
            let height: usize = heights.sum();
            text.push_str("\x1b[?2026h\r");
            if height > 1 {
                text.push_str(&format!("\x1b[{}A", height - 1));
            }
            let widths: Vec<usize> = live.iter().map(|row| text::width(row)).collect();
            for row in rows {
                text.extend([row, erase_after(text::width(row), columns), "\n"]);
            }
            for (at, (row, width)) in live.iter().zip(&widths).enumerate() {
                text.push_str(if at == 0 { "" } else { "\n" });
                text.extend([row, erase_after(*width, columns)]);
            }
            self.live = widths;
            text.push_str("\x1b[J\x1b[?2026l");
        }
        self.out.put(&text)
    }

    /// A text of a model or a user, as it can be written to standard output.
    pub(super) fn shown(&self, text: &str) -> String {
        match self.out_is_terminal() {
            true => harmless(text),
            false => text.to_owned(),
        }
    }

    /// Writes a piece of a result and flushes it.
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        self.clear_status();
        self.out.put(text)
    }

    /// Writes a line of a result.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        self.write(&format!("{text}\n"))
    }

    /// Writes a result: as JSON if that is wanted, else this text.
    pub(super) fn result(&mut self, json: &impl Serialize, text: &str) -> CliResult {
        match self.json {
            true => self.out.json(json),
            false => Ok(self.line(text)?),
        }
    }

    /// Writes a table: on a terminal in columns with a head, right-aligned from column `right` on;
    /// else separated by tabs, without a head.
    pub(super) fn table<const N: usize>(
        &mut self,
        head: [&str; N],
        right: usize,
        rows: &[[String; N]],
    ) -> io::Result<()> {
        if !self.out_is_terminal() {
            for row in rows {
                writeln!(self.out, "{}", row.join("\t"))?;
            }
            return Ok(());
        }
        let rows = [&[head.map(str::to_owned)][..], rows].concat();
        for line in text::columns(&rows, right) {
            writeln!(self.out, "{line}")?;
        }
        Ok(())
    }

    /// Writes a line to standard error. Errors are ignored, because standard error never decides
    /// how a command ends.
    pub fn note(&mut self, text: &str) {
        self.clear_status();
        // In one write, so that other processes' output does not split the line.
        let line = format!("{}\n", harmless(text));
        let _ = self.err.write_all(line.as_bytes());
    }

    /// Writes a line to standard error, after the name of the program.
    pub(super) fn say(&mut self, text: impl Display) {
        self.note(&format!("oracle: {text}"));
    }

    /// Shows a prompt if input comes from a terminal.
    pub fn prompt(&mut self, text: &str) {
        if !self.input.is_terminal() || !self.err_is_terminal() {
            return;
        }
        self.clear_status();
        let _ = self.err.put(text);
    }

    /// Replaces the status line, if standard error is a terminal that can erase it. The cursor must
    /// be at the start of a line.
    pub fn status(&mut self, text: &str) {
        let erases = |(_, style): &(usize, Style)| *style != Style::Dumb;
        let Some((width, style)) = self.progress_style().filter(erases) else {
            return;
        };
        // A full line would wrap, and could not be erased.
        let line = style.dim(&text::cut(&one_line(text), width.saturating_sub(1)));
        self.status = true;
        let _ = self.err.put(&format!("\r\x1b[K{line}"));
    }

    /// Keeps the live rows, except the last one, which says what is being done.
    pub(super) fn keep_live(&mut self) {
        if !mem::take(&mut self.live).is_empty() {
            let _ = self.out.put("\r\x1b[K");
        }
    }

    /// Erases the status line and the live rows.
    pub fn clear_status(&mut self) {
        if !self.live.is_empty() {
            let _ = self.draw(&[], &[]);
        }
        if mem::take(&mut self.status) {
            let _ = self.err.put("\r\x1b[K");
        }
    }
}

/// Erases what a row leaves of the row that it overwrites. At the end of a full row, this would erase
/// its last character.
const fn erase_after(width: usize, columns: usize) -> &'static str {
    if width > 0 && width.is_multiple_of(columns) {
        ""
    } else {
        "\x1b[K"
    }
}

/// An output stream.
pub struct OutputStream {
    writer: Box<dyn Write + Send>,
    device: Device,
}

impl OutputStream {
    /// Creates a stream to this device.
    pub fn new(writer: impl Write + Send + 'static, device: Device) -> Self {
        Self {
            writer: Box::new(writer),
            device,
        }
    }

    /// Writes a text and flushes it.
    fn put(&mut self, text: &str) -> io::Result<()> {
        self.write_all(text.as_bytes())?;
        self.flush()
    }

    /// Writes a result as one line of JSON.
    pub fn json(&mut self, result: &impl Serialize) -> CliResult {
        let mut line = serde_json::to_string(result).map_err(CliError::no_json)?;
        if self.device.is_terminal() {
            line = visible::escaped(&line);
        }
        line.push('\n');
        Ok(self.write_all(line.as_bytes())?)
    }

    /// Writes a message prefixed with the program's name; ignores errors.
    pub fn say(&mut self, text: impl Display) {
        let line = format!("oracle: {}\n", harmless(&text.to_string()));
        let _ = self.write_all(line.as_bytes());
    }
}

impl Write for OutputStream {
    /// What a terminal gets has no hidden characters, whoever writes it.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.device.is_terminal() {
            return self.writer.write(bytes);
        }
        let text = visible::readable(&String::from_utf8_lossy(bytes));
        self.writer.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Makes text of a model, a server or a file safe for a terminal: replaces control characters
/// and characters that reorder text, and leaves out what is hidden.
pub(super) fn harmless(text: &str) -> String {
    let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    visible::readable(text).replace(commands, "\u{fffd}")
}

/// Harmless text on one line.
pub(super) fn one_line(text: &str) -> String {
    harmless(text).replace(['\n', '\t'], " ")
}

/// An input stream.
pub struct Input {
    /// The reader.
    pub reader: Box<dyn BufRead + Send>,
    device: Device,
}

impl Input {
    /// Creates a stream from this device.
    pub fn new(reader: impl BufRead + Send + 'static, device: Device) -> Self {
        Self {
            reader: Box::new(reader),
            device,
        }
    }

    /// The style of the terminal behind it; `None` if it is no terminal.
    pub const fn style(&self) -> Option<Style> {
        let Device::Terminal { style, .. } = self.device else {
            return None;
        };
        Some(style)
    }

    /// Whether it is a terminal.
    pub const fn is_terminal(&self) -> bool {
        self.device.is_terminal()
    }
}

#[cfg(test)]
mod tests;
