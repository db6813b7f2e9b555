//! Authentication, tenant limits and budgets: API keys, the file that stores them, limits on wrong
//! keys.
//!
//! A key is shown once, when it is created; only its hash is stored. Decisions are pure and take
//! the time as an argument. Only [`KeyFile`] and [`Keyring`] touch the disk. Nothing here knows of
//! HTTP: `http` decides which route needs which role.
//!
//! **Invariant:** the text of a key appears in no `Debug`, error or log, and is not stored, except
//! for the admin key of a server without keys, in a file for its owner only.

mod bucket;
mod budgets;
mod file;
mod key;
mod key_set;
mod ring;
mod shares;
mod tenants;

pub use bucket::{Attempts, Bucket, network_of};
pub use budgets::Budgets;
pub use file::{FileError, FileFault, KeyFile};
pub use key::{InvalidKeyName, Key, KeyHash, KeyId, KeyName, NoRandomness};
pub use key_set::{KeySet, KeySetError, KeyState, NewKey, StoredKey};
pub use ring::{Judgement, Keyring};
pub use shares::{NoShare, Share, Shares, TENANT_SHARE};
pub use tenants::{
    Account, LimitReached, Limits, RequestPermit, SessionCount, SessionLoad, SessionReservation,
    SessionUsage, SubmissionPermit, TenantLimits, Tenants,
};
