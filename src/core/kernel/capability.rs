//! How a session gets further tools: the model finds them, or an operator attaches them.
//!
//! After a `need_capability`, tools that serve it are added or named, and the query may wait until
//! an operator grants one.

use super::{
    draft::Draft,
    effect::{Decision, Effect},
    guard, guidance,
    input::{DecisionContext, Refusal},
    offer,
    phase::Step,
    policy::Policy,
    query::GRANT_WAIT,
    session::Session,
};
use crate::model::{
    By, SignalFields, Timestamp, ToolCall, ToolSpec, ToolStatus,
    record::{AddedTool, AgentFact, CapabilityRequested, ControlFact, ToolAttached, ToolsAdded},
    signal::NeedCapability,
};

pub(super) fn requested(mut draft: Draft<'_>, mut notes: Vec<String>) -> Decision {
    let Some(SignalFields::NeedCapability(wish)) = draft.query.signal_fields().cloned() else {
        return guard::begin_turn(draft, notes);
    };
    let (found, grantable) = serving(&draft, &wish);
    let wait = draft.policy().grant_wait;
    let waits = found.is_empty() && !grantable.is_empty() && !wait.is_zero();
    let mut asked = CapabilityRequested {
        wish,
        grantable,
        until: waits.then(|| draft.now.at.plus(wait)),
        guidance: Vec::new(),
    };
    let turn = Some(draft.query.turn);
    if let Some(at) = asked.until {
        asked.guidance = notes;
        draft.emit_by_row(turn, AgentFact::CapabilityRequested(asked));
        let token = draft.token(GRANT_WAIT);
        return draft.wait_for(Effect::RetryAt { token, at });
    }
    notes.push(match found.is_empty() {
        true => not_available(&draft, &asked),
        false => guidance::added_tools(&asked.wish, &found),
    });
    draft.emit_by_row(turn, AgentFact::CapabilityRequested(asked));
    if !found.is_empty() {
        add(&mut draft, found);
    }
    guard::begin_turn(draft, notes)
}

fn not_available(draft: &Draft<'_>, asked: &CapabilityRequested) -> String {
    let tools = draft.query.tools(&draft.policy().tools);
    guidance::available_tools(&asked.wish, &tools, &asked.grantable)
}

/// Tools that would serve a wish: those that can be found, and those that an operator can grant. A
/// word of the capability itself must match; the reason may only add to it.
fn serving(draft: &Draft<'_>, wish: &NeedCapability) -> (Vec<ToolSpec>, Vec<String>) {
    let (capability, policy) = (offer::words(&wish.capability), draft.policy());
    let text = format!("{} {}", wish.capability, wish.reason);
    let serving = |tools| {
        let tools = absent(draft, tools).filter(|spec| offer::score(&capability, spec) > 0);
        offer::matching(&text, tools, offer::MIN_SCORE)
    };
    let grantable = serving(&policy.attachable).into_iter();
    let grantable = grantable.map(|spec| spec.name.clone()).collect();
    let found = serving(&policy.findable).into_iter().cloned();
    (found.collect(), grantable)
}

fn absent<'a>(draft: &Draft<'_>, tools: &'a [ToolSpec]) -> impl Iterator<Item = &'a ToolSpec> {
    let there = draft.policy().tools.iter().chain(&draft.added);
    let there: Vec<&str> = there.map(|spec| spec.name.as_str()).collect();
    tools
        .iter()
        .filter(move |spec| !there.contains(&&*spec.name))
}

/// Adds tools to the session's list.
fn add(draft: &mut Draft<'_>, tools: Vec<ToolSpec>) {
    let added = tools.iter().map(|spec| AddedTool {
        tool: spec.name.clone(),
        about: spec.summary(),
    });
    let tools_added = ToolsAdded {
        tools: added.collect(),
    };
    draft.emit(AgentFact::ToolsAdded(tools_added));
    draft.added.extend(tools);
}

/// Runs a call of `find_tools`, which needs no effect.
pub(super) fn find(draft: &mut Draft<'_>, call: &ToolCall) {
    draft.start_call(call);
    let arguments = call.parsed().unwrap_or_default();
    let query = arguments.get("query").and_then(|query| query.as_str());
    let (status, content) = match query {
        None => (ToolStatus::Failed, guidance::NO_QUERY.to_owned()),
        Some(query) => {
            let found = offer::matching(query, absent(draft, &draft.policy().findable), 1);
            let found: Vec<ToolSpec> = found.into_iter().cloned().collect();
            let content = guidance::found_tools(&found);
            if !found.is_empty() {
                add(draft, found);
            }
            (ToolStatus::Ok, content)
        }
    };
    draft.finish_call(call, status, &content);
}

/// Adds a tool that the model calls without having found it; whether there is one of that name.
pub(super) fn joins(draft: &mut Draft<'_>, name: &str) -> bool {
    let mut findable = draft.policy().findable.iter();
    let found = findable.find(|spec| spec.name == name);
    if let Some(spec) = found
        && !draft.added.contains(spec)
    {
        add(draft, vec![spec.clone()]);
    }
    found.is_some()
}

pub(super) fn attach(
    session: &Session,
    tool: String,
    by: By,
    now: DecisionContext,
) -> Result<Decision, Refusal> {
    let policy = session.policy();
    if policy.tool(&tool).is_some() {
        return Err(Refusal::AttachedAlready(tool));
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
    if waits.is_some_and(|(tools, _)| tools.contains(&spec.name)) {
        return Ok(session.and_then(attached, now, proceed));
    }
    Ok(attached)
}

/// Ends the wait: the tool was granted, the deadline has passed, or somebody steered the query.
pub(super) fn proceed(draft: Draft<'_>) -> Decision {
    let Step::AwaitingGrant(asked) = &draft.query.step else {
        return draft.wait();
    };
    if draft.session.is_paused() {
        return draft.wait();
    }
    let notes = match is_granted(asked, draft.policy()) {
        // A message about the new tool is there.
        true => Vec::new(),
        false => vec![not_available(&draft, asked)],
    };
    guard::begin_turn(draft, notes)
}

/// Continues the wait after a restart or a pause.
pub(super) fn owed(draft: Draft<'_>, asked: &CapabilityRequested) -> Decision {
    match asked.until {
        Some(at) if !is_granted(asked, draft.policy()) && draft.now.at < at => {
            // If the clock was set back, no longer than the whole wait.
            let at = at.min(draft.now.at.plus(draft.policy().grant_wait));
            let token = draft.token(GRANT_WAIT);
            draft.wait_for(Effect::RetryAt { token, at })
        }
        _ => proceed(draft),
    }
}

fn is_granted(asked: &CapabilityRequested, policy: &Policy) -> bool {
    let mut wanted = asked.grantable.iter();
    wanted.any(|name| policy.tool(name).is_some())
}

impl Session {
    /// The tools of which the running query awaits one, and the end of the wait.
    pub fn awaited_grant(&self) -> Option<(&[String], Timestamp)> {
        match &self.query()?.step {
            Step::AwaitingGrant(asked) => Some((&asked.grantable, asked.until?)),
            _ => None,
        }
    }
}
