//! Follows a query on a terminal or into a pipe: text, tool calls, what is being done, interrupts.
//!
//! A terminal shows the text of every turn, rendered, while it arrives ([`screen`]); a pipe receives
//! only the answer. If standard error is a terminal and standard output is not, a status line
//! appears there.

use std::{io, pin::pin};

use futures_util::future::OptionFuture;

use super::{
    CliError, CliResult,
    ask::Format,
    failure::{failover, failure},
    interrupts::Interrupts,
    terminal::Terminal,
    text::{cost, grouped, wrapped},
    user::TerminalUser,
};
use crate::{
    actor::{Answer, AnswerText, Piece, Progress, SessionHandle, SessionRecord},
    control::question::QueryHandle,
    llm::{OFFLINE, scripted::Scripts},
    model::{
        Outcome, SignalFields, Submission, Usage,
        record::{AgentFact, Fact, LlmFact, SignalFact, ToolFact, TurnFact},
        time::Span,
    },
    tool::ProjectRoot,
};

mod approval;
mod calls;
mod screen;
mod status;

use approval::Approvals;
#[cfg(feature = "tui")]
pub(super) use approval::described;
use calls::Calls;
use screen::{Screen, TextKind};
use status::Status;

/// Follows a query to its end: shows its progress, cancels it on Ctrl-C, asks for approvals.
pub(super) struct Follower<'a, 'b> {
    session: &'a SessionHandle,
    format: Format,
    screen: Screen,
    text: AnswerText,
    tools: Calls,
    used: Usage,
    /// The model and the usage of the last reply.
    replied: Option<(String, Usage)>,
    pressed: bool,
    most_turns: Option<u32>,
    status: Option<Status>,
    user: &'a mut TerminalUser<'b>,
    terminal: &'a mut Terminal,
    interrupts: &'a mut Interrupts,
    approvals: Approvals,
}

impl<'a, 'b> Follower<'a, 'b> {
    pub(super) fn new(
        session: &'a SessionHandle,
        (format, root): (Format, &ProjectRoot),
        user: &'a mut TerminalUser<'b>,
        terminal: &'a mut Terminal,
        interrupts: &'a mut Interrupts,
    ) -> Self {
        Self {
            session,
            format,
            screen: Screen::new(root.path()),
            text: AnswerText::default(),
            tools: Calls::default(),
            used: Usage::default(),
            replied: None,
            pressed: false,
            most_turns: None,
            status: None,
            user,
            terminal,
            interrupts,
            approvals: Approvals::default(),
        }
    }

    /// Asks a question and follows it to its end. The first Ctrl-C cancels the query; a second one
    /// leaves at once.
    pub(super) async fn follow(mut self, submission: Submission) -> CliResult<Answer> {
        let question = self.ask(submission).await?;
        self.follow_query(question).await
    }

    /// Follows a question that was already asked.
    pub(super) async fn follow_query(mut self, mut question: QueryHandle) -> CliResult<Answer> {
        let mut cancelling = OptionFuture::from(self.pressed.then(|| question.cancel()));
        loop {
            self.calls(&mut question)?;
            let progress = tokio::select! {
                progress = question.next() => progress?,
                answered = self.approvals.answered() => {
                    answered?;
                    continue;
                }
                user_input = self.user.user_input() => {
                    self.user_input(&mut question, user_input).await;
                    continue;
                }
                Some(cancelled) = &mut cancelling => {
                    cancelled?;
                    cancelling = None.into();
                    continue;
                }
                () = self.interrupts.pressed() => {
                    self.press()?;
                    cancelling = Some(question.cancel()).into();
                    continue;
                }
                () = self.screen.due(), if self.streams() && !self.approvals.asks() => {
                    self.draw()?;
                    continue;
                }
            };
            let Some(progress) = progress else { break };
            if self.streams()
                && let Some(piece) = self.text.next(&progress)
            {
                self.show(piece)?;
            }
            match progress {
                Progress::Record(record) => self.record(&record)?,
                Progress::Call(call) => self.set_status(status::step(&call)),
                _ => {}
            }
        }
        if !self.streams() {
            self.terminal.clear_status();
        }
        let answer = question.answer().await?;
        self.show_outcome(&answer)?;
        if self.streams() {
            let summary = self.summary(&answer).await;
            self.screen.note(self.terminal, &summary, true)?;
        }
        Ok(answer)
    }

    /// Submits the question and waits until it is accepted. A Ctrl-C is remembered until then,
    /// because only an accepted query can be cancelled.
    pub(super) async fn ask(&mut self, submission: Submission) -> CliResult<QueryHandle> {
        let mut asked = pin!(QueryHandle::ask(self.session, submission));
        loop {
            tokio::select! {
                question = &mut asked => return Ok(question?),
                () = self.interrupts.pressed() => self.press()?,
            }
        }
    }

    fn press(&mut self) -> CliResult {
        if std::mem::replace(&mut self.pressed, true) {
            return Err(CliError::Interrupted);
        }
        let what = "cancelling the question; press Ctrl-C again to exit at once";
        self.status = Some(Status::of(what));
        match self.streams() {
            true => self.draw()?,
            false => self.terminal.status(what),
        }
        Ok(())
    }

    fn draw(&mut self) -> io::Result<()> {
        let doing = self.doing();
        self.screen.draw(self.terminal, doing.as_deref())
    }

    /// What is being done, with the seconds and tokens so far.
    fn doing(&self) -> Option<String> {
        let doing = self.status.as_ref()?;
        let seconds = self.screen.elapsed().as_secs();
        let tokens = match self.used.total_tokens() {
            0 => String::new(),
            tokens => format!(" · {} tokens", grouped(tokens)),
        };
        let how = match self.pressed {
            true => "",
            false => " · Ctrl-C cancels",
        };
        Some(format!("{doing} · {seconds} s{tokens}{how}"))
    }

    fn streams(&self) -> bool {
        self.format == Format::Text && self.terminal.out_is_terminal()
    }

    fn record(&mut self, record: &SessionRecord) -> CliResult {
        if self.format.has_events() {
            let event = serde_json::to_string(&record.event()).map_err(CliError::no_json)?;
            return Ok(self.terminal.line(&event)?);
        }
        self.used += record.usage();
        if let Some(accepted) = record.accepted() {
            self.most_turns = Some(accepted.limits.max_turns);
        }
        if let Some(replied) = record.replied() {
            self.replied = Some((replied.model.clone(), replied.usage));
        }
        if self.streams() {
            self.log_step(record)?;
        }
        if let Fact::Agent(AgentFact::EscalationRaised(raised)) = &record.fact {
            self.terminal.note(&raised.notice);
        }
        if let Fact::Llm(LlmFact::FailedOver(failed)) = &record.fact {
            self.tell(&failover(failed))?;
        }
        if let Some(status) = status::status(record, self.most_turns) {
            self.set_status(status);
        }
        Ok(())
    }

    fn set_status(&mut self, status: Status) {
        // The texts of a cancellation and of an approval must stay readable.
        if self.pressed {
            return;
        }
        if !self.approvals.asks() && !self.streams() {
            self.terminal.status(&status.to_string());
        }
        self.status = Some(status);
    }

    /// Writes a line about a finished step, after the text that led to it.
    fn log_step(&mut self, record: &SessionRecord) -> io::Result<()> {
        let line = match &record.fact {
            // The offline model says all of its answer again in another turn.
            Fact::Turn(TurnFact::Started(_)) if self.is_by(OFFLINE) => {
                self.screen.retract();
                return Ok(());
            }
            Fact::Turn(TurnFact::Started(_)) | Fact::Agent(AgentFact::EscalationRaised(_)) => None,
            Fact::Tool(ToolFact::Requested(requested)) => {
                self.tools.requested(&requested.call, record.at);
                None
            }
            Fact::Tool(ToolFact::Finished(finished)) => {
                let (name, result) = (&finished.name, &finished.result);
                Some(self.tools.finished(name, result, record.at))
            }
            Fact::Tool(ToolFact::Refused(refused)) => {
                let (name, why) = (&refused.call.name, &refused.content);
                Some(format!("• {name} was refused: {why}"))
            }
            Fact::Signal(SignalFact::Emitted(signal)) => match &signal.fields {
                SignalFields::NeedTurn(need) => Some(format!("• another turn: {}", need.reason)),
                SignalFields::DelegationRecommended(to) => {
                    let lines = to.scopes().map(|scope| format!("• a sub-agent: {scope}"));
                    Some(lines.collect::<Vec<_>>().join("\n"))
                }
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.screen.end_text(self.terminal, TextKind::Interim)?;
        line.map_or(Ok(()), |line| self.screen.note(self.terminal, &line, false))
    }

    /// Writes a line that stays, wrapped.
    fn tell(&mut self, line: &str) -> io::Result<()> {
        if !self.streams() {
            self.terminal.say(line);
            return Ok(());
        }
        self.screen.end_text(self.terminal, TextKind::Interim)?;
        let screen = self.terminal.screen();
        let columns = screen.map_or(usize::MAX, |(columns, ..)| columns);
        // As wide as a note.
        let rows = wrapped(&format!("• {line}"), columns.saturating_sub(4));
        let mut rows = rows.iter();
        rows.try_for_each(|row| self.screen.note(self.terminal, row, false))
    }

    /// Whether the last reply came from this provider.
    fn is_by(&self, provider: &str) -> bool {
        let replied = self.replied.as_ref();
        replied.is_some_and(|(model, _)| model.split('/').next() == Some(provider))
    }

    fn show(&mut self, piece: Piece) -> io::Result<()> {
        if piece.replaces && self.screen.retract() {
            let what = "(the model is called again; the following reply replaces the text above)";
            self.screen.note(self.terminal, what, false)?;
        }
        self.screen.push(&piece.text);
        Ok(())
    }

    fn show_outcome(&mut self, answer: &Answer) -> io::Result<()> {
        if self.format != Format::Text {
            return Ok(());
        }
        let text = answer.outcome.readable(&answer.text, answer.turns);
        if self.streams() {
            match self.text.end(answer) {
                Some((_, rest)) => self.screen.push(&rest.text),
                None => {
                    self.screen.end_text(self.terminal, TextKind::Interim)?;
                    self.screen.push(&text);
                }
            }
            let kind = match answer.outcome {
                Outcome::Cancelled | Outcome::Failed { .. } => TextKind::Interim,
                _ => TextKind::Answer,
            };
            self.screen.end_text(self.terminal, kind)?;
        } else if !text.trim().is_empty() {
            let text = match self.terminal.forced_columns() {
                Some(columns) => screen::coloured(&text, columns),
                None => text.trim_end().to_owned(),
            };
            self.terminal.line(&text)?;
        }
        let said = match (&answer.outcome, answer.outcome.reason()) {
            (Outcome::Forced { by }, _) if !self.streams() => by.sentence(answer.turns),
            (Outcome::Cancelled, _) => "cancelled".to_owned(),
            (Outcome::Failed { code, detail }, _) => format!("failed: {}", failure(code, detail)),
            (Outcome::Forced { .. }, _) | (_, None) => return Ok(()),
            (outcome, Some(reason)) => format!("{}: {reason}", outcome.name()),
        };
        let lines = wrapped(&format!("oracle: {said}"), self.terminal.columns());
        self.terminal.note(&lines.join("\n"));
        Ok(())
    }

    /// Describes what an answer took, and the context left for the next one.
    async fn summary(&self, answer: &Answer) -> String {
        let turns = match answer.turns {
            1 => "1 turn".to_owned(),
            turns => format!("{turns} turns"),
        };
        let tokens = grouped(answer.usage.total_tokens());
        let mut summary = format!("{turns} · {tokens} tokens");
        let replied = self.replied.as_ref();
        let last = replied.map_or(0, |(_, usage)| usage.total_tokens());
        let is_free = self.is_by(OFFLINE) || self.is_by(Scripts::PROVIDER);
        if !is_free && self.replied.is_some() {
            summary.push_str(&format!(" · {}", cost(&answer.usage)));
        }
        summary.push_str(&format!(" · {}", Span(self.screen.elapsed())));
        let view = self.session.view().await.ok();
        if let Some(window) = view.and_then(|view| view.context_window)
            && last > 0
        {
            let left = window.saturating_sub(last).saturating_mul(100) / window.max(1);
            summary.push_str(&format!(" · {left} % of the context left"));
        }
        summary
    }
}

#[cfg(test)]
mod tests;
