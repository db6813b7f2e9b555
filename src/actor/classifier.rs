//! Classifier actors: answer questions about questions.
//!
//! Supervised by the supervisor; a few of them, chosen in turn by the caller. Each holds a published
//! read-only snapshot; a reload publishes a new one. Stateless otherwise, so a restart loses nothing.

use std::{sync::Arc, time::Duration};

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{
    mailbox::{Admission, Counted, Unanswered},
    message::local_messages,
    pool::Pool,
};
use crate::{
    model::{Fault, QueryClassification},
    query::{Classifier, Context},
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
        let answer = actor.ask(ask, Admission::IfRoom, within).await;
        answer.map_err(|unanswered| match unanswered {
            Unanswered::Full(full) => full.fault("classifier", "the classifier"),
            Unanswered::Timeout | Unanswered::Stopped => restarting(),
        })
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
        reply: RpcReplyPort<QueryClassification>,
    },
}
local_messages!(ClassifierMsg);

pub(super) struct ClassifierActor;

impl Actor for ClassifierActor {
    type Msg = Counted<ClassifierMsg>;
    type State = Arc<Classifier>;
    type Arguments = Arc<Classifier>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        snapshot: Arc<Classifier>,
    ) -> Result<Arc<Classifier>, ActorProcessingErr> {
        Ok(snapshot)
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        snapshot: &mut Arc<Classifier>,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            ClassifierMsg::Classify {
                text,
                previous,
                reply,
            } => {
                let found = snapshot.classify(&text, Context::from(previous.as_deref()));
                // Whoever asked may have given up; that is its right.
                let _ = reply.send(found);
            }
        }
        Ok(())
    }
}
