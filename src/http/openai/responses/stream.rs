//! A response as a stream of events.
//!
//! The text of each turn is an item of its own, and so is that of a further attempt at a turn: the
//! item before it ends as `incomplete`. The last event has the response, whose output is the answer
//! alone.

use std::collections::VecDeque;

use axum::response::sse::Event;
use serde_json::{Value, json};

use super::{
    super::{
        answering::{Begun, End},
        shapes::TurnDetails,
        stream::Writer,
    },
    shapes::{Response, Status, function_call, message, output_text},
};
use crate::{
    actor::{AnswerText, Piece, Progress},
    http::{Problem, StreamText, sse},
    model::{SessionKey, ToolCall, Turn},
};

/// A message whose text arrives.
struct OpenMessage {
    id: String,
    turn: Turn,
    text: String,
}

pub(super) struct EventWriter {
    /// The response before its end.
    response: Response,
    /// Which text the stream has.
    shown: StreamText,
    /// Whether events report turns and the work of tools.
    has_progress: bool,
    key: SessionKey,
    ready: VecDeque<Event>,
    number: u64,
    items: usize,
    open: Option<OpenMessage>,
    text: AnswerText,
}

impl Writer for EventWriter {
    fn ready(&mut self) -> &mut VecDeque<Event> {
        &mut self.ready
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), Problem> {
        if let Progress::Record(record) = progress
            && self.has_progress
            && let Some(details) = TurnDetails::of(record)
        {
            self.event("oracle.progress", json!({}), Some(details));
        }
        if self.shown == StreamText::Turns
            && let Some(piece) = self.text.next(progress)
        {
            self.piece(&piece);
        }
        Ok(())
    }

    fn end(&mut self, end: &End) -> Result<(), Problem> {
        let turn = end.turn;
        let status = self.response.clone().end(&self.key, end, 0).status;
        // The open message becomes the answer, unless the answer is more than the last turn's text.
        let open = self.open.as_ref().map(|open| (open.turn, &*open.text));
        let rest = open.and_then(|(at, shown)| Some((at, end.text.strip_prefix(shown)?)));
        match rest {
            _ if status == Status::Failed => {}
            Some((at, rest)) => self.add(rest, at),
            None => {
                let is_earlier = open.is_some_and(|(at, _)| at < turn);
                self.close(match is_earlier {
                    true => Status::Completed,
                    false => Status::Incomplete,
                });
                self.add(&end.text, turn);
            }
        }
        let first = self.items;
        self.close(match status {
            Status::Failed => Status::Incomplete,
            status => status,
        });
        for call in &end.calls {
            self.call(call, turn);
        }
        let response = self.response.clone().end(&self.key, end, first);
        let kind = match response.status {
            Status::Failed => "response.failed",
            Status::Incomplete => "response.incomplete",
            Status::Completed | Status::InProgress => "response.completed",
        };
        self.event(kind, json!({ "response": response }), None);
        Ok(())
    }

    fn fail(&mut self, problem: &Problem) {
        self.close(Status::Incomplete);
        let response = self.response.clone().broken(problem);
        self.event("response.failed", json!({ "response": response }), None);
    }
}

impl EventWriter {
    pub(super) fn begin(
        response: Response,
        shown: StreamText,
        has_progress: bool,
        begun: &Begun,
    ) -> Self {
        let created = json!({ "response": response });
        let mut writer = Self {
            response,
            shown,
            has_progress,
            key: begun.session.handle.key().clone(),
            ready: VecDeque::new(),
            number: 0,
            items: 0,
            open: None,
            text: AnswerText::default(),
        };
        for kind in ["response.created", "response.in_progress"] {
            writer.event(kind, created.clone(), None);
        }
        writer
    }

    fn piece(&mut self, piece: &Piece) {
        let open = self.open.as_ref();
        let begins = open.is_none_or(|open| open.turn != piece.turn);
        if begins || piece.replaces {
            let status = match piece.replaces {
                true => Status::Incomplete,
                false => Status::Completed,
            };
            self.close(status);
        }
        self.add(&piece.text, piece.turn);
    }

    fn add(&mut self, text: &str, turn: Turn) {
        if text.is_empty() {
            return;
        }
        let mut open = self.open.take().unwrap_or_else(|| self.open(turn));
        open.text.push_str(text);
        let delta = json!({ "content_index": 0, "delta": text, "logprobs": [] });
        self.change("response.output_text.delta", &open.id, delta, turn);
        self.open = Some(open);
    }

    fn open(&mut self, turn: Turn) -> OpenMessage {
        let id = self.response.id.item("msg", self.items);
        let item = message(&id, Status::InProgress, &[]);
        self.item("response.output_item.added", &item, turn);
        let part = json!({ "content_index": 0, "part": output_text("") });
        self.change("response.content_part.added", &id, part, turn);
        let text = String::new();
        OpenMessage { id, turn, text }
    }

    /// Ends the open message.
    fn close(&mut self, status: Status) {
        let Some(OpenMessage { id, turn, text }) = self.open.take() else {
            return;
        };
        let done = json!({ "content_index": 0, "text": text, "logprobs": [] });
        self.change("response.output_text.done", &id, done, turn);
        let part = output_text(&text);
        let done = json!({ "content_index": 0, "part": part });
        self.change("response.content_part.done", &id, done, turn);
        let item = message(&id, status, &[part]);
        self.item("response.output_item.done", &item, turn);
        self.items += 1;
    }

    fn call(&mut self, call: &ToolCall, turn: Turn) {
        let id = self.response.id.item("fc", self.items);
        let arguments = call.json();
        let begun = function_call(&id, Status::InProgress, call, "");
        self.item("response.output_item.added", &begun, turn);
        let delta = json!({ "delta": arguments });
        self.change("response.function_call_arguments.delta", &id, delta, turn);
        let done = json!({ "arguments": arguments, "name": call.name });
        self.change("response.function_call_arguments.done", &id, done, turn);
        let item = function_call(&id, Status::Completed, call, arguments);
        self.item("response.output_item.done", &item, turn);
        self.items += 1;
    }

    fn item(&mut self, kind: &str, item: &Value, turn: Turn) {
        let data = json!({ "output_index": self.items, "item": item });
        self.event(kind, data, Some(TurnDetails::text(turn)));
    }

    /// Sends a change of an item.
    fn change(&mut self, kind: &str, id: &str, mut change: Value, turn: Turn) {
        change["item_id"] = id.into();
        change["output_index"] = self.items.into();
        self.event(kind, change, Some(TurnDetails::text(turn)));
    }

    fn event(&mut self, kind: &str, mut data: Value, details: Option<TurnDetails>) {
        data["type"] = kind.into();
        data["sequence_number"] = self.number.into();
        if let Some(details) = details {
            data["oracle"] = json!(details);
        }
        self.number += 1;
        self.ready.push_back(sse::named(kind, &data));
    }
}
