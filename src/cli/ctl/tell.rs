//! What the control channel answers, as text.

use std::io::Write as _;

use crate::{
    actor::{Approval, Listed, SessionView},
    cli::{
        Stop,
        terminal::{Terminal, harmless},
        text::event_line,
    },
    control::{Answer, Seen},
    model::{Event, Usage},
};

pub(super) fn answer(answer: &Answer, json: bool, terminal: &mut Terminal) -> Result<(), Stop> {
    if json {
        return terminal.out.json(answer);
    }
    match answer {
        Answer::Sessions { sessions, next } => {
            for listed in sessions {
                line(terminal, &session(listed))?;
            }
            if let Some(next) = next {
                let more = format_args!("there are more: see them with --after {next}");
                terminal.err.say(more);
            } else if sessions.is_empty() {
                terminal.err.say("there are no such sessions");
            }
        }
        Answer::Tenants { tenants, next } => {
            for tenant in tenants {
                line(terminal, tenant.as_str())?;
            }
            if let Some(next) = next {
                let more = format_args!("there are more: see them with --after {next}");
                terminal.err.say(more);
            }
        }
        Answer::Session { session } => view(session, terminal)?,
        Answer::Events { events } => {
            for event in events {
                line(terminal, &event_line(event))?;
            }
        }
        Answer::Approvals {
            approvals,
            incomplete,
            more,
        } => {
            for approval in approvals {
                line(terminal, &waiting(approval))?;
            }
            match (*more, incomplete) {
                (0, false) if approvals.is_empty() => {
                    terminal.err.say("no tool call waits for a person");
                }
                (0, false) => {}
                (0, true) => terminal
                    .err
                    .say("there may be more: not all sessions could be read, so ask again"),
                (more, _) => terminal.err.say(format_args!(
                    "{more} more wait, and not as long: they are told when some of these are answered"
                )),
            }
        }
        Answer::Done {} => line(terminal, "done")?,
        Answer::Query { query } => line(terminal, &format!("query {query} goes on"))?,
        Answer::Forked { session } => line(terminal, &format!("copied as {session}"))?,
        Answer::Reloaded { changed, waiting } => {
            line(terminal, &reloaded(changed, waiting))?;
        }
        Answer::Deleted {
            records,
            sub_agents,
        } => {
            let deleted = format!("deleted {records} records and {sub_agents} sub-agents");
            line(terminal, &deleted)?;
        }
    }
    Ok(())
}

pub(in crate::cli) fn reloaded(changed: &[String], waiting: &[String]) -> String {
    let changed = match changed {
        [] => "nothing has changed".to_owned(),
        keys => format!("changed: {}", keys.join(", ")),
    };
    match waiting {
        [] => changed,
        keys => format!("{changed}\nafter the next start: {}", keys.join(", ")),
    }
}

pub(super) fn seen(seen: &Seen, json: bool, terminal: &mut Terminal) -> Result<(), Stop> {
    if json {
        terminal.out.json(seen)?;
        return Ok(terminal.out.flush()?);
    }
    match seen {
        Seen::Event { tenant, event } => {
            let Event { session, at, .. } = &**event;
            let text = format!("{at} {tenant}/{session} {}", event_line(event).trim_start());
            line(terminal, &text)?;
        }
        Seen::Gap { session, from } => {
            let text = format!(
                "{session}: events from {from} on are missing here; `oracle ctl tail` tells them"
            );
            terminal.err.say(text);
        }
        Seen::Lost {} => {
            terminal
                .err
                .say("events of any session may be missing here");
        }
        Seen::End { why } => terminal.err.say(why),
    }
    Ok(terminal.out.flush()?)
}

/// A line of a result. What a model or a person has said must not be able to command a terminal.
fn line(terminal: &mut Terminal, text: &str) -> Result<(), Stop> {
    let text = match terminal.out_is_terminal() {
        true => harmless(text),
        false => text.to_owned(),
    };
    Ok(writeln!(terminal.out, "{text}")?)
}

fn session(listed: &Listed) -> String {
    let Listed {
        key,
        state,
        last,
        updated,
    } = listed;
    let at = updated.map_or_else(|| "-".to_owned(), |at| at.to_string());
    format!("{}\t{}\t{last}\t{at}", key.name, state.as_str())
}

fn waiting(approval: &Approval) -> String {
    let Approval {
        session,
        call,
        since,
        ..
    } = approval;
    let (id, tool, arguments) = (&call.id, &call.name, &call.arguments);
    format!("{session}\t{id}\t{tool}\t{arguments}\t{since}")
}

fn view(view: &SessionView, terminal: &mut Terminal) -> Result<(), Stop> {
    let paused = if view.paused { ", paused" } else { "" };
    line(terminal, &format!("session   {}", view.key))?;
    line(terminal, &format!("state     {}{paused}", view.state))?;
    if let Some(reason) = &view.quarantine {
        line(terminal, &format!("aside     {reason}"))?;
    }
    line(terminal, &format!("records   {}", view.last))?;
    if let (Some(query), Some(limits)) = (view.query, view.limits) {
        let (turns, most) = (view.turns, limits.max_turns);
        line(
            terminal,
            &format!("running   query {query}, {turns} of {most} turns"),
        )?;
        let tokens = limits.max_tokens.map(|tokens| format!("{tokens} tokens"));
        let cost = limits.max_cost.map(|cost| cost.to_string());
        let most: Vec<String> = tokens.into_iter().chain(cost).collect();
        if !most.is_empty() {
            line(terminal, &format!("at most   {}", most.join(", ")))?;
        }
    }
    line(terminal, &format!("waiting   {}", view.waiting))?;
    let Usage {
        input_tokens,
        output_tokens,
        cost,
        ..
    } = view.usage;
    let used = format!("used      {input_tokens} tokens sent, {output_tokens} received, {cost}");
    line(terminal, &used)
}
