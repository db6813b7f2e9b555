//! What a model may have meant by a name that does not exist. Looks into one folder only.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

/// Most names that are looked at in a folder.
const MAX_NAMES: usize = 10_000;

/// The name in `folder` that differs from `missing` only by case, else the first one of the same
/// stem (`config.yml` for `config.yaml`).
pub(super) fn nearest(folder: &Path, missing: &OsStr) -> Option<PathBuf> {
    let wanted = missing.to_string_lossy().to_lowercase();
    let wanted_stem = stem(&wanted);
    let mut near: Vec<(Nearness, PathBuf)> = fs::read_dir(folder)
        .ok()?
        .take(MAX_NAMES)
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name();
            let lower = name.to_string_lossy().to_lowercase();
            if lower == wanted {
                Some((Nearness::Case, name.into()))
            } else if stem(&lower) == wanted_stem {
                Some((Nearness::Stem, name.into()))
            } else {
                None
            }
        })
        .collect();
    near.sort();
    near.into_iter().next().map(|(_, name)| name)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    Case,
    Stem,
}

fn stem(name: &str) -> &str {
    // A leading dot belongs to the name: `.env` has no extension.
    match name.rfind('.') {
        Some(dot) if dot > 0 => &name[..dot],
        Some(_) | None => name,
    }
}
