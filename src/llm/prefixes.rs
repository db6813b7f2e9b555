//! A cache of the JSON of long conversations, so that a turn serializes only what is new.
//!
//! A conversation is known by the addresses of its messages, which do not change once they are
//! shared. Where it differs from what is kept, it is serialized again from there.

use std::{
    collections::HashMap,
    mem, ptr,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use serde::Serialize;

use super::Request;
use crate::model::Message;

/// Most bytes of a generation. There are two.
const GENERATION: usize = 32 << 20;

/// Shorter JSON costs less than the rest of a turn.
const SHORTEST: usize = 4 << 10;

/// Longer JSON would displace too many others.
const LONGEST: usize = GENERATION / 4;

/// `M` is what a dialect has to remember at each [`Cut`].
#[derive(Debug)]
pub(super) struct Prefixes<M>(Mutex<Generations<M>>);

/// Prefixes by the address of the conversation's first message. Those in use are in the young
/// generation. When it is full, it replaces the old one.
#[derive(Debug)]
struct Generations<M> {
    young: HashMap<usize, Prefix<M>>,
    old: HashMap<usize, Prefix<M>>,
    /// Of the young generation.
    bytes: usize,
}

/// The JSON of a conversation's first messages.
#[derive(Debug)]
pub(super) struct Prefix<M> {
    model: Arc<str>,
    /// Up to the first one after the last cut. Weak references keep the addresses from being
    /// reused, but not the texts.
    messages: Vec<Weak<Message>>,
    /// Each message with a comma after it.
    pub(super) json: Vec<u8>,
    pub(super) cuts: Vec<Cut<M>>,
}

/// Where the JSON can be continued, as long as the next message stays the same.
#[derive(Debug)]
pub(super) struct Cut<M> {
    messages: usize,
    bytes: usize,
    pub(super) mark: M,
}

impl<M> Default for Prefixes<M> {
    fn default() -> Self {
        Self(Mutex::new(Generations {
            young: HashMap::new(),
            old: HashMap::new(),
            bytes: 0,
        }))
    }
}

impl<M> Prefixes<M> {
    /// Takes the longest prefix that still holds, so that it can be continued; it may be empty.
    pub(super) fn take(&self, request: &Request) -> Prefix<M> {
        let kept = request.messages.first().and_then(|first| {
            let mut kept = self.0.lock();
            let Generations { young, old, bytes } = &mut *kept;
            let found = young.remove(&key(first));
            *bytes -= found.as_ref().map_or(0, Prefix::size);
            found.or_else(|| old.remove(&key(first)))
        });
        let kept = kept.filter(|prefix| prefix.model == request.model);
        let mut prefix = kept.unwrap_or_else(|| Prefix {
            model: Arc::clone(&request.model),
            messages: Vec::new(),
            json: Vec::new(),
            cuts: Vec::new(),
        });
        let pairs = prefix.messages.iter().zip(request.messages.iter());
        let same = pairs.take_while(|(kept, now)| ptr::eq(kept.as_ptr(), Arc::as_ptr(now)));
        let same = same.count();
        let holding = prefix.cuts.partition_point(|cut| cut.messages < same);
        prefix.cuts.truncate(holding);
        prefix.messages.truncate(same);
        prefix.end();
        prefix
    }

    /// Keeps the prefix up to its last cut, for the next request of the conversation.
    pub(super) fn put(&self, mut prefix: Prefix<M>, request: &Request) {
        let count = prefix.messages();
        prefix.end();
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
        let mut kept = self.0.lock();
        kept.bytes += prefix.size();
        if let Some(replaced) = kept.young.insert(key(first), prefix) {
            kept.bytes -= replaced.size();
        }
        if kept.bytes > GENERATION {
            kept.bytes = 0;
            let young = mem::take(&mut kept.young);
            let dropped = mem::replace(&mut kept.old, young);
            drop(kept);
            drop(dropped);
        }
    }
}

impl<M> Prefix<M> {
    /// Number of messages that need not be serialized.
    pub(super) fn messages(&self) -> usize {
        self.cuts.last().map_or(0, |cut| cut.messages)
    }

    /// Appends the JSON of a message.
    pub(super) fn push(&mut self, message: &impl Serialize) -> serde_json::Result<()> {
        serde_json::to_writer(&mut self.json, message)?;
        self.json.push(b',');
        Ok(())
    }

    /// The JSON has so many of the messages, and none that follows changes it.
    pub(super) fn cut(&mut self, messages: usize, mark: M) {
        let bytes = self.json.len();
        self.cuts.push(Cut {
            messages,
            bytes,
            mark,
        });
    }

    /// Drops the JSON after the last cut.
    fn end(&mut self) {
        let bytes = self.cuts.last().map_or(0, |cut| cut.bytes);
        self.json.truncate(bytes);
    }

    fn size(&self) -> usize {
        self.json.capacity()
    }
}

fn key(first: &Arc<Message>) -> usize {
    Arc::as_ptr(first).addr()
}

#[cfg(test)]
mod tests;
