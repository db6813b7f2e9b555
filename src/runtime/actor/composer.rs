//! Composer: owns the cache of composed prompts, which all sessions share.

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{mailbox::Counted, protocol::Compose};
use crate::{
    model::{Fault, FaultCode},
    prompt::{Cache, Error},
};

pub(super) struct ComposerActor;

impl Actor for ComposerActor {
    type Msg = Counted<Compose>;
    type State = Cache;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Self::Msg>, (): ()) -> Result<Cache, ActorProcessingErr> {
        Ok(Cache::default())
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        cache: &mut Cache,
    ) -> Result<(), ActorProcessingErr> {
        let Compose {
            composer,
            input,
            asker,
        } = message.taken();
        asker.answer(
            cache
                .compose(&composer, &input)
                .map_err(|error| fault(&error)),
        );
        Ok(())
    }
}

/// The fault of a query whose prompt cannot be composed.
pub(super) fn fault(error: &Error) -> Fault {
    Fault::permanent(FaultCode::Prompt, error.to_string())
}
