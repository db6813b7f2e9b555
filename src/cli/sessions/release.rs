//! `oracle sessions release`: an operator lets a session go on that was set aside (spec 10).

use std::io::Write as _;

use serde_json::json;

use super::{One, Stop, Terminal, known};
use crate::{actor::Oracle, journal::Journal, kernel::Command, model::SessionKey};

/// Releases a session; one that is not quarantined is left as it is.
///
/// # Errors
/// When there is no such session, or its records still cannot be read.
pub async fn release(
    oracle: &Oracle,
    journal: &dyn Journal,
    One { id }: &One,
    json: bool,
    terminal: &mut Terminal,
) -> Result<(), Stop> {
    known(journal, id).await?;
    let session = oracle.session(SessionKey::local(id.clone()));
    let before = session.view().await?;
    if before.quarantine.is_some() {
        session.command(Command::Release).await?;
    }
    let now = session.view().await?;
    if json {
        let released = before.quarantine.is_some();
        let state = &now.state;
        return terminal
            .out
            .json(&json!({ "session": id, "released": released, "state": state }));
    }
    match before.quarantine {
        Some(reason) => writeln!(
            terminal.out,
            "session `{id}` goes on; it was set aside: {reason}"
        )?,
        None => writeln!(
            terminal.out,
            "session `{id}` is not quarantined: nothing to release"
        )?,
    }
    Ok(())
}
