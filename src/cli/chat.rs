//! `oracle chat`: questions line by line, in one session. Ctrl-C takes the running query back and
//! keeps the session; Ctrl-D leaves.

use std::io::{BufRead, stdin};

use tokio::sync::mpsc;

use super::{
    Stop,
    ask::Format,
    progress::{Follower, Interrupts},
    terminal::Terminal,
};
use crate::{
    actor::{AskError, Oracle},
    model::{SessionKey, SessionName, Submission},
};

/// Lines that may wait while a query runs.
const LINES: usize = 64;

/// Talks until the input ends.
///
/// # Errors
/// When the system stops, or input or output fail.
pub async fn run(
    oracle: &Oracle,
    session: SessionName,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let mut lines = lines();
    let mut interrupts = Interrupts::listen();
    let session = oracle.session(SessionKey::local(session));
    if terminal.err_is_terminal() {
        terminal.note(&format!(
            "session {}: ask away; Ctrl-C takes a question back, Ctrl-D leaves",
            session.key().name
        ));
    }
    loop {
        terminal.prompt("> ");
        let line = tokio::select! {
            line = lines.recv() => line,
            () = interrupts.pressed() => {
                terminal.note("");
                terminal.note("nothing is running; Ctrl-D leaves");
                continue;
            }
        };
        let Some(line) = line else { break };
        let line = line.map_err(|error| {
            Stop::failed(format_args!("standard input cannot be read: {error}"))
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let follower = Follower::new(&session, Format::Text);
        match follower
            .follow(Submission::new(line), terminal, &mut interrupts)
            .await
        {
            Ok(_) => {}
            // The session is fine, only this message was not taken.
            Err(Stop::Refused(error)) if is_refusal(&error) => {
                terminal.note(&format!("oracle: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(0)
}

fn is_refusal(error: &AskError) -> bool {
    match error {
        AskError::Refused(_)
        | AskError::EmptyQuestion
        | AskError::QuestionTooLong { .. }
        | AskError::Name(_) => true,
        AskError::Timeout(_) | AskError::Stopped | AskError::Journal(_) => false,
    }
}

/// Lines of standard input, read by a thread of their own: such a read cannot be cancelled.
fn lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, receiver) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        for line in stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
