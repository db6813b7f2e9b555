//! Cache of composed prompts. Failures are not cached.
//!
//! **Invariants:** never more than [`MAX_ENTRIES`] prompts; never a prompt of another snapshot.

use std::{collections::HashMap, sync::Arc};

use super::{
    compose::{ComposeInput, ComposedPrompt, Composer},
    error::Error,
};
use crate::model::QueryType;

/// Capacity; 256 built-in prompts take some 3 MB.
const MAX_ENTRIES: usize = 256;

/// Composed prompts by input. Evicts the least recently used.
#[derive(Debug, Default)]
pub struct Cache {
    entries: HashMap<Key, CachedPrompt>,
    lookups: u64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The composer's address; the entry keeps it alive.
    composer: usize,
    variables: [u8; 32],
    query_type: QueryType,
}

#[derive(Debug)]
struct CachedPrompt {
    _composer: Arc<Composer>,
    prompt: Arc<ComposedPrompt>,
    last_lookup: u64,
}

impl Cache {
    /// Returns a cached prompt, or composes and caches it.
    ///
    /// # Errors
    /// Those of [`Composer::compose`].
    pub fn compose(
        &mut self,
        composer: &Arc<Composer>,
        input: &ComposeInput,
    ) -> Result<Arc<ComposedPrompt>, Error> {
        self.lookups += 1;
        let key = Key {
            composer: Arc::as_ptr(composer).addr(),
            variables: input.variables.fingerprint(),
            query_type: input.query_type,
        };
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.last_lookup = self.lookups;
            return Ok(Arc::clone(&entry.prompt));
        }
        let prompt = Arc::new(composer.compose(input)?);
        self.evict(MAX_ENTRIES);
        let entry = CachedPrompt {
            _composer: Arc::clone(composer),
            prompt: Arc::clone(&prompt),
            last_lookup: self.lookups,
        };
        self.entries.insert(key, entry);
        Ok(prompt)
    }

    /// Evicts by a scan, which is cheap compared with a composition.
    fn evict(&mut self, most: usize) {
        let full = self.entries.len() >= most;
        let oldest = self.entries.values().map(|entry| entry.last_lookup).min();
        if let (true, Some(oldest)) = (full, oldest) {
            self.entries.retain(|_, entry| entry.last_lookup != oldest);
        }
    }
}

#[cfg(test)]
mod tests;
