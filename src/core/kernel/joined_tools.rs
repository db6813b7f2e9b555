//! Tools that join a live session, by name, from those that the host keeps ready: an operator
//! attaches them, or the model finds them.
//!
//! The prompt names only the profile's own tools, so guidance names the others: at once if a query
//! runs, and at the start of each later one. It also names those that the host no longer has.
//!
//! **Invariant:** the number of messages about tools follows from the records alone.

use std::{fmt::Write as _, sync::Arc};

use super::{
    offer,
    policy::Policy,
    session::{Phase, SILENT_QUERIES, Session},
};
use crate::{
    model::{
        By, ToolSpec,
        command::Author,
        record::{AddedTool, Steered, ToolAttached},
    },
    signal::report_tool,
};

pub(super) fn take_in(session: &mut Session, attached: &ToolAttached) {
    let tool = AddedTool {
        tool: attached.tool.clone(),
        about: attached.about.clone(),
    };
    add(session, &tool);
    let words = words(session.policy(), &[tool]);
    if let Phase::Running(query) = &mut session.phase {
        query.steers.push(words);
    }
}

/// Adds a tool to the end of the session's list.
pub(super) fn add(session: &mut Session, tool: &AddedTool) {
    if session.has_joined(&tool.tool) {
        return;
    }
    if let Some(spec) = ready(session.policy(), &tool.tool) {
        let tools = session.policy().tools.iter().cloned().chain([spec]);
        session.offer(tools.collect());
    }
    session.joined.push(tool.clone());
}

/// Adds the tool that signals, if the model needs it. Its description says all, so there is no message
/// about it.
pub(super) fn offer_report(session: &mut Session) {
    let policy = session.policy();
    let reports = policy.model().is_some_and(|first| first.reports_status);
    let is_needed = reports || session.silent_queries == SILENT_QUERIES;
    if is_needed && policy.tool(ToolSpec::REPORT).is_none() {
        let tools = policy.tools.iter().chain([report_tool()]);
        session.offer(tools.cloned().collect());
    }
}

impl Session {
    /// Whether a tool was attached or found.
    pub(super) fn has_joined(&self, name: &str) -> bool {
        self.joined.iter().any(|tool| tool.tool == name)
    }

    /// Switches to another policy. Tools that the session has keep their places, those that are
    /// gone leave, and new ones join the end. Call it only while no query runs: a query ends under
    /// the policy that it started with.
    pub fn adopt(&mut self, policy: Arc<Policy>) {
        let before = Arc::clone(&self.policy().tools);
        self.rules = policy.into();
        let before = before.iter().filter(|_| self.opened.is_some());
        let kept = before.filter_map(|spec| self.available(&spec.name));
        let mut tools: Vec<ToolSpec> = kept.collect();
        let own = self.policy().tools.iter().map(|spec| &spec.name);
        for name in own.chain(self.joined.iter().map(|tool| &tool.tool)) {
            if tools.iter().all(|spec| spec.name != *name) {
                tools.extend(self.available(name));
            }
        }
        if *tools != *self.policy().tools {
            self.offer(tools.into());
        }
    }

    /// A tool of the policy, or one to find, or one to attach that has joined.
    fn available(&self, name: &str) -> Option<ToolSpec> {
        let policy = self.policy();
        let mut own = policy.tools.iter().chain(policy.findable.iter());
        let own = own.find(|spec| spec.name == name).cloned();
        own.or_else(|| (name == ToolSpec::REPORT).then(|| report_tool().clone()))
            .or_else(|| ready(policy, name).filter(|_| self.has_joined(name)))
    }

    fn offer(&mut self, tools: Arc<[ToolSpec]>) {
        let policy = self.policy().clone();
        self.rules = Arc::new(Policy { tools, ..policy }).into();
        self.unsettle();
    }
}

pub(super) fn announcement(session: &Session) -> Option<Arc<Steered>> {
    let joined = &session.joined;
    (!joined.is_empty()).then(|| words(session.policy(), joined))
}

/// A tool that can be added, as the model may read it.
fn ready(policy: &Policy, name: &str) -> Option<ToolSpec> {
    if policy.tool(name).is_some() {
        return None;
    }
    let mut ready = policy.attachable.iter().chain(policy.findable.iter());
    let ready = ready.find(|spec| spec.name == name);
    ready.map(offer::escaped_spec)
}

/// Always one message, because summaries refer to messages by position.
fn words(policy: &Policy, joined: &[AddedTool]) -> Arc<Steered> {
    let is_ready = |joined: &&AddedTool| policy.tool(&joined.tool).is_some();
    let (there, gone): (Vec<_>, Vec<_>) = joined.iter().partition(is_ready);
    let mut text = String::new();
    if !there.is_empty() {
        text.push_str("These tools are available in addition to those named above:");
    }
    for AddedTool { tool, about } in there {
        let _ = write!(text, "\n- {tool}: {about}");
    }
    if !gone.is_empty() {
        let names: Vec<&str> = gone.iter().map(|joined| joined.tool.as_str()).collect();
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
