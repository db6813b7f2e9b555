//! Executes chat commands. Output goes to standard error, because only answers are results.

use std::io::Write as _;

use uuid::Uuid;

use super::{
    Chat,
    command::{COMMANDS, ChatCommand, KEYS, rows_of},
    why::{Rows, why},
};
use crate::{
    cli::{
        CliError, CliResult, sessions,
        terminal::Style,
        text::{sub_agents, used, wrapped},
    },
    model::{ForkPoint, QueryId, SessionName},
};

const LISTED: usize = 15;
/// Maximum number of sessions read for the list, which omits sub-agents.
const SCANNED: usize = 100;

impl Chat<'_> {
    pub(super) async fn perform(&mut self, command: ChatCommand) -> CliResult {
        let done = match command {
            ChatCommand::Quit => {
                self.leaves = true;
                Ok(())
            }
            ChatCommand::Help => self.help(),
            ChatCommand::Why(query) => self.why(query).await,
            ChatCommand::Usage => self.usage().await,
            ChatCommand::Model(None) => self.show_models().await,
            ChatCommand::Model(Some(wanted)) => self.use_model(&wanted).await,
            ChatCommand::Budget(limits) => self.budget(limits).await,
            ChatCommand::Tools => self.tools().await,
            ChatCommand::Compact => self.compact().await,
            ChatCommand::Sessions => self.sessions().await,
            ChatCommand::Resume(name) => self.resume(name).await,
            ChatCommand::Fork => self.fork().await,
            ChatCommand::New => self.begin().await,
            ChatCommand::Clear => {
                if let Some((_, Style::Coloured | Style::Plain)) = self.terminal.progress_style() {
                    let _ = self.terminal.err.write_all(b"\x1b[H\x1b[2J");
                }
                self.introduce().await?;
                self.begin().await
            }
        };
        match done {
            Err(error @ (CliError::Refused(_) | CliError::Problems { .. }))
                if !self.oracle.has_ended() =>
            {
                let text = error.to_string();
                let mut lines = text.lines();
                lines.try_for_each(|line| self.note(&format!("oracle: {line}")))
            }
            done => done,
        }
    }

    fn help(&mut self) -> CliResult {
        let mut rows = Rows::default();
        for (names, about) in rows_of(COMMANDS).chain(rows_of(KEYS)) {
            rows.push(0, names, about);
        }
        self.show_rows(&rows)
    }

    pub(super) async fn last_query(&self) -> CliResult<QueryId> {
        let last = self.session.last_message().await?;
        let last = last.ok_or_else(|| CliError::usage("this session has no questions yet"))?;
        Ok(last.0)
    }

    async fn why(&mut self, query: Option<QueryId>) -> CliResult {
        let last = self.last_query().await?;
        let query = query.unwrap_or(last);
        let records = self.session.query_records(query).await?;
        if records.is_empty() {
            return Err(CliError::usage(format_args!(
                "unknown question {query}: the last question of this session is {last}"
            )));
        }
        let mut rows = why(&records);
        for (depth, line) in sub_agents(&self.session.sub_agents(query).await?) {
            rows.push(depth, "sub-agent", line);
        }
        self.show_rows(&rows)
    }

    async fn usage(&mut self) -> CliResult {
        let last = self.last_query().await?;
        let mut rows = Rows::default();
        rows.push(0, "session", used(&self.session.view().await?.usage));
        if let Some(account) = self.session.account(last).await? {
            rows.push(0, &format!("question {last}"), used(&account.usage));
        }
        self.show_rows(&rows)
    }

    /// Lists the sessions used last, those of this project first.
    async fn sessions(&mut self) -> CliResult {
        let mut found = sessions::described(self.journal, SCANNED).await?;
        found.retain(|(_, about)| !about.is_sub_agent);
        let here = self.root.path().to_string_lossy();
        found.sort_by_key(|(_, about)| !about.is_of(&here));
        found.truncate(LISTED);
        if found.is_empty() {
            return self.note("this data directory has no sessions yet");
        }
        let lines = sessions::lines(&found, Some(self.session.key()), self.terminal.columns());
        self.listed = found.into_iter().map(|(known, _)| known.key.name).collect();
        lines.iter().try_for_each(|line| self.note(line))
    }

    async fn resume(&mut self, name: Option<SessionName>) -> CliResult {
        let Some(name) = name else {
            self.sessions().await?;
            return self.note("continue one by its number or id: `/resume 2`");
        };
        let number: Option<usize> = name.as_str().parse().ok();
        let listed = number.and_then(|number| self.listed.get(number.checked_sub(1)?));
        let found = sessions::find(self.journal, listed.unwrap_or(&name)).await?;
        let found = found.filter(|known| !known.key.name.is_reserved());
        let known = found.ok_or_else(|| {
            CliError::usage(format_args!(
                "unknown session `{name}`: type `/sessions` for a list"
            ))
        })?;
        self.switch_to(&known.key.name, true);
        self.greet(Some(&known)).await
    }

    async fn fork(&mut self) -> CliResult {
        let query = self.last_query().await?;
        let (point, key) = (ForkPoint { query, turn: None }, self.session.key().clone());
        let copy = self.oracle.fork(&key, point, new_name()).await?;
        self.switch_to(&copy.key().name, true);
        let [copy, source] = [copy.key(), &key].map(|key| sessions::short(&key.name));
        self.note(&format!("continuing in session {copy}, a copy of {source}"))
    }

    async fn begin(&mut self) -> CliResult {
        self.switch_to(&new_name(), false);
        self.greet(None).await
    }

    fn switch_to(&mut self, name: &SessionName, begun: bool) {
        if self.begun {
            self.before = Some(self.session.key().name.clone());
        }
        let session = self.oracle.session_by_key(name.clone());
        self.session = session.profile(self.profile.clone());
        (self.begun, self.compacts) = (begun, false);
    }

    #[expect(clippy::unnecessary_wraps, reason = "the result of a command")]
    pub(super) fn note(&mut self, text: &str) -> CliResult {
        let lines = wrapped(text, self.terminal.columns());
        self.terminal.note(&lines.join("\n"));
        Ok(())
    }

    pub(super) fn show_rows(&mut self, rows: &Rows) -> CliResult {
        let lines = rows.lines(self.terminal.columns());
        lines.iter().try_for_each(|line| self.note(line))
    }
}

fn new_name() -> SessionName {
    SessionName::from_uuid(Uuid::now_v7())
}
