//! `oracle sessions delete`: a session and its sub-agents' sessions, for good.
//!
//! **Invariant:** nothing is deleted that a person has not agreed to, by `--yes` or by word. Sub-agents go
//! before their parent, so that what is left after a failure is still found by deleting again.

use std::io::{BufRead as _, Write as _};

use serde_json::json;

use super::{Stop, Terminal, known, log::Log};
use crate::{
    actor::{Take, TakeError, take},
    journal::{Claim, Journal, Known, Standing},
    model::{
        Seq, SessionKey, SessionName,
        record::{AgentFact, Fact},
    },
};

/// `oracle sessions delete`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct DeleteArgs {
    /// The session
    #[arg(value_name = "ID")]
    pub id: SessionName,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Also if a query has not ended
    #[arg(long)]
    pub force: bool,
}

/// Deletes a session.
///
/// # Errors
/// When there is no such session, it is in the middle of a query, nobody agrees, or the journal fails.
pub async fn delete(
    journal: &dyn Journal,
    args: &DeleteArgs,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    let known = known(journal, &args.id).await?;
    if known.standing == Standing::Busy && !args.force {
        return Err(Stop::busy(format_args!(
            "session `{}` is in the middle of a query: let it end, or delete it with --force",
            args.id
        )));
    }
    if !args.yes {
        agree(&known, terminal)?;
    }
    let family = family(journal, &args.id, terminal).await?;
    // Parents first: none is to go on with what is missing.
    for name in &family {
        taken(journal, name, args.force).await?;
    }
    for name in family.iter().rev() {
        let claim = taken(journal, name, args.force).await?;
        journal.delete(claim.sid, claim.epoch).await?;
    }
    let (id, sub_agents) = (&args.id, family.len() - 1);
    if json {
        let deleted = json!({ "session": id, "records": known.last, "sub_agents": sub_agents });
        return terminal.out.json(&deleted);
    }
    let with = match sub_agents {
        0 => String::new(),
        1 => " and of its sub-agent".to_owned(),
        many => format!(" and of its {many} sub-agents"),
    };
    writeln!(
        terminal.out,
        "session `{id}` is deleted; nothing of it{with} is kept"
    )?;
    Ok(())
}

/// Claims a session; a process that has it lets it go, in the middle of a query only if that is forced.
async fn taken(journal: &dyn Journal, name: &SessionName, force: bool) -> Result<Claim, Stop> {
    let from = if force { Take::Anyway } else { Take::AtRest };
    let key = SessionKey::local(name.clone());
    take(journal, &key, from)
        .await
        .map_err(|error| match error {
            TakeError::Busy { .. } => Stop::busy(format_args!(
                "session `{name}` is not deleted: {error}: let it end, or delete it with --force"
            )),
            TakeError::Kept { .. } => {
                Stop::busy(format_args!("session `{name}` is not deleted: {error}"))
            }
            TakeError::Journal(error) => error.into(),
        })
}

fn agree(known: &Known, terminal: &mut Terminal) -> Result<(), Stop> {
    let (name, records) = (&known.key.name, known.last);
    if !terminal.input.is_terminal() || !terminal.err_is_terminal() {
        return Err(Stop::usage(format_args!(
            "nobody can be asked whether session `{name}` is to be deleted: say so with --yes"
        )));
    }
    terminal.prompt(&format!(
        "delete session `{name}` with its {records} records for good? [y/N] "
    ));
    let mut word = String::new();
    let read = terminal.input.reader.read_line(&mut word);
    let agreed = matches!(word.trim().to_lowercase().as_str(), "y" | "yes");
    if read.is_ok() && agreed {
        return Ok(());
    }
    Err(Stop::failed("nothing was deleted"))
}

/// The session and those below it, parents first.
async fn family(
    journal: &dyn Journal,
    name: &SessionName,
    terminal: &mut Terminal,
) -> Result<Vec<SessionName>, Stop> {
    let (mut family, mut next) = (vec![name.clone()], 0);
    while let Some(name) = family.get(next).cloned() {
        next += 1;
        if let Err(error) = children(journal, &name, &mut family).await {
            // What cannot be read can still be deleted.
            terminal.err.say(format_args!(
                "not all sub-agents of session `{name}` are known, so theirs may be kept: {error}"
            ));
        }
    }
    Ok(family)
}

/// Adds the sub-agents of a session that are still there.
async fn children(
    journal: &dyn Journal,
    name: &SessionName,
    family: &mut Vec<SessionName>,
) -> Result<(), Stop> {
    let mut log = Log::of(journal, name, Seq(0)).await?;
    loop {
        let page = log.page().await?;
        if page.is_empty() {
            return Ok(());
        }
        for entry in page {
            let Fact::Agent(AgentFact::DelegationStarted(start)) = &entry.record.fact else {
                continue;
            };
            let key = SessionKey::local(start.child.clone());
            if !family.contains(&start.child) && journal.find(key).await?.is_some() {
                family.push(start.child.clone());
            }
        }
    }
}
