//! Whether other processes use a data directory: each keeps a shared lock on the file `guests`, which ends
//! with the process, however that ends.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

const NAME: &str = "guests";

/// This process among those that use a directory.
#[derive(Debug, Default)]
pub(super) struct Guests {
    // A lock, because the file is made when there is a directory; nobody waits for it but at a start.
    file: Mutex<Option<File>>,
}

impl Guests {
    /// This process is one of them from now on, and whether there are others. Waits for the disk.
    pub(super) fn join(&self, directory: &Path) -> io::Result<bool> {
        let mut kept = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match kept.take() {
            Some(file) => file,
            None => open(directory)?,
        };
        let others = match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        // Whoever has it for itself has it for as long as it takes to find that out.
        file.lock_shared()?;
        *kept = Some(file);
        Ok(others)
    }
}

fn open(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(directory.join(NAME))
}
