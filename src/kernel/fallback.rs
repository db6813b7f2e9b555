//! The fallback's judgement: what to do when signals fail (spec 7; T042, T043, T047, T048).
//!
//! A pure function of what the query has come to, behind a trait, so that an embedder can put a
//! learned classifier in its place. When it is asked, and what becomes of its advice, is decided
//! elsewhere ([`super::turn_end`], [`super::verdict`]).

use std::sync::Arc;

use crate::model::record::FallbackAction;

/// Accumulated text beyond this many characters is worth an answer.
const SUBSTANTIAL: usize = 500;
/// A query of fewer words is simple.
const SIMPLE_WORDS: usize = 20;
/// What a weak last signal takes off the judgement's confidence.
const WEAK_SIGNAL_PENALTY: f64 = 0.15;

/// What the judgement is made from.
#[derive(Debug, Clone, Copy)]
pub struct FallbackView<'a> {
    /// The user's question.
    pub query: &'a str,
    /// Characters of accumulated text.
    pub accumulated_chars: usize,
    /// Turns running without a signal.
    pub turns_without_signal: u32,
    /// All tool results of the query.
    pub results: usize,
    /// Of these, the failed ones; denied ones are not among them.
    pub failed: usize,
    /// The tools that failed, each once, in order.
    pub failed_tools: &'a [Arc<str>],
    /// The confidence of the query's last signal.
    pub last_confidence: Option<f64>,
    /// Below this a signal is weak.
    pub low_confidence: f64,
}

/// What to do, how sure, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What to do.
    pub action: FallbackAction,
    /// How sure, 0..=1.
    pub confidence: f64,
    /// Words for the model.
    pub hint: Option<String>,
    /// Why.
    pub reason: String,
}

/// Judges what to do when signals fail. Must be a pure function of the view: replay depends on it.
pub trait FallbackClassifier: Send + Sync {
    /// The judgement.
    fn classify(&self, view: &FallbackView<'_>) -> Judgement;
}

/// The built-in judgement: five rules, the first that fits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heuristic;

impl FallbackClassifier for Heuristic {
    fn classify(&self, view: &FallbackView<'_>) -> Judgement {
        let mut judgement = first_rule_that_fits(view);
        if view
            .last_confidence
            .is_some_and(|confidence| confidence < view.low_confidence)
        {
            let weakened = (judgement.confidence - WEAK_SIGNAL_PENALTY).max(0.0);
            // 0.55, not 0.5499999999999999.
            judgement.confidence = (weakened * 1e4).round() / 1e4;
        }
        judgement
    }
}

fn first_rule_that_fits(view: &FallbackView<'_>) -> Judgement {
    let FallbackView {
        results,
        failed,
        turns_without_signal: silent,
        ..
    } = *view;
    let substantial = view.accumulated_chars > SUBSTANTIAL;
    // failed / results > 0.7, without leaving the integers.
    if results > 2 && failed * 10 > results * 7 {
        return Judgement {
            action: FallbackAction::Escalate,
            confidence: 0.7,
            hint: None,
            reason: format!("high tool failure rate: {failed} of {results} calls failed"),
        };
    }
    if substantial && silent >= 2 {
        return Judgement {
            action: FallbackAction::ForceResponse,
            confidence: 0.8,
            hint: None,
            reason: "enough text has come together, and no signal with it".into(),
        };
    }
    if view.query.split_whitespace().count() < SIMPLE_WORDS && results == 0 {
        return Judgement {
            action: FallbackAction::ForceResponse,
            confidence: 0.75,
            hint: Some("The question looks simple: answer it directly.".into()),
            reason: "a simple question, and no tool was used".into(),
        };
    }
    if silent >= 3 && !substantial {
        return Judgement {
            action: FallbackAction::RetryWithHint,
            confidence: 0.6,
            hint: Some(other_ways(view.failed_tools)),
            reason: format!("no progress in {silent} turns"),
        };
    }
    Judgement {
        action: FallbackAction::Continue,
        confidence: 0.5,
        hint: None,
        reason: "nothing speaks for stepping in".into(),
    }
}

fn other_ways(failed_tools: &[Arc<str>]) -> String {
    let start = "The last turns brought nothing new.";
    if failed_tools.is_empty() {
        return format!("{start} Try another way, or answer with what you have.");
    }
    format!(
        "{start} These tools failed: {}. Try another way.",
        failed_tools.join(", ")
    )
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
    fn rows_of_t047() {
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
    fn reasons_and_hints_say_what_was_seen() {
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
