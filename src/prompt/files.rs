//! Where the texts come from: the built-in files, and a folder that overlays them file by file.
//!
//! Reads a folder once, at start or reload; nothing here watches it. Texts are not looked into
//! beyond being text: templates are checked in [`super::template`].

use std::{borrow::Cow, ffi::OsStr, fs, io, path::Path};

use super::{
    error::{Broken, Error, FileFault},
    segment::{REGISTRY, Segment},
    tokens,
};

/// Where a text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It is compiled in.
    Builtin,
    /// It was read from this path.
    Folder(String),
}

/// The text of a segment, before it is rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// Its segment.
    pub segment: &'static Segment,
    /// Where it comes from.
    pub origin: Origin,
    /// What it holds, with line ends as `\n`.
    pub text: Cow<'static, str>,
}

impl PromptFile {
    /// Its size as written, by the estimate of spec 5; a rendered segment may differ.
    #[must_use]
    pub fn token_estimate(&self) -> u64 {
        tokens(self.text.chars().count())
    }

    /// The fault of a required segment that came out blank.
    pub(super) fn blank(&self) -> Broken {
        self.broken(None, FileFault::Blank)
    }

    /// A fault in this file.
    pub(super) fn broken(&self, line: Option<usize>, fault: FileFault) -> Broken {
        let file = match &self.origin {
            Origin::Builtin => self.segment.file.to_owned(),
            Origin::Folder(path) => path.clone(),
        };
        Broken { file, line, fault }
    }
}

/// The built-in files, in the order of the prompt.
pub(super) fn builtin() -> Vec<PromptFile> {
    REGISTRY
        .iter()
        .map(|segment| PromptFile {
            segment,
            origin: Origin::Builtin,
            text: unix_lines(Cow::Borrowed(segment.builtin)),
        })
        .collect()
}

/// The built-in files with those of a folder in their places, and what is wrong in the folder.
/// Where a file of the folder is not text, the built-in one stays, so that the rest can be checked.
pub(super) fn overlaid(folder: &Path) -> Result<(Vec<PromptFile>, Vec<Broken>), Error> {
    let entries = list(folder).map_err(|error| Error::Folder {
        folder: folder.display().to_string(),
        reason: error.to_string(),
    })?;
    let (mut files, mut problems) = (builtin(), Vec::new());
    for name in entries {
        let path = folder.join(&name);
        let shown = path.display().to_string();
        match files
            .iter_mut()
            .find(|file| OsStr::new(file.segment.file) == name)
        {
            None => problems.push(Broken {
                file: shown,
                line: None,
                fault: FileFault::UnknownName,
            }),
            Some(file) => match read(&path) {
                Ok(text) => {
                    file.text = Cow::Owned(text);
                    file.origin = Origin::Folder(shown);
                }
                Err((line, fault)) => problems.push(Broken {
                    file: shown,
                    line,
                    fault,
                }),
            },
        }
    }
    Ok((files, problems))
}

/// The names in a folder, sorted; those that begin with a dot belong to other programs.
fn list(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .filter(|name| !matches!(name, Ok(name) if name.as_encoded_bytes().starts_with(b".")))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn read(path: &Path) -> Result<String, (Option<usize>, FileFault)> {
    let bytes = fs::read(path).map_err(|error| (None, FileFault::Unreadable(error.to_string())))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        (Some(line), FileFault::NotUtf8)
    })?;
    if text
        .trim_matches(|c: char| c.is_whitespace() || c == BOM)
        .is_empty()
    {
        return Err((None, FileFault::Empty));
    }
    Ok(unix_lines(Cow::Owned(text)).into_owned())
}

/// Editors on some systems put it at the beginning of a file.
const BOM: char = '\u{feff}';

/// The same bytes for the same prompt, whichever system it was written or checked out on.
fn unix_lines(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.contains('\r') || text.starts_with(BOM) {
        Cow::Owned(text.trim_start_matches(BOM).replace("\r\n", "\n"))
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
