//! What to ask of tools next, if anything.
//!
//! What the question wants to hear about says where to begin (`opening`, of change logs `changes`); then widen by what was
//! found nowhere, and read around the best hits; after a dead end that the runtime answered, one
//! other strategy. No call is ever made twice, and there are at most [`MAX_ROUNDS`] rounds, so every
//! query comes to an end. Pure.

use super::{
    answer::select,
    conversation::{Conversation, Standing},
    evidence::{ELSEWHERE, Evidence},
    interest::Interest,
    manifest,
    protocol::{Percent, Stand, inert, shortened, signal},
    question::{Kind, Question},
    rank::Ranking,
    source::LONGEST_WHOLE,
    term::{Term, TermKind, TermSet},
    toolbox::{Aim, How, Planned, Toolbox},
};

mod changes;
mod facts;
mod howto;
mod listing;
mod members;
mod named;
mod opening;
mod owned;
mod past;
mod presence;
mod shown;
mod uses;

pub(super) use listing::is_told as is_listed;

/// Most replies of a query that ask for tools.
pub(super) const MAX_ROUNDS: usize = 4;

/// Most calls in one reply.
const MOST_CALLS: usize = 6;

/// Most ends of a path that are tried.
const MOST_ENDS: usize = 4;

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
    let is_of_files =
        question.of_log.is_some() || question.presence.is_some() || question.shown.is_some();
    let needs_no_term = question.interest != Interest::Places || is_of_files;
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
        (Standing::Going, rounds) if let Interest::Listed(listing) = question.interest => {
            listing::calls((question, listing), (evidence, ranking), tools, rounds)
        }
        (Standing::Going, _)
            if let Some(calls) = presence::calls(question, conversation, tools) =>
        {
            calls
        }
        (Standing::Going, _) if let Some(calls) = shown::calls(question, conversation, tools) => {
            calls
        }
        (Standing::Going, rounds)
            if let Some(calls) = members::calls(question, evidence, tools, rounds) =>
        {
            calls
        }
        (Standing::Going, 0) => opening::calls(question, tools),
        (Standing::Going, _) if let Some(calls) = of_log(question, evidence, tools) => calls,
        (Standing::Going, _) if let Some(calls) = past::next(question, evidence, tools) => calls,
        (Standing::Going, _) if question.used_name().is_some() => {
            let more = opening::again(question, evidence, tools);
            match more.is_empty() && !uses::has_uses(question, evidence) {
                true => reading(ranking, question, tools),
                false => more,
            }
        }
        (Standing::Going, _) if question.interest.is_of_project() => {
            match opening::again(question, evidence, tools) {
                none if none.is_empty() && !is_told(question, evidence) => {
                    second(question, evidence, ranking, tools)
                }
                more => more,
            }
        }
        (Standing::Going, 1 | 2) if question.is_whole && !ranking.passages.is_empty() => {
            match named::proving(question, evidence, ranking, tools) {
                none if none.is_empty() => all_of_it(ranking, tools),
                searches => searches,
            }
        }
        (Standing::Going, 1) => match too_early(question, evidence, tools) {
            none if none.is_empty() => second(question, evidence, ranking, tools),
            once_more => once_more,
        },
        (Standing::Going, 2) if tools.asked_once_more() => {
            second(question, evidence, ranking, tools)
        }
        (Standing::Going | Standing::Retried, _) => [
            named_lines(terms, evidence, tools),
            owned::proving(question, evidence, ranking, tools),
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

/// Whether what was asked of the project as such is known.
fn is_told(question: &Question, evidence: &Evidence) -> bool {
    match question.interest {
        Interest::Facts(fact) => manifest::all_stated(fact, evidence).next().is_some(),
        Interest::HowTo(chore) => super::howto::is_known(chore, evidence),
        _ => false,
    }
}

/// What is to be read of change logs, if they are asked for and there are any.
fn of_log(question: &Question, evidence: &Evidence, tools: &Toolbox<'_>) -> Option<Vec<Planned>> {
    changes::next(question.of_log.as_ref()?, evidence, tools)
}

/// What the first round leaves to be looked for, and what it found to be read.
fn second(
    question: &Question,
    evidence: &Evidence,
    ranking: &Ranking,
    tools: &Toolbox<'_>,
) -> Vec<Planned> {
    [
        opening::again(question, evidence, tools),
        named::proving(question, evidence, ranking, tools),
        owned::proving(question, evidence, ranking, tools),
        below_the_top(question, evidence, tools),
        widening(&question.terms, evidence, ranking, tools),
        reading(ranking, question, tools),
    ]
    .concat()
}

/// What was asked before the index was ready, once more: by now it may be.
fn too_early(question: &Question, evidence: &Evidence, tools: &Toolbox<'_>) -> Vec<Planned> {
    match evidence.limits.is_unranked {
        true => opening::calls(question, tools),
        false => Vec::new(),
    }
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

/// Files that were named from the top of another system, by the ends of their paths: where the project begins in
/// them is not known.
fn below_the_top(question: &Question, evidence: &Evidence, tools: &Toolbox<'_>) -> Vec<Planned> {
    let is_known = |term: &Term| evidence.files.keys().any(|path| term.is_path_of(path));
    // Of a term the signs before it are gone.
    let is_of_system = |term: &Term| {
        let plain = &question.plain;
        plain
            .match_indices(&term.shown)
            .any(|(at, _)| plain[..at].ends_with(['/', '\\']))
    };
    let unknown = question
        .terms
        .iter()
        .filter(|term| term.kind == TermKind::Path && is_of_system(term) && !is_known(term));
    let reads = unknown.flat_map(|term| {
        let (first, last) = term.lines().unwrap_or((0, 0));
        let ends = ends_of(&term.shown).filter_map(move |end| tools.read_lines(end, first, last));
        ends.collect::<Vec<_>>()
    });
    distinct(reads).into_iter().take(MOST_ENDS).collect()
}

/// The ends of a path that have at least a folder and a file, the longest first.
fn ends_of(path: &str) -> impl Iterator<Item = &str> {
    let path = path.trim_start_matches(['/', '.']);
    let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    let ends = ends.filter(|end| end.contains('/'));
    let all: Vec<&str> = ends.collect();
    let most = all.len().saturating_sub(MOST_ENDS);
    all.into_iter().skip(most)
}

/// Far around the best hit.
fn all_of_it(ranking: &Ranking, tools: &Toolbox<'_>) -> Vec<Planned> {
    let best = ranking.passages.iter().find(|passage| passage.hit > 0);
    let read = best.and_then(|best| {
        let first = best.hit.saturating_sub(LONGEST_WHOLE / 2).max(1);
        tools.read_lines(&best.path, first, best.hit + LONGEST_WHOLE)
    });
    read.into_iter().collect()
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
