//! The servers over one data directory, usually one. With several, each contributes what it knows,
//! and a session's owner decides.

use futures_util::stream::{self, SelectAll, Stream, StreamExt as _, TryStreamExt as _};

use super::{Server, output};
use crate::{
    actor::{SessionPage, SessionState, SessionSummary, WaitingCalls},
    cli::{CliError, interrupts::Interrupts, terminal::Terminal},
    control::{Answer, Client, Events, Subject, Verb, Watching, WireUpdate},
    model::{Owner, SessionKey, SessionName, TenantId},
};

pub(in crate::cli) struct Servers<'a> {
    pub(in crate::cli) all: &'a [Server],
    pub(in crate::cli) owner: &'a dyn Fn(&SessionKey) -> Option<Owner>,
}

impl Servers<'_> {
    pub(in crate::cli) async fn carry_out(&self, verb: &Verb) -> Result<Answer, CliError> {
        match verb {
            Verb::List { .. } | Verb::Approvals { .. } => {}
            Verb::Drain {}
            | Verb::ShutDown {}
            | Verb::Reload {}
            | Verb::ToolServers {}
            | Verb::ApproveTool { .. }
                if self.all.len() > 1 =>
            {
                let pids = self.all.iter().filter_map(|server| server.pid);
                let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
                return Err(CliError::usage(format_args!(
                    "several servers use this data directory: choose one with `oracle ctl --pid`, \
                     out of {}",
                    pids.join(", ")
                )));
            }
            _ => return Ok(self.one(verb.session())?.carry_out(verb).await?),
        }
        let answers = stream::iter(self.all).then(|server| server.client.carry_out(verb));
        let answers: Vec<Answer> = answers.try_collect().await?;
        Ok(match verb {
            Verb::List { state, limit, .. } => sessions(answers, *state, *limit),
            _ => approvals(answers),
        })
    }

    /// The server that owns a session, else any.
    fn one(&self, session: Option<&Subject>) -> Result<&Client, CliError> {
        let owner = match (self.all, session) {
            ([_, _, ..], Some(session)) => (self.owner)(&session.of(&TenantId::local())),
            _ => None,
        };
        let is_it = |server: &&Server| owner.as_ref().is_some_and(|owner| owner.pid == server.pid);
        let one = self.all.iter().find(is_it).or(self.all.first());
        let none = || CliError::failed("no server responds: start one with `oracle serve`");
        Ok(&one.ok_or_else(none)?.client)
    }

    /// Prints records until Ctrl-C, or until all servers have ended.
    pub(super) async fn watch(
        &self,
        wanted: &Watching,
        terminal: &mut Terminal,
    ) -> Result<(), CliError> {
        let mut interrupts = Interrupts::listen();
        let asked = match &wanted.session {
            Some(session) => vec![self.one(Some(session))?],
            None => self.all.iter().map(|server| &server.client).collect(),
        };
        let mut watched = SelectAll::new();
        for client in asked {
            watched.push(until_end(client.watch(wanted).await?).boxed());
        }
        loop {
            tokio::select! {
                seen = watched.next() => match seen {
                    Some(seen) => output::update(&seen?, terminal)?,
                    None => return Ok(()),
                },
                () = interrupts.pressed() => return Ok(()),
            }
        }
    }
}

fn until_end(events: Events<WireUpdate>) -> impl Stream<Item = Result<WireUpdate, CliError>> {
    stream::unfold(Some(events), |events| async {
        let mut events = events?;
        match events.next().await {
            Ok(Some(end @ WireUpdate::End { .. })) => Some((Ok(end), None)),
            Ok(Some(seen)) => Some((Ok(seen), Some(events))),
            Ok(None) => {
                let why = "the server closed the control channel: check that it is still running";
                Some((Err(CliError::failed(why)), None))
            }
            Err(error) => Some((Err(error.into()), None)),
        }
    })
}

/// Merges session lists. Every server lists all sessions, but knows the state only of those that it
/// owns.
fn sessions(answers: Vec<Answer>, wanted: Option<SessionState>, limit: u32) -> Answer {
    let servers = answers.len();
    let (mut all, mut next) = (Vec::<SessionSummary>::new(), None::<SessionName>);
    for answer in answers {
        if let Answer::Sessions(page) = answer {
            all.extend(page.sessions);
            // Pages are complete only up to the smallest cursor.
            next = next.into_iter().chain(page.next).min();
        }
    }
    all.retain(|listed| next.as_ref().is_none_or(|end| listed.key.name <= *end));
    // The owner's entry comes first.
    let suspended = |listed: &SessionSummary| listed.state == SessionState::Suspended;
    all.sort_by_key(|listed| (listed.key.name.clone(), suspended(listed)));
    let told = all.chunk_by(|one, other| one.key == other.key);
    let told = told.filter(|told| wanted != Some(SessionState::Suspended) || told.len() == servers);
    let mut sessions: Vec<SessionSummary> = told.filter_map(|told| told.first().cloned()).collect();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if sessions.len() > limit {
        sessions.truncate(limit);
        next = sessions.last().map(|listed| listed.key.name.clone());
    }
    Answer::Sessions(SessionPage { sessions, next })
}

/// Merges pending calls, without duplicates: every server reports those of passivated sessions.
fn approvals(answers: Vec<Answer>) -> Answer {
    let mut all = WaitingCalls::default();
    for answer in answers {
        let Answer::Approvals(some) = answer else {
            continue;
        };
        for approval in some.approvals {
            if !all.approvals.contains(&approval) {
                all.approvals.push(approval);
            }
        }
        for grant in some.grants {
            if !all.grants.contains(&grant) {
                all.grants.push(grant);
            }
        }
        all.incomplete |= some.incomplete;
        all.more = all.more.max(some.more);
    }
    all.approvals.sort_by_key(|one| one.since);
    Answer::Approvals(all)
}
