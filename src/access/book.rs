//! All keys, as they are kept: made, revoked, known again. Pure.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Hash, Key, KeyId, KeyName};
use crate::model::{Principal, TenantId, Timestamp, access::Role};

/// The layout that this program writes.
pub(super) const VERSION: u32 = 1;
/// So many keys and no more: each look at the file reads them all.
const MOST: usize = 10_000;

/// A key, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// By what it is spoken of.
    pub id: KeyId,
    /// What it is called.
    pub name: KeyName,
    /// Whose sessions it opens.
    pub tenant: TenantId,
    /// What it may do.
    pub role: Role,
    /// Of the whole key.
    pub sha256: Hash,
    /// When it was made.
    pub created: Timestamp,
    /// From when on it opens nothing.
    pub expires: Option<Timestamp>,
    /// Since when it opens nothing.
    pub revoked: Option<Timestamp>,
}

/// Whether a key opens anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does.
    Valid,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

impl State {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl Entry {
    /// Whether it opens anything at this time.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> State {
        if self.revoked.is_some() {
            State::Revoked
        } else if self.expires.is_some_and(|expires| expires <= now) {
            State::Expired
        } else {
            State::Valid
        }
    }

    /// Who holds it.
    pub(super) fn principal(&self) -> Principal {
        Principal {
            name: Arc::from(self.name.as_str()),
            tenant: self.tenant.clone(),
            role: self.role,
        }
    }
}

/// What a new key is to be.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// What it is called.
    pub name: KeyName,
    /// Whose sessions it opens.
    pub tenant: TenantId,
    /// What it may do.
    pub role: Role,
    /// From when on it opens nothing.
    pub expires: Option<Timestamp>,
}

/// Why the keys stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// Another one is called that.
    #[error("there is a key `{name}` already: revoke it first, or choose another name")]
    Taken {
        /// The name.
        name: KeyName,
    },
    /// The new one has the id of another one, which happens to one in millions.
    #[error("the new key has the id of another one by chance: try again")]
    SameId,
    /// There are too many.
    #[error("there are {MOST} keys that hold, and no more are kept: revoke one first")]
    Full,
    /// There is none of this name or id.
    #[error("there is no key `{0}`: `oracle keys list` shows which there are")]
    Unknown(String),
    /// It was taken back before.
    #[error("the key `{name}` was revoked at {at}")]
    Revoked {
        /// Its name.
        name: KeyName,
        /// When.
        at: Timestamp,
    },
}

/// All keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Book {
    version: u32,
    keys: Vec<Entry>,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            version: VERSION,
            keys: Vec::new(),
        }
    }
}

impl Book {
    /// The keys, in the order in which they were made.
    #[must_use]
    pub fn keys(&self) -> &[Entry] {
        &self.keys
    }

    /// Whether there never was a key.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Keeps a new key.
    ///
    /// # Errors
    /// When a key of this name opens something, or there are too many.
    pub fn add(&mut self, key: &Key, new: NewKey, now: Timestamp) -> Result<Entry, BookError> {
        let NewKey {
            name,
            tenant,
            role,
            expires,
        } = new;
        let taken = |entry: &Entry| entry.name == name && entry.state(now) == State::Valid;
        if self.keys.iter().any(taken) {
            return Err(BookError::Taken { name });
        }
        if self.has(key.id()) {
            return Err(BookError::SameId);
        }
        if self.keys.len() >= MOST {
            // One that opens nothing is like one that never was.
            let spent = self
                .keys
                .iter()
                .position(|key| key.state(now) != State::Valid);
            self.keys.remove(spent.ok_or(BookError::Full)?);
        }
        let entry = Entry {
            id: key.id().clone(),
            name,
            tenant,
            role,
            sha256: key.hash(),
            created: now,
            expires,
            revoked: None,
        };
        self.keys.push(entry.clone());
        Ok(entry)
    }

    /// Whether a key has this id.
    fn has(&self, id: &KeyId) -> bool {
        self.keys.iter().any(|entry| entry.id == *id)
    }

    /// Takes back a key by its id or its name; of several of one name the one that was made last.
    ///
    /// # Errors
    /// When there is no such key, or it was taken back before.
    pub fn revoke(&mut self, which: &str, now: Timestamp) -> Result<Entry, BookError> {
        let by_id = self.keys.iter().position(|key| key.id.as_str() == which);
        let by_name = || self.keys.iter().rposition(|key| key.name.as_str() == which);
        let found = by_id.or_else(by_name).and_then(|at| self.keys.get_mut(at));
        let entry = found.ok_or_else(|| BookError::Unknown(which.to_owned()))?;
        if let Some(at) = entry.revoked {
            let name = entry.name.clone();
            return Err(BookError::Revoked { name, at });
        }
        entry.revoked = Some(now);
        Ok(entry.clone())
    }

    /// What cannot be, though it can be read: two keys of one id.
    pub(super) fn flaw(&self) -> Option<String> {
        let mut ids: Vec<&KeyId> = self.keys.iter().map(|entry| &entry.id).collect();
        ids.sort_unstable();
        let twice = ids.windows(2).find(|pair| pair[0] == pair[1])?;
        Some(format!("two keys have the id {}", twice[0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn new(name: &str) -> NewKey {
        NewKey {
            name: name.parse().unwrap(),
            tenant: TenantId::local(),
            role: Role::User,
            expires: None,
        }
    }

    #[test]
    fn a_key_opens_something_until_it_expires_or_is_revoked() {
        let mut book = Book::default();
        let key = Key::draw().unwrap();
        let expires = Some(at(100));
        let new_key = NewKey {
            expires,
            ..new("a")
        };
        let entry = book.add(&key, new_key, at(0)).unwrap();
        for (time, state) in [(0, State::Valid), (99, State::Valid), (100, State::Expired)] {
            assert_eq!(entry.state(at(time)), state, "{time}");
        }
        assert_eq!(
            book.revoke("a", at(5)).unwrap().state(at(5)),
            State::Revoked
        );
        assert!(matches!(
            book.revoke("a", at(6)),
            Err(BookError::Revoked { at: time, .. }) if time == at(5)
        ));
    }

    #[test]
    fn a_name_is_free_again_when_its_key_opens_nothing() {
        let mut book = Book::default();
        let draw = || Key::draw().unwrap();
        let (first, second) = (draw(), draw());
        book.add(&first, new("a"), at(0)).unwrap();
        let again = book.add(&first, new("b"), at(0));
        assert_eq!(again.unwrap_err(), BookError::SameId);
        assert!(matches!(
            book.add(&second, new("a"), at(1)),
            Err(BookError::Taken { .. })
        ));
        book.revoke(first.id().as_str(), at(2)).unwrap();
        book.add(&second, new("a"), at(3)).unwrap();
        let revoked = book.revoke("a", at(4)).unwrap();
        assert_eq!(revoked.id, *second.id(), "the one made last");
        assert_eq!(
            book.revoke("nobody", at(5)).unwrap_err(),
            BookError::Unknown("nobody".into())
        );
    }

    #[test]
    fn a_key_that_opens_nothing_makes_room_for_a_new_one() {
        let mut book = Book::default();
        let key = Key::draw().unwrap();
        let entry = book.add(&key, new("first"), at(0)).unwrap();
        let others = (1..MOST).map(|number| Entry {
            id: Key::draw().unwrap().id().clone(),
            name: format!("n{number}").parse().unwrap(),
            ..entry.clone()
        });
        book.keys.extend(others);
        let another = Key::draw().unwrap();
        let full = book.add(&another, new("late"), at(1));
        assert_eq!(full.unwrap_err(), BookError::Full);
        book.revoke("n7", at(2)).unwrap();
        book.add(&another, new("late"), at(3)).unwrap();
        assert_eq!(book.keys().len(), MOST);
        assert!(book.keys().iter().all(|key| key.name.as_str() != "n7"));
    }
}
