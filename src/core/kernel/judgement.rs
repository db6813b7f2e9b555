//! What the fallback recommends when signals fail: the interface, and the built-in heuristic.

use std::sync::Arc;

use super::guidance;
use crate::model::record::FallbackAction;

const SUBSTANTIAL: usize = 500;
/// Shorter queries are simple.
const SIMPLE_WORDS: usize = 20;
const WEAK_SIGNAL_PENALTY: f64 = 0.15;

/// Input of a judgement.
#[derive(Debug, Clone, Copy)]
pub struct FallbackView<'a> {
    /// The user's question.
    pub query: &'a str,
    /// Characters of all visible texts.
    pub accumulated_chars: usize,
    /// Consecutive turns without a valid signal.
    pub turns_without_signal: u32,
    /// Tool results of the query.
    pub results: usize,
    /// Failed ones among them, including refused calls and unknown outcomes but not denied calls.
    pub failed: usize,
    /// Tools that failed, each once, in order.
    pub failed_tools: &'a [Arc<str>],
    /// Confidence of the query's last signal.
    pub last_confidence: Option<f64>,
    /// Confidence below which a signal is weak.
    pub low_confidence: f64,
}

/// A recommended action with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Action.
    pub action: FallbackAction,
    /// Confidence, from 0 to 1.
    pub confidence: f64,
    /// Hint for the model.
    pub hint: Option<String>,
    /// Reason.
    pub reason: String,
}

/// Judges what to do when signals fail. It must be a pure function of the view.
pub trait FallbackClassifier: Send + Sync {
    /// Returns the judgement.
    fn classify(&self, view: &FallbackView<'_>) -> Judgement;
}

/// The built-in heuristic: the first of five rules that fits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heuristic;

impl FallbackClassifier for Heuristic {
    fn classify(&self, view: &FallbackView<'_>) -> Judgement {
        let mut judgement = first_rule_that_fits(view);
        let last = view.last_confidence;
        if last.is_some_and(|confidence| confidence < view.low_confidence) {
            let weakened = (judgement.confidence - WEAK_SIGNAL_PENALTY).max(0.0);
            // Rounds to 0.55 instead of 0.5499999999999999.
            judgement.confidence = (weakened * 1e4).round() / 1e4;
        }
        judgement
    }
}

fn first_rule_that_fits(view: &FallbackView<'_>) -> Judgement {
    let (results, failed, silent) = (view.results, view.failed, view.turns_without_signal);
    let judged = |action, confidence, hint, reason: String| Judgement {
        action,
        confidence,
        hint,
        reason,
    };
    let substantial = view.accumulated_chars > SUBSTANTIAL;
    // failed / results > 0.7, in integers.
    if results > 2 && failed * 10 > results * 7 {
        let why = format!("high tool failure rate: {failed} of {results} calls failed");
        return judged(FallbackAction::Escalate, 0.7, None, why);
    }
    if substantial && silent >= 2 {
        let why = "substantial text without a signal".into();
        return judged(FallbackAction::ForceResponse, 0.8, None, why);
    }
    if view.query.split_whitespace().count() < SIMPLE_WORDS && results == 0 {
        let why = "a simple question without tool calls".into();
        let hint = Some("The question looks simple: answer it directly.".into());
        return judged(FallbackAction::ForceResponse, 0.75, hint, why);
    }
    if silent >= 3 && !substantial {
        let why = format!("no progress in {silent} turns");
        let hint = Some(guidance::other_ways(view.failed_tools));
        return judged(FallbackAction::RetryWithHint, 0.6, hint, why);
    }
    let why = "no reason to intervene".into();
    judged(FallbackAction::Continue, 0.5, None, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FallbackAction::{Continue, Escalate, ForceResponse, RetryWithHint};

    fn view(query: &str) -> FallbackView<'_> {
        FallbackView {
            query,
            accumulated_chars: 0,
            turns_without_signal: 0,
            results: 0,
            failed: 0,
            failed_tools: &[],
            last_confidence: None,
            low_confidence: 0.3,
        }
    }

    #[test]
    fn fallback_heuristic_follows_the_table() {
        let search: [Arc<str>; 1] = ["search_code".into()];
        let long = "word ".repeat(20);
        let rows = [
            (
                "high_tool_failure_rate_escalates",
                FallbackView {
                    turns_without_signal: 2,
                    results: 3,
                    failed: 3,
                    ..view("How do I fix this bug?")
                },
                (Escalate, 0.7),
            ),
            (
                "substantial_content_forces_response",
                FallbackView {
                    accumulated_chars: 600,
                    turns_without_signal: 2,
                    results: 1,
                    ..view("Explain the architecture")
                },
                (ForceResponse, 0.8),
            ),
            (
                "simple_query_no_tools_forces_response",
                FallbackView {
                    turns_without_signal: 1,
                    ..view("What is Python?")
                },
                (ForceResponse, 0.75),
            ),
            (
                "no_progress_retries_with_hint",
                FallbackView {
                    turns_without_signal: 4,
                    results: 1,
                    failed: 1,
                    failed_tools: &search,
                    ..view("Find the authentication middleware implementation")
                },
                (RetryWithHint, 0.6),
            ),
            (
                "low_confidence_signal_considered",
                FallbackView {
                    accumulated_chars: 17,
                    turns_without_signal: 1,
                    last_confidence: Some(0.2),
                    ..view("Complex multi-part question")
                },
                (ForceResponse, 0.6),
            ),
            (
                "default_continues",
                FallbackView {
                    accumulated_chars: 27,
                    results: 1,
                    ..view("How does the database work?")
                },
                (Continue, 0.5),
            ),
            (
                "two failures are not yet a rate",
                FallbackView {
                    results: 2,
                    failed: 2,
                    ..view("q")
                },
                (Continue, 0.5),
            ),
            (
                "exactly 70 % failed is not over 70 %",
                FallbackView {
                    results: 10,
                    failed: 7,
                    ..view("q")
                },
                (Continue, 0.5),
            ),
            (
                "exactly 500 characters are not substantial",
                FallbackView {
                    accumulated_chars: 500,
                    turns_without_signal: 3,
                    results: 1,
                    ..view("q")
                },
                (RetryWithHint, 0.6),
            ),
            (
                "20 words are not simple",
                FallbackView {
                    turns_without_signal: 2,
                    ..view(&long)
                },
                (Continue, 0.5),
            ),
            (
                "a weak signal weakens a continue",
                FallbackView {
                    results: 1,
                    last_confidence: Some(0.1),
                    ..view("q")
                },
                (Continue, 0.35),
            ),
            (
                "a signal at the threshold is not weak",
                FallbackView {
                    results: 1,
                    last_confidence: Some(0.3),
                    ..view("q")
                },
                (Continue, 0.5),
            ),
        ];
        for (name, view, (action, confidence)) in rows {
            let judgement = Heuristic.classify(&view);
            assert_eq!(judgement.action, action, "{name}");
            assert_eq!(
                judgement.confidence.to_string(),
                confidence.to_string(),
                "{name}"
            );
            assert!(
                !judgement.reason.is_empty(),
                "{name}: classification_has_required_fields"
            );
        }
    }

    #[test]
    fn reason_and_hint_name_the_observed_failure() {
        let search: [Arc<str>; 1] = ["search_code".into()];
        let rate = Heuristic.classify(&FallbackView {
            results: 4,
            failed: 3,
            ..view("q")
        });
        assert_eq!(rate.reason, "high tool failure rate: 3 of 4 calls failed");
        let retry = FallbackView {
            turns_without_signal: 4,
            results: 1,
            failed: 1,
            failed_tools: &search,
            ..view("q")
        };
        let hint = Heuristic.classify(&retry).hint.unwrap_or_default();
        assert!(hint.contains("search_code"), "{hint}");
        assert!(Heuristic.classify(&view("What is Python?")).hint.is_some());
    }
}
