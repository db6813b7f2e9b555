//! Random trees of sub-agents, each a session of its own, over the kernel alone: a shell that runs
//! them in any order, loses effects and restarts sessions.

use std::{collections::BTreeMap, sync::Arc};

use oracle_agent::{
    actor::Profile,
    kernel::{Command, DelegationPolicy, Effect, Policy, Step, SubAgentType},
    model::{
        Limits, NanoUsd, Outcome, ProfileName, QueryType, Record, Reply, SessionKey, SessionName,
        Submission, ToolEffect, ToolSpec, Usage,
        record::{
            AgentFact, ChildEnd, ChildStart, Fact, LlmFact, Opened, Parent, QueryFact, TurnFact,
        },
    },
    prompt::{Composer, Prompts, TOKEN_BUDGET, Variables},
    tool::Registry,
};

use super::{play::Play, script::*};
use crate::actors::simulation::Dice;

const TREES: u64 = 1_000;
/// Tokens and cost of a call at most.
const CALL: u64 = 199;
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
        ..Policy::new(vec![free("p/one")], tools)
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
            Step::Calling { pause: None, .. } => {
                let spent = spent(play);
                let (used, limits) = (amounts(&spent.used()), spent.limits);
                assert!(
                    used[0] < limits[0] && used[1] < limits[1],
                    "{name}: a call too many"
                );
                play.replies(reply_of(&mut self.dice));
            }
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
        self.check(&name);
    }

    fn check(&self, name: &SessionName) -> bool {
        let play = &self.nodes[name];
        let parallel = play.session.policy().delegation.max_parallel;
        spent(play).keeps_to_its_budgets(parallel, CALL, name.as_str())
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
        let (fits, limits) = (spent(above).reserved(), spent(above).limits);
        assert!(
            fits[0] <= limits[0] && fits[1] <= limits[1],
            "{}",
            start.child
        );
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
}

/// What the records of a session with one query say of its budgets: tokens, and cost in nano-dollars.
#[derive(Default)]
pub(crate) struct Spent {
    limits: [u64; 2],
    /// Used by its own calls.
    pub(crate) own: Usage,
    /// Sub-agents by name, with their budgets, and what those used that ended.
    pub(crate) children: BTreeMap<SessionName, ([u64; 2], Option<Usage>)>,
    pub(crate) finished: Option<Usage>,
}

const fn amounts(usage: &Usage) -> [u64; 2] {
    [usage.total_tokens(), usage.cost.0]
}

fn limited(max_tokens: Option<u64>, max_cost: Option<NanoUsd>) -> [u64; 2] {
    [max_tokens.unwrap(), max_cost.unwrap().0]
}

impl Spent {
    pub(crate) fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut spent = Self::default();
        for record in records {
            match &record.fact {
                Fact::Query(QueryFact::Accepted(accepted)) => {
                    let limits = accepted.limits;
                    spent.limits = limited(limits.max_tokens, limits.max_cost);
                }
                Fact::Turn(TurnFact::Replied(replied)) => spent.own += replied.usage,
                Fact::Llm(LlmFact::Failed(failed)) => spent.own += failed.usage,
                Fact::Agent(AgentFact::DelegationStarted(start)) => {
                    let limits = limited(start.max_tokens, start.max_cost);
                    spent.children.insert(start.child.clone(), (limits, None));
                }
                Fact::Agent(AgentFact::DelegationFinished(end)) => {
                    let child = spent.children.get_mut(&end.child);
                    let before = child.expect("it started").1.replace(end.usage);
                    assert_eq!(before, None, "{} ends once", end.child);
                }
                Fact::Query(QueryFact::Finished(finished)) => spent.finished = Some(finished.usage),
                _ => {}
            }
        }
        spent
    }

    pub(crate) fn used(&self) -> Usage {
        let ended = self.children.values().filter_map(|(_, used)| *used);
        ended.fold(self.own, |mut sum, used| {
            sum += used;
            sum
        })
    }

    /// What it has used, and what its running sub-agents may use.
    fn reserved(&self) -> [u64; 2] {
        let running = self.children.values().filter(|(_, used)| used.is_none());
        running.fold(amounts(&self.used()), |sum, (limits, _)| {
            [sum[0] + limits[0], sum[1] + limits[1]]
        })
    }

    /// Checks that it exceeds no budget by more than it must: a call begins below the budget, and a
    /// sub-agent starts only if all that run fit. So either one `call` or what the sub-agents of
    /// one time use beyond their own budgets is over. Returns whether anything is.
    pub(crate) fn keeps_to_its_budgets(&self, parallel: u32, call: u64, name: &str) -> bool {
        let mut is_over = false;
        for budget in 0..2 {
            let ended = self.children.values();
            let ended = ended.filter_map(|(limits, used)| Some((limits, amounts(used.as_ref()?))));
            let mut over: Vec<u64> = ended
                .map(|(limits, used)| used[budget].saturating_sub(limits[budget]))
                .collect();
            over.sort_unstable_by(|one, other| other.cmp(one));
            let most = over
                .iter()
                .take(parallel as usize)
                .sum::<u64>()
                .max(call - 1);
            let (reserved, limit) = (self.reserved()[budget], self.limits[budget]);
            assert!(
                reserved <= limit + most,
                "{name}: {reserved} of {limit}, and {most} may be over"
            );
            is_over |= reserved > limit;
        }
        is_over
    }
}

fn spent(play: &Play) -> Spent {
    Spent::of(&play.log)
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
        usage: usage(1 + dice.below(CALL), 0, 1 + dice.below(CALL)),
        ..reply(&text, Vec::new())
    }
}

#[test]
fn random_trees_keep_to_tools_and_budgets_and_count_everything_once() {
    let composer = Composer::new(Prompts::builtin().unwrap(), TOKEN_BUDGET);
    let composer = Arc::new(composer);
    let (mut deepest, mut most, mut restarts, mut over) = (0, 0, 0, 0);
    for seed in 0..TREES {
        let mut tree = Tree::new(seed, &composer);
        let mut steps = 0;
        while tree.nodes[&root()].session.query().is_some() {
            tree.step();
            steps += 1;
            assert!(steps < 20_000, "seed {seed} never ends");
        }
        let mut all = Usage::default();
        for (name, play) in &tree.nodes {
            assert!(
                play.session.query().is_none(),
                "seed {seed}: {name} is an orphan"
            );
            let spent = spent(play);
            for (child, (_, used)) in &spent.children {
                let node = tree.nodes.get(child);
                let ended = node.map_or_else(Usage::default, |node| node.finished().usage);
                assert_eq!(*used, Some(ended), "seed {seed}: {child}");
            }
            assert_eq!(spent.finished, Some(spent.used()), "seed {seed}: {name}");
            over += usize::from(tree.check(name));
            all += spent.own;
            restarts += play.count("supervisor.restarted");
            deepest = deepest.max(parent_of(play).map_or(0, |parent| parent.depth));
        }
        let used = tree.nodes[&root()].finished().usage;
        assert_eq!(used, all, "seed {seed}");
        most = most.max(tree.nodes.len());
    }
    assert!(
        deepest == DEPTH && most > 12 && restarts > 1_000 && over > 100,
        "{deepest} {most} {restarts} {over}"
    );
}
