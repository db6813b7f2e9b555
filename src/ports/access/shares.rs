//! Fair shares of a capacity: concurrent requests, or memory for their bodies.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::model::{Principal, TenantId};

/// Multiple of the free capacity that a tenant may hold: nine tenths of it all, if it is alone.
/// Something is always left for others.
pub const TENANT_SHARE: usize = 9;
/// Multiple of the free capacity that a key may hold, so that a tenant's other keys find some too.
const KEY_SHARE: usize = 4;

/// A capacity that all tenants share.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    total: usize,
    /// By tenant, and by the name of a key of it.
    by: HashMap<(TenantId, Option<Arc<str>>), usize>,
}

/// Why nothing of a capacity is left for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoShare {
    /// All of it is in use.
    Full,
    /// The caller's key or tenant holds its share.
    Held,
}

impl Shares {
    /// A capacity of which nothing is in use.
    pub fn new(most: usize) -> Arc<Self> {
        let held = Mutex::default();
        Arc::new(Self { most, held })
    }

    /// How much is in use.
    pub fn in_use(&self) -> usize {
        self.held.lock().total
    }

    /// Takes one unit, which is in use until the guard is dropped.
    ///
    /// # Errors
    /// When nothing is left for the caller.
    pub fn take(self: &Arc<Self>, caller: &Principal) -> Result<Share, NoShare> {
        let mut share = self.share(caller);
        share.grow(1)?;
        Ok(share)
    }

    /// A share of nothing, which can grow.
    pub fn share(self: &Arc<Self>, caller: &Principal) -> Share {
        let key = Some(Arc::clone(&caller.name));
        Share {
            shares: Arc::clone(self),
            holders: [(caller.tenant.clone(), None), (caller.tenant.clone(), key)],
            units: 0,
        }
    }
}

/// Units of a capacity, in use until this is dropped.
#[derive(Debug)]
#[must_use = "it is in use until it is dropped"]
pub struct Share {
    shares: Arc<Shares>,
    holders: [(TenantId, Option<Arc<str>>); 2],
    units: usize,
}

impl Share {
    /// Takes more units; all or none.
    ///
    /// # Errors
    /// When less is left for the caller.
    pub fn grow(&mut self, units: usize) -> Result<(), NoShare> {
        let Some(others) = units.checked_sub(1) else {
            return Ok(());
        };
        let mut held = self.shares.held.lock();
        // What is free before the last unit.
        let free = self.shares.most.saturating_sub(held.total + others);
        if free == 0 {
            return Err(NoShare::Full);
        }
        for (holder, times) in self.holders.iter().zip([TENANT_SHARE, KEY_SHARE]) {
            let theirs = held.by.get(holder).copied().unwrap_or_default() + others;
            if theirs >= times.saturating_mul(free) {
                return Err(NoShare::Held);
            }
        }
        held.total += units;
        for holder in &self.holders {
            *held.by.entry(holder.clone()).or_default() += units;
        }
        self.units += units;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.shares.held.lock();
        held.total -= self.units;
        for holder in &self.holders {
            if let Some(count) = held.by.get_mut(holder) {
                *count -= self.units;
                if *count == 0 {
                    held.by.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(tenant: &str, name: &str) -> Principal {
        Principal {
            name: name.into(),
            tenant: TenantId::new(tenant).unwrap(),
            ..Principal::local()
        }
    }

    #[test]
    fn share_grows_as_by_single_units() {
        let at_once = |units: usize| {
            let shares = Shares::new(100);
            let mut share = shares.share(&caller("a", "1"));
            let grown = share.grow(units);
            assert_eq!(shares.in_use(), if grown.is_ok() { units } else { 0 });
            drop(share);
            assert_eq!(shares.in_use(), 0);
            grown
        };
        for (units, grown) in [
            (0, Ok(())),
            (80, Ok(())),
            (81, Err(NoShare::Held)),
            (100, Err(NoShare::Held)),
            (101, Err(NoShare::Full)),
        ] {
            assert_eq!(at_once(units), grown, "{units}");
        }
    }

    #[test]
    fn each_tenant_and_key_leaves_something_for_the_others() {
        let shares = Shares::new(100);
        let take_all = |caller: &Principal| {
            let taken: Vec<_> = std::iter::from_fn(|| shares.take(caller).ok()).collect();
            (taken.len(), taken)
        };
        let (of_first, first) = take_all(&caller("a", "1"));
        let (of_second, _second) = take_all(&caller("a", "2"));
        let (of_other, other) = take_all(&caller("b", "1"));
        assert_eq!([of_first, of_second, of_other], [80, 10, 8]);
        assert_eq!(shares.take(&caller("a", "3")).err(), Some(NoShare::Held));
        drop(other);
        drop(first);
        assert_eq!(shares.in_use(), 10);
        let (of_third, _third) = take_all(&caller("a", "3"));
        assert_eq!(of_third, 72);
        let rest: Vec<_> = (0..18)
            .map(|number| shares.take(&caller(&format!("t{number}"), "1")).unwrap())
            .collect();
        assert_eq!(shares.take(&caller("c", "1")).err(), Some(NoShare::Full));
        drop(rest);
    }
}
