//! What is asked of the history once its first answer is read: what one commit changed, whether there is an
//! author of that name, and of the files, where there is no commit.

use super::{
    super::{
        evidence::Evidence,
        interest::{Change, Interest},
        question::Question,
        toolbox::{How, Planned, Toolbox},
    },
    distinct, opening,
};

/// None if there is nothing of the kind to ask.
pub(super) fn next(
    question: &Question,
    evidence: &Evidence,
    tools: &Toolbox<'_>,
) -> Option<Vec<Planned>> {
    if let Some(hash) = &question.not_commit {
        let literal = tools.search(hash, How::Literal);
        let calls = distinct(literal.into_iter().chain(opening::places(question, tools)));
        return (!calls.is_empty()).then_some(calls);
    }
    let Interest::History(change) = question.interest else {
        return None;
    };
    let (history, bounds) = (&evidence.history, &question.bounds);
    if history.one.is_some() || history.by_author.is_some() {
        return Some(Vec::new());
    }
    if !history.commits.is_empty() {
        let commit = match change {
            Change::Latest => history.commits.first(),
            Change::First => history.commits.last(),
        };
        let commit = commit.filter(|_| bounds.is_detailed)?;
        return tools.commit(&commit.hash).map(|call| vec![call]);
    }
    if !history.is_told || history.is_over {
        return None;
    }
    if let Some(author) = bounds.author.as_ref().filter(|_| bounds.may_be_no_author) {
        return tools.author(author).map(|call| vec![call]);
    }
    question.not_author.as_ref()?;
    let said = opening::past(question, tools, change);
    let changed = opening::changed(question, tools, change);
    let calls = said.into_iter().chain(changed);
    let calls = distinct(calls.chain(opening::places(question, tools)));
    (!calls.is_empty()).then_some(calls)
}
