//! The processes that have a journal open. Each open journal is an owner with a random id and a
//! file `processes/ID`, which it keeps locked exclusively: the lock ends with the process, however
//! it ends. The file holds the process id and the path of its control socket, if it has one.
//!
//! **Invariants:** a file is locked before any row names its owner, and no id is reused. A probe
//! takes a shared lock, so that two probes never mistake each other for a live owner.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process,
};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::{disk, model::Owner};

const FOLDER: &str = "processes";

/// An open journal, which leaves the data directory's processes when dropped.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) id: i64,
    /// Whether no other owner was alive at the opening.
    pub(super) came_alone: bool,
    folder: PathBuf,
    file: Mutex<File>,
}

impl Process {
    pub(super) fn enter(directory: &Path) -> io::Result<Self> {
        let folder = directory.join(FOLDER);
        disk::private_directory(&folder)?;
        loop {
            let random = Uuid::now_v7().as_u64_pair().1;
            let id = (random >> 1).cast_signed();
            let path = file_of(&folder, id);
            let mut file = disk::private().create_new(true).open(&path)?;
            file.lock()?;
            // Before the lock, a probe may have removed the file as that of a dead process.
            if path.exists() {
                writeln!(file, "{}", process::id())?;
                let came_alone = live(&folder)?.len() == 1;
                return Ok(Self {
                    id,
                    came_alone,
                    folder,
                    file: Mutex::new(file),
                });
            }
        }
    }

    #[cfg(test)]
    pub(super) fn file(&self) -> PathBuf {
        file_of(&self.folder, self.id)
    }

    pub(super) fn announce(&self, socket: &Path) -> io::Result<()> {
        let socket = socket.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        // In one write, so that no process reads half of it.
        self.file.lock().write_all(format!("{socket}\n").as_bytes())
    }

    /// Whether no other owner is alive now.
    pub(super) fn is_alone(&self) -> bool {
        live(&self.folder).is_ok_and(|owners| owners.len() == 1)
    }

    /// The owner with this id, if it is alive and not this one.
    pub(super) fn other(&self, id: i64) -> io::Result<Option<Owner>> {
        if id == self.id {
            return Ok(None);
        }
        probe(&file_of(&self.folder, id))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A file that remains is recognised as that of a dead process.
        let _ = fs::remove_file(file_of(&self.folder, self.id));
    }
}

/// Lists the processes that have a data directory open, one entry for each open journal. Removes
/// the files of dead ones.
///
/// # Errors
/// If the directory cannot be read.
pub fn processes(directory: &Path) -> io::Result<Vec<Owner>> {
    match live(&directory.join(FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        owners => owners,
    }
}

pub(super) fn owner(directory: &Path, id: i64) -> io::Result<Option<Owner>> {
    probe(&file_of(&directory.join(FOLDER), id))
}

fn live(folder: &Path) -> io::Result<Vec<Owner>> {
    let files = fs::read_dir(folder)?;
    let owners = files.map(|file| probe(&file?.path()));
    owners.filter_map(Result::transpose).collect()
}

fn file_of(folder: &Path, id: i64) -> PathBuf {
    folder.join(format!("{id:016x}"))
}

fn probe(path: &Path) -> io::Result<Option<Owner>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match file.try_lock_shared() {
        Ok(()) => {
            // Another probe may have removed the file.
            let _ = fs::remove_file(path);
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // On systems whose locks prevent reading, the owner stays unnamed.
            let _ = file.read_to_string(&mut text);
            let mut lines = text.lines();
            let pid = lines.next().and_then(|pid| pid.parse().ok());
            let socket = lines.next().map(PathBuf::from);
            Ok(Some(Owner {
                pid,
                socket,
                url: None,
            }))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alive_until_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(processes(directory.path()).unwrap(), []);
        let (one, other) = (
            Process::enter(directory.path()).unwrap(),
            Process::enter(directory.path()).unwrap(),
        );
        let named = |socket: Option<&str>| Owner {
            pid: Some(process::id()),
            socket: socket.map(PathBuf::from),
            url: None,
        };
        assert_eq!(one.other(one.id).unwrap(), None);
        assert_eq!(one.other(other.id).unwrap(), Some(named(None)));
        other.announce(Path::new("/run/a socket")).unwrap();
        assert_eq!(
            one.other(other.id).unwrap(),
            Some(named(Some("/run/a socket")))
        );
        assert_eq!(processes(directory.path()).unwrap().len(), 2);
        let dead = other.id;
        drop(other);
        assert_eq!(one.other(dead).unwrap(), None);
        assert_eq!(processes(directory.path()).unwrap(), [named(None)]);
    }

    #[test]
    fn the_file_of_a_dead_process_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let one = Process::enter(directory.path()).unwrap();
        let left = file_of(&one.folder, 7);
        fs::write(&left, "4194304999\n").unwrap();
        assert_eq!(one.other(7).unwrap(), None);
        assert!(!left.exists());
        fs::write(&left, "4194304999\n").unwrap();
        drop(Process::enter(directory.path()).unwrap());
        assert!(!left.exists(), "also when another process comes");
    }

    #[test]
    fn concurrent_probes_do_not_mistake_each_other_for_an_owner() {
        let directory = tempfile::tempdir().unwrap();
        let one = Process::enter(directory.path()).unwrap();
        let left = file_of(&one.folder, 7);
        let probes = || {
            (0..2_000).all(|_| fs::write(&left, "1\n").is_ok() && probe(&left).unwrap().is_none())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(probes);
            assert!(probes());
            assert!(other.join().unwrap());
        });
    }
}
