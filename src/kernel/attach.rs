//! Tools that a session gets while it lives (spec 10): those that its host has ready for that, by name.
//!
//! The list that the model is offered grows with the record. The prompt names only the profile's own tools,
//! so guidance tells of the others: at once where a query runs, and at the start of each later one. A
//! tool that the host has no longer ready is not offered; its name is kept, and the guidance says so.
//!
//! **Invariant:** how many messages tell of tools follows from the records alone, whatever tools are ready.

use std::{fmt::Write as _, sync::Arc};

use serde::{Deserialize, Serialize};

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

/// A tool that the session got, as its record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attached {
    name: String,
    /// What the model is told of it.
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

/// The session has it from now on.
pub(super) fn take_in(session: &mut Session, tool: &Attached) {
    session.attached.push(tool.clone());
    if let Some(spec) = ready(&session.policy, &tool.name) {
        let tools = session.policy.tools.iter().cloned().chain([spec]);
        session.policy = Arc::new(Policy {
            tools: tools.collect(),
            ..(*session.policy).clone()
        });
        session.tool_tokens.take();
    }
    let words = words(&session.policy, std::slice::from_ref(tool));
    if let Phase::Running(query) = &mut session.phase {
        query.steers.push(words);
    }
}

impl Session {
    /// Goes by another policy from now on, and keeps the tools that it got. Only while no query runs: a query
    /// ends as it began.
    pub fn adopt(&mut self, policy: Arc<Policy>) {
        self.policy = policy;
        self.tool_tokens.take();
        for tool in std::mem::take(&mut self.attached) {
            take_in(self, &tool);
        }
    }
}

/// What a query that begins is to be told.
pub(super) fn told(session: &Session) -> Option<Arc<Steered>> {
    let attached = &session.attached;
    (!attached.is_empty()).then(|| words(session.policy(), attached))
}

fn ready(policy: &Policy, name: &str) -> Option<ToolSpec> {
    let known = policy.tool(name).is_some();
    let mut ready = policy.attachable.iter();
    ready.find(|spec| spec.name == name && !known).cloned()
}

fn about(spec: &ToolSpec) -> String {
    let first = spec.description.lines().next();
    first.unwrap_or_default().to_owned()
}

/// Always one message, whichever of them are ready: summaries name messages by their numbers.
fn words(policy: &Policy, attached: &[Attached]) -> Arc<Steered> {
    let is_ready = |tool: &&Attached| policy.tool(&tool.name).is_some();
    let (there, gone): (Vec<_>, Vec<_>) = attached.iter().partition(is_ready);
    let mut text = String::new();
    if !there.is_empty() {
        text.push_str("These tools are available to you besides those named above:");
    }
    for Attached { name, about } in there {
        let _ = write!(text, "\n- {name}: {about}");
    }
    if !gone.is_empty() {
        let names: Vec<&str> = gone.iter().map(|tool| tool.name.as_str()).collect();
        let parting = if text.is_empty() { "" } else { "\n" };
        let names = names.join(", ");
        let _ = write!(text, "{parting}Not available at the moment: {names}.");
    }
    Arc::new(Steered {
        text,
        author: Author::Operator,
        by: By::oracle(),
        idempotency_key: None,
    })
}
