//! A terminal in memory, for tests.

use std::{
    io::{self, Cursor, Write},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{Device, Input, OutputStream, Terminal};

/// The output of a terminal in memory.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    out: Buffer,
    err: Buffer,
}

impl Terminal {
    /// Changes the width of a terminal in memory.
    pub fn resize(&mut self, columns: usize) {
        if let Device::Terminal { width, .. } = &mut self.out.device {
            *width = columns;
        }
    }
}

/// A lock, because the terminal owns the writers while the test reads them.
#[derive(Debug, Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Recording {
    /// Creates a terminal that reads `input`, with `device` behind all streams.
    pub fn terminal(input: &str, device: Device) -> (Terminal, Self) {
        let recording = Self::default();
        let input = Input::new(Cursor::new(input.as_bytes().to_vec()), device);
        let out = OutputStream::new(recording.out.clone(), device);
        let err = OutputStream::new(recording.err.clone(), device);
        let terminal = Terminal::new(input, out, err);
        (terminal, recording)
    }

    /// Standard output so far.
    pub fn out(&self) -> String {
        self.out.text()
    }

    /// Standard error so far.
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
