//! What to ask for a list of what notes have; where they have none of that, what any question is put to.

use super::{
    super::{
        evidence::Evidence,
        interest::{Listing, State},
        question::Question,
        rank::Ranking,
        toolbox::{Planned, Toolbox, is_for_marked},
    },
    opening, reading,
};

/// The calls of a round.
pub(super) fn calls(
    (question, listing): (&Question, Listing),
    (evidence, ranking): (&Evidence, &Ranking),
    tools: &Toolbox<'_>,
    rounds: usize,
) -> Vec<Planned> {
    match rounds {
        0 => {
            let first = first(question, listing, tools);
            match first.is_empty() {
                true => opening::places(question, tools),
                false => first,
            }
        }
        1 => match listing {
            Listing::Newest(_) if is_told(listing, evidence) => {
                let newest = evidence.places.iter().find(|place| place.record.is_some());
                let read = newest.and_then(|place| tools.read_note(&place.path, 1));
                read.into_iter().collect()
            }
            _ if is_told(listing, evidence) => Vec::new(),
            _ => opening::places(question, tools),
        },
        _ if is_told(listing, evidence) => Vec::new(),
        _ => reading(ranking, question, tools),
    }
}

/// Whether the list is the answer, even if it has nothing. Of notes without any to-dos "open tasks" are hardly asked,
/// rather of what a program calls so.
pub(in super::super) fn is_told(listing: Listing, evidence: &Evidence) -> bool {
    let listed = &evidence.listed;
    match listing {
        Listing::Tasks(tasks) => {
            let searched = evidence.searched.iter();
            let is_marked = searched.clone().any(|one| is_for_marked(&one.query));
            listed.has_any() || (tasks.are_marked && (listed.is_told || is_marked))
        }
        Listing::Linking | Listing::Broken | Listing::Tagged | Listing::Standing(_) => {
            listed.is_told
        }
        Listing::Mentioning => evidence.places.iter().any(|one| !one.has.is_empty()),
        Listing::Newest(_) => {
            listed.is_told && evidence.places.iter().any(|one| one.record.is_some())
        }
    }
}

fn first(question: &Question, listing: Listing, tools: &Toolbox<'_>) -> Vec<Planned> {
    let subject = question.subject.as_str();
    let plain = question.plain.as_str();
    let notes = |query: &str, with: &[(&str, &str)]| {
        let with: Vec<(&str, &str)> = with.iter().copied().chain(question.days()).collect();
        tools.notes_with(query, &with, plain)
    };
    match listing {
        Listing::Tasks(tasks) => {
            let marked =
                (tasks.are_marked && tasks.state == State::Open).then(|| tools.search_marked());
            let noted = notes(subject, &[("tasks", tasks.state.name())]);
            noted.into_iter().chain(marked.flatten()).collect()
        }
        Listing::Linking => notes("", &[("links_to", subject)]).into_iter().collect(),
        Listing::Broken => notes("", &[("links_to", "broken")]).into_iter().collect(),
        Listing::Mentioning => notes(subject, &[]).into_iter().collect(),
        Listing::Tagged => notes("", &[("tag", subject)]).into_iter().collect(),
        Listing::Standing(status) => {
            let with = [("kind", "decision"), ("status", status)];
            notes("", &with).into_iter().collect()
        }
        Listing::Newest(kind) => notes(subject, &[("kind", kind)]).into_iter().collect(),
    }
}
