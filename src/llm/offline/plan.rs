//! What to ask of tools next, if anything.
//!
//! What the question wants to hear about says where to begin (`opening`); then widen by what was
//! found nowhere, and read around the best hits; after a dead end that the runtime answered, one
//! other strategy. No call is ever made twice, and there are at most [`MAX_ROUNDS`] rounds, so every
//! query comes to an end. Pure.

use super::{
    answer::select,
    conversation::{Conversation, Standing},
    evidence::{ELSEWHERE, Evidence},
    interest::Interest,
    protocol::{Percent, Stand, inert, shortened, signal},
    question::{Kind, Question},
    rank::Ranking,
    term::{Term, TermKind, TermSet},
    toolbox::{Aim, How, Planned, Toolbox},
};

mod opening;

/// Most replies of a query that ask for tools.
pub(super) const MAX_ROUNDS: usize = 4;

/// Most calls in one reply.
const MOST_CALLS: usize = 6;

/// How sure we are that another turn helps.
const CONFIDENCE: Percent = Percent(70);

/// The calls of a reply, at least one, and what it says about them.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// The whole text, signal included.
    pub(super) text: String,
    pub(super) calls: Vec<Planned>,
}

/// What to ask next; none if there is enough, or nothing left to try.
pub(super) fn next(
    conversation: &Conversation<'_>,
    question: &Question,
    evidence: &Evidence,
    ranking: &Ranking,
    tools: &Toolbox<'_>,
) -> Option<Plan> {
    let needs_no_term = question.interest != Interest::Places;
    let looks_up = match question.kind {
        Kind::Chat(_) | Kind::Recall(_) => false,
        Kind::Deed | Kind::Lookup => needs_no_term || !question.terms.is_empty(),
    };
    if !looks_up || conversation.rounds >= MAX_ROUNDS {
        return None;
    }
    let terms = &question.terms;
    let mut calls = match (conversation.standing, conversation.rounds) {
        (Standing::Urged, _) => otherwise(terms, tools),
        (Standing::Going, 0) => opening::calls(question, tools),
        (Standing::Going, _) if question.used_name().is_some() => {
            let more = opening::again(question, evidence, tools);
            match more.is_empty() && !opening::has_uses(question, evidence) {
                true => reading(ranking, question, tools),
                false => more,
            }
        }
        (Standing::Going, 1) => [
            opening::again(question, evidence, tools),
            widening(terms, evidence, ranking, tools),
            reading(ranking, question, tools),
        ]
        .concat(),
        (Standing::Going | Standing::Retried, _) => [
            named_lines(terms, evidence, tools),
            reading(ranking, question, tools),
        ]
        .concat(),
    };
    calls.truncate(MOST_CALLS);
    (!calls.is_empty()).then(|| Plan {
        text: text(conversation.rounds, &calls),
        calls,
    })
}

/// What was found nowhere so far, each for itself. A search that ranks knows all forms of words; what
/// it does not is what stands there as it was asked for, signs included.
fn widening(
    terms: &[Term],
    evidence: &Evidence,
    ranking: &Ranking,
    tools: &Toolbox<'_>,
) -> Vec<Planned> {
    let missing = TermSet::needed(terms).minus(ranking.found);
    let ranked = !evidence.places.is_empty();
    let worth_it = |term: &&Term| {
        !ranked || (term.kind >= TermKind::Path && !evidence.absent.contains(&term.shown))
    };
    // A file that could not be read as it was named may lie in a folder.
    let again = |term: &Term| match term.kind == TermKind::Path && tools.knows_words() {
        true => tools.search(&term.shown, How::Words),
        false => literal(term, tools),
    };
    distinct(
        most_telling(missing, terms)
            .filter(worth_it)
            .filter_map(again),
    )
    .into_iter()
    .take(3)
    .collect()
}

/// The lines that were asked for, of files that could not be read as they were named and were found since.
fn named_lines(terms: &[Term], evidence: &Evidence, tools: &Toolbox<'_>) -> Vec<Planned> {
    let named = terms.iter().filter_map(|term| Some((term, term.lines()?)));
    let reads = named.filter_map(|(term, (first, last))| {
        let mut known = evidence.files.iter();
        let (path, lines) = known.find(|(path, _)| term.is_path_of(path))?;
        match lines.contains_key(&first) {
            true => None,
            false => tools.read_lines(path, first, last),
        }
    });
    distinct(reads).into_iter().take(2).collect()
}

/// Around the hits that the answer would quote.
fn reading(ranking: &Ranking, question: &Question, tools: &Toolbox<'_>) -> Vec<Planned> {
    let quoted = select(&ranking.passages, &question.terms, question.is_of_changes);
    let reads = quoted.iter().filter_map(|passage| {
        // What lies outside of the project, no tool for files reads.
        let is_elsewhere = passage.path.starts_with(ELSEWHERE);
        match is_elsewhere || (passage.is_note && tools.can_read_notes()) {
            true => tools.read_note(&passage.path, passage.lines.0),
            false => tools.read(&passage.path, passage.hit),
        }
    });
    distinct(reads).into_iter().take(3).collect()
}

/// Another strategy: every word and every part of a name for itself, and what files there are.
fn otherwise(terms: &[Term], tools: &Toolbox<'_>) -> Vec<Planned> {
    let all = TermSet::needed(terms);
    let words = most_telling(all, terms).filter_map(|term| literal(term, tools));
    let parts = all.of(terms).flat_map(Term::parts);
    let searches = words.chain(parts.filter_map(|text| tools.search(text, How::Literal)));
    distinct(tools.list().into_iter().chain(searches))
}

/// A search for a term in all its forms.
fn literal(term: &Term, tools: &Toolbox<'_>) -> Option<Planned> {
    let search = tools.search(term.literal(), How::Literal)?;
    Some(search.told_as(&term.shown))
}

fn most_telling(set: TermSet, terms: &[Term]) -> impl Iterator<Item = &Term> {
    let mut sorted: Vec<&Term> = set.of(terms).collect();
    sorted.sort_by_key(|term| std::cmp::Reverse((term.kind, term.shown.chars().count())));
    sorted.into_iter()
}

fn distinct(calls: impl Iterator<Item = Planned>) -> Vec<Planned> {
    let mut distinct: Vec<Planned> = Vec::new();
    for call in calls {
        if !distinct.contains(&call) {
            distinct.push(call);
        }
    }
    distinct
}

fn text(rounds: usize, calls: &[Planned]) -> String {
    let mut searched: Vec<String> = Vec::new();
    let mut read: Vec<String> = Vec::new();
    let mut past: Vec<String> = Vec::new();
    let mut noted: Vec<String> = Vec::new();
    let mut listed = None;
    let quoted = |text: &str| format!("“{}”", shortened(&inert(text), 80));
    for call in calls {
        let (list, words) = match &call.aim {
            Aim::Search(text) => (&mut searched, quoted(text)),
            Aim::Notes(text) => (&mut noted, quoted(text)),
            Aim::History(text) if text.is_empty() => (&mut past, "the latest changes".to_owned()),
            Aim::History(text) => (&mut past, quoted(text)),
            Aim::Read(path) => (&mut read, inert(path)),
            Aim::List => {
                listed = Some("listing the files".to_owned());
                continue;
            }
        };
        if !list.contains(&words) {
            list.push(words);
        }
    }
    let part =
        |verb: &str, of: Vec<String>| (!of.is_empty()).then(|| format!("{verb} {}", of.join(", ")));
    let doing: Vec<String> = [
        listed,
        part("searching the history for", past),
        part("searching the notes for", noted),
        part("searching for", searched),
        part("reading", read),
    ]
    .into_iter()
    .flatten()
    .collect();
    let doing = doing.join(", then ");
    let reason = format!("Round {}: {doing}; the results have to be read", rounds + 1);
    let mut sentence = doing;
    if let Some(first) = sentence.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!(
        "{sentence}.\n\n{}",
        signal(&Stand::NeedTurn { reason }, CONFIDENCE)
    )
}

#[cfg(test)]
mod tests;
