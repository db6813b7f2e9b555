//! `oracle replay`: a scripted conversation through the real session.
//!
//! The scenario says what the model replies and what its tools answer; everything else is the real
//! thing. [`Scenario`] is the input, [`Report`] what comes out.

use std::sync::Arc;

use super::{
    Stop, exit,
    terminal::{Terminal, harmless},
};
use crate::{
    actor::Oracle,
    model::{Event, Seq, SessionKey, SessionName, Submission},
};

mod report;
mod scenario;

pub use report::Report;
pub use scenario::{Scenario, ScenarioError, ScriptedTool};

/// How the outcome is to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A line an event, then the outcome.
    Text,
    /// One JSON object.
    Json,
}

/// Plays a scenario on a system that was put together for it, and says with which code to exit.
pub async fn run(
    oracle: &Oracle,
    scenario: &Scenario,
    session: SessionName,
    format: Format,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let session = oracle.session(SessionKey::local(session));
    let watch = session.ask(Submission::new(scenario.query.clone())).await?;
    let answer = watch.answer().await?;
    let records = session.log(Seq(0)).await?;
    let events: Vec<Event> = records
        .iter()
        .map(|entry| entry.event(&session.key().name))
        .collect();
    let records: Vec<_> = records
        .into_iter()
        .map(|entry| Arc::clone(&entry.record))
        .collect();
    let report = Report::new(&answer, &records, events);
    match format {
        Format::Text if terminal.out_is_terminal() => {
            terminal.write(&harmless(&report.to_text()))?;
        }
        Format::Text => terminal.write(&report.to_text())?,
        Format::Json => terminal.line(&serde_json::to_string(&report).map_err(Stop::no_json)?)?,
    }
    Ok(exit::of_outcome(&answer.outcome))
}
