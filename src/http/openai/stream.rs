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
    answering::{Begun, Handover, Session, Tally},
    completions::failure,
    shapes::{
        AnswerDetails, ChatMessageCall, Chunk, ChunkChoice, ChunkDetails, Delta, FinishReason,
        Head, TurnDetails,
    },
};
use crate::{
    actor::{Answer, AnswerText, Piece, Progress, SessionRecord, Watch},
    http::{DrainSignal, Problem, StreamText, sse},
    model::{
        QueryId, Turn, Usage,
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
    /// Whether the answer has no format.
    pub is_text: bool,
    /// Whether progress is sent as reasoning.
    pub progress: bool,
    pub drain: DrainSignal,
}

pub(super) fn events(context: StreamContext, begun: Begun) -> impl Stream<Item = Event> {
    let telling = ChunkBody::begin(context, begun);
    stream::unfold(telling, |mut telling| async {
        let next = telling.next().await?;
        Some((next, telling))
    })
}

struct ChunkBody {
    context: StreamContext,
    /// `None` after the end.
    following: Option<(Watch, Session)>,
    /// Whether the response continues a query.
    resumed: bool,
    query: QueryId,
    ready: VecDeque<Event>,
    text: AnswerText,
    tally: Tally,
    /// The turn whose text was sent last.
    last: Turn,
}

impl ChunkBody {
    fn begin(context: StreamContext, begun: Begun) -> Self {
        let Begun {
            session,
            watch,
            earlier,
            ..
        } = begun;
        let mut telling = Self {
            context,
            query: watch.query(),
            following: Some((watch, session)),
            resumed: earlier.is_some(),
            ready: VecDeque::new(),
            text: AnswerText::after(earlier.unwrap_or_default()),
            tally: Tally::default(),
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
            let (watch, session) = self.following.take()?;
            match self.advance(watch, session).await {
                Ok(following) => self.following = following,
                Err(problem) => self.say(&problem.body()),
            }
        }
    }

    /// Waits for the next progress; returns the watch unless the response has ended.
    async fn advance(
        &mut self,
        mut watch: Watch,
        session: Session,
    ) -> Result<Option<(Watch, Session)>, Problem> {
        let happened = tokio::select! {
            happened = watch.next() => happened?,
            () = self.context.drain.over() => return Err(Problem::ends()),
        };
        let Some(progress) = happened else {
            let mut answer = watch.answer().await?;
            if self.resumed {
                answer.usage = self.tally.usage;
            }
            self.end(&answer, &session)?;
            return Ok(None);
        };
        if let Progress::Record(record) = &progress {
            self.record(record);
            if let Some(handover) = self.tally.add(record) {
                self.hand_over(handover, session);
                return Ok(None);
            }
        }
        if self.context.text == StreamText::Turns
            && let Some(piece) = self.text.next(&progress)
        {
            self.piece(piece, &session)?;
        }
        Ok(Some((watch, session)))
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

    fn piece(&mut self, piece: Piece, session: &Session) -> Result<(), Problem> {
        let follows = piece.is_apart && !piece.text.is_empty();
        // Two turns' texts are no JSON.
        if piece.replaces || (follows && !self.context.is_text) {
            return Err(self.retracted(session));
        }
        if follows {
            // Not of the new turn: the answer may begin there.
            self.text("\n\n", self.last);
        }
        self.text(&piece.text, piece.turn);
        Ok(())
    }

    fn retracted(&self, session: &Session) -> Problem {
        let (query, name) = (self.query, &session.handle.key().name);
        let then = match session.memory {
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
    fn end(&mut self, answer: &Answer, session: &Session) -> Result<(), Problem> {
        let Some(reason) = FinishReason::of(answer) else {
            return failure(&answer.outcome).map_or(Ok(()), Err);
        };
        let from = match self.context.text {
            StreamText::Turns => {
                // A forced end adds a sentence that is part of no turn.
                let end = self.text.end(answer);
                let (from, rest) = end.ok_or_else(|| self.retracted(session))?;
                self.piece(rest, session)?;
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
            ..AnswerDetails::of(session.handle.key(), answer)
        };
        self.finish(reason, told, answer.usage);
        Ok(())
    }

    /// Queues the remaining events of a query that waits, and keeps its session.
    fn hand_over(&mut self, handover: Handover, session: Session) {
        if self.context.text == StreamText::Answer && self.context.is_text {
            self.text(&handover.text, handover.turn);
        }
        let told = AnswerDetails::of_calls(session.handle.key(), &handover);
        session.keep(&handover.calls);
        for (index, call) in handover.calls.into_iter().enumerate() {
            let mut call = ChatMessageCall::from(call);
            call.index = Some(index);
            let called = Delta {
                tool_calls: vec![call],
                ..Delta::default()
            };
            self.delta(called, Some(TurnDetails::text(handover.turn)));
        }
        self.finish(FinishReason::ToolCalls, told, handover.usage);
    }

    fn finish(&mut self, reason: FinishReason, told: AnswerDetails, usage: Usage) {
        let choice = ChunkChoice::new(Delta::default(), Some(reason));
        let mut last = self.context.head.chunk(Some(choice));
        last.oracle = Some(ChunkDetails::End(told));
        let last = self.with_usage(last);
        self.ready.push_back(last);
        if self.context.include_usage {
            let mut chunk = self.context.head.chunk(None);
            chunk.usage = Some(Some(usage.into()));
            let chunk = event_of(&chunk);
            self.ready.push_back(chunk);
        }
        self.ready.push_back(Event::default().data("[DONE]"));
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
