//! A log that is written by a thread of its own, so that nobody who logs waits for whoever reads it.
//!
//! Lines wait in memory, in a bounded amount. What does not fit is dropped and counted, and in its place stands
//! how many lines that were. Whoever ends the process lets what waits be written first.

use std::{
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tracing_subscriber::fmt::MakeWriter;

/// Most bytes of lines that wait. As many again may be on their way out.
const ROOM: usize = 4 << 20;

/// See the module. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Aside(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    // A lock, because all threads log; held for a copy of one line, or for a swap.
    state: Mutex<State>,
    /// There is something to write, or it ends.
    changed: Condvar,
    /// All is written.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines.
    waiting: Vec<u8>,
    /// Lines that were dropped after these.
    lost: u64,
    /// No more are taken.
    closing: bool,
    /// All were written.
    ended: bool,
}

impl Aside {
    /// Writes to this from now on, on a thread that ends with [`Aside::finish`].
    ///
    /// # Errors
    /// When the machine has no thread for it.
    pub(super) fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writes = Arc::clone(&shared);
        let thread = thread::Builder::new().name("log".to_owned());
        thread.spawn(move || writes.write_to(out))?;
        Ok(Self(shared))
    }

    /// Says something after all that was logged, whether or not there is room.
    pub(super) fn say(&self, text: &str) {
        let mut state = self.0.lock();
        state.waiting.extend_from_slice(text.as_bytes());
        state.waiting.push(b'\n');
        drop(state);
        self.0.changed.notify_one();
    }

    /// Takes no more, and waits until all is written; no longer than this, because it may be that nobody reads.
    pub(super) fn finish(&self, within: Duration) {
        let mut state = self.0.lock();
        state.closing = true;
        self.0.changed.notify_one();
        let ended = self
            .0
            .ended
            .wait_timeout_while(state, within, |state| !state.ended);
        drop(ended.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.closing || state.waiting.len() + line.len() > ROOM {
            state.lost += 1;
        } else {
            state.waiting.extend_from_slice(line);
        }
        drop(state);
        self.changed.notify_one();
    }

    fn write_to(&self, mut out: impl Write) {
        let mut lines = Vec::new();
        while let Some(lost) = self.next(&mut lines) {
            if lost > 0 {
                let what = format!(
                    "oracle: lines of the log that are missing here, as it was not read fast enough: {lost}\n"
                );
                lines.extend_from_slice(what.as_bytes());
            }
            // Where standard error is closed there is nobody to tell.
            let _ = out.write_all(&lines).and_then(|()| out.flush());
        }
        self.lock().ended = true;
        self.ended.notify_all();
    }

    /// The next lines, and how many were dropped after them; none after the last ones.
    fn next(&self, lines: &mut Vec<u8>) -> Option<u64> {
        lines.clear();
        let rests = |state: &mut State| state.waiting.is_empty() && state.lost == 0;
        let state = self
            .changed
            .wait_while(self.lock(), |state| rests(state) && !state.closing);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if rests(&mut state) {
            return None;
        }
        std::mem::swap(lines, &mut state.waiting);
        Some(std::mem::take(&mut state.lost))
    }
}

/// The way in: each write is a line.
#[derive(Debug)]
pub(super) struct Entrance<'a>(&'a Shared);

impl Write for Entrance<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.take(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Aside {
    type Writer = Entrance<'a>;

    fn make_writer(&'a self) -> Entrance<'a> {
        Entrance(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    /// Long enough for anything that ends at all.
    const ENOUGH: Duration = Duration::from_secs(600);

    /// Somebody who reads when he is let.
    struct Reader {
        /// Tells that something was handed to him.
        handed: Sender<()>,
        /// Lets him read once, or for ever where it is dropped.
        may: Receiver<()>,
        /// What he has read.
        read: Sender<Vec<u8>>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.handed.send(());
            let _ = self.may.recv();
            let _ = self.read.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Aside, Receiver<()>, Sender<()>, Receiver<Vec<u8>>) {
        let (handed, was_handed) = mpsc::channel();
        let (let_read, may) = mpsc::channel();
        let (read, was_read) = mpsc::channel();
        let aside = Aside::to(Reader { handed, may, read }).unwrap();
        (aside, was_handed, let_read, was_read)
    }

    fn text(read: &Receiver<Vec<u8>>) -> String {
        String::from_utf8(read.try_iter().flatten().collect()).unwrap()
    }

    #[test]
    fn a_reader_who_stops_holds_up_nobody_and_is_told_what_he_missed() {
        let (aside, was_handed, let_read, was_read) = slow();
        let log = || aside.make_writer();
        log().write_all(b"first\n").unwrap();
        was_handed.recv().unwrap();
        // From here on he does not read.
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        for _ in 0..ROOM / line.len() + 3 {
            log().write_all(&line).unwrap();
        }
        assert_eq!(aside.0.lock().waiting.len(), ROOM);
        drop(let_read);
        aside.finish(ENOUGH);
        let told = text(&was_read);
        let mut lines = told.lines();
        assert_eq!(lines.next(), Some("first"));
        let kept = lines.by_ref().take(ROOM / line.len());
        assert!(kept.into_iter().all(|kept| kept.len() == 1023));
        let rest: Vec<&str> = lines.collect();
        assert_eq!(
            rest,
            ["oracle: lines of the log that are missing here, as it was not read fast enough: 3"]
        );
    }

    #[test]
    fn who_reads_again_misses_no_more() {
        let (aside, was_handed, let_read, was_read) = slow();
        let log = || aside.make_writer();
        log().write_all(b"first\n").unwrap();
        was_handed.recv().unwrap();
        log().write_all(&vec![b'x'; ROOM + 1]).unwrap();
        for _ in 0..2 {
            let_read.send(()).unwrap();
        }
        was_handed.recv().unwrap();
        log().write_all(b"last\n").unwrap();
        drop(let_read);
        aside.finish(ENOUGH);
        assert_eq!(
            text(&was_read),
            "first\noracle: lines of the log that are missing here, as it was not read fast enough: 1\nlast\n"
        );
    }

    #[test]
    fn what_was_logged_before_the_end_is_written_and_then_the_last_words() {
        let (aside, _, let_read, was_read) = slow();
        drop(let_read);
        let subscriber = tracing_subscriber::fmt()
            .with_writer(aside.clone())
            .without_time()
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..1_000 {
                tracing::info!(target: "test", number, "said");
            }
        });
        aside.say("that was all");
        aside.finish(ENOUGH);
        aside.make_writer().write_all(b"too late\n").unwrap();
        let mut want: String = (0..1_000)
            .map(|number| format!(" INFO test: said number={number}\n"))
            .collect();
        want += "that was all\n";
        assert_eq!(text(&was_read), want);
    }

    #[test]
    fn a_reader_who_never_reads_does_not_keep_the_program_from_its_end() {
        let (aside, was_handed, _let_read, was_read) = slow();
        aside.make_writer().write_all(b"first\n").unwrap();
        was_handed.recv().unwrap();
        aside.finish(Duration::ZERO);
        assert_eq!(text(&was_read), "");
    }
}
