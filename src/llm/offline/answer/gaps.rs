//! What a question asks for and the quotes do not have, in words.

use super::{
    super::{
        evidence::{Evidence, Judged},
        lexicon::is_showing,
        protocol::{inert, shortened},
        rank::Passage,
        term::{Term, TermKind, TermSet},
        words::subwords,
    },
    Case, ENOUGH_COVERED, misread, names, owned,
};

/// What is missing, if anything.
pub(super) fn of(case: &Case<'_>, quoted: &[&Passage]) -> Option<String> {
    let terms = &case.question.terms;
    let says = |best: &&Passage| best.terms.of(terms).any(Term::is_saying);
    let misread = all_misread(case, quoted).or_else(|| missed_for_another(case, quoted));
    let unread = super::members::missing(case)
        .or_else(|| unread(terms, case.evidence))
        .or_else(|| left_out(terms, case.evidence))
        .or_else(|| no_such_file(case));
    match &case.evidence.judged {
        _ if unread.is_some() => unread,
        _ if quoted.first().is_some_and(says) => None,
        _ if quoted
            .first()
            .is_some_and(|best| owned::is_found(case, best)) =>
        {
            None
        }
        _ if misread.is_some() => misread,
        Some(judged) => of_judged(judged, case, quoted),
        None => of_quotes(terms, case.ranking.found, quoted),
    }
    .or_else(|| not_looked_at(case, quoted))
}

/// What may be better than these, where the search did not look everywhere. The very name that was asked for, and
/// a file that was, is what was asked for.
fn not_looked_at(case: &Case<'_>, quoted: &[&Passage]) -> Option<String> {
    let terms = &case.question.terms;
    let is_it = |best: &&Passage| {
        let names_file = terms.iter().any(|term| term.is_path_of(&best.path));
        best.exact || names_file || best.terms.of(terms).any(Term::is_saying)
    };
    let is_found = quoted.first().is_some_and(is_it);
    case.evidence.limits.lacking().filter(|_| !is_found)
}

/// The lines of files that were asked for and are not known.
fn unread(terms: &[Term], evidence: &Evidence) -> Option<String> {
    let named = terms.iter().filter_map(|term| Some((term, term.lines()?)));
    let is_known = |(term, (first, _)): &(&Term, (u32, u32))| {
        let mut files = evidence.files.iter();
        files.any(|(path, lines)| term.is_path_of(path) && lines.contains_key(first))
    };
    let lines: Vec<String> = named
        .filter(|one| !is_known(one))
        .map(|(term, (first, _))| format!("line {first} of {}", names([term].into_iter())))
        .collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// The lines that were asked for beyond the most that are shown, if the file goes on as far as those.
fn left_out(terms: &[Term], evidence: &Evidence) -> Option<String> {
    let named = terms
        .iter()
        .filter_map(|term| Some((term, term.lines()?.1, term.more_lines()?)));
    let is_long = |(term, last, _): &(&Term, u32, _)| {
        let mut files = evidence.files.iter();
        files.any(|(path, lines)| term.is_path_of(path) && lines.contains_key(last))
    };
    let lines: Vec<String> = named
        .filter(is_long)
        .map(|(term, _, (first, last))| {
            let file = names([term].into_iter());
            format!("lines {first}–{last} of {file} are not shown")
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// What is in no file, where the best place has nothing but what was taken for other words.
fn all_misread(case: &Case<'_>, quoted: &[&Passage]) -> Option<String> {
    let terms = &case.question.terms;
    let best = quoted.first()?;
    let needed = TermSet::needed(terms);
    let far = misread::far(case, best);
    let had = best.all_terms().and(needed);
    let is_all = !had.is_empty() && had.minus(far).is_empty();
    let nowhere = unfound(terms, case.ranking.found.minus(far)).filter(|_| is_all);
    nowhere.map(|words| format!("{words} found nowhere"))
}

/// The files that were named by their folders and are nowhere, neither as files nor in a text.
fn no_such_file(case: &Case<'_>) -> Option<String> {
    let terms = &case.question.terms;
    let missing = TermSet::needed(terms).minus(case.ranking.found);
    let files: Vec<&Term> = missing
        .of(terms)
        .filter(|term| term.kind == TermKind::Path && term.shown.contains('/'))
        .collect();
    (!files.is_empty()).then(|| format!("there is no file {}", names(files.into_iter())))
}

/// What a search misses in the best place and what has quite another word there instead: however much of the rest
/// it has, it is about something else.
fn missed_for_another(case: &Case<'_>, quoted: &[&Passage]) -> Option<String> {
    let (best, judged) = (quoted.first()?, case.evidence.judged.as_ref()?);
    let terms = &case.question.terms;
    let far = misread::far(case, best).and(TermSet::needed(terms));
    let missed: Vec<&Term> = far
        .of(terms)
        .filter(|term| judged.lacking.contains(&term.shown))
        .collect();
    (!missed.is_empty()).then(|| format!("{} found nowhere", names(missed.into_iter())))
}

/// As a search judged it that knows how common each word is and what else it is called.
fn of_judged(judged: &Judged, case: &Case<'_>, quoted: &[&Passage]) -> Option<String> {
    let (terms, evidence) = (&case.question.terms, case.evidence);
    if judged.covered >= ENOUGH_COVERED {
        return None;
    }
    let read: Vec<&Term> = terms
        .iter()
        .filter(|term| was_read(term, evidence))
        .collect();
    // A search has to look for the parts of a place in texts; who read there has them.
    let is_had = |word: &&String| {
        let asked = subwords(word);
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let is_part_of = |file: &&Term| {
            let parts = subwords(&file.shown);
            (is_number && file.lines().is_some()) || asked.iter().all(|part| parts.contains(part))
        };
        let is_subject = terms.iter().any(|term| term.shown == **word);
        let is_order = is_showing(&word.to_lowercase()) && !read.is_empty();
        read.iter().any(is_part_of) || (is_order && !is_subject)
    };
    // Who reads the quotes sees it there.
    let shown = quoted
        .iter()
        .fold(TermSet::default(), |set, one| set.or(one.all_terms()));
    let is_shown = |word: &String| shown.of(terms).any(|term| term.shown == *word);
    let lacking: Vec<&String> = judged.lacking.iter().filter(|word| !is_had(word)).collect();
    let is_apart = !lacking.is_empty() && lacking.iter().all(|word| is_shown(word));
    let lacking: Vec<&String> = lacking.into_iter().filter(|word| !is_shown(word)).collect();
    let words: Vec<String> = lacking
        .iter()
        .map(|word| format!("“{}”", shortened(&inert(word), 60)))
        .collect();
    match (words.is_empty(), read.is_empty()) {
        _ if is_apart => Some("a place that has all of it together".to_owned()),
        (true, false) => None,
        (true, true) => Some("much of what was asked".to_owned()),
        (false, _) => Some(format!("{} not found with the rest", words.join(", "))),
    }
}

/// Whether this names a file of which lines are known.
pub(super) fn was_read(term: &Term, evidence: &Evidence) -> bool {
    let mut files = evidence.files.iter();
    term.kind == TermKind::Path
        && files.any(|(path, lines)| !lines.is_empty() && term.is_path_of(path))
}

/// Words that are all somewhere but far from one another are a gap too, if they are more than a
/// third: such places have little to do with the question.
fn of_quotes(terms: &[Term], found: TermSet, quoted: &[&Passage]) -> Option<String> {
    let needed = TermSet::needed(terms);
    let cited = quoted
        .iter()
        .fold(TermSet::default(), |set, p| set.or(p.all_terms()));
    let apart = needed.and(found).minus(together(quoted));
    let scattered = apart.len() * 3 > needed.len() || !apart.minus(cited).is_empty();
    let nowhere = unfound(terms, found).map(|words| format!("{words} found nowhere"));
    let apart = scattered.then(|| {
        format!(
            "{} only in other files than the rest",
            names(apart.of(terms))
        )
    });
    let gaps: Vec<String> = [nowhere, apart].into_iter().flatten().collect();
    (!gaps.is_empty()).then(|| gaps.join("; "))
}

/// What the quotes of the best file have.
pub(super) fn together(quoted: &[&Passage]) -> TermSet {
    let best = quoted.first().map(|best| best.path.as_str());
    let of_it = quoted
        .iter()
        .filter(|passage| Some(passage.path.as_str()) == best);
    of_it.fold(TermSet::default(), |set, passage| {
        set.or(passage.all_terms())
    })
}

fn unfound(terms: &[Term], found: TermSet) -> Option<String> {
    let missing = TermSet::needed(terms).minus(found);
    (!missing.is_empty()).then(|| names(missing.of(terms)))
}
