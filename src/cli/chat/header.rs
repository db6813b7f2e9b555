//! The beginning of a conversation: its header, its last exchange, and a query that was cut off.

use std::io::Write as _;

use super::{Chat, QueryToFollow};
use crate::{
    actor::QueryAccount,
    cli::{
        CliResult,
        sessions::{self, About},
        terminal::{Style, harmless},
        text::{ago, cut, wrapped},
    },
    control::{Code, question::QueryHandle},
    llm::OFFLINE,
    model::QueryId,
};
use oracle_journal::Known;

/// Maximum number of lines shown of a question and of an answer.
const LINES: (usize, usize) = (2, 4);

/// Agrees with the hint that ends the offline model's answers.
pub(super) const HINT: &str =
    "Offline: only quotes files. For a language model, set a key or start Ollama.";

impl Chat<'_> {
    /// Shows the version, the models and the project.
    pub(super) async fn introduce(&mut self) -> CliResult {
        let model = self.models().await?;
        let (version, project) = (env!("CARGO_PKG_VERSION"), self.folder());
        self.faint(&format!("Oracle {version} · {model} · {project}"));
        if model == OFFLINE {
            self.faint(HINT);
        }
        Ok(())
    }

    /// Introduces the session, repeats its last exchange and resumes an interrupted query.
    pub(super) async fn greet(&mut self, known: Option<&Known>) -> CliResult {
        let name = sessions::short(&self.session.key().name);
        let mut session = format!("new session {name}");
        if let Some(known) = known {
            let about = About::read(self.journal, known).await.unwrap_or_default();
            let now = self.oracle.clock().now();
            let at = known.at.map(|at| format!(", last used {}", ago(at, now)));
            let (at, title) = (at.unwrap_or_default(), about.title);
            session = format!("continuing session {name}{at}: {title}");
        }
        self.faint(&session);
        self.faint("/help lists the commands, Ctrl-D exits");
        if known.is_some() {
            self.show_last_query().await?;
            self.resume_query().await?;
        }
        Ok(())
    }

    /// The project's folder, from `~` on if it is in the user's home folder.
    fn folder(&self) -> String {
        let root = self.root.path();
        let home = self.home.as_deref();
        match home.and_then(|home| root.strip_prefix(home).ok()) {
            Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Some(below) => format!("~/{}", below.display()),
            None => root.display().to_string(),
        }
    }

    /// Writes a text that is no answer, dim where colours are on. A word that does not fit is cut.
    fn faint(&mut self, text: &str) {
        let (width, style) = self.terminal.progress_style().unzip();
        let width = width.unwrap_or(usize::MAX);
        for line in wrapped(&harmless(text), width) {
            let line = style.unwrap_or(Style::Plain).dim(&cut(&line, width));
            let _ = writeln!(self.terminal.err, "{line}");
        }
    }

    async fn show_last_query(&mut self) -> CliResult {
        if let Some((query, _)) = self.session.last_message().await?
            && let Some(account) = self.session.account(query).await?
        {
            for line in answer_preview(&account, self.terminal.columns()) {
                self.terminal.note(&line);
            }
        }
        Ok(())
    }

    /// Resumes queries that a crash or a signal cut off.
    async fn resume_query(&mut self) -> CliResult {
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

    async fn follow_query(&mut self, query: QueryId) -> CliResult<bool> {
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
    let shown = all.by_ref().take(most);
    let shown = shown.map(|line| cut(&format!("{mark}{line}"), width));
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
