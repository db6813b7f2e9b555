//! The files of a journal: their paths and permissions.
//!
//! **Invariant:** a file with the journal's name is a complete journal. A new one is created under
//! another name and renamed.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::error::OpenError;
use crate::disk;

/// How long to wait for the lock.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) directory: PathBuf,
    pub(super) journal: PathBuf,
    pub(super) log: PathBuf,
    pub(super) draft: PathBuf,
}

impl Files {
    pub(super) fn within(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            journal: directory.join("journal.db"),
            log: directory.join("journal.db-wal"),
            draft: directory.join("journal.db.new"),
        }
    }

    pub(super) fn make_directory(&self) -> Result<(), OpenError> {
        let path = self.directory.clone();
        match disk::private_directory(&path).and_then(|()| network(&path)) {
            Ok(None) if others_may(&path, WRITE) => Err(OpenError::Shared(path)),
            Ok(None) => Ok(()),
            Ok(Some(kind)) => Err(OpenError::Network { path, kind }),
            Err(source) => Err(OpenError::File { path, source }),
        }
    }

    /// Guards the opening against other processes. An earlier version of Oracle holds this lock as
    /// long as it runs.
    pub(super) fn lock(&self) -> Result<File, OpenError> {
        let path = self.directory.join("lock");
        disk::lock(&path, PATIENCE).map_err(|error| match error {
            TryLockError::WouldBlock => OpenError::Locked(path),
            TryLockError::Error(source) => OpenError::File { path, source },
        })
    }

    /// What tells the database from a copy: its inode.
    pub(super) fn identity(&self) -> io::Result<i64> {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(&self.journal).map(|file| file.ino().cast_signed())
    }

    /// Removes other users' permissions on the files. The directory may have other uses and is not
    /// changed.
    pub(super) fn keep_to_owner(&self) {
        let index = self.directory.join("journal.db-shm");
        for file in [&self.journal, &self.log, &index] {
            if others_may(file, ANYTHING)
                && let Err(error) = make_private(file)
            {
                tracing::warn!(file = %file.display(), %error, "other users can read the journal: restrict it with chmod 600");
            }
        }
    }

    /// Creates an empty private file for a new database, whose log inherits its permissions.
    pub(super) fn start_draft(&self) -> Result<(), OpenError> {
        let failed = |source| OpenError::file(&self.draft, source);
        match fs::remove_file(&self.draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let draft = disk::private().create_new(true).open(&self.draft);
        draft.map(drop).map_err(failed)
    }

    pub(super) fn finish_draft(&self) -> Result<(), OpenError> {
        let renamed = File::open(&self.draft)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&self.draft, &self.journal))
            .and_then(|()| disk::sync_directory(&self.directory));
        renamed.map_err(|source| OpenError::file(&self.journal, source))
    }

    pub(super) fn has_log(&self) -> bool {
        fs::metadata(&self.log).is_ok_and(|log| log.len() > 0)
    }
}

/// Network file systems lack the locks and the shared memory that SQLite needs.
#[cfg(target_os = "linux")]
fn network(directory: &Path) -> io::Result<Option<&'static str>> {
    // Numbers from statfs(2).
    Ok(match rustix::fs::statfs(directory)?.f_type as u32 {
        0x6969 => Some("NFS"),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Some("SMB"),
        0x6573_5546 => Some("FUSE"),
        0x5346_414f => Some("AFS"),
        0x00c3_6400 => Some("Ceph"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x0102_1997 => Some("9P"),
        0x7461_636f => Some("OCFS2"),
        0x4750_4653 => Some("GPFS"),
        _ => None,
    })
}

#[cfg(not(target_os = "linux"))]
fn network(_: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}

const ANYTHING: u32 = 0o077;
const WRITE: u32 = 0o022;

fn others_may(path: &Path, what: u32) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & what != 0)
}

fn make_private(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))
}
