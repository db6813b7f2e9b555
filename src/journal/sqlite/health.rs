//! Whether the journal can be trusted. This is lost once and never regained.

use std::sync::OnceLock;

use crate::journal::Error;

/// Called once, with the reason, when durable records may be lost. It has to end the process, so it
/// must neither wait for the journal nor hold a handle of it.
pub type OnBroken = Box<dyn Fn(&str) + Send + Sync>;

pub(super) struct Health {
    why: OnceLock<String>,
    on_broken: OnBroken,
}

impl Health {
    pub(super) fn new(on_broken: OnBroken) -> Self {
        Self {
            why: OnceLock::new(),
            on_broken,
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        match self.why.get() {
            None => Ok(()),
            Some(why) => Err(Error::Broken(why.clone())),
        }
    }

    pub(super) fn give_up(&self, why: String) {
        if self.why.set(why).is_ok() {
            (self.on_broken)(self.why.get().map_or("", String::as_str));
        }
    }
}
