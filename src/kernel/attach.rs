//! Tools that an operator attaches to a live session, by name, from those that the host keeps
//! ready.
//!
//! The prompt names only the profile's own tools, so guidance names the others: at once if a query
//! runs, and at the start of each later one. It also names those that the host no longer has.
//!
//! **Invariant:** the number of messages about tools follows from the records alone.

use std::{fmt::Write as _, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    effect::Decision,
    input::{DecisionContext, Refusal},
    policy::Policy,
    session::{Phase, Session},
};
use crate::model::{
    By, ToolSpec,
    command::Author,
    record::{ControlFact, Steered, ToolAttached},
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
    let about = about(spec);
    let attached = ToolAttached { tool, about, by };
    Ok(session.note(ControlFact::ToolAttached(attached), now))
}

pub(super) fn take_in(session: &mut Session, tool: &Attached) {
    session.attached.push(tool.clone());
    if let Some(spec) = ready(session.policy(), &tool.name) {
        let tools = session.policy().tools.iter().cloned().chain([spec]);
        let tools = tools.collect();
        let policy = session.policy().clone();
        session.rules = Arc::new(Policy { tools, ..policy }).into();
    }
    let words = words(session.policy(), std::slice::from_ref(tool));
    if let Phase::Running(query) = &mut session.phase {
        query.steers.push(words);
    }
}

impl Session {
    pub(super) fn has_attached(&self, name: &str) -> bool {
        self.attached.iter().any(|tool| tool.name == name)
    }

    /// Switches to another policy and keeps the attached tools. Call it only while no query runs: a
    /// query ends under the policy that it started with.
    pub fn adopt(&mut self, policy: Arc<Policy>) {
        self.rules = policy.into();
        for tool in std::mem::take(&mut self.attached) {
            take_in(self, &tool);
        }
    }
}

pub(super) fn attached_tools(session: &Session) -> Option<Arc<Steered>> {
    let attached = &session.attached;
    (!attached.is_empty()).then(|| words(session.policy(), attached))
}

fn ready(policy: &Policy, name: &str) -> Option<ToolSpec> {
    if policy.tool(name).is_some() {
        return None;
    }
    let mut ready = policy.attachable.iter();
    ready.find(|spec| spec.name == name).cloned()
}

fn about(spec: &ToolSpec) -> String {
    let first = spec.description.lines().next();
    first.unwrap_or_default().to_owned()
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
