//! The answer to "show me more" and "and why is it there?" where it would be the one that was given before:
//! what else there is, or that there is no more.

use super::{
    super::{
        interest::Interest,
        lexicon::holds,
        protocol::{Percent, Stand},
        question::{Kind, stands_alone},
        quote::{in_sentence, place, quote},
        rank::Passage,
        term::Term,
        words::words,
    },
    Case, Said, names, select, whole,
};

/// Whether a question that goes on from one before would be answered by what was said already. Who puts a
/// question a second time wants it answered as things are now.
pub(super) fn is_told(case: &Case<'_>, said: &Said, quoted: &[&Passage]) -> bool {
    let known = &case.conversation.answers;
    let is_known = |passage: &&Passage| {
        let quoted = quote(passage, case.evidence);
        known.iter().any(|answer| answer.text.contains(&quoted))
    };
    // "And where is it tested?" asks for something else too, and "who wrote it?" is not told by quotes. Uses are
    // answered again.
    let previous = case.conversation.previous.as_deref();
    let is_bare = previous.is_some_and(|previous| previous.contains(&*case.question.plain));
    let is_bare = is_bare || case.question.is_explained;
    let is_of_places = match case.question.interest {
        Interest::Places | Interest::Notes | Interest::Settled => is_bare,
        Interest::Uses
        | Interest::Listed(_)
        | Interest::History(_)
        | Interest::Overview
        | Interest::Facts(_)
        | Interest::HowTo(_) => false,
    };
    let is_quoted_again = is_of_places && !quoted.is_empty() && quoted.iter().all(is_known);
    case.question.kind == Kind::Lookup
        && (!case.question.is_whole || whole::is_known(case, quoted))
        && !case.question.interest.is_of_project()
        && !matches!(case.question.interest, Interest::Uses | Interest::Listed(_))
        && !known.is_empty()
        && !is_of_no_commit(case)
        && !stands_alone(&case.conversation.question)
        && match asks_for_a_part(&case.conversation.question) && !case.question.is_explained {
            // Word for word the answer before is none to another question.
            true => is_of_places && is_repeated(case, said),
            false => is_quoted_again || known.iter().any(|answer| answer.text == said.0.trim()),
        }
}

/// Whether it is what was just said.
fn is_repeated(case: &Case<'_>, said: &Said) -> bool {
    let last = case.conversation.answers.first();
    last.is_some_and(|last| last.text == said.0.trim())
}

/// Whether commits were asked for, and none was told of: that is no less true the second time.
fn is_of_no_commit(case: &Case<'_>) -> bool {
    let history = &case.evidence.history;
    let is_told = !history.commits.is_empty()
        || history.one.is_some()
        || history.by_author.is_some()
        || history.is_over;
    case.question.interest.is_of_history() && !is_told && case.question.told_before.is_empty()
}

/// Whether something certain is asked of what was talked about, of which the same place may tell.
fn asks_for_a_part(question: &str) -> bool {
    let lower = question.to_lowercase();
    words(&lower).any(|word| holds(PARTS, word))
}

const PARTS: &str = "\
    where when who whom whose which how wo wann wer wem wie welche welcher où quand qui comment quel quelle dónde cuándo quién \
    cómo cuál";

/// The best of the other files; of commits no more than how many were told.
pub(super) fn further(case: &Case<'_>, quotable: &[Passage]) -> Said {
    if case.question.interest.is_of_history() {
        return no_more_commits(case);
    }
    let others: Vec<Passage> = quotable
        .iter()
        .filter(|passage| !was_quoted(case, passage))
        .cloned()
        .collect();
    let quoted = select(&others, &case.question.terms, case.question.is_of_changes);
    let Some(best) = quoted.first() else {
        return no_more(case);
    };
    let blocks: Vec<String> = quoted
        .iter()
        .map(|passage| quote(passage, case.evidence))
        .collect();
    let body = format!(
        "What answers it best, I quoted before. What else has its words begins in {}.\n\n{}",
        in_sentence(&place(best)),
        blocks.join("\n\n")
    );
    let stand = Stand::Partial {
        missing:
            "a better answer than the one before: these are the next places that have its words"
                .to_owned(),
        caveat: None,
    };
    (body, stand, Percent(40))
}

fn no_more(case: &Case<'_>) -> Said {
    let about = match names(case.question.terms.iter().filter(is_subject)) {
        none if none.is_empty() => String::new(),
        about => format!(" about {about}"),
    };
    let body = format!(
        "I found no more{about} than what I quoted before, and I only quote. A name, a file or another word \
         of what you mean finds other places."
    );
    let stand = Stand::Partial {
        missing: "more than was quoted before".to_owned(),
        caveat: None,
    };
    (body, stand, Percent(50))
}

/// Quotes of files would be no more of the same.
fn no_more_commits(case: &Case<'_>) -> Said {
    let history = &case.evidence.history;
    let about = match names(case.question.terms.iter().filter(is_subject)) {
        none if none.is_empty() => String::new(),
        about => format!(" about {about}"),
    };
    let of = format!("{about}{}", case.question.bounds.told());
    if history.one.is_some() {
        let body = "I show no more of a commit than I told before: its message, and its files with their lines.";
        let stand = Stand::Partial {
            missing: "what the lines of the commit are".to_owned(),
            caveat: None,
        };
        return (body.to_owned(), stand, Percent(50));
    }
    if let Some(authors) = &history.by_author {
        let shown = authors.first.len();
        let are_all = authors.people <= shown as u64 && !authors.is_cut;
        let body = match are_all {
            true => format!(
                "There are no more authors of commits{of} than those that I told of before."
            ),
            false => format!(
                "I tell of the first {shown} authors of commits{of} alone, and those I told before."
            ),
        };
        let stand = match are_all {
            true => Stand::Sufficient {
                sources_found: shown,
                source_types: vec!["history"],
            },
            false => Stand::Partial {
                missing: "the other authors".to_owned(),
                caveat: None,
            },
        };
        return (body, stand, Percent(70));
    }
    if !history.is_cut && !history.is_stopped {
        let body = format!("There are no more commits{of} than those that I told of before.");
        let stand = Stand::Sufficient {
            sources_found: history.commits.len(),
            source_types: vec!["history"],
        };
        return (body, stand, Percent(70));
    }
    let body = format!(
        "There are more commits{of}, but I tell of the newest ones alone, and those I told before. Fewer days, \
         a file or another word find others."
    );
    let stand = Stand::Partial {
        missing: "older commits than those that were shown".to_owned(),
        caveat: None,
    };
    (body, stand, Percent(50))
}

fn is_subject(term: &&Term) -> bool {
    term.weight() > 1
}

/// Whether an earlier answer quotes this file: its place on a line, and a fence under it.
fn was_quoted(case: &Case<'_>, passage: &Passage) -> bool {
    let place = place(passage);
    let path = place.rsplit_once(':').map_or(&*place, |(path, _)| path);
    let is_place = |line: &str| {
        let behind = line.trim_matches('`').strip_prefix(path);
        behind.is_some_and(|behind| behind.starts_with(':'))
    };
    case.conversation.answers.iter().any(|answer| {
        let lines = answer.text.lines();
        let mut pairs = lines.clone().zip(lines.skip(1));
        pairs.any(|(line, next)| is_place(line) && next.starts_with("```"))
    })
}
