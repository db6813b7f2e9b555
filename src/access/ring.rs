//! The keys as a server knows them: read once, and again when their file has changed.
//!
//! - A change counts within a second of the next request, so that a key that was taken back opens nothing.
//! - Where there never was a key, everybody is let in who can reach the server. As soon as there is one,
//!   keys are asked for, and from then on always, also when the file goes away: that must not open a door.
//! - A file that has become unreadable may hide that a key was taken back. What was read last holds for a
//!   short time, in which whoever edits it can mend it; after that nobody is let in.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{Entry, FileError, Hash, Key, KeyFile, KeyId, State, file::Stamp};
use crate::model::{Principal, Timestamp};

/// How often it is looked whether the file has changed.
const LOOK: Duration = Duration::from_secs(1);
/// How long what was read last holds when the file cannot be read any more.
const GRACE: Duration = Duration::from_secs(30);

/// What is to be thought of who shows a key, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// There are no keys: nobody needs one.
    Open,
    /// It is this one.
    Known(Principal),
    /// No key was shown.
    NoKey,
    /// It opens nothing, for whatever reason.
    Wrong,
    /// Which keys hold cannot be known.
    Unknowable,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Keyring {
    file: Option<KeyFile>,
    // A lock, because requests come at the same time; held for a look at the file's date, and for reading
    // it when it has changed.
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    stamp: Option<Stamp>,
    keys: HashMap<KeyId, Entry>,
    /// Whether there ever was a key.
    guarded: bool,
    /// When the next look is due.
    next: Duration,
    /// Since when the file cannot be read.
    broken: Option<Duration>,
}

impl Keyring {
    /// Without any keys, now and later.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The keys of this file, which need not be there.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    pub fn open(file: KeyFile) -> Result<Self, FileError> {
        let mut seen = Seen::default();
        seen.read(&file)?;
        Ok(Self {
            file: Some(file),
            seen: Mutex::new(seen),
        })
    }

    /// Whether keys are asked for.
    #[must_use]
    pub fn is_guarded(&self) -> bool {
        self.seen().guarded
    }

    /// Judges what was shown. `now` goes on steadily from wherever it began, `at` is the time of the
    /// calendar.
    #[must_use]
    pub fn judge(&self, shown: Option<&str>, at: Timestamp, now: Duration) -> Judgement {
        let shown = shown.map(Key::read);
        // One that has not the form of a key takes as long.
        let key = shown.as_ref().and_then(Option::as_ref);
        let hash = key.map_or(Hash::NONE, Key::hash);
        let mut seen = self.seen();
        if let Some(file) = &self.file {
            seen.refresh(file, now);
        }
        if !seen.guarded && seen.broken.is_none() {
            return Judgement::Open;
        }
        if seen.is_stale(now) {
            return Judgement::Unknowable;
        }
        if shown.is_none() {
            return Judgement::NoKey;
        }
        let entry = key.and_then(|key| seen.keys.get(key.id()));
        let right = entry.map_or(Hash::NONE, |entry| entry.sha256).is(&hash);
        match entry {
            Some(entry) if right && entry.state(at) == State::Valid => {
                Judgement::Known(entry.principal())
            }
            Some(_) | None => Judgement::Wrong,
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn refresh(&mut self, file: &KeyFile, now: Duration) {
        if now < self.next {
            return;
        }
        self.next = now + LOOK;
        let unchanged = file.stamp().is_ok_and(|stamp| stamp == self.stamp);
        if unchanged && self.broken.is_none() {
            return;
        }
        match self.read(file) {
            Ok(()) => {
                if self.broken.take().is_some() {
                    tracing::info!("the keys can be read again");
                }
            }
            Err(error) => {
                if self.broken.is_none() {
                    tracing::error!(
                        %error,
                        "the keys as they were hold for {GRACE:?} yet; then nobody is let in"
                    );
                }
                self.broken.get_or_insert(now);
            }
        }
    }

    fn read(&mut self, file: &KeyFile) -> Result<(), FileError> {
        // Before the file is read: a change in between is seen the next time.
        let stamp = file.stamp().ok().flatten();
        let book = file.read()?.unwrap_or_default();
        if book.is_empty() && self.guarded {
            tracing::warn!("there are no keys any more, so nobody is let in");
        }
        self.guarded |= !book.is_empty();
        let keyed = |entry: &Entry| (entry.id.clone(), entry.clone());
        self.keys = book.keys().iter().map(keyed).collect();
        self.stamp = stamp;
        Ok(())
    }

    fn is_stale(&self, now: Duration) -> bool {
        self.broken
            .is_some_and(|since| now.saturating_sub(since) >= GRACE)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        access::{BookError, NewKey},
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

    impl From<BookError> for Refused {
        fn from(_: BookError) -> Self {
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
        let key = Key::draw().unwrap();
        let new = NewKey {
            name: name.parse().unwrap(),
            tenant: TenantId::new("shop").unwrap(),
            role: Role::User,
            expires: Some(at(1_000)),
        };
        file.change(|book| Ok::<_, Refused>(book.add(&key, new, at(0))?))
            .unwrap();
        key.reveal().to_owned()
    }

    #[test]
    fn a_key_is_known_while_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::within(folder.path());
        let key = made(&file, "a");
        let ring = Keyring::open(file).unwrap();
        let principal = Principal {
            name: "a".into(),
            tenant: TenantId::new("shop").unwrap(),
            role: Role::User,
        };
        // The same key with another last digit.
        let last = if key.ends_with('0') { "1" } else { "0" };
        let near = format!("{}{last}", &key[..key.len() - 1]);
        let stranger = Key::draw().unwrap();
        for (name, shown, time, judged) in [
            (
                "right",
                Some(key.as_str()),
                999,
                Judgement::Known(principal),
            ),
            ("expired", Some(&key), 1_000, Judgement::Wrong),
            ("none", None, 0, Judgement::NoKey),
            ("nearly", Some(&near), 0, Judgement::Wrong),
            ("of nobody", Some(stranger.reveal()), 0, Judgement::Wrong),
            ("no key at all", Some("sk-1"), 0, Judgement::Wrong),
            ("empty", Some(""), 0, Judgement::Wrong),
        ] {
            assert_eq!(ring.judge(shown, at(time), second(0)), judged, "{name}");
        }
    }

    #[test]
    fn what_changes_in_the_file_counts_within_a_second() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::within(folder.path());
        let ring = Keyring::open(file.clone()).unwrap();
        assert_eq!(ring.judge(None, at(0), second(0)), Judgement::Open);
        let key = made(&file, "a");
        assert_eq!(
            ring.judge(None, at(0), second(0)),
            Judgement::Open,
            "no look is due"
        );
        assert_eq!(ring.judge(None, at(0), second(1)), Judgement::NoKey);
        let known = |now| matches!(ring.judge(Some(&key), at(0), now), Judgement::Known(_));
        assert!(known(second(1)));
        file.change(|book| Ok::<_, Refused>(book.revoke("a", at(0))?))
            .unwrap();
        assert!(!known(second(2)));
        fs::remove_file(file.path()).unwrap();
        assert_eq!(
            ring.judge(None, at(0), second(9)),
            Judgement::NoKey,
            "it never opens again"
        );
        assert_eq!(ring.judge(Some(&key), at(0), second(9)), Judgement::Wrong);
    }

    #[test]
    fn a_file_that_becomes_unreadable_holds_for_a_short_time_and_then_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::within(folder.path());
        let key = made(&file, "a");
        let ring = Keyring::open(file.clone()).unwrap();
        let good = fs::read(file.path()).unwrap();
        fs::write(file.path(), "{").unwrap();
        let judge = |now| ring.judge(Some(&key), at(0), second(now));
        let known = |now| matches!(judge(now), Judgement::Known(_));
        assert!(known(10) && known(39));
        assert_eq!(judge(40), Judgement::Unknowable);
        assert_eq!(ring.judge(None, at(0), second(41)), Judgement::Unknowable);
        fs::write(file.path(), good).unwrap();
        assert!(known(42));
        // And where there never was a key, a broken file does not leave the door open for ever.
        let other = tempfile::tempdir().unwrap();
        let file = KeyFile::within(other.path());
        let ring = Keyring::open(file.clone()).unwrap();
        fs::write(file.path(), "{").unwrap();
        assert_eq!(ring.judge(None, at(0), second(5)), Judgement::NoKey);
        assert!(Keyring::open(file).is_err(), "and no server starts with it");
    }
}
