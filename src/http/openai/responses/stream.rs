//! A response as a stream of events.
//!
//! The text of each turn is an item of its own, and so is that of a further attempt at a turn: the
//! item before it ends as `incomplete`. The last event has the response, whose output is the answer
//! alone.

use std::collections::VecDeque;

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    super::{
        answering::{Begun, End, Handover, Session, Tally},
        shapes::TurnDetails,
    },
    shapes::{Head, OutputItem, OutputText, Response, Status, readable},
};
use crate::{
    actor::{AnswerText, Piece, Progress, Watch},
    http::{DrainSignal, Problem, StreamText, sse},
    model::{SessionKey, ToolCall, Turn},
};

pub(super) struct StreamContext {
    pub head: Head,
    pub text: StreamText,
    /// Whether events report turns and the work of tools.
    pub progress: bool,
    pub drain: DrainSignal,
}

pub(super) fn events(context: StreamContext, begun: Begun) -> impl Stream<Item = Event> {
    let body = EventBody::begin(context, begun);
    stream::unfold(body, |mut body| async {
        let next = body.next().await?;
        Some((next, body))
    })
}

/// A message whose text arrives.
struct OpenMessage {
    id: String,
    turn: Turn,
    text: String,
}

struct EventBody {
    context: StreamContext,
    key: SessionKey,
    /// `None` after the end.
    following: Option<(Watch, Session)>,
    /// Whether the response continues a query.
    resumed: bool,
    ready: VecDeque<Event>,
    number: u64,
    items: usize,
    open: Option<OpenMessage>,
    text: AnswerText,
    tally: Tally,
}

impl EventBody {
    fn begin(context: StreamContext, begun: Begun) -> Self {
        let Begun {
            session,
            watch,
            earlier,
            ..
        } = begun;
        let mut body = Self {
            key: session.handle.key().clone(),
            text: AnswerText::default(),
            following: Some((watch, session)),
            resumed: earlier.is_some(),
            ready: VecDeque::new(),
            number: 0,
            items: 0,
            open: None,
            tally: Tally::default(),
            context,
        };
        let response = body.response();
        for kind in ["response.created", "response.in_progress"] {
            body.event(kind, &json!({ "response": response }), None);
        }
        body
    }

    fn response(&self) -> Response {
        self.context.head.response(&self.key)
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let (watch, session) = self.following.take()?;
            match self.advance(watch, session).await {
                Ok(following) => self.following = following,
                Err(problem) => {
                    self.close(Status::Incomplete);
                    let response = self.response().broken(&problem);
                    self.event("response.failed", &json!({ "response": response }), None);
                }
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
            self.end(&End::Answer(answer));
            return Ok(None);
        };
        if let Progress::Record(record) = &progress {
            if self.context.progress
                && let Some(details) = TurnDetails::of(record)
            {
                self.event("oracle.progress", &json!({}), Some(&details));
            }
            if let Some(mut handover) = self.tally.add(record) {
                // Clients parse every text in the format.
                if !self.context.head.options.format.is_text() {
                    handover.text.clear();
                }
                let calls = handover.calls.clone();
                self.end(&End::Calls(handover));
                session.keep(&calls);
                return Ok(None);
            }
        }
        if self.context.text == StreamText::Turns
            && let Some(piece) = self.text.next(&progress)
        {
            self.piece(&piece);
        }
        Ok(Some((watch, session)))
    }

    fn piece(&mut self, piece: &Piece) {
        let begins = self
            .open
            .as_ref()
            .is_none_or(|open| open.turn != piece.turn);
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
        if self.open.is_none() {
            let id = self.context.head.id.item("msg", self.items);
            let item = OutputItem::message(id.clone(), Status::InProgress, None);
            self.item("response.output_item.added", &item, turn);
            let part = OutputText::new(String::new());
            self.part(
                "response.content_part.added",
                &id,
                json!({ "part": part }),
                turn,
            );
            let text = String::new();
            self.open = Some(OpenMessage { id, turn, text });
        }
        let Some(open) = &mut self.open else { return };
        open.text.push_str(text);
        let id = open.id.clone();
        let delta = json!({ "delta": text, "logprobs": [] });
        self.part("response.output_text.delta", &id, delta, turn);
    }

    /// Ends the open message.
    fn close(&mut self, status: Status) {
        let Some(OpenMessage { id, turn, text }) = self.open.take() else {
            return;
        };
        let done = json!({ "text": text, "logprobs": [] });
        self.part("response.output_text.done", &id, done, turn);
        let part = json!({ "part": OutputText::new(text.clone()) });
        self.part("response.content_part.done", &id, part, turn);
        let item = OutputItem::message(id, status, Some(text));
        self.item("response.output_item.done", &item, turn);
        self.items += 1;
    }

    /// Queues the remaining events.
    fn end(&mut self, end: &End) {
        let turn = match end {
            End::Answer(answer) => Turn(answer.turns.saturating_sub(1)),
            End::Calls(handover) => handover.turn,
        };
        let wanted = match end {
            End::Answer(answer) => readable(answer),
            End::Calls(Handover { text, .. }) => text.clone(),
        };
        let response = self.response();
        let status = response
            .clone()
            .end(self.context.head.id, &self.key, end, 0)
            .status;
        // The open message becomes the answer, unless the answer is more than the last turn's text.
        let open = self.open.as_ref().map(|open| (open.turn, &*open.text));
        let rest = open.and_then(|(at, shown)| Some((at, wanted.strip_prefix(shown)?)));
        match rest {
            _ if status == Status::Failed => {}
            Some((at, rest)) => self.add(rest, at),
            None => {
                let is_earlier = open.is_some_and(|(at, _)| at < turn);
                self.close(match is_earlier {
                    true => Status::Completed,
                    false => Status::Incomplete,
                });
                self.add(&wanted, turn);
            }
        }
        let first = self.items;
        self.close(match status {
            Status::Failed => Status::Incomplete,
            status => status,
        });
        if let End::Calls(handover) = end {
            for call in &handover.calls {
                self.call(call, turn);
            }
        }
        let response = response.end(self.context.head.id, &self.key, end, first);
        let kind = match response.status {
            Status::Failed => "response.failed",
            Status::Incomplete => "response.incomplete",
            Status::Completed | Status::InProgress => "response.completed",
        };
        self.event(kind, &json!({ "response": response }), None);
    }

    fn call(&mut self, call: &ToolCall, turn: Turn) {
        let id = self.context.head.id.item("fc", self.items);
        let begun = OutputItem::call(id.clone(), Status::InProgress, call, String::new());
        self.item("response.output_item.added", &begun, turn);
        let place =
            |more: Value| merged(json!({ "item_id": id, "output_index": self.items }), more);
        let delta = place(json!({ "delta": call.arguments }));
        let done = place(json!({ "arguments": call.arguments, "name": call.name }));
        self.event(
            "response.function_call_arguments.delta",
            &delta,
            Some(&TurnDetails::text(turn)),
        );
        self.event(
            "response.function_call_arguments.done",
            &done,
            Some(&TurnDetails::text(turn)),
        );
        let item = OutputItem::call(id, Status::Completed, call, call.arguments.clone());
        self.item("response.output_item.done", &item, turn);
        self.items += 1;
    }

    fn item(&mut self, kind: &str, item: &OutputItem, turn: Turn) {
        let data = json!({ "output_index": self.items, "item": item });
        self.event(kind, &data, Some(&TurnDetails::text(turn)));
    }

    fn part(&mut self, kind: &str, id: &str, more: Value, turn: Turn) {
        let place = json!({ "item_id": id, "output_index": self.items, "content_index": 0 });
        self.event(kind, &merged(place, more), Some(&TurnDetails::text(turn)));
    }

    fn event(&mut self, kind: &str, data: &Value, details: Option<&TurnDetails>) {
        let event = NamedEvent {
            kind,
            sequence_number: self.number,
            data: data.as_object(),
            oracle: details,
        };
        self.number += 1;
        self.ready.push_back(sse::named(kind, &event));
    }
}

#[derive(Serialize)]
struct NamedEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    sequence_number: u64,
    #[serde(flatten)]
    data: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oracle: Option<&'a TurnDetails>,
}

fn merged(mut place: Value, more: Value) -> Value {
    if let (Value::Object(place), Value::Object(more)) = (&mut place, more) {
        place.extend(more);
    }
    place
}
