//! An answer in chunks, as server-sent events.
//!
//! The connection pulls the stream: a chunk is built when its reader has taken the previous one, so
//! a slow reader costs the memory of one turn's text. Records missed meanwhile are read from the
//! journal.

use std::collections::VecDeque;

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use serde::Serialize;

use super::{
    completions::{Session, failure},
    shapes::{AnswerDetails, Chunk, ChunkChoice, Delta, FinishReason, Head},
};
use crate::{
    actor::{Answer, AnswerText, Progress, SessionRecord, Watch},
    http::{DrainSignal, Problem, sse},
    model::record::{
        AgentFact, BudgetFact, Fact, LlmFact, QueryFact, Record, SignalFact, SupervisorFact,
        ToolFact, TurnFact,
    },
};

/// Maximum length of the text in one event, in bytes.
const PIECE: usize = 4 << 10;

pub(super) struct StreamContext {
    pub head: Head,
    /// Whether the last chunk has the usage.
    pub include_usage: bool,
    /// Whether progress is sent as reasoning.
    pub progress: bool,
    pub session: Session,
    pub drain: DrainSignal,
}

pub(super) fn events(context: StreamContext, watch: Watch) -> impl Stream<Item = Event> {
    let telling = ChunkBody::begin(context, watch);
    stream::unfold(telling, |mut telling| async {
        let next = telling.next().await?;
        Some((next, telling))
    })
}

struct ChunkBody {
    context: StreamContext,
    /// `None` after the end.
    watch: Option<Watch>,
    ready: VecDeque<Event>,
    text: AnswerText,
}

impl ChunkBody {
    fn begin(context: StreamContext, watch: Watch) -> Self {
        let (ready, text) = (VecDeque::new(), AnswerText::default());
        let mut telling = Self {
            context,
            watch: Some(watch),
            ready,
            text,
        };
        telling.delta(Delta {
            role: Some("assistant"),
            content: Some(String::new()),
            ..Delta::default()
        });
        telling
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let watch = self.watch.take()?;
            match self.advance(watch).await {
                Ok(watch) => self.watch = watch,
                Err(problem) => self.say(&problem.body()),
            }
        }
    }

    /// Waits for the next progress; returns the watch unless the query has ended.
    async fn advance(&mut self, mut watch: Watch) -> Result<Option<Watch>, Problem> {
        let happened = tokio::select! {
            happened = watch.next() => happened?,
            () = self.context.drain.over() => return Err(Problem::ends()),
        };
        match happened {
            Some(Progress::Record(record)) => self.record(&record),
            // Such text may have to be retracted.
            Some(_) => {}
            None => {
                let answer = watch.answer().await?;
                self.end(&answer);
                return Ok(None);
            }
        }
        Ok(Some(watch))
    }

    fn record(&mut self, record: &SessionRecord) {
        if self.context.progress
            && let Some(line) = line(record)
        {
            self.delta(Delta {
                reasoning_content: Some(line),
                ..Delta::default()
            });
        }
        if let Some(text) = self.text.record(record) {
            self.text(&text);
        }
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
            self.delta(Delta {
                content: Some(piece.to_owned()),
                ..Delta::default()
            });
            rest = after;
        }
    }

    /// Queues the remaining events of a query that has ended.
    fn end(&mut self, answer: &Answer) {
        let Some(reason) = FinishReason::of(&answer.outcome) else {
            if let Some(problem) = failure(&answer.outcome) {
                self.say(&problem.body());
            }
            return;
        };
        // A forced end adds a sentence that is part of no turn.
        if let Some(rest) = self.text.end(answer) {
            self.text(&rest);
        }
        let told = AnswerDetails::of(self.context.session.handle.key(), answer);
        let mut last = self
            .context
            .head
            .chunk(Some(ChunkChoice::new(Delta::default(), Some(reason))));
        last.oracle = Some(told);
        let last = self.with_usage(last);
        self.ready.push_back(last);
        if self.context.include_usage {
            let mut usage = self.context.head.chunk(None);
            usage.usage = Some(Some(answer.usage.into()));
            let usage = event_of(&usage);
            self.ready.push_back(usage);
        }
        self.ready.push_back(Event::default().data("[DONE]"));
    }

    fn delta(&mut self, delta: Delta) {
        let chunk = self.context.head.chunk(Some(ChunkChoice::new(delta, None)));
        let event = self.with_usage(chunk);
        self.ready.push_back(event);
    }

    /// If the usage is requested, it is null in every chunk but the last.
    fn with_usage(&self, mut chunk: Chunk<'_>) -> Event {
        chunk.usage = self.context.include_usage.then_some(None);
        event_of(&chunk)
    }

    fn say(&mut self, body: &impl Serialize) {
        self.ready.push_back(event_of(body));
    }
}

fn event_of(body: &impl Serialize) -> Event {
    sse::with(Event::default(), body)
}

/// Describes a record to a reader in one line, or returns `None` if it has no meaning for them.
fn line(record: &Record) -> Option<String> {
    let turn = record.turn.map_or(0, |turn| turn.0 + 1);
    let line = match &record.fact {
        Fact::Query(QueryFact::Doubted(doubted)) => {
            format!("Asking {} to classify the question.", doubted.model)
        }
        Fact::Query(QueryFact::Classified(classified)) => {
            let kind = classified.classification.query_type;
            format!("Question type: {kind}.")
        }
        Fact::Turn(TurnFact::Started(started)) => format!("Turn {turn}: asking {}.", started.model),
        Fact::Turn(TurnFact::Restarted(again)) => {
            format!("Turn {turn}: asking {} again.", again.model)
        }
        Fact::Signal(SignalFact::Emitted(signal)) => {
            format!("Turn {turn}: signal {}.", signal.kind())
        }
        Fact::Tool(ToolFact::Started(call)) => format!("Turn {turn}: tool {}.", call.name),
        Fact::Agent(AgentFact::DelegationStarted(_)) => {
            format!("Turn {turn}: a sub-agent is running.")
        }
        Fact::Budget(BudgetFact::ContextCompacting(_)) => {
            format!("Turn {turn}: compacting the conversation.")
        }
        Fact::Llm(LlmFact::Retried(_)) => format!("Turn {turn}: waiting to retry."),
        Fact::Supervisor(SupervisorFact::Restarted(_)) => format!("Turn {turn}: restarted."),
        Fact::Agent(AgentFact::EscalationRaised(raised)) => raised.notice.clone(),
        _ => return None,
    };
    Some(line + "\n")
}
