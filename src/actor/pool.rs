//! Where the actors of a kind are at the moment: the supervisor replaces them, callers pick one.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use dashmap::DashMap;
use ractor::ActorRef;

/// A read-mostly table of actors by number. Cheap to clone.
pub(super) struct Pool<M>(Arc<Table<M>>);

struct Table<M> {
    members: DashMap<usize, ActorRef<M>>,
    size: usize,
    turn: AtomicUsize,
}

impl<M> Clone for Pool<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: ractor::Message> Pool<M> {
    /// Room for `size` actors, at least one.
    pub(super) fn new(size: usize) -> Self {
        let (members, turn) = (DashMap::new(), AtomicUsize::new(0));
        Self(Arc::new(Table {
            members,
            size: size.max(1),
            turn,
        }))
    }

    /// How many there are to be.
    pub(super) fn size(&self) -> usize {
        self.0.size
    }

    /// Puts an actor in its place.
    pub(super) fn put(&self, index: usize, actor: ActorRef<M>) {
        self.0.members.insert(index, actor);
    }

    /// The actor of a number; none while it is being replaced.
    pub(super) fn at(&self, index: usize) -> Option<ActorRef<M>> {
        self.0
            .members
            .get(&index)
            .map(|member| member.value().clone())
    }

    /// The next in turn.
    pub(super) fn any(&self) -> Option<ActorRef<M>> {
        self.at(self.0.turn.fetch_add(1, Ordering::Relaxed) % self.0.size)
    }

    /// Whether all of them have ended.
    pub(super) fn is_closed(&self) -> bool {
        use ractor::ActorStatus::{Stopped, Stopping};
        let ended = |actor: &ActorRef<M>| matches!(actor.get_status(), Stopping | Stopped);
        self.0.members.iter().all(|member| ended(member.value()))
    }

    /// The number that a key belongs to; the same for as long as the pool lives.
    pub(super) fn index_of(&self, key: &impl Hash) -> usize {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        (hasher.finish() % self.0.size as u64) as usize
    }
}
