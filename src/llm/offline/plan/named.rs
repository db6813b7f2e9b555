//! What is asked of tools for the very name that a question is about, as long as nothing that is known has it.

use super::{
    super::{
        evidence::Evidence,
        question::{Question, is_that_name},
        rank::{About, Passage, Ranking, has},
        toolbox::{Naming, Planned, Toolbox},
    },
    distinct,
};

/// What defines the name whose definition is asked for, and every line that has it, if none that was found defines it:
/// it may be only used. Of another name that is asked for, every line, if none has it.
pub(super) fn proving(
    question: &Question,
    evidence: &Evidence,
    ranking: &Ranking,
    tools: &Toolbox<'_>,
) -> Vec<Planned> {
    let passages = || ranking.passages.iter();
    let namings: (Option<&str>, &[Naming<'_>]) = match question.sought_definition() {
        Some(name) => {
            let is_defined = passages().any(|one| one.exact && defines(one, name));
            let is_sought = Some(name).filter(|_| !is_defined);
            (is_sought, &[Naming::Definition, Naming::Any])
        }
        None => {
            let name = question.very_name();
            let is_sought = name.filter(|name| !passages().any(|one| has(one, evidence, name)));
            (is_sought, &[Naming::Any])
        }
    };
    let (name, namings) = namings;
    let searches = name.into_iter().flat_map(|name| {
        let namings = namings.iter();
        namings.filter_map(move |naming| tools.search_name(name, *naming))
    });
    distinct(searches)
}

fn defines(passage: &Passage, name: &str) -> bool {
    match &passage.about {
        Some(About::Definition(about)) => is_that_name(about, name),
        Some(About::Section(_)) | None => false,
    }
}
