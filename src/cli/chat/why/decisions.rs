//! What the runtime decided about a question: budgets, loops, fallback, sub-agents, faults of models.

use super::{Account, rows, told};
use crate::{
    cli::text::grouped,
    model::{
        NanoUsd,
        record::{
            AgentFact, AmountBudget, BudgetFact, FallbackTriggered, IterationExceeded,
            IterationWarning, LlmFact,
        },
        time::Span,
    },
};

impl Account {
    pub(super) fn budget(&mut self, fact: &BudgetFact) {
        let told = match fact {
            BudgetFact::IterationWarning(IterationWarning {
                turn, max_turns, ..
            }) => format!("warning: {turn} of {max_turns} turns are used"),
            BudgetFact::IterationExceeded(IterationExceeded {
                turn, max_turns, ..
            }) => format!("spent: {turn} of {max_turns} turns"),
            BudgetFact::TokensWarning(amount) => format!("warning: {}", tokens(*amount)),
            BudgetFact::TokensExceeded(amount) => format!("spent: {}", tokens(*amount)),
            BudgetFact::CostWarning(amount) => format!("warning: {}", money(*amount)),
            BudgetFact::CostExceeded(amount) => format!("spent: {}", money(*amount)),
            BudgetFact::ContextWarning(amount) => {
                format!("the context window fills: {}", tokens(*amount))
            }
            BudgetFact::ContextExceeded(amount) => {
                format!("the context window is full: {}", tokens(*amount))
            }
            BudgetFact::ContextCompacting(what) => {
                format!("{} is asked for a summary of what was said", what.model)
            }
            BudgetFact::ContextCompacted(done) => {
                let (before, after) = (grouped(done.before), grouped(done.after));
                format!("a summary stands for what was said: {before} tokens are {after} now")
            }
            BudgetFact::ContextCompactionFailed(failed) => {
                let fault = &failed.fault;
                format!(
                    "no summary was to be had: {} ({})",
                    fault.detail, fault.code
                )
            }
        };
        self.under("budget", told);
    }

    pub(super) fn agent(&mut self, fact: &AgentFact) {
        match fact {
            AgentFact::LoopDetected(found) => {
                let (kind, detail) = (told(&found.kind), &found.detail);
                self.under("loop", format_args!("of the same {kind}: {detail}"));
            }
            AgentFact::FallbackTriggered(fallback) => self.fallback(fallback),
            AgentFact::CapabilityRequested(wanted) => {
                let wish = &wanted.wish;
                self.under(
                    "missing",
                    format_args!("{}: {}", wish.capability, wish.reason),
                );
            }
            AgentFact::DelegationRecommended(wish) => {
                self.under("sub-agent", format_args!("recommended for: {}", wish.scope));
            }
            AgentFact::DelegationStarted(child) => {
                let (name, scope) = (&child.child, &child.scope);
                self.under("sub-agent", format_args!("session {name} begins: {scope}"));
            }
            AgentFact::DelegationCancelled(child) => {
                self.under(
                    "sub-agent",
                    format_args!("session {} is taken back", child.child),
                );
            }
            AgentFact::DelegationFinished(end) => {
                let (name, how, used) = (&end.child, end.outcome.name(), rows::used(&end.usage));
                self.under(
                    "sub-agent",
                    format_args!("session {name} ended: {how}; {used}"),
                );
            }
            AgentFact::EscalationRaised(raised) => self.under("escalation", &raised.notice),
        }
    }

    fn fallback(&mut self, fallback: &FallbackTriggered) {
        let (cause, action) = (told(&fallback.cause), told(&fallback.action));
        let sure = rows::percent(fallback.confidence);
        let done = if fallback.applied { "" } else { ", not done" };
        self.under(
            "fallback",
            format_args!(
                "for {cause}: {action}{done}, {sure} sure: {}",
                fallback.reason
            ),
        );
        if let Some(hint) = &fallback.hint {
            self.under("hint", hint);
        }
    }

    pub(super) fn llm(&mut self, fact: &LlmFact) {
        match fact {
            LlmFact::Retried(retried) => {
                let (fault, attempt) = (&retried.fault, retried.attempt);
                self.under(
                    "fault",
                    format_args!(
                        "try {attempt}: {} ({}); it is tried again",
                        fault.detail, fault.code
                    ),
                );
            }
            LlmFact::FailedOver(failed) => {
                let (fault, from, to) = (&failed.fault, &failed.from, &failed.to);
                self.under(
                    "fault",
                    format_args!(
                        "{from}: {} ({}); {to} is asked instead",
                        fault.detail, fault.code
                    ),
                );
            }
            LlmFact::Failed(failed) => {
                let (fault, model) = (&failed.fault, &failed.model);
                self.under(
                    "fault",
                    format_args!("{model}: {} ({})", fault.detail, fault.code),
                );
            }
            LlmFact::Waiting(waiting) => {
                let provider = waiting.model.split('/').next().unwrap_or_default();
                self.under("wait", format_args!("for {provider}: {}", waiting.reason));
            }
            LlmFact::Admitted(admitted) => {
                let waited = Span(std::time::Duration::from_millis(admitted.waited_ms));
                self.under("wait", format_args!("over after {waited}"));
            }
            LlmFact::RateLimited(limited) => {
                let hold = Span(std::time::Duration::from_millis(limited.hold_ms));
                self.under(
                    "wait",
                    format_args!("{} is held for {hold}: rate limit", limited.model),
                );
            }
            LlmFact::RateLimitCleared(cleared) => {
                self.under(
                    "wait",
                    format_args!("{} is not limited any more", cleared.model),
                );
            }
            LlmFact::CircuitOpened(opened) => {
                let cool_down = Span(std::time::Duration::from_millis(opened.cool_down_ms));
                let whom = opened.model.as_ref().unwrap_or(&opened.provider);
                self.under(
                    "fault",
                    format_args!("{whom} is left alone for {cool_down}"),
                );
            }
            LlmFact::CircuitClosed(closed) => {
                let whom = closed.model.as_ref().unwrap_or(&closed.provider);
                self.under("fault", format_args!("{whom} is asked again"));
            }
            // Of requests that leave nothing behind.
            LlmFact::Estimated(_) | LlmFact::Used(_) => {}
        }
    }
}

fn tokens(AmountBudget { used, limit }: AmountBudget) -> String {
    format!("{} of {} tokens", grouped(used), grouped(limit))
}

fn money(AmountBudget { used, limit }: AmountBudget) -> String {
    format!("{} of {}", NanoUsd(used), NanoUsd(limit))
}
