//! Remembers composed prompts, so that a query costs a lookup instead of a composition.
//!
//! A plain structure that its owner changes through `&mut self`; it holds no lock. Failures are not
//! remembered.
//!
//! **Invariants:** never more entries than the settings allow; never a prompt of another snapshot than the one
//! that was asked.

use std::{collections::HashMap, sync::Arc};

use super::{
    compose::{ComposeInput, ComposedPrompt, Composer},
    error::Error,
    segment::SegmentId,
};
use crate::model::QueryType;

/// Composed prompts by what they were composed for; the least recently used one makes room.
#[derive(Debug)]
pub struct Cache {
    composer: Arc<Composer>,
    entries: HashMap<Key, Entry>,
    lookups: u64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    /// Where the composer is, which the entry keeps there.
    composer: usize,
    variables: [u8; 32],
    query_type: QueryType,
    extra_segments: Vec<SegmentId>,
}

#[derive(Debug)]
struct Entry {
    _composer: Arc<Composer>,
    prompt: Arc<ComposedPrompt>,
    last_lookup: u64,
}

impl Cache {
    /// An empty cache of this composer's prompts.
    #[must_use]
    pub fn new(composer: Arc<Composer>) -> Self {
        Self {
            composer,
            entries: HashMap::new(),
            lookups: 0,
        }
    }

    /// Goes on with another snapshot and forgets the prompts of the old one.
    pub fn publish(&mut self, composer: Arc<Composer>) {
        *self = Self::new(composer);
    }

    /// The prompt of a query, composed if it is not at hand.
    ///
    /// # Errors
    /// Those of [`Composer::compose`].
    pub fn compose(&mut self, input: &ComposeInput) -> Result<Arc<ComposedPrompt>, Error> {
        let composer = Arc::clone(&self.composer);
        self.compose_with(&composer, input)
    }

    /// The same, from a snapshot other than its own.
    ///
    /// # Errors
    /// Those of [`Composer::compose`].
    pub fn compose_with(
        &mut self,
        composer: &Arc<Composer>,
        input: &ComposeInput,
    ) -> Result<Arc<ComposedPrompt>, Error> {
        self.lookups += 1;
        let key = Key {
            composer: Arc::as_ptr(composer).addr(),
            variables: input.variables.fingerprint(),
            query_type: input.query_type,
            extra_segments: input.extra_segments.clone(),
        };
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.last_lookup = self.lookups;
            return Ok(Arc::clone(&entry.prompt));
        }
        let prompt = Arc::new(composer.compose(input)?);
        self.make_room();
        let entry = Entry {
            _composer: Arc::clone(composer),
            prompt: Arc::clone(&prompt),
            last_lookup: self.lookups,
        };
        self.entries.insert(key, entry);
        Ok(prompt)
    }

    /// A scan is cheap beside the composition that brought us here.
    fn make_room(&mut self) {
        let full = self.entries.len() as u64 >= self.composer.settings().cache_entries;
        let oldest = self.entries.values().map(|entry| entry.last_lookup).min();
        if let (true, Some(oldest)) = (full, oldest) {
            self.entries.retain(|_, entry| entry.last_lookup != oldest);
        }
    }
}

#[cfg(test)]
mod tests;
