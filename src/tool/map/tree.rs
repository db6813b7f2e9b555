//! The folder tree with file counts, as deep as the space allows.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tokio_util::sync::CancellationToken;

use super::focus::Focus;
use crate::tool::{text::counted, walk::ListedFile};

const MAX_DEPTH: usize = 6;
/// Maximum number of files named in a folder, and in the top one.
const MAX_FOLDER_FILES: usize = 6;
const MAX_TOP_FILES: usize = 40;

#[derive(Debug, Default)]
struct Folder<'a> {
    files: u64,
    names: Vec<&'a str>,
}

/// The deepest tree that fits in the given bytes; the flattest if stopped.
pub(super) fn tree(
    files: &[ListedFile],
    top: &str,
    focus: &Focus,
    room: usize,
    stop: &CancellationToken,
) -> String {
    let whole = expanded_folders(files, focus, stop);
    let flattest = top.matches('/').count() + 1;
    for depth in (flattest..=flattest.max(MAX_DEPTH)).rev() {
        if stop.is_cancelled() {
            break;
        }
        let lines = lines(files, top, &whole, depth);
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        if bytes <= room {
            return lines.join("\n");
        }
    }
    let lines = lines(files, top, &HashSet::new(), flattest);
    let more = 48;
    let mut shown = String::new();
    for (at, line) in lines.iter().enumerate() {
        if shown.len() + line.len() + more > room {
            let left = counted((lines.len() - at) as u64, "more folder");
            shown.push_str(&format!("… {left}\n"));
            break;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown.pop();
    shown
}

fn split_path(file: &ListedFile) -> (&str, &str) {
    file.shown.rsplit_once('/').unwrap_or(("", &file.shown))
}

fn expanded_folders<'a>(
    files: &'a [ListedFile],
    focus: &Focus,
    stop: &CancellationToken,
) -> HashSet<&'a str> {
    if focus.is_empty() {
        return HashSet::new();
    }
    let folders: BTreeSet<&str> = files.iter().map(|file| split_path(file).0).collect();
    let in_time = folders.into_iter().take_while(|_| !stop.is_cancelled());
    in_time.filter(|folder| focus.of_path(folder) > 0).collect()
}

fn lines(files: &[ListedFile], top: &str, whole: &HashSet<&str>, depth: usize) -> Vec<String> {
    // Files at the top describe the project, or are what the caller asked for.
    let most = |shown: &str| match shown == top {
        true => MAX_TOP_FILES,
        false => MAX_FOLDER_FILES,
    };
    let mut folders: BTreeMap<&str, Folder<'_>> = BTreeMap::new();
    for file in files {
        let (folder, name) = split_path(file);
        let shown = match whole.contains(folder) {
            true => folder,
            false => upper(folder, depth),
        };
        let entry = folders.entry(shown).or_default();
        entry.files += 1;
        if shown.len() == folder.len() && entry.names.len() <= most(shown) {
            entry.names.push(name);
        }
    }
    let line = |(path, folder): (&&str, &Folder<'_>)| {
        let few = most(path);
        let path = if path.is_empty() { "." } else { *path };
        let count = counted(folder.files, "file");
        if folder.names.len() <= few && folder.names.len() as u64 == folder.files {
            format!("{path}/ {}", folder.names.join(", "))
        } else {
            format!("{path}/ {count}")
        }
    };
    folders.iter().map(line).collect()
}

fn upper(folder: &str, depth: usize) -> &str {
    match folder.match_indices('/').nth(depth - 1) {
        Some((end, _)) => &folder[..end],
        None => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::walk::FileStamp;

    #[test]
    fn focus_matches_stay_unfolded_unless_cancelled() {
        let listed = |path: &str| ListedFile {
            shown: path.to_owned(),
            path: path.into(),
            stamp: FileStamp::default(),
        };
        let files = ["a/b/c/one.rs", "a/b/search/two.rs", "three.rs"].map(listed);
        let focus = Focus::new("search");
        let stop = CancellationToken::new();
        let render = |room| tree(&files, "", &focus, room, &stop);
        assert_eq!(render(42), "./ three.rs\na/ 1 file\na/b/search/ two.rs");
        stop.cancel();
        assert_eq!(render(100), "./ three.rs\na/ 2 files");
    }

    #[test]
    fn requested_folder_lists_files_like_the_root() {
        let listed = |path: String| ListedFile {
            path: (&path).into(),
            shown: path,
            stamp: FileStamp::default(),
        };
        let many = (0..20).map(|at| listed(format!("a/b/f{at}")));
        let files: Vec<ListedFile> = many.chain([listed("a/b/c/d/deep".to_owned())]).collect();
        let render = |top, room| {
            let stop = CancellationToken::new();
            tree(&files, top, &Focus::new(""), room, &stop)
        };
        assert!(render("a/b", 200).starts_with("a/b/ f0, f1,"));
        assert!(render("a/b", 200).ends_with("\na/b/c/d/ deep"));
        assert_eq!(render("", 200), "a/b/ 20 files\na/b/c/d/ deep");
        assert_eq!(render("a/b", 18), "a/b/ 21 files");
    }
}
