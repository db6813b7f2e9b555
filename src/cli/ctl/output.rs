//! Formats answers of the control channel as text.

use std::{fmt::Display, io::Write as _, iter};

use crate::{
    actor::{
        Approval, Changes, SessionPage, SessionSummary, SessionView, TenantPage, ToolServer,
        WaitingCalls,
    },
    cli::{
        CliResult,
        terminal::Terminal,
        text::{event_line, standing},
    },
    control::{Answer, WireUpdate},
    model::{Event, visible},
};

pub(super) fn answer(answer: &Answer, terminal: &mut Terminal) -> CliResult {
    if terminal.json {
        return terminal.out.json(answer);
    }
    let lines: Vec<String> = match answer {
        Answer::Sessions(page) => page.sessions.iter().map(session).collect(),
        Answer::Tenants(page) => page.tenants.iter().map(ToString::to_string).collect(),
        Answer::Session { session } => view(session).collect(),
        Answer::Events { events } => events.iter().map(event_line).collect(),
        Answer::Approvals(calls) => calls.approvals.iter().map(waiting).collect(),
        Answer::Done {} => vec!["done".to_owned()],
        Answer::Query { query } => vec![format!("query {query} continues")],
        Answer::Forked { session } => vec![format!("forked as {session}")],
        Answer::Reloaded(Changes { changed, waiting }) => vec![reloaded(changed, waiting)],
        Answer::ToolServers { servers } => servers.iter().flat_map(tool_server).collect(),
        Answer::Deleted {
            records,
            sub_agents: agents,
        } => vec![format!("deleted {records} records and {agents} sub-agents")],
    };
    lines.iter().try_for_each(|text| line(terminal, text))?;
    match answer {
        Answer::Sessions(SessionPage { sessions, next }) => match next {
            Some(next) => more(next, terminal),
            None if sessions.is_empty() => terminal.say("no matching sessions"),
            None => {}
        },
        Answer::Tenants(TenantPage { next, .. }) => {
            next.iter().for_each(|next| more(next, terminal));
        }
        Answer::Approvals(calls) => unlisted(calls, terminal),
        Answer::ToolServers { servers } if servers.is_empty() => {
            terminal.say("no MCP servers are configured");
        }
        _ => {}
    }
    Ok(())
}

fn more(next: &impl Display, terminal: &mut Terminal) {
    terminal.say(format_args!("more results: continue with --after {next}"));
}

/// Says what waits besides the listed calls.
fn unlisted(calls: &WaitingCalls, terminal: &mut Terminal) {
    for grant in &calls.grants {
        let (session, tools) = (&grant.session, grant.tools.join("`, `"));
        terminal.say(format_args!(
            "{session} waits for one of `{tools}` until {}: run `oracle ctl attach {session} TOOL`",
            grant.until
        ));
    }
    match (calls.more, calls.incomplete) {
        (0, false) if calls.approvals.is_empty() && calls.grants.is_empty() => {
            terminal.say("no call or query waits");
        }
        (0, false) => {}
        (0, true) => terminal
            .say("the list may be incomplete, because some sessions could not be read: try again"),
        (more, _) => terminal.say(format_args!(
            "{more} newer calls are not shown: answer some of these first"
        )),
    }
}

pub(crate) fn reloaded(changed: &[String], waiting: &[String]) -> String {
    let changed = match changed {
        [] => "no changes".to_owned(),
        keys => format!("changed: {}", keys.join(", ")),
    };
    match waiting {
        [] => changed,
        keys => format!("{changed}\neffective after a restart: {}", keys.join(", ")),
    }
}

pub(super) fn update(seen: &WireUpdate, terminal: &mut Terminal) -> CliResult {
    if terminal.json {
        terminal.out.json(seen)?;
        return Ok(terminal.out.flush()?);
    }
    match seen {
        WireUpdate::Event { tenant, event } => {
            let Event { session, at, .. } = &**event;
            let text = format!("{at} {tenant}/{session} {}", event_line(event).trim_start());
            line(terminal, &text)?;
        }
        WireUpdate::Gap { session, from } => {
            terminal.say(format_args!(
                "{session}: missed events from {from} on; read them with `oracle ctl tail`"
            ));
        }
        WireUpdate::Lost {} => {
            terminal.say("events of any session may have been missed here");
        }
        WireUpdate::End { why } => terminal.say(why),
    }
    Ok(terminal.out.flush()?)
}

/// Prints a line without control sequences, which texts of models and users may contain.
fn line(terminal: &mut Terminal, text: &str) -> CliResult {
    let text = terminal.shown(text);
    Ok(writeln!(terminal.out, "{text}")?)
}

fn session(listed: &SessionSummary) -> String {
    let at = listed.updated.map(|at| at.to_string());
    let at = at.unwrap_or_else(|| "-".to_owned());
    let (name, state) = (&listed.key.name, listed.state.as_str());
    format!("{name}\t{state}\t{}\t{at}", listed.last)
}

fn tool_server(server: &ToolServer) -> Vec<String> {
    let (name, state, count) = (&server.name, &server.state, server.tools.len());
    let mut lines = vec![format!("{name}\t{state}\t{count} tools")];
    for withheld in &server.withheld {
        let (tool, was, is) = (&withheld.tool, &withheld.was, &withheld.is);
        let approve = format!("oracle ctl approve-tool {tool} {}", withheld.sha256);
        let text = format!("  withheld: {tool}\n    was {was}\n    is  {is}\n    {approve}");
        lines.push(visible::escaped(&text));
    }
    lines
}

fn waiting(approval: &Approval) -> String {
    let (session, call, since) = (&approval.session, &approval.call, approval.since);
    let (id, token) = (visible::shell_word(&call.id.0), &approval.token.0);
    let (tool, arguments) = (&call.name, &call.arguments);
    let row = format!("{session}\t{id}\t{token}\t{tool}\t{arguments}\t{since}");
    visible::escaped(&row)
}

fn view(view: &SessionView) -> impl Iterator<Item = String> {
    iter::once(format!("{:<15}{}", "session", view.key)).chain(standing(view))
}
