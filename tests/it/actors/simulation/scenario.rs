//! The scenarios of the simulation: scripted models, tools, and clients that retry their messages
//! and commands.

use std::time::Duration;

use oracle_agent::{
    kernel::{Command, ModelChoice, Policy},
    llm::Scripted,
    model::{
        BusyPolicy, Event, Fault, Limits, Submission, command::Author, record::ApprovalVerdict,
    },
    testkit::TestTool,
};
use serde_json::json;

use crate::actors::{
    answer_to, done,
    family::{Family, allow, delegate, delegate_all},
    more,
};

const QUESTION: &str = "where is the function a defined?";
const PARTS: [&str; 3] = ["Read part one", "Read part two", "Read part three"];
pub(super) const SCOPE: &str = "Read the manual of the frobnicator";

/// Model script, tools, policy and the clients' actions of one simulation.
#[derive(Clone)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) models: &'static [&'static str],
    pub(super) script: fn() -> Family,
    pub(super) tools: fn() -> Vec<TestTool>,
    pub(super) policy: fn(&mut Policy),
    pub(super) acts: fn() -> Vec<Act>,
}

#[derive(Clone)]
pub(super) enum Act {
    Submit(Submission),
    /// Sends a command after the `nth` event of type `after`, unless its effect is recorded
    /// already.
    Order {
        after: &'static str,
        nth: usize,
        order: Order,
    },
}

#[derive(Clone, Copy)]
pub(super) enum Order {
    Cancel,
    FinishNow,
    Pause,
    Resume,
    Steer(&'static str),
    Answer(ApprovalVerdict),
    Continue(u32),
}

impl Order {
    /// Returns the type of event that the command records, and how many of them show that it was
    /// executed.
    pub(super) const fn leaves(self) -> (&'static str, usize) {
        match self {
            Self::Cancel => ("control.cancelled", 1),
            Self::FinishNow => ("control.finished", 1),
            Self::Pause => ("control.paused", 1),
            Self::Resume => ("control.resumed", 1),
            Self::Steer(_) => ("control.steered", 1),
            Self::Answer(_) => ("approval.answered", 1),
            Self::Continue(_) => ("query.accepted", 2),
        }
    }

    pub(super) fn command(self, after: &Event) -> Command {
        match self {
            Self::Cancel => Command::Cancel { query: None },
            Self::FinishNow => Command::FinishNow,
            Self::Pause => Command::Pause,
            Self::Resume => Command::Resume,
            Self::Steer(text) => Command::Steer {
                text: text.into(),
                author: Author::User,
            },
            Self::Answer(verdict) => answer_to(after, verdict),
            Self::Continue(turns) => Command::Continue(Limits::turns(turns).into()),
        }
    }
}

fn ask(key: &str, text: &str) -> Act {
    Act::Submit(submission(key, text))
}

fn submission(key: &str, text: &str) -> Submission {
    Submission {
        idempotency_key: Some(key.into()),
        ..Submission::new(text)
    }
}

fn order(after: &'static str, nth: usize, order: Order) -> Act {
    Act::Order { after, nth, order }
}

fn one() -> Vec<Act> {
    vec![ask("k1", QUESTION)]
}

const SECOND: Duration = Duration::from_secs(1);

/// Sets a window for the prompt and a little more than one long text.
fn narrow(policy: &mut Policy) {
    let models = policy.models.iter().map(|model| ModelChoice {
        context_window: Some(5_000),
        ..model.clone()
    });
    policy.models = models.collect();
}

pub(super) fn all() -> Vec<Scenario> {
    let plain = Scenario {
        name: "a plain answer",
        models: &["scripted/test"],
        script: || Family::new(Scripted::new().reply(done("There."))),
        tools: Vec::new,
        policy: |_| {},
        acts: one,
    };
    let approval = |name, acts: fn() -> Vec<Act>| Scenario {
        name,
        script: || {
            let script = Scripted::new().calls("May I?", [("deploy", json!({}))]);
            Family::new(script.reply(done("That was that.")))
        },
        tools: || vec![TestTool::new("deploy").writes().needs_approval()],
        acts,
        ..plain.clone()
    };
    vec![
        Scenario {
            name: "several turns",
            script: || {
                let script = Scripted::new().reply(more("First.", "Still have to look"));
                let script = script.reply(more("Second.", "Still have to check that"));
                Family::new(script.reply(done("Third.")))
            },
            ..plain.clone()
        },
        Scenario {
            name: "tools",
            script: || {
                let calls = ["look", "write", "break"].map(|name| (name, json!({})));
                let script = Scripted::new().calls("Looking.", calls);
                let script = script.calls("Once more.", [("look", json!({"at": "b"}))]);
                Family::new(script.reply(done("Found.")))
            },
            tools: || {
                vec![
                    TestTool::new("look").answers("a is there").repeatable(),
                    TestTool::new("write").writes(),
                    TestTool::new("break").fails("it is broken"),
                ]
            },
            ..plain.clone()
        },
        approval("an approval", || {
            let yes = Order::Answer(ApprovalVerdict::Approved);
            vec![ask("k1", QUESTION), order("approval.requested", 1, yes)]
        }),
        approval("a denial", || {
            let no = Order::Answer(ApprovalVerdict::Denied);
            vec![ask("k1", QUESTION), order("approval.requested", 1, no)]
        }),
        Scenario {
            name: "fallback",
            script: || {
                let silent = ["One.", "Two.", "Three."];
                let script = silent.into_iter().fold(Scripted::new(), Scripted::reply);
                Family::new(script.reply(done("Four.")))
            },
            ..plain.clone()
        },
        Scenario {
            name: "a loop",
            script: || {
                let turn = |script: Scripted, _| script.reply(more("Again.", "Still have to look"));
                Family::new((0..4).fold(Scripted::new(), turn))
            },
            ..plain.clone()
        },
        Scenario {
            name: "delegation",
            script: || {
                // A call that is cut off counts, and must not spend the child's budget.
                let parent = delegate(SCOPE).replace("5000", "100000");
                let parent = Scripted::new().reply(parent);
                let parent = parent.reply(done("It says: turn left."));
                let child = Scripted::new().reply(more("Page one.", "Still have to turn it"));
                Family::new(parent).child(SCOPE, child.reply(done("Turn left.")))
            },
            policy: |policy| allow(policy, 1),
            ..plain.clone()
        },
        Scenario {
            name: "several sub-agents",
            script: || {
                let parent = Scripted::new().reply(delegate_all(&PARTS));
                let family = Family::new(parent.reply(done("All three.")));
                PARTS.into_iter().fold(family, |family, part| {
                    let page = Scripted::new().reply(more("A page.", "Still have to turn it"));
                    family.child(part, page.reply(done(part)))
                })
            },
            policy: |policy| {
                allow(policy, 1);
                (
                    policy.delegation.max_children,
                    policy.delegation.max_parallel,
                ) = (3, 2);
            },
            ..plain.clone()
        },
        Scenario {
            name: "words put in",
            script: || {
                let script = Scripted::new().reply(more("First.", "Still have to look"));
                Family::new(script.slowly(SECOND).reply(done("Second.")))
            },
            acts: || {
                let words = Order::Steer("mind the gap");
                vec![ask("k1", QUESTION), order("turn.started", 1, words)]
            },
            ..plain.clone()
        },
        Scenario {
            name: "a pause",
            script: || {
                let script = Scripted::new().reply(more("First.", "Still have to look"));
                Family::new(script.slowly(SECOND).reply(done("Second.")))
            },
            acts: || {
                vec![
                    ask("k1", QUESTION),
                    order("turn.started", 1, Order::Pause),
                    order("turn.replied", 1, Order::Resume),
                ]
            },
            ..plain.clone()
        },
        Scenario {
            name: "a cancellation, and another question",
            script: || {
                let script = Scripted::new().calls("Looking.", [("slow", json!({}))]);
                Family::new(script.reply(done("The second.")))
            },
            tools: || vec![TestTool::new("slow").hangs().repeatable()],
            acts: || {
                vec![
                    ask("k1", QUESTION),
                    order("tool.started", 1, Order::Cancel),
                    ask("k2", "and where is b?"),
                ]
            },
            ..plain.clone()
        },
        Scenario {
            name: "finish now",
            script: || {
                let script = Scripted::new().reply(more("Found a.", "Still have to look"));
                Family::new(script.stall("Half"))
            },
            acts: || {
                vec![
                    ask("k1", QUESTION),
                    order("turn.started", 2, Order::FinishNow),
                ]
            },
            ..plain.clone()
        },
        Scenario {
            name: "a spent budget that is raised",
            script: || {
                let turn = |script: Scripted, number| {
                    script.reply(more("More.", &format!("Still have to read part {number}")))
                };
                let script = (0..2).fold(Scripted::new(), turn);
                Family::new(script.reply(done("All of it.")))
            },
            acts: || {
                let limits = Some(Limits::turns(2).into());
                vec![
                    Act::Submit(Submission {
                        limits,
                        ..submission("k1", QUESTION)
                    }),
                    order("query.finished", 1, Order::Continue(5)),
                ]
            },
            ..plain.clone()
        },
        Scenario {
            name: "a compaction of what was before",
            // After the summary the conversation is at the script's beginning again.
            script: || Family::new(Scripted::new().reply(done(&"a is there. ".repeat(1_000)))),
            policy: narrow,
            acts: || vec![ask("k1", QUESTION), ask("k2", "and where is b?")],
            ..plain.clone()
        },
        Scenario {
            name: "a compaction of earlier turns",
            script: || {
                let script = Scripted::new().calls("Looking.", [("look", json!({}))]);
                let script = script.calls("Looking on.", [("peek", json!({}))]);
                Family::new(script.reply(done("Found.")))
            },
            tools: || {
                let long = "a is there. ".repeat(1_000);
                vec![
                    TestTool::new("look").answers(&long).repeatable(),
                    TestTool::new("peek").answers("b is there").repeatable(),
                ]
            },
            policy: narrow,
            ..plain.clone()
        },
        Scenario {
            name: "a queue",
            script: || {
                let script = Scripted::new().reply(done("One.")).slowly(SECOND);
                Family::new(script.reply(done("Two.")).reply(done("Three.")))
            },
            acts: || vec![ask("k1", "one?"), ask("k2", "two?"), ask("k3", "three?")],
            ..plain.clone()
        },
        Scenario {
            name: "an interruption",
            script: || {
                let script = Scripted::new().calls("Looking.", [("slow", json!({}))]);
                Family::new(script.reply(done("The second.")))
            },
            tools: || vec![TestTool::new("slow").hangs().repeatable()],
            acts: || {
                vec![
                    ask("k1", QUESTION),
                    order("tool.started", 1, Order::Steer("mind the gap")),
                    Act::Submit(Submission {
                        busy: BusyPolicy::Interrupt,
                        ..submission("k2", "and where is b?")
                    }),
                ]
            },
            ..plain.clone()
        },
        Scenario {
            name: "another try, and another model",
            models: &["scripted/a", "scripted/b"],
            script: || {
                let passing = || Fault::retryable("overloaded", "come back later");
                let failing = |script: Scripted, _| script.fault_after("Half", passing());
                let script = (0..3).fold(Scripted::new(), failing);
                Family::new(script.reply(done("A whole answer.")))
            },
            policy: |policy| policy.retry.attempts = 2,
            ..plain.clone()
        },
        plain,
    ]
}
