//! An answer in chunks, as server-sent events.
//!
//! The connection pulls the stream: a chunk is built when its reader has taken the previous one, so
//! a slow reader costs the memory of one turn's text. Records missed meanwhile are read from the
//! journal; the record of a reply has the text of missed frames.

use std::{collections::VecDeque, ops::ControlFlow};

use axum::{http::StatusCode, response::sse::Event};
use futures_util::{Stream, stream};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    answering::{Begun, End},
    shapes::{
        AnswerDetails, Chunk, ChunkDetails, FinishReason, Head, TurnDetails, choice, tool_call,
        usage,
    },
};
use crate::{
    actor::{AnswerText, Piece, Progress},
    http::{Problem, StreamText, sse},
    model::{QueryId, SessionKey, Turn},
};

/// Maximum length of the text in one event, in bytes.
const PIECE: usize = 4 << 10;

/// Writes a response as events.
pub(super) trait Writer: Sized {
    /// The events that are not sent yet.
    fn ready(&mut self) -> &mut VecDeque<Event>;

    fn progress(&mut self, progress: &Progress) -> Result<(), Problem>;

    fn end(&mut self, end: &End) -> Result<(), Problem>;

    /// Ends the stream without an answer.
    fn fail(&mut self, problem: &Problem);

    /// Follows the query while the stream is read.
    fn events(self, begun: Begun) -> impl Stream<Item = Event> {
        stream::unfold((self, Some(begun)), |(mut writer, mut following)| async {
            loop {
                if let Some(event) = writer.ready().pop_front() {
                    return Some((event, (writer, following)));
                }
                let written = match following.take()?.next().await {
                    Ok(ControlFlow::Continue((begun, progress))) => {
                        let written = writer.progress(&progress);
                        following = written.is_ok().then_some(begun);
                        written
                    }
                    Ok(ControlFlow::Break(end)) => writer.end(&end),
                    Err(problem) => Err(problem),
                };
                if let Err(problem) = written {
                    writer.fail(&problem);
                }
            }
        })
    }
}

pub(super) struct ChunkWriter {
    head: Head,
    /// Whether the last chunk has the usage.
    include_usage: bool,
    /// Which text the stream has.
    shown: StreamText,
    key: SessionKey,
    query: QueryId,
    /// Whether the query ends with the stream.
    in_memory: bool,
    /// Whether the answer has no format.
    is_text: bool,
    ready: VecDeque<Event>,
    text: AnswerText,
    /// The turn whose text was sent last.
    last: Turn,
}

impl Writer for ChunkWriter {
    fn ready(&mut self) -> &mut VecDeque<Event> {
        &mut self.ready
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), Problem> {
        if let Progress::Record(record) = progress
            && let Some(details) = TurnDetails::of(record)
        {
            self.delta(json!({}), Some(details));
        }
        if self.shown == StreamText::Turns
            && let Some(piece) = self.text.next(progress)
        {
            self.piece(piece)?;
        }
        Ok(())
    }

    fn end(&mut self, end: &End) -> Result<(), Problem> {
        if let Some(problem) = end.failure() {
            return Err(problem);
        }
        let mut details = AnswerDetails::of(&self.key, end);
        match (&end.answer, self.shown) {
            (Some(answer), StreamText::Turns) => {
                // A forced end adds a sentence that is part of no turn.
                let rest = self.text.end(answer);
                let (from, rest) = rest.ok_or_else(|| self.retracted())?;
                self.piece(rest)?;
                details.answer_from = Some(from);
            }
            (Some(_), StreamText::Answer) => {
                self.text(&end.text, end.turn);
                details.answer_from = Some(end.turn);
            }
            (None, StreamText::Answer) => self.text(&end.text, end.turn),
            (None, StreamText::Turns) => {}
        }
        for (index, call) in end.calls.iter().enumerate() {
            let mut call = tool_call(call);
            call["index"] = index.into();
            let details = TurnDetails::text(end.turn);
            self.delta(json!({ "tool_calls": [call] }), Some(details));
        }
        let choice = choice("delta", json!({}), Some(FinishReason::of(end)));
        self.chunk(Some(choice), Some(ChunkDetails::End(details)), None);
        if self.include_usage {
            self.chunk(None, None, Some(usage(end.usage)));
        }
        self.ready.push_back(Event::default().data("[DONE]"));
        Ok(())
    }

    fn fail(&mut self, problem: &Problem) {
        self.ready.push_back(event_of(&problem.body()));
    }
}

impl ChunkWriter {
    pub(super) fn begin(head: Head, include_usage: bool, shown: StreamText, begun: &Begun) -> Self {
        let mut writer = Self {
            head,
            include_usage,
            shown,
            key: begun.session.handle.key().clone(),
            query: begun.watch.query(),
            in_memory: begun.session.memory.is_some(),
            is_text: begun.is_text,
            ready: VecDeque::new(),
            text: AnswerText::after(begun.earlier.clone().unwrap_or_default()),
            last: Turn::default(),
        };
        writer.delta(json!({ "role": "assistant", "content": "" }), None);
        writer
    }

    fn piece(&mut self, piece: Piece) -> Result<(), Problem> {
        let follows = piece.is_apart && !piece.text.is_empty();
        // Two turns' texts are no JSON.
        if piece.replaces || (follows && !self.is_text) {
            return Err(self.retracted());
        }
        if follows {
            // Not of the new turn: the answer may begin there.
            self.text("\n\n", self.last);
        }
        self.text(&piece.text, piece.turn);
        Ok(())
    }

    fn retracted(&self) -> Problem {
        let (query, name) = (self.query, &self.key.name);
        let then = match self.in_memory {
            true => "the query is cancelled: send it again".to_owned(),
            false => format!(
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
            self.delta(json!({ "content": piece }), Some(TurnDetails::text(turn)));
            self.last = turn;
            rest = after;
        }
    }

    fn delta(&mut self, delta: Value, details: Option<TurnDetails>) {
        let choice = choice("delta", delta, None);
        self.chunk(Some(choice), details.map(ChunkDetails::Turn), None);
    }

    fn chunk(&mut self, choice: Option<Value>, oracle: Option<ChunkDetails>, usage: Option<Value>) {
        let chunk = Chunk {
            head: &self.head,
            object: "chat.completion.chunk",
            choices: choice.into_iter().collect(),
            // If it is requested, it is null in every chunk but the last.
            usage: self.include_usage.then_some(usage),
            oracle,
        };
        self.ready.push_back(event_of(&chunk));
    }
}

fn event_of(body: &impl Serialize) -> Event {
    sse::with(Event::default(), body)
}
