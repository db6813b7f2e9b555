//! Following a query on a terminal or into a pipe: text as it arrives, one status line, interrupts.
//!
//! On a terminal the visible text of every turn is shown as it arrives, turns parted by a blank
//! line. Into a pipe goes only the answer. The status line is on standard error, only where that is
//! a terminal, and only while the cursor is at the start of a line.

use std::pin::pin;

use futures_util::future::{BoxFuture, FutureExt, OptionFuture};
use serde_json::Value;

use super::{
    Stop,
    ask::Format,
    interrupts::Interrupts,
    terminal::{Terminal, harmless},
};
use crate::{
    actor::{Answer, AskError, Frame, Progress, SessionHandle, Watch},
    kernel::Refusal,
    model::{Attempt, Event, Outcome, QueryId, Submission, Turn},
};

/// Shows one query.
pub(super) struct Follower<'a> {
    session: &'a SessionHandle,
    format: Format,
    /// The turn and try whose text is being shown, and how many bytes of it are.
    shown: Option<(Turn, Attempt, usize)>,
    /// Whether any text was shown, so that the next turn's is parted from it.
    any: bool,
    /// Whether the cursor of standard output is at the start of a line.
    at_line_start: bool,
    /// Whether Ctrl-C was pressed.
    pressed: bool,
}

impl<'a> Follower<'a> {
    pub(super) fn new(session: &'a SessionHandle, format: Format) -> Self {
        Self {
            session,
            format,
            shown: None,
            any: false,
            at_line_start: true,
            pressed: false,
        }
    }

    /// Asks and shows until the query has ended. The first Ctrl-C takes the query back, which ends it
    /// as cancelled; a second one leaves at once.
    pub(super) async fn follow(
        mut self,
        submission: Submission,
        terminal: &mut Terminal,
        interrupts: &mut Interrupts,
    ) -> Result<Answer, Stop> {
        let mut watch = self.ask(submission, terminal, interrupts).await?;
        let query = watch.query();
        let mut taking_back =
            OptionFuture::from(self.pressed.then(|| take_back(self.session, query)));
        loop {
            let progress = tokio::select! {
                progress = watch.next() => progress?,
                Some(taken_back) = &mut taking_back => {
                    taken_back?;
                    taking_back = None.into();
                    continue;
                }
                () = interrupts.pressed() => {
                    self.press(terminal)?;
                    taking_back = Some(take_back(self.session, query)).into();
                    continue;
                }
            };
            match progress {
                Some(Progress::Event(event)) => self.event(terminal, &event).await?,
                Some(Progress::Frame(frame)) => self.frame(terminal, &frame)?,
                None => break,
            }
        }
        terminal.clear_status();
        let answer = watch.answer().await?;
        self.close(terminal, &answer)?;
        Ok(answer)
    }

    /// What is not yet known to be asked cannot be taken back: that has to wait.
    async fn ask(
        &mut self,
        submission: Submission,
        terminal: &mut Terminal,
        interrupts: &mut Interrupts,
    ) -> Result<Watch, Stop> {
        let mut asked = pin!(self.session.ask(submission));
        loop {
            tokio::select! {
                watch = &mut asked => return Ok(watch?),
                () = interrupts.pressed() => self.press(terminal)?,
            }
        }
    }

    /// Whoever presses twice does not want to wait.
    fn press(&mut self, terminal: &mut Terminal) -> Result<(), Stop> {
        if std::mem::replace(&mut self.pressed, true) {
            return Err(Stop::Interrupted);
        }
        if self.at_line_start {
            terminal.status("taking the question back; Ctrl-C again leaves at once");
        }
        Ok(())
    }

    fn streams(&self, terminal: &Terminal) -> bool {
        self.format == Format::Text && terminal.out_is_terminal()
    }

    fn frame(&mut self, terminal: &mut Terminal, frame: &Frame) -> Result<(), Stop> {
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

    async fn event(&mut self, terminal: &mut Terminal, event: &Event) -> Result<(), Stop> {
        if self.format.has_events() {
            terminal.line(&serde_json::to_string(event).map_err(Stop::no_json)?)?;
            return Ok(());
        }
        if event.kind == "turn.replied" && self.streams(terminal) {
            let text = self.whole_text(event).await?;
            let attempt = event.payload["attempt"].as_u64().unwrap_or(1);
            let attempt = Attempt(u32::try_from(attempt).unwrap_or(u32::MAX));
            self.show(
                terminal,
                (event.turn.unwrap_or_default(), attempt),
                0,
                &text,
            )?;
            self.end_line(terminal)?;
        }
        if event.kind == "escalation.raised"
            && let Some(notice) = event.payload["notice"].as_str()
        {
            self.end_line(terminal)?;
            terminal.note(notice);
        }
        if self.at_line_start
            && let Some(status) = status(event)
        {
            terminal.status(&status);
        }
        Ok(())
    }

    /// Long texts stand in events by reference.
    async fn whole_text(&self, event: &Event) -> Result<String, Stop> {
        match &event.payload["text"] {
            Value::String(text) => Ok(text.clone()),
            _ => Ok(self
                .session
                .reply_text(event.seq)
                .await?
                .unwrap_or_default()),
        }
    }

    /// Shows what of a turn's text is not on the screen yet.
    fn show(
        &mut self,
        terminal: &mut Terminal,
        whose: (Turn, Attempt),
        offset: usize,
        text: &str,
    ) -> Result<(), Stop> {
        let (turn, attempt) = whose;
        let shown = match self.shown {
            Some((of, by, shown)) if (of, by) == whose => shown,
            Some((of, _, shown)) if of == turn && shown > 0 => {
                self.end_line(terminal)?;
                terminal.note("(the model is asked anew; what follows replaces the text above)");
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
            self.any = true;
            self.at_line_start = new.ends_with('\n');
        }
        self.shown = Some((turn, attempt, shown + new.len()));
        Ok(())
    }

    fn end_line(&mut self, terminal: &mut Terminal) -> Result<(), Stop> {
        if !self.at_line_start {
            terminal.write("\n")?;
            self.at_line_start = true;
        }
        Ok(())
    }

    /// What is still to be said when the query has ended.
    fn close(&mut self, terminal: &mut Terminal, answer: &Answer) -> Result<(), Stop> {
        if self.format != Format::Text {
            return Ok(());
        }
        if !self.streams(terminal) {
            let text = answer.text.trim_end();
            if !text.is_empty() {
                terminal.line(text)?;
            }
        } else {
            self.end_line(terminal)?;
            // A forced end adds a line that no turn has shown.
            if let Outcome::Forced { .. } = answer.outcome
                && let Some(notice) = answer.text.lines().last()
            {
                terminal.line(notice)?;
            }
        }
        match (&answer.outcome, answer.outcome.reason()) {
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

/// What went wrong, its code, and where to look where that is with the model's provider.
fn failure(code: &str, detail: &str) -> String {
    let remedy = match code {
        "unauthorized" | "forbidden" | "quota" => "; `oracle doctor` says which key was used",
        "model_not_found" => "; `oracle models` lists those that there are",
        "connect" | "dns" | "tls" | "headers_timeout" => "; `oracle doctor` tries the connection",
        _ => "",
    };
    format!("{detail} ({code}){remedy}")
}

/// Takes a query back. It may have ended by itself in the meantime.
pub(super) fn take_back(
    session: &SessionHandle,
    query: QueryId,
) -> BoxFuture<'static, Result<(), AskError>> {
    let session = session.clone();
    let taken_back = async move {
        match session.cancel(Some(query)).await {
            Ok(()) | Err(AskError::Refused(Refusal::NothingRunning)) => Ok(()),
            Err(error) => Err(error),
        }
    };
    taken_back.boxed()
}

/// What happens now, in a few words.
fn status(event: &Event) -> Option<String> {
    let turn = event.turn.map_or(0, |turn| turn.0 + 1);
    let field = |name: &str| event.payload[name].as_str().unwrap_or_default().to_owned();
    match event.kind.as_str() {
        "query.accepted" => Some("classifying".into()),
        "query.doubted" => Some(format!("classifying · asking {}", field("model"))),
        "query.classified" => {
            let kind = event.payload["classification"]["query_type"]
                .as_str()
                .unwrap_or_default();
            Some(format!("{kind} question"))
        }
        "turn.started" => Some(format!("turn {turn} · asking {}", field("model"))),
        "turn.restarted" => Some(format!("turn {turn} · asking {} again", field("model"))),
        "signal.emitted" => Some(format!("turn {turn} · signal {}", field("type"))),
        "tool.started" => Some(format!("turn {turn} · {}", field("name"))),
        "delegation.started" => Some(format!("turn {turn} · a sub-agent is at work")),
        "delegation.cancelled" => Some(format!("turn {turn} · waiting for the sub-agent to end")),
        "budget.context.compacting" => {
            let amount = |name: &str| grouped(event.payload["before"][name].as_u64().unwrap_or(0));
            let (used, limit) = (amount("used"), amount("limit"));
            Some(format!(
                "turn {turn} · compacting the conversation (≈ {used} of {limit} tokens)"
            ))
        }
        "budget.context.compacted" => {
            let after = grouped(event.payload["after"].as_u64().unwrap_or(0));
            Some(format!(
                "turn {turn} · the conversation is compacted (≈ {after} tokens now)"
            ))
        }
        "budget.context.compaction_failed" => Some(format!(
            "turn {turn} · the conversation could not be compacted"
        )),
        "llm.retried" => Some(format!("turn {turn} · waiting to ask again")),
        "supervisor.restarted" => Some(format!("turn {turn} · restarted")),
        _ => None,
    }
}

/// A figure that people can read.
fn grouped(figure: u64) -> String {
    let digits = figure.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests;
