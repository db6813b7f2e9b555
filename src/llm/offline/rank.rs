//! Which passages of the evidence answer best.
//!
//! A passage is worth the terms that it has, the rarer the more; what defines them and what its
//! path says add to that, tests, copies of others' code and lock files take from it. Whole numbers
//! only, and ties broken by path and line: the same evidence gives the same order. Pure.

use std::cmp::Reverse;

use super::{
    evidence::Evidence,
    question::Sought,
    source::{FileKind, Introduces, LONGEST, Lines, enclosing, introduces, with_opening},
    term::{Term, TermKind, TermSet},
    words::Line,
};

mod heading;
mod order;
mod owned;

pub(super) use owned::{Lies, around, has, implementing, is_in_path, is_said_in, lies, names};

use order::Defines;

/// Lines that stand for a file of which only the path has a term.
const BEGINNING: u32 = 12;

/// A piece of a file that has some of the terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passage {
    pub(super) path: String,
    pub(super) kind: FileKind,
    /// First and last line, from 1. 0 for a file that was only named.
    pub(super) lines: (u32, u32),
    /// The line that has most.
    pub(super) hit: u32,
    /// What it has, its path not counted.
    pub(super) terms: TermSet,
    /// What its path has.
    pub(super) path_terms: TermSet,
    /// What it introduces, if that is about the question.
    pub(super) about: Option<About>,
    /// Whether it introduces the very name that was asked for.
    pub(super) exact: bool,
    /// Whether a search of notes named it, and what that said of it: a decision, and of when.
    pub(super) is_note: bool,
    pub(super) record: Option<String>,
    pub(super) score: u32,
}

/// What a passage introduces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum About {
    Definition(String),
    Section(String),
}

impl Passage {
    /// Lines of a file that were not weighed.
    pub(super) fn at(path: &str, lines: (u32, u32), hit: u32) -> Self {
        Self {
            path: path.to_owned(),
            kind: FileKind::of(path),
            lines,
            hit,
            terms: TermSet::default(),
            path_terms: TermSet::default(),
            about: None,
            exact: false,
            is_note: false,
            record: None,
            score: 0,
        }
    }

    /// All that speaks for it.
    pub(super) const fn all_terms(&self) -> TermSet {
        self.terms.or(self.path_terms)
    }

    fn shares_lines(&self, other: &Self) -> bool {
        self.path == other.path && self.lines.0 <= other.lines.1 && other.lines.0 <= self.lines.1
    }
}

/// Evidence, weighed.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// Best first; none of them lies in another one.
    pub(super) passages: Vec<Passage>,
    /// The terms that are anywhere in the evidence.
    pub(super) found: TermSet,
}

impl Ranking {
    /// By the terms of a question, and the name whose definition it asks for, if it does.
    pub(super) fn of(evidence: &Evidence, terms: &[Term], sought: Option<Sought<'_>>) -> Self {
        let found = Found::read(evidence, terms, sought);
        let files = found.files.iter();
        let mut passages: Vec<Passage> = files.flat_map(|file| file.passages(&found)).collect();
        let ranked = ranked(evidence, &found, &passages);
        passages.retain(|passage| !ranked.iter().any(|one| one.shares_lines(passage)));
        passages.sort_by(|a, b| {
            let key = |p: &Passage| (Reverse(p.score), p.kind, p.lines.0);
            key(a).cmp(&key(b)).then_with(|| a.path.cmp(&b.path))
        });
        // What a search ranked, it ranked by all files; what else is known, by what was shown.
        let mut passages: Vec<Passage> = ranked.into_iter().chain(passages).collect();
        found.named_first(&mut passages);
        Found::definition_first(&mut passages, sought, evidence);
        found.only_that_name(&mut passages);
        let passages =
            passages
                .into_iter()
                .map(|passage| match evidence.files.get(&passage.path) {
                    Some(lines) => heading::with_paragraph(passage, lines),
                    None => passage,
                });
        let mut passages = heading::distinct(passages);
        if evidence.judged.as_ref().is_some_and(|one| one.covered == 0) {
            // Only words that nobody would miss brought them.
            let needed = TermSet::needed(terms);
            passages.retain(|passage| !passage.all_terms().and(needed).is_empty());
        }
        let found = found
            .files
            .iter()
            .fold(TermSet::default(), |set, file| set.or(file.terms()));
        Self { passages, found }
    }
}

/// The passages of places that a search ranked, in its order.
fn ranked(evidence: &Evidence, found: &Found<'_>, passages: &[Passage]) -> Vec<Passage> {
    let most = passages
        .iter()
        .map(|passage| passage.score)
        .max()
        .unwrap_or(1);
    let needed = TermSet::needed(found.terms);
    let mut ranked: Vec<Passage> = Vec::new();
    for place in &evidence.places {
        let Some(file) = found.files.iter().find(|file| file.path == place.path) else {
            continue;
        };
        let (first, last) = place.lines;
        let known = || file.lines.range(first..=last);
        let worth = |at: &u32| {
            let set = file.hits.iter().find(|(hit, _)| hit == at);
            set.map_or(0, |(_, set)| found.worth(*set))
        };
        let defines = |at: &u32| file.defines(found, *at);
        // Of its lines the one that defines a name of the question, or has most; else the first that
        // the search marked.
        let hit = known().map(|(at, _)| *at).max_by_key(|at| {
            (
                defines(at),
                worth(at),
                place.marked.contains(at),
                Reverse(*at),
            )
        });
        let Some(hit) = hit else { continue };
        // Where all of it was asked for, all of it is shown.
        let marked = place.marked.iter().filter(|at| (first..=last).contains(at));
        let is_whole = marked.count() as u64 > u64::from(last - first);
        let is_decision = place
            .record
            .as_deref()
            .is_some_and(|one| one.starts_with("decision"));
        let is_known = || (first..=last).all(|at| file.lines.contains_key(&at));
        let is_whole = is_whole || (is_decision && last - first < LONGEST && is_known());
        let span = match is_whole {
            true => (first, last),
            false => enclosing(file.path, file.lines, hit),
        };
        let span = (span.0.max(first), span.1.min(last));
        let span = with_opening(file.path, file.lines, span);
        let mut passage = file.passage(found, hit, span);
        let named = Line::new(&place.within.join(" "));
        passage.path_terms = passage.path_terms.or(TermSet::of_line(found.terms, &named));
        passage.is_note = !place.has.is_empty() || place.record.is_some();
        passage.record.clone_from(&place.record);
        // Beside a place that has what was asked for, one that has none of it is not worth much.
        let has = |one: &Passage| !one.all_terms().and(needed).is_empty();
        let lesser = !has(&passage) && ranked.first().is_some_and(has);
        passage.score = if lesser { most / 4 } else { most };
        // What two searches found is one place.
        let is_twin = |one: &&mut Passage| {
            **one == passage || (one.is_note != passage.is_note && one.shares_lines(&passage))
        };
        let twin = ranked.iter_mut().find(is_twin);
        match twin {
            Some(twin) => {
                twin.is_note |= passage.is_note;
                twin.record = twin.record.take().or(passage.record);
            }
            None => ranked.push(passage),
        }
    }
    ranked
}

struct Found<'a> {
    terms: &'a [Term],
    /// The name whose definition is asked for.
    sought: Option<Sought<'a>>,
    files: Vec<FoundFile<'a>>,
    /// What each term is worth here.
    worth: Vec<u32>,
    /// Whether the question is about tests, so that they are not worth less.
    about_tests: bool,
}

struct FoundFile<'a> {
    path: &'a str,
    kind: FileKind,
    lines: &'a Lines,
    path_terms: TermSet,
    /// Lines that have any term.
    hits: Vec<(u32, TermSet)>,
}

impl<'a> Found<'a> {
    fn read(evidence: &'a Evidence, terms: &'a [Term], sought: Option<Sought<'a>>) -> Self {
        let files: Vec<FoundFile<'a>> = evidence
            .files
            .iter()
            .map(|(path, lines)| FoundFile {
                path,
                kind: FileKind::of(path),
                lines,
                path_terms: TermSet::of_line(terms, &Line::new(path)),
                hits: hits(lines, terms),
            })
            .collect();
        let worth = terms.iter().enumerate().map(|(at, term)| {
            let having = files
                .iter()
                .filter(|file| file.terms().has(at))
                .count()
                .max(1);
            let rarity = 1 + (files.len() / having).max(1).ilog2().min(3);
            term.weight() * rarity
        });
        let test = Line::new("test tests");
        Self {
            terms,
            sought,
            worth: worth.collect(),
            about_tests: terms.iter().any(|term| term.is_in(&test)),
            files,
        }
    }

    fn worth(&self, set: TermSet) -> u32 {
        self.worth
            .iter()
            .enumerate()
            .filter(|(at, _)| set.has(*at))
            .map(|(_, worth)| worth)
            .sum()
    }

    /// What a file of this kind is worth, in eighths.
    const fn trust(&self, kind: FileKind) -> u32 {
        match kind {
            FileKind::Code | FileKind::Docs => 8,
            FileKind::Test if self.about_tests => 8,
            FileKind::Test => 4,
            FileKind::Vendored => 2,
            FileKind::Lock => 1,
        }
    }
}

fn hits(lines: &Lines, terms: &[Term]) -> Vec<(u32, TermSet)> {
    let sets = lines
        .iter()
        .map(|(at, text)| (*at, TermSet::of_line(terms, &Line::new(text))));
    sets.filter(|(_, set)| !set.is_empty()).collect()
}

impl FoundFile<'_> {
    fn terms(&self) -> TermSet {
        self.hits
            .iter()
            .fold(self.path_terms, |set, (_, terms)| set.or(*terms))
    }

    /// Its passages, from the best hit on; a hit that lies in a passage makes no other.
    fn passages(&self, found: &Found<'_>) -> Vec<Passage> {
        let mut order: Vec<usize> = (0..self.hits.len()).collect();
        order.sort_by_key(|&at| Reverse(self.hit_worth(found, self.hits[at])));
        let mut passages: Vec<Passage> = Vec::new();
        for at in order {
            let hit = self.hits[at].0;
            let span = enclosing(self.path, self.lines, hit);
            let free = passages
                .iter()
                .all(|p| span.1 < p.lines.0 || p.lines.1 < span.0);
            if free {
                passages.push(self.passage(found, hit, span));
            }
        }
        if self.hits.is_empty() && !self.path_terms.is_empty() {
            passages.push(self.named_only(found));
        }
        passages
    }

    fn hit_worth(&self, found: &Found<'_>, (at, terms): (u32, TermSet)) -> u32 {
        let introduces = introduces(self.path, self.lines, at).is_some();
        let is_sought = self.defines(found, at) == Defines::Sought;
        found.worth(terms) * (2 + u32::from(introduces) + u32::from(is_sought))
    }

    fn passage(&self, found: &Found<'_>, hit: u32, span: (u32, u32)) -> Passage {
        let inside = self
            .hits
            .iter()
            .filter(|(at, _)| (span.0..=span.1).contains(at));
        let terms = inside.fold(TermSet::default(), |set, (_, terms)| set.or(*terms));
        let (about, named) = self.introduced(found.terms, span);
        let is_called = |kinds: &dyn Fn(TermKind) -> bool| match &about {
            Some(About::Definition(name) | About::Section(name)) => named
                .of(found.terms)
                .any(|term| kinds(term.kind) && term.shown.eq_ignore_ascii_case(name)),
            None => false,
        };
        // What has the very name that was asked for is what was asked for; one word of several is
        // no name.
        let alone = TermSet::needed(found.terms).len() == 1;
        let exact = is_called(&|kind| kind == TermKind::Name) || self.is_spelt_so(found, &about);
        let worth_more = exact || (alone && is_called(&|_| true));
        let for_name = u32::from(worth_more) * found.worth(named) * 4;
        let path_only = self.path_terms.minus(terms);
        let score =
            found.worth(terms) * 4 + found.worth(named) * 6 + for_name + found.worth(path_only);
        Passage {
            path: self.path.to_owned(),
            kind: self.kind,
            lines: span,
            hit,
            terms,
            path_terms: self.path_terms,
            about,
            exact,
            is_note: false,
            record: None,
            score: score * found.trust(self.kind),
        }
    }

    /// Whether what it defines is a word of the question that is spelt as names are, with a capital.
    fn is_spelt_so(&self, found: &Found<'_>, about: &Option<About>) -> bool {
        let Some(About::Definition(name)) = about else {
            return false;
        };
        let mut words = found
            .terms
            .iter()
            .filter(|term| term.kind == TermKind::Word);
        words.any(|term| term.shown == *name && term.is_capital())
    }

    fn named_only(&self, found: &Found<'_>) -> Passage {
        let first = self.lines.keys().next().copied().unwrap_or(0);
        let known = (first..first + BEGINNING).take_while(|at| self.lines.contains_key(at));
        Passage {
            path_terms: self.path_terms,
            score: found.worth(self.path_terms) * found.trust(self.kind),
            ..Passage::at(self.path, (first, known.last().unwrap_or(first)), first)
        }
    }

    /// What the passage introduces first that has a term in its name, and those terms.
    fn introduced(&self, terms: &[Term], span: (u32, u32)) -> (Option<About>, TermSet) {
        let named = (span.0..=span.1).filter_map(|at| {
            let (about, name) = match introduces(self.path, self.lines, at)? {
                Introduces::Definition { name } => (About::Definition(name.to_owned()), name),
                Introduces::Heading { title, .. } => (About::Section(title.to_owned()), title),
            };
            let set = TermSet::of_line(terms, &Line::new(name));
            (!set.is_empty()).then_some((about, set))
        });
        // Of those with most, the first: that is the outer one.
        let best = named.min_by_key(|(_, set)| Reverse(set.len()));
        best.map_or((None, TermSet::default()), |(about, set)| {
            (Some(about), set)
        })
    }
}

#[cfg(test)]
mod tests;
