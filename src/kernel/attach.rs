//! Tools that a session gets while it lives (spec 10): those that its host has ready for that, by name.
//!
//! The list that the model is offered grows with the record. The prompt names only the profile's own tools,
//! so guidance tells of the others: at once where a query runs, and at the start of each later one. A
//! tool that the host has no longer ready is not offered; its name is kept.

use std::sync::Arc;

use super::{
    effect::Decision,
    input::{Moment, Refusal},
    policy::Policy,
    session::{Phase, Session},
};
use crate::model::{
    By, ToolSpec,
    command::Author,
    record::{ControlFact, Steered, ToolAttached},
};

/// An operator gives the session a tool.
pub(super) fn attach(
    session: &Session,
    tool: String,
    by: By,
    now: Moment,
) -> Result<Decision, Refusal> {
    let policy = session.policy();
    if policy.tool(&tool).is_some() {
        return Err(Refusal::AttachedAlready { tool });
    }
    let ready = policy.attachable.iter();
    let mut there: Vec<String> = ready.map(|spec| spec.name.clone()).collect();
    if !there.contains(&tool) {
        there.retain(|name| policy.tool(name).is_none());
        return Err(Refusal::UnknownTool { tool, there });
    }
    Ok(session.note(ControlFact::ToolAttached(ToolAttached { tool, by }), now))
}

/// The session has it from now on.
pub(super) fn take_in(session: &mut Session, tool: &str) {
    session.attached.push(tool.to_owned());
    let Some(spec) = ready(&session.policy, tool) else {
        return;
    };
    let words = words(&[&spec]);
    let tools = session.policy.tools.iter().cloned().chain([spec]);
    session.policy = Arc::new(Policy {
        tools: tools.collect(),
        ..(*session.policy).clone()
    });
    if let Phase::Running(query) = &mut session.phase {
        query.steers.push(words);
    }
}

impl Session {
    /// Goes by another policy from now on, and keeps the tools that it got. Only while no query runs: a query
    /// ends as it began.
    pub fn adopt(&mut self, policy: Arc<Policy>) {
        self.policy = policy;
        for tool in std::mem::take(&mut self.attached) {
            take_in(self, &tool);
        }
    }
}

/// What a query that begins is to be told.
pub(super) fn told(session: &Session) -> Option<Arc<Steered>> {
    let policy = session.policy();
    let specs = session.attached.iter().filter_map(|name| policy.tool(name));
    let specs: Vec<&ToolSpec> = specs.collect();
    (!specs.is_empty()).then(|| words(&specs))
}

fn ready(policy: &Policy, name: &str) -> Option<ToolSpec> {
    let known = policy.tool(name).is_some();
    let mut ready = policy.attachable.iter();
    ready.find(|spec| spec.name == name && !known).cloned()
}

fn words(specs: &[&ToolSpec]) -> Arc<Steered> {
    let lines = specs.iter().map(|spec| {
        let about = spec.description.lines().next().unwrap_or_default();
        format!("\n- {}: {about}", spec.name)
    });
    let lines: String = lines.collect();
    Arc::new(Steered {
        text: format!("These tools are available to you besides those named above:{lines}"),
        author: Author::Operator,
        by: By::oracle(),
        idempotency_key: None,
    })
}
