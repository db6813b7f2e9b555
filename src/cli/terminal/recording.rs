//! A terminal in memory, for tests: what it reads is given, what is written to it is kept.

use std::{
    io::{self, Cursor, Write},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{Device, Input, Stream, Terminal};

/// What was written to a terminal in memory.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    out: Buffer,
    err: Buffer,
}

/// A lock, because the terminal owns its writers while the test looks at what they wrote.
#[derive(Debug, Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Recording {
    /// A terminal that reads `input`; all three streams have `device` at their other ends.
    #[must_use]
    pub fn terminal(input: &str, device: Device) -> (Terminal, Self) {
        let recording = Self::default();
        let input = Input::new(Cursor::new(input.as_bytes().to_vec()), device);
        let out = Stream::new(recording.out.clone(), device);
        let err = Stream::new(recording.err.clone(), device);
        let terminal = Terminal::new(input, out, err);
        (terminal, recording)
    }

    /// What standard output got so far.
    #[must_use]
    pub fn out(&self) -> String {
        self.out.text()
    }

    /// What standard error got so far.
    #[must_use]
    pub fn err(&self) -> String {
        self.err.text()
    }
}

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
