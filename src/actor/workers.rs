//! Classifier and composer actors: pure functions over what each message carries.
//!
//! Supervised by the supervisor; a few of each, chosen in turn. A session prepares a query with one
//! message: a classifier forwards it to a composer, which answers the session. A restart loses a
//! cache and the pending messages, which the session sends again.

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{
    mailbox::{Admission, Counted, Unanswered},
    message::local_messages,
    pool::Pool,
    profile::PromptSource,
    session::SessionMsg,
};
use crate::{
    model::{Fault, FaultCode, QueryClassification, QueryId, QueryType},
    prompt::{Cache, ComposeInput, ComposedPrompt},
    query::{QueryClassifier, QueryContext},
};

/// A query to classify, and to compose the prompt for.
#[derive(Clone)]
pub(super) struct Preparation {
    /// Receives the result.
    pub session: ActorRef<SessionMsg>,
    pub query: QueryId,
    pub text: Arc<str>,
    /// The previous message of the conversation.
    pub previous: Option<Arc<str>>,
    pub prompt_source: PromptSource,
}

impl Preparation {
    fn end(self, result: Result<(QueryClassification, Arc<ComposedPrompt>), Fault>) {
        let query = self.query;
        let _ = self.session.cast(SessionMsg::Prepared { query, result });
    }
}

pub(super) enum ComposerMsg {
    /// Composes the prompt of a classified query, and answers its session.
    Prepare(Preparation, QueryClassification),
    /// Composes a prompt.
    Prompt {
        prompt_source: PromptSource,
        query_type: QueryType,
        reply: RpcReplyPort<Result<Arc<ComposedPrompt>, Fault>>,
    },
}
local_messages!(Preparation, ComposerMsg);

pub(super) type Handler<Q> = Box<dyn FnMut(Q) + Send>;

pub(super) struct WorkerActor<Q>(PhantomData<fn(Q)>);

impl<Q> WorkerActor<Q> {
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<Q: Send + 'static> Actor for WorkerActor<Q> {
    type Msg = Counted<Q>;
    type State = Handler<Q>;
    type Arguments = Handler<Q>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        work: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(work)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        work: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        work(message.taken());
        Ok(())
    }
}

pub(super) fn silent(kind: FaultCode) -> Fault {
    let detail = format!("the {kind} did not answer and is being restarted");
    Fault::retryable(kind, detail)
}

pub(super) fn classifier(
    classifier: Arc<dyn QueryClassifier>,
    composers: Pool<ComposerMsg>,
) -> Handler<Preparation> {
    Box::new(move |asked| {
        let context = QueryContext::from(asked.previous.as_deref());
        match classify(&*classifier, &asked.text, context) {
            // If this message is lost or does not fit, the session sends it again.
            Ok(found) => drop(
                composers
                    .any()
                    .map(|composer| composer.offer(ComposerMsg::Prepare(asked, found))),
            ),
            Err(fault) => asked.end(Err(fault)),
        }
    })
}

/// Classifies with a host's classifier, and normalises the result to what records and prompts rely
/// on. A panic would recur, so it is a permanent fault.
fn classify(
    classifier: &dyn QueryClassifier,
    text: &str,
    context: QueryContext<'_>,
) -> Result<QueryClassification, Fault> {
    let classified = catch_unwind(AssertUnwindSafe(|| classifier.classify(text, context)));
    let found = classified
        .map_err(|_| Fault::permanent(FaultCode::Classifier, "the classifier panicked"))?;
    let confidence = match found.confidence.is_finite() {
        true => found.confidence.clamp(0.0, 1.0),
        false => 0.0,
    };
    let (kind, keywords) = (found.query_type, found.keywords_matched);
    Ok(QueryClassification::new(kind, confidence, keywords))
}

pub(super) fn composer() -> Handler<ComposerMsg> {
    let mut cache = Cache::default();
    let mut compose = move |prompt_source: PromptSource, query_type| {
        let input = ComposeInput::new(prompt_source.values, query_type);
        let composed = cache.compose(&prompt_source.composer, &input);
        composed.map_err(|error| Fault::permanent(FaultCode::Prompt, error.to_string()))
    };
    Box::new(move |composition| match composition {
        ComposerMsg::Prepare(asked, found) => {
            let prompt = compose(asked.prompt_source.clone(), found.query_type);
            asked.end(prompt.map(|prompt| (found, prompt)));
        }
        ComposerMsg::Prompt {
            prompt_source,
            query_type,
            reply,
        } => drop(reply.send(compose(prompt_source, query_type))),
    })
}

pub(super) async fn compose(
    composers: &Pool<ComposerMsg>,
    prompt_source: PromptSource,
    query_type: QueryType,
    within: Duration,
) -> Result<Arc<ComposedPrompt>, Fault> {
    let composer = composers.any().ok_or_else(|| silent(FaultCode::Composer))?;
    let question = |reply| ComposerMsg::Prompt {
        prompt_source,
        query_type,
        reply,
    };
    match composer.ask(question, Admission::IfRoom, within).await {
        Ok(answer) => answer,
        Err(Unanswered::Full(full)) => Err(full.fault(FaultCode::Composer, "the composer")),
        Err(Unanswered::Timeout | Unanswered::Stopped) => Err(silent(FaultCode::Composer)),
    }
}
