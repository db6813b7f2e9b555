//! Classifier actors: answer questions about questions.
//!
//! Supervised by the supervisor; a few of them, chosen in turn by the caller. Each holds a published
//! read-only snapshot; a reload publishes a new one. Stateless otherwise, so a restart loses nothing.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{
    mailbox::{Admission, Counted, Unanswered},
    message::local_messages,
    pool::Pool,
};
use crate::{
    model::{Fault, QueryClassification},
    query::{Context, QueryClassifier},
};

/// How others reach the classifiers.
#[derive(Clone)]
pub(super) struct ClassifierHandle(pub Pool<ClassifierMsg>);

impl ClassifierHandle {
    /// What kind of question this is.
    pub(super) async fn classify(
        &self,
        text: Arc<str>,
        previous: Option<Arc<str>>,
        within: Duration,
    ) -> Result<QueryClassification, Fault> {
        let actor = self.0.any().ok_or_else(restarting)?;
        let ask = |reply| ClassifierMsg::Classify {
            text,
            previous,
            reply,
        };
        match actor.ask(ask, Admission::IfRoom, within).await {
            Ok(found) => found,
            Err(Unanswered::Full(full)) => Err(full.fault("classifier", "the classifier")),
            Err(Unanswered::Timeout | Unanswered::Stopped) => Err(restarting()),
        }
    }
}

fn restarting() -> Fault {
    Fault::retryable(
        "classifier",
        "the classifier did not answer; it is being restarted",
    )
}

pub(super) enum ClassifierMsg {
    /// A question, and the one before it.
    Classify {
        text: Arc<str>,
        previous: Option<Arc<str>>,
        reply: RpcReplyPort<Result<QueryClassification, Fault>>,
    },
}
local_messages!(ClassifierMsg);

pub(super) struct ClassifierActor;

impl Actor for ClassifierActor {
    type Msg = Counted<ClassifierMsg>;
    type State = Arc<dyn QueryClassifier>;
    type Arguments = Arc<dyn QueryClassifier>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        snapshot: Self::Arguments,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(snapshot)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        snapshot: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            ClassifierMsg::Classify {
                text,
                previous,
                reply,
            } => {
                let found = classify(&**snapshot, &text, previous.as_deref());
                // Whoever asked may have given up; that is its right.
                let _ = reply.send(found);
            }
        }
        Ok(())
    }
}

/// An embedder's classifier is held to what records and prompts rely on. One that panics has no answer to this
/// question, and would have none the next time.
fn classify(
    classifier: &dyn QueryClassifier,
    text: &str,
    previous: Option<&str>,
) -> Result<QueryClassification, Fault> {
    let asked = AssertUnwindSafe(|| classifier.classify(text, Context::from(previous)));
    let Ok(found) = catch_unwind(asked) else {
        return Err(Fault::permanent("classifier", "the classifier panicked"));
    };
    let confidence = match found.confidence.is_finite() {
        true => found.confidence.clamp(0.0, 1.0),
        false => 0.0,
    };
    let (kind, keywords) = (found.query_type, found.keywords_matched);
    Ok(QueryClassification::new(kind, confidence, keywords))
}
