//! `oracle sessions delete`: a session and its sub-agents' sessions, for good.
//!
//! **Invariant:** nothing is deleted that a person has not agreed to, by `--yes` or by word. Sub-agents go
//! before their parent, so that what is left after a failure is still found by deleting again.

use std::io::{BufRead as _, Write as _};

use serde_json::json;

use super::{Stop, Terminal, known, log::Log};
use crate::{
    actor::{Take, TakeError, keep_off, take},
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
    at_rest(&known, args)?;
    if !args.yes {
        agree(&known, terminal)?;
    }
    // To the end: what is claimed is not to be taken back by who asks for it meanwhile.
    let _kept = keep_off(journal);
    let (family, known) = claimed(journal, args, terminal).await?;
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

fn at_rest(known: &Known, args: &DeleteArgs) -> Result<(), Stop> {
    if known.standing == Standing::Busy && !args.force {
        return Err(Stop::busy(format_args!(
            "session `{}` is in the middle of a query: let it end, or delete it with --force",
            args.id
        )));
    }
    Ok(())
}

/// Claims the session and those below it, parents first: none is to go on with what is missing. Also says
/// how the session stands now that nobody else writes to it.
async fn claimed(
    journal: &dyn Journal,
    args: &DeleteArgs,
    terminal: &mut Terminal,
) -> Result<(Vec<SessionName>, Known), Stop> {
    taken(journal, &args.id, args.force).await?;
    // While somebody was asked, it may have begun something.
    let known = known(journal, &args.id).await?;
    if let Err(busy) = at_rest(&known, args) {
        if let Some(letters) = journal.letters() {
            letters.let_go(&known.key);
        }
        return Err(busy);
    }
    let (mut family, mut mine) = (vec![args.id.clone()], 1);
    loop {
        // Only from what is claimed: whoever has a session can start sub-agents until then.
        let unknown = grow(journal, &mut family).await;
        if mine == family.len() {
            for (name, error) in unknown {
                // What cannot be read can still be deleted.
                terminal.err.say(format_args!(
                    "not all sub-agents of session `{name}` are known, so theirs may be kept: {error}"
                ));
            }
            return Ok((family, known));
        }
        for name in &family[mine..] {
            taken(journal, name, args.force).await?;
        }
        mine = family.len();
    }
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
            TakeError::Kept { .. } | TakeError::Later { .. } => {
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

/// Adds those below the sessions, parents first; says of which they are not all known, and why.
async fn grow(journal: &dyn Journal, family: &mut Vec<SessionName>) -> Vec<(SessionName, Stop)> {
    let (mut unknown, mut next) = (Vec::new(), 0);
    while let Some(name) = family.get(next).cloned() {
        next += 1;
        if let Err(error) = children(journal, &name, family).await {
            unknown.push((name, error));
        }
    }
    unknown
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
