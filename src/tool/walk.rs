//! Walks over the project: selects files by scope and ignore rules, and reads them.
//!
//! Skipped are files matched by `.gitignore` and `.ignore`, hidden files unless a rule names their
//! dot, folders of version control, links, and special files. A folder whose rules cannot be read
//! or parsed is not searched.

mod rules;

use std::{
    io::Read as _,
    iter,
    panic::resume_unwind,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::SystemTime,
};

use ignore::{
    DirEntry, WalkBuilder, WalkState,
    overrides::{Override, OverrideBuilder},
};
use memchr::memchr;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    ProjectRoot, ToolError,
    text::{self, quoted},
};
use rules::Rules;

/// Maximum number of threads per walk; several walks run at a time, and sessions do other work.
const MAX_THREADS: usize = 4;
/// Extensions of files that are no text and need not be read.
const BINARY_EXTENSIONS: [&str; 24] = [
    "png", "jpg", "jpeg", "gif", "ico", "webp", "pdf", "zip", "gz", "tar", "bz2", "xz", "woff",
    "woff2", "ttf", "otf", "eot", "mo", "pyc", "so", "class", "jar", "wasm", "exe",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedFile {
    pub(super) shown: String,
    pub(super) path: PathBuf,
    pub(super) stamp: FileStamp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileStamp {
    pub(super) bytes: u64,
    pub(super) changed: Option<SystemTime>,
}

#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: Vec<ListedFile>,
    pub(super) skipped: Skipped,
    pub(super) more: u64,
    pub(super) stopped: bool,
}

/// Numbers of skipped entries, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) binary: u64,
    pub(super) too_big: u64,
    pub(super) unreadable: u64,
    pub(super) links: u64,
    pub(super) special: u64,
}

impl Skipped {
    /// Summarizes what was skipped: `skipped: 2 links, …`; `most` is the size limit in bytes.
    pub(super) fn note(&self, most: u64) -> Option<String> {
        let over = match (most / 1024, most % (1024 * 1024)) {
            (kib, 0) => format!("over {} MiB", kib / 1024),
            (kib, _) => format!("over {kib} KiB"),
        };
        let link = if self.links == 1 { "link" } else { "links" };
        let parts: Vec<String> = [
            (self.binary, "binary"),
            (self.too_big, &over),
            (self.unreadable, "unreadable"),
            (self.links, link),
            (self.special, "not regular files"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        (!parts.is_empty()).then(|| format!("skipped: {}", parts.join(", ")))
    }

    pub(super) fn count(&mut self, why: SkipReason) {
        match why {
            SkipReason::Binary => self.binary += 1,
            SkipReason::TooBig => self.too_big += 1,
            SkipReason::Unreadable => self.unreadable += 1,
        }
    }
}

fn threads() -> usize {
    let threads = thread::available_parallelism();
    threads.map_or(1, usize::from).min(MAX_THREADS)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipReason {
    Binary,
    TooBig,
    Unreadable,
}

/// Divides items among a few threads, each of which runs `work`, and returns all results.
pub(super) fn on_threads<'i, I: Sync, T: Send>(
    items: &'i [I],
    work: impl Fn(&mut dyn Iterator<Item = &'i I>) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || items.get(next.fetch_add(1, Ordering::Relaxed));
    let work = || work(&mut iter::from_fn(take));
    let others = 1..threads().min(items.len());
    thread::scope(|scope| {
        let others: Vec<_> = others.map(|_| scope.spawn(work)).collect();
        let mut made = vec![work()];
        // Propagates a panic of a thread, which is reported as a fault of the tool.
        let joined = others.into_iter().map(thread::ScopedJoinHandle::join);
        made.extend(joined.map(|part| part.unwrap_or_else(|fault| resume_unwind(fault))));
        made
    })
}

/// Reads a file that a walk found, if it is still a regular project file of at most `most` bytes
/// and contains text.
pub(super) fn read(
    root: &ProjectRoot,
    path: &Path,
    most: u64,
    buffer: &mut Vec<u8>,
) -> Result<(), SkipReason> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let extension = extension.unwrap_or("").to_ascii_lowercase();
    if BINARY_EXTENSIONS.contains(&extension.as_str()) {
        return Err(SkipReason::Binary);
    }
    let (file, size) = root.open_found(path).ok_or(SkipReason::Unreadable)?;
    if size > most {
        return Err(SkipReason::TooBig);
    }
    buffer.clear();
    // The file may grow meanwhile.
    let read = file.take(most + 1).read_to_end(buffer);
    read.map_err(|_| SkipReason::Unreadable)?;
    match buffer.len() as u64 > most {
        true => Err(SkipReason::TooBig),
        false if memchr(0, buffer).is_some() => Err(SkipReason::Binary),
        false => Ok(()),
    }
}

/// Lists at most `most` files of `scope` whose names are `wanted`.
pub(super) fn list(
    root: &ProjectRoot,
    scope: &Scope,
    most: usize,
    wanted: impl Fn(&Path) -> bool + Sync,
    stop: &CancellationToken,
) -> Listing {
    let listing = Mutex::new(Listing::default());
    let (found, wanted) = (&listing, &wanted);
    let skipped = each(scope, stop, wanted, || {
        let mut folder = None;
        move |entry: DirEntry| {
            // The walk goes by path: a folder may have been a link when its names were read.
            let about = root.about_found(entry.path(), &mut folder);
            let about = about.ok_or(SkipReason::Unreadable)?;
            let file = ListedFile {
                shown: root.display_path(entry.path()),
                stamp: FileStamp {
                    bytes: about.len(),
                    changed: about.modified().ok(),
                },
                path: entry.into_path(),
            };
            let mut listing = found.lock();
            listing.files.push(file);
            if listing.files.len() >= most.saturating_mul(2) {
                listing.truncate_to(most);
            }
            Ok(())
        }
    });
    let mut listing = listing.into_inner();
    listing.stopped = stop.is_cancelled();
    listing.skipped = skipped;
    listing.truncate_to(most);
    listing.files.sort_by(|a, b| a.shown.cmp(&b.shown));
    listing
}

impl Listing {
    fn truncate_to(&mut self, most: usize) {
        if self.files.len() > most {
            let by_path = |a: &ListedFile, b: &ListedFile| a.shown.cmp(&b.shown);
            self.files.select_nth_unstable_by(most, by_path);
            self.more += (self.files.len() - most) as u64;
            self.files.truncate(most);
        }
    }
}

/// Passes the regular files of a scope whose names are `wanted` to one visitor per thread, until
/// `stop` fires; counts what is skipped.
pub(super) fn each<V: FnMut(DirEntry) -> Result<(), SkipReason> + Send>(
    scope: &Scope,
    stop: &CancellationToken,
    wanted: &(impl Fn(&Path) -> bool + Sync),
    visitor: impl Fn() -> V,
) -> Skipped {
    let (rules, skipped) = (Arc::new(Rules::of(scope)), Mutex::new(Skipped::default()));
    walker(scope, Arc::clone(&rules)).build_parallel().run(|| {
        let (mut visit, skipped) = (visitor(), &skipped);
        Box::new(move |entry| {
            if stop.is_cancelled() {
                return WalkState::Quit;
            }
            let Ok(entry) = entry else {
                skipped.lock().unreadable += 1;
                return WalkState::Continue;
            };
            match entry.file_type() {
                Some(kind) if kind.is_dir() || !wanted(entry.path()) => {}
                Some(kind) if kind.is_file() && scope.covers(entry.path()) => {
                    visit(entry).unwrap_or_else(|why| skipped.lock().count(why));
                }
                Some(kind) if kind.is_file() => {}
                Some(kind) if kind.is_symlink() => skipped.lock().links += 1,
                _ => skipped.lock().special += 1,
            }
            WalkState::Continue
        })
    });
    let mut skipped = skipped.into_inner();
    skipped.unreadable += rules.invalid();
    skipped
}

/// Builds a walk over the readable files of a scope.
fn walker(scope: &Scope, rules: Arc<Rules>) -> WalkBuilder {
    // The crate's own git switches would read the rules of every folder up to `/`, require a
    // repository, and block on a FIFO.
    let mut builder = WalkBuilder::new(&scope.start);
    builder
        .standard_filters(false)
        .follow_links(false)
        .threads(threads())
        .filter_entry(move |entry| {
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            rules.include(entry.path(), is_dir)
        });
    builder
}

#[derive(Debug)]
pub(super) struct Scope {
    root: PathBuf,
    start: PathBuf,
    globs: Override,
    /// For the model: ` in …`, or empty for the whole project.
    pub(super) words: String,
}

impl Scope {
    /// Finds the scope that a model named.
    pub(super) fn find(root: &ProjectRoot, wanted: Option<&str>) -> Result<Self, ToolError> {
        let mut scope = Self {
            root: root.path().to_owned(),
            start: root.path().to_owned(),
            globs: Override::empty(),
            words: String::new(),
        };
        let wanted = wanted.map_or("", str::trim);
        if wanted.is_empty() {
            return Ok(scope);
        }
        match root.resolve(wanted) {
            Ok(start) if start == root.path() => {}
            Ok(start) => {
                scope.words = format!(" in `{}`", root.display_path(&start));
                scope.start = start;
            }
            Err(_) if wanted.starts_with('!') || wanted.contains(['*', '?', '[', '{']) => {
                scope.globs = globs(root.path(), wanted)?;
                scope.words = format!(" in files like {}", quoted(wanted));
            }
            Err(error) => return Err(error),
        }
        Ok(scope)
    }

    pub(super) fn top(&self) -> String {
        let below = self.start.strip_prefix(&self.root).unwrap_or(&self.start);
        below.to_string_lossy().into_owned()
    }

    pub(super) fn holds(&self, file: &Path) -> bool {
        self.is_whole() || file.starts_with(&self.start) && self.covers(file)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn is_file(&self) -> bool {
        self.start.is_file()
    }

    pub(super) fn covers(&self, file: &Path) -> bool {
        !self.globs.matched(file, false).is_ignore()
    }

    /// The folders from the start up to the repository's top (else the root), nearest first, whose
    /// ignore rules apply as well.
    fn ancestor_folders(&self) -> Vec<PathBuf> {
        let mut above = self.root.ancestors();
        let repository = above.find(|folder| folder.join(".git").exists());
        let top = repository.unwrap_or(&self.root);
        let above = self.start.ancestors().skip(1);
        let above = above.take_while(|folder| folder.starts_with(top));
        above.map(Path::to_path_buf).collect()
    }
}

/// Longest glob, in bytes, and deepest nesting of its braces, which the compiler follows
/// recursively.
const MAX_GLOB_BYTES: usize = 4 * 1024;
const MAX_BRACE_DEPTH: usize = 8;

fn globs(root: &Path, glob: &str) -> Result<Override, ToolError> {
    if glob.len() > MAX_GLOB_BYTES || depth(glob) > MAX_BRACE_DEPTH {
        refuse!(
            "invalid glob {}: it has {} bytes and braces {} deep, the limits are {MAX_GLOB_BYTES} and \
             {MAX_BRACE_DEPTH}",
            quoted(text::clipped(glob, 60).0),
            glob.len(),
            depth(glob)
        );
    }
    let bad = |error: ignore::Error| {
        let fault = match error {
            ignore::Error::Glob { err, .. } => err,
            other => other.to_string(),
        };
        let (fault, _) = text::clipped(&fault, 200);
        for_model!("invalid glob {}: {fault}", quoted(glob))
    };
    // `src/*/` means the contents.
    let below = if glob.ends_with('/') { "**" } else { "" };
    let mut builder = OverrideBuilder::new(root);
    builder.add(&format!("{glob}{below}")).map_err(bad)?;
    builder.build().map_err(bad)
}

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

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

    use super::*;

    /// A file swapped since it was listed is neither waited for nor followed.
    #[test]
    fn read_rejects_a_pipe_or_link_swapped_in_after_listing() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(other.path().join("a.rs"), "fn outside() {}\n").unwrap();
        let root = ProjectRoot::open(folder.path()).unwrap();
        let path = root.path().join("a.rs");
        type Make<'a> = &'a dyn Fn(&Path);
        let makes: [(Make<'_>, Option<&str>); 3] = [
            (
                &|path| fs::write(path, "fn a() {}").unwrap(),
                Some("fn a() {}"),
            ),
            (
                &|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
                None,
            ),
            (
                &|path| symlink(other.path().join("a.rs"), path).unwrap(),
                None,
            ),
        ];
        for (make, want) in makes {
            make(&path);
            let mut text = Vec::new();
            let read = read(&root, &path, 100, &mut text).ok();
            assert_eq!(read.map(|()| &text[..]), want.map(str::as_bytes));
            fs::remove_file(&path).unwrap();
        }
    }
}
