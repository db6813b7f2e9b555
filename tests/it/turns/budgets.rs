//! Budgets: turns, tokens, money, the context window.

use oracle_agent::{
    kernel::{Command, InFlight, ModelChoice, Policy, Refusal, Report},
    model::{
        Fault, Limits, LimitsRequest, NanoUsd, PartialLimits, Price, QueryId, Submission, Usage,
        record::{AmountBudget, BudgetFact, Fact, IterationExceeded, IterationWarning, TurnMode},
    },
};

use super::{play::Play, script::*};

const TRUNCATED: &str = "[Response truncated due to budget limit]";
const NOTHING: &str = "[Unable to complete: budget limit reached]";

fn budget_facts(play: &Play) -> Vec<BudgetFact> {
    let facts = play.log.iter().filter_map(|record| {
        let Fact::Budget(fact) = &record.fact else {
            return None;
        };
        Some(fact.clone())
    });
    facts.collect()
}

fn need_turns(play: &mut Play, count: u32, text: &str) {
    for turn in 0..count {
        play.says(&format!(
            "{text} {}",
            need(&format!("reason number {turn}"))
        ));
    }
}

#[test]
fn the_last_turn_is_announced_and_offers_no_tools() {
    let mut play = Play::asked(turns(3));
    need_turns(&mut play, 2, "");
    assert_eq!(play.mode(), TurnMode::Last);
    let notice = play.guidance().concat();
    assert!(notice.starts_with(
        "For this reply: it is the last of 3 turns for this question. No tools are available now."
    ));
    let mut only = Play::asked(turns(1));
    assert_eq!(
        only.mode(),
        TurnMode::Last,
        "of one turn the first is the last"
    );
    only.says("So it is.");
    assert_eq!(only.end(), Some(("answered", "")));
}

#[test]
fn the_last_turn_ends_the_query() {
    let by_budget = Some(("forced", "budget"));
    for (name, text, calls, end) in [
        (
            "row 2: context_sufficient",
            format!("So. {}", done()),
            vec![],
            Some(("answered", "")),
        ),
        (
            "row 2: text",
            "So.".to_owned(),
            vec![],
            Some(("answered", "")),
        ),
        (
            "row 2: text, rejected signal",
            "So. <signal type='x'></signal>".to_owned(),
            vec![],
            Some(("answered", "")),
        ),
        (
            "row 3: partial_answer",
            format!("So. {}", partial()),
            vec![],
            Some(("partial", "the error paths")),
        ),
        (
            "row 3: stuck",
            format!("So. {}", stuck("no access")),
            vec![],
            Some(("stuck", "no access")),
        ),
        (
            "row 4: need_turn",
            format!("So. {}", need("more to read")),
            vec![],
            by_budget,
        ),
        (
            "row 4: delegation",
            format!("So. {}", delegate("all of src")),
            vec![],
            by_budget,
        ),
        (
            "row 4: calls",
            "So.".to_owned(),
            vec![call("c1", "search")],
            by_budget,
        ),
        ("row 4: nothing", String::new(), vec![], by_budget),
    ] {
        let mut play = Play::asked(turns(2));
        need_turns(&mut play, 1, "");
        play.calls(&text, calls);
        assert_eq!(play.end(), end, "{name}");
        assert_eq!(
            (play.count("tool.started"), play.count("delegation.started")),
            (0, 0),
            "{name}"
        );
    }
}

#[test]
fn a_forced_end_says_so_with_and_without_text() {
    for (name, text, answer) in [
        (
            "with text",
            "Found.",
            format!("Found.\n\nFound.\n\n{TRUNCATED}"),
        ),
        ("without", "", NOTHING.to_owned()),
    ] {
        let mut play = Play::asked(turns(2));
        need_turns(&mut play, 2, text);
        assert_eq!(play.end(), Some(("forced", "budget")), "{name}");
        assert_eq!(play.answer(), answer, "{name}");
    }
}

#[test]
fn turn_budget_warns_once_and_is_exceeded_once() {
    let mut play = Play::asked(turns(5));
    need_turns(&mut play, 5, "Found.");
    let warning = IterationWarning {
        turn: 3,
        max_turns: 5,
        percentage: 60.0,
        remaining: 2,
    };
    let exceeded = IterationExceeded {
        turn: 5,
        max_turns: 5,
        percentage: 100.0,
        forced: true,
    };
    let expected = [
        BudgetFact::IterationWarning(warning),
        BudgetFact::IterationExceeded(exceeded),
    ];
    assert_eq!(budget_facts(&play), expected);
}

#[test]
fn turn_warning_precedes_the_turn() {
    let mut play = Play::asked(turns(90));
    for turn in 0..62 {
        play.says(&need(&format!("reason number {turn}")));
    }
    assert_eq!(play.count("budget.iteration.warning"), 0, "62 of 90");
    play.says(&need("reason number 62"));
    let kinds = [
        "turn.replied",
        "signal.emitted",
        "budget.iteration.warning",
        "turn.started",
    ];
    assert_eq!(play.kinds(), kinds, "63 of 90");
}

#[test]
fn amount_budgets_warn_at_eighty_percent_and_end_the_query() {
    let tokens = |limit| Limits {
        max_tokens: Some(limit),
        ..Limits::default()
    };
    let cost = |limit| Limits {
        max_cost: Some(NanoUsd(limit)),
        ..Limits::default()
    };
    let of_query = |limits| Policy { limits, ..policy() };
    let figures = |used, limit| AmountBudget { used, limit };
    // Each turn uses 100 tokens and 1,000 nano-dollars.
    for (name, policy, by, warned, spent) in [
        (
            "tokens of the query",
            of_query(tokens(500)),
            "tokens",
            BudgetFact::TokensWarning(figures(400, 500)),
            BudgetFact::TokensExceeded(figures(500, 500)),
        ),
        (
            "tokens overshoot by a call",
            of_query(tokens(450)),
            "tokens",
            BudgetFact::TokensWarning(figures(400, 450)),
            BudgetFact::TokensExceeded(figures(500, 450)),
        ),
        (
            "tokens of the session",
            Policy {
                session_tokens: Some(500),
                ..policy()
            },
            "tokens",
            BudgetFact::TokensWarning(figures(400, 500)),
            BudgetFact::TokensExceeded(figures(500, 500)),
        ),
        (
            "money of the query",
            of_query(cost(5_000)),
            "cost",
            BudgetFact::CostWarning(figures(4_000, 5_000)),
            BudgetFact::CostExceeded(figures(5_000, 5_000)),
        ),
        (
            "money of the session",
            Policy {
                session_cost: Some(NanoUsd(5_000)),
                ..policy()
            },
            "cost",
            BudgetFact::CostWarning(figures(4_000, 5_000)),
            BudgetFact::CostExceeded(figures(5_000, 5_000)),
        ),
    ] {
        let mut play = Play::asked(policy);
        need_turns(&mut play, 5, "");
        assert_eq!(budget_facts(&play), [warned, spent], "{name}");
        assert_eq!(
            (play.end(), play.answer().to_owned()),
            (
                Some(("forced", by)),
                format!(
                    "[Unable to complete: {} limit reached]",
                    by.trim_end_matches('s')
                )
            ),
            "{name}"
        );
    }
}

#[test]
fn no_further_attempt_follows_once_a_budget_is_spent() {
    let tokens = Limits {
        max_tokens: Some(500),
        ..Limits::default()
    };
    let cost = Limits {
        max_cost: Some(NanoUsd(5_000)),
        ..Limits::default()
    };
    let busy = || Fault::retryable("http_503", "busy");
    let no = || Fault::permanent("unauthorized", "no");
    let spends = |play: &mut Play, fault| {
        play.fails_at(fault, usage(360, 40, 4_000));
    };
    let fails = |limits, fault| {
        let models = [free("p/one"), free("p/two")].into();
        let mut play = Play::asked(Policy {
            limits,
            models,
            ..policy()
        });
        need_turns(&mut play, 1, "Found.");
        spends(&mut play, fault);
        play
    };
    let of_session = || Policy {
        session_tokens: Some(500),
        ..turns(2)
    };
    let ended = |play: &Play, by: &str, name: &str| {
        let by_kind = format!("budget.{by}.exceeded");
        assert!(
            play.kinds().ends_with(&[&by_kind, "query.finished"]),
            "{name}"
        );
        assert_eq!(play.end(), Some(("forced", by)), "{name}");
        let word = by.trim_end_matches('s');
        let answer = format!("Found.\n\n[Response truncated due to {word} limit]");
        assert_eq!(play.answer(), answer, "{name}");
        assert_eq!(play.finished().usage, usage(450, 50, 5_000), "{name}");
    };
    ended(&fails(tokens, busy()), "tokens", "instead of a retry");
    ended(&fails(cost, no()), "cost", "instead of a failover");

    let mut play = Play::asked(of_session());
    need_turns(&mut play, 1, "Found.");
    play.command(Command::Pause).unwrap();
    spends(&mut play, busy());
    assert_eq!(play.kinds(), ["llm.retried"], "not while it is paused");
    play.command(Command::Resume).unwrap();
    let token = play.token();
    play.report(Report::RetryDue { token });
    ended(&play, "tokens", "after a pause");

    let mut play = Play::asked(of_session());
    need_turns(&mut play, 1, "Found.");
    play.in_flight = InFlight::Sent {
        tokens: 0,
        received: 0,
        reported: usage(360, 40, 4_000),
    };
    play.reboot();
    ended(&play, "tokens", "after a restart");

    let mut play = Play::asked(of_session());
    spends(&mut play, no());
    let failed = Some(("failed", "unauthorized"));
    assert_eq!(play.end(), failed, "no attempt was left");
}

#[test]
fn budgets_of_money_are_refused_while_a_model_has_no_price() {
    let unpriced = Policy {
        models: [free("p/one"), ModelChoice::new("p/two")].into(),
        ..policy()
    };
    let money = LimitsRequest::User(PartialLimits {
        max_cost: Some(NanoUsd(5_000)),
        ..PartialLimits::default()
    });
    let asked = Submission {
        limits: Some(money),
        ..Submission::new("how?")
    };
    let refusal = Err(Refusal::CostUnknown("p/two".into()));
    let mut play = Play::new(unpriced);
    assert_eq!(play.submit(asked.clone()), refusal);
    play.submit(Submission::new("how?")).unwrap();
    assert_eq!(play.command(Command::SetBudget(money)), refusal);
    let mut play = Play::new(policy());
    play.submit(asked).unwrap();
    play.command(Command::SetBudget(money)).unwrap();
}

#[test]
fn token_budget_is_checked_before_cost() {
    let limits = Limits {
        max_tokens: Some(100),
        max_cost: Some(NanoUsd(1_000)),
        ..Limits::default()
    };
    let mut play = Play::asked(Policy { limits, ..policy() });
    need_turns(&mut play, 1, "Found.");
    assert_eq!(play.end(), Some(("forced", "tokens")));
    assert_eq!(
        play.answer(),
        "Found.\n\n[Response truncated due to token limit]"
    );
}

#[test]
fn turn_budget_is_checked_before_tokens() {
    let limits = Limits {
        max_tokens: Some(200),
        ..Limits::turns(2)
    };
    let mut play = Play::asked(Policy { limits, ..policy() });
    need_turns(&mut play, 2, "");
    assert_eq!(play.end(), Some(("forced", "budget")));
}

#[test]
fn a_session_budget_counts_all_its_queries() {
    let mut play = Play::asked(Policy {
        session_tokens: Some(250),
        ..policy()
    });
    play.says(&done()).ask(QUESTION).says(&need("more to read"));
    assert_eq!(play.end(), None, "200 of 250");
    play.says(&need("still more to read"));
    assert_eq!(play.end(), Some(("forced", "tokens")));
    play.submit(oracle_agent::model::Submission::new("again"))
        .unwrap();
    play.prepare(oracle_agent::model::QueryType::Code);
    assert_eq!(play.finishes().last().unwrap().0, QueryId(3));
    assert_eq!(
        (play.end(), play.finished().turns),
        (Some(("forced", "tokens")), 0)
    );
}

#[test]
fn huge_usage_saturates() {
    let mut play = Play::asked(policy());
    let mut huge = reply(&done(), Vec::new());
    huge.usage = usage(u64::MAX, u64::MAX, u64::MAX);
    play.replies(huge);
    play.ask(QUESTION).says(&need("more to read"));
    assert_eq!(play.end(), None);
    assert_eq!(play.session.usage_before().total_tokens(), u64::MAX);
}

#[test]
fn the_context_window_warns_at_seventy_percent_and_then_fails_the_query() {
    let window = |tokens| {
        let model = ModelChoice {
            context_window: Some(tokens),
            ..ModelChoice::new("p/one")
        };
        Policy {
            models: [model].into(),
            ..policy()
        }
    };
    // The prompt is 100 tokens, the tools are 36, the question is under 50.
    let mut play = Play::asked(window(400));
    assert!(budget_facts(&play).is_empty());
    let finds = |play: &mut Play, id: &str, found: &str| {
        play.replies(uncounted(reply("", vec![call(id, "search")])));
        play.ok(id, found);
    };
    // Too little for a summary to be worth it.
    finds(&mut play, "c1", &"x".repeat(450));
    assert_eq!(play.count("budget.context.warning"), 1);
    assert_eq!(play.end(), None);
    finds(&mut play, "c2", &"y".repeat(600));
    assert_eq!(play.count("budget.context.warning"), 1, "once");
    assert_eq!(play.count("budget.context.exceeded"), 1);
    assert_eq!(play.end(), Some(("failed", "context")));
}

#[test]
fn no_final_turn_follows_once_a_budget_is_spent() {
    let limits = Limits {
        max_tokens: Some(100),
        ..Limits::default()
    };
    let mut play = Play::new(Policy { limits, ..policy() });
    play.ask("What is it?").says(&weak(&need("no idea yet")));
    assert_eq!(play.end(), Some(("forced", "tokens")));
}

#[test]
fn supervisor_budget_violation_fails_the_query() {
    let mut play = Play::asked(policy());
    let query = play.running();
    let detail = "31 turns of 30".to_owned();
    play.report(oracle_agent::kernel::Report::BudgetViolated { query, detail });
    assert_eq!(play.end(), Some(("failed", "budget_violated")));
}

#[test]
fn reply_cost_overrides_the_model_price() {
    let price = Price {
        input: NanoUsd(2_000_000_000),
        cached: NanoUsd(1_000_000_000),
        cache_write: NanoUsd(3_000_000_000),
        output: NanoUsd(10_000_000_000),
        ..Price::FREE
    };
    let priced = ModelChoice {
        price: Some(price),
        ..ModelChoice::new("p/one")
    };
    for (name, said, cost) in [
        ("by the price", NanoUsd(0), 1_000 * 2_000 + 100 * 10_000),
        ("by the reply", NanoUsd(42), 42),
    ] {
        let mut play = Play::asked(Policy {
            models: [priced.clone()].into(),
            ..policy()
        });
        let mut answer = reply(&done(), Vec::new());
        answer.usage = Usage {
            input_tokens: 1_000,
            output_tokens: 100,
            cost: said,
            ..Usage::default()
        };
        play.replies(answer);
        assert_eq!(play.finished().usage.cost, NanoUsd(cost), "{name}");
    }
}
