//! Authentication and tenant limits: API keys, the file that stores them, limits on wrong keys.
//!
//! A key is shown once, when it is created; only its hash is stored. Decisions are pure and take
//! the time as an argument. Only [`KeyFile`] and [`Keyring`] touch the disk. Nothing here knows of
//! HTTP: `http` decides which route needs which role.
//!
//! **Invariant:** the text of a key appears in no `Debug`, error or log, and is never stored.

mod attempts;
mod book;
mod bucket;
mod file;
mod key;
mod name;
mod ring;
mod tenants;

pub use attempts::{Attempts, TooMany, place_of};
pub use book::{Book, BookError, Entry, NewKey, State};
pub use bucket::Bucket;
pub use file::{FileError, FileFault, KeyFile};
pub use key::{Hash, Key, KeyId, NoRandomness};
pub use name::{KeyName, NotAName};
pub use ring::{Judgement, Keyring};
pub use tenants::{
    Account, AtWork, Count, Inbox, Limits, NewSession, Over, Pending, TenantLimits, Tenants,
};
