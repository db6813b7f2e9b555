//! `oracle sessions list`, and which session was used last.
//!
//! The journal lists by name; what was used last is sorted out here, page by page, so that no more is
//! held than is to be shown.

use std::cmp::Reverse;

use serde::Serialize;

use super::{Stop, Terminal, tenant};
use crate::{
    journal::{Journal, Known, Standing},
    model::{
        Seq, SessionName, Timestamp,
        record::{Fact, SessionFact},
    },
};

/// Sessions read at a time.
const PAGE: usize = 1_024;
/// Sessions listed unless somebody says otherwise: about a screen.
const LIMIT: usize = 50;

/// `oracle sessions list`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ListArgs {
    /// List at most so many
    #[arg(long, value_name = "N", default_value_t = LIMIT)]
    pub limit: usize,
}

/// A session as it is listed.
#[derive(Serialize)]
struct Listed<'a> {
    session: &'a SessionName,
    last_activity: Option<Timestamp>,
    state: &'static str,
    records: Seq,
}

impl<'a> From<&'a Known> for Listed<'a> {
    fn from(known: &'a Known) -> Self {
        Self {
            session: &known.key.name,
            last_activity: known.at,
            state: state(known.standing),
            records: known.last,
        }
    }
}

/// `running` is a query that has not ended: somebody works on it, or it was cut off.
pub(in crate::cli) const fn state(standing: Standing) -> &'static str {
    match standing {
        Standing::Resting => "idle",
        Standing::Busy => "running",
        Standing::Closed => "closed",
        Standing::SetAside => "quarantined",
    }
}

/// Lists the sessions that were used last.
///
/// # Errors
/// When the journal cannot be read or standard output cannot be written.
pub async fn list(
    journal: &dyn Journal,
    args: &ListArgs,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let (sessions, all) = newest(journal, args.limit).await?;
    let listed = sessions.iter().map(Listed::from);
    if json {
        for session in listed {
            terminal.out.json(&session)?;
        }
        return Ok(());
    }
    let rows = listed.map(|listed| {
        let at = listed.last_activity.map(|at| at.to_string());
        let at = at.unwrap_or_else(|| "-".to_owned());
        let (name, records) = (listed.session.to_string(), listed.records.to_string());
        [name, at, listed.state.to_owned(), records]
    });
    let rows: Vec<[String; 4]> = rows.collect();
    let head = ["SESSION", "LAST ACTIVITY", "STATE", "RECORDS"];
    terminal.table(head, 3, &rows)?;
    let more = all - rows.len();
    if more > 0 {
        let hint = "see more with --limit";
        terminal
            .err
            .say(format_args!("{more} more sessions: {hint}"));
    } else if all == 0 {
        terminal
            .err
            .say("no sessions are kept in this data directory yet");
    }
    Ok(())
}

/// The `limit` sessions that were used last, the last first, and how many there are in all.
pub(in crate::cli) async fn newest(
    journal: &dyn Journal,
    limit: usize,
) -> Result<(Vec<Known>, usize), Stop> {
    let (mut newest, mut all, mut after) = (Vec::new(), 0, None);
    loop {
        let mut page = journal.list(tenant(), after.clone(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.name.clone());
        // Nobody's conversation.
        page.retain(|known| !known.key.name.is_reserved());
        all += page.len();
        newest.extend(page);
        newest.sort_by_key(|known: &Known| Reverse((known.at, known.sid)));
        newest.truncate(limit);
    }
    Ok((newest, all))
}

/// The session that a person used last; those of sub-agents are not meant.
///
/// # Errors
/// When the journal cannot be read, or nobody has asked anything yet.
pub async fn last(journal: &dyn Journal) -> Result<SessionName, Stop> {
    let mut wanted = PAGE;
    loop {
        let (sessions, all) = newest(journal, wanted).await?;
        for known in &sessions {
            let first = journal.read(known.sid, Seq(0), 1).await;
            // One that cannot be read is found by its name, but is not chosen unasked.
            let Some(first) = first.ok().and_then(|page| page.into_iter().next()) else {
                continue;
            };
            if let Fact::Session(SessionFact::Opened(opened)) = &first.record.fact
                && opened.parent.is_none()
                && !known.key.name.is_brief()
            {
                return Ok(known.key.name.clone());
            }
        }
        if sessions.len() == all {
            break;
        }
        wanted = all;
    }
    Err(Stop::failed(
        "no session was used yet, so there is none to go on with: ask without --last",
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        journal::{Append, Memory},
        model::{ProfileName, Record, SessionKey, record::Opened},
    };

    #[tokio::test]
    async fn the_log_of_the_system_is_nobodys_conversation() {
        let journal = Memory::new();
        let names = [SessionName::new("a").unwrap(), SessionName::system()];
        for (name, at) in names.into_iter().zip(1..) {
            let key = SessionKey::local(name);
            let claim = journal.claim(key.clone()).await.unwrap();
            let opened = SessionFact::Opened(Opened {
                key,
                profile: ProfileName::oracle(),
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
                leaves: Standing::Resting,
            };
            journal.append(append).await.unwrap();
        }
        let (sessions, all) = newest(&journal, 9).await.ok().unwrap();
        let names: Vec<&str> = sessions
            .iter()
            .map(|known| known.key.name.as_str())
            .collect();
        assert_eq!((names, all), (vec!["a"], 1));
        assert_eq!(last(&journal).await.ok().unwrap().as_str(), "a");
    }
}
