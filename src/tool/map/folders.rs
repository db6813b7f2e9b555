//! The tree of folders, as deep as there is room for, with the numbers of their files.

use std::collections::BTreeMap;

use super::{focus::Focus, list::Listed};
use crate::tool::text::counted;

/// Deepest level that is shown.
const MAX_DEPTH: usize = 6;

/// A folder that is shown, with all that is below it and not shown on its own.
#[derive(Debug, Default)]
struct Folder<'a> {
    files: u64,
    /// Those directly in it, while they are few.
    names: Vec<&'a str>,
}

/// As many lines as fit into so many bytes, the deepest tree that does.
pub(super) fn tree(files: &[Listed], focus: &Focus, room: usize) -> String {
    for depth in (1..=MAX_DEPTH).rev() {
        let lines = lines(files, focus, depth);
        let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
        if bytes <= room {
            return lines.join("\n");
        }
    }
    let lines = lines(files, &Focus::default(), 1);
    let more = 48;
    let mut shown = String::new();
    for (at, line) in lines.iter().enumerate() {
        if shown.len() + line.len() + more > room {
            let left = counted((lines.len() - at) as u64, "more folder", "more folders");
            shown.push_str(&format!("… {left}\n"));
            break;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown.pop();
    shown
}

fn lines(files: &[Listed], focus: &Focus, depth: usize) -> Vec<String> {
    const FEW: usize = 6;
    let mut folders: BTreeMap<&str, Folder<'_>> = BTreeMap::new();
    for file in files {
        let (folder, name) = file.shown.rsplit_once('/').unwrap_or(("", &file.shown));
        // What fits the focus is not folded.
        let shown = if !focus.is_empty() && focus.of_path(folder) > 0 {
            folder
        } else {
            upper(folder, depth)
        };
        let entry = folders.entry(shown).or_default();
        entry.files += 1;
        if shown.len() == folder.len() && entry.names.len() <= FEW {
            entry.names.push(name);
        }
    }
    let line = |(path, folder): (&&str, &Folder<'_>)| {
        let path = if path.is_empty() {
            "./".to_owned()
        } else {
            format!("{path}/")
        };
        let count = counted(folder.files, "file", "files");
        if folder.names.len() <= FEW && folder.names.len() as u64 == folder.files {
            format!("{path} {}", folder.names.join(", "))
        } else {
            format!("{path} {count}")
        }
    };
    folders.iter().map(line).collect()
}

/// The first levels of a path.
fn upper(folder: &str, depth: usize) -> &str {
    match folder.match_indices('/').nth(depth - 1) {
        Some((end, _)) => &folder[..end],
        None => folder,
    }
}
