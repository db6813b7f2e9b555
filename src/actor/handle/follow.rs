//! Following a session from outside, for as long as one likes.
//!
//! **Invariant:** every event after the one that was seen last is told once and in order, whatever the bus had
//! to drop: holes are filled from the journal. Text as it arrives (frames) may be missing.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::stream::{self, Stream};
use tokio::time::{Instant, timeout_at};

use super::{AskError, Notice, Progress, SessionHandle, Subscription};
use crate::{
    actor::bus::{Filter, Frames},
    journal::Known,
    model::{Event, Seq, Sid},
};

/// What may wait for one who follows; what is more is read from the journal, so little is enough.
const CAPACITY: usize = 32;
/// Records read at a time: they are held until they are told.
const PAGE: usize = 16;
/// How long the bus may say nothing before the journal is looked at.
const LOOK: Duration = Duration::from_secs(30);
/// The same, where another process may be at work in the session, whose bus is not ours.
const LOOK_ELSEWHERE: Duration = Duration::from_secs(5);
/// Pause before a bus that is being replaced is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Follows a session: begun by [`SessionHandle::follow`], and resumed by the number of the event that was seen
/// last.
///
/// ```
/// use futures_util::TryStreamExt as _;
/// use oracle_agent::{actor::{Frames, Oracle, Progress}, model::{Seq, SessionName, Submission}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = Oracle::builder().start().await?;
/// let session = system.oracle().session(SessionName::new("s")?);
/// session.answer(Submission::new("hello")).await?;
///
/// let mut first = session.follow(Seq(0), Frames::No).await?;
/// first.next().await?;
/// let seen = first.seen();
/// drop(first);
///
/// // Later, and perhaps in another process: what comes after it, once and in order.
/// let rest = session.follow(seen, Frames::No).await?;
/// let Some(Progress::Event(event)) = std::pin::pin!(rest.into_stream()).try_next().await? else {
///     panic!("there is more");
/// };
/// assert_eq!(event.seq, seen.next());
/// # Ok(())
/// # }
/// ```
pub struct Follow {
    session: SessionHandle,
    /// Its number: one that is deleted and made anew is another.
    sid: Sid,
    frames: Frames,
    notices: Subscription,
    /// The last event told.
    seen: Seq,
    /// Where the log ended at first.
    end: Seq,
    /// Read from the journal and still to be told.
    backlog: VecDeque<Arc<Event>>,
    /// Whether the journal may have more than was read from it.
    behind: bool,
    /// When the bus said something last, or the journal was looked at. Kept here, so that whoever gives a
    /// call up again and again does not put the look off for ever.
    heard: Instant,
}

impl SessionHandle {
    /// Follows it from after this event on.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be read.
    pub async fn follow(&self, after: Seq, frames: Frames) -> Result<Follow, AskError> {
        // First, so that nothing is recorded in between that neither tells.
        let notices = self.subscribe_for_more(frames);
        let Known { sid, last, .. } = self.known_for_sure().await?;
        Ok(Follow {
            session: self.clone(),
            sid,
            frames,
            notices,
            seen: after,
            end: last,
            backlog: VecDeque::new(),
            behind: true,
            heard: Instant::now(),
        })
    }

    /// All types, also where few are wanted: by their numbers a hole is seen.
    fn subscribe_for_more(&self, frames: Frames) -> Subscription {
        let filter = Filter {
            frames,
            ..Filter::session(self.key.clone())
        };
        self.router.bus.subscribe(filter, CAPACITY)
    }
}

impl Follow {
    /// Where the session's log ended when it was begun.
    #[must_use]
    pub const fn end(&self) -> Seq {
        self.end
    }

    /// The last event told.
    #[must_use]
    pub const fn seen(&self) -> Seq {
        self.seen
    }

    /// What happens next. Can be given up and asked again without losing anything.
    ///
    /// # Errors
    /// When the session was deleted, or the system stops. When the journal cannot be read it can be asked
    /// again: it goes on where it was.
    pub async fn next(&mut self) -> Result<Progress, AskError> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                return Ok(self.tell(event));
            }
            if self.behind {
                self.read_on().await?;
                continue;
            }
            let told = timeout_at(self.heard + self.patience(), self.notices.next()).await;
            self.heard = Instant::now();
            match told {
                Ok(Some(Notice::Event(event))) if event.seq == self.seen.next() => {
                    return Ok(self.tell(event));
                }
                // Read from the journal before it came.
                Ok(Some(Notice::Event(event))) if event.seq <= self.seen => {}
                Ok(Some(Notice::Frame(frame))) => return Ok(Progress::Frame(frame)),
                Ok(Some(Notice::Event(_) | Notice::Gap { .. })) | Err(_) => self.behind = true,
                Ok(None) => self.subscribe_again().await?,
            }
        }
    }

    /// The same as a stream. It ends after an error.
    pub fn into_stream(self) -> impl Stream<Item = Result<Progress, AskError>> + Send {
        stream::unfold(Some(self), |follow| async {
            let mut follow = follow?;
            match follow.next().await {
                Ok(progress) => Some((Ok(progress), Some(follow))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    fn tell(&mut self, event: Arc<Event>) -> Progress {
        self.seen = event.seq;
        Progress::Event(event)
    }

    fn patience(&self) -> Duration {
        let router = &self.session.router;
        let is_at_work_here = router.state(&self.session.key).is_some();
        match router.journal.letters() {
            Some(_) if !is_at_work_here => LOOK_ELSEWHERE,
            Some(_) | None => LOOK,
        }
    }

    async fn read_on(&mut self) -> Result<(), AskError> {
        let there = self.session.known().await?;
        let there = there.filter(|known| known.sid == self.sid && known.last >= self.seen);
        let Some(Known { sid, last, .. }) = there else {
            let name = self.session.key.name.clone();
            return Err(AskError::Deleted { name });
        };
        if last > self.seen {
            let entries = self.session.read(sid, self.seen, PAGE).await?;
            self.session.let_calls_be_told(&entries).await;
            let name = &self.session.key.name;
            let events = entries
                .iter()
                .map(|entry| Arc::new(Event::of(name, entry.seq, &entry.record)));
            self.backlog.extend(events);
        }
        self.behind = self.backlog.back().is_some_and(|event| event.seq < last);
        Ok(())
    }

    /// The bus is being replaced, the session was deleted, or the system is gone.
    async fn subscribe_again(&mut self) -> Result<(), AskError> {
        if self.session.router.shards.is_closed() {
            return Err(AskError::Stopped);
        }
        tokio::time::sleep(PAUSE).await;
        self.notices = self.session.subscribe_for_more(self.frames);
        self.behind = true;
        Ok(())
    }
}
