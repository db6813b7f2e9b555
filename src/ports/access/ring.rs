//! The keys of a running server: read at start, and again when their file has changed.
//!
//! The server calls [`Keyring::refresh`] about once a second on a thread that may block.
//! [`Keyring::judge`] reads only memory.
//!
//! - A change takes effect at the next refresh: a revoked key soon stops working, and the queries
//!   that were begun with it are cancelled.
//! - Until the first key exists, every caller is admitted. From then on keys are required, even if
//!   the file disappears: removing it must not open the server.
//! - If the file becomes unreadable, or refreshes stop, a revocation may be missed. The last known
//!   keys stay valid for a short time, in which an operator can repair the file; then all requests
//!   are rejected.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use super::{FileError, Key, KeyFile, KeyHash, KeyId, KeyState, StoredKey, file::Stamp};
use crate::model::{By, Principal, TenantId, Timestamp, access::Role};

/// How long the last known keys stay valid without a successful refresh.
const GRACE: Duration = Duration::from_secs(30);

/// The verdict on a request's key, or on its absence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// No key has ever existed, so none is required.
    Open {
        /// Whether the request has the admin key, or there is none.
        is_admin: bool,
    },
    /// The key is valid.
    Known {
        /// The caller.
        principal: Principal,
        /// Identifier of the key.
        key: KeyId,
    },
    /// A key is required, and the request has none.
    MissingKey,
    /// The key is malformed, unknown, expired or revoked.
    InvalidKey,
    /// The current keys cannot be determined.
    Unavailable,
}

/// The keys of a running server.
#[derive(Debug, Default)]
pub struct Keyring {
    file: Option<KeyFile>,
    admin: Option<KeyHash>,
    known: ArcSwap<Known>,
    // Serializes refreshes, so that an older read never replaces a newer one.
    refresh_lock: Mutex<()>,
}

#[derive(Debug, Clone, Default)]
struct Known {
    stamp: Option<Stamp>,
    keys: Arc<HashMap<KeyId, StoredKey>>,
    /// Whether any key has ever been seen.
    guarded: bool,
    /// Time of the last refresh.
    refreshed_at: Duration,
    broken: Option<Duration>,
}

impl Keyring {
    /// A keyring without a file, and so without keys. Every caller is an admin.
    pub fn none() -> Self {
        Self::default()
    }

    /// The keys of this file, which does not have to exist. Without keys, there is an admin key
    /// beside it ([`KeyFile::admin_key`]).
    ///
    /// # Errors
    /// When a file cannot be read, trusted or created.
    pub fn open(file: KeyFile) -> Result<Self, FileError> {
        let mut known = Known::default();
        known.read(&file)?;
        Ok(Self {
            admin: match known.guarded {
                true => None,
                false => Some(file.admin_key()?.hash()),
            },
            file: Some(file),
            known: ArcSwap::from_pointee(known),
            refresh_lock: Mutex::default(),
        })
    }

    /// Whether requests need a key.
    pub fn is_guarded(&self) -> bool {
        self.known.load().guarded
    }

    /// Whether the keys come from a file, and so need refreshes.
    pub const fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the file again if it has changed. Blocks on the disk. `now` as for [`Self::judge`].
    pub fn refresh(&self, now: Duration) {
        let Some(file) = &self.file else { return };
        let _alone = self.refresh_lock.lock();
        let mut known = Known::clone(&self.known.load());
        known.refresh(file, now);
        self.known.store(Arc::new(known));
    }

    /// Judges the key of a request. `at` is the wall-clock time; `now` is monotonic, from any
    /// origin.
    pub fn judge(&self, presented: Option<&str>, at: Timestamp, now: Duration) -> Judgement {
        let presented = presented.map(Key::read);
        let key = presented.as_ref().and_then(Option::as_ref);
        let hash = key.map_or(KeyHash::NONE, Key::hash);
        let known = self.known.load();
        if self.is_stale(&known, now) {
            return Judgement::Unavailable;
        }
        if known.is_open() {
            let is_admin = self.admin.is_none_or(|admin| admin.is(&hash));
            return Judgement::Open { is_admin };
        }
        if presented.is_none() {
            return Judgement::MissingKey;
        }
        let entry = key.and_then(|key| known.keys.get(key.id()));
        let right = entry.map_or(KeyHash::NONE, |entry| entry.sha256).is(&hash);
        match entry {
            Some(entry) if right && entry.state(at) == KeyState::Valid => Judgement::Known {
                principal: entry.principal(),
                key: entry.id.clone(),
            },
            Some(_) | None => Judgement::InvalidKey,
        }
    }

    /// Of these callers, those whose keys are all revoked or expired. A key of the role `admin` is one
    /// for every tenant. A caller who never had a key is not among them.
    pub fn lapsed(
        &self,
        mut callers: HashSet<(TenantId, By)>,
        at: Timestamp,
    ) -> HashSet<(TenantId, By)> {
        if callers.is_empty() {
            return callers;
        }
        let known = self.known.load();
        let mut named: HashMap<&str, Vec<&StoredKey>> = HashMap::new();
        for key in known.keys.values() {
            named.entry(key.name.as_str()).or_default().push(key);
        }
        callers.retain(|(tenant, by)| {
            let keys = named.get(by.as_str()).into_iter().flatten();
            let theirs = keys.filter(|key| key.role == Role::Admin || key.tenant == *tenant);
            let states = theirs.map(|key| key.state(at) == KeyState::Valid);
            states.reduce(|one, other| one || other) == Some(false)
        });
        callers
    }

    /// Whether a caller that was admitted with this key, or without one, would be admitted again.
    pub fn is_still_valid(&self, key: Option<&KeyId>, at: Timestamp, now: Duration) -> bool {
        let known = self.known.load();
        if self.is_stale(&known, now) {
            return false;
        }
        match key {
            None => known.is_open(),
            Some(key) => {
                let entry = known.keys.get(key);
                entry.is_some_and(|entry| entry.state(at) == KeyState::Valid)
            }
        }
    }

    fn is_stale(&self, known: &Known, now: Duration) -> bool {
        let since = match known.broken {
            Some(since) => since,
            None if self.has_file() => known.refreshed_at,
            None => return false,
        };
        now.saturating_sub(since) >= GRACE
    }
}

impl Known {
    const fn is_open(&self) -> bool {
        !self.guarded && self.broken.is_none()
    }

    fn refresh(&mut self, file: &KeyFile, now: Duration) {
        self.refreshed_at = now;
        if file.stamp().is_ok_and(|stamp| stamp == self.stamp) && self.broken.is_none() {
            return;
        }
        match self.read(file) {
            Ok(()) => {
                if self.broken.take().is_some() {
                    tracing::info!("the key file is readable again");
                }
            }
            Err(error) => {
                if self.broken.is_none() {
                    tracing::error!(
                        %error,
                        "the key file is unreadable: correct it within {GRACE:?}, after which all \
                         requests are rejected"
                    );
                }
                self.broken.get_or_insert(now);
            }
        }
    }

    fn read(&mut self, file: &KeyFile) -> Result<(), FileError> {
        // Taken before the read, so that the next refresh sees a change in between.
        let stamp = file.stamp().ok().flatten();
        let key_set = file.read()?.unwrap_or_default();
        if key_set.is_empty() && self.guarded {
            tracing::warn!("no keys are left, so requests are rejected: run `oracle keys create`");
        }
        self.guarded |= !key_set.is_empty();
        let keyed = |entry: &StoredKey| (entry.id.clone(), entry.clone());
        self.keys = Arc::new(key_set.keys().iter().map(keyed).collect());
        self.stamp = stamp;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        access::{KeySetError, NewKey},
        model::{TenantId, access::Role},
    };

    #[derive(Debug, thiserror::Error)]
    #[error("refused")]
    struct Refused;

    impl From<FileError> for Refused {
        fn from(_: FileError) -> Self {
            Self
        }
    }

    impl From<KeySetError> for Refused {
        fn from(_: KeySetError) -> Self {
            Self
        }
    }

    const fn second(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn made(file: &KeyFile, name: &str) -> String {
        let key = Key::generate().unwrap();
        let new = NewKey {
            name: name.parse().unwrap(),
            tenant: TenantId::new("shop").unwrap(),
            role: Role::User,
            profiles: Vec::new(),
            expires: Some(at(1_000)),
        };
        file.change(|key_set| Ok::<_, Refused>(key_set.add(&key, new, at(0))?))
            .unwrap();
        key.reveal().to_owned()
    }

    #[test]
    fn key_is_accepted_only_while_valid() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::within(folder.path());
        let key = made(&file, "a");
        let ring = Keyring::open(file).unwrap();
        let known = Judgement::Known {
            principal: Principal {
                name: "a".into(),
                tenant: TenantId::new("shop").unwrap(),
                role: Role::User,
                profiles: Arc::default(),
            },
            key: Key::read(&key).unwrap().id().clone(),
        };
        let last = if key.ends_with('0') { "1" } else { "0" };
        let near = format!("{}{last}", &key[..key.len() - 1]);
        let stranger = Key::generate().unwrap();
        for (name, presented, time, judged) in [
            ("right", Some(key.as_str()), 999, known),
            ("expired", Some(&key), 1_000, Judgement::InvalidKey),
            ("none", None, 0, Judgement::MissingKey),
            ("nearly", Some(&near), 0, Judgement::InvalidKey),
            (
                "of nobody",
                Some(stranger.reveal()),
                0,
                Judgement::InvalidKey,
            ),
            ("no key at all", Some("sk-1"), 0, Judgement::InvalidKey),
            ("empty", Some(""), 0, Judgement::InvalidKey),
        ] {
            assert_eq!(ring.judge(presented, at(time), second(0)), judged, "{name}");
        }
    }

    #[test]
    fn key_file_changes_apply_at_the_next_refresh() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::within(folder.path());
        let ring = Keyring::open(file.clone()).unwrap();
        assert_eq!(
            ring.judge(None, at(0), second(0)),
            Judgement::Open { is_admin: false }
        );
        let key = made(&file, "a");
        assert_eq!(
            ring.judge(None, at(0), second(0)),
            Judgement::Open { is_admin: false },
            "no look is due"
        );
        ring.refresh(second(1));
        assert_eq!(ring.judge(None, at(0), second(1)), Judgement::MissingKey);
        let known = |now| matches!(ring.judge(Some(&key), at(0), now), Judgement::Known { .. });
        assert!(known(second(1)));
        let id = Key::read(&key).unwrap().id().clone();
        let opens = |key| ring.is_still_valid(key, at(0), second(2));
        assert!(opens(Some(&id)) && !opens(None));
        file.change(|key_set| Ok::<_, Refused>(key_set.revoke("a", at(0))?))
            .unwrap();
        ring.refresh(second(2));
        assert!(!known(second(2)) && !opens(Some(&id)));
        fs::remove_file(file.path()).unwrap();
        ring.refresh(second(9));
        assert_eq!(
            ring.judge(None, at(0), second(9)),
            Judgement::MissingKey,
            "it never opens again"
        );
        assert_eq!(
            ring.judge(Some(&key), at(0), second(9)),
            Judgement::InvalidKey
        );
    }

    #[test]
    fn callers_lapse_when_no_key_of_their_name_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::within(folder.path());
        let tenant = |name: &str| TenantId::new(name).unwrap();
        let add = |name: &str, of: &str, role, expires: Option<i64>| {
            let (name, tenant) = (name.parse().unwrap(), tenant(of));
            let (profiles, expires) = (Vec::new(), expires.map(at));
            let new = NewKey {
                name,
                tenant,
                role,
                profiles,
                expires,
            };
            let key = Key::generate().unwrap();
            let added = file.change(|key_set| Ok::<_, Refused>(key_set.add(&key, new, at(0))?));
            added.unwrap().id
        };
        for id in [
            add("gone", "a", Role::User, None),
            add("again", "a", Role::User, None),
            add("root", "a", Role::Admin, None),
            add("chief", "b", Role::User, None),
        ] {
            file.change(|key_set| Ok::<_, Refused>(key_set.revoke(id.as_str(), at(1))?))
                .unwrap();
        }
        add("short", "a", Role::User, Some(50));
        add("again", "a", Role::User, None);
        add("chief", "a", Role::Admin, None);
        let ring = Keyring::open(file).unwrap();
        for (name, of, seconds, is_lapsed) in [
            ("gone", "a", 3, true),
            ("gone", "b", 3, false),
            ("again", "a", 3, false),
            ("root", "a", 3, true),
            ("root", "b", 3, true),
            ("chief", "b", 3, false),
            ("short", "a", 3, false),
            ("short", "a", 50, true),
            ("local", "a", 3, false),
        ] {
            let caller = (tenant(of), By::new(name));
            let lapsed = ring.lapsed([caller.clone()].into(), at(seconds));
            assert_eq!(lapsed.contains(&caller), is_lapsed, "{name} of {of}");
        }
    }

    #[test]
    fn unreadable_key_file_is_tolerated_briefly_then_locks_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::within(folder.path());
        let key = made(&file, "a");
        let ring = Keyring::open(file.clone()).unwrap();
        let good = fs::read(file.path()).unwrap();
        fs::write(file.path(), "{").unwrap();
        let judge = |now| {
            ring.refresh(second(now));
            ring.judge(Some(&key), at(0), second(now))
        };
        let known = |now| matches!(judge(now), Judgement::Known { .. });
        assert!(known(10) && known(39));
        assert_eq!(judge(40), Judgement::Unavailable);
        assert_eq!(ring.judge(None, at(0), second(41)), Judgement::Unavailable);
        fs::write(file.path(), good).unwrap();
        assert!(known(42));
        // A broken file ends open access too.
        let other = tempfile::tempdir().unwrap();
        let file = KeyFile::within(other.path());
        let ring = Keyring::open(file.clone()).unwrap();
        fs::write(file.path(), "{").unwrap();
        ring.refresh(second(5));
        assert_eq!(ring.judge(None, at(0), second(5)), Judgement::MissingKey);
        assert!(Keyring::open(file).is_err(), "and no server starts with it");
    }

    #[test]
    fn stale_keyring_locks_out_until_refreshed() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::within(folder.path());
        let key = made(&file, "a");
        let ring = Keyring::open(file).unwrap();
        let judge = |now| ring.judge(Some(&key), at(0), second(now));
        assert!(matches!(judge(29), Judgement::Known { .. }));
        assert_eq!(judge(30), Judgement::Unavailable);
        ring.refresh(second(30));
        assert!(matches!(judge(31), Judgement::Known { .. }));
        let none = Keyring::none();
        assert_eq!(
            none.judge(None, at(0), second(99)),
            Judgement::Open { is_admin: true }
        );
    }
}
