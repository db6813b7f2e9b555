//! An answer in chunks, as server-sent events.
//!
//! The connection pulls the stream: a chunk is built when its reader has taken the previous one, so
//! a slow reader costs the memory of one turn's text. Records missed meanwhile are read from the
//! journal; the record of a reply has the text of missed frames.

use std::collections::VecDeque;

use axum::{http::StatusCode, response::sse::Event};
use futures_util::{Stream, stream};
use serde::Serialize;

use super::{
    completions::{Session, failure},
    shapes::{
        AnswerDetails, Chunk, ChunkChoice, ChunkDetails, Delta, FinishReason, Head, TurnDetails,
    },
};
use crate::{
    actor::{Answer, AnswerText, Piece, Progress, SessionRecord, Watch},
    http::{DrainSignal, Problem, StreamText, sse},
    model::{
        QueryId, Turn,
        record::{
            AgentFact, BudgetFact, Fact, LlmFact, QueryFact, Record, SignalFact, SupervisorFact,
            ToolFact, TurnFact,
        },
    },
};

/// Maximum length of the text in one event, in bytes.
const PIECE: usize = 4 << 10;

pub(super) struct StreamContext {
    pub head: Head,
    /// Whether the last chunk has the usage.
    pub include_usage: bool,
    pub text: StreamText,
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
    query: QueryId,
    ready: VecDeque<Event>,
    text: AnswerText,
    /// The turn whose text was sent last.
    last: Turn,
}

impl ChunkBody {
    fn begin(context: StreamContext, watch: Watch) -> Self {
        let mut telling = Self {
            context,
            query: watch.query(),
            watch: Some(watch),
            ready: VecDeque::new(),
            text: AnswerText::default(),
            last: Turn::default(),
        };
        let begin = Delta {
            role: Some("assistant"),
            content: Some(String::new()),
            ..Delta::default()
        };
        telling.delta(begin, None);
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
        let Some(progress) = happened else {
            let answer = watch.answer().await?;
            self.end(&answer)?;
            return Ok(None);
        };
        if let Progress::Record(record) = &progress {
            self.record(record);
        }
        if self.context.text == StreamText::Turns
            && let Some(piece) = self.text.next(&progress)
        {
            self.piece(piece)?;
        }
        Ok(Some(watch))
    }

    fn record(&mut self, record: &SessionRecord) {
        if let Some(details) = TurnDetails::of(record) {
            self.delta(Delta::default(), Some(details));
        }
        if self.context.progress
            && let Some(line) = line(record)
        {
            let progress = Delta {
                reasoning_content: Some(line),
                ..Delta::default()
            };
            self.delta(progress, None);
        }
    }

    fn piece(&mut self, piece: Piece) -> Result<(), Problem> {
        if piece.replaces {
            return Err(self.retracted());
        }
        if piece.is_apart && !piece.text.is_empty() {
            // Not of the new turn: the answer may begin there.
            self.text("\n\n", self.last);
        }
        self.text(&piece.text, piece.turn);
        Ok(())
    }

    fn retracted(&self) -> Problem {
        let Self { context, query, .. } = self;
        let name = &context.session.handle.key().name;
        let then = match context.session.memory {
            Some(_) => "the query is cancelled: send it again".to_owned(),
            None => format!(
                "the query does not end with this stream: see \
                 `GET /api/sessions/{name}/queries/{query}` for its answer"
            ),
        };
        let what = format!(
            "text in this stream is not part of the answer, because a call of the model did not \
             complete after it; {then}, or send `stream_options: {{\"oracle\": \"answer\"}}` to \
             receive only the answer"
        );
        Problem::new(StatusCode::BAD_GATEWAY, "retracted", what)
    }

    fn text(&mut self, text: &str, turn: Turn) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
            let delta = Delta {
                content: Some(piece.to_owned()),
                ..Delta::default()
            };
            self.delta(delta, Some(TurnDetails::text(turn)));
            self.last = turn;
            rest = after;
        }
    }

    /// Queues the remaining events of a query that has ended.
    fn end(&mut self, answer: &Answer) -> Result<(), Problem> {
        let Some(reason) = FinishReason::of(&answer.outcome) else {
            return failure(&answer.outcome).map_or(Ok(()), Err);
        };
        let from = match self.context.text {
            StreamText::Turns => {
                // A forced end adds a sentence that is part of no turn.
                let end = self.text.end(answer);
                let (from, rest) = end.ok_or_else(|| self.retracted())?;
                self.piece(rest)?;
                from
            }
            StreamText::Answer => {
                let from = Turn(answer.turns.saturating_sub(1));
                let text = answer.outcome.readable(&answer.text, answer.turns);
                self.text(&text, from);
                from
            }
        };
        let told = AnswerDetails {
            answer_from: Some(from),
            ..AnswerDetails::of(self.context.session.handle.key(), answer)
        };
        let mut last = self
            .context
            .head
            .chunk(Some(ChunkChoice::new(Delta::default(), Some(reason))));
        last.oracle = Some(ChunkDetails::End(told));
        let last = self.with_usage(last);
        self.ready.push_back(last);
        if self.context.include_usage {
            let mut usage = self.context.head.chunk(None);
            usage.usage = Some(Some(answer.usage.into()));
            let usage = event_of(&usage);
            self.ready.push_back(usage);
        }
        self.ready.push_back(Event::default().data("[DONE]"));
        Ok(())
    }

    fn delta(&mut self, delta: Delta, details: Option<TurnDetails>) {
        let mut chunk = self.context.head.chunk(Some(ChunkChoice::new(delta, None)));
        chunk.oracle = details.map(ChunkDetails::Turn);
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
