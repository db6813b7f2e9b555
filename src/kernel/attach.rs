//! Tools that join a live session, by name, from those that the host keeps ready: an operator
//! attaches them, or the model finds them.
//!
//! The prompt names only the profile's own tools, so guidance names the others: at once if a query
//! runs, and at the start of each later one. It also names those that the host no longer has.
//!
//! **Invariant:** the number of messages about tools follows from the records alone.

use std::{fmt::Write as _, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    capability,
    effect::Decision,
    input::{DecisionContext, Refusal},
    policy::Policy,
    session::{Phase, Session},
};
use crate::model::{
    By, ToolSpec,
    command::Author,
    record::{AddedTool, ControlFact, Steered, ToolAttached},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attached {
    name: String,
    about: String,
}

impl From<&ToolAttached> for Attached {
    fn from(attached: &ToolAttached) -> Self {
        Self {
            name: attached.tool.clone(),
            about: attached.about.clone(),
        }
    }
}

impl From<&AddedTool> for Attached {
    fn from(added: &AddedTool) -> Self {
        Self {
            name: added.tool.clone(),
            about: added.about.clone(),
        }
    }
}

pub(super) fn attach(
    session: &Session,
    tool: String,
    by: By,
    now: DecisionContext,
) -> Result<Decision, Refusal> {
    let policy = session.policy();
    if policy.tool(&tool).is_some() {
        return Err(Refusal::AttachedAlready { tool });
    }
    let mut ready = policy.attachable.iter();
    let Some(spec) = ready.find(|spec| spec.name == tool) else {
        let names = policy.attachable.iter().map(|spec| &spec.name);
        let there = names.filter(|name| policy.tool(name).is_none());
        let there = there.cloned().collect();
        return Err(Refusal::UnknownTool { tool, there });
    };
    let about = spec.summary();
    let attached = ToolAttached { tool, about, by };
    let attached = session.note(ControlFact::ToolAttached(attached), now);
    // A query that waits for the tool goes on.
    let waits = session.awaited_grant();
    Ok(
        match waits.is_some_and(|(tools, _)| tools.contains(&spec.name)) {
            true => session.and_then(attached, now, capability::proceed),
            false => attached,
        },
    )
}

pub(super) fn take_in(session: &mut Session, tool: &Attached) {
    add(session, tool.clone());
    let words = words(session.policy(), std::slice::from_ref(tool));
    if let Phase::Running(query) = &mut session.phase {
        query.steers.push(words);
    }
}

/// Adds a tool to the end of the session's list.
pub(super) fn add(session: &mut Session, tool: Attached) {
    if session.attached.iter().any(|known| known.name == tool.name) {
        return;
    }
    if let Some(spec) = ready(session.policy(), &tool.name) {
        let tools = session.policy().tools.iter().cloned().chain([spec]);
        session.offer(tools.collect());
    }
    session.attached.push(tool);
}

impl Session {
    pub(super) fn has_attached(&self, name: &str) -> bool {
        self.attached.iter().any(|tool| tool.name == name)
    }

    /// Switches to another policy. Tools that the session has keep their places, those that are
    /// gone leave, and new ones join the end. Call it only while no query runs: a query ends under
    /// the policy that it started with.
    pub fn adopt(&mut self, policy: Arc<Policy>) {
        let before = Arc::clone(&self.policy().tools);
        let is_new = self.opened.is_none();
        self.rules = policy.into();
        let policy = self.policy();
        let is_attached = |name: &str| self.attached.iter().any(|tool| tool.name == name);
        let there = |name: &str| {
            let mut findable = policy.findable.iter();
            let own = policy
                .tool(name)
                .or_else(|| findable.find(|spec| spec.name == name));
            let own = own.cloned();
            own.or_else(|| ready(policy, name).filter(|_| is_attached(name)))
        };
        let before = before.iter().filter(|_| !is_new);
        let mut tools: Vec<ToolSpec> = before.filter_map(|spec| there(&spec.name)).collect();
        let own = policy.tools.iter().map(|spec| &spec.name);
        for name in own.chain(self.attached.iter().map(|tool| &tool.name)) {
            if tools.iter().all(|spec| spec.name != *name) {
                tools.extend(there(name));
            }
        }
        if *tools != *policy.tools {
            self.offer(tools.into());
        }
    }

    fn offer(&mut self, tools: Arc<[ToolSpec]>) {
        let policy = self.policy().clone();
        self.rules = Arc::new(Policy { tools, ..policy }).into();
    }
}

pub(super) fn attached_tools(session: &Session) -> Option<Arc<Steered>> {
    let attached = &session.attached;
    (!attached.is_empty()).then(|| words(session.policy(), attached))
}

/// A tool that can be added.
fn ready(policy: &Policy, name: &str) -> Option<ToolSpec> {
    if policy.tool(name).is_some() {
        return None;
    }
    let mut ready = policy.attachable.iter().chain(policy.findable.iter());
    ready.find(|spec| spec.name == name).cloned()
}

/// Always one message, because summaries refer to messages by position.
fn words(policy: &Policy, attached: &[Attached]) -> Arc<Steered> {
    let is_ready = |tool: &&Attached| policy.tool(&tool.name).is_some();
    let (there, gone): (Vec<_>, Vec<_>) = attached.iter().partition(is_ready);
    let mut text = String::new();
    if !there.is_empty() {
        text.push_str("These tools are available in addition to those named above:");
    }
    for Attached { name, about } in there {
        let _ = write!(text, "\n- {name}: {about}");
    }
    if !gone.is_empty() {
        let names: Vec<&str> = gone.iter().map(|tool| tool.name.as_str()).collect();
        let parting = if text.is_empty() { "" } else { "\n" };
        let names = names.join(", ");
        let _ = write!(text, "{parting}Currently unavailable: {names}.");
    }
    Arc::new(Steered {
        text,
        author: Author::Operator,
        by: By::oracle(),
        idempotency_key: None,
    })
}
