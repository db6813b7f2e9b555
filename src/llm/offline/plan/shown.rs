//! What is asked to show a file or a folder: the lines of the one, by its path or wherever one of that name lies; a map of
//! the other.

use super::super::{
    conversation::Conversation,
    presence,
    question::{Question, Shown},
    toolbox::{Planned, Toolbox},
};
use crate::model::ToolStatus;

/// None if nothing of the kind is asked for, it is not there, or nothing can tell.
pub(super) fn calls(
    question: &Question,
    conversation: &Conversation<'_>,
    tools: &Toolbox<'_>,
) -> Option<Vec<Planned>> {
    let shown = question.shown.as_ref()?;
    let place = shown.place();
    let seen = presence::seen(std::slice::from_ref(&place), &conversation.asked);
    match (shown, seen) {
        (Shown::Folder(_), None) => tools.map_of_folder(&place).map(|map| vec![map]),
        (Shown::Folder(folder), Some(seen)) => {
            let is_there = !seen.paths.is_empty() || seen.more > 0;
            (is_there || folder.contains('/')).then(Vec::new)
        }
        (Shown::File(path), None) => match result_of(conversation, path) {
            None => tools.read(path, 0).map(|read| vec![read]),
            Some((ToolStatus::Ok, _)) => Some(Vec::new()),
            Some((_, said)) if said.starts_with("there is no ") => {
                tools.map_of(&place).map(|map| vec![map])
            }
            Some(_) => None,
        },
        (Shown::File(_), Some(seen)) => match seen.paths.as_slice() {
            [] => None,
            [only] => Some(tools.read(only, 0).into_iter().collect()),
            [..] => Some(Vec::new()),
        },
    }
}

/// What came of reading a file.
fn result_of<'a>(conversation: &'a Conversation<'_>, path: &str) -> Option<(ToolStatus, &'a str)> {
    let asked = conversation.asked.iter().filter(|asked| {
        let arguments = asked.call.parsed().ok();
        let named = arguments.and_then(|one| Some(one.get("path")?.as_str()? == path));
        named.unwrap_or(false)
    });
    let mut results = asked.filter_map(|asked| asked.result);
    results
        .next()
        .map(|result| (result.status, result.content.as_str()))
}
