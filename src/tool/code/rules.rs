//! What `.gitignore` and `.ignore` files say about the entries of a walk.
//!
//! Each such file is opened once, without waiting for whoever may have put a FIFO in its place, and read
//! within bounds. A walk meets a folder before what is in it, so the rules of a folder are found under its
//! name when its entries are looked at. The rules of nearer folders are the stronger.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::place::Place;
use crate::tool::guard::path::open_followed;

/// Files with rules on what to ignore; of one folder, the later is the stronger.
const RULES: [&str; 2] = [".gitignore", ".ignore"];
/// Longest file of rules, in bytes: each line of it is compiled and kept.
const LONGEST: u64 = 1024 * 1024;
/// Most bytes of rules that one walk reads: no project of people has so many, and each line is looked at for
/// each file below it.
const MOST: u64 = 2 * 1024 * 1024;

/// The rules of the folders of a walk.
#[derive(Debug)]
pub(super) struct Rules {
    /// By folder: its rules and those above.
    folders: RwLock<HashMap<PathBuf, Arc<Folder>>>,
    /// What holds where no folder is known.
    top: Arc<Folder>,
    /// How many bytes of rules may still be read.
    left: AtomicU64,
}

#[derive(Debug, Default)]
struct Folder {
    own: Option<Gitignore>,
    above: Option<Arc<Folder>>,
}

/// What becomes of an entry of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Wanted,
    Ignored,
    /// A folder whose rules are no file that people write: who knows what they would forbid.
    Misruled,
}

impl Rules {
    /// Reads the rules of where a walk begins, and of what is above it.
    pub(super) fn of(place: &Place) -> Self {
        let left = AtomicU64::new(MOST);
        let mut top = Arc::new(Folder::default());
        let above = place.folders_above();
        for folder in above
            .iter()
            .rev()
            .map(PathBuf::as_path)
            .chain([place.start()])
        {
            if let Ok(Some(own)) = read(folder, &left) {
                top = Arc::new(Folder {
                    own: Some(own),
                    above: Some(top),
                });
            }
        }
        Self {
            folders: RwLock::default(),
            top,
            left,
        }
    }

    /// Judges an entry; a folder's own rules hold from then on.
    pub(super) fn judge(&self, path: &Path, is_dir: bool) -> Verdict {
        let around = path.parent().and_then(|folder| self.known(folder));
        let around = around.unwrap_or_else(|| Arc::clone(&self.top));
        let mut folders = std::iter::successors(Some(&*around), |one| one.above.as_deref());
        let said = folders.find_map(|folder| {
            let said = folder.own.as_ref()?.matched(path, is_dir);
            (!said.is_none()).then(|| said.is_ignore())
        });
        if said.unwrap_or_else(|| is_hidden(path)) {
            return Verdict::Ignored;
        }
        if is_dir {
            let within = match read(path, &self.left) {
                Ok(None) => around,
                Ok(own) => Arc::new(Folder {
                    own,
                    above: Some(around),
                }),
                Err(Odd) => return Verdict::Misruled,
            };
            let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
            folders.insert(path.to_owned(), within);
        }
        Verdict::Wanted
    }

    fn known(&self, folder: &Path) -> Option<Arc<Folder>> {
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        folders.get(folder).map(Arc::clone)
    }
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".")
}

/// Whether a file with rules on what to ignore is none, or is no file that people write.
pub(in crate::tool) fn has_odd_rules(folder: &Path) -> bool {
    RULES.iter().any(|name| {
        let found = fs::metadata(folder.join(name));
        found.is_ok_and(|found| is_odd(&found))
    })
}

fn is_odd(found: &fs::Metadata) -> bool {
    match found.is_file() {
        true => found.len() > LONGEST,
        false => !found.is_dir(),
    }
}

/// A file of rules is none, or there are too many.
struct Odd;

/// The rules that a folder has itself, from what may still be read of them.
fn read(folder: &Path, left: &AtomicU64) -> Result<Option<Gitignore>, Odd> {
    let mut builder: Option<GitignoreBuilder> = None;
    for name in RULES {
        let path = folder.join(name);
        let Some(text) = text_of(&path)? else {
            continue;
        };
        let bytes = text.len() as u64;
        let enough = |left: u64| left.checked_sub(bytes);
        if left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough)
            .is_err()
        {
            return Err(Odd);
        }
        let builder = builder.get_or_insert_with(|| GitignoreBuilder::new(folder));
        for line in text.trim_start_matches('\u{feff}').lines() {
            // Of a file that is half broken, what can be understood holds.
            let _ = builder.add_line(Some(path.clone()), line);
        }
    }
    let rules = builder.and_then(|builder| builder.build().ok());
    Ok(rules.filter(|rules| !rules.is_empty()))
}

fn text_of(path: &Path) -> Result<Option<String>, Odd> {
    let Ok(file) = open_followed(path) else {
        return Ok(None);
    };
    let found = file.metadata();
    if found.as_ref().is_ok_and(is_odd) {
        return Err(Odd);
    }
    let is_file = found.is_ok_and(|found| found.is_file());
    Ok(is_file.then(|| lines_of(&file)))
}

fn lines_of(file: &File) -> String {
    let mut bytes = Vec::new();
    // What was read before a fault holds.
    let _ = file.take(LONGEST).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
