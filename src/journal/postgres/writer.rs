//! Group commit. Each kind of write has a queue and a task, which sends all requests that wait as one
//! statement, outside of any transaction block: a batch is committed with one flush, and a client that
//! stops holds no locks.
//!
//! A batch whose connection is lost may have been committed. It is sent again rather than looked up:
//! the first statement may still be running, and only a write waits for its row locks. One that has
//! landed before, or whose commit may have been answered too early, is confirmed by a further commit.

use std::{
    cmp::Ordering,
    collections::VecDeque,
    mem,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use deadpool_postgres::{ClientWrapper, Pool};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    client::{connect, doubts, settle},
    error::{Failed, Recovery},
};
use crate::journal::{Error, JournalFuture};

/// Requests that wait; further ones wait for room.
const QUEUE: usize = 1_024;
/// Most requests of a batch, and most bytes, unless one alone has more.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 2 << 20;
/// Deadline of a statement. It is longer than the server's own.
const STATEMENT: Duration = Duration::from_secs(15);
/// How long a batch is sent again before it is refused.
const INSIST: Duration = Duration::from_secs(20);
/// First and longest pause before a batch is sent again.
const PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The answers to a batch, in order, or why there are none.
pub(super) type Answers<W> = Result<Vec<Result<<W as Write>::Answer, Error>>, Failed>;

/// A kind of write.
pub(super) trait Write: Send + Sync + Sized + 'static {
    /// What its caller gets.
    type Answer: Send + 'static;

    /// Order in which the rows are locked. Of equal requests a batch has one, the first.
    fn order(&self, other: &Self) -> Ordering;

    /// Bytes to send, about.
    fn size(&self) -> usize {
        64
    }

    /// Writes the batch in one statement, all or nothing, and returns an answer for each, in order. An
    /// error may follow a commit, so that it has to be possible to write the same again.
    fn write(client: &ClientWrapper, batch: &[&Self])
    -> impl Future<Output = Answers<Self>> + Send;
}

/// A connection for writing. It is replaced when it is lost.
pub(super) struct Link {
    pool: Pool,
    client: Mutex<Option<Arc<ClientWrapper>>>,
}

impl Link {
    pub(super) fn of(pool: &Pool) -> Arc<Self> {
        Arc::new(Self {
            pool: pool.clone(),
            client: Mutex::default(),
        })
    }

    async fn client(&self) -> Result<Arc<ClientWrapper>, Failed> {
        let open = |client: &Option<Arc<ClientWrapper>>| {
            let open = client.as_ref().filter(|client| !client.is_closed());
            open.cloned()
        };
        if let Some(client) = open(&self.client.lock()) {
            return Ok(client);
        }
        let new = Arc::new(connect(&self.pool).await?);
        let mut client = self.client.lock();
        // Another queue may have been faster.
        Ok(open(&client).unwrap_or_else(|| Arc::clone(client.insert(new))))
    }

    /// Drops a failed connection, unless it has been replaced.
    fn lose(&self, lost: &Arc<ClientWrapper>) {
        let mut client = self.client.lock();
        drop(client.take_if(|client| Arc::ptr_eq(client, lost)));
    }
}

struct Queued<W: Write> {
    write: W,
    since: Instant,
    reply: oneshot::Sender<Result<W::Answer, Error>>,
}

/// Statements that were committed, and the requests in them.
#[derive(Debug, Default)]
pub(super) struct BatchCounts {
    pub(super) batches: AtomicU64,
    pub(super) requests: AtomicU64,
}

/// The queue of one kind of write.
pub(super) struct Queue<W: Write> {
    queue: mpsc::Sender<Queued<W>>,
}

impl<W: Write> Queue<W> {
    /// Starts the queue, whose task ends with `tasks`.
    pub(super) fn start(
        link: &Arc<Link>,
        batches: &Arc<BatchCounts>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        tasks.spawn(serve(Arc::clone(link), Arc::clone(batches), waiting));
        Self { queue }
    }

    pub(super) fn ask(&self, write: W) -> JournalFuture<'_, W::Answer> {
        Box::pin(async move {
            let ended = || Error::Unavailable("the journal is closed".to_owned());
            let (reply, answer) = oneshot::channel();
            let queued = Queued {
                write,
                since: Instant::now(),
                reply,
            };
            self.queue.send(queued).await.map_err(|_| ended())?;
            answer.await.map_err(|_| ended())?
        })
    }
}

async fn serve<W: Write>(
    link: Arc<Link>,
    counts: Arc<BatchCounts>,
    mut queue: mpsc::Receiver<Queued<W>>,
) {
    let mut waiting = VecDeque::new();
    // Requests that wait for a lock, each to be sent again by itself, after the others.
    let mut locked = VecDeque::new();
    loop {
        if waiting.is_empty() && locked.is_empty() {
            let Some(first) = queue.recv().await else {
                return;
            };
            waiting.push_back(first);
        }
        while waiting.len() < BATCH
            && let Ok(next) = queue.try_recv()
        {
            waiting.push_back(next);
        }
        let mut due: Vec<_> = locked.pop_front().into_iter().collect();
        due.push(take(&mut waiting));
        let since = Instant::now();
        let mut pause = PAUSE;
        while let Some(mut batch) = due.pop() {
            // Drops the requests of callers that are gone. The session's next claim fences what was
            // sent.
            batch.retain(|queued| !queued.reply.is_closed());
            if batch.is_empty() {
                continue;
            }
            let failed = match attempt(&link, &batch).await {
                Ok(answers) => {
                    counts.batches.fetch_add(1, Relaxed);
                    counts.requests.fetch_add(batch.len() as u64, Relaxed);
                    for (queued, answer) in batch.into_iter().zip(answers) {
                        let _ = queued.reply.send(answer);
                    }
                    continue;
                }
                Err(failed) => failed,
            };
            match failed.recovery() {
                Recovery::Isolate if batch.len() > 1 => {
                    due.extend(batch.into_iter().map(|queued| vec![queued]));
                }
                Recovery::Isolate if batch[0].since.elapsed() < INSIST => {
                    // It may have failed at once.
                    sleep(PAUSE).await;
                    locked.push_back(batch);
                }
                Recovery::Bisect if batch.len() > 1 => {
                    let rest = batch.split_off(batch.len() / 2);
                    due.extend([rest, batch]);
                }
                Recovery::Reconnect | Recovery::Retry if since.elapsed() < INSIST => {
                    tracing::debug!(error = %failed, requests = batch.len(), "sends again");
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    due.push(batch);
                }
                _ => {
                    for queued in batch {
                        let _ = queued.reply.send(Err(failed.answer()));
                    }
                }
            }
        }
    }
}

/// Takes the next batch, in the order of locks. Leaves what exceeds [`BATCH_BYTES`], and requests
/// that are equal to an earlier one.
fn take<W: Write>(waiting: &mut VecDeque<Queued<W>>) -> Vec<Queued<W>> {
    let (mut batch, mut bytes): (Vec<Queued<W>>, usize) = (Vec::new(), 0);
    for queued in mem::take(waiting) {
        bytes += queued.write.size();
        let place = batch.binary_search_by(|other| other.write.order(&queued.write));
        match place {
            Err(place) if batch.is_empty() || bytes <= BATCH_BYTES => batch.insert(place, queued),
            _ => waiting.push_back(queued),
        }
    }
    batch
}

async fn attempt<W: Write>(link: &Link, batch: &[Queued<W>]) -> Answers<W> {
    let client = link.client().await?;
    let writes: Vec<&W> = batch.iter().map(|queued| &queued.write).collect();
    let write = async {
        let doubts = doubts();
        let answers = W::write(&client, &writes).await?;
        settle(doubts, &*client).await?;
        Ok(answers)
    };
    let written = AssertUnwindSafe(write).catch_unwind();
    let written = match timeout(STATEMENT, written).await {
        Ok(Ok(written)) => written,
        Ok(Err(_)) => {
            let why = "the writer of the journal panicked".to_owned();
            Err(Failed::Refused(Error::Unavailable(why)))
        }
        Err(_) => Err(Failed::unanswered(STATEMENT)),
    };
    if written.as_ref().is_err_and(Failed::loses_connection) {
        link.lose(&client);
    }
    written
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::{
        cluster::Cluster,
        journal::postgres::settings::{Settings, pool},
    };

    /// Fails with this code the first time that its batch is sent.
    struct Fault {
        number: u32,
        code: Option<&'static str>,
    }

    static BATCHES: Mutex<Vec<Vec<u32>>> = Mutex::new(Vec::new());

    impl Write for Fault {
        type Answer = u32;

        fn order(&self, other: &Self) -> Ordering {
            self.number.cmp(&other.number)
        }

        async fn write(
            client: &ClientWrapper,
            batch: &[&Self],
        ) -> Result<Vec<Result<u32, Error>>, Failed> {
            let numbers: Vec<u32> = batch.iter().map(|it| it.number).collect();
            let is_new = !BATCHES.lock().contains(&numbers);
            BATCHES.lock().push(numbers);
            let code = batch.iter().find_map(|it| it.code);
            if let Some(code) = code.filter(|_| is_new) {
                let fail = format!("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$");
                client.batch_execute(&fail).await?;
            }
            Ok(batch.iter().map(|it| Ok(it.number)).collect())
        }
    }

    /// The batches that are sent for four requests, the third of which fails with this code, and which
    /// of them succeed.
    async fn batches(pool: &Pool, code: &'static str) -> (Vec<Vec<u32>>, Vec<bool>) {
        BATCHES.lock().clear();
        let (mut tasks, counts) = (JoinSet::new(), Arc::default());
        let queue: Queue<Fault> = Queue::start(&Link::of(pool), &counts, &mut tasks);
        // All are in the queue before its task runs, because the test has one thread.
        let asked = (1..=4).map(|number| {
            let code = (number == 3).then_some(code);
            queue.ask(Fault { number, code })
        });
        let answers = join_all(asked).await;
        let answered = answers.iter().map(Result::is_ok).collect();
        (BATCHES.lock().clone(), answered)
    }

    #[tokio::test]
    async fn a_failure_decides_how_its_batch_is_sent_again() {
        let Some(cluster) = Cluster::shared() else {
            return;
        };
        let settings = Settings::new(cluster.schema().await.unwrap());
        let pool = pool(&settings, 1).unwrap();
        let all = vec![1, 2, 3, 4];
        for (why, code, sent, refused) in [
            ("a deadlock: again", "40P01", vec![all.clone()], 0),
            (
                "a lock: each by itself, and the one that waits for it last",
                "55P03",
                vec![vec![4], vec![3], vec![2], vec![1], vec![3]],
                0,
            ),
            (
                "a statement that took too long: likewise",
                "57014",
                vec![vec![4], vec![3], vec![2], vec![1], vec![3]],
                0,
            ),
            (
                "a value: the halves, until it is alone",
                "22021",
                vec![vec![1, 2], vec![3, 4], vec![3], vec![4]],
                1,
            ),
            ("a missing right: not again", "42501", vec![], 4),
        ] {
            let (batches, answered) = batches(&pool, code).await;
            let sent: Vec<_> = [all.clone()].into_iter().chain(sent).collect();
            assert_eq!(batches, sent, "{why}");
            let failed = answered.iter().filter(|is_answered| !**is_answered);
            assert_eq!(failed.count(), refused, "{why}");
        }
    }
}
