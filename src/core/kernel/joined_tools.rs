//! Tools that join a live session, by name, from those that the host keeps ready: an operator
//! attaches them, or the model finds them.
//!
//! The prompt names only the profile's own tools, so guidance names the others: at once if a query
//! runs, and at the start of each later one. It also names those that the host no longer has.
//!
//! **Invariant:** the list has the policy's tools, then those that joined, in that order, and last the
//! tool that signals. So a restored session has the order of the live one, and keeps its head. The number
//! of messages about tools follows from the records alone.

use std::{fmt::Write as _, mem, sync::Arc};

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

/// Notes that a tool has joined, unless it is known, and lists it if the host has it ready.
pub(super) fn add(session: &mut Session, tool: &AddedTool) {
    if session.has_joined(&tool.tool) {
        return;
    }
    if let Some(spec) = ready(session.policy(), &tool.tool) {
        session.offer(with_further(&session.policy().tools, [spec]));
    }
    session.joined.push(tool.clone());
}

/// A session's list with further tools.
pub(super) fn with_further(
    list: &[ToolSpec],
    further: impl IntoIterator<Item = ToolSpec>,
) -> Arc<[ToolSpec]> {
    let is_report = |spec: &ToolSpec| spec.name == ToolSpec::REPORT;
    let (report, others): (Vec<_>, Vec<_>) = list.iter().cloned().partition(is_report);
    others.into_iter().chain(further).chain(report).collect()
}

/// Adds the tool that signals, if the model needs it. Its description says all, so there is no message
/// about it.
pub(super) fn offer_report(session: &mut Session) {
    let policy = session.policy();
    let reports = policy.model().is_some_and(|first| first.reports_status);
    let is_needed = reports || session.silent_queries == SILENT_QUERIES;
    if is_needed && policy.tool(ToolSpec::REPORT).is_none() {
        session.offer(with_further(&policy.tools, [report_tool().clone()]));
    }
}

impl Session {
    /// Whether a tool was attached or found.
    pub(super) fn has_joined(&self, name: &str) -> bool {
        self.joined.iter().any(|tool| tool.tool == name)
    }

    /// Switches to another policy. Call it only while no query runs: a query ends under the policy
    /// that it started with.
    pub fn adopt(&mut self, policy: Arc<Policy>) {
        self.rules = policy.into();
        let joined = mem::take(&mut self.joined);
        joined.iter().for_each(|tool| add(self, tool));
        offer_report(self);
    }

    fn offer(&mut self, tools: Arc<[ToolSpec]>) {
        let policy = self.policy().clone();
        self.rules = Arc::new(Policy { tools, ..policy }).into();
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
