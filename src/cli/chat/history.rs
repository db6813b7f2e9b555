//! The input history of chats, in a file of the data directory.
//!
//! Rustyline writes it, readable by its owner alone and under a lock that several chats share; it
//! drops repeated messages and those that begin with a space. This module bounds the number and
//! length of messages and the size of the file.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustyline::history::{FileHistory, History as _};

pub(super) const MOST: usize = 1_000;
/// Maximum length of a stored message, in bytes; a longer one was probably pasted.
const LONGEST: usize = 8 << 10;
/// Attempts to lock the file.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);
const LARGEST: u64 = 32 << 20;

pub(super) struct History {
    file: Option<PathBuf>,
    warning: Option<String>,
}

impl History {
    /// Loads the history. A file that cannot be read is left unchanged.
    pub(super) fn open(file: PathBuf, kept: &mut FileHistory) -> Self {
        let mut history = Self {
            // `/dev/null` as the history file disables it.
            file: (!is_null(&file)).then_some(file),
            warning: None,
        };
        history.update_file(|file| match fs::metadata(file) {
            Ok(is) if !is.is_file() => Err("it is not a regular file: remove it".to_owned()),
            Ok(is) if is.len() > LARGEST => Err(format!("it exceeds {LARGEST} bytes: shorten it")),
            Ok(_) => {
                is_free(file)?;
                kept.load(file).map_err(|error| error.to_string())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
        });
        history
    }

    pub(super) fn add(&mut self, kept: &mut FileHistory, message: &str) {
        if message.trim().is_empty() || message.len() > LONGEST {
            return;
        }
        let added = kept.add(message);
        self.update_file(|file| match added {
            Ok(true) => {
                is_free(file)?;
                kept.append(file).map_err(|error| error.to_string())
            }
            Ok(false) => Ok(()),
            Err(error) => Err(error.to_string()),
        });
    }

    pub(super) const fn warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    fn update_file(&mut self, what: impl FnOnce(&Path) -> Result<(), String>) {
        let Some(file) = &self.file else { return };
        if let Err(problem) = what(file) {
            let file = file.display();
            self.warning = Some(format!(
                "the input history is not saved, because of `{file}`: {problem}"
            ));
            self.file = None;
        }
    }
}

fn is_null(file: &Path) -> bool {
    fs::canonicalize(file).is_ok_and(|file| file == Path::new("/dev/null"))
}

/// Checks that the file can be locked soon: other chats hold it for moments, and a program that
/// keeps it must not block the prompt.
fn is_free(file: &Path) -> Result<(), String> {
    let mut tries = 1;
    loop {
        let opened = match File::open(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(|error| error.to_string())?,
        };
        match opened.try_lock_shared() {
            Err(TryLockError::WouldBlock) if tries < TRIES => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Err("another program has locked it".to_owned()),
            // The file system has no locks.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
        tries += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> FileHistory {
        let mut kept = FileHistory::new();
        kept.set_max_len(MOST).unwrap();
        kept.ignore_dups(true).unwrap();
        kept.ignore_space(true);
        kept
    }

    fn all(kept: &FileHistory) -> Vec<&str> {
        kept.iter().map(String::as_str).collect()
    }

    #[test]
    fn history_persists_privately_and_skips_blank_and_repeated_lines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let long = "a".repeat(LONGEST + 1);
        for (typed, want) in [
            (
                vec![
                    "one",
                    "one",
                    " secret",
                    "",
                    " \n",
                    "two\nlines \\n é",
                    &long,
                ],
                2,
            ),
            (vec!["one", "three"], 4),
        ] {
            let mut there = kept();
            let mut history = History::open(file.clone(), &mut there);
            for message in typed {
                history.add(&mut there, message);
            }
            assert_eq!(history.warning(), None);
            assert_eq!(there.len(), want);
        }
        let mut there = kept();
        let mut history = History::open(file.clone(), &mut there);
        assert_eq!(all(&there), ["one", "two\nlines \\n é", "one", "three"]);
        assert_eq!(history.warning(), None);
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }

    #[test]
    fn history_keeps_only_the_latest_messages() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let mut there = kept();
        let mut history = History::open(file.clone(), &mut there);
        for number in 0..MOST + 3 {
            history.add(&mut there, &number.to_string());
        }
        let mut there = kept();
        History::open(file, &mut there);
        assert_eq!((there.len(), all(&there)[0]), (MOST, "3"));
    }

    #[test]
    fn unreadable_history_file_is_reported_once_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let broken = folder.path().join("broken");
        fs::write(&broken, b"#V2\n\xff\xfe\n").unwrap();
        let cases = [
            (
                "a folder",
                folder.path().to_owned(),
                "it is not a regular file",
            ),
            ("not UTF-8", broken.clone(), "UTF-8"),
        ];
        for (name, file, why) in cases {
            let mut there = kept();
            let mut history = History::open(file, &mut there);
            let said = history.warning().unwrap();
            assert!(said.contains(why), "{name}: {said}");
            history.add(&mut there, "hi");
            assert_eq!(
                (history.warning(), all(&there)),
                (None, vec!["hi"]),
                "{name}"
            );
        }
        assert_eq!(fs::read(&broken).unwrap(), b"#V2\n\xff\xfe\n");
    }

    #[test]
    fn locked_history_file_is_skipped_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        fs::write(&file, "#V2\nbefore\n").unwrap();
        let locked = File::open(&file).unwrap();
        locked.lock().unwrap();
        let mut there = kept();
        let mut history = History::open(file.clone(), &mut there);
        let said = history.warning().unwrap();
        assert!(said.ends_with("another program has locked it"), "{said}");
        history.add(&mut there, "hi");
        assert_eq!((history.warning(), all(&there)), (None, vec!["hi"]));
        drop(locked);
        let mut there = kept();
        History::open(file, &mut there);
        assert_eq!(all(&there), ["before"]);
    }

    #[test]
    fn history_linked_to_dev_null_is_disabled_silently() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        std::os::unix::fs::symlink("/dev/null", &file).unwrap();
        let mut there = kept();
        let mut history = History::open(file, &mut there);
        history.add(&mut there, "hi");
        assert_eq!((history.warning(), all(&there)), (None, vec!["hi"]));
    }
}
