//! What is asked of tools for what a type has: where it is defined and implemented, then the outlines of those files.

use super::{
    super::{
        evidence::Evidence,
        members::files,
        question::Question,
        toolbox::{Naming, Planned, Toolbox},
    },
    opening,
};

/// Most files of which outlines are asked for.
const MOST_FILES: usize = 6;

/// None if nothing of the kind is asked for.
pub(super) fn calls(
    question: &Question,
    evidence: &Evidence,
    tools: &Toolbox<'_>,
    rounds: usize,
) -> Option<Vec<Planned>> {
    let name = question.member_of()?;
    if rounds == 0 {
        let heads = tools.search_name(name, Naming::Heads).into_iter();
        return Some(heads.chain(opening::places(question, tools)).collect());
    }
    let outlines = files(name, evidence).into_iter();
    let outlines = outlines.filter_map(|path| tools.outline_of(path, name));
    let calls: Vec<Planned> = outlines.take(MOST_FILES).collect();
    (rounds == 1 && !calls.is_empty()).then_some(calls)
}
