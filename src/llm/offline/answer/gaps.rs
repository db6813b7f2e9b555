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
    Case, ENOUGH_COVERED, names,
};

/// What is missing, if anything.
pub(super) fn of(case: &Case<'_>, quoted: &[&Passage]) -> Option<String> {
    let terms = &case.question.terms;
    let says = |best: &&Passage| best.terms.of(terms).any(Term::is_saying);
    match &case.evidence.judged {
        _ if quoted.first().is_some_and(says) => None,
        Some(judged) => of_judged(judged, terms, case.evidence),
        None => of_quotes(terms, case.ranking.found, quoted),
    }
}

/// As a search judged it that knows how common each word is and what else it is called.
fn of_judged(judged: &Judged, terms: &[Term], evidence: &Evidence) -> Option<String> {
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
            (is_number && file.line().is_some()) || asked.iter().all(|part| parts.contains(part))
        };
        let is_subject = terms.iter().any(|term| term.shown == **word);
        let is_order = is_showing(&word.to_lowercase()) && !read.is_empty();
        read.iter().any(is_part_of) || (is_order && !is_subject)
    };
    let lacking: Vec<&String> = judged.lacking.iter().filter(|word| !is_had(word)).collect();
    let words: Vec<String> = lacking
        .iter()
        .map(|word| format!("“{}”", shortened(&inert(word), 60)))
        .collect();
    match (words.is_empty(), read.is_empty()) {
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
