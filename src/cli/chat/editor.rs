//! The line editor, which runs rustyline on a thread of its own because its reads cannot be
//! cancelled.
//!
//! The terminal is in raw mode only during a read. Rustyline restores it when the read ends, and
//! [`TerminalModeGuard`](crate::cli::user::TerminalModeGuard) when the conversation ends during one.

use std::{
    io,
    path::PathBuf,
    sync::mpsc::{SyncSender, sync_channel},
    thread,
};

use rustyline::{
    Behavior, Cmd, ColorMode, CompletionType, ConditionalEventHandler, Config, EventHandler,
    ExternalPrinter, KeyCode, KeyEvent, Modifiers, error::ReadlineError,
};
use tokio::sync::mpsc;

use super::{
    history::{self, History},
    reader::ReaderEvent,
};
use crate::cli::text::cleaned;

mod helper;

use helper::{Continued, EnterKey, Helper, SuspendKey, Suspended};

type Rustyline = rustyline::Editor<Helper, rustyline::history::FileHistory>;

pub(super) struct Editor {
    asks: SyncSender<String>,
    typed: mpsc::Receiver<(ReaderEvent, Option<String>)>,
    waiting: bool,
    begun: String,
    printer: Option<Box<dyn ExternalPrinter + Send>>,
}

impl Editor {
    /// Opens the terminal and loads the history file; new messages are appended to
    /// it.
    pub(super) fn new(history: PathBuf) -> rustyline::Result<Self> {
        let suspended = Suspended::default();
        let mut editor = rustyline(&suspended)?;
        let printer = editor.create_external_printer().ok();
        // At most one request and one reply are in flight.
        let (asks, asked) = sync_channel(1);
        let (types, typed) = mpsc::channel(1);
        thread::Builder::new()
            .name("editor".into())
            .spawn(move || {
                let mut history = History::open(history, editor.history_mut());
                while let Ok(ahead) = asked.recv() {
                    let begun = suspended.lock().take().unwrap_or((ahead, String::new()));
                    let typed = read(&mut editor, &suspended, begun);
                    if let ReaderEvent::Message(message) = &typed {
                        history.add(editor.history_mut(), message);
                    }
                    if types.blocking_send((typed, history.warning())).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self {
            asks,
            typed,
            waiting: false,
            begun: String::new(),
            printer: printer.map(|printer| Box::new(printer) as Box<_>),
        })
    }

    /// Waits for a message; also returns a problem with the history file.
    pub(super) async fn typed(&mut self) -> (ReaderEvent, Option<String>) {
        // If the send fails, the thread has panicked and no message will come.
        if !self.waiting && self.asks.try_send(std::mem::take(&mut self.begun)).is_err() {
            return (ReaderEvent::End, None);
        }
        self.waiting = true;
        let typed = self.typed.recv().await;
        self.waiting = false;
        typed.unwrap_or((ReaderEvent::End, None))
    }

    pub(super) fn begin_with(&mut self, text: String) {
        self.begun = text;
    }

    pub(super) fn show(&mut self, line: &str) {
        if let Some(printer) = &mut self.printer {
            // A note that cannot be shown is not worth an error.
            let _ = printer.print(line.to_owned());
        }
    }
}

fn rustyline(suspended: &Suspended) -> rustyline::Result<Rustyline> {
    let config = Config::builder()
        // Standard output may be a file.
        .behavior(Behavior::PreferTerm)
        // Rustyline calls the highlighter, which filters control characters, only with colours
        // enabled.
        .color_mode(ColorMode::Forced)
        .completion_type(CompletionType::List)
        .bracketed_paste(true)
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .max_history_size(history::MOST)?
        .build();
    let mut editor = Rustyline::with_config(config)?;
    let continued = Continued::default();
    editor.set_helper(Some(Helper(continued.clone())));
    let enter = |modifiers| KeyEvent(KeyCode::Enter, modifiers);
    let key = |key: Box<dyn ConditionalEventHandler>| EventHandler::Conditional(key);
    // Without translation by the terminal, Enter arrives as Ctrl-J.
    for sends in [enter(Modifiers::NONE), KeyEvent::ctrl('J')] {
        editor.bind_sequence(sends, key(Box::new(EnterKey(continued.clone()))));
    }
    editor.bind_sequence(enter(Modifiers::ALT), Cmd::Newline);
    let on_ctrl_z = key(Box::new(SuspendKey(suspended.clone())));
    editor.bind_sequence(KeyEvent::ctrl('Z'), on_ctrl_z);
    Ok(editor)
}

/// Reads a message; `begun` is the text before and after the cursor.
fn read(editor: &mut Rustyline, suspended: &Suspended, begun: (String, String)) -> ReaderEvent {
    let (before, behind) = begun;
    match editor.readline_with_initial("> ", (&before, &behind)) {
        Ok(message) => ReaderEvent::Message(cleaned(&message)),
        Err(ReadlineError::Interrupted) if suspended.lock().is_some() => ReaderEvent::Suspended,
        Err(ReadlineError::Interrupted) => ReaderEvent::Cleared,
        Err(ReadlineError::Eof) => ReaderEvent::End,
        Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            ReaderEvent::NotUtf8
        }
        Err(ReadlineError::Io(error)) => ReaderEvent::Failed(error),
        Err(error) => ReaderEvent::Failed(io::Error::other(error)),
    }
}
