//! A queue that is fair: round robin over tenants, within a tenant over sessions, in order within a
//! session. Pure; its owner bounds it.
//!
//! **Invariant:** a tenant stands in the round exactly if it has an entry, and a session likewise. An
//! entry may have become empty, because its calls gave up; it goes when its turn comes, or when there
//! are more empty ones than others.

use std::collections::{HashMap, VecDeque};

use crate::model::{Sid, TenantId};

/// Sessions without anything waiting that may stand in the rounds whatever else does.
const SPARE: usize = 64;

#[derive(Debug)]
pub(super) struct FairQueue<T> {
    tenants: HashMap<TenantId, Tenant>,
    round: VecDeque<TenantId>,
    items: HashMap<u64, Item<T>>,
    /// Entries of sessions.
    sessions: usize,
}

#[derive(Debug, Default)]
struct Tenant {
    sessions: HashMap<Sid, VecDeque<u64>>,
    round: VecDeque<Sid>,
}

#[derive(Debug)]
struct Item<T> {
    tenant: TenantId,
    sid: Sid,
    value: T,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            tenants: HashMap::new(),
            round: VecDeque::new(),
            items: HashMap::new(),
            sessions: 0,
        }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Enqueues a value under a unique number.
    pub(super) fn push(&mut self, tenant: &TenantId, sid: Sid, id: u64, value: T) {
        if !self.tenants.contains_key(tenant) {
            self.round.push_back(tenant.clone());
        }
        let of_tenant = self.tenants.entry(tenant.clone()).or_default();
        if !of_tenant.sessions.contains_key(&sid) {
            of_tenant.round.push_back(sid);
            self.sessions += 1;
        }
        of_tenant.sessions.entry(sid).or_default().push_back(id);
        let tenant = tenant.clone();
        self.items.insert(id, Item { tenant, sid, value });
    }

    /// The one whose turn it is.
    pub(super) fn front(&mut self) -> Option<&T> {
        loop {
            let tenant = self.tenants.get_mut(self.round.front()?);
            let (id, dropped) = tenant.map_or((None, 0), Tenant::front);
            self.sessions -= dropped;
            match id {
                Some(id) => return self.items.get(&id).map(|item| &item.value),
                None => {
                    if let Some(empty) = self.round.pop_front() {
                        self.tenants.remove(&empty);
                    }
                }
            }
        }
    }

    /// Takes the one whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        self.front()?;
        let name = self.round.pop_front()?;
        let tenant = self.tenants.get_mut(&name)?;
        let (id, dropped) = tenant.pop();
        self.sessions -= dropped;
        if tenant.round.is_empty() {
            self.tenants.remove(&name);
        } else {
            self.round.push_back(name);
        }
        self.items.remove(&id?).map(|item| item.value)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<T> {
        let Item { tenant, sid, value } = self.items.remove(&id)?;
        let of_tenant = self.tenants.get_mut(&tenant);
        if let Some(ids) = of_tenant.and_then(|tenant| tenant.sessions.get_mut(&sid)) {
            // A session has one call, as a rule.
            ids.retain(|waiting| *waiting != id);
        }
        if self.sessions > 2 * self.items.len() + SPARE {
            self.drop_empty();
        }
        Some(value)
    }

    /// Removes those of which this holds, in the order of their arrival.
    pub(super) fn take_if(&mut self, gives_up: impl Fn(&T) -> bool) -> Vec<T> {
        let items = self.items.iter();
        let mut ids: Vec<u64> = items
            .filter(|(_, item)| gives_up(&item.value))
            .map(|(id, _)| *id)
            .collect();
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut T> {
        self.items.get_mut(&id).map(|item| &mut item.value)
    }

    fn drop_empty(&mut self) {
        for tenant in self.tenants.values_mut() {
            tenant.sessions.retain(|_, ids| !ids.is_empty());
            let Tenant { sessions, round } = tenant;
            round.retain(|sid| sessions.contains_key(sid));
        }
        self.tenants.retain(|_, tenant| !tenant.round.is_empty());
        let tenants = &self.tenants;
        self.round.retain(|name| tenants.contains_key(name));
        self.sessions = tenants.values().map(|tenant| tenant.round.len()).sum();
    }
}

impl Tenant {
    /// The one whose turn it is, and how many empty sessions stood before it.
    fn front(&mut self) -> (Option<u64>, usize) {
        let mut dropped = 0;
        while let Some(sid) = self.round.front().copied() {
            if let Some(id) = self.sessions.get(&sid).and_then(VecDeque::front) {
                return (Some(*id), dropped);
            }
            self.round.pop_front();
            self.sessions.remove(&sid);
            dropped += 1;
        }
        (None, dropped)
    }

    /// Takes it after [`Self::front`]; also returns how many sessions have nothing left.
    fn pop(&mut self) -> (Option<u64>, usize) {
        let Some(sid) = self.round.pop_front() else {
            return (None, 0);
        };
        let Some(ids) = self.sessions.get_mut(&sid) else {
            return (None, 0);
        };
        let id = ids.pop_front();
        if ids.is_empty() {
            self.sessions.remove(&sid);
            return (id, 1);
        }
        self.round.push_back(sid);
        (id, 0)
    }
}

#[cfg(test)]
mod tests;
