//! Classifier and composer actors: they answer questions from a published read-only snapshot.
//!
//! Supervised by the supervisor; a few of each, chosen in turn by the caller. A restart loses nothing but a
//! cache. A reload publishes a new snapshot.

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{
    mailbox::{Admission, Counted, Unanswered},
    pool::Pool,
};
use crate::{
    model::{Fault, QueryClassification},
    prompt::{Cache, ComposeInput, ComposedPrompt, Composer},
    query::{Context, QueryClassifier},
};

pub(super) struct Question<Q, A> {
    asked: Q,
    reply: RpcReplyPort<Result<A, Fault>>,
}

pub(super) type Answerer<Q, A> = Box<dyn FnMut(Q) -> Result<A, Fault> + Send>;

pub(super) struct WorkerActor<Q, A>(PhantomData<fn(Q) -> A>);

impl<Q, A> WorkerActor<Q, A> {
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<Q: Send + 'static, A: Send + 'static> Actor for WorkerActor<Q, A> {
    type Msg = Counted<Question<Q, A>>;
    type State = Answerer<Q, A>;
    type Arguments = Answerer<Q, A>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        answerer: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(answerer)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        answer: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        let Question { asked, reply } = message.taken();
        // The caller may have given up.
        let _ = reply.send(answer(asked));
        Ok(())
    }
}

pub(super) struct Workers<Q, A> {
    name: &'static str,
    pub pool: Pool<Question<Q, A>>,
}

impl<Q, A> Clone for Workers<Q, A> {
    fn clone(&self) -> Self {
        let pool = self.pool.clone();
        Self { pool, ..*self }
    }
}

impl<Q: Send + 'static, A: Send + 'static> Workers<Q, A> {
    pub(super) const fn new(name: &'static str, pool: Pool<Question<Q, A>>) -> Self {
        Self { name, pool }
    }

    async fn ask(&self, asked: Q, within: Duration) -> Result<A, Fault> {
        let name = self.name;
        let restarting = || {
            let detail = format!("the {name} did not answer; it is being restarted");
            Fault::retryable(name, detail)
        };
        let actor = self.pool.any().ok_or_else(restarting)?;
        let question = |reply| Question { asked, reply };
        match actor.ask(question, Admission::IfRoom, within).await {
            Ok(answer) => answer,
            Err(Unanswered::Full(full)) => Err(full.fault(name, &format!("the {name}"))),
            Err(Unanswered::Timeout | Unanswered::Stopped) => Err(restarting()),
        }
    }
}

/// A message and the one before it.
type Message = (Arc<str>, Option<Arc<str>>);
pub(super) type ClassifierMsg = Question<Message, QueryClassification>;
pub(super) type Classifiers = Workers<Message, QueryClassification>;

impl Classifiers {
    pub(super) async fn classify(
        &self,
        text: Arc<str>,
        previous: Option<Arc<str>>,
        within: Duration,
    ) -> Result<QueryClassification, Fault> {
        self.ask((text, previous), within).await
    }
}

/// A host's classifier is held to what records and prompts rely on. One that panics would do so again, so the
/// fault is permanent.
pub(super) fn classifier(
    classifier: Arc<dyn QueryClassifier>,
) -> Answerer<Message, QueryClassification> {
    Box::new(move |(text, previous)| {
        let context = Context::from(previous.as_deref());
        let classified = catch_unwind(AssertUnwindSafe(|| classifier.classify(&text, context)));
        let Ok(found) = classified else {
            return Err(Fault::permanent("classifier", "the classifier panicked"));
        };
        let confidence = match found.confidence.is_finite() {
            true => found.confidence.clamp(0.0, 1.0),
            false => 0.0,
        };
        let (kind, keywords) = (found.query_type, found.keywords_matched);
        Ok(QueryClassification::new(kind, confidence, keywords))
    })
}

/// An input, and prompts other than the system's.
type Composition = (ComposeInput, Option<Arc<Composer>>);
pub(super) type ComposerMsg = Question<Composition, Arc<ComposedPrompt>>;
pub(super) type Composers = Workers<Composition, Arc<ComposedPrompt>>;

impl Composers {
    pub(super) async fn compose(
        &self,
        input: ComposeInput,
        composer: Option<Arc<Composer>>,
        within: Duration,
    ) -> Result<Arc<ComposedPrompt>, Fault> {
        self.ask((input, composer), within).await
    }
}

pub(super) fn composer(composer: Arc<Composer>) -> Answerer<Composition, Arc<ComposedPrompt>> {
    let mut cache = Cache::new(composer);
    Box::new(move |(input, composer)| {
        let composed = match composer {
            Some(composer) => cache.compose_with(&composer, &input),
            None => cache.compose(&input),
        };
        composed.map_err(|error| Fault::permanent("prompt", error.to_string()))
    })
}
