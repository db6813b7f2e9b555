//! A cache of the JSON of long conversations, so that a turn serializes only what is new.
//!
//! Messages are immutable once shared, so a conversation is recognized by their addresses. From the
//! first message that differs, it is serialized again. What is kept of conversations that are deleted
//! or passivated is dropped with the next requests to the provider.

use std::{
    collections::HashMap,
    mem::{self, size_of},
    ptr,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use serde::Serialize;

use super::{dialect::Outgoing, forms::Forms};
use crate::model::Message;

/// Maximum bytes in a generation. The cache has two generations.
const GENERATION: usize = 32 << 20;

/// Minimum bytes worth keeping. Serializing less costs little beside the rest of a turn.
const SHORTEST: usize = 4 << 10;

/// Maximum bytes of one prefix. A longer one would displace too many others.
const LONGEST: usize = GENERATION / 4;

/// Bytes of a weak reference and of what it keeps allocated.
const MESSAGE: usize = size_of::<Weak<Message>>() + size_of::<Message>() + 2 * size_of::<usize>();

/// After so many requests, conversations that are gone are dropped.
const SWEEP: usize = 64;

/// The cache of a provider. `M` is the data that its dialect keeps with each [`Cut`].
#[derive(Debug, Default)]
pub(super) struct Prefixes<M>(Mutex<Generations<M>>);

/// A prefix that is used moves to the young generation. When that is full, it replaces the old one,
/// which is dropped.
#[derive(Debug, Default)]
struct Generations<M> {
    young: HashMap<Key, Prefix<M>>,
    old: HashMap<Key, Prefix<M>>,
    /// Bytes in the young generation.
    bytes: usize,
    /// How many prefixes have been put.
    puts: usize,
}

/// The address of a conversation's first message, the model, and what its server has refused. All
/// else that affects the JSON is the same for all requests over the route.
type Key = (usize, Arc<str>, Forms);

/// The JSON of a conversation's first messages.
#[derive(Debug, Default)]
pub(super) struct Prefix<M> {
    /// The serialized messages and the one after the last cut. A weak reference frees a message's
    /// texts, but prevents another message from getting its address.
    messages: Vec<Weak<Message>>,
    /// The messages as JSON objects, each with a comma after it.
    pub(super) json: Vec<u8>,
    pub(super) cuts: Vec<Cut<M>>,
}

/// A place where the JSON can be continued. It is valid only while the message after it stays the
/// same, because another one could be merged into the message before.
#[derive(Debug)]
pub(super) struct Cut<M> {
    messages: usize,
    bytes: usize,
    pub(super) data: M,
}

impl<M: Default> Prefixes<M> {
    /// Removes and returns the kept prefix, cut back to what the request still begins with. It is
    /// empty if there is none.
    pub(super) fn take(&self, call: &Outgoing<'_>) -> Prefix<M> {
        let request = call.request;
        let found = request.messages.first().and_then(|first| {
            let (key, mut kept) = (key(first, call), self.0.lock());
            let found = kept.young.remove(&key);
            kept.bytes -= found.as_ref().map_or(0, Prefix::size);
            found.or_else(|| kept.old.remove(&key))
        });
        let mut prefix = found.unwrap_or_default();
        let pairs = prefix.messages.iter().zip(request.messages.iter());
        let same = pairs.take_while(|(old, new)| ptr::eq(old.as_ptr(), Arc::as_ptr(new)));
        let same = same.count();
        // A cut needs the message after it.
        let holding = prefix.cuts.partition_point(|cut| cut.messages < same);
        prefix.cuts.truncate(holding);
        prefix.messages.truncate(same);
        prefix.truncate_to_last_cut();
        prefix
    }

    /// Keeps the prefix up to its last cut, for the next request of the conversation.
    pub(super) fn put(&self, mut prefix: Prefix<M>, call: &Outgoing<'_>) {
        let request = call.request;
        let count = prefix.complete_messages();
        prefix.truncate_to_last_cut();
        let Some(first) = request.messages.first() else {
            return;
        };
        if !(SHORTEST..=LONGEST).contains(&prefix.json.len()) {
            return;
        }
        prefix.messages.truncate(count + 1);
        let new = request.messages.get(prefix.messages.len()..=count);
        let new = new.unwrap_or_default().iter();
        prefix.messages.extend(new.map(Arc::downgrade));
        // What was dropped may have been much longer.
        prefix.json.shrink_to(prefix.json.len() * 5 / 4);
        let (size, mut dropped) = (prefix.size(), HashMap::new());
        let mut kept = self.0.lock();
        if kept.bytes + size > GENERATION {
            kept.bytes = 0;
            let young = mem::take(&mut kept.young);
            dropped = mem::replace(&mut kept.old, young);
        }
        kept.bytes += size;
        if let Some(replaced) = kept.young.insert(key(first, call), prefix) {
            kept.bytes -= replaced.size();
        }
        kept.puts += 1;
        if kept.puts.is_multiple_of(SWEEP) {
            kept.young.retain(|_, prefix| prefix.is_live());
            kept.old.retain(|_, prefix| prefix.is_live());
            kept.bytes = kept.young.values().map(Prefix::size).sum();
        }
        drop(kept);
        drop(dropped);
    }
}

impl<M> Prefix<M> {
    /// Number of messages before the last cut. They need not be serialized again.
    pub(super) fn complete_messages(&self) -> usize {
        self.cuts.last().map_or(0, |cut| cut.messages)
    }

    /// Appends the JSON of a message.
    pub(super) fn push(&mut self, message: &impl Serialize) -> serde_json::Result<()> {
        serde_json::to_writer(&mut self.json, message)?;
        self.json.push(b',');
        Ok(())
    }

    /// Adds a cut at the end of the JSON, which now holds so many messages.
    pub(super) fn cut(&mut self, messages: usize, data: M) {
        let bytes = self.json.len();
        self.cuts.push(Cut {
            messages,
            bytes,
            data,
        });
    }

    /// Drops the JSON after the last cut.
    fn truncate_to_last_cut(&mut self) {
        let bytes = self.cuts.last().map_or(0, |cut| cut.bytes);
        self.json.truncate(bytes);
    }

    fn size(&self) -> usize {
        let (cuts, messages) = (self.cuts.len(), self.messages.len());
        self.json.capacity() + cuts * size_of::<Cut<M>>() + messages * MESSAGE
    }

    fn is_live(&self) -> bool {
        let first = self.messages.first();
        first.is_some_and(|first| first.strong_count() > 0)
    }
}

fn key(first: &Arc<Message>, call: &Outgoing<'_>) -> Key {
    let model = Arc::clone(&call.request.model);
    (Arc::as_ptr(first).addr(), model, call.forms)
}

#[cfg(test)]
mod tests;
