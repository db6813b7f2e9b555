//! `oracle sessions`: stored conversations.
//!
//! All subcommands except `release` only read the journal and reactivate no session. Texts of
//! models and users are escaped on a terminal, and unchanged elsewhere.

#[cfg(feature = "page")]
use std::path::{Path, PathBuf};
use std::{cmp::Reverse, io::Write as _, iter};

use clap::Subcommand;
use serde_json::json;
use uuid::Uuid;

use super::{
    CliError, CliResult,
    context::CommandContext,
    storage::Storage,
    system::{with_journal, with_system},
    terminal::{Terminal, harmless},
    text::{ago, columns, cut},
};
use crate::{
    actor::{AskError, Clock, Oracle},
    kernel::Command,
    model::{
        Event, Seq, SessionKey, SessionName, SessionState, TenantId,
        record::{Fact, QueryFact, SessionFact},
    },
};
use oracle_journal::{self as journal, Entry, Journal, Known};

mod delete;
mod show;

use delete::{DeleteArgs, delete};
use show::show;

const PAGE: usize = 1_024;
const RECORDS: usize = 256;
/// Records at the beginning of a session, in which its first question is looked for.
const BEGINNING: usize = 8;
/// Maximum width of a title, in columns.
const TITLE: usize = 80;
/// Length of a short id, and the minimum length of an abbreviated one.
const SHORT: (usize, usize) = (8, 6);
/// Sessions that an error about a short id names.
const NAMED: usize = 3;
/// Columns from which on a list names projects.
const WIDE: usize = 60;

/// `oracle sessions events`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct EventsArgs {
    /// Name or short id of the session
    #[arg(value_name = "ID")]
    pub id: SessionName,
    /// Print only events after this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub after: u64,
    /// Print only events whose type starts with this, such as `tool.`
    #[arg(long = "type", value_name = "PREFIX")]
    #[arg(default_value = "", hide_default_value = true)]
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
    Show(ShowArgs),
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

/// `oracle sessions show`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ShowArgs {
    /// The session.
    #[command(flatten)]
    pub session: SessionArg,
    /// Write one page with the conversation and its timeline, which needs no server
    #[cfg(feature = "page")]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// A session by name.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct SessionArg {
    /// Name or short id of the session
    #[arg(value_name = "ID")]
    pub id: SessionName,
}

pub(super) fn run(command: &SessionsCommand, context: CommandContext<'_>) -> CliResult {
    let config = context.load()?.config;
    let stored = Storage::of(&config, context.environment)?.existing();
    let terminal = &mut *context.terminal;
    match command {
        // Showing a session needs no models or tools.
        #[cfg(feature = "page")]
        SessionsCommand::Show(ShowArgs {
            session: SessionArg { id },
            html: Some(file),
        }) => with_journal(stored, async |journal| report(journal, id, file).await),
        SessionsCommand::Show(args) => {
            with_system(Oracle::builder(), stored, async |oracle, journal| {
                show(oracle, journal, &args.session.id, terminal).await
            })
        }
        SessionsCommand::Release(SessionArg { id }) => {
            let (builder, _) = context.prepare(&config)?;
            with_system(builder, stored, async |oracle, journal| {
                release(oracle, journal, id, context.terminal).await
            })
        }
        SessionsCommand::List { limit } => with_journal(stored, async |journal| {
            list(journal, *limit, terminal).await
        }),
        SessionsCommand::Events(args) => with_journal(stored, async |journal| {
            events(journal, args, terminal).await
        }),
        SessionsCommand::Export(SessionArg { id }) => {
            with_journal(stored, async |journal| export(journal, id, terminal).await)
        }
        SessionsCommand::Delete(args) => with_journal(stored, async |journal| {
            delete(journal, args, terminal).await
        }),
        SessionsCommand::Search(args) => with_journal(stored, async |journal| {
            search(journal, args, terminal).await
        }),
    }
}

async fn known(journal: &dyn Journal, name: &SessionName) -> CliResult<Known> {
    let found = find(journal, name).await?;
    found.ok_or_else(|| AskError::NoSession(name.clone().into()).into())
}

/// Finds a session by its name. A UUID may be shortened, as Git shortens hashes, to at least six
/// characters at its beginning or end that no other UUID has there.
pub(super) async fn find(journal: &dyn Journal, name: &SessionName) -> CliResult<Option<Known>> {
    let found = journal.find(SessionKey::local(name.clone())).await?;
    let part = name.as_str().to_ascii_lowercase();
    let is_part = part.bytes().all(|c| c == b'-' || c.is_ascii_hexdigit());
    if found.is_some() || !is_part || part.len() < SHORT.1 || is_uuid(name) {
        return Ok(found);
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let mut page = journal.list(TenantId::local(), after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.name.clone());
        page.retain(|known| {
            let text = known.key.name.as_str();
            is_uuid(&known.key.name) && (text.starts_with(&part) || text.ends_with(&part))
        });
        found.extend(page);
    }
    found.sort_by_key(|known| Reverse((known.at, known.sid)));
    if found.len() <= 1 {
        return Ok(found.pop());
    }
    let names = found.iter().map(|known| known.key.name.as_str());
    let names: Vec<&str> = names.take(NAMED).collect();
    let (count, names) = (found.len(), names.join(", "));
    Err(CliError::usage(format_args!(
        "`{name}` matches {count} sessions: add characters to tell them apart: {names}, …"
    )))
}

fn is_uuid(name: &SessionName) -> bool {
    Uuid::try_parse(name.as_str()).is_ok()
}

/// The name of a session as people read and type it: the random end of a UUID, else the whole name.
pub(super) fn short(name: &SessionName) -> &str {
    let text = name.as_str();
    let end = text.len().saturating_sub(SHORT.0);
    text.get(end..).filter(|_| is_uuid(name)).unwrap_or(text)
}

/// A session's title, project and origin.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    /// The first question in one line, or its beginning; empty if there is none.
    pub(super) title: String,
    /// The project's folder.
    pub(super) project: Option<String>,
    pub(super) is_sub_agent: bool,
}

impl About {
    /// Reads the beginning of a session; `None` if it cannot be read or has no records.
    pub(super) async fn read(journal: &dyn Journal, known: &Known) -> Option<Self> {
        let beginning = journal.read(known.sid, Seq(0), BEGINNING).await.ok()?;
        beginning.first()?;
        let mut about = Self::default();
        for entry in &beginning {
            match &entry.record.fact {
                Fact::Session(SessionFact::Opened(opened)) => {
                    about.is_sub_agent = opened.parent.is_some();
                    about.project = opened.project.as_deref().map(str::to_owned);
                }
                Fact::Query(QueryFact::Accepted(accepted)) => {
                    let words: Vec<&str> = accepted.text.split_whitespace().collect();
                    about.title = cut(&words.join(" "), TITLE);
                    break;
                }
                _ => {}
            }
        }
        Some(about)
    }

    /// Whether the session can be continued in this project.
    pub(super) fn is_of(&self, project: &str) -> bool {
        let of = self.project.as_deref();
        !self.is_sub_agent && of.is_none_or(|of| of == project)
    }
}

/// The `limit` sessions used last, latest first, with what people know them by.
pub(super) async fn described(
    journal: &dyn Journal,
    limit: usize,
) -> CliResult<Vec<(Known, About)>> {
    let mut described = Vec::new();
    for known in journal.newest(TenantId::local(), limit).await? {
        let about = About::read(journal, &known).await.unwrap_or_default();
        described.push((known, about));
    }
    Ok(described)
}

/// A list for people: short id, age, project and title. Beside a current session, which is marked,
/// the sessions are numbered.
pub(super) fn lines(
    listed: &[(Known, About)],
    current: Option<&SessionKey>,
    width: usize,
) -> Vec<String> {
    let now = Clock::system().now();
    let row = |(number, (known, about)): (usize, &(Known, About))| {
        let id = short(&known.key.name);
        let id = match current {
            Some(current) if *current == known.key => format!("*{number:>2}  {id}"),
            Some(_) => format!("{number:>3}  {id}"),
            None => id.to_owned(),
        };
        let at = known.at.map_or_else(|| "-".to_owned(), |at| ago(at, now));
        let title = match SessionState::from(known.standing) {
            SessionState::Idle => about.title.clone(),
            state => format!("[{state}] {}", about.title),
        };
        let folder = about.project.as_deref().unwrap_or("-").rsplit('/');
        [id, at, folder.take(1).collect(), title].map(|cell| harmless(&cell))
    };
    let id = current.map_or("SESSION", |_| "     SESSION");
    let head = [id, "LAST USED", "PROJECT", "TITLE"].map(str::to_owned);
    let rows: Vec<[String; 4]> = iter::once(head).chain((1..).zip(listed).map(row)).collect();
    let lines = if width < WIDE {
        let narrow = rows.into_iter().map(|[id, at, _, title]| [id, at, title]);
        let narrow: Vec<_> = narrow.collect();
        columns(&narrow, 3)
    } else {
        columns(&rows, 4)
    };
    lines.iter().map(|line| cut(line, width)).collect()
}

/// Lists the sessions used last.
async fn list(journal: &dyn Journal, limit: usize, terminal: &mut Terminal) -> CliResult {
    // One more than asked for shows whether there are others.
    let mut sessions = described(journal, limit.saturating_add(1)).await?;
    let (is_none, has_more) = (sessions.is_empty(), sessions.len() > limit);
    sessions.truncate(limit);
    for (known, about) in &sessions {
        let (session, records) = (&known.key.name, known.last);
        let state = SessionState::from(known.standing);
        if terminal.json {
            terminal.out.json(&json!({
                "session": session, "last_activity": known.at, "state": state, "records": records,
                "title": about.title, "project": about.project,
            }))?;
        } else if !terminal.out_is_terminal() {
            let at = known.at.map_or_else(|| "-".to_owned(), |at| at.to_string());
            writeln!(terminal.out, "{session}\t{at}\t{state}\t{records}")?;
        }
    }
    if terminal.json {
        return Ok(());
    }
    if let Some((width, ..)) = terminal.screen() {
        for line in lines(&sessions, None, width) {
            writeln!(terminal.out, "{line}")?;
        }
    }
    if is_none {
        terminal.say("this data directory has no sessions yet");
    } else if has_more {
        terminal.say("there are more sessions: show them with --limit");
    }
    Ok(())
}

/// The conversation used last in this project, without those of sub-agents.
pub(super) async fn last(journal: &dyn Journal, project: &str) -> CliResult<SessionName> {
    let (mut looked_through, mut wanted) = (0, PAGE);
    loop {
        let sessions = journal.newest(TenantId::local(), wanted).await?;
        for known in sessions.iter().skip(looked_through) {
            // An unreadable session can be named, but is not chosen by default.
            let about = About::read(journal, known).await;
            if about.is_some_and(|about| about.is_of(project)) {
                return Ok(known.key.name.clone());
            }
        }
        if sessions.len() < wanted {
            break;
        }
        (looked_through, wanted) = (wanted, wanted * 4);
    }
    Err(CliError::failed(
        "this project has no earlier session to continue: ask without --last, or name one with \
         --session",
    ))
}

/// Prints events in the format of `ask --events`.
async fn events(journal: &dyn Journal, args: &EventsArgs, terminal: &mut Terminal) -> CliResult {
    let known = known(journal, &args.id).await?;
    let print = |entry: &Entry| match entry.record.fact.kind().starts_with(&args.kind) {
        true => terminal.out.json(&entry.event(&known.key.name)),
        false => Ok(()),
    };
    each_record(journal, &known, Seq(args.after), print).await
}

/// Prints all events with whole texts, so that an export needs no journal.
async fn export(journal: &dyn Journal, id: &SessionName, terminal: &mut Terminal) -> CliResult {
    let known = known(journal, id).await?;
    let print = |entry: &Entry| {
        let event = Event::with_whole_texts(&known.key.name, entry.seq, &entry.record);
        terminal.out.json(&event)
    };
    each_record(journal, &known, Seq(0), print).await
}

/// Writes a session as one page.
#[cfg(feature = "page")]
async fn report(journal: &dyn Journal, id: &SessionName, file: &Path) -> CliResult {
    let known = known(journal, id).await?;
    let mut events = Vec::new();
    let add = |entry: &Entry| {
        let event = Event::with_whole_texts(&known.key.name, entry.seq, &entry.record);
        events.push(event);
        Ok(())
    };
    each_record(journal, &known, Seq(0), add).await?;
    let page = crate::http::report(&known.key.name, &events).map_err(CliError::failed)?;
    let failed = |error| CliError::failed(format_args!("cannot write {}: {error}", file.display()));
    tokio::fs::write(file, page).await.map_err(failed)
}

/// Reads a session's records after `after`, page by page.
pub(super) async fn each_record(
    journal: &dyn Journal,
    known: &Known,
    after: Seq,
    mut take: impl FnMut(&Entry) -> CliResult,
) -> CliResult {
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
async fn search(journal: &dyn Journal, args: &SearchArgs, terminal: &mut Terminal) -> CliResult {
    let (tenant, words) = (TenantId::local(), args.words.join(" "));
    let hits = journal.search(tenant, words, args.limit).await?;
    for hit in &hits {
        let (session, seq, at, excerpt) = (&hit.key.name, hit.seq, hit.at, &hit.excerpt);
        if terminal.json {
            terminal.out.json(&json!({
                "session": session, "seq": seq, "at": at, "query": hit.query, "excerpt": excerpt,
            }))?;
        } else {
            // An excerpt is one line of visible characters.
            writeln!(terminal.out, "{session}:{seq}\t{at}\t{excerpt}")?;
        }
    }
    if hits.is_empty() && !terminal.json {
        terminal.say("no match");
    }
    Ok(())
}

/// Releases a session from quarantine; has no effect on others.
async fn release(
    oracle: &Oracle,
    journal: &dyn Journal,
    id: &SessionName,
    terminal: &mut Terminal,
) -> CliResult {
    let known = known(journal, id).await?;
    let (id, session) = (&known.key.name, oracle.session_by_key(known.key.clone()));
    let before = session.view().await?;
    if before.quarantine.is_some() {
        session.command(Command::Release).await?;
    }
    let now = session.view().await?;
    let released = before.quarantine.is_some();
    let report = json!({ "session": id, "released": released, "state": &now.state });
    let text = match before.quarantine {
        Some(reason) => format!(
            "session `{id}` was released from quarantine; it was quarantined because: {reason}"
        ),
        None => format!("session `{id}` is not quarantined: nothing to release"),
    };
    terminal.result(&report, &text)
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
    use crate::model::{ProfileName, Record, Timestamp, record::Opened};
    use oracle_journal::{Append, Memory};

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
            let record = Record::new(Timestamp::from_millis(at), None, None, opened);
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
        let sessions = described(&journal, 9).await.ok().unwrap();
        let names = sessions.iter().map(|(known, _)| known.key.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["a"]);
        assert_eq!(last(&journal, "/project").await.ok().unwrap().as_str(), "a");
    }
}
