//! Lines of standard input, read ahead on a thread, because such a read cannot be cancelled.

use std::{
    collections::VecDeque,
    io::{self, BufRead as _, stdin},
    thread,
    time::Duration,
};

use tokio::{sync::mpsc, time::timeout};

use super::{UserInput, modes::discard_typed};

const MOST: usize = 64;

type ReadLine = io::Result<Vec<u8>>;

pub(crate) struct Lines {
    lines: mpsc::Receiver<ReadLine>,
    before: VecDeque<ReadLine>,
    asks: bool,
}

impl Lines {
    pub(crate) fn read() -> Self {
        let (sender, lines) = mpsc::channel(MOST);
        thread::spawn(move || {
            for line in stdin().lock().split(b'\n') {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self::of(lines)
    }

    fn of(lines: mpsc::Receiver<ReadLine>) -> Self {
        Self {
            lines,
            before: VecDeque::new(),
            asks: false,
        }
    }

    #[cfg(test)]
    pub(crate) fn of_texts(lines: &[&str]) -> Self {
        let (sender, receiver) = mpsc::channel(MOST);
        for line in lines {
            sender.try_send(Ok(line.as_bytes().to_vec())).unwrap();
        }
        Self::of(receiver)
    }

    /// Waits for the next line; `None` after the last. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<ReadLine> {
        match self.before.pop_front() {
            Some(line) => Some(line),
            None => self.lines.recv().await,
        }
    }

    pub(super) fn ask(&mut self) {
        // Drops input not read yet, including an unfinished line.
        discard_typed();
        while self.before.len() < MOST
            && let Ok(line) = self.lines.try_recv()
        {
            self.before.push_back(line);
        }
        self.asks = true;
    }

    /// Discards the rest of a paste, until no input has come for `pause`.
    pub(super) async fn skip_paste(&mut self, pause: Duration) {
        while let Ok(Some(line)) = timeout(pause, self.lines.recv()).await {
            if self.before.len() < MOST {
                self.before.push_back(line);
            }
        }
    }

    pub(super) const fn stop_asking(&mut self) {
        self.asks = false;
    }

    pub(super) async fn user_input(&mut self) -> UserInput {
        if !self.asks {
            return std::future::pending().await;
        }
        match self.lines.recv().await {
            Some(Ok(line)) => UserInput::Line(String::from_utf8_lossy(&line).into_owned()),
            Some(Err(_)) | None => UserInput::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn hush_drops_a_paste_until_input_pauses() {
        let (sender, receiver) = mpsc::channel(1);
        let mut lines = Lines::of(receiver);
        let pause = Duration::from_millis(100);
        let paste = async {
            for _ in 0..2 * MOST {
                tokio::time::advance(pause / 2).await;
                sender.send(Ok(b"y".to_vec())).await.unwrap();
            }
        };
        tokio::join!(lines.skip_paste(pause), paste);
        lines.ask();
        sender.send(Ok(b"no".to_vec())).await.unwrap();
        assert_eq!(lines.user_input().await, UserInput::Line("no".to_owned()));
        assert_eq!(lines.before.len(), MOST);
    }

    #[tokio::test]
    async fn input_before_a_prompt_does_not_answer_it() {
        let (sender, receiver) = mpsc::channel(MOST);
        let send = async |line: &str| sender.send(Ok(line.as_bytes().to_vec())).await.unwrap();
        let mut lines = Lines::of(receiver);
        send("y").await;
        lines.ask();
        send("no").await;
        assert_eq!(lines.user_input().await, UserInput::Line("no".to_owned()));
        lines.stop_asking();
        send("what?").await;
        for line in ["y", "what?"] {
            assert_eq!(lines.next().await.unwrap().unwrap(), line.as_bytes());
        }
    }
}
