//! Whether nobody but the one who runs this program, and root, can have put a file where it is.

use std::{
    fs::{self, File, Metadata},
    io,
    path::Path,
};

/// Who else may have a say in what a file or a directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stranger {
    /// Its owner, who is neither root nor who runs this.
    Owner,
    /// Those of its group, or all.
    Writers,
}

/// Who else can have written to this file.
pub(super) fn of_file(file: &File) -> io::Result<Option<Stranger>> {
    Ok(stranger(&file.metadata()?, |mode| mode & WRITE != 0))
}

/// Who else can put other files into this directory in the place of those of their owners. Where only owners
/// may take files away, others may write to it: what they put there is theirs, and told by that.
pub(super) fn of_directory(directory: &Path) -> io::Result<Option<Stranger>> {
    let lets_in = |mode| mode & WRITE != 0 && mode & STICKY == 0;
    Ok(stranger(&fs::metadata(directory)?, lets_in))
}

/// Others than the owner may write.
const WRITE: u32 = 0o022;
/// Only owners may take files away.
const STICKY: u32 = 0o1000;

#[cfg(unix)]
fn stranger(found: &Metadata, lets_in: impl Fn(u32) -> bool) -> Option<Stranger> {
    use std::os::unix::fs::MetadataExt as _;
    let own = rustix::process::geteuid().as_raw();
    if !is_trusted(found.uid(), own) {
        return Some(Stranger::Owner);
    }
    lets_in(found.mode()).then_some(Stranger::Writers)
}

#[cfg(not(unix))]
fn stranger(_: &Metadata, _: impl Fn(u32) -> bool) -> Option<Stranger> {
    None
}

/// Root may do anything in any case.
#[cfg(unix)]
const fn is_trusted(owner: u32, own: u32) -> bool {
    owner == own || owner == 0
}

#[cfg(all(test, unix))]
mod tests {
    use super::is_trusted;

    #[test]
    fn only_root_and_who_runs_this_are_trusted() {
        for (owner, own, trusted) in [
            (1_000, 1_000, true),
            (0, 1_000, true),
            (0, 0, true),
            (1_001, 1_000, false),
            (1_000, 0, false),
        ] {
            assert_eq!(is_trusted(owner, own), trusted, "{owner} for {own}");
        }
    }
}
