//! All keys: creation, revocation and validity. Pure.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Key, KeyHash, KeyId, KeyName};
use crate::model::{Principal, ProfileName, TenantId, Timestamp, access::Role, words};

pub(super) const VERSION: u32 = 1;
/// Most keys in a file, which is read as a whole after each change.
const MAX_KEYS: usize = 10_000;

/// A key as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredKey {
    /// Public identifier.
    pub id: KeyId,
    /// Name given by the operator.
    pub name: KeyName,
    /// The tenant whose sessions it gives access to.
    pub tenant: TenantId,
    /// Permissions.
    pub role: Role,
    /// The profiles that it may use; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<ProfileName>,
    /// Hash of the whole key.
    pub sha256: KeyHash,
    /// Creation time.
    pub created: Timestamp,
    /// The first moment at which the key is no longer valid.
    pub expires: Option<Timestamp>,
    /// Time of its revocation.
    pub revoked: Option<Timestamp>,
}

words! {
    /// Validity of a key.
    pub enum KeyState {
        /// The key is accepted.
        Valid = "valid",
        /// Its expiry time has passed.
        Expired = "expired",
        /// It was revoked.
        Revoked = "revoked",
    }
}

impl StoredKey {
    /// Validity at the time `now`.
    pub fn state(&self, now: Timestamp) -> KeyState {
        if self.revoked.is_some() {
            KeyState::Revoked
        } else if self.expires.is_some_and(|expires| expires <= now) {
            KeyState::Expired
        } else {
            KeyState::Valid
        }
    }

    pub(super) fn principal(&self) -> Principal {
        Principal {
            name: Arc::from(self.name.as_str()),
            tenant: self.tenant.clone(),
            role: self.role,
            profiles: self.profiles.as_slice().into(),
        }
    }
}

/// Properties of a key to create.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Name, unique among valid keys.
    pub name: KeyName,
    /// The tenant whose sessions it gives access to.
    pub tenant: TenantId,
    /// Permissions.
    pub role: Role,
    /// The profiles that it may use; all if empty.
    pub profiles: Vec<ProfileName>,
    /// The first moment at which the key is no longer valid.
    pub expires: Option<Timestamp>,
}

/// A change of the keys was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeySetError {
    /// A valid key has this name.
    #[error("a key named `{name}` already exists: revoke it first, or choose another name")]
    Taken {
        /// The name.
        name: KeyName,
    },
    /// The random id of the new key is in use, which is very unlikely.
    #[error("the id of the new key is already in use: try again")]
    SameId,
    /// The number of valid keys is at its limit.
    #[error("the limit of {MAX_KEYS} valid keys is reached: revoke one first")]
    Full,
    /// No key has this name or id.
    #[error("unknown key `{0}`; run `oracle keys list` for a list")]
    Unknown(String),
    /// The key was revoked before.
    #[error("key `{name}` was already revoked at {at}")]
    Revoked {
        /// Name of the key.
        name: KeyName,
        /// Time of its revocation.
        at: Timestamp,
    },
}

/// All keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeySet {
    version: u32,
    keys: Vec<StoredKey>,
}

impl Default for KeySet {
    fn default() -> Self {
        Self {
            version: VERSION,
            keys: Vec::new(),
        }
    }
}

impl KeySet {
    /// The keys, in the order of their creation.
    pub fn keys(&self) -> &[StoredKey] {
        &self.keys
    }

    /// Whether there are no keys; revoked and expired keys count.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Adds a key. At the limit, a key that is no longer valid makes room for it.
    ///
    /// # Errors
    /// When a valid key has this name, the id is in use, or the number of valid keys is at its
    /// limit.
    pub fn add(
        &mut self,
        key: &Key,
        new: NewKey,
        now: Timestamp,
    ) -> Result<StoredKey, KeySetError> {
        let is_valid = |entry: &StoredKey| entry.state(now) == KeyState::Valid;
        let has_name = |entry: &StoredKey| entry.name == new.name && is_valid(entry);
        if self.keys.iter().any(has_name) {
            return Err(KeySetError::Taken { name: new.name });
        }
        if self.keys.iter().any(|entry| entry.id == *key.id()) {
            return Err(KeySetError::SameId);
        }
        if self.keys.len() >= MAX_KEYS {
            let spent = self.keys.iter().position(|entry| !is_valid(entry));
            self.keys.remove(spent.ok_or(KeySetError::Full)?);
        }
        let entry = StoredKey {
            id: key.id().clone(),
            name: new.name,
            tenant: new.tenant,
            role: new.role,
            profiles: new.profiles,
            sha256: key.hash(),
            created: now,
            expires: new.expires,
            revoked: None,
        };
        self.keys.push(entry.clone());
        Ok(entry)
    }

    /// Revokes a key by its id or name; of several keys with one name, the newest.
    ///
    /// # Errors
    /// When there is no such key, or it was revoked before.
    pub fn revoke(&mut self, which: &str, now: Timestamp) -> Result<StoredKey, KeySetError> {
        let by_id = self.keys.iter().position(|key| key.id.as_str() == which);
        let by_name = || self.keys.iter().rposition(|key| key.name.as_str() == which);
        let found = by_id.or_else(by_name).and_then(|at| self.keys.get_mut(at));
        let entry = found.ok_or_else(|| KeySetError::Unknown(which.to_owned()))?;
        if let Some(at) = entry.revoked {
            let name = entry.name.clone();
            return Err(KeySetError::Revoked { name, at });
        }
        entry.revoked = Some(now);
        Ok(entry.clone())
    }

    /// A fault that deserialization cannot find: two keys with one id.
    pub(super) fn find_inconsistency(&self) -> Option<String> {
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
            profiles: Vec::new(),
            expires: None,
        }
    }

    #[test]
    fn key_is_valid_until_it_expires_or_is_revoked() {
        let mut key_set = KeySet::default();
        let key = Key::generate().unwrap();
        let expires = Some(at(100));
        let new_key = NewKey {
            expires,
            ..new("a")
        };
        let entry = key_set.add(&key, new_key, at(0)).unwrap();
        for (time, state) in [
            (0, KeyState::Valid),
            (99, KeyState::Valid),
            (100, KeyState::Expired),
        ] {
            assert_eq!(entry.state(at(time)), state, "{time}");
        }
        assert_eq!(
            key_set.revoke("a", at(5)).unwrap().state(at(5)),
            KeyState::Revoked
        );
        assert!(matches!(
            key_set.revoke("a", at(6)),
            Err(KeySetError::Revoked { at: time, .. }) if time == at(5)
        ));
    }

    #[test]
    fn key_without_profiles_is_stored_and_read_as_before_and_may_use_all() {
        let mut key_set = KeySet::default();
        let key = Key::generate().unwrap();
        key_set.add(&key, new("a"), at(0)).unwrap();
        let stored = serde_json::to_value(&key_set).unwrap();
        assert!(stored["keys"][0].get("profiles").is_none(), "{stored}");
        let read: KeySet = serde_json::from_value(stored).unwrap();
        let free = read.keys()[0].principal();
        assert!(free.may_use(&ProfileName::oracle()));
        let bound = StoredKey {
            profiles: vec![ProfileName::new("reviewer").unwrap()],
            ..read.keys()[0].clone()
        };
        assert!(!bound.principal().may_use(&ProfileName::oracle()));
        assert!(bound.principal().may_use(&bound.profiles[0]));
    }

    #[test]
    fn name_can_be_reused_after_revocation() {
        let mut key_set = KeySet::default();
        let generate = || Key::generate().unwrap();
        let (first, second) = (generate(), generate());
        key_set.add(&first, new("a"), at(0)).unwrap();
        let again = key_set.add(&first, new("b"), at(0));
        assert_eq!(again.unwrap_err(), KeySetError::SameId);
        assert!(matches!(
            key_set.add(&second, new("a"), at(1)),
            Err(KeySetError::Taken { .. })
        ));
        key_set.revoke(first.id().as_str(), at(2)).unwrap();
        key_set.add(&second, new("a"), at(3)).unwrap();
        let revoked = key_set.revoke("a", at(4)).unwrap();
        assert_eq!(revoked.id, *second.id(), "the one made last");
        assert_eq!(
            key_set.revoke("nobody", at(5)).unwrap_err(),
            KeySetError::Unknown("nobody".into())
        );
    }

    #[test]
    fn full_book_replaces_a_revoked_key() {
        let mut key_set = KeySet::default();
        let key = Key::generate().unwrap();
        let entry = key_set.add(&key, new("first"), at(0)).unwrap();
        let others = (1..MAX_KEYS).map(|number| StoredKey {
            id: Key::generate().unwrap().id().clone(),
            name: format!("n{number}").parse().unwrap(),
            ..entry.clone()
        });
        key_set.keys.extend(others);
        let another = Key::generate().unwrap();
        let full = key_set.add(&another, new("late"), at(1));
        assert_eq!(full.unwrap_err(), KeySetError::Full);
        key_set.revoke("n7", at(2)).unwrap();
        key_set.add(&another, new("late"), at(3)).unwrap();
        assert_eq!(key_set.keys().len(), MAX_KEYS);
        assert!(key_set.keys().iter().all(|key| key.name.as_str() != "n7"));
    }
}
