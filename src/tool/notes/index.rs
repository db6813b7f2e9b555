//! All notes of a folder: what is searched, and which note links to which.
//!
//! Built anew from the pages whenever one has changed; pages that have not are shared with the index
//! before. Pure.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{bm25::Corpus, note::Target, page::Page};

/// Most pages of one name that are told apart: a project may have very many called `README`.
const MOST_NAMESAKES: usize = 64;

/// A place in a note that links to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct From {
    /// Which page.
    pub(super) page: usize,
    /// Which line of it.
    pub(super) line: u32,
}

/// What was passed over when the notes were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Larger than a note may be.
    pub(super) too_big: u64,
    pub(super) binary: u64,
    /// Text that is encoded otherwise.
    pub(super) utf16: u64,
    /// Files and folders.
    pub(super) unreadable: u64,
    pub(super) links: u64,
    /// Neither files nor folders.
    pub(super) special: u64,
    /// Beyond what an index may hold.
    pub(super) too_many: u64,
    /// Notes of which only a part is searched.
    pub(super) in_part: u64,
    /// Not yet looked at when the time was over.
    pub(super) late: u64,
    /// Whether not even all names were seen.
    pub(super) unlisted: bool,
}

/// The notes of a folder.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// By path.
    pub(super) pages: Vec<Arc<Page>>,
    pub(super) passed: Passed,
    pub(super) corpus: Corpus,
    /// To which pages each one links, each once, in order.
    links: Vec<Vec<usize>>,
    /// From where each one is linked, one place for each other page.
    linked: Vec<Vec<From>>,
    /// By name, title and alias.
    names: HashMap<String, Vec<usize>>,
    /// The path of each page without its ending, as names are compared, with a slash before it.
    spelled: Vec<String>,
    /// What stands before each path where it is told.
    prefix: &'static str,
}

impl Index {
    /// Puts pages together.
    pub(super) fn new(mut pages: Vec<Arc<Page>>, passed: Passed) -> Self {
        pages.sort_by(|a, b| a.path.cmp(&b.path));
        let units = || pages.iter().flat_map(|page| &page.units);
        let (count, sum) = units().fold((0_usize, 0.0_f64), |(count, sum), unit| {
            (count + 1, sum + f64::from(unit.length))
        });
        let corpus = Corpus {
            units: count,
            mean: if count == 0 {
                0.0
            } else {
                (sum / count as f64) as f32
            },
        };
        let mut names: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, page) in pages.iter().enumerate() {
            let called = [page.stem(), page.title()].into_iter().map(str::to_owned);
            for name in called.chain(page.note.front.aliases.iter().cloned()) {
                let known = names.entry(spelled(&name)).or_default();
                if known.last() != Some(&at) && known.len() < MOST_NAMESAKES {
                    known.push(at);
                }
            }
        }
        let path = |page: &Arc<Page>| spelled(&format!("/{}/{}", page.folder(), page.stem()));
        let mut index = Self {
            spelled: pages.iter().map(path).collect(),
            prefix: "",
            links: vec![Vec::new(); pages.len()],
            linked: vec![Vec::new(); pages.len()],
            pages,
            passed,
            corpus,
            names,
        };
        index.follow_links();
        index
    }

    /// The same, whose paths are told with this before them.
    pub(super) fn told_with(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

    /// The path of a page as it is told.
    pub(super) fn shown(&self, page: usize) -> String {
        let path = self.pages.get(page).map_or("", |page| &page.path);
        format!("{}{path}", self.prefix)
    }

    /// A name that somebody gave, without what stands before each path.
    pub(super) fn bare<'a>(&self, name: &'a str) -> &'a str {
        name.strip_prefix(self.prefix).unwrap_or(name).trim_start()
    }

    fn follow_links(&mut self) {
        for from in 0..self.pages.len() {
            let page = Arc::clone(&self.pages[from]);
            let mut seen = HashSet::from([from]);
            // A note may link to one place very often, and a place may have very many namesakes.
            let mut tried = HashSet::new();
            for link in &page.note.links {
                let name = match &link.to {
                    Target::Path(path) => (true, Cow::Borrowed(path.as_str())),
                    Target::Name(name) => (false, Cow::Owned(spelled(name))),
                };
                if !tried.insert(name) {
                    continue;
                }
                let Some(to) = self.resolve(from, &link.to) else {
                    continue;
                };
                if seen.insert(to) {
                    self.links[from].push(to);
                    let place = From {
                        page: from,
                        line: link.line,
                    };
                    self.linked[to].push(place);
                }
            }
        }
    }

    /// The links that lead to no page, by page and line.
    pub(super) fn dead_links(&self) -> Vec<(From, &Target)> {
        let mut dead = Vec::new();
        for (page, from) in self.pages.iter().enumerate() {
            let links = from.note.links.iter();
            let leads_nowhere = links.filter(|link| self.resolve(page, &link.to).is_none());
            let place = |line| From { page, line };
            dead.extend(leads_nowhere.map(|link| (place(link.line), &link.to)));
        }
        dead
    }

    /// Which page a link means, as Obsidian and others have it.
    fn resolve(&self, from: usize, target: &Target) -> Option<usize> {
        match target {
            Target::Path(path) => {
                let path = joined(self.pages[from].folder(), path)?;
                self.at_path(&path)
                    .or_else(|| self.at_path(&format!("{path}.md")))
            }
            Target::Name(name) => {
                let folder = self.pages[from].folder();
                let stem = spelled(last_part(name));
                let near = |at: &usize| {
                    let page = &self.pages[*at];
                    let called_so = last_part(&self.spelled[*at]) == stem;
                    (!called_so, page.folder() != folder, page.path.len(), *at)
                };
                self.called(name).into_iter().min_by_key(near)
            }
        }
    }

    /// The page at a path.
    pub(super) fn at_path(&self, path: &str) -> Option<usize> {
        self.pages
            .binary_search_by(|page| page.path.as_str().cmp(path))
            .ok()
    }

    /// All pages at a path: names that differ may be shown alike.
    pub(super) fn all_at(&self, path: &str) -> &[Arc<Page>] {
        let first = self.pages.partition_point(|page| *page.path < *path);
        let (_, rest) = self.pages.split_at(first);
        &rest[..rest.partition_point(|page| *page.path == *path)]
    }

    /// All pages of this name, title or alias; a name may have folders before it.
    pub(super) fn called(&self, name: &str) -> Vec<usize> {
        let bare = name.trim().trim_end_matches('/');
        let bare = bare.strip_suffix(".md").unwrap_or(bare);
        // Also a title with a slash in it.
        let whole = self.names.get(&spelled(bare)).cloned().unwrap_or_default();
        if !whole.is_empty() || !bare.contains('/') {
            return whole;
        }
        let end = format!("/{}", spelled(bare.trim_start_matches('/')));
        let parts = self
            .names
            .get(&spelled(last_part(bare)))
            .into_iter()
            .flatten();
        let ends = |at: &&usize| self.spelled[**at].ends_with(&end);
        parts.filter(ends).copied().collect()
    }

    /// To which pages one links.
    pub(super) fn links(&self, page: usize) -> &[usize] {
        self.links.get(page).map_or(&[], Vec::as_slice)
    }

    /// From where one is linked.
    pub(super) fn linked(&self, page: usize) -> &[From] {
        self.linked.get(page).map_or(&[], Vec::as_slice)
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A name as it is compared: case and spaces do not count, nor does how an accent is written.
pub(super) fn spelled(name: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    crate::words::folded(&words.join(" "))
}

/// A path seen from a folder; none if it leads out of the folder of notes.
fn joined(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::notes::page::Stamp;

    pub(super) fn index(files: &[(&str, &str)]) -> Index {
        let stamp = Stamp {
            changed: None,
            size: 0,
        };
        let page = |(path, text): &(&str, &str)| {
            Arc::new(Page::read((*path).to_owned(), stamp, text, |_| true))
        };
        Index::new(files.iter().map(page).collect(), Passed::default())
    }

    #[test]
    fn links_lead_both_ways() {
        let index = index(&[
            (
                "a.md",
                "[b](sub/b.md)\n[[C note]]\n[b again](sub/b.md)\n[[a]] [gone](gone.md)\n",
            ),
            ("sub/b.md", "[up](../a.md) [out](../../x.md) [c](c)\n"),
            ("sub/c.md", "---\naliases: [C note]\n---\n"),
            ("z/b.md", "[[b]] [[sub/b]]\n"),
        ]);
        let paths = |pages: &[usize]| -> Vec<&str> {
            pages
                .iter()
                .map(|&at| index.pages[at].path.as_str())
                .collect()
        };
        let of = |path| index.at_path(path).unwrap();
        assert_eq!(paths(index.links(of("a.md"))), ["sub/b.md", "sub/c.md"]);
        assert_eq!(paths(index.links(of("sub/b.md"))), ["a.md", "sub/c.md"]);
        // The nearer of two, then the one that is named with its folder.
        assert_eq!(paths(index.links(of("z/b.md"))), ["sub/b.md"]);
        let from: Vec<_> = index.linked(of("sub/c.md")).to_vec();
        let place = |path, line| From {
            page: of(path),
            line,
        };
        assert_eq!(from, [place("a.md", 2), place("sub/b.md", 1)]);
    }

    #[test]
    fn notes_go_by_name_title_and_alias() {
        let index = index(&[
            ("a/plan.md", "# The Plan\n"),
            ("b/Plan.md", "---\naliases: Größe\n---\n"),
            ("c/either.md", "# this/that\n"),
        ]);
        for (name, want) in [
            ("plan", vec![0, 1]),
            ("the  PLAN", vec![0]),
            ("GRÖSSE", vec![1]),
            ("a/plan", vec![0]),
            ("b/plan.md", vec![1]),
            ("this/that", vec![2]),
            ("x/plan", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(index.called(name), want, "{name}");
        }
    }

    /// It would take minutes, were each link looked up for itself.
    #[test]
    fn very_many_links_to_namesakes_are_followed_at_once() {
        let links = "[[A]] [[x/a]] ".repeat(400);
        let mut files: Vec<(String, &str)> =
            (0..200).map(|n| (format!("n{n}.md"), &*links)).collect();
        files.extend((0..64).map(|n| (format!("{n}/x/a.md"), "")));
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        let index = index(&files);
        let to = index.links(index.at_path("n7.md").unwrap());
        let to: Vec<&str> = to.iter().map(|&at| &*index.pages[at].path).collect();
        assert_eq!(to, ["0/x/a.md"]);
    }

    #[test]
    fn nothing_is_an_index_too() {
        let index = index(&[]);
        assert_eq!(
            (index.corpus.units, index.at_path("a"), index.links(3)),
            (0, None, &[][..])
        );
    }
}
