//! Random trees of sub-agents, each a session of its own, over the kernel alone: a shell that runs
//! them in any order, loses effects and restarts sessions.

use std::{collections::BTreeMap, sync::Arc};

use oracle_agent::{
    actor::Profile,
    kernel::{Command, DelegationPolicy, Effect, ModelChoice, Policy, Step, SubAgentType},
    model::{
        Limits, NanoUsd, Outcome, ProfileName, QueryType, Reply, SessionKey, SessionName,
        Submission, ToolEffect, ToolSpec, Usage,
        record::{AgentFact, ChildEnd, ChildStart, Fact, Opened, Parent, TurnFact},
    },
    prompt::{Composer, Prompts, TOKEN_BUDGET, Variables},
    tool::Registry,
};

use super::{play::Play, script::*};
use crate::actors::simulation::Dice;

const TREES: u64 = 1_000;
/// Tokens and cost of a call at most.
const CALL: u64 = 200;
const BUDGET: u64 = 3_000;
const PARALLEL: u32 = 3;
const DEPTH: u32 = 2;
const TYPES: [&str; 3] = ["reader", "writer", "planner"];

struct Tree {
    dice: Dice,
    profiles: BTreeMap<&'static str, Profile>,
    nodes: BTreeMap<SessionName, Play>,
    /// Children of each node, and their ends that the node has not heard of.
    ends: Vec<(SessionName, ChildEnd)>,
}

fn root() -> SessionName {
    "root".parse().unwrap()
}

fn profile(
    dice: &mut Dice,
    composer: &Arc<Composer>,
    types: Arc<[SubAgentType]>,
    tools: Arc<[ToolSpec]>,
) -> Profile {
    let delegation = DelegationPolicy {
        max_depth: DEPTH,
        max_children: 1 + u32::try_from(dice.below(6)).unwrap(),
        max_parallel: 1 + u32::try_from(dice.below(u64::from(PARALLEL))).unwrap(),
        default_tokens: *dice.of(&[500, 2_000, 100_000]),
    };
    let mut policy = Policy {
        limits: Limits {
            max_turns: 12,
            max_tokens: Some(BUDGET),
            max_cost: Some(NanoUsd(BUDGET)),
        },
        delegation,
        sub_agents: types,
        attachable: [all_tools()[0].clone()].into(),
        ..Policy::new(vec![ModelChoice::new("p/one")], tools)
    };
    policy.restarts.process_deaths = 1_000;
    let registry = Arc::new(Registry::new([]).unwrap());
    Profile::new(policy, Variables::default(), registry, Arc::clone(composer))
}

fn all_tools() -> Vec<ToolSpec> {
    let model = &policy().tools[0];
    let tool = |number: u32| ToolSpec {
        name: format!("tool{number}"),
        effect: match number % 2 {
            0 => ToolEffect::ReadOnly,
            _ => ToolEffect::Writes,
        },
        ..model.clone()
    };
    (0..6).map(tool).collect()
}

fn some_tools(dice: &mut Dice) -> Arc<[ToolSpec]> {
    let tools = all_tools().into_iter().skip(1);
    tools.filter(|_| dice.below(3) > 0).collect()
}

impl Tree {
    fn new(seed: u64, composer: &Arc<Composer>) -> Self {
        let mut dice = Dice(seed);
        let types = TYPES.map(|name| SubAgentType {
            name: ProfileName::new(name).unwrap(),
            description: None,
            tools: some_tools(&mut dice),
        });
        let types: Arc<[SubAgentType]> = types.into();
        let of_root = some_tools(&mut dice);
        let mut profiles = BTreeMap::new();
        for (name, kind) in TYPES.into_iter().zip(types.iter()) {
            let tools = Arc::clone(&kind.tools);
            profiles.insert(
                name,
                profile(&mut dice, composer, Arc::clone(&types), tools),
            );
        }
        profiles.insert("oracle", profile(&mut dice, composer, types, of_root));
        let (nodes, ends) = (BTreeMap::new(), Vec::new());
        let mut tree = Self {
            dice,
            profiles,
            nodes,
            ends,
        };
        let policy = (*tree.profiles["oracle"].policy).clone();
        let opened = opened(root(), "oracle", None);
        let mut play = Play::opened(policy, opened);
        if tree.dice.below(2) == 0 {
            let tool = "tool0".to_owned();
            play.command(Command::AttachTool { tool }).unwrap();
        }
        play.submit(Submission::new(QUESTION)).unwrap();
        tree.nodes.insert(root(), play);
        tree
    }

    /// Lets one session do one thing, and the shell perform what follows.
    fn step(&mut self) {
        let open = |play: &&Play| play.session.query().is_some();
        let running = self.nodes.values().filter(open).count() as u64;
        let at = usize::try_from(self.dice.below(running)).unwrap();
        let mut open = self.nodes.iter().filter(|(_, play)| open(play));
        let name = open.nth(at).unwrap().0.clone();
        let play = self.nodes.get_mut(&name).unwrap();
        play.effects.clear();
        match play.session.query().unwrap().step.clone() {
            Step::Preparing => drop(play.prepare(QueryType::Code)),
            Step::Calling { pause: None, .. } => drop(play.replies(reply_of(&mut self.dice))),
            Step::Delegating { .. } | Step::Ending { .. } => self.deliver(&name),
            other => panic!("{other:?}"),
        }
        let play = self.nodes.get_mut(&name).unwrap();
        if self.dice.below(60) == 0 {
            let _ = play.command(Command::Cancel { query: None });
        }
        // The process dies, before or after the effects.
        let dies = self.dice.below(16);
        if dies == 0 {
            play.reboot();
        }
        self.perform(&name);
        let play = self.nodes.get_mut(&name).unwrap();
        if dies == 1 && play.session.query().is_some() {
            play.reboot();
            self.perform(&name);
        }
    }

    fn deliver(&mut self, parent: &SessionName) {
        let of_it = |(above, _): &&(SessionName, ChildEnd)| above == parent;
        let Some((_, end)) = self.ends.iter().find(of_it).cloned() else {
            return;
        };
        let play = self.nodes.get_mut(parent).unwrap();
        let mut turns = 0;
        for _ in 0..=self.dice.below(2) {
            turns += 1;
            play.child_progresses(&end.child, turns);
        }
        let child = end.child.clone();
        play.child_ended(child, end.outcome.clone(), &end.answer, end.usage);
        // Some ends arrive again.
        if self.dice.below(4) > 0 {
            self.ends
                .retain(|(above, other)| above != parent || other.child != end.child);
        }
    }

    fn perform(&mut self, name: &SessionName) {
        let effects = std::mem::take(&mut self.nodes.get_mut(name).unwrap().effects);
        for effect in effects {
            match effect {
                Effect::StartChild { start, .. } => self.start(name, &start),
                Effect::CancelChild { child, .. } => match self.nodes.get_mut(&child) {
                    Some(play) if play.session.query().is_some() => {
                        play.effects.clear();
                        play.command(Command::Cancel { query: None }).unwrap();
                        self.perform(&child);
                    }
                    Some(_) => self.tell(name, &child),
                    None => {
                        let end = ChildEnd {
                            child,
                            outcome: Outcome::Cancelled,
                            answer: String::new(),
                            usage: Usage::default(),
                        };
                        self.ends.push((name.clone(), end));
                    }
                },
                _ => {}
            }
        }
        if self.nodes[name].session.query().is_none()
            && let Some(parent) = parent_of(&self.nodes[name])
        {
            self.tell(&parent.session, name);
        }
    }

    fn start(&mut self, parent: &SessionName, start: &ChildStart) {
        if let Some(play) = self.nodes.get(&start.child) {
            if play.session.query().is_none() {
                self.tell(parent, &start.child);
            }
            return;
        }
        let above = &self.nodes[parent];
        let limits = above.session.query().unwrap().limits;
        let (tokens, cost) = reserved(above);
        assert!(tokens <= limits.max_tokens.unwrap() && cost <= limits.max_cost.unwrap().0);
        let depth = parent_of(above).map_or(0, |parent| parent.depth);
        let from = Parent {
            session: parent.clone(),
            query: above.running(),
            depth: depth + 1,
            tools: start.tools.clone(),
        };
        let own = above.session.profile().unwrap().clone();
        let name = start.profile.clone().unwrap_or(own);
        let profile = self.profiles[name.as_str()].for_child(&from);
        let tools = &above.session.policy().tools;
        for tool in profile.policy.tools.iter() {
            assert!(
                tools.contains(tool),
                "{}: {} is new",
                start.child,
                tool.name
            );
        }
        let reads = |tool: &ToolSpec| tool.effect == ToolEffect::ReadOnly;
        assert!(start.profile.is_some() || profile.policy.tools.iter().all(reads));
        let policy = (*profile.policy).clone();
        let mut play = Play::opened(
            policy,
            opened(start.child.clone(), name.as_str(), Some(from)),
        );
        let limits = Limits {
            max_turns: 12,
            max_tokens: start.max_tokens,
            max_cost: start.max_cost,
        };
        let limits = Some(limits.into());
        play.submit(Submission {
            limits,
            ..Submission::new(start.scope.as_str())
        })
        .unwrap();
        self.nodes.insert(start.child.clone(), play);
    }

    fn tell(&mut self, parent: &SessionName, child: &SessionName) {
        let finished = self.nodes[child].finished();
        let end = ChildEnd {
            child: child.clone(),
            outcome: finished.outcome.clone(),
            answer: finished.answer.clone(),
            usage: finished.usage,
        };
        self.ends.push((parent.clone(), end));
    }

    /// At any time, what a session has used and what its running children may use fit its budgets,
    /// but for one call of each session below a running child.
    fn check(&self) {
        let slack = CALL * u64::from(PARALLEL.pow(DEPTH));
        for (name, play) in &self.nodes {
            let Some(query) = play.session.query() else {
                continue;
            };
            assert!(
                reserved(play).0 <= query.limits.max_tokens.unwrap() + slack,
                "{name}"
            );
            assert!(
                reserved(play).1 <= query.limits.max_cost.unwrap().0 + slack,
                "{name}"
            );
        }
    }
}

/// What a query has used, and what its running children may use.
fn reserved(play: &Play) -> (u64, u64) {
    let query = play.session.query().unwrap();
    let used = (query.usage.total_tokens(), query.usage.cost.0);
    query
        .step
        .running_children()
        .fold(used, |(tokens, cost), start| {
            let (max_tokens, max_cost) = (start.max_tokens.unwrap(), start.max_cost.unwrap());
            (tokens + max_tokens, cost + max_cost.0)
        })
}

fn parent_of(play: &Play) -> Option<Parent> {
    play.log.iter().find_map(|record| match &record.fact {
        Fact::Session(oracle_agent::model::record::SessionFact::Opened(opened)) => {
            opened.parent.clone()
        }
        _ => None,
    })
}

fn opened(name: SessionName, profile: &str, parent: Option<Parent>) -> Opened {
    Opened {
        key: SessionKey::local(name),
        profile: ProfileName::new(profile).unwrap(),
        project: None,
        parent,
    }
}

fn reply_of(dice: &mut Dice) -> Reply {
    let number = dice.below(1_000_000);
    let kind = dice.of(&["", "nobody", "reader", "writer", "planner"]);
    let parts = usize::try_from(dice.below(8)).unwrap() + 1;
    let scopes: Vec<String> = (0..parts)
        .map(|part| format!("part {part} of {number}"))
        .collect();
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let kind = format!("<subagent_type>{kind}</subagent_type></signal>");
    let text = match dice.below(6) {
        0 => format!("So it is. {}", done()),
        1 | 2 => need(&format!("reason {number}")),
        _ => delegate_all(&scopes).replace("</signal>", &kind),
    };
    Reply {
        usage: usage(1 + dice.below(CALL - 1), 0, 1 + dice.below(CALL - 1)),
        ..reply(&text, Vec::new())
    }
}

/// What a node's own calls used, and what its children report.
fn counted(play: &Play) -> (Usage, Vec<(SessionName, Usage)>) {
    let (mut own, mut children) = (Usage::default(), Vec::new());
    for record in &play.log {
        match &record.fact {
            Fact::Turn(TurnFact::Replied(replied)) => own += replied.usage,
            Fact::Agent(AgentFact::DelegationFinished(end)) => {
                children.push((end.child.clone(), end.usage));
            }
            _ => {}
        }
    }
    (own, children)
}

#[test]
fn random_trees_keep_to_tools_and_budgets_and_count_everything_once() {
    let composer = Composer::new(Prompts::builtin().unwrap(), TOKEN_BUDGET);
    let composer = Arc::new(composer);
    let (mut deepest, mut most, mut restarts) = (0, 0, 0);
    for seed in 0..TREES {
        let mut tree = Tree::new(seed, &composer);
        let mut steps = 0;
        while tree.nodes[&root()].session.query().is_some() {
            tree.step();
            tree.check();
            steps += 1;
            assert!(steps < 20_000, "seed {seed} never ends");
        }
        let mut all = Usage::default();
        for (name, play) in &tree.nodes {
            assert!(
                play.session.query().is_none(),
                "seed {seed}: {name} is an orphan"
            );
            let (own, children) = counted(play);
            let mut sum = own;
            for (child, used) in children {
                let node = tree.nodes.get(&child);
                let ended = node.map_or_else(Usage::default, |node| node.finished().usage);
                assert_eq!(used, ended, "seed {seed}: {child}");
                sum += used;
            }
            assert_eq!(play.finished().usage, sum, "seed {seed}: {name}");
            all += own;
            restarts += play.count("supervisor.restarted");
            deepest = deepest.max(parent_of(play).map_or(0, |parent| parent.depth));
        }
        let used = tree.nodes[&root()].finished().usage;
        assert_eq!(used, all, "seed {seed}");
        let limit = BUDGET + CALL * u64::from(PARALLEL.pow(DEPTH));
        assert!(
            used.total_tokens() <= limit && used.cost.0 <= limit,
            "seed {seed}: {used:?}"
        );
        most = most.max(tree.nodes.len());
    }
    assert!(
        deepest == DEPTH && most > 12 && restarts > 1_000,
        "{deepest} {most} {restarts}"
    );
}
