//! A file of notes as text: only what is text in UTF-8, and no larger than a note may be.

use std::{io::Read as _, path::Path};

use memchr::memchr;

use super::{Notes, Read, Stamp};
use crate::tool::files::is_utf16;

impl Notes {
    /// The text of a file, lossy.
    pub(super) fn text(&self, path: &Path) -> Result<(String, Stamp), Read> {
        let (file, _) = self.root.open_found(path).ok_or(Read::Unreadable)?;
        let unreadable = |_| Read::Unreadable;
        let stamp = Stamp::of(&file.metadata().map_err(unreadable)?);
        let most = self.settings.max_file_bytes;
        let mut bytes = Vec::new();
        // It may grow meanwhile.
        (&file)
            .take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > most {
            return Err(Read::TooBig);
        }
        if is_utf16(&bytes) {
            return Err(Read::Utf16);
        }
        if memchr(0, &bytes).is_some() {
            return Err(Read::Binary);
        }
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned());
        Ok((text, stamp))
    }
}
