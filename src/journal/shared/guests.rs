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
    /// This process is one of them from now on. Waits for the disk.
    pub(super) fn join(&self, directory: &Path) -> io::Result<()> {
        let mut kept = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // Never taken anew: that would let go of it first.
        if kept.is_none() {
            let file = open(directory)?;
            file.lock_shared()?;
            *kept = Some(file);
        }
        Ok(())
    }

    /// The same, and whether there are others. For the one that has the directory alone: while it looks it
    /// is not counted, and two that look would not see each other. Waits for the disk.
    pub(super) fn probe(&self, directory: &Path) -> io::Result<bool> {
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_looks_in_vain_is_seen_all_the_while() {
        let folder = tempfile::tempdir().unwrap();
        let (guest, owner) = (Guests::default(), Guests::default());
        guest.join(folder.path()).unwrap();
        thread::scope(|scope| {
            let looks = scope.spawn(|| (0..50_000).all(|_| guest.join(folder.path()).is_ok()));
            for _ in 0..50_000 {
                assert!(owner.probe(folder.path()).unwrap());
            }
            assert!(looks.join().unwrap());
        });
        drop(guest);
        assert!(!owner.probe(folder.path()).unwrap());
    }
}
