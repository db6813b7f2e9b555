//! What a question wants of a change log: a version, several, the latest, or the entry about a name. Pure.
//!
//! Only of questions that say nothing else: who asks what changed in 2.0 about cookies asks about cookies.

use super::Version;
use crate::llm::offline::interest::Interest;

mod other;

pub(in super::super) use other::{names_only_versions, of_other_version};

/// What was done to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Deed {
    Added,
    Removed,
    Deprecated,
}

impl Deed {
    const ALL: [Self; 3] = [Self::Added, Self::Removed, Self::Deprecated];

    /// As change logs say it of an entry.
    pub(super) const fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Added => &[
                "add",
                "added",
                "adds",
                "introduce",
                "introduced",
                "introduces",
                "new",
                "implement",
                "implemented",
            ],
            Self::Removed => &[
                "remove", "removed", "removes", "drop", "dropped", "drops", "delete", "deleted",
                "removal",
            ],
            Self::Deprecated => &["deprecate", "deprecated", "deprecates", "deprecation"],
        }
    }

    /// As their headings say it of many.
    pub(super) const fn headings(self) -> &'static [&'static str] {
        match self {
            Self::Added => &["added", "new feature", "features added", "additions"],
            Self::Removed => &["removed", "removal"],
            Self::Deprecated => &["deprecat"],
        }
    }

    /// As people ask for it.
    const fn asked(self) -> &'static str {
        match self {
            Self::Added => ADDED,
            Self::Removed => REMOVED,
            Self::Deprecated => DEPRECATED,
        }
    }

    pub(in super::super) const fn told(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Deprecated => "deprecated",
        }
    }
}

/// What a question wants of a change log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Wanted {
    /// All of one, of the project or of a part of it that is named.
    Version {
        version: Version,
        of: Option<String>,
    },
    /// Those behind the first, to the second.
    Between {
        after: Version,
        upto: Option<Version>,
    },
    Latest,
    /// Since when something is there, or no more.
    Entry {
        name: String,
        deed: Deed,
    },
}

impl Wanted {
    pub(in super::super) fn of(question: &str) -> Option<Self> {
        let words: Vec<Word> = question.split_whitespace().filter_map(Word::of).collect();
        entry(&words).or_else(|| versions(&words))
    }

    /// Whether a question of this interest may be about it: what was done when, the history may tell too.
    pub(in super::super) const fn fits(&self, interest: Interest) -> bool {
        match (self, interest) {
            (_, Interest::Places) | (Self::Entry { .. }, Interest::History(_)) => true,
            (_, _) => false,
        }
    }

    /// Whether it is about what is spelt as names of code are, and as words are not.
    pub(in super::super) fn is_of_code(&self) -> bool {
        let is_sign =
            |c: char| c.is_uppercase() || c.is_ascii_digit() || matches!(c, '_' | ':' | '.' | '-');
        match self {
            Self::Entry { name, .. } => name.contains(is_sign),
            Self::Version { .. } | Self::Between { .. } | Self::Latest => false,
        }
    }
}

/// A word of a question.
#[derive(Debug)]
struct Word {
    shown: String,
    lower: String,
    version: Option<Version>,
}

impl Word {
    fn of(token: &str) -> Option<Self> {
        let is_sign = |c: char| !c.is_alphanumeric() && c != '_';
        let shown = token.trim_matches(is_sign);
        let lower = shown.to_lowercase().replace('’', "'");
        (!shown.is_empty()).then(|| Self {
            version: Version::read(shown).filter(|one| one.has_parts() || lower.starts_with('v')),
            shown: shown.to_owned(),
            lower,
        })
    }

    fn is_in(&self, list: &str) -> bool {
        list.split_ascii_whitespace().any(|one| one == self.lower)
    }
}

fn any(words: &[Word], list: &str) -> bool {
    words.iter().any(|word| word.is_in(list))
}

fn versions(words: &[Word]) -> Option<Wanted> {
    // "version 2"
    let numbered = |at: usize| -> Option<Version> {
        let word = &words[at];
        let of_version = || at > 0 && words[at - 1].is_in(VERSIONS);
        word.version
            .clone()
            .or_else(|| Version::read(&word.shown).filter(|_| of_version()))
    };
    let places: Vec<(usize, Version)> = (0..words.len())
        .filter_map(|at| Some((at, numbered(at)?)))
        .collect();
    let is_version = |at: usize| places.iter().any(|(place, _)| *place == at);
    let unknown: Vec<usize> = (0..words.len())
        .filter(|&at| {
            !is_version(at)
                && ![SAID, CHANGED, NEW, NEWS, LATEST, VERSIONS]
                    .iter()
                    .any(|list| words[at].is_in(list))
        })
        .collect();
    let of = match unknown.as_slice() {
        [] => None,
        [at] if is_version(at + 1) && is_plain(&words[*at]) => Some(words[*at].shown.clone()),
        _ => return None,
    };
    let is_of_change = any(words, CHANGED) || is_of_news(words);
    let mut found: Vec<Version> = places.into_iter().map(|(_, version)| version).collect();
    match found.len() {
        0 if is_latest(words) => Some(Wanted::Latest),
        1 if !is_of_change => None,
        1 => {
            let version = found.remove(0);
            match any(words, SINCE) {
                true => Some(Wanted::Between {
                    after: version,
                    upto: None,
                }),
                false => Some(Wanted::Version { version, of }),
            }
        }
        2 if is_of_change => {
            found.sort();
            let upto = found.pop();
            let after = found.pop()?;
            Some(Wanted::Between { after, upto })
        }
        _ => None,
    }
}

fn is_plain(word: &Word) -> bool {
    word.shown.chars().all(char::is_alphabetic)
}

fn is_latest(words: &[Word]) -> bool {
    let is_of_latest = any(words, LATEST) && any(words, VERSIONS);
    is_of_news(words) || (is_of_latest && any(words, CHANGED))
}

/// "What's new", but not "what does new do"; "release notes", but not "my notes".
fn is_of_news(words: &[Word]) -> bool {
    let behind = |at: usize, list: &str| at > 0 && words[at - 1].is_in(list);
    (0..words.len()).any(|at| {
        let word = &words[at];
        (word.is_in(NEW) && behind(at, BEFORE_NEW))
            || word.is_in(NEWS)
            || (word.is_in("notes log") && behind(at, "release change"))
    })
}

fn entry(words: &[Word]) -> Option<Wanted> {
    let mut deeds = Deed::ALL
        .into_iter()
        .filter(|deed| any(words, deed.asked()));
    let deed = deeds.next().filter(|_| deeds.next().is_none())?;
    let asks_version = any(words, WHICH) && any(words, VERSIONS);
    let asks_since = any(words, SINCE) && any(words, WHEN);
    // "When is it removed?" asks how it works; "when was it?" what happened.
    let asks_when = any(words, WHEN) && any(words, DID);
    if !(asks_version || asks_since || asks_when) {
        return None;
    }
    let is_said = |word: &Word| {
        [SAID, WHICH, WHEN, DID, SINCE, VERSIONS, KINDS, deed.asked()]
            .iter()
            .any(|list| word.is_in(list))
    };
    let last = words
        .len()
        .checked_sub(2)
        .filter(|&at| words[at].is_in(PLACES) && is_plain(&words[at + 1]));
    // "When was X added to the project?"
    let end = last
        .filter(|&at| words[..at].iter().any(|word| !is_said(word)))
        .unwrap_or(words.len());
    let mut names = words[..end].iter().filter(|word| !is_said(word));
    let name = names.next().filter(|_| names.next().is_none())?;
    let name = name.shown.trim_end_matches("()").to_owned();
    (name.chars().count() > 1).then_some(Wanted::Entry { name, deed })
}

const ADDED: &str = "\
    add added adds introduce introduced introduces hinzugefügt eingeführt ajouté ajoutée introduit introduite añadió \
    añadido agregó agregado introdujo introducido";
const REMOVED: &str = "\
    remove removed removes drop dropped drops delete deleted entfernt gestrichen supprimé supprimée retiré retirée \
    eliminó eliminado quitó quitado";
const DEPRECATED: &str = "\
    deprecate deprecated deprecates veraltet missbilligt déprécié dépréciée obsolète obsoleto obsoleta";

const WHICH: &str = "which what welche welcher quelle qué que";
const WHEN: &str = "when wann quand cuándo cuando";
const DID: &str = "was were did has have wurde wurden hat été a-t-on ont fue fueron se ha han";
const SINCE: &str = "since after seit ab nach depuis après desde";
const PLACES: &str = "to from in zu aus von à de dans a del";

/// What a thing is, which its name need not say.
const KINDS: &str = "\
    setting option method function class type module extension feature trait struct macro field argument parameter \
    support command flag api endpoint attribute variable builder einstellung methode funktion klasse réglage méthode \
    fonction classe opción método función clase";

/// What says that changes are asked for.
const CHANGED: &str = "\
    change changed changes different added removed deprecated introduced fixed dropped happened geändert änderte \
    änderungen entfernt hinzugefügt changé changements changements cambió cambiado cambios";
const NEW: &str = "new neu neues nouveau neuf nuevo";
const BEFORE_NEW: &str = "what's what is are anything ist gibt es de quoi hay";
const NEWS: &str = "changelog neuerungen nouveautés novedades";
const LATEST: &str = "\
    latest newest last current recent neueste neuesten letzte letzten aktuellen dernière dernier última último";
const VERSIONS: &str = "version versions release releases versión lanzamiento";

/// What says nothing besides.
const SAID: &str = "\
    what what's whats is are was were has have had did do does will be been in of the a an it its on with and to from \
    between since after for up until show me give tell list us please can you i all any breaking release notes note log \
    change got there major important behind as now welche was hat haben sich ist sind wurde wurden in der die das den dem \
    von bis zwischen und seit ab mit zeig mir alles es gibt quoi qu'est-ce qui que a ont est sont été dans la le les de du \
    entre et depuis jusqu'à qu'y t-il y qué ha han hay en el los las desde y hasta lo";
