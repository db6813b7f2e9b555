//! The first calls for a question, and what is tried once those are read.

use super::{
    super::{
        evidence::Evidence,
        interest::{Change, Interest, comes_or_goes},
        lexicon::holds,
        question::{Question, of_characters},
        term::{Term, TermKind, TermSet},
        toolbox::{How, Naming, Past, Planned, Toolbox},
    },
    changes, distinct, facts, howto, literal, most_telling, uses,
};

/// Longest question that is put to a search, in characters.
const LONGEST_QUESTION: usize = 900;

/// Where a project says what it is, besides `README.md`.
const FRONT_PAGES: &[&str] = &["readme", "architecture", "index", "home"];

/// Where to begin.
pub(super) fn calls(question: &Question, tools: &Toolbox<'_>) -> Vec<Planned> {
    let terms = &question.terms;
    let special = match question.interest {
        Interest::Uses => {
            let naming = match question.is_of_kin {
                true => Naming::Kin,
                false => Naming::Any,
            };
            let name = question.used_name();
            let uses = name.and_then(|name| tools.search_name(name, naming));
            return uses
                .into_iter()
                .chain(uses::said(question, tools))
                .collect();
        }
        // What lies outside of the project, no other search sees.
        Interest::Places if terms.is_empty() || !tools.notes_are_elsewhere() => None,
        Interest::Places => tools.search_notes(&one_line(&question.plain)),
        Interest::Notes | Interest::Settled => {
            of_days(question, tools).or_else(|| tools.search_notes(&one_line(&question.plain)))
        }
        Interest::Listed(_) => None,
        Interest::History(_) if let Some(hash) = &question.bounds.commit => {
            return tools.commit(hash).into_iter().collect();
        }
        Interest::History(change) => past(question, tools, change),
        Interest::Overview => tools.map(&focus(terms)),
        Interest::Facts(_) => tools.map(""),
        Interest::HowTo(_) => return howto::calls(question, tools),
    };
    let places = match terms.is_empty() {
        true => Vec::new(),
        false => places(question, tools),
    };
    let of_log = question.of_log.as_ref();
    let of_log = of_log.map(|wanted| changes::first(wanted, tools));
    let of_log = of_log.into_iter().flatten();
    of_log.chain(special).chain(places).collect()
}

/// What was noted on the days that were asked for; of a question without other words, all decisions of those.
fn of_days(question: &Question, tools: &Toolbox<'_>) -> Option<Planned> {
    let mut with = question.days();
    if with.is_empty() {
        return None;
    }
    let words: Vec<&str> = question.terms.iter().map(|term| &*term.shown).collect();
    if words.is_empty() && question.interest == Interest::Settled {
        with.push(("kind", "decision"));
    }
    tools.notes_with(&words.join(" "), &with, &one_line(&question.plain))
}

/// What the first calls leave to be tried: fewer words, the front pages.
pub(super) fn again(question: &Question, evidence: &Evidence, tools: &Toolbox<'_>) -> Vec<Planned> {
    let terms = &question.terms;
    match question.interest {
        // Notes and change logs may tell where no repository does.
        Interest::History(_) if !evidence.history.is_told => {
            let plain = one_line(&question.plain);
            let searches = match evidence.places.is_empty() {
                true => tools.search_all(&plain, How::Words),
                false => Vec::new(),
            };
            // Of the latest commits, notes tell nothing.
            let noted = (!terms.is_empty()).then(|| tools.search_notes(&plain));
            noted.flatten().into_iter().chain(searches).collect()
        }
        Interest::History(change)
            if evidence.history.commits.is_empty()
                && !evidence.history.is_over
                && evidence.history.one.is_none()
                && !question.bounds.is_sample =>
        {
            let single = most_telling(TermSet::needed(terms), terms)
                .filter(|term| term.kind != TermKind::Path)
                .filter_map(|term| saying(&[term], question, tools, change));
            let single = distinct(single).into_iter().take(2);
            single.chain(changed(question, tools, change)).collect()
        }
        Interest::Overview => {
            let pages: Vec<&str> = front_pages(evidence).collect();
            let guessed = pages.is_empty().then_some("README.md");
            let reads = pages.into_iter().chain(guessed);
            reads
                .filter_map(|path| tools.read(path, 0))
                .take(2)
                .collect()
        }
        Interest::Uses => uses::again(question, evidence, tools),
        Interest::Facts(fact) => facts::again(fact, evidence, tools),
        Interest::HowTo(chore) => howto::again(chore, question, evidence, tools),
        Interest::Places
        | Interest::Listed(_)
        | Interest::Notes
        | Interest::Settled
        | Interest::History(_) => Vec::new(),
    }
}

/// Files at the top that say what the project is.
fn front_pages(evidence: &Evidence) -> impl Iterator<Item = &str> {
    let all = evidence.top_files();
    FRONT_PAGES.iter().filter_map(move |page| {
        let is_page = |path: &&&str| {
            let stem = path.split('.').next().unwrap_or(path);
            // An index may be a program, or a page for browsers.
            let is_of_notes = ["index", "home"].contains(page);
            stem.eq_ignore_ascii_case(page) && (!is_of_notes || path.ends_with(".md"))
        };
        all.iter().find(is_page).copied()
    })
}

/// The commits to begin with: those that changed a file or a folder that was named, or a name or text, or
/// say the two most telling words.
pub(super) fn past(question: &Question, tools: &Toolbox<'_>, change: Change) -> Option<Planned> {
    let (terms, bounds) = (&question.terms, &question.bounds);
    let needed = TermSet::needed(terms);
    if bounds.is_sample {
        return tools.history(&Past::Any, change, bounds);
    }
    let first = |kinds: &[TermKind]| needed.of(terms).find(|term| kinds.contains(&term.kind));
    if let Some(file) = first(&[TermKind::Path]) {
        return tools.history(&Past::Path(&file.shown), change, bounds);
    }
    if let Some(folder) = folder_in(&question.plain) {
        return tools.history(&Past::Path(folder), change, bounds);
    }
    if let Some(text) = first(&[TermKind::Name, TermKind::Phrase]) {
        return tools.history(&done_to(&text.shown, question, change), change, bounds);
    }
    let words: Vec<&Term> = most_telling(needed, terms).take(2).collect();
    match words.is_empty() {
        true => tools.history(&Past::Any, change, bounds),
        false => saying(&words, question, tools, change),
    }
}

/// What was added or is gone is there more or less often since; what was changed in any other way may be so by the rest
/// of its line.
fn done_to<'a>(text: &'a str, question: &Question, change: Change) -> Past<'a> {
    match change == Change::First || comes_or_goes(&question.plain) {
        true => Past::Text(text),
        false => Past::Line(text),
    }
}

/// The commits that changed what has the most telling word, where no message has it.
pub(super) fn changed(question: &Question, tools: &Toolbox<'_>, change: Change) -> Option<Planned> {
    let needed = TermSet::needed(&question.terms);
    let mut words = most_telling(needed, &question.terms);
    let word = words.find(|term| term.kind == TermKind::Word)?;
    let done = done_to(&word.shown, question, change);
    tools.history(&done, change, &question.bounds)
}

/// What folders at the top are called.
const TOPS: &str =
    "src lib libs tests test docs doc crates packages app apps cmd pkg internal include examples";

/// The folder that a question names as a path: `src/kernel`, and not "read/write".
fn folder_in(question: &str) -> Option<&str> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let words = question.split_whitespace();
    let mut bare = words.map(|word| word.trim_matches(|c: char| !part(c)).trim_end_matches('.'));
    bare.find(|word| {
        let mut folders = word.trim_end_matches('/').split('/');
        let is_named = |name: &str| name.len() > 1 && name.contains(char::is_alphabetic);
        let top = word.split('/').next().unwrap_or_default();
        let is_one = word.ends_with('/') || word.matches('/').count() > 1 || holds(TOPS, top);
        word.contains('/') && is_one && word.chars().all(part) && folders.all(is_named)
    })
}

/// The commits that say these words in any form.
fn saying(
    words: &[&Term],
    question: &Question,
    tools: &Toolbox<'_>,
    change: Change,
) -> Option<Planned> {
    let literals = words.iter().map(|term| term.literal()).collect();
    let shown: Vec<&str> = words.iter().map(|term| &*term.shown).collect();
    let search = tools.history(&Past::Saying(literals), change, &question.bounds)?;
    Some(search.told_as(&shown.join(" ")))
}

fn focus(terms: &[Term]) -> String {
    let words: Vec<&str> = terms.iter().map(|term| &*term.shown).collect();
    words.join(" ")
}

/// The question as it was put, or else its words, names and quotes as they stand; and files that it
/// names.
pub(super) fn places(question: &Question, tools: &Toolbox<'_>) -> Vec<Planned> {
    let terms = &question.terms;
    let needed = TermSet::needed(terms);
    let is_path = |term: &&Term| term.kind == TermKind::Path;
    let literal = |term: &Term| literal(term, tools);
    let all: Vec<&str> = needed
        .of(terms)
        .filter(|t| !is_path(t))
        .map(|term| term.shown.as_str())
        .collect();
    let words = match (all.is_empty(), tools.knows_words()) {
        (true, _) => Vec::new(),
        (false, true) => tools.search_all(&one_line(&question.for_files()), How::Words),
        (false, false) => most_telling(needed, terms)
            .filter_map(literal)
            .take(2)
            .collect(),
    };
    // Searching for a single name by words and as it stands would bring the same twice.
    let verbatim = most_telling(needed, terms)
        .filter(|term| match term.kind {
            TermKind::Name => !tools.knows_words() && all.len() > 1,
            TermKind::Phrase => true,
            TermKind::Weak | TermKind::Word | TermKind::Path => false,
        })
        .filter_map(literal)
        .take(2);
    let files = || needed.of(terms).filter(is_path);
    let reads = files()
        .filter_map(|term| match term.lines() {
            Some((first, last)) => tools.read_lines(&term.shown, first, last),
            None => tools.read(&term.shown, 0),
        })
        .take(2);
    let calls = distinct(words.into_iter().chain(verbatim).chain(reads));
    if calls.is_empty() {
        distinct(files().filter_map(literal).take(2))
    } else {
        calls
    }
}

/// A question as it can be put to a search.
pub(super) fn one_line(question: &str) -> String {
    let line = question.split_whitespace().collect::<Vec<_>>().join(" ");
    of_characters(&line, LONGEST_QUESTION).to_owned()
}
