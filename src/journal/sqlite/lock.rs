//! Who owns a data directory: one process at a time, for as long as it lives.
//!
//! The lock is the operating system's, on the file `lock`, so it ends with its owner however that
//! ends, and nothing stale can be in the way. What stands in the file is for people: the owner's
//! process number.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
    process,
};

use super::{
    error::{OpenError, Owner},
    files,
};

const NAME: &str = "lock";

/// The ownership of a data directory; given up when dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes a directory that is there.
    pub(super) fn take(directory: &Path) -> Result<Self, OpenError> {
        let path = directory.join(NAME);
        let failed = |source| OpenError::File {
            path: path.clone(),
            source,
        };
        let mut file = files::open_or_create(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse {
                    directory: directory.to_owned(),
                    owner: owner(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        sign(&mut file).map_err(failed)?;
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // So that nobody is told the number of a process that has left. Failing is no harm: who
        // gets the lock signs anew.
        let _ = self.file.set_len(0);
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", process::id())
}

fn owner(file: &mut File) -> Owner {
    let mut text = String::new();
    let number = file
        .read_to_string(&mut text)
        .ok()
        .and_then(|_| text.trim().parse().ok());
    number.map_or(Owner::Unnamed, Owner::Process)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_second_owner_is_told_the_first_ones_number() {
        let directory = tempfile::tempdir().unwrap();
        let first = Lock::take(directory.path()).unwrap();
        let error = Lock::take(directory.path()).unwrap_err();
        let OpenError::InUse { owner, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(*owner, Owner::Process(process::id()));
        assert!(
            error
                .to_string()
                .contains(&format!("is in use by process {}: ", process::id())),
            "{error}"
        );
        drop(first);
        Lock::take(directory.path()).unwrap();
    }

    #[test]
    fn a_lock_that_a_dead_process_left_is_taken_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        fs::write(&path, "4194304999\n").unwrap();
        let lock = Lock::take(directory.path()).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            format!("{}\n", process::id())
        );
        drop(lock);
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn an_owner_that_has_not_signed_is_another_process() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        let silent = files::open_or_create(&path).unwrap();
        silent.try_lock().unwrap();
        let error = Lock::take(directory.path()).unwrap_err().to_string();
        assert!(error.contains("is in use by another process"), "{error}");
    }
}
