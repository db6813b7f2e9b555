//! Formats answers of the control channel as text.

use std::{fmt::Display, io::Write as _};

use crate::{
    actor::{Approval, Changes, SessionPage, SessionSummary, SessionView, TenantPage, ToolServer},
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
    match answer {
        Answer::Sessions(SessionPage { sessions, next }) => {
            for listed in sessions {
                line(terminal, &session(listed))?;
            }
            if sessions.is_empty() && next.is_none() {
                terminal.err.say("no matching sessions");
            }
            more(next.as_ref(), terminal);
        }
        Answer::Tenants(TenantPage { tenants, next }) => {
            for tenant in tenants {
                line(terminal, tenant.as_str())?;
            }
            more(next.as_ref(), terminal);
        }
        Answer::Session { session } => view(session, terminal)?,
        Answer::Events { events } => {
            for event in events {
                line(terminal, &event_line(event))?;
            }
        }
        Answer::Approvals(calls) => {
            for approval in &calls.approvals {
                line(terminal, &waiting(approval))?;
            }
            let err = &mut terminal.err;
            for grant in &calls.grants {
                let (session, tools) = (&grant.session, grant.tools.join("`, `"));
                err.say(format_args!(
                    "{session} waits for one of `{tools}` until {}: run `oracle ctl attach \
                     {session} TOOL`",
                    grant.until
                ));
            }
            match (calls.more, calls.incomplete) {
                (0, false) if calls.approvals.is_empty() && calls.grants.is_empty() => {
                    err.say("no call or query waits")
                }
                (0, false) => {}
                (0, true) => err.say(
                    "the list may be incomplete, because some sessions could not be read: \
                          try again",
                ),
                (more, _) => err.say(format_args!(
                    "{more} newer calls are not shown: answer some of these first"
                )),
            }
        }
        Answer::Done {} => line(terminal, "done")?,
        Answer::Query { query } => line(terminal, &format!("query {query} continues"))?,
        Answer::Forked { session } => line(terminal, &format!("forked as {session}"))?,
        Answer::Reloaded(Changes { changed, waiting }) => {
            line(terminal, &reloaded(changed, waiting))?;
        }
        Answer::ToolServers { servers } => {
            for server in servers {
                tool_server(server, terminal)?;
            }
            if servers.is_empty() {
                terminal.err.say("no MCP servers are configured");
            }
        }
        Answer::Deleted {
            records,
            sub_agents: agents,
        } => line(
            terminal,
            &format!("deleted {records} records and {agents} sub-agents"),
        )?,
    }
    Ok(())
}

fn more(next: Option<&impl Display>, terminal: &mut Terminal) {
    if let Some(next) = next {
        let more = format_args!("more results: continue with --after {next}");
        terminal.err.say(more);
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
            terminal.err.say(format_args!(
                "{session}: missed events from {from} on; read them with `oracle ctl tail`"
            ));
        }
        WireUpdate::Lost {} => {
            let lost = "events of any session may have been missed here";
            terminal.err.say(lost);
        }
        WireUpdate::End { why } => terminal.err.say(why),
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

fn tool_server(server: &ToolServer, terminal: &mut Terminal) -> CliResult {
    let (name, state, count) = (&server.name, &server.state, server.tools.len());
    line(terminal, &format!("{name}\t{state}\t{count} tools"))?;
    for withheld in &server.withheld {
        let (tool, was, is) = (&withheld.tool, &withheld.was, &withheld.is);
        let approve = format!("oracle ctl approve-tool {tool} {}", withheld.sha256);
        let text = format!("  withheld: {tool}\n    was {was}\n    is  {is}\n    {approve}");
        let text = visible::escaped(&text);
        text.lines().try_for_each(|text| line(terminal, text))?;
    }
    Ok(())
}

fn waiting(approval: &Approval) -> String {
    let (session, call, since) = (&approval.session, &approval.call, approval.since);
    let (id, token) = (visible::shell_word(&call.id.0), &approval.token.0);
    let (tool, arguments) = (&call.name, &call.arguments);
    let row = format!("{session}\t{id}\t{token}\t{tool}\t{arguments}\t{since}");
    visible::escaped(&row)
}

fn view(view: &SessionView, terminal: &mut Terminal) -> CliResult {
    line(terminal, &format!("{:<15}{}", "session", view.key))?;
    let mut lines = standing(view).into_iter();
    lines.try_for_each(|text| line(terminal, &text))
}
