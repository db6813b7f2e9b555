//! Connections by address.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::access::place_of;

#[derive(Debug)]
pub(super) struct Crowd {
    most: usize,
    places: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// A counted connection.
#[derive(Debug)]
pub(super) struct One {
    place: IpAddr,
    places: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Crowd {
    pub(super) fn new(most: usize) -> Self {
        let places = Arc::default();
        Self { most, places }
    }

    /// One more from there. Loopback is not counted: proxies are there.
    pub(super) fn enter(&self, from: IpAddr) -> Result<Option<One>, TooMany> {
        let place = place_of(from);
        if from.to_canonical().is_loopback() {
            return Ok(None);
        }
        let mut places = lock(&self.places);
        let count = places.entry(place).or_default();
        if *count >= self.most {
            return Err(TooMany);
        }
        *count += 1;
        let places = Arc::clone(&self.places);
        Ok(Some(One { place, places }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

impl Drop for One {
    fn drop(&mut self) {
        let mut places = lock(&self.places);
        if let Some(count) = places.get_mut(&self.place) {
            *count -= 1;
            if *count == 0 {
                places.remove(&self.place);
            }
        }
    }
}

fn lock(places: &Mutex<HashMap<IpAddr, usize>>) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_and_others_have_theirs() {
        let crowd = Crowd::new(2);
        let enter = |from: &str| crowd.enter(from.parse().unwrap());
        let all: Vec<_> = [
            "192.0.2.1",
            "192.0.2.1",
            "192.0.2.2",
            "2001:db8::1",
            "2001:db8::2",
        ]
        .map(|from| enter(from).unwrap())
        .into();
        for full in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::3"] {
            assert_eq!(enter(full).err(), Some(TooMany), "{full}");
        }
        for free in ["192.0.2.2", "2001:db8:0:1::1"] {
            assert!(enter(free).is_ok(), "{free}");
        }
        for own in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let many: Vec<_> = (0..9).map(|_| enter(own)).collect();
            assert!(many.iter().all(Result::is_ok), "{own}");
        }
        drop(all);
        assert!(lock(&crowd.places).is_empty(), "nothing is left of them");
        assert!(enter("192.0.2.1").is_ok());
    }
}
