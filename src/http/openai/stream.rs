//! An answer in pieces, as server-sent events.
//!
//! Pulled by the connection: nothing is put together before its reader has taken what came before, so a slow
//! one costs what one turn said and no more. Holes that come of that are filled from the journal.

use std::collections::VecDeque;

use axum::response::sse::Event;
use futures_util::{Stream, stream};
use serde::Serialize;

use super::{
    completions::{Session, failure},
    shapes::{Chunk, ChunkChoice, Delta, FinishReason, Head, Told},
};
use crate::{
    actor::{Answer, Progress, SessionRecord, Watch},
    http::{Drain, Problem, sse},
    model::{
        self,
        record::{Fact, TurnFact},
    },
};

/// Longest piece of text in one event, in bytes.
const PIECE: usize = 4 << 10;

/// What a stream tells of.
pub(super) struct Story {
    pub head: Head,
    /// Whether the last piece says what was used.
    pub include_usage: bool,
    /// Whether it tells what goes on, as reasoning.
    pub progress: bool,
    pub session: Session,
    pub drain: Drain,
}

/// Tells it.
pub(super) fn events(story: Story, watch: Watch) -> impl Stream<Item = Event> {
    let telling = Telling::begin(story, watch);
    stream::unfold(telling, |mut telling| async {
        let next = telling.next().await?;
        Some((next, telling))
    })
}

struct Telling {
    story: Story,
    /// None when all is said.
    watch: Option<Watch>,
    /// Events that are still to be taken.
    ready: VecDeque<Event>,
    /// All text so far.
    told: String,
}

impl Telling {
    fn begin(story: Story, watch: Watch) -> Self {
        let (ready, told) = (VecDeque::new(), String::new());
        let mut telling = Self {
            story,
            watch: Some(watch),
            ready,
            told,
        };
        telling.delta(Delta {
            role: Some("assistant"),
            content: Some(String::new()),
            ..Delta::default()
        });
        telling
    }

    /// The next event; none after the last.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let watch = self.watch.take()?;
            match self.go_on(watch).await {
                Ok(watch) => self.watch = watch,
                Err(problem) => self.say(&problem.body()),
            }
        }
    }

    /// Waits for something to tell; gives the watch back unless that was the end.
    async fn go_on(&mut self, mut watch: Watch) -> Result<Option<Watch>, Problem> {
        let happened = tokio::select! {
            happened = watch.next() => happened?,
            () = self.story.drain.over() => return Err(Problem::ends()),
        };
        match happened {
            Some(Progress::Record(record)) => self.record(&record),
            // It may have to be taken back.
            Some(Progress::Frame(_)) => {}
            None => {
                let answer = watch.answer().await?;
                self.end(&answer);
                return Ok(None);
            }
        }
        Ok(Some(watch))
    }

    fn record(&mut self, record: &SessionRecord) {
        if self.story.progress
            && let Some(line) = line(&record.event())
        {
            self.delta(Delta {
                reasoning_content: Some(line),
                ..Delta::default()
            });
        }
        if let Fact::Turn(TurnFact::Replied(replied)) = &record.fact
            && !replied.text.is_empty()
        {
            // The texts of turns are parted by a blank line.
            let parting = if self.told.is_empty() { "" } else { "\n\n" };
            self.text(&format!("{parting}{}", replied.text));
        }
    }

    fn text(&mut self, text: &str) {
        self.told.push_str(text);
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

    /// What is still to be said when the query has ended.
    fn end(&mut self, answer: &Answer) {
        let Some(reason) = FinishReason::of(&answer.outcome) else {
            if let Some(problem) = failure(&answer.outcome) {
                self.say(&problem.body());
            }
            return;
        };
        // A forced end adds a sentence that no turn has said.
        let readable = answer.outcome.readable(&answer.text, answer.turns);
        if let Some(rest) = readable.strip_prefix(&self.told) {
            self.text(rest);
        }
        let told = Told::of(self.story.session.handle.key(), answer);
        let mut last = self
            .story
            .head
            .chunk(Some(ChunkChoice::new(Delta::default(), Some(reason))));
        last.oracle = Some(told);
        let last = self.with_usage(last);
        self.ready.push_back(last);
        if self.story.include_usage {
            let mut usage = self.story.head.chunk(None);
            usage.usage = Some(Some(answer.usage.into()));
            let usage = event_of(&usage);
            self.ready.push_back(usage);
        }
        self.ready.push_back(Event::default().data("[DONE]"));
    }

    fn delta(&mut self, delta: Delta) {
        let chunk = self.story.head.chunk(Some(ChunkChoice::new(delta, None)));
        let event = self.with_usage(chunk);
        self.ready.push_back(event);
    }

    /// Where what was used is asked for, every piece but the last says that it does not know.
    fn with_usage(&self, mut chunk: Chunk<'_>) -> Event {
        chunk.usage = self.story.include_usage.then_some(None);
        event_of(&chunk)
    }

    fn say(&mut self, body: &impl Serialize) {
        self.ready.push_back(event_of(body));
    }
}

fn event_of(body: &impl Serialize) -> Event {
    sse::with(Event::default(), body)
}

/// What an event means to a reader, in a line of words; none where it means nothing to them.
fn line(event: &model::Event) -> Option<String> {
    let turn = event.turn.map_or(0, |turn| turn.0 + 1);
    let text = |name: &str| event.payload[name].as_str().unwrap_or_default();
    let line = match event.kind.as_str() {
        "query.doubted" => format!("Asking {} what kind of question this is.", text("model")),
        "query.classified" => {
            let kind = event.payload["classification"]["query_type"].as_str();
            format!("Taken for a {} question.", kind.unwrap_or_default())
        }
        "turn.started" => format!("Turn {turn}: asking {}.", text("model")),
        "turn.restarted" => format!("Turn {turn}: asking {} again.", text("model")),
        "signal.emitted" => format!("Turn {turn}: signal {}.", text("type")),
        "tool.started" => format!("Turn {turn}: tool {}.", text("name")),
        "delegation.started" => format!("Turn {turn}: a sub-agent is at work."),
        "budget.context.compacting" => format!("Turn {turn}: compacting the conversation."),
        "llm.retried" => format!("Turn {turn}: waiting to ask again."),
        "supervisor.restarted" => format!("Turn {turn}: restarted."),
        "escalation.raised" => text("notice").to_owned(),
        _ => return None,
    };
    Some(line + "\n")
}
