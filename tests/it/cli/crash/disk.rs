//! A disk whose power can be cut: only what was synced survives for sure.
//!
//! `disk.c`, preloaded into the program, keeps what each sync made durable. After a cut, every
//! sector that was written since is lost or not, as the seed says. A name survives if its directory
//! was synced.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::{DirEntryExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

use oracle_agent::testkit::require;
use tempfile::TempDir;

use crate::actors::simulation::Dice;

const SECTOR: usize = 512;

/// What happens at a sync, counted from 1 within a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncFault {
    /// The power goes before it.
    Cut,
    /// It and all later ones fail.
    Fail,
    /// It and all later ones do nothing and report success.
    Lie,
}

impl SyncFault {
    const fn variable(self) -> &'static str {
        match self {
            Self::Cut => "ORACLE_DISK_CUT",
            Self::Fail => "ORACLE_DISK_FAIL",
            Self::Lie => "ORACLE_DISK_LIE",
        }
    }
}

pub(super) struct Disk {
    /// The directory on this disk; it is durable itself.
    data: PathBuf,
    /// Durable content by inode.
    durable: TempDir,
    library: PathBuf,
}

impl Disk {
    /// Returns `None` where no C compiler is installed, and on systems without glibc.
    pub(super) fn of(data: &Path) -> Option<Self> {
        let durable = tempfile::tempdir().unwrap();
        let library = durable.path().join("disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli/crash/disk.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        let compiled = compiler.args([&library, &source]).arg("-ldl").output();
        let compiled = require("cc", compiled)?;
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            eprintln!("SKIPPED, it needs Linux with glibc");
            return None;
        }
        let told = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{told}");
        let data = data.to_owned();
        Some(Self {
            data,
            durable,
            library,
        })
    }

    /// Makes everything there is durable, and returns the environment for the next process.
    pub(super) fn before(&self, fault: SyncFault, number: u64) -> [(&str, OsString); 3] {
        for file in fs::read_dir(self.durable.path()).unwrap() {
            let file = file.unwrap().path();
            if file != self.library {
                fs::remove_file(file).unwrap();
            }
        }
        self.keep(&self.data);
        [
            ("LD_PRELOAD", self.library.clone().into()),
            ("ORACLE_DISK_DURABLE", self.durable.path().into()),
            (fault.variable(), number.to_string().into()),
        ]
    }

    fn keep(&self, directory: &Path) {
        let mut entries = String::new();
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            entries += &format!("{}/{name}\n", entry.ino());
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                self.keep(&entry.path());
            } else if kind.is_file() {
                fs::copy(entry.path(), self.content(entry.ino())).unwrap();
            }
        }
        let inode = fs::metadata(directory).unwrap().ino();
        fs::write(self.entries(inode), entries).unwrap();
    }

    fn content(&self, inode: u64) -> PathBuf {
        self.durable.path().join(inode.to_string())
    }

    fn entries(&self, inode: u64) -> PathBuf {
        self.durable.path().join(format!("{inode}.entries"))
    }

    /// Cuts the power of a process that has ended, and returns how many sectors are lost.
    pub(super) fn cut(&self, dice: &mut Dice) -> usize {
        // Of four sectors, this many survive: none in one cut of four.
        let odds = dice.below(4);
        let mut lost = 0;
        let left = self.left(&self.data, &mut |new: &[u8], old: &[u8]| {
            let survives = dice.below(4) < odds;
            lost += usize::from(!survives && new != old);
            survives
        });
        for entry in fs::read_dir(&self.data).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                fs::remove_dir_all(entry.path()).unwrap();
            } else {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        for (path, content) in left {
            let path = self.data.join(path);
            let mode = if let Some(content) = content {
                fs::write(&path, content).unwrap();
                0o600
            } else {
                fs::create_dir(&path).unwrap();
                0o700
            };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        lost
    }

    /// Returns the files, and the directories without content, that are left.
    fn left(
        &self,
        directory: &Path,
        survives: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut left = BTreeMap::new();
        let inode = fs::metadata(directory).unwrap().ino();
        let entries = fs::read_to_string(self.entries(inode)).unwrap_or_default();
        for entry in entries.lines() {
            let (inode, name) = entry.split_once('/').unwrap();
            let inode: u64 = inode.parse().unwrap();
            let path = directory.join(name);
            let live = fs::metadata(&path).ok().filter(|live| live.ino() == inode);
            let below = path.strip_prefix(&self.data).unwrap().to_owned();
            if name == "." || name == ".." {
            } else if live.as_ref().is_some_and(fs::Metadata::is_dir) {
                left.insert(below, None);
                left.extend(self.left(&path, survives));
            } else if live.as_ref().is_none_or(fs::Metadata::is_file) {
                let old = fs::read(self.content(inode)).unwrap_or_default();
                let new = live.map(|_| fs::read(&path).unwrap());
                let new = new.unwrap_or_else(|| old.clone());
                left.insert(below, Some(mixed(&new, &old, survives)));
            }
        }
        left
    }
}

fn mixed(new: &[u8], old: &[u8], survives: &mut impl FnMut(&[u8], &[u8]) -> bool) -> Vec<u8> {
    let length = if survives(&[], &[]) { new } else { old }.len();
    let mut mixed = vec![0; length];
    for (index, sector) in mixed.chunks_mut(SECTOR).enumerate() {
        let at = |content: &'_ [u8]| {
            let start = content.len().min(index * SECTOR);
            let end = content.len().min(start + sector.len());
            content[start..end].to_vec()
        };
        let (new, old) = (at(new), at(old));
        let sector_left = if survives(&new, &old) { new } else { old };
        sector[..sector_left.len()].copy_from_slice(&sector_left);
    }
    mixed
}
