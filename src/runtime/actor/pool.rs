//! The current actors of one kind: the supervisor replaces them, callers pick one.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use dashmap::DashMap;
use ractor::ActorRef;

use super::mailbox::{Counted, Depth, Mailbox};

/// The current actors of one kind, chosen by key or in turn. Cheap to clone.
pub(super) struct Pool<M>(Arc<Table<M>>);

struct Table<M> {
    members: DashMap<usize, ActorRef<Counted<M>>>,
    /// Outlives the actors: a successor continues the count.
    depths: Vec<Depth>,
    turn: AtomicUsize,
}

impl<M> Clone for Pool<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Send + 'static> Pool<M> {
    /// Creates a pool; `capacity` bounds the messages from outside pending for each actor.
    pub(super) fn new(size: usize, capacity: usize) -> Self {
        let (members, turn) = (DashMap::new(), AtomicUsize::new(0));
        let depths = (0..size.max(1)).map(|_| Depth::new(capacity)).collect();
        Self(Arc::new(Table {
            members,
            depths,
            turn,
        }))
    }

    pub(super) fn size(&self) -> usize {
        self.0.depths.len()
    }

    pub(super) fn depth(&self, index: usize) -> Depth {
        self.0.depths[index % self.size()].clone()
    }

    pub(super) fn waiting(&self) -> Vec<usize> {
        self.0.depths.iter().map(Depth::waiting).collect()
    }

    pub(super) fn put(&self, index: usize, actor: ActorRef<Counted<M>>) {
        self.0.members.insert(index, actor);
    }

    pub(super) fn at(&self, index: usize) -> Option<Mailbox<M>> {
        let member = self.0.members.get(&index)?;
        Some(Mailbox::new(member.value().clone(), self.depth(index)))
    }

    /// Sends a message to a key's actor; it is lost while there is none.
    pub(super) fn cast(&self, key: &impl Hash, message: M) {
        if let Some(actor) = self.at(self.index_of(key)) {
            actor.cast(message);
        }
    }

    pub(super) fn any(&self) -> Option<Mailbox<M>> {
        self.at(self.0.turn.fetch_add(1, Ordering::Relaxed) % self.size())
    }

    #[cfg(test)]
    pub(super) fn is_closed(&self) -> bool {
        use ractor::ActorStatus::{Stopped, Stopping};
        let ended = |actor: &ActorRef<Counted<M>>| matches!(actor.get_status(), Stopping | Stopped);
        self.0.members.iter().all(|member| ended(member.value()))
    }

    /// Index of a key's actor; stable while the pool exists.
    pub(super) fn index_of(&self, key: &impl Hash) -> usize {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        (hasher.finish() % self.size() as u64) as usize
    }
}
