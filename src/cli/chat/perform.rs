//! Executes chat commands and resumes conversations. Output goes to standard error, because only
//! answers are results.

use uuid::Uuid;

use super::{
    Chat, QueryToFollow,
    command::{ALL, ChatCommand},
    session,
    why::{Rows, why},
};
use crate::{
    actor::QueryAccount,
    cli::{
        CliError,
        question::QueryHandle,
        sessions,
        text::{cut, used},
    },
    control::Code,
    journal::Known,
    model::{
        QueryId, Seq, SessionKey, SessionName, Timestamp,
        record::{Fact, QueryFact, SessionFact},
    },
};

/// Maximum number of lines shown of a question and of an answer.
const LINES: (usize, usize) = (2, 4);
const LISTED: usize = 15;
/// Maximum number of sessions read for the list, which omits sub-agents.
const SCANNED: usize = 100;
const BEGINNING: usize = 8;

const KEYS: [(&str, &str); 6] = [
    ("Ctrl-C", "cancel the running question, or clear the input"),
    ("Ctrl-D", "leaves"),
    (
        "Alt-Enter",
        "start a new line, as do a `\\` at the end or an open ``` fence",
    ),
    ("Up, Down", "recall earlier messages; Ctrl-R searches them"),
    ("Tab", "completes commands"),
    ("//…", "ask a question that begins with a slash"),
];

impl Chat<'_> {
    /// Introduces the session, repeats its last exchange and resumes an interrupted query.
    pub(super) async fn greet(&mut self, last_used: Option<Timestamp>) -> Result<(), CliError> {
        let name = &self.session.key().name;
        let keys = "/help lists the commands, Ctrl-D exits";
        match last_used {
            None => self
                .terminal
                .note(&format!("session {name}: type a question; {keys}")),
            Some(at) => {
                let session = format!("continuing session {name}, last used {at}; {keys}");
                self.terminal.note(&session);
                self.show_last_query().await?;
                self.resume_query().await?;
            }
        }
        Ok(())
    }

    async fn show_last_query(&mut self) -> Result<(), CliError> {
        let Some((query, _)) = self.session.last_message().await? else {
            return Ok(());
        };
        let Some(account) = self.session.account(query).await? else {
            return Ok(());
        };
        let width = self.terminal.columns();
        for line in answer_preview(&account, width) {
            self.terminal.note(&line);
        }
        Ok(())
    }

    /// Resumes queries that a crash or a signal cut off.
    async fn resume_query(&mut self) -> Result<(), CliError> {
        let mut before = None;
        while let Some(query) = self.session.view().await?.query {
            // Following it did not end it.
            if before.replace(query) == Some(query) {
                break;
            }
            if !self.follow_query(query).await? {
                break;
            }
        }
        Ok(())
    }

    async fn follow_query(&mut self, query: QueryId) -> Result<bool, CliError> {
        let what = format!("question {query} was interrupted");
        let question = match QueryHandle::resume_query(&self.session, query).await {
            Ok(question) => question,
            Err(refused) if refused.code == Code::Owned => {
                self.terminal
                    .note(&format!("{what} and cannot continue here: {refused}"));
                return Ok(false);
            }
            Err(refused) => return Err(refused.into()),
        };
        let how = match question.is_local() {
            true => format!("{what} and continues"),
            false => format!("the server is answering question {query}"),
        };
        self.terminal.note(&format!("{how}; Ctrl-C cancels it"));
        self.follow(QueryToFollow::Before(Box::new(question)))
            .await?;
        Ok(true)
    }

    pub(super) async fn perform(&mut self, command: ChatCommand) -> Result<(), CliError> {
        let done = match command {
            ChatCommand::Quit => {
                self.leaves = true;
                Ok(())
            }
            ChatCommand::Help => {
                self.help();
                Ok(())
            }
            ChatCommand::Why(query) => self.why(query).await,
            ChatCommand::Usage => self.usage().await,
            ChatCommand::Sessions => self.sessions().await,
            ChatCommand::Resume(name) => self.resume(name).await,
            ChatCommand::New => {
                self.switch_to(&SessionName::from_uuid(Uuid::now_v7()), None)
                    .await
            }
        };
        match done {
            Err(CliError::Refused(refused)) if !self.oracle.has_ended() => {
                self.terminal.note(&format!("oracle: {refused}"));
                Ok(())
            }
            done => done,
        }
    }

    fn help(&mut self) {
        let mut rows = Rows::default();
        for (name, argument, about) in ALL {
            rows.push(0, format!("{name} {argument}").trim_end(), about);
        }
        for (key, does) in KEYS {
            rows.push(0, key, does);
        }
        self.show_rows(&rows);
    }

    async fn why(&mut self, query: Option<QueryId>) -> Result<(), CliError> {
        let Some((last, _)) = self.session.last_message().await? else {
            self.note_no_question();
            return Ok(());
        };
        let query = query.unwrap_or(last);
        let records = self.session.query_records(query).await?;
        if records.is_empty() {
            let problem =
                format!("unknown question {query}: the last question of this session is {last}");
            self.terminal.note(&format!("oracle: {problem}"));
            return Ok(());
        }
        self.show_rows(&why(&records));
        Ok(())
    }

    async fn usage(&mut self) -> Result<(), CliError> {
        let Some((last, _)) = self.session.last_message().await? else {
            self.note_no_question();
            return Ok(());
        };
        let mut rows = Rows::default();
        let view = self.session.view().await?;
        rows.push(0, "session", used(&view.usage));
        if let Some(account) = self.session.account(last).await? {
            rows.push(0, &format!("question {last}"), used(&account.usage));
        }
        self.show_rows(&rows);
        Ok(())
    }

    async fn sessions(&mut self) -> Result<(), CliError> {
        let (newest, _) = sessions::newest(self.journal, SCANNED).await?;
        let width = self.terminal.columns();
        let mut listed = 0;
        for known in &newest {
            if listed == LISTED {
                break;
            }
            if let Some(question) = self.first_question(known).await {
                listed += 1;
                let here = known.key == *self.session.key();
                self.terminal.note(&line(known, &question, here, width));
            }
        }
        if listed == 0 {
            self.terminal
                .note("this data directory has no sessions yet");
        }
        Ok(())
    }

    /// The first question of a session; `None` for a sub-agent's session and for one that cannot be
    /// read.
    async fn first_question(&self, known: &Known) -> Option<String> {
        let beginning = self.journal.read(known.sid, Seq(0), BEGINNING).await.ok()?;
        let mut question = String::new();
        for entry in &beginning {
            if let Fact::Session(SessionFact::Opened(opened)) = &entry.record.fact
                && opened.parent.is_some()
            {
                return None;
            }
            if let Fact::Query(QueryFact::Accepted(accepted)) = &entry.record.fact {
                let words: Vec<&str> = accepted.text.split_whitespace().collect();
                question = words.join(" ");
                break;
            }
        }
        Some(question)
    }

    async fn resume(&mut self, name: SessionName) -> Result<(), CliError> {
        let found = self.journal.find(SessionKey::local(name.clone())).await?;
        match found.filter(|_| !name.is_reserved()) {
            Some(known) => self.switch_to(&name, Some(known)).await,
            None => {
                let problem = format!("unknown session `{name}`: type `/sessions` for a list");
                self.terminal.note(&format!("oracle: {problem}"));
                Ok(())
            }
        }
    }

    async fn switch_to(
        &mut self,
        name: &SessionName,
        known: Option<Known>,
    ) -> Result<(), CliError> {
        if self.begun {
            self.before = Some(self.session.key().name.clone());
        }
        self.session = session(self.oracle, &self.request, name);
        self.begun = known.is_some();
        self.greet(known.and_then(|known| known.at)).await
    }

    fn note_no_question(&mut self) {
        self.terminal.note("this session has no questions yet");
    }

    fn show_rows(&mut self, rows: &Rows) {
        let width = self.terminal.columns();
        for line in rows.lines(width) {
            self.terminal.note(&line);
        }
    }
}

/// Formats a session of the list, the question first where columns are few.
fn line(known: &Known, question: &str, here: bool, width: usize) -> String {
    let name = &known.key.name;
    let at = known.at.map_or_else(String::new, |at| at.to_string());
    // To the minute.
    let at = at.get(..16).unwrap_or_default().replace('T', " ");
    let state = known.standing.as_str();
    let mark = if here { "*" } else { " " };
    cut(&format!("{mark} {name}  {at}  {state}  {question}"), width)
}

/// Summarizes the last question and its answer: the first lines of both, and the outcome.
fn answer_preview(account: &QueryAccount, width: usize) -> Vec<String> {
    let (of_question, of_answer) = LINES;
    let mut lines = first(&account.text, "> ", of_question, width);
    if let Some((_, finished)) = &account.finished {
        let answer = finished.outcome.readable(&finished.answer, finished.turns);
        lines.extend(first(&answer, "  ", of_answer, width));
        lines.push(format!("  [{}]", finished.outcome.name()));
    }
    lines
}

fn first(text: &str, mark: &str, most: usize, width: usize) -> Vec<String> {
    let mut all = text.lines().filter(|line| !line.trim().is_empty());
    let shown = all
        .by_ref()
        .take(most)
        .map(|line| cut(&format!("{mark}{line}"), width));
    let mut shown: Vec<String> = shown.collect();
    if all.next().is_some() {
        shown.push(format!("{mark}…"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_message_is_quoted_by_its_first_lines() {
        for (text, most, lines) in [
            ("", 2, vec![]),
            ("one", 2, vec!["> one"]),
            ("\none\n\ntwo\n", 2, vec!["> one", "> two"]),
            ("one\ntwo\nthree", 2, vec!["> one", "> two", "> …"]),
            (
                "a line that is longer than it may be",
                2,
                vec!["> a line th…"],
            ),
        ] {
            assert_eq!(first(text, "> ", most, 12), lines, "{text:?}");
        }
    }
}
