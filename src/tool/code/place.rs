//! Where to look: a folder or file of the project, or all files that a glob covers.

use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};

use crate::tool::{
    ProjectRoot, ToolError,
    text::{self, quoted},
};

/// A part of the project.
#[derive(Debug)]
pub(in crate::tool) struct Place {
    root: PathBuf,
    start: PathBuf,
    globs: Override,
    /// For the model: ` in …`, or nothing for the whole project.
    words: String,
}

impl Place {
    /// Finds the place that a model named. What exists under that very name is no glob, brackets
    /// or not (`app/[id]/page.tsx`).
    pub(in crate::tool) fn find(
        root: &ProjectRoot,
        wanted: Option<&str>,
    ) -> Result<Self, ToolError> {
        let whole = |globs, words| Self {
            root: root.path().to_owned(),
            start: root.path().to_owned(),
            globs,
            words,
        };
        let wanted = wanted.map_or("", str::trim);
        if wanted.is_empty() {
            return Ok(whole(Override::empty(), String::new()));
        }
        match root.resolve(wanted) {
            Ok(start) => {
                let words = if start == root.path() {
                    String::new()
                } else {
                    format!(" in `{}`", root.shown(&start))
                };
                Ok(Self {
                    start,
                    ..whole(Override::empty(), words)
                })
            }
            Err(_) if wanted.starts_with('!') || wanted.contains(['*', '?', '[', '{']) => {
                let globs = globs(root.path(), wanted)?;
                Ok(whole(globs, format!(" in files like {}", quoted(wanted))))
            }
            Err(error) => Err(error),
        }
    }

    /// Where the walk begins.
    pub(in crate::tool) fn start(&self) -> &Path {
        &self.start
    }

    /// Where the walk begins, relative to the project and with slashes; empty for the whole.
    pub(in crate::tool) fn top(&self) -> String {
        let below = self.start.strip_prefix(&self.root).unwrap_or(&self.start);
        let parts = below.components();
        let parts = parts.map(|part| part.as_os_str().to_string_lossy());
        parts.collect::<Vec<_>>().join("/")
    }

    /// Whether a file of the project is in it.
    pub(super) fn holds(&self, file: &Path) -> bool {
        self.is_whole() || file.starts_with(&self.start) && self.covers(file)
    }

    /// Whether it is the whole project.
    pub(super) fn is_whole(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a single file is meant.
    pub(super) fn is_file(&self) -> bool {
        self.start.is_file()
    }

    /// Whether a file below the start is meant.
    pub(in crate::tool) fn covers(&self, file: &Path) -> bool {
        !self.globs.matched(file, false).is_ignore()
    }

    /// The folders between the start and the top of the repository (else the root), nearest first:
    /// their ignore rules hold here too.
    pub(super) fn folders_above(&self) -> Vec<PathBuf> {
        let repository = self
            .root
            .ancestors()
            .find(|folder| folder.join(".git").exists());
        let top = repository.unwrap_or(&self.root);
        self.start
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(top))
            .map(Path::to_path_buf)
            .collect()
    }

    /// How the model is told where was looked.
    pub(in crate::tool) fn words(&self) -> &str {
        &self.words
    }
}

/// Longest glob, in bytes, and how deep its braces may lie in one another: what compiles them goes as deep.
const LONGEST: usize = 4 * 1024;
const DEEPEST: usize = 8;

fn globs(root: &Path, glob: &str) -> Result<Override, ToolError> {
    if glob.len() > LONGEST || depth(glob) > DEEPEST {
        return Err(ToolError::Tell(format!(
            "{} is no usable glob: it has {} bytes and braces {} deep, allowed are {LONGEST} and {DEEPEST}",
            quoted(text::clipped(glob, 60).0),
            glob.len(),
            depth(glob)
        )));
    }
    let bad = |error: ignore::Error| {
        let fault = match error {
            ignore::Error::Glob { err, .. } => err,
            other => other.to_string(),
        };
        let (fault, _) = text::clipped(&fault, 200);
        ToolError::Tell(format!("{} is no usable glob: {fault}", quoted(glob)))
    };
    // `src/*/` means what is in there.
    let below = if glob.ends_with('/') { "**" } else { "" };
    let mut builder = OverrideBuilder::new(root);
    builder.add(&format!("{glob}{below}")).map_err(bad)?;
    builder.build().map_err(bad)
}

/// How many braces are open at most.
fn depth(glob: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    for c in glob.bytes() {
        match c {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}
