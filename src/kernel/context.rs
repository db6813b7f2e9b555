//! Estimates how much of the context window a call takes, and calibrates the estimate.
//!
//! An estimate is floor(characters / 4) times a ratio that is learned from the token counts of the
//! provider. Each session has one ratio, which follows from its records alone, in integers.

use serde::{Deserialize, Serialize};

use super::{
    draft::Draft,
    format,
    policy::{ModelChoice, Policy},
    session::Session,
};
use crate::model::{ToolSpec, record::AmountBudget};

const ONE: u64 = 10_000;
const BOUNDS: (u64, u64) = (ONE / 4, ONE * 4);
const WEIGHT: u64 = 4;
/// 1 / `ROOM_KEPT` of the room stays free, because estimates are rough.
const ROOM_KEPT: u64 = 10;
/// The frame of a message distorts the ratio of a smaller estimate.
const TELLING: u64 = 32;

/// Counted tokens per estimated token, in ten-thousandths; `None` before the first count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Calibration(Option<u64>);

impl Calibration {
    pub(super) fn learn(&mut self, estimated: u64, counted: u64) {
        if counted == 0 || estimated < TELLING {
            return;
        }
        let found = counted.saturating_mul(ONE) / estimated;
        let found = found.clamp(BOUNDS.0, BOUNDS.1);
        let mixed = |known: u64| (known * (WEIGHT - 1) + found) / WEIGHT;
        self.0 = Some(self.0.map_or(found, mixed));
    }

    pub(super) fn applied_to(self, estimate: u64) -> u64 {
        self.0
            .map_or(estimate, |ratio| scaled(estimate, ratio, ONE))
    }

    pub(super) fn chars_of(self, tokens: u64) -> usize {
        let estimate = scaled(tokens, ONE, self.0.unwrap_or(ONE));
        usize::try_from(estimate.saturating_mul(4)).unwrap_or(usize::MAX)
    }
}

fn scaled(amount: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

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
    let instruction = format::instruction(&draft.query.options().format);
    let instruction = instruction.map_or(0, |text| text.chars().count() / 4);
    sent.saturating_add(draft.query.prompt_tokens)
        .saturating_add(tool_tokens(draft))
        .saturating_add(instruction as u64)
}

fn tool_tokens(draft: &Draft<'_>) -> u64 {
    let tokens = match draft.query.options().tools.is_empty() {
        true => draft.session.tool_tokens(),
        false => spec_tokens(&draft.query.tools(draft.policy())),
    };
    tokens + spec_tokens(&draft.added)
}

fn spec_tokens(tools: &[ToolSpec]) -> u64 {
    let each = tools.iter().map(|tool| {
        let words = tool.name.chars().count() + tool.description.chars().count();
        words + tool.schema.to_string().chars().count()
    });
    (each.sum::<usize>() / 4) as u64
}

pub(super) fn use_of(draft: &Draft<'_>, estimate: u64) -> Option<AmountBudget> {
    let limit = draft.policy().model()?.context_window?;
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

/// The tokens at which compaction starts: a share of the first model's window, and below its room.
pub(super) fn threshold(policy: &Policy, limit: u64) -> u64 {
    let share = policy.thresholds.context.floor_of(limit);
    let room = policy.model().and_then(|model| room(policy, &model.name));
    room.map_or(share, |room| share.min(room - room / ROOM_KEPT))
}

fn model_of<'a>(policy: &'a Policy, name: &str) -> Option<&'a ModelChoice> {
    policy.models.iter().find(|model| *model.name == *name)
}

impl Session {
    /// The context window of the first model, in tokens, if it is known.
    pub(crate) fn context_window(&self) -> Option<u64> {
        self.rules.policy.model()?.context_window
    }

    fn tool_tokens(&self) -> u64 {
        let tokens = &self.rules.tool_tokens;
        *tokens.get_or_init(|| spec_tokens(&self.rules.policy.tools))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn learnt(pairs: &[(u64, u64)]) -> Calibration {
        let mut calibration = Calibration::default();
        for (estimated, counted) in pairs {
            calibration.learn(*estimated, *counted);
        }
        calibration
    }

    #[test]
    fn token_estimate_is_calibrated_by_reported_usage() {
        for (name, pairs, estimate, tokens) in [
            ("nothing known", vec![], 1_000, 1_000),
            (
                "taken at its word first",
                vec![(1_000, 1_600)],
                1_000,
                1_600,
            ),
            (
                "then moved by a quarter",
                vec![(1_000, 1_600), (1_000, 2_000)],
                1_000,
                1_700,
            ),
            ("fewer than estimated", vec![(1_000, 800)], 1_000, 800),
            ("absurdly many", vec![(1_000, u64::MAX)], 1_000, 4_000),
            ("absurdly few", vec![(1_000_000, 1)], 1_000, 250),
            ("none reported", vec![(1_000, 0)], 1_000, 1_000),
            ("too little to tell", vec![(31, 310)], 1_000, 1_000),
            (
                "nothing is beyond it",
                vec![(1_000, 4_000)],
                u64::MAX,
                u64::MAX,
            ),
        ] {
            assert_eq!(learnt(&pairs).applied_to(estimate), tokens, "{name}");
        }
    }

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
            assert_eq!(super::threshold(&policy, window), threshold, "{name}");
            assert_eq!(super::room(&policy, "p/one"), room, "{name}");
        }
    }

    #[test]
    fn chars_of_inverts_the_token_estimate() {
        assert_eq!(Calibration::default().chars_of(100), 400);
        assert_eq!(learnt(&[(1_000, 1_600)]).chars_of(160), 400);
        assert_eq!(Calibration::default().chars_of(u64::MAX), usize::MAX);
    }
}
