//! Who may come in, and how much they may have: keys, the file that they are kept in, limits of tenants.
//!
//! A key is shown once, when it is made; what is kept of it is a hash. Everything that decides is pure: the
//! time is a value that the caller brings along. Files are touched by [`KeyFile`] and [`Keyring`] alone.
//! Nothing here knows of HTTP; who is let in where is for the door (`http`) to say.
//!
//! **Invariant:** the text of a key is in no `Debug`, no error and no log, and is never kept.

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
