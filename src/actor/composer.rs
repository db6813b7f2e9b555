//! Composer actors: put prompts together, and remember them.
//!
//! Supervised by the supervisor; a few of them, chosen in turn by the caller. Each holds a cache over
//! a published read-only snapshot of the prompts; a restart only empties the cache.

use std::{sync::Arc, time::Duration};

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};

use super::{
    mailbox::{Admission, Counted, Unanswered},
    message::local_messages,
    pool::Pool,
};
use crate::{
    model::Fault,
    prompt::{Cache, ComposeInput, ComposedPrompt, Composer, Error},
};

/// How others reach the composers.
#[derive(Clone)]
pub(super) struct ComposerHandle(pub Pool<ComposerMsg>);

impl ComposerHandle {
    /// The prompt for this input, from the system's prompts or from others.
    pub(super) async fn compose(
        &self,
        input: ComposeInput,
        composer: Option<Arc<Composer>>,
        within: Duration,
    ) -> Result<Arc<ComposedPrompt>, Fault> {
        let silent = || {
            Fault::retryable(
                "composer",
                "the composer did not answer; it is being restarted",
            )
        };
        let actor = self.0.any().ok_or_else(silent)?;
        let ask = |reply| ComposerMsg::Compose {
            input,
            composer,
            reply,
        };
        match actor.ask(ask, Admission::IfRoom, within).await {
            Ok(composed) => composed.map_err(|error| Fault::permanent("prompt", error.to_string())),
            Err(Unanswered::Full(full)) => Err(full.fault("composer", "the composer")),
            Err(Unanswered::Timeout | Unanswered::Stopped) => Err(silent()),
        }
    }
}

pub(super) enum ComposerMsg {
    /// A prompt, please.
    Compose {
        input: ComposeInput,
        composer: Option<Arc<Composer>>,
        reply: RpcReplyPort<Result<Arc<ComposedPrompt>, Error>>,
    },
}
local_messages!(ComposerMsg);

pub(super) struct ComposerActor;

impl Actor for ComposerActor {
    type Msg = Counted<ComposerMsg>;
    type State = Cache;
    type Arguments = Arc<Composer>;

    async fn pre_start(
        &self,
        _: ActorRef<Self::Msg>,
        snapshot: Arc<Composer>,
    ) -> Result<Cache, ActorProcessingErr> {
        Ok(Cache::new(snapshot))
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        cache: &mut Cache,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            ComposerMsg::Compose {
                input,
                composer,
                reply,
            } => {
                let composed = match composer {
                    Some(composer) => cache.compose_with(&composer, &input),
                    None => cache.compose(&input),
                };
                // Whoever asked may have given up; that is its right.
                let _ = reply.send(composed);
            }
        }
        Ok(())
    }
}
