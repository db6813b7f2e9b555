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
    time::timeout,
};

use super::{
    ledger::Ledger,
    mailbox::{Counted, Depth, Mailbox},
    protocol::{ClassifierMsg, Question},
    task::Task,
};
use crate::{
    model::{QueryClassification, QueryType},
    query::{Classifier, Lexicon, QueryClassifier, QueryContext, Weights},
};

/// How long a question waits for a thread, and a call for its answer.
const DEADLINE: Duration = Duration::from_secs(2);
/// Most calls of the host's classifier at once.
const MAX_THREADS: usize = 8;

pub(super) struct ClassifierArgs {
    pub classifier: Arc<dyn QueryClassifier>,
    pub depth: Depth,
    pub ledger: Ledger,
}

pub(super) struct ClassifierActor;

pub(super) struct ClassifierState {
    classifier: Arc<dyn QueryClassifier>,
    ledger: Ledger,
    me: Mailbox<ClassifierMsg>,
    waiting: VecDeque<Question>,
    /// One for each call that is waited for.
    running: Vec<Task>,
    threads: Arc<Semaphore>,
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
            classifier: args.classifier,
            ledger: args.ledger,
            me: Mailbox::new(me, args.depth),
            waiting: VecDeque::new(),
            running: Vec::new(),
            threads: Arc::new(Semaphore::new(MAX_THREADS)),
        })
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut ClassifierState,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            ClassifierMsg::Classify(question) if state.classifier.is_immediate() => {
                let (text, context) = (&question.text, question.previous.as_deref().into());
                let classify = || state.classifier.classify(text, context);
                match catch_unwind(AssertUnwindSafe(classify)) {
                    Ok(found) => question.asker.answer(normalized(found)),
                    Err(_) => warn(&state.ledger, 1, "it panicked"),
                }
            }
            ClassifierMsg::Classify(question) => {
                state.waiting.push_back(question);
                state.start();
            }
            ClassifierMsg::Next => state.start(),
        }
        Ok(())
    }
}

impl ClassifierState {
    /// Starts calls for what waits, while threads are free.
    fn start(&mut self) {
        self.running.retain(|task| !task.is_over());
        while !self.waiting.is_empty() {
            let Ok(thread) = Arc::clone(&self.threads).try_acquire_owned() else {
                return self.wait();
            };
            let most = self.classifier.max_batch().clamp(1, self.waiting.len());
            let batch = self.waiting.drain(..most).collect();
            self.classify(batch, thread);
        }
    }

    /// All threads are busy: gives up on what has waited for too long, or on all if no thread will
    /// answer.
    fn wait(&mut self) {
        let all_hang = self.running.is_empty();
        let is_late = |one: &&Question| all_hang || one.since.elapsed() >= DEADLINE;
        let late = self.waiting.iter().take_while(is_late).count();
        if late > 0 {
            self.waiting.drain(..late);
            warn(&self.ledger, late, "all its threads are busy");
        }
        if !self.waiting.is_empty() {
            self.me.cast_after(DEADLINE, || ClassifierMsg::Next);
        }
    }

    fn classify(&mut self, batch: Vec<Question>, thread: OwnedSemaphorePermit) {
        let number = batch.len();
        let text = |one: &Question| (Arc::clone(&one.text), one.previous.clone());
        let texts: Vec<_> = batch.iter().map(text).collect();
        let classifier = Arc::clone(&self.classifier);
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
            return warn(&self.ledger, number, &error.to_string());
        }
        let (me, ledger) = (self.me.clone(), self.ledger.clone());
        self.running.push(Task::spawn(async move {
            match timeout(DEADLINE, found).await {
                Ok(Ok(found)) if found.len() == number => {
                    for (question, found) in batch.into_iter().zip(found) {
                        question.asker.answer(normalized(found));
                    }
                }
                Ok(Ok(_)) => warn(&ledger, number, "its batch has another length"),
                Ok(Err(_)) => warn(&ledger, number, "it panicked"),
                Err(_) => warn(&ledger, number, "it gave no answer within 2 s"),
            }
            me.cast(ClassifierMsg::Next);
        }));
    }
}

fn warn(ledger: &Ledger, queries: usize, reason: &str) {
    ledger.warn(|more| {
        tracing::warn!(
            queries,
            reason,
            more,
            "the classifier gave no answer: the built-in one answers instead"
        );
    });
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
