//! `oracle top`: a live table of sessions, from the control channel.
//!
//! `state` decides what a key means and what is shown, `frame` draws it; both are pure. `feed`
//! reads the server. The loop here connects them to the terminal, and never waits for the server:
//! keys work while it hangs.
//!
//! **Invariant:** whatever ends the program, except SIGKILL, the terminal is restored.

use std::{io, pin::pin};

use crossterm::{
    event::{DisableBracketedPaste, EnableBracketedPaste, Event, EventStream},
    execute,
};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use ratatui::DefaultTerminal;

use super::{
    CliError, CliResult,
    context::CommandContext,
    ctl::{ServerArgs, connect},
    interrupts::{Interrupts, Signals, suspended},
    runtime::on_runtime,
    terminal::{Style, Terminal},
};
use crate::{actor::Clock, control::Client, model::TenantId};

mod feed;
mod frame;
mod state;
#[cfg(test)]
mod tests;

use feed::{in_time, snapshots};
use state::{Action, Top};

/// Most commands in flight.
const COMMANDS: usize = 8;
const NO_SCREEN: &str =
    "`oracle top` needs a terminal that moves its cursor: use `oracle ctl list`";

/// `oracle top`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct TopArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Tenant to show [default: your own]
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<TenantId>,
}

pub(super) fn run(args: &TopArgs, context: CommandContext<'_>) -> CliResult {
    let (folder, environment) = (context.directory()?, context.environment);
    let find = async || connect(&args.server, None, &folder, environment).await;
    on_runtime(Box::pin(show(args, find, context.terminal)))
}

/// Shows the table until the user leaves it. `connect` finds the server, again whenever the
/// connection is lost.
async fn show(
    args: &TopArgs,
    connect: impl AsyncFn() -> CliResult<Client>,
    terminal: &Terminal,
) -> CliResult {
    let style = match terminal.screen() {
        Some((.., style)) if style != Style::Dumb && terminal.input.is_terminal() => style,
        _ => return Err(CliError::usage(NO_SCREEN)),
    };
    let mut top = Top {
        coloured: style == Style::Coloured,
        now: Clock::system().now(),
        ..Top::default()
    };
    let mut snapshots = pin!(snapshots(args, &connect));
    // Before the screen is taken: that there is no server is an ordinary error.
    if let Some(first) = snapshots.next().await {
        top.take(Ok(first?));
    }
    let mut commands = FuturesUnordered::new();
    let (mut terminations, mut interrupts) = (Signals::terminations(), Interrupts::listen());
    let mut keys = EventStream::new();
    let mut screen = Screen::enter()?;
    loop {
        top.now = Clock::system().now();
        screen.0.draw(|frame| frame::draw(&mut top, frame))?;
        let action = tokio::select! {
            event = keys.next() => match event {
                Some(Ok(Event::Key(key))) => top.press(key),
                Some(Ok(Event::Paste(text))) => top.paste(&text),
                Some(Ok(_)) => None,
                // The terminal is gone.
                Some(Err(_)) | None => Some(Action::Leave),
            },
            Some((what, done)) = commands.next() => top.tell(what, done),
            Some(read) = snapshots.next() => top.take(read),
            () = terminations.come() => Some(Action::Leave),
            () = interrupts.pressed() => Some(Action::Leave),
        };
        match action {
            None => {}
            Some(Action::Leave) => return Ok(()),
            Some(Action::Suspend) => {
                drop(screen);
                suspended().await;
                screen = Screen::enter()?;
            }
            Some(Action::Do(what, verb)) if commands.len() < COMMANDS => {
                let client = top.snapshot.client.clone();
                commands.extend(client.map(|client| async move {
                    let done = in_time(async { Ok(client.carry_out(&verb).await?) });
                    (what, done.await)
                }));
            }
            Some(Action::Do(what, _)) => {
                top.tell(what, Err(CliError::busy("too many commands wait")));
            }
        }
    }
}

/// The terminal while the table has it: raw, on its alternate screen.
struct Screen(DefaultTerminal);

impl Screen {
    fn enter() -> io::Result<Self> {
        let screen = Self(ratatui::try_init().inspect_err(|_| ratatui::restore())?);
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        ratatui::restore();
    }
}
