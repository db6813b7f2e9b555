//! What is read to tell how a project is built, tested or run: the files that name commands, and what its
//! documents say of it.

use super::{
    super::{
        commands,
        evidence::Evidence,
        howto,
        interest::Chore,
        question::Question,
        toolbox::{Planned, Toolbox},
    },
    opening,
};
use crate::words::OF_PROSE;

/// Most files of commands, of documents and of sections that are read.
const MOST_FILES: usize = 2;
const MOST_SECTIONS: usize = 2;
/// As much of a file as one call may show.
const LINES: u32 = 400;

/// What lies at the top, and which documents are about it.
pub(super) fn calls(question: &Question, tools: &Toolbox<'_>) -> Vec<Planned> {
    let documents = tools.search_words_in(&opening::one_line(&question.plain), OF_PROSE);
    tools.map("").into_iter().chain(documents).collect()
}

/// The files that name commands and the sections that are about it; if there is neither, whatever fits.
pub(super) fn again(
    chore: Chore,
    question: &Question,
    evidence: &Evidence,
    tools: &Toolbox<'_>,
) -> Vec<Planned> {
    let top = evidence.top_files();
    let documents = commands::documents(chore, &top)
        .into_iter()
        .take(MOST_FILES);
    let files = commands::naming(&top).into_iter().take(MOST_FILES);
    let files = files.chain(documents);
    let files = files.filter_map(|path| tools.read_lines(path, 1, LINES));
    let sections = howto::sections(chore, evidence);
    let sections = sections.into_iter().take(MOST_SECTIONS);
    let sections = sections.filter_map(|place| tools.read(&place.path, place.lines.0));
    let reads: Vec<Planned> = files.chain(sections).collect();
    match reads.is_empty() && !howto::is_known(chore, evidence) {
        true => opening::places(question, tools),
        false => reads,
    }
}
