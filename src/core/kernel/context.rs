//! Estimates how much of the context window a call takes.
//!
//! An estimate is floor(characters / 4) times a ratio that is learned from the token counts of the
//! provider. Each session has one ratio, which follows from its records alone, in integers.

use super::{
    draft::Draft,
    policy::{ModelChoice, Policy, spec_tokens},
    session::Session,
};
use crate::model::record::AmountBudget;
/// 1 / `ROOM_KEPT` of the room stays free, because estimates are rough.
const ROOM_KEPT: u64 = 10;
/// Estimated tokens of the next call, before calibration.
pub(super) fn estimate(draft: &Draft<'_>, notes: &[String]) -> u64 {
    let notes: usize = notes.iter().map(|note| note.chars().count()).sum();
    let steers = draft.query.steers.iter();
    let steers: usize = steers.map(|steer| steer.text.chars().count()).sum();
    let conversation = (draft.transcript.chars() + steers + notes) / 4;
    let sent = (conversation as u64).saturating_add(draft.session.instruction_tokens());
    if draft.query.options().is_task {
        return sent;
    }
    sent.saturating_add(draft.query.prompt_tokens)
        .saturating_add(tool_tokens(draft))
}

fn tool_tokens(draft: &Draft<'_>) -> u64 {
    let tokens = match draft.query.options().tools.is_empty() {
        true => draft.policy().tool_list().tokens,
        false => spec_tokens(&draft.query.tools(&draft.policy().tools)),
    };
    tokens + spec_tokens(&draft.added)
}

pub(super) fn use_of(draft: &Draft<'_>, estimate: u64) -> Option<AmountBudget> {
    let limit = draft.next_model()?.context_window?;
    let used = draft.session.calibration.applied_to(estimate);
    Some(AmountBudget { used, limit })
}

pub(super) fn window(policy: &Policy, name: &str) -> Option<u64> {
    model_of(policy, name)?.context_window
}

/// The window less the longest reply, because many servers refuse a call whose reply might not fit;
/// at least half the window. `None` if either is unknown.
pub(super) fn room(policy: &Policy, name: &str) -> Option<u64> {
    let model = model_of(policy, name)?;
    let window = model.context_window?;
    Some(window - model.max_output?.min(window / 2))
}

/// The tokens at which compaction starts: a share of the next model's window, and below its room.
pub(super) fn threshold(draft: &Draft<'_>, limit: u64) -> u64 {
    let next = draft.next_model().map(|model| &*model.name);
    threshold_of(draft.policy(), next.unwrap_or_default(), limit)
}

fn threshold_of(policy: &Policy, model: &str, limit: u64) -> u64 {
    let share = policy.thresholds.context.floor_of(limit);
    room(policy, model).map_or(share, |room| share.min(room - room / ROOM_KEPT))
}

fn model_of<'a>(policy: &'a Policy, name: &str) -> Option<&'a ModelChoice> {
    policy.models.iter().find(|model| *model.name == *name)
}

impl Session {
    /// The context window of the first model, in tokens, if it is known.
    #[doc(hidden)]
    pub fn context_window(&self) -> Option<u64> {
        self.rules.policy.model()?.context_window
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn compaction_threshold_reserves_room_for_the_longest_reply() {
        for (name, window, output, threshold, room) in [
            ("nobody knows the reply", 8_192, None, 5_734, None),
            ("half the window", 8_192, Some(4_096), 3_687, Some(4_096)),
            ("a third", 200_000, Some(64_000), 122_400, Some(136_000)),
            ("small", 200_000, Some(8_000), 140_000, Some(192_000)),
            ("all of it", 8_192, Some(8_192), 3_687, Some(4_096)),
        ] {
            let model = ModelChoice {
                context_window: Some(window),
                max_output: output,
                ..ModelChoice::new("p/one")
            };
            let policy = Policy::new(vec![model], Arc::default());
            assert_eq!(
                super::threshold_of(&policy, "p/one", window),
                threshold,
                "{name}"
            );
            assert_eq!(super::room(&policy, "p/one"), room, "{name}");
        }
    }
}
