//! Files and folders of this user alone, with locks and replacement as a whole.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    thread::sleep,
    time::Duration,
};

use tempfile::NamedTempFile;

/// Pause between two attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(10);

/// Options for a file that other users cannot read.
pub fn private() -> OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).mode(0o600);
    options
}

/// Makes a directory for this user alone, and makes it durable.
pub fn private_directory(path: &Path) -> io::Result<()> {
    let new = path.ancestors().take_while(|path| !path.exists()).count();
    let mut private = fs::DirBuilder::new();
    private.mode(0o700).recursive(true).create(path)?;
    let path = path.canonicalize()?;
    let mut above = path.ancestors().skip(1).take(new);
    above.try_for_each(sync_directory)
}

/// Locks a file, which it creates if necessary. `WouldBlock` means that another process has held the
/// lock for so long.
pub fn lock(path: &Path, patience: Duration) -> Result<File, TryLockError> {
    let file = private().create(true).truncate(false).open(path);
    let file = file.map_err(TryLockError::Error)?;
    let mut left = patience;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if !left.is_zero() => {
                sleep(PAUSE);
                left = left.saturating_sub(PAUSE);
            }
            taken => return taken.map(|()| file),
        }
    }
}

/// Replaces a file: at any time it has the old content or the new one, as a whole.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    // A `NamedTempFile` is readable by its owner only.
    let mut draft = NamedTempFile::new_in(directory)?;
    draft.write_all(content)?;
    draft.as_file().sync_all()?;
    draft.persist(path)?;
    sync_directory(directory)
}

/// A rename, or a new directory, is durable once the directory above is synced.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
