//! `oracle chat`: questions line by line, in one session. Ctrl-C takes the running query back and
//! keeps the session; Ctrl-D leaves.

use std::{
    io::{self, BufRead, stdin},
    thread,
};

use tokio::sync::mpsc;

use super::{
    Stop,
    ask::{self, Format},
    exit,
    interrupts::Interrupts,
    progress::Follower,
    terminal::Terminal,
};
use crate::{
    actor::{AskError, Oracle},
    model::{ProfileName, SessionKey, SessionName, Submission, Timestamp},
    tool::ProjectRoot,
};

/// Lines that may wait while a query runs.
const LINES: usize = 64;

/// With whom, and how the answers are to look.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The session; a new one if none is named.
    pub session: SessionName,
    /// When it was last used; none if it is new.
    pub last_used: Option<Timestamp>,
    /// How the answers are to look.
    pub format: Format,
    /// Where citations are checked.
    pub root: ProjectRoot,
    /// By what a session lives that is new.
    pub profile: ProfileName,
}

/// Talks until the input ends. A person who leaves has not failed; a pipe gets the exit code of its
/// last query.
///
/// # Errors
/// When the system stops, or input or output fail.
pub async fn run(
    oracle: &Oracle,
    request: ChatRequest,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let mut lines = lines();
    let mut interrupts = Interrupts::listen();
    let session = oracle.session_of(
        SessionKey::local(request.session.clone()),
        request.profile.clone(),
    );
    let person = terminal.input.is_terminal();
    if person && terminal.err_is_terminal() {
        terminal.note(&greeting(&request));
    }
    let mut code = exit::DONE;
    loop {
        terminal.prompt("> ");
        let line = tokio::select! {
            // A press that was there before the line is not meant for it.
            biased;
            () = interrupts.pressed() => {
                terminal.note("");
                terminal.note("nothing is running; Ctrl-D leaves");
                continue;
            }
            line = lines.recv() => line,
        };
        let Some(line) = line else { break };
        let line = line.map_err(unreadable)?;
        let Ok(question) = String::from_utf8(line) else {
            terminal.note("oracle: the line is not UTF-8 and was not asked: convert it to UTF-8");
            code = exit::USAGE;
            continue;
        };
        if question.trim().is_empty() {
            continue;
        }
        let follower = Follower::new(&session, request.format);
        let followed = follower.follow(Submission::new(question), terminal, &mut interrupts);
        match followed.await {
            Ok(answer) => {
                let (root, format) = (&request.root, request.format);
                ask::show_object(&session, root, &answer, format, terminal).await?;
                code = exit::of_outcome(&answer.outcome);
            }
            // The session is fine, only this message was not taken.
            Err(Stop::Refused(error)) if is_refusal(&error) => {
                terminal.note(&format!("oracle: {error}"));
                code = exit::of_ask_error(&error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(if person { exit::DONE } else { code })
}

/// Whoever goes on with what was said before should know it.
fn greeting(request: &ChatRequest) -> String {
    let name = &request.session;
    let session = match request.last_used {
        None => format!("session {name}"),
        Some(at) => format!("going on with session {name}, last used {at}"),
    };
    format!("{session}: ask away; Ctrl-C takes a question back, Ctrl-D leaves")
}

fn unreadable(error: io::Error) -> Stop {
    Stop::usage(format_args!("standard input cannot be read: {error}"))
}

fn is_refusal(error: &AskError) -> bool {
    match error {
        AskError::Refused(_)
        | AskError::Busy { .. }
        | AskError::EmptyQuestion
        | AskError::QuestionTooLong { .. }
        | AskError::Key { .. }
        | AskError::Name(_)
        | AskError::Reserved { .. } => true,
        AskError::Timeout(_)
        | AskError::Stopped
        | AskError::Silent { .. }
        | AskError::NoSession { .. }
        | AskError::Deleted { .. }
        | AskError::Journal(_) => false,
    }
}

/// Lines of standard input, read by a thread of their own: such a read cannot be cancelled.
fn lines() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(LINES);
    thread::spawn(move || {
        for line in stdin().lock().split(b'\n') {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
