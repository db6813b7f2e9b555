//! The last reply: where it is, the best passages with their places, and how good that is.
//!
//! Extractive and honest: it quotes and points, says which words it found nowhere, and says so when
//! it found nothing. Always ends with a signal of its own, outside any fence. Pure.

use super::{
    conversation::Conversation,
    evidence::Evidence,
    interest::{Change, Interest},
    protocol::{Percent, Stand, inert, inert_path, shortened, signal},
    question::{Kind, Question},
    quote::{in_sentence, place, quote},
    rank::{About, Passage, Ranking},
    source::FileKind,
    stuck::{self, Means},
    term::{Term, TermSet},
};

mod again;
mod changes;
mod deed;
mod elsewhere;
mod facts;
mod gaps;
mod history;
mod howto;
mod kin;
mod listed;
mod members;
mod misread;
mod noted;
mod overview;
mod owned;
mod presence;
mod recall;
mod shown;
mod talk;
mod tasks;
mod undefined;
mod uses;
mod very_name;
mod whole;

use elsewhere::{Elsewhere, not_elsewhere};

/// Most passages quoted, of all files and of one.
const MOST_QUOTED: usize = 4;
const MOST_OF_A_FILE: usize = 2;

/// So many are quoted for their score alone; more only for words that they add.
const ENOUGH_QUOTED: usize = 3;

/// So much of a question a place has to have to answer it, in hundredths.
const ENOUGH_COVERED: u32 = 65;

/// Most other places that are named.
const MOST_ELSEWHERE: usize = 5;

/// All that an answer is made of.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) conversation: &'a Conversation<'a>,
    pub(super) question: &'a Question,
    pub(super) evidence: &'a Evidence,
    pub(super) ranking: &'a Ranking,
    pub(super) means: Means,
}

/// The whole text of the reply, signal included.
pub(super) fn compose(case: &Case<'_>) -> String {
    let terms = &case.question.terms;
    let quotable: Vec<Passage> = case
        .ranking
        .passages
        .iter()
        .filter(|passage| passage.hit > 0)
        .cloned()
        .collect();
    let quoted = select(&quotable, terms, case.question.is_of_changes);
    let said = match (case.question.kind, told_of_history(case)) {
        (Kind::Chat(chat), _) => talk::chatter(chat),
        (Kind::Recall(recall), _) => recall::compose(case.conversation, recall),
        (Kind::Deed, _) => deed::compose(case, &quoted),
        (Kind::Lookup, Some(change)) => {
            changes::beside(case, history::compose(case, change, &quoted))
        }
        (Kind::Lookup, None) => looked_up(case, &quoted),
    };
    let (body, stand, confidence) = match again::is_told(case, &said, &quoted) {
        true => again::further(case, &quotable),
        false => said,
    };
    let (read_otherwise, stand) = history::taken_for_a_word(case, stand);
    format!("{read_otherwise}{body}\n\n{}", signal(&stand, confidence))
}

/// What is answered by more than places.
fn special(case: &Case<'_>) -> Option<Said> {
    let used = match case.question.is_of_kin {
        true => kin::compose(case),
        false => uses::compose(case),
    };
    presence::compose(case)
        .or_else(|| shown::compose(case))
        .or_else(|| listed::compose(case))
        .or_else(|| changes::compose(case))
        .or(used)
        .or_else(|| members::compose(case))
        .or_else(|| facts::compose(case))
        .or_else(|| howto::compose(case))
}

fn looked_up(case: &Case<'_>, quoted: &[&Passage]) -> Said {
    if let Some(said) = special(case).or_else(|| whole::compose(case, quoted)) {
        return said;
    }
    match quoted {
        _ if overview::is_known(case) => overview::compose(case),
        [] if is_wordless(case) => talk::wordless(),
        [] => stuck::compose(case),
        quoted => found(case, quoted),
    }
}

/// What is said, how that stands, and how sure that is.
type Said = (String, Stand, Percent);

/// Whether the question names nothing, not even the whole or its history.
fn is_wordless(case: &Case<'_>) -> bool {
    case.question.interest == Interest::Places && case.question.terms.is_empty()
}

/// Which change a history tells that was asked for one.
fn told_of_history(case: &Case<'_>) -> Option<Change> {
    match case.question.interest {
        Interest::History(change) if is_history_known(case) => Some(change),
        _ => None,
    }
}

/// Whether there are commits, or it is known that there are none of the days that were asked for.
fn is_history_known(case: &Case<'_>) -> bool {
    let (history, question) = (&case.evidence.history, case.question);
    let is_bounded = question.bounds.lists() && question.terms.is_empty();
    let is_answered = history.one.is_some() || history.is_over || history.by_author.is_some();
    is_answered
        || !history.commits.is_empty()
        || (history.is_told && !history.is_stopped && is_bounded)
}

fn found(case: &Case<'_>, quoted: &[&Passage]) -> Said {
    let terms = &case.question.terms;
    let needed = TermSet::needed(terms);
    let lead = quoted.first().map(|best| leading(case, best));
    let lead = lead.unwrap_or_default();
    let elsewhere = not_elsewhere(case, quoted);
    let lead = match elsewhere.as_ref().map(|one| &*one.told) {
        Some(told) if !told.is_empty() => format!("{told} {lead}"),
        Some(_) | None => lead,
    };
    let lead = lead + &noted::about(case, quoted);
    let misread = quoted.first().map(|best| misread::told(case, best));
    let lead = misread.unwrap_or_default() + &lead;
    let gaps = gaps::of(case, quoted);
    let note = gaps
        .as_ref()
        .map(|gaps| format!(" Missing: {gaps}."))
        .unwrap_or_default();
    let gaps = gaps.or_else(|| elsewhere.as_ref().map(|one| one.missing.clone()));
    let gaps = gaps.or_else(|| case.question.unknown_days());
    let behind = elsewhere.map_or("", |one| one.behind);
    let body = format!("{lead}{note}\n\n{}{behind}", places(case, quoted));
    match gaps {
        None => {
            let stand = Stand::Sufficient {
                sources_found: cited_files(quoted).len(),
                source_types: source_types(quoted),
            };
            (body, stand, sureness(needed, quoted))
        }
        Some(missing) => {
            let far = quoted.first().map(|best| misread::far(case, best));
            let had = gaps::together(quoted).minus(far.unwrap_or_default());
            let share = 35 * needed.and(had).len() / needed.len().max(1);
            let caveat =
                Some("these are quotes found by their words, not an explanation".to_owned());
            (
                body,
                Stand::Partial { missing, caveat },
                Percent(30 + share),
            )
        }
    }
}

/// Surer if one place has all the words, and if it defines what was asked for.
fn sureness(needed: TermSet, quoted: &[&Passage]) -> Percent {
    let Some(best) = quoted.first() else {
        return Percent(0);
    };
    let lacking = needed.minus(best.all_terms()).len();
    let together = match lacking {
        0 => 20,
        few if few * 2 <= needed.len() => 5,
        _ => 0,
    };
    let defined = if best.about.is_some() { 15 } else { 0 };
    Percent(55 + together + defined)
}

fn leading(case: &Case<'_>, best: &Passage) -> String {
    let place = in_sentence(&place(best));
    let place = match &best.record {
        Some(record) => format!("{place} ({})", inert(record)),
        None => place,
    };
    match &best.about {
        Some(About::Definition(name)) => {
            let name = owned::shown(case, best).map_or(name.clone(), inert);
            format!("The closest match is the definition of `{name}` in {place}.")
        }
        Some(About::Section(title)) => {
            let title = shortened(&inert(title), 80);
            format!("The closest match is the section “{title}” in {place}.")
        }
        None => format!("The closest match is in {place}."),
    }
}

/// Terms as they may stand in a sentence.
pub(super) fn names<'a>(terms: impl Iterator<Item = &'a Term>) -> String {
    let names: Vec<String> = terms
        .map(|term| format!("“{}”", shortened(&inert(&term.shown), 60)))
        .collect();
    names.join(", ")
}

/// The quotes, and where else there is something.
fn places(case: &Case<'_>, quoted: &[&Passage]) -> String {
    let mut blocks: Vec<String> = quoted
        .iter()
        .map(|passage| quote(passage, case.evidence))
        .collect();
    let mut named: Vec<&str> = quoted.iter().map(|passage| &*passage.path).collect();
    let mut elsewhere: Vec<String> = Vec::new();
    for passage in &case.ranking.passages {
        if elsewhere.len() < MOST_ELSEWHERE && !named.contains(&&*passage.path) {
            named.push(&passage.path);
            let path = inert_path(&passage.path);
            elsewhere.push(in_sentence(&match passage.hit {
                0 => path,
                hit => format!("{path}:{hit}"),
            }));
        }
    }
    if !elsewhere.is_empty() {
        blocks.push(format!("See also {}.", elsewhere.join(", ")));
    }
    blocks.join("\n\n")
}

fn cited_files<'a>(quoted: &[&'a Passage]) -> Vec<&'a str> {
    let mut files: Vec<&str> = quoted.iter().map(|passage| passage.path.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    files
}

fn source_types(quoted: &[&Passage]) -> Vec<&'static str> {
    let kinds = |wanted: &str| {
        quoted.iter().any(|passage| {
            wanted
                == match passage.kind {
                    FileKind::Docs => "docs",
                    FileKind::Code | FileKind::Test | FileKind::Vendored | FileKind::Lock => "code",
                }
        })
    };
    ["code", "docs"]
        .into_iter()
        .filter(|kind| kinds(kind))
        .collect()
}

/// What to quote for a question, which may be one of changes: the best passage, those that add words of
/// the question, and what is nearly as good as the best.
pub(super) fn select<'a>(
    passages: &'a [Passage],
    terms: &[Term],
    is_of_changes: bool,
) -> Vec<&'a Passage> {
    let needed = TermSet::needed(terms);
    let Some(best) = passages.first() else {
        return Vec::new();
    };
    // Other files first: which of them has it, people see sooner than any ranking does.
    let mut chosen = vec![best];
    let good = |passage: &&Passage| passage.score * 2 >= best.score;
    while chosen.len() < ENOUGH_QUOTED {
        let mut others = passages
            .iter()
            .filter(good)
            .filter(|passage| chosen.iter().all(|known| known.path != passage.path));
        // The last one is code beside documents, or a document beside code: either may say it.
        // What changed when, change logs say.
        let is_last = chosen.len() + 1 == ENOUGH_QUOTED && !is_of_changes;
        let alike = |passage: &&Passage| {
            chosen
                .iter()
                .all(|known| (known.kind == FileKind::Docs) == (passage.kind == FileKind::Docs))
        };
        let next = match is_last {
            true => others
                .clone()
                .find(|passage| !alike(passage))
                .or_else(|| others.next()),
            false => others.next(),
        };
        let Some(next) = next else { break };
        chosen.push(next);
    }
    let mut covered = chosen
        .iter()
        .fold(TermSet::default(), |set, p| set.or(p.all_terms()));
    while chosen.len() < MOST_QUOTED {
        let free = || {
            passages.iter().filter(|p| {
                let of_file = chosen.iter().filter(|c| c.path == p.path).count();
                of_file < MOST_OF_A_FILE && !chosen.contains(p)
            })
        };
        let adds = |p: &&Passage| p.all_terms().and(needed).minus(covered).len();
        // The first of those that add most.
        let adding = free()
            .filter(|p| adds(p) > 0)
            .min_by_key(|p| std::cmp::Reverse(adds(p)));
        let good = free().find(|p| chosen.len() < ENOUGH_QUOTED && p.score * 2 >= best.score);
        let Some(next) = adding.or(good) else { break };
        covered = covered.or(next.all_terms());
        chosen.push(next);
    }
    chosen
}

#[cfg(test)]
mod tests;
