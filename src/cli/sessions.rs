//! `oracle sessions`: stored conversations.
//!
//! All subcommands except `release` only read the journal and reactivate no session. Texts of
//! models and users are escaped on a terminal, and unchanged elsewhere.

use std::{cmp::Reverse, io::Write as _};

use clap::Subcommand;
use serde_json::json;

use super::{CliError, terminal::Terminal};
use crate::{
    actor::{AskError, Oracle},
    journal::{self, Entry, Journal, Known},
    kernel::Command,
    model::{
        Event, Seq, SessionKey, SessionName, TenantId,
        record::{Fact, SessionFact},
    },
};

mod delete;
mod show;

pub use delete::{DeleteArgs, delete};
pub use show::show;

const PAGE: usize = 1_024;
const RECORDS: usize = 256;

/// `oracle sessions events`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct EventsArgs {
    /// Name of the session
    #[arg(value_name = "ID")]
    pub id: SessionName,
    /// Print only events after this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Print only events whose type starts with this, such as `tool.`
    #[arg(
        long = "type",
        value_name = "PREFIX",
        default_value = "",
        hide_default_value = true
    )]
    pub kind: String,
}

/// `oracle sessions search`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct SearchArgs {
    /// Words that must all occur, as whole words in any case
    #[arg(required = true)]
    pub words: Vec<String>,
    /// Maximum number of matches
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

/// A subcommand of `oracle sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum SessionsCommand {
    /// List sessions, most recently used first
    List {
        /// Maximum number of sessions
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Show the state, questions and answers of a session
    Show(SessionArg),
    /// Print a session's events, one JSON object per line, with references for long texts
    Events(EventsArgs),
    /// Print a session's whole event log, one JSON object per line, with all texts
    Export(SessionArg),
    /// Permanently delete a session and its sub-agents
    Delete(DeleteArgs),
    /// Search questions and answers, latest first
    Search(SearchArgs),
    /// Release a quarantined session
    Release(SessionArg),
}

/// A session by name.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct SessionArg {
    /// Name of the session
    #[arg(value_name = "ID")]
    pub id: SessionName,
}

async fn known(journal: &dyn Journal, name: &SessionName) -> Result<Known, CliError> {
    let found = journal.find(SessionKey::local(name.clone())).await?;
    let name = name.clone();
    found.ok_or_else(|| AskError::NoSession { name }.into())
}

/// Lists the sessions used last.
pub async fn list(
    journal: &dyn Journal,
    limit: usize,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
    let (sessions, all) = newest(journal, limit).await?;
    if json {
        for known in &sessions {
            let (session, state) = (&known.key.name, known.standing.as_str());
            terminal.out.json(&json!({
                "session": session, "last_activity": known.at, "state": state, "records": known.last,
            }))?;
        }
        return Ok(());
    }
    let row = |known: &Known| {
        let at = known.at.map_or_else(|| "-".to_owned(), |at| at.to_string());
        let (name, records) = (known.key.name.to_string(), known.last.to_string());
        [name, at, known.standing.as_str().to_owned(), records]
    };
    let rows: Vec<[String; 4]> = sessions.iter().map(row).collect();
    let head = ["SESSION", "LAST ACTIVITY", "STATE", "RECORDS"];
    terminal.table(head, 3, &rows)?;
    match all - rows.len() {
        0 if all == 0 => terminal.err.say("this data directory has no sessions yet"),
        0 => {}
        more => terminal
            .err
            .say(format_args!("{more} more sessions: show them with --limit")),
    }
    Ok(())
}

/// Returns the `limit` sessions used last, latest first, and the total. The journal lists by name,
/// so sessions are sorted page by page, without holding more than are shown.
pub(super) async fn newest(
    journal: &dyn Journal,
    limit: usize,
) -> Result<(Vec<Known>, usize), CliError> {
    let (mut newest, mut all, mut after) = (Vec::new(), 0, None);
    loop {
        let mut page = journal.list(TenantId::local(), after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.name.clone());
        // Reserved logs are no conversations.
        page.retain(|known| !known.key.name.is_reserved());
        all += page.len();
        newest.extend(page);
        newest.sort_by_key(|known: &Known| Reverse((known.at, known.sid)));
        newest.truncate(limit);
    }
    Ok((newest, all))
}

/// The conversation used last in this project, without those of sub-agents.
pub async fn last(journal: &dyn Journal, project: &str) -> Result<SessionName, CliError> {
    let mut wanted = PAGE;
    loop {
        let (sessions, all) = newest(journal, wanted).await?;
        for known in &sessions {
            // An unreadable session can be named, but is not chosen by default.
            let first = journal.read(known.sid, Seq(0), 1).await.unwrap_or_default();
            if let Some(first) = first.first()
                && let Fact::Session(SessionFact::Opened(opened)) = &first.record.fact
                && opened.parent.is_none()
                && opened.project.as_deref().is_none_or(|of| of == project)
            {
                return Ok(known.key.name.clone());
            }
        }
        if sessions.len() == all {
            break;
        }
        wanted = all;
    }
    Err(CliError::failed(
        "this project has no earlier session to continue: ask without --last, or name one with \
         --session",
    ))
}

/// Prints events in the format of `ask --events`.
pub async fn events(
    journal: &dyn Journal,
    args: &EventsArgs,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
    let known = known(journal, &args.id).await?;
    let print = |entry: &Entry| match entry.record.fact.kind().starts_with(&args.kind) {
        true => terminal.out.json(&entry.event(&args.id)),
        false => Ok(()),
    };
    each_record(journal, &known, Seq(args.after), print).await
}

/// Prints all events with whole texts, so that an export needs no journal.
pub async fn export(
    journal: &dyn Journal,
    SessionArg { id }: &SessionArg,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
    let known = known(journal, id).await?;
    let print = |entry: &Entry| {
        let event = Event::with_whole_texts(id, entry.seq, &entry.record);
        terminal.out.json(&event)
    };
    each_record(journal, &known, Seq(0), print).await
}

/// Reads a session's records after `after`, page by page.
pub(super) async fn each_record(
    journal: &dyn Journal,
    known: &Known,
    after: Seq,
    mut take: impl FnMut(&Entry) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut last = after;
    while last < known.last {
        let page = journal.read(known.sid, last, RECORDS).await?;
        let Some(end) = page.last() else { break };
        last = end.seq;
        page.iter().try_for_each(&mut take)?;
    }
    Ok(())
}

/// Prints the places where words occur.
pub async fn search(
    journal: &dyn Journal,
    args: &SearchArgs,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
    let (tenant, words) = (TenantId::local(), args.words.join(" "));
    let hits = journal.search(tenant, words, args.limit).await?;
    for hit in &hits {
        let (session, seq, at, excerpt) = (&hit.key.name, hit.seq, hit.at, &hit.excerpt);
        if json {
            terminal.out.json(&json!({
                "session": session, "seq": seq, "at": at, "query": hit.query, "excerpt": excerpt,
            }))?;
        } else {
            // An excerpt is one line of visible characters.
            writeln!(terminal.out, "{session}:{seq}\t{at}\t{excerpt}")?;
        }
    }
    if hits.is_empty() && !json {
        terminal.err.say("no match");
    }
    Ok(())
}

/// Releases a session from quarantine; has no effect on others.
pub async fn release(
    oracle: &Oracle,
    journal: &dyn Journal,
    SessionArg { id }: &SessionArg,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
    known(journal, id).await?;
    let session = oracle.session_by_key(SessionKey::local(id.clone()));
    let before = session.view().await?;
    if before.quarantine.is_some() {
        session.command(Command::Release).await?;
    }
    let now = session.view().await?;
    if json {
        let released = before.quarantine.is_some();
        let released = json!({ "session": id, "released": released, "state": &now.state });
        return terminal.out.json(&released);
    }
    let released = match before.quarantine {
        Some(reason) => format!(
            "session `{id}` was released from quarantine; it was quarantined \
                                 because: {reason}"
        ),
        None => format!("session `{id}` is not quarantined: nothing to release"),
    };
    Ok(writeln!(terminal.out, "{released}")?)
}

impl From<journal::Error> for CliError {
    fn from(error: journal::Error) -> Self {
        AskError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        journal::{Append, Memory},
        model::{ProfileName, Record, Timestamp, record::Opened},
    };

    #[tokio::test]
    async fn sessions_omit_the_system_log() {
        let journal = Memory::new();
        let names = [SessionName::new("a").unwrap(), SessionName::system()];
        for (name, at) in names.into_iter().zip(1..) {
            let key = SessionKey::local(name);
            let claim = journal.claim(key.clone()).await.unwrap();
            let opened = SessionFact::Opened(Opened {
                key,
                profile: ProfileName::oracle(),
                project: None,
                parent: None,
            });
            let record = Record {
                at: Timestamp::from_millis(at),
                query: None,
                turn: None,
                fact: opened.into(),
            };
            let append = Append {
                sid: claim.sid,
                epoch: claim.epoch,
                after: claim.last,
                records: vec![Arc::new(record)],
                leaves: journal::SessionStatus::Idle,
                charges: Vec::new(),
            };
            journal.append(append).await.unwrap();
        }
        let (sessions, all) = newest(&journal, 9).await.ok().unwrap();
        let names: Vec<&str> = sessions
            .iter()
            .map(|known| known.key.name.as_str())
            .collect();
        assert_eq!((names, all), (vec!["a"], 1));
        assert_eq!(last(&journal, "/project").await.ok().unwrap().as_str(), "a");
    }
}
