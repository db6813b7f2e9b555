//! What is asked to tell whether a file is there: maps of where it may lie, then its first lines.

use super::super::{
    conversation::Conversation,
    presence,
    question::Question,
    toolbox::{Planned, Toolbox},
};
use super::facts::USUAL;

/// None if that is not asked, or nothing can tell it.
pub(super) fn calls(
    question: &Question,
    conversation: &Conversation<'_>,
    tools: &Toolbox<'_>,
) -> Option<Vec<Planned>> {
    let wanted = question.presence.as_ref()?;
    if let Some(seen) = presence::seen(&wanted.places, &conversation.asked) {
        let first = seen.paths.first();
        let read = first.and_then(|path| tools.read(path, 0));
        // Whether the project is called so, its manifest says.
        let manifests = USUAL.iter().filter(|_| wanted.of.is_some());
        let manifests = manifests.filter_map(|path| tools.read(path, 0));
        return Some(read.into_iter().chain(manifests).collect());
    }
    let places = wanted.places.iter();
    let maps: Vec<Planned> = places.filter_map(|place| tools.map_of(place)).collect();
    (!maps.is_empty()).then_some(maps)
}
