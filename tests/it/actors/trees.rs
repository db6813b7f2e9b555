//! Random trees of sub-agents on a whole system, which are cancelled, and whose actors and processes
//! die at any append.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use oracle_agent::{
    journal::Journal,
    kernel::{DelegationPolicy, Policy},
    llm::{Backend, DeltaStream, Request, Scripted, scripted::ScriptedReply},
    model::{NanoUsd, SessionName, Submission, Usage},
    testkit::{
        AppendPoint, CrashTarget, CrashingJournal, Side, TestOracle, TestSystem, TestTool,
        advance_time,
    },
};
use serde_json::json;

use super::{
    done,
    family::{cost, delegate_all},
    memory, more,
    simulation::{
        Dice,
        check::{all_ended, audited, logs},
    },
};
use crate::turns::trees::Spent;

const TREES: u64 = 48;
const QUESTION: &str = "how does the code work?";
/// Tokens and cost of a call at most, also of one that is cut off and so estimated.
const CALL: u64 = 20_000;
const BUDGET: u64 = 200_000;
const PARALLEL: u32 = 2;
const TYPES: [&str; 3] = ["", "editor", "nobody"];

/// A model whose replies follow from the conversation alone: its question and its turn.
#[derive(Clone)]
struct Forest {
    seed: u64,
    /// The tools of each session, by its question.
    offered: Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>,
}

impl Forest {
    fn reply(&self, question: &str, turn: usize, dice: &mut Dice) -> ScriptedReply {
        let reply = match dice.below(7) {
            0 => ScriptedReply::text(done("So it is.")),
            1 | 2 => ScriptedReply::text(more("A page.", &format!("page {turn}"))),
            3 => {
                let tool = *dice.of(&["look", "change"]);
                ScriptedReply::text(format!("Page {turn}.")).call(tool, json!({ "n": turn }))
            }
            _ => {
                let parts = 1 + dice.below(4);
                let scopes: Vec<String> = (0..parts)
                    .map(|part| format!("part {turn}-{part} of {question}"))
                    .collect();
                let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
                let kind = dice.of(&TYPES);
                let kind = format!("<subagent_type>{kind}</subagent_type></signal>");
                ScriptedReply::text(delegate_all(&scopes).replace("</signal>", &kind))
            }
        };
        reply.usage(cost(1 + dice.below(CALL), 1 + dice.below(CALL)))
    }
}

impl Backend for Forest {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let question: String = request.messages[0].texts().collect();
        let tools = request.tools.iter().map(|tool| tool.name.clone());
        let mut offered = self.offered.lock().unwrap();
        offered.insert(question.clone(), tools.collect());
        drop(offered);
        // Scripted models count the replies too.
        let own = |message: &&Arc<_>| is_own(message);
        let turn = request.messages.iter().filter(own).count();
        let seed = question.bytes().fold(self.seed, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut dice = Dice(seed.wrapping_add(turn as u64));
        let reply = self.reply(&question, turn, &mut dice);
        let script = (0..turn).fold(Scripted::new(), |script, _| script.reply("-"));
        let pause = Duration::from_millis(1 + dice.below(2_000));
        script.play(reply).slowly(pause).call(request)
    }
}

fn is_own(message: &oracle_agent::model::Message) -> bool {
    message.role == oracle_agent::model::Role::Assistant
}

fn trees(policy: &mut Policy) {
    policy.delegation = DelegationPolicy {
        max_depth: 2,
        max_children: 4,
        max_parallel: PARALLEL,
        default_tokens: 50_000,
    };
    policy.limits.max_turns = 12;
    policy.limits.max_tokens = Some(BUDGET);
    policy.limits.max_cost = Some(NanoUsd(BUDGET));
}

async fn start(forest: &Forest, journal: impl Journal) -> TestSystem {
    let oracle = TestOracle::new(forest.clone())
        .tool(TestTool::new("look"))
        .tool(TestTool::new("change").writes())
        .tool(TestTool::new("send").writes().needs_approval())
        .profile("editor")
        .unwrap()
        .policy(trees)
        .journal(Arc::new(journal));
    oracle.start().await.unwrap()
}

/// What happens to a tree.
#[derive(Debug)]
struct Fate {
    /// Lives that end at an append, by an actor's crash or the process's death.
    deaths: Vec<(AppendPoint, CrashTarget)>,
    /// When the last life is cancelled.
    cancel: Option<Duration>,
}

impl Fate {
    fn by(dice: &mut Dice) -> Self {
        let deaths = (0..dice.below(3)).map(|_| {
            let side = *dice.of(&[Side::Before, Side::After]);
            // Later than the question's own.
            let point = AppendPoint::at(side, 4 + dice.below(100));
            (point, *dice.of(&[CrashTarget::Actor, CrashTarget::System]))
        });
        let deaths = deaths.collect();
        let cancel = (dice.below(3) == 0).then(|| Duration::from_millis(dice.below(15_000)));
        Self { deaths, cancel }
    }
}

/// Asks the question, if nobody has, and waits for the end of the tree.
async fn live(system: &TestSystem, cancel: Option<Duration>) {
    let root = system.session("root").unwrap();
    let question = Submission {
        idempotency_key: Some("once".into()),
        ..Submission::new(QUESTION)
    };
    root.submit(question).await.unwrap();
    if let Some(after) = cancel {
        advance_time(after).await;
        // It may have ended.
        let _ = root.cancel(None).await;
    }
    root.wait_for("query.finished").await.unwrap();
}

/// Returns the number of its sessions, and of those over a budget.
async fn grows(seed: u64) -> (usize, usize) {
    let mut dice = Dice(seed);
    let fate = Fate::by(&mut dice);
    let name = format!("seed {seed}, {fate:?}");
    let forest = Forest {
        seed,
        offered: Arc::default(),
    };
    let journal = memory();
    let mut died = 0;
    for (point, target) in &fate.deaths {
        let doomed = CrashingJournal::new(Arc::clone(&journal), Some(point.clone()), *target);
        let system = start(&forest, doomed.clone()).await;
        tokio::select! {
            biased;
            () = doomed.crashed(), if *target == CrashTarget::System => {}
            () = live(&system, None) => {}
        }
        system.die().await;
        died += u64::from(doomed.has_crashed());
    }
    let doomed = CrashingJournal::new(Arc::clone(&journal), None, CrashTarget::System);
    let system = start(&forest, doomed).await;
    live(&system, fate.cancel).await;
    // Sessions passivate, and with them everything that was owed to them.
    system.shut_down(Duration::from_secs(60)).await;

    let mut nodes = BTreeMap::new();
    for (known, log) in logs(&journal).await {
        let ended = audited(&known, &log, &name).0;
        all_ended(&known, &log, &ended, &name);
        let spent = Spent::of(log.iter().map(|entry| &*entry.record));
        if spent.finished.is_some() {
            nodes.insert(known.key.name, spent);
        }
    }
    let (mut all, mut over) = (Usage::default(), 0);
    for (session, spent) in &nodes {
        let at = format!("{name}: {session}");
        for (child, (_, used)) in &spent.children {
            // One that was cancelled before it began has no session.
            let ended = nodes
                .get(child)
                .map_or(Usage::default(), |node| node.finished.unwrap());
            assert_eq!(*used, Some(ended), "{at}: {child}");
        }
        assert_eq!(spent.finished, Some(spent.used()), "{at}");
        // Each death cuts off a call, whose input counts, and another one follows.
        over += usize::from(spent.keeps_to_its_budgets(PARALLEL, CALL * (1 + died), &at));
        all += spent.own;
    }
    let root: SessionName = "root".parse().unwrap();
    assert_eq!(
        nodes[&root].finished,
        Some(all),
        "{name}: all is counted once"
    );

    let offered = forest.offered.lock().unwrap().clone();
    for (question, tools) in &offered {
        let Some((_, parent)) = question.split_once(" of ") else {
            continue;
        };
        assert!(
            tools.is_subset(&offered[parent]),
            "{name}: {question}: {tools:?}"
        );
        assert!(!tools.contains("send"), "{name}: {question}");
    }
    (nodes.len(), over)
}

#[tokio::test(start_paused = true)]
async fn random_trees_on_a_system_keep_to_tools_and_budgets_and_leave_no_orphan() {
    let (mut sessions, mut most, mut over) = (0, 0, 0);
    for seed in 0..TREES {
        let (nodes, beyond) = grows(seed).await;
        sessions += nodes;
        most = most.max(nodes);
        over += beyond;
    }
    assert!(
        sessions > 200 && most > 10 && over > 0,
        "{sessions} {most} {over}"
    );
}
