//! The notes of one folder, read and kept ready; shared by all sessions of a process.
//!
//! Every call looks which files there are and reads those again whose size or time of change is
//! another one. What does not fit is left out and counted.
//!
//! **Invariants:** memory is bounded by the settings and by `room`, which is asked after each section,
//! whatever the files are; a file is opened only if it is a regular one inside of the folder.

mod text;

use std::{
    collections::HashSet,
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokio_util::sync::CancellationToken;

use super::{
    NotesSettings,
    index::{Index, Passed},
    page::{Page, Stamp},
    room::{Missed, Room},
    walk,
};
use crate::tool::{
    Progress, ProjectRoot, RootError, ToolError, Work,
    code::{place::Place, walk::MAX_THREADS},
    text::quoted,
};

/// What stands before the paths of notes that lie outside of the project: there, a file of the project
/// may have the same path, and a citation would be taken for one of it.
pub(in crate::tool) const OUTSIDE: &str = "notes:";
/// A folder of notes.
#[derive(Debug)]
pub struct Notes {
    /// What paths are relative to: the project, if the notes lie in it.
    root: ProjectRoot,
    /// The notes, canonical, in the root.
    folder: PathBuf,
    /// What stands before each path that is told.
    prefix: &'static str,
    pub(super) settings: NotesSettings,
    /// The folder by itself, if it may be written into.
    pub(super) writable: Option<ProjectRoot>,
    /// Held while notes are read, so that calls of one turn do not all read them; who waits for it
    /// does so no longer than the deadline of the one who reads.
    index: Mutex<Arc<Index>>,
    /// Told of a reading that may take long.
    progress: Progress,
}

/// How a file was found.
enum Read {
    Page(Box<Page>),
    TooBig,
    Binary,
    Utf16,
    Unreadable,
    TooMany,
    Late,
}

impl Notes {
    /// The notes of a project: all that it has written down. Check the settings first
    /// ([`NotesSettings::validate`]).
    #[must_use]
    pub fn of_project(project: ProjectRoot, settings: NotesSettings) -> Self {
        Self {
            folder: project.path().to_path_buf(),
            prefix: "",
            root: project,
            settings,
            writable: None,
            index: Mutex::default(),
            progress: Progress::default(),
        }
    }

    /// The notes of a folder of their own; a relative path starts at the project. If it lies in the
    /// project, their paths are those of the project; if it lies elsewhere, they begin with `notes:`.
    ///
    /// # Errors
    /// The folder cannot be read, or is none.
    pub fn open(
        folder: &Path,
        project: Option<&ProjectRoot>,
        settings: NotesSettings,
    ) -> Result<Self, RootError> {
        let own = ProjectRoot::open(&from_project(folder, project))?;
        let canonical = own.path().to_path_buf();
        // Also by the name that it is told by, which may be lossy.
        let around = project.filter(|project| {
            let again = project.resolve(&project.shown(&canonical));
            again.is_ok_and(|found| found == canonical)
        });
        let is_outside = project.is_some() && around.is_none();
        Ok(Self {
            prefix: if is_outside { OUTSIDE } else { "" },
            root: around.cloned().unwrap_or_else(|| own.clone()),
            folder: canonical,
            settings,
            writable: None,
            index: Mutex::default(),
            progress: Progress::default(),
        })
    }

    /// The same, and `note_write` may write into the folder; never into a project as such.
    ///
    /// # Errors
    /// As [`Self::open`], and [`RootError::HoldsProject`] where the folder is the project or holds it.
    pub fn open_to_write(
        folder: &Path,
        project: Option<&ProjectRoot>,
        settings: NotesSettings,
    ) -> Result<Self, RootError> {
        let own = ProjectRoot::open(&from_project(folder, project))?;
        if project.is_some_and(|project| project.path().starts_with(own.path())) {
            return Err(RootError::HoldsProject {
                path: folder.to_owned(),
            });
        }
        Ok(Self {
            writable: Some(own),
            ..Self::open(folder, project, settings)?
        })
    }

    /// The same, and how far a reading of them is that takes long is told there.
    #[must_use]
    pub fn showing(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Where they lie, for the description of a tool.
    pub(super) fn whereabouts(&self) -> &'static str {
        match self.prefix == OUTSIDE {
            true => {
                " The notes lie outside of the project, where no other search looks; their paths begin \
                     with `notes:`."
            }
            false => "",
        }
    }

    /// The index as the files are now. What could not be read by the time that `stop` fires is
    /// missing in it, and read next time.
    pub(super) fn fresh(&self, stop: &CancellationToken) -> Arc<Index> {
        // What a panic left behind is whole: the index is only ever replaced.
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(newer) = self.refreshed(&index, stop) {
            *index = Arc::new(newer);
        }
        Arc::clone(&index)
    }

    /// None if nothing has changed.
    fn refreshed(&self, old: &Index, stop: &CancellationToken) -> Option<Index> {
        let work = self.progress.begin("reading the notes", None);
        let listing = self.list(stop);
        let mut passed = Passed {
            links: listing.links,
            special: listing.special,
            unreadable: listing.unreadable,
            unlisted: listing.cut,
            ..Passed::default()
        };
        let mut listed: Vec<(String, PathBuf, Stamp)> = listing
            .files
            .into_iter()
            .map(|(path, stamp)| (self.root.shown(&path), path, stamp))
            .collect();
        // Where not all fit, what lies higher is more likely meant.
        listed.sort_by_cached_key(|(shown, ..)| (shown.matches('/').count(), shown.clone()));
        let (mut files, mut bytes) = (0_usize, 0_u64);
        let (mut pages, mut changed) = (Vec::new(), Vec::new());
        for (shown, path, stamp) in listed {
            if stamp.size > self.settings.max_file_bytes {
                passed.too_big += 1;
                continue;
            }
            if files >= self.settings.max_files
                || bytes + stamp.size > self.settings.max_total_bytes
            {
                passed.too_many += 1;
                continue;
            }
            files += 1;
            bytes += stamp.size;
            let mut known = old.all_at(&shown).iter();
            match known.find(|page| page.stamp == stamp && self.place_of(page) == path) {
                Some(page) => pages.push(Arc::clone(page)),
                None => changed.push((shown, path)),
            }
        }
        if passed.unlisted {
            // Not seen is not gone.
            let seen = pages.iter().map(|page: &Arc<Page>| page.path.clone());
            let seen: HashSet<String> = seen
                .chain(changed.iter().map(|(shown, _)| shown.clone()))
                .collect();
            let unseen = old.pages.iter().filter(|page| !seen.contains(&page.path));
            pages.extend(unseen.cloned());
        }
        let kept = pages.len();
        let room = Room::beside(pages.iter().map(|page| page.weight()).sum());
        work.of(changed.len() as u64);
        for read in self.read_all(&changed, &room, &work, stop) {
            match read {
                Read::Page(page) => pages.push(Arc::from(page)),
                Read::TooBig => passed.too_big += 1,
                Read::Binary => passed.binary += 1,
                Read::Utf16 => passed.utf16 += 1,
                Read::Unreadable => passed.unreadable += 1,
                Read::TooMany => passed.too_many += 1,
                Read::Late => passed.late += 1,
            }
        }
        passed.in_part = pages.iter().filter(|page| !page.is_whole).count() as u64;
        // Pages that are kept are those of before; as many as there were are all of them.
        let same = passed == old.passed && pages.len() == kept && kept == old.pages.len();
        (!same).then(|| Index::new(pages, passed).told_with(self.prefix))
    }

    fn list(&self, stop: &CancellationToken) -> walk::Listing {
        let part = (self.folder != self.root.path()).then(|| self.root.shown(&self.folder));
        match Place::find(&self.root, part.as_deref()) {
            Ok(place) => walk::list(&place, stop),
            // Gone, or something else by now.
            Err(_) => walk::Listing {
                unreadable: 1,
                ..walk::Listing::default()
            },
        }
    }

    /// Reads files on a few threads.
    fn read_all(
        &self,
        files: &[(String, PathBuf)],
        room: &Room,
        progress: &Work,
        stop: &CancellationToken,
    ) -> Vec<Read> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut read = Vec::new();
            while let Some((shown, path)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                read.push(self.read(shown, path, room, stop));
                progress.add(1);
            }
            read
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(MAX_THREADS).min(files.len() / 8 + 1);
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            for other in others {
                // A thread that panicked panics here too: that is a fault of the tool, and told as one.
                match other.join() {
                    Ok(read) => all.extend(read),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    }

    fn read(&self, shown: &str, path: &Path, room: &Room, stop: &CancellationToken) -> Read {
        if stop.is_cancelled() {
            return Read::Late;
        }
        if room.is_full() {
            return Read::TooMany;
        }
        let (text, stamp) = match self.text(path) {
            Ok(read) => read,
            Err(read) => return read,
        };
        match room.page(shown, stamp, &text, stop) {
            Ok(mut page) => {
                page.real = (self.place_of(&page) != path).then(|| path.into());
                Read::Page(Box::new(page))
            }
            Err(Missed::NoRoom) => Read::TooMany,
            Err(Missed::NoTime) => Read::Late,
        }
    }

    /// A note that was just there, open for reading; none if it is no regular file of ours by now.
    pub(super) fn opened(&self, path: &Path) -> Option<File> {
        self.root.open_found(path).map(|(file, _)| file)
    }

    /// A path that a model gave, relative to the folder itself.
    pub(super) fn below_folder(&self, given: &str) -> String {
        let prefix = format!("{}/", self.root.shown(&self.folder));
        let given = self.bare(given);
        given.strip_prefix(&prefix).unwrap_or(given).to_owned()
    }

    /// A path in the folder, as it is told.
    pub(super) fn shown(&self, path: &Path) -> String {
        format!("{}{}", self.prefix, self.root.shown(path))
    }

    /// A path that a model gave, without what it is told with.
    fn bare<'a>(&self, given: &'a str) -> &'a str {
        let given = given.trim();
        given
            .strip_prefix(self.prefix)
            .unwrap_or(given)
            .trim_start()
    }

    /// The text of a page as it is now; none if it has changed since, or cannot be read.
    pub(super) fn text_of(&self, page: &Page) -> Option<String> {
        let (text, stamp) = self.text(&self.place_of(page)).ok()?;
        (stamp == page.stamp).then_some(text)
    }

    /// Where a page lies, which its path tells only if it is shown as it is.
    fn place_of(&self, page: &Page) -> PathBuf {
        let told = || self.root.path().join(&page.path);
        page.real.as_deref().map_or_else(told, Path::to_path_buf)
    }

    /// Its lines.
    pub(super) fn lines_of(&self, page: &Page) -> Option<Vec<String>> {
        let text = self.text_of(page)?;
        Some(lines(&text))
    }

    /// A path that a model gave, relative to the project or to the notes, as pages have it; empty for
    /// all of them.
    pub(super) fn place(&self, given: &str) -> Result<String, ToolError> {
        let given = self.bare(given);
        let prefix = self.root.shown(&self.folder);
        let below = (prefix != ".").then(|| format!("{prefix}/{given}"));
        let mut trouble = None;
        for path in [Some(given.to_owned()), below].into_iter().flatten() {
            match self.root.resolve(&path) {
                Ok(found) if found == self.root.path() => return Ok(String::new()),
                Ok(found) if found.starts_with(&self.folder) => return Ok(self.root.shown(&found)),
                Ok(_) => {}
                Err(error) => drop(trouble.get_or_insert(error)),
            }
        }
        if self.prefix == OUTSIDE {
            // Words about the project would lead astray.
            return Err(ToolError::Tell(format!(
                "{} is no folder and no note among the notes, whose paths begin with `{OUTSIDE}`",
                quoted(given)
            )));
        }
        Err(trouble.unwrap_or_else(|| {
            ToolError::Tell(format!(
                "{} lies outside of the folder of notes, which is `{prefix}`",
                quoted(given)
            ))
        }))
    }
}

/// A folder as it is configured: a relative one is seen from the project.
fn from_project(folder: &Path, project: Option<&ProjectRoot>) -> PathBuf {
    project.map_or_else(
        || folder.to_path_buf(),
        |project| project.path().join(folder),
    )
}

/// The lines of a text as they are shown.
pub(super) fn lines(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().map(str::to_owned).collect()
}
