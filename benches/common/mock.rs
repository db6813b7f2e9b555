//! `oracle dev mock-model` in its own process, so that its cost does not count as the server's.

use std::{
    error::Error,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

/// A running mock model, killed on drop.
pub(crate) struct Mock {
    process: Child,
    /// The base URL, without a path.
    pub(crate) url: String,
}

impl Mock {
    /// Starts one whose conversations have this many turns.
    pub(crate) fn start(turns: usize) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Self::with(&["--turns", &turns.to_string()])
    }

    /// Starts one with these options, on a free port unless they name one.
    pub(crate) fn with(options: &[&str]) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let port: &[&str] = match options.contains(&"--port") {
            true => &[],
            false => &["--port", "0"],
        };
        let mut process = Command::new(env!("CARGO_BIN_EXE_oracle"))
            .arg("mock-model")
            .args(port)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = process.stdout.take().ok_or("it says nothing")?;
        let mut url = String::new();
        BufReader::new(out).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Self { process, url })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
