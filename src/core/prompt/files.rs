//! Prompt files: built-in ones and a folder that overlays them, read once.

use std::{borrow::Cow, ffi::OsStr, fs, io, path::Path};

use super::{
    error::{BrokenFile, Error, FileFault},
    segment::{REGISTRY, Segment},
};

/// The origin of a prompt file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Compiled in.
    Builtin,
    /// Read from this path.
    Folder(String),
}

/// The template of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// Segment of the file.
    pub segment: &'static Segment,
    /// Origin of the text.
    pub origin: Origin,
    /// Text with `\n` line ends.
    pub text: Cow<'static, str>,
}

impl PromptFile {
    pub(super) fn broken(&self, line: Option<usize>, fault: FileFault) -> BrokenFile {
        let file = match &self.origin {
            Origin::Builtin => self.segment.file.to_owned(),
            Origin::Folder(path) => path.clone(),
        };
        BrokenFile { file, line, fault }
    }
}

pub(super) fn builtin() -> Vec<PromptFile> {
    let file = |segment: &'static Segment| PromptFile {
        segment,
        origin: Origin::Builtin,
        text: unix_lines(Cow::Borrowed(segment.builtin)),
    };
    REGISTRY.iter().map(file).collect()
}

/// The built-in files overlaid with the folder's, and the folder's faults. An unreadable file
/// leaves the built-in one in place, so that the rest can be checked.
pub(super) fn overlaid(folder: &Path) -> Result<(Vec<PromptFile>, Vec<BrokenFile>), Error> {
    let entries = list(folder).map_err(|error| Error::Folder {
        folder: folder.display().to_string(),
        reason: error.to_string(),
    })?;
    let (mut files, mut problems) = (builtin(), Vec::new());
    for name in entries {
        let path = folder.join(&name);
        let shown = path.display().to_string();
        let mut known = files.iter_mut();
        let known = known.find(|file| OsStr::new(file.segment.file) == name);
        let found = known.ok_or((None, FileFault::UnknownName));
        match found.and_then(|file| Ok((file, read(&path)?))) {
            Ok((file, text)) => {
                file.text = Cow::Owned(text);
                file.origin = Origin::Folder(shown);
            }
            Err((line, fault)) => {
                let file = shown;
                problems.push(BrokenFile { file, line, fault });
            }
        }
    }
    Ok((files, problems))
}

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
    if text.chars().all(|c| c.is_whitespace() || c == BOM) {
        return Err((None, FileFault::Empty));
    }
    Ok(unix_lines(Cow::Owned(text)).into_owned())
}

/// A byte order mark, which some editors write.
const BOM: char = '\u{feff}';

/// Gives equal bytes on all systems.
fn unix_lines(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.contains('\r') || text.starts_with(BOM) {
        Cow::Owned(text.trim_start_matches(BOM).replace("\r\n", "\n"))
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
