//! The answer to an order: what it would take, and where it would begin.

use super::{
    super::{
        interest::Interest,
        lexicon::{deed_in, is_left_of_deed, is_prose},
        protocol::{Percent, Stand, inert, shortened},
        rank::Passage,
        term::{Term, TermKind, TermSet},
    },
    Case, ENOUGH_COVERED, Said, howto, misread, names, places,
};

/// What no quote does.
const DEED: &str =
    "the deed itself: the offline model reads, and a configured model is needed to act";
/// Longest order that is said again, in characters.
const LONGEST_ORDER: usize = 120;

pub(super) fn compose(case: &Case<'_>, quoted: &[&Passage]) -> Said {
    let terms = &case.question.terms;
    let order = shortened(&inert(&case.question.plain), LONGEST_ORDER);
    let only = format!(
        "I can only read and quote. “{order}” takes a configured model, which would read, change \
         and check; what writes or runs something waits for your approval."
    );
    let subject = subject(case);
    let about = names(subject.of(terms));
    // No file of a project is where a poem begins.
    let is_prose = is_prose(&case.question.plain.to_lowercase());
    if let Interest::HowTo(chore) = case.question.interest {
        return by_command(only, howto::commands_of(case, chore));
    }
    let begins = quoted
        .first()
        .is_some_and(|best| begins_at(case, subject, best));
    let (body, unfound) = match (begins, about.is_empty()) {
        _ if is_prose => (only, TermSet::default()),
        (false, true) => (only, TermSet::default()),
        (false, false) => (
            format!("{only} It would begin with {about}, of which I found nothing that fits."),
            subject,
        ),
        (true, _) => (
            format!("{only} It would begin here:\n\n{}", places(case, quoted)),
            subject.minus(case.ranking.found),
        ),
    };
    let unfound = unfound.and(TermSet::needed(terms));
    let stand = Stand::Partial {
        missing: DEED.to_owned(),
        caveat: (!unfound.is_empty())
            .then(|| format!("nothing found about {}", names(unfound.of(terms)))),
    };
    (body, stand, Percent(60))
}

/// Where a command does it, that is all there is to say.
fn by_command(only: String, commands: String) -> Said {
    let body = match commands.is_empty() {
        true => only,
        false => format!("{only} By hand: {commands}"),
    };
    let stand = Stand::Partial {
        missing: DEED.to_owned(),
        caveat: None,
    };
    (body, stand, Percent(60))
}

/// What the order is about: all of it but the deed.
fn subject(case: &Case<'_>) -> TermSet {
    let lower = case.question.plain.to_lowercase();
    let deed = deed_in(&lower);
    let is_deed = |term: &Term| {
        let word = term.shown.to_lowercase();
        matches!(term.kind, TermKind::Weak | TermKind::Word)
            && (Some(&*word) == deed || is_left_of_deed(&word))
    };
    let terms = case.question.terms.iter().enumerate();
    terms
        .filter(|(_, term)| !is_deed(term))
        .fold(TermSet::default(), |set, (at, _)| set.with(at))
}

/// Whether a place has to do with what the order is about: it has a name or a file of it, or as much
/// as an answer has, or half of its words. What was taken for another word says nothing of that.
fn begins_at(case: &Case<'_>, subject: TermSet, best: &Passage) -> bool {
    let terms = &case.question.terms;
    let had = best.all_terms().and(subject).minus(misread::those(case));
    let needed = TermSet::needed(terms);
    let is_named = had.of(terms).any(|term| term.kind >= TermKind::Path);
    let judged = case.evidence.judged.as_ref();
    let is_covered = judged.is_some_and(|judged| judged.covered >= ENOUGH_COVERED);
    let had = had.and(needed);
    is_named || (!had.is_empty() && (is_covered || had.len() * 2 >= subject.and(needed).len()))
}
