//! Where a conversation goes on: what was said last, and what is still to be answered.

use super::{Chat, Stop};
use crate::{
    actor::{AskError, QueryAccount},
    cli::text::cut,
    kernel::Refusal,
    model::{QueryId, Timestamp},
};

/// Lines that are shown of a question, and of an answer.
const LINES: (usize, usize) = (2, 4);

impl Chat<'_> {
    /// Says which session it is, what was said in it last, and goes on with what was cut off.
    pub(super) async fn greet(&mut self, last_used: Option<Timestamp>) -> Result<(), Stop> {
        let name = &self.session.key().name;
        let keys = "/help lists commands, Ctrl-D leaves";
        match last_used {
            None => self
                .terminal
                .note(&format!("session {name}: ask away; {keys}")),
            Some(at) => {
                let session = format!("going on with session {name}, last used {at}; {keys}");
                self.terminal.note(&session);
                self.tell_the_last().await?;
                self.go_on().await?;
            }
        }
        Ok(())
    }

    async fn tell_the_last(&mut self) -> Result<(), Stop> {
        let Some(query) = self.session.last_query().await? else {
            return Ok(());
        };
        let Some(account) = self.session.account(query).await? else {
            return Ok(());
        };
        let width = self.terminal.columns();
        for line in last_words(&account, width) {
            self.terminal.note(&line);
        }
        Ok(())
    }

    /// What has not ended goes on: of a process that died, or that was told to end.
    async fn go_on(&mut self) -> Result<(), Stop> {
        let mut before = None;
        while let Some(query) = self.session.view().await?.query {
            // One that is still there was left to itself.
            if before.replace(query) == Some(query) {
                break;
            }
            if !self.go_on_with(query).await? {
                break;
            }
        }
        Ok(())
    }

    async fn go_on_with(&mut self, query: QueryId) -> Result<bool, Stop> {
        let what = format!("question {query} was not answered to the end");
        let (watch, how) = match self.session.go_on(query).await {
            Ok(watch) => (watch, format!("{what} and goes on")),
            Err(error @ AskError::Refused(Refusal::Owned { .. })) => {
                self.terminal.note(&format!("{what}, and is left: {error}"));
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        self.terminal.note(&format!("{how}; Ctrl-C takes it back"));
        self.follow(watch).await?;
        Ok(true)
    }
}

/// The last question and its answer, briefly: the beginnings of their lines, and how it ended.
fn last_words(account: &QueryAccount, width: usize) -> Vec<String> {
    let (of_question, of_answer) = LINES;
    let mut lines = first(&account.text, "> ", of_question, width);
    if let Some((_, finished)) = &account.finished {
        let answer = finished.outcome.readable(&finished.answer, finished.turns);
        lines.extend(first(&answer, "  ", of_answer, width));
        lines.push(format!("  [{}]", finished.outcome.name()));
    }
    lines
}

/// The first lines of a text that have anything in them, behind a mark.
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
    fn only_the_beginning_of_what_was_said_is_repeated() {
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
