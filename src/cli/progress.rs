//! Follows a query on a terminal or into a pipe: text, one status line, interrupts.
//!
//! A terminal shows the visible text of every turn as it streams, separated by blank lines; a pipe
//! receives only the answer. The status line appears on standard error if that is a terminal, and
//! only while the cursor is at the start of a line. Tool calls of more than a second show a
//! progress bar there.

use std::pin::pin;

use futures_util::future::OptionFuture;

use super::{
    CliError,
    ask::Format,
    interrupts::Interrupts,
    question::QueryHandle,
    terminal::{Terminal, harmless},
    user::TerminalUser,
};
use crate::{
    actor::{Answer, Frame, Progress, SessionHandle, SessionRecord},
    model::{
        Attempt, FaultCode, Outcome, Submission, Turn,
        record::{AgentFact, Fact, QueryFact, TurnFact},
    },
    tool,
};

mod approval;
mod bars;
mod status;

use approval::Approvals;
use bars::Bars;

/// Follows a query to its end: shows its progress, cancels it on Ctrl-C, asks for approvals.
pub(super) struct Follower<'a, 'b> {
    session: &'a SessionHandle,
    format: Format,
    /// The turn and attempt being shown, and the number of bytes shown of it.
    shown: Option<(Turn, Attempt, usize)>,
    /// Whether any text was shown, so that the next turn is set apart.
    any: bool,
    at_line_start: bool,
    pressed: bool,
    most_turns: Option<u32>,
    status: Option<String>,
    bars: Bars,
    user: &'a mut TerminalUser<'b>,
    approvals: Approvals,
}

impl<'a, 'b> Follower<'a, 'b> {
    pub(super) fn new(
        session: &'a SessionHandle,
        format: Format,
        progress: &tool::Progress,
        user: &'a mut TerminalUser<'b>,
    ) -> Self {
        Self {
            session,
            format,
            shown: None,
            any: false,
            at_line_start: true,
            pressed: false,
            most_turns: None,
            status: None,
            bars: Bars::new(progress.clone()),
            user,
            approvals: Approvals::default(),
        }
    }

    /// Asks a question and follows it to its end. The first Ctrl-C cancels the query; a second one
    /// leaves at once.
    pub(super) async fn follow(
        mut self,
        submission: Submission,
        terminal: &mut Terminal,
        interrupts: &mut Interrupts,
    ) -> Result<Answer, CliError> {
        let question = self.ask(submission, terminal, interrupts).await?;
        self.follow_query(question, terminal, interrupts).await
    }

    /// Follows a question that was already asked.
    pub(super) async fn follow_query(
        mut self,
        mut question: QueryHandle,
        terminal: &mut Terminal,
        interrupts: &mut Interrupts,
    ) -> Result<Answer, CliError> {
        let mut taking_back = OptionFuture::from(self.pressed.then(|| question.cancel()));
        loop {
            self.calls(terminal, &mut question)?;
            let progress = tokio::select! {
                progress = question.next() => progress?,
                answered = self.approvals.answered() => {
                    answered?;
                    continue;
                }
                user_input = self.user.user_input() => {
                    self.user_input(terminal, &mut question, user_input).await;
                    continue;
                }
                Some(taken_back) = &mut taking_back => {
                    taken_back?;
                    taking_back = None.into();
                    continue;
                }
                () = interrupts.pressed() => {
                    self.press(terminal)?;
                    taking_back = Some(question.cancel()).into();
                    continue;
                }
                step = self.bars.next() => {
                    self.work(terminal, step.as_ref());
                    continue;
                }
            };
            match progress {
                Some(Progress::Record(record)) => self.record(terminal, &record)?,
                Some(Progress::Frame(frame)) => self.frame(terminal, &frame)?,
                None => break,
            }
        }
        terminal.clear_status();
        let answer = question.answer().await?;
        self.close(terminal, &answer)?;
        Ok(answer)
    }

    /// Submits the question and waits until it is accepted. A Ctrl-C is remembered until then,
    /// because only an accepted query can be cancelled.
    pub(super) async fn ask(
        &mut self,
        submission: Submission,
        terminal: &mut Terminal,
        interrupts: &mut Interrupts,
    ) -> Result<QueryHandle, CliError> {
        let mut asked = pin!(QueryHandle::ask(self.session, submission));
        loop {
            tokio::select! {
                question = &mut asked => return Ok(question?),
                () = interrupts.pressed() => self.press(terminal)?,
            }
        }
    }

    fn press(&mut self, terminal: &mut Terminal) -> Result<(), CliError> {
        if std::mem::replace(&mut self.pressed, true) {
            return Err(CliError::Interrupted);
        }
        if self.at_line_start {
            terminal.status("cancelling the question; press Ctrl-C again to exit at once");
        }
        Ok(())
    }

    /// Shows the progress of a tool; after its end, the previous status again.
    fn work(&self, terminal: &mut Terminal, step: Option<&tool::ProgressSnapshot>) {
        if !self.has_progress_output() {
            return;
        }
        match (step, &self.status, terminal.progress_style()) {
            (Some(step), _, Some((width, _))) => terminal.status(&status::bar(step, width)),
            (Some(_), _, None) => {}
            (None, Some(status), _) => terminal.status(status),
            (None, None, _) => terminal.clear_status(),
        }
    }

    /// Whether the status line may change: not during a cancellation or an approval, whose text
    /// must stay readable.
    const fn has_progress_output(&self) -> bool {
        self.at_line_start && !self.pressed && !self.approvals.asks()
    }

    fn streams(&self, terminal: &Terminal) -> bool {
        self.format == Format::Text && terminal.out_is_terminal()
    }

    fn frame(&mut self, terminal: &mut Terminal, frame: &Frame) -> Result<(), CliError> {
        if self.streams(terminal) {
            self.show(
                terminal,
                (frame.turn, frame.attempt),
                frame.offset,
                &frame.text,
            )?;
        }
        Ok(())
    }

    fn record(&mut self, terminal: &mut Terminal, record: &SessionRecord) -> Result<(), CliError> {
        if self.format.has_events() {
            terminal.line(&serde_json::to_string(&record.event()).map_err(CliError::no_json)?)?;
            return Ok(());
        }
        if let (Fact::Turn(TurnFact::Replied(replied)), true) =
            (&record.fact, self.streams(terminal))
        {
            let whose = (record.turn.unwrap_or_default(), replied.attempt);
            self.show(terminal, whose, 0, &replied.text)?;
            self.end_line(terminal)?;
        }
        match &record.fact {
            Fact::Agent(AgentFact::EscalationRaised(raised)) => {
                self.end_line(terminal)?;
                terminal.note(&raised.notice);
            }
            Fact::Query(QueryFact::Accepted(accepted)) => {
                self.most_turns = Some(accepted.limits.max_turns);
            }
            _ => {}
        }
        if let Some(status) = status::status(record, self.most_turns) {
            if self.has_progress_output() {
                terminal.status(&status);
            }
            self.status = Some(status);
        }
        Ok(())
    }

    /// Shows the part of a turn's text that is not on the screen yet.
    fn show(
        &mut self,
        terminal: &mut Terminal,
        whose: (Turn, Attempt),
        offset: usize,
        text: &str,
    ) -> Result<(), CliError> {
        let (turn, attempt) = whose;
        let shown = match self.shown {
            Some((of, by, shown)) if (of, by) == whose => shown,
            Some((of, _, shown)) if of == turn && shown > 0 => {
                self.end_line(terminal)?;
                terminal.note(
                    "(the model is called again; the following reply replaces the text \
                               above)",
                );
                0
            }
            Some(_) | None => 0,
        };
        let new = shown
            .checked_sub(offset)
            .and_then(|known| text.get(known..))
            .unwrap_or_default();
        if !new.is_empty() {
            terminal.clear_status();
            if shown == 0 && self.any {
                self.end_line(terminal)?;
                terminal.write("\n")?;
            }
            terminal.write(&harmless(new))?;
            (self.any, self.status) = (true, None);
            self.at_line_start = new.ends_with('\n');
        }
        self.shown = Some((turn, attempt, shown + new.len()));
        Ok(())
    }

    fn end_line(&mut self, terminal: &mut Terminal) -> Result<(), CliError> {
        if !self.at_line_start {
            terminal.write("\n")?;
            self.at_line_start = true;
        }
        Ok(())
    }

    fn close(&mut self, terminal: &mut Terminal, answer: &Answer) -> Result<(), CliError> {
        if self.format != Format::Text {
            return Ok(());
        }
        if !self.streams(terminal) {
            let text = answer.outcome.readable(&answer.text, answer.turns);
            let text = text.trim_end();
            if !text.is_empty() {
                terminal.line(text)?;
            }
        } else {
            self.end_line(terminal)?;
        }
        match (&answer.outcome, answer.outcome.reason()) {
            (Outcome::Forced { by }, _) => {
                let sentence = by.sentence(answer.turns);
                match (self.streams(terminal), self.any) {
                    // No turn has shown it.
                    (true, true) => terminal.line(&format!("\n{sentence}"))?,
                    (true, false) => terminal.line(&sentence)?,
                    (false, _) => terminal.note(&format!("oracle: {sentence}")),
                }
            }
            (Outcome::Cancelled, _) => terminal.note("oracle: cancelled"),
            (Outcome::Failed { code, detail }, _) => {
                terminal.note(&format!("oracle: failed: {}", failure(code, detail)));
            }
            (outcome, Some(reason)) => {
                terminal.note(&format!("oracle: {}: {reason}", outcome.name()));
            }
            (_, None) => {}
        }
        Ok(())
    }
}

/// Describes a failure with its code, and advice if the provider caused it.
fn failure(code: &FaultCode, detail: &str) -> String {
    let remedy = match code {
        FaultCode::Unauthorized | FaultCode::Forbidden | FaultCode::Quota => {
            "; run `oracle doctor` to see which key was used"
        }
        FaultCode::ModelNotFound => "; run `oracle models` for a list",
        FaultCode::Connect | FaultCode::Dns | FaultCode::Tls | FaultCode::HeadersTimeout => {
            "; run `oracle doctor` to test the connection"
        }
        _ => "",
    };
    format!("{detail} ({code}){remedy}")
}

#[cfg(test)]
mod tests;
