//! Composer: owns the cache of composed prompts, which all sessions share.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{
    mailbox::Counted,
    protocol::{Compose, Composed, Wanted},
};
use crate::{
    model::{Fault, FaultCode},
    prompt::{Cache, ComposeInput, ComposedPrompt, Error},
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
        let Compose { wanted, asker } = message.taken();
        asker.answer(wanted.made(|input| cache.compose(&wanted.composer, input)));
        Ok(())
    }
}

impl Wanted {
    /// Makes it by a function that composes.
    ///
    /// # Errors
    /// The fault of a query whose prompt cannot be composed.
    pub(super) fn made(
        &self,
        mut compose: impl FnMut(&ComposeInput) -> Result<Arc<ComposedPrompt>, Error>,
    ) -> Result<Composed, Fault> {
        let mut compose = |input: &ComposeInput| {
            compose(input).map_err(|error| Fault::permanent(FaultCode::Prompt, error.to_string()))
        };
        let prompt = compose(&self.head)?;
        let input = |query_type| ComposeInput::new(Arc::clone(&self.head.variables), query_type);
        let told = self.segment.map(|query_type| compose(&input(query_type)));
        let segment = told.transpose()?.map(|told| told.of_type.clone());
        let segment = segment.filter(|text| !text.is_empty());
        Ok(Composed { prompt, segment })
    }
}
