//! Keys while a query runs, on the terminal of standard input: without a thread, for what such a thread reads it
//! keeps from whoever reads next.

use std::{
    io::{Stdin, stdin},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::read,
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::timeout,
};

use super::{
    Heard,
    ahead::{Ahead, Typed},
    line::Line,
    modes::{Quiet, forget_typed},
};

/// Bytes that are read at a time.
const AT_A_TIME: usize = 1 << 10;
/// How long the rest of a paste may let wait for itself.
const REST: Duration = Duration::from_millis(500);

/// What is typed.
pub(in crate::cli) struct Keyboard {
    input: AsyncFd<Stdin>,
    /// What is typed while nobody asks for it; none where that is left to whoever reads next.
    ahead: Option<Ahead>,
    quiet: Option<Quiet>,
    /// Whether somebody can be asked.
    answers: bool,
    /// The answer so far, if somebody is.
    answer: Option<Line>,
    /// Whether there is nothing more to read.
    ended: bool,
}

impl Keyboard {
    /// Takes the keys from now on; none where they cannot be had. Whether questions can be seen is for the caller
    /// to say.
    pub(in crate::cli) fn taking_all(answers: bool) -> Option<Self> {
        let keyboard = Self::taking_answers()?;
        Some(Self {
            ahead: Some(Ahead::default()),
            quiet: Quiet::now(),
            answers,
            ..keyboard
        })
    }

    /// Takes nothing but answers; none where they cannot be had.
    #[expect(
        deprecated,
        reason = "the successor is unsafe; standard input stays open as long as the process lives"
    )]
    pub(in crate::cli) fn taking_answers() -> Option<Self> {
        Some(Self {
            input: AsyncFd::with_interest(stdin(), Interest::READABLE).ok()?,
            ahead: None,
            quiet: None,
            answers: true,
            answer: None,
            ended: false,
        })
    }

    /// Whether somebody can be asked.
    pub(super) const fn answers(&self) -> bool {
        self.answers
    }

    /// The next line is an answer: none of what was typed before this.
    pub(super) fn ask(&mut self) {
        self.catch_up();
        // Whoever answers sees what they type.
        self.quiet = None;
        // The beginning of a line as well, of which the answer would be the end.
        forget_typed();
        self.answer = Some(Line::default());
    }

    /// Lets pass what comes along with a line, until nothing has come for so long.
    pub(super) async fn hush(&mut self, pause: Duration) {
        while let Ok(bytes) = timeout(pause, self.bytes()).await
            && !bytes.is_empty()
        {
            if let Some(ahead) = &mut self.ahead {
                // Nothing is suspended by a paste.
                ahead.take(&bytes);
            }
        }
    }

    /// It was given, or is not needed any more.
    pub(super) fn asked(&mut self) {
        self.answer = None;
        self.resume();
    }

    /// Somebody else has the terminal.
    pub(super) fn pause(&mut self) {
        self.quiet = None;
    }

    /// It is ours again.
    pub(super) fn resume(&mut self) {
        if self.ahead.is_some() && self.answer.is_none() {
            self.quiet = Quiet::now();
        }
    }

    /// What is to be heeded at once. Can be given up and asked again without losing anything.
    pub(super) async fn heard(&mut self) -> Heard {
        while self.answer.is_some() {
            let bytes = self.bytes().await;
            if bytes.is_empty() {
                self.answer = Some(Line::default());
                return Heard::Nothing;
            }
            if let Some(answer) = &mut self.answer
                && let Some(line) = answer.take(&bytes)
            {
                return Heard::Said(line);
            }
        }
        if self.ended || self.ahead.is_none() {
            std::future::pending::<()>().await;
        }
        loop {
            let bytes = self.bytes().await;
            if bytes.is_empty() {
                self.end();
                std::future::pending::<()>().await;
            }
            if let Some(ahead) = &mut self.ahead
                && ahead.take(&bytes)
            {
                return Heard::Suspends;
            }
        }
    }

    /// What was typed. A paste is waited for to its end: what is left of it would be taken for keys.
    pub(super) async fn typed(mut self) -> Typed {
        self.catch_up();
        while !self.ended && self.ahead.as_ref().is_some_and(Ahead::is_pasted) {
            let Ok(bytes) = timeout(REST, self.bytes()).await else {
                break;
            };
            if bytes.is_empty() {
                self.end();
            } else if let Some(ahead) = &mut self.ahead {
                ahead.take(&bytes);
            }
        }
        self.ahead.take().map(Ahead::typed).unwrap_or_default()
    }

    /// The next bytes; none at the end. A terminal that gives whole lines gives one, or the beginning of a long one.
    async fn bytes(&self) -> Vec<u8> {
        loop {
            let Ok(mut ready) = self.input.readable().await else {
                return Vec::new();
            };
            match at_once(self.input.get_ref()) {
                Some(bytes) => return bytes,
                None => ready.clear_ready(),
            }
        }
    }

    /// Takes what was typed until now.
    fn catch_up(&mut self) {
        while !self.ended
            && let Some(ahead) = &mut self.ahead
            && let Some(bytes) = at_once(self.input.get_ref())
        {
            if bytes.is_empty() {
                self.end();
            } else {
                // Whoever wants to suspend it now presses again.
                ahead.take(&bytes);
            }
        }
    }

    fn end(&mut self) {
        self.ended = true;
        if let Some(ahead) = &mut self.ahead {
            ahead.leave();
        }
    }
}

/// What can be read without waiting; nothing more than nothing at the end of all.
fn at_once(input: &Stdin) -> Option<Vec<u8>> {
    let mut fds = [PollFd::new(input, PollFlags::IN)];
    match poll(&mut fds, Some(&Timespec::default())) {
        Ok(0) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return None,
        Ok(_) => {}
        Err(_) => return Some(Vec::new()),
    }
    let mut bytes = vec![0; AT_A_TIME];
    match read(input, &mut bytes) {
        Ok(count) => {
            bytes.truncate(count);
            Some(bytes)
        }
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => None,
        Err(_) => Some(Vec::new()),
    }
}
