//! Reads keys of the terminal during a query, without a thread, which would swallow input of the
//! next reader.

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

use crate::model::command::MAX_REASON;

use super::{
    UserInput,
    ahead::{TypeAhead, TypedAhead},
    modes::{QuietMode, discard_typed},
};

const AT_A_TIME: usize = 1 << 10;
const REST: Duration = Duration::from_millis(500);

pub(crate) struct Keyboard {
    input: AsyncFd<Stdin>,
    /// Text typed ahead; `None` if it is left to the next reader.
    ahead: Option<TypeAhead>,
    quiet: Option<QuietMode>,
    /// Whether the user can see questions.
    pub(super) answers: bool,
    answer: Option<LineBuffer>,
    ended: bool,
}

impl Keyboard {
    /// Reads all keys from now on; `None` if that is not possible. `answers` says whether the user
    /// can see questions.
    pub(crate) fn taking_all(answers: bool) -> Option<Self> {
        let keyboard = Self::taking_answers()?;
        Some(Self {
            ahead: Some(TypeAhead::default()),
            quiet: QuietMode::now(),
            answers,
            ..keyboard
        })
    }

    /// Reads answers only; `None` if that is not possible.
    #[expect(
        deprecated,
        reason = "the successor is unsafe; standard input stays open as long as the process lives"
    )]
    pub(crate) fn taking_answers() -> Option<Self> {
        Some(Self {
            input: AsyncFd::with_interest(stdin(), Interest::READABLE).ok()?,
            ahead: None,
            quiet: None,
            answers: true,
            answer: None,
            ended: false,
        })
    }

    /// Makes the next line an answer; earlier input does not count.
    pub(super) fn ask(&mut self) {
        self.catch_up();
        // Answers are echoed.
        self.quiet = None;
        // Also drops an unfinished line, whose end the answer would be.
        discard_typed();
        self.answer = Some(LineBuffer::default());
    }

    /// Discards the rest of a paste, until no input has come for `pause`.
    pub(super) async fn skip_paste(&mut self, pause: Duration) {
        while let Ok(bytes) = timeout(pause, self.bytes()).await
            && !bytes.is_empty()
        {
            // A Ctrl-Z within a paste does not suspend.
            self.take_ahead(&bytes);
        }
    }

    pub(super) fn stop_asking(&mut self) {
        self.answer = None;
        self.resume();
    }

    pub(super) fn pause(&mut self) {
        self.quiet = None;
    }

    pub(super) fn resume(&mut self) {
        if self.ahead.is_some() && self.answer.is_none() {
            self.quiet = QuietMode::now();
        }
    }

    /// Waits for an answer or Ctrl-Z. Cancel safe.
    pub(super) async fn user_input(&mut self) -> UserInput {
        while self.answer.is_some() {
            let bytes = self.bytes().await;
            if bytes.is_empty() {
                self.answer = Some(LineBuffer::default());
                return UserInput::Nothing;
            }
            if let Some(answer) = &mut self.answer
                && let Some(line) = answer.take(&bytes)
            {
                return UserInput::Line(line);
            }
        }
        while !self.ended && self.ahead.is_some() {
            let bytes = self.bytes().await;
            if self.take_ahead(&bytes) {
                return UserInput::Suspend;
            }
        }
        std::future::pending().await
    }

    /// Returns the text typed ahead. Waits for the end of a paste, whose rest would be taken for
    /// keys.
    pub(super) async fn typed(mut self) -> TypedAhead {
        self.catch_up();
        while !self.ended && self.ahead.as_ref().is_some_and(TypeAhead::is_pasted) {
            let Ok(bytes) = timeout(REST, self.bytes()).await else {
                break;
            };
            self.take_ahead(&bytes);
        }
        self.ahead.map(TypeAhead::typed).unwrap_or_default()
    }

    /// Reads the next bytes; empty at the end. A terminal in line mode yields a line, or the
    /// beginning of a long one.
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

    fn catch_up(&mut self) {
        while !self.ended
            && self.ahead.is_some()
            && let Some(bytes) = at_once(self.input.get_ref())
        {
            // Too late to suspend; the user can press Ctrl-Z again.
            self.take_ahead(&bytes);
        }
    }

    /// Keeps bytes for the next reader, or notes the end if there are none. Returns whether they
    /// suspend the process.
    fn take_ahead(&mut self, bytes: &[u8]) -> bool {
        let Some(ahead) = &mut self.ahead else {
            return false;
        };
        if bytes.is_empty() {
            self.ended = true;
            ahead.left = true;
        }
        ahead.take(bytes)
    }
}

/// Reads without waiting; `None` if there is nothing yet, empty at the end.
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

/// Longest answer, in bytes of UTF-8: a denial with a reason.
const LONGEST: usize = 4 * MAX_REASON + 20;
/// Stands for a longer line, and is no answer.
const TOO_LONG: &str = "…";

#[derive(Debug, Default)]
struct LineBuffer(Vec<u8>);

impl LineBuffer {
    /// Adds bytes and returns a complete line, or [`TOO_LONG`].
    fn take(&mut self, bytes: &[u8]) -> Option<String> {
        let mut pieces = bytes.splitn(2, |byte| *byte == b'\n');
        let (piece, ends) = (pieces.next().unwrap_or_default(), pieces.next().is_some());
        // One byte more than allowed shows that the line is too long to be an answer.
        let room = (LONGEST + 1).saturating_sub(self.0.len());
        self.0.extend(piece.iter().take(room));
        if !ends {
            return None;
        }
        let line = std::mem::take(&mut self.0);
        Some(match line.len() > LONGEST {
            true => TOO_LONG.to_owned(),
            false => String::from_utf8_lossy(&line).into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_delivered_at_its_end_in_any_chunking() {
        for (pieces, user_input) in [
            (&["y\n"][..], vec!["y"]),
            (&["\n"], vec![""]),
            (&["y"], vec![]),
            (&["n", "o\r", "\n", "y\n"], vec!["no\r", "y"]),
        ] {
            let mut line = LineBuffer::default();
            let lines = pieces
                .iter()
                .filter_map(|piece| line.take(piece.as_bytes()));
            assert_eq!(lines.collect::<Vec<_>>(), user_input, "{pieces:?}");
        }
    }

    #[test]
    fn overlong_line_is_no_answer_but_the_next_one_is() {
        for (name, begins, ends) in [
            ("an answer at its end", "x".repeat(4_096), "y\n"),
            (
                "an answer at its beginning",
                format!("y{}", " ".repeat(4_095)),
                "no\n",
            ),
            ("nothing but blanks", " ".repeat(4_096), "\n"),
        ] {
            let mut line = LineBuffer::default();
            assert_eq!(line.take(begins.as_bytes()), None, "{name}");
            assert_eq!(line.take(ends.as_bytes()).unwrap(), TOO_LONG, "{name}");
            assert_eq!(line.take(b"y\n").unwrap(), "y", "{name}");
        }
    }
}
