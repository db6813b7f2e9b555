//! Classifier: finds the type of each query that is about to begin.
//!
//! A [classifier that answers at once](QueryClassifier::is_immediate) runs on the actor. Any other
//! runs on threads of its own, so that it can block or panic: whatever it does costs only the
//! queries of that call. A thread that hangs is lost until the call returns.
//!
//! **Invariant:** each question is answered within [`DEADLINE`]; without the host's answer, the
//! session uses [`builtin`].

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
    thread,
    time::Duration,
};

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::{Instant, timeout_at},
};

use super::{
    mailbox::{Counted, Depth, Mailbox},
    protocol::{ClassifierMsg, Question},
    task::Task,
    warnings::Warnings,
};
use crate::{
    model::{QueryClassification, QueryType},
    query::{Classifier, Lexicon, QueryClassifier, QueryContext, Weights},
};

/// Longest time from a question to its answer: in the queue, and in the call.
const DEADLINE: Duration = Duration::from_secs(2);
/// Longest time in the queue, so that a call that begins has time for its answer.
const IN_QUEUE: Duration = Duration::from_secs(1);
/// Most calls of the host's classifier at once.
const MAX_THREADS: usize = 8;

/// The host's classifier and its threads. It outlives the actor: a successor has no other threads
/// than those that its predecessor has not lost.
pub(super) struct HostClassifier {
    classifier: Arc<dyn QueryClassifier>,
    is_immediate: bool,
    max_batch: usize,
    threads: Arc<Semaphore>,
    warnings: Warnings,
}

impl HostClassifier {
    /// Asks the classifier once what it is. One that panics gets the defaults.
    pub(super) fn new(classifier: Arc<dyn QueryClassifier>) -> Arc<Self> {
        let ask = || (classifier.is_immediate(), classifier.max_batch().max(1));
        let (is_immediate, max_batch) = catch_unwind(AssertUnwindSafe(ask)).unwrap_or((false, 1));
        Arc::new(Self {
            is_immediate,
            max_batch,
            classifier,
            threads: Arc::new(Semaphore::new(MAX_THREADS)),
            warnings: Warnings::default(),
        })
    }

    fn answer_at_once(&self, question: Question) {
        let (text, context) = (&question.text, question.previous.as_deref().into());
        let classify = || self.classifier.classify(text, context);
        match catch_unwind(AssertUnwindSafe(classify)) {
            Ok(found) => question.asker.answer(normalized(found)),
            Err(_) => self.warn(1, "it panicked"),
        }
    }

    fn warn(&self, queries: usize, reason: &str) {
        self.warnings.warn(|more| {
            tracing::warn!(
                queries,
                reason,
                more,
                "the classifier gave no answer: the built-in one answers instead"
            );
        });
    }
}

pub(super) struct ClassifierArgs {
    pub host: Arc<HostClassifier>,
    pub depth: Depth,
}

pub(super) struct ClassifierActor;

pub(super) struct ClassifierState {
    host: Arc<HostClassifier>,
    me: Mailbox<ClassifierMsg>,
    /// Oldest first.
    waiting: VecDeque<Question>,
    /// One for each call that is waited for.
    running: Vec<Task>,
    /// Whether [`ClassifierMsg::Due`] is on its way.
    is_timed: bool,
}

impl Actor for ClassifierActor {
    type Msg = Counted<ClassifierMsg>;
    type State = ClassifierState;
    type Arguments = ClassifierArgs;

    async fn pre_start(
        &self,
        me: ActorRef<Self::Msg>,
        args: ClassifierArgs,
    ) -> Result<ClassifierState, ActorProcessingErr> {
        Ok(ClassifierState {
            host: args.host,
            me: Mailbox::new(me, args.depth),
            waiting: VecDeque::new(),
            running: Vec::new(),
            is_timed: false,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut ClassifierState,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            ClassifierMsg::Classify(question) if state.host.is_immediate => {
                state.host.answer_at_once(question);
            }
            ClassifierMsg::Classify(question) => {
                state.waiting.push_back(question);
                state.start();
            }
            ClassifierMsg::Ended => state.start(),
            ClassifierMsg::Due => {
                state.is_timed = false;
                state.start();
            }
        }
        Ok(())
    }
}

impl ClassifierState {
    /// Starts calls for what waits, while threads are free.
    fn start(&mut self) {
        self.running.retain(|task| !task.is_over());
        let is_late = |one: &&Question| one.since.elapsed() >= IN_QUEUE;
        self.give_up(self.waiting.iter().take_while(is_late).count());
        while let Some(oldest) = self.waiting.front() {
            let since = oldest.since;
            let Ok(thread) = Arc::clone(&self.host.threads).try_acquire_owned() else {
                return self.wait(since + IN_QUEUE);
            };
            let most = self.host.max_batch.min(self.waiting.len());
            let batch = self.waiting.drain(..most).collect();
            self.classify(batch, since + DEADLINE, thread);
        }
    }

    /// All threads are busy: waits for one, unless they all hang.
    fn wait(&mut self, until: Instant) {
        if self.running.is_empty() {
            self.give_up(self.waiting.len());
        } else if !self.is_timed {
            self.is_timed = true;
            let left = until.saturating_duration_since(Instant::now());
            self.me.cast_after(left, || ClassifierMsg::Due);
        }
    }

    fn give_up(&mut self, oldest: usize) {
        if oldest > 0 {
            self.waiting.drain(..oldest);
            self.host.warn(oldest, "all its threads are busy");
        }
    }

    /// Calls the host's classifier. The questions of a call share the deadline of the oldest.
    fn classify(&mut self, batch: Vec<Question>, until: Instant, thread: OwnedSemaphorePermit) {
        let number = batch.len();
        let text = |one: &Question| (Arc::clone(&one.text), one.previous.clone());
        let texts: Vec<_> = batch.iter().map(text).collect();
        let classifier = Arc::clone(&self.host.classifier);
        let (done, found) = oneshot::channel();
        let call = move || {
            let queries = texts.iter().map(|(text, previous)| {
                let context = QueryContext::from(previous.as_deref());
                (&**text, context)
            });
            // Free before the answer is known, which makes the actor look for a free one.
            let found = {
                let _thread = thread;
                classifier.classify_batch(&queries.collect::<Vec<_>>())
            };
            let _ = done.send(found);
        };
        let spawned = thread::Builder::new().name("classifier".into()).spawn(call);
        if let Err(error) = spawned {
            return self.host.warn(number, &error.to_string());
        }
        let (me, host) = (self.me.clone(), Arc::clone(&self.host));
        self.running.push(Task::spawn(async move {
            match timeout_at(until, found).await {
                Ok(Ok(found)) if found.len() == number => {
                    for (question, found) in batch.into_iter().zip(found) {
                        question.asker.answer(normalized(found));
                    }
                }
                Ok(Ok(_)) => host.warn(number, "its batch has another length"),
                Ok(Err(_)) => host.warn(number, "it panicked"),
                Err(_) => host.warn(number, "it gave no answer within 2 s"),
            }
            me.cast(ClassifierMsg::Ended);
        }));
    }
}

/// What a host's classifier finds, as records and prompts rely on it.
fn normalized(found: QueryClassification) -> QueryClassification {
    let confidence = match found.confidence.is_finite() {
        true => found.confidence.clamp(0.0, 1.0),
        false => 0.0,
    };
    QueryClassification::new(found.query_type, confidence, found.keywords_matched)
}

/// Classifies by the built-in lexicon and weights.
pub(super) fn builtin(text: &str, context: QueryContext<'_>) -> QueryClassification {
    static BUILTIN: LazyLock<Option<Classifier>> = LazyLock::new(|| {
        let weights = Weights::builtin().ok()?;
        let lexicon = Lexicon::builtin().ok()?;
        Some(Classifier::new(&lexicon).with_weights(weights.into()))
    });
    let unknown = || QueryClassification::new(QueryType::Conversational, 0.0, Vec::new());
    let classifier = BUILTIN.as_ref();
    classifier.map_or_else(unknown, |classifier| classifier.classify(text, context))
}

#[cfg(test)]
mod tests {
    use tokio::{
        runtime::Handle,
        sync::mpsc::{UnboundedSender, unbounded_channel},
    };

    use super::*;
    use crate::actor::protocol::{Asker, SessionMsg};

    /// Takes a session's place, and passes on whether it got an answer.
    struct Listener;

    impl Actor for Listener {
        type Msg = SessionMsg;
        type State = UnboundedSender<bool>;
        type Arguments = UnboundedSender<bool>;

        async fn pre_start(
            &self,
            _: ActorRef<SessionMsg>,
            to: Self::Arguments,
        ) -> Result<Self::State, ActorProcessingErr> {
            Ok(to)
        }

        async fn handle(
            &self,
            _: ActorRef<SessionMsg>,
            message: SessionMsg,
            to: &mut Self::State,
        ) -> Result<(), ActorProcessingErr> {
            if let SessionMsg::Classified(_, found) = message {
                let _ = to.send(found.is_some());
            }
            Ok(())
        }
    }

    struct Hangs;

    impl QueryClassifier for Hangs {
        fn classify(&self, _: &str, _: QueryContext<'_>) -> QueryClassification {
            loop {
                thread::park();
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn questions_that_find_no_thread_share_one_timer() {
        const QUESTIONS: u64 = 1_000;
        let (to, mut answers) = unbounded_channel();
        let (listener, _) = Actor::spawn(None, Listener, to).await.unwrap();
        let (host, depth) = (HostClassifier::new(Arc::new(Hangs)), Depth::new(1));
        let args = ClassifierArgs {
            host,
            depth: depth.clone(),
        };
        let (actor, _) = Actor::spawn(None, ClassifierActor, args).await.unwrap();
        let (mailbox, since) = (Mailbox::new(actor, depth.clone()), Instant::now());
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        for token in 0..QUESTIONS {
            mailbox.cast(ClassifierMsg::Classify(Question {
                text: "hello".into(),
                previous: None,
                since,
                asker: Asker::new(&listener, token, SessionMsg::Classified),
            }));
        }
        for _ in 0..100_000 {
            tokio::task::yield_now().await;
            if depth.waiting() == 0 {
                break;
            }
        }
        assert_eq!(depth.waiting(), 0);
        let more = tasks() - before;
        assert!(more <= MAX_THREADS + 1, "{more} tasks");
        // The paused clock says when, to a timer's precision.
        let called = MAX_THREADS as u64;
        for (number, due) in [(QUESTIONS - called, IN_QUEUE), (called, DEADLINE)] {
            for _ in 0..number {
                let answer = tokio::time::timeout(2 * DEADLINE, answers.recv()).await;
                assert_eq!(answer, Ok(Some(false)));
                let took = since.elapsed();
                assert!(took >= due && took < due + due / 100, "{took:?}");
            }
        }
    }
}
