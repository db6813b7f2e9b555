//! A fair queue: round robin over tenants, then over a tenant's sessions, first in first out within
//! a session. Pure; its owner bounds it.
//!
//! Values can be set aside: they come after all others, in order of arrival.
//!
//! **Invariant:** every tenant and session in a round has at least one value.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    hash::Hash,
};

use crate::model::{Sid, TenantId};

#[derive(Debug)]
pub(super) struct FairQueue<T> {
    items: HashMap<u64, (TenantId, Sid, T)>,
    tenants: Round<TenantId, Round<Sid, VecDeque<u64>>>,
    aside: BTreeSet<u64>,
}

#[derive(Debug)]
struct Round<K, V> {
    turns: BTreeMap<u64, K>,
    /// Values with their places in `turns`.
    values: HashMap<K, (u64, V)>,
    last: u64,
}

impl<K, V> Default for Round<K, V> {
    fn default() -> Self {
        Self {
            turns: BTreeMap::new(),
            values: HashMap::new(),
            last: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, V: Default> Round<K, V> {
    fn entry(&mut self, key: &K) -> &mut V {
        let new = || {
            self.last += 1;
            self.turns.insert(self.last, key.clone());
            (self.last, V::default())
        };
        &mut self.values.entry(key.clone()).or_insert_with(new).1
    }

    fn first(&self) -> Option<&V> {
        let (_, key) = self.turns.first_key_value()?;
        self.values.get(key).map(|(_, value)| value)
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }

    /// Moves a key to the end of the round.
    fn rotate(&mut self, key: &K) {
        if let Some((turn, _)) = self.values.get_mut(key) {
            self.turns.remove(turn);
            self.last += 1;
            *turn = self.last;
            self.turns.insert(self.last, key.clone());
        }
    }

    fn remove(&mut self, key: &K) {
        if let Some((turn, _)) = self.values.remove(key) {
            self.turns.remove(&turn);
        }
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            items: HashMap::new(),
            tenants: Round::default(),
            aside: BTreeSet::new(),
        }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing waits that has not been set aside.
    pub(super) fn is_empty(&self) -> bool {
        self.items.len() == self.aside.len()
    }

    pub(super) fn push(&mut self, id: u64, (tenant, sid): (TenantId, Sid), value: T, aside: bool) {
        match aside {
            true => self.aside.extend([id]),
            false => self.tenants.entry(&tenant).entry(&sid).push_back(id),
        }
        self.items.insert(id, (tenant, sid, value));
    }

    /// Sets aside the values that match, and no others.
    pub(super) fn set_aside(&mut self, is_aside: impl Fn(&T) -> bool) {
        self.aside.clear();
        self.tenants = Round::default();
        let items: BTreeMap<_, _> = std::mem::take(&mut self.items).into_iter().collect();
        for (id, (tenant, sid, value)) in items {
            let is_aside = is_aside(&value);
            self.push(id, (tenant, sid), value, is_aside);
        }
    }

    fn first(&self) -> Option<u64> {
        let sessions = self.tenants.first();
        let first = sessions.and_then(|sessions| sessions.first()?.front());
        first.or_else(|| self.aside.first()).copied()
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.items.get(&self.first()?).map(|(_, _, value)| value)
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let id = self.first()?;
        let (tenant, sid, _) = self.items.get(&id)?;
        let (tenant, sid) = (tenant.clone(), *sid);
        let value = self.remove(id);
        if let Some(sessions) = self.tenants.get_mut(&tenant) {
            sessions.rotate(&sid);
        }
        self.tenants.rotate(&tenant);
        value
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<T> {
        let (tenant, sid, value) = self.items.remove(&id)?;
        if self.aside.remove(&id) {
            return Some(value);
        }
        let sessions = self.tenants.entry(&tenant);
        let ids = sessions.entry(&sid);
        // Linear, because a session rarely has more than one call.
        ids.retain(|waiting| *waiting != id);
        if ids.is_empty() {
            sessions.remove(&sid);
        }
        if sessions.values.is_empty() {
            self.tenants.remove(&tenant);
        }
        Some(value)
    }

    /// Removes the values that match, in order of arrival.
    pub(super) fn take_if(&mut self, gives_up: impl Fn(&T) -> bool) -> Vec<T> {
        let items = self.items.iter();
        let matching = items.filter(|(_, (_, _, value))| gives_up(value));
        let mut ids: Vec<u64> = matching.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.items.get_mut(&id).map(|(_, _, value)| value)
    }
}

#[cfg(test)]
mod tests;
