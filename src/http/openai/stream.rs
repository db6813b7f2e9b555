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

/// Maximum length of the text in one event, in bytes.
const PIECE: usize = 4 << 10;

pub(super) struct Story {
    pub head: Head,
    /// Whether the last chunk has the usage.
    pub include_usage: bool,
    /// Whether progress is sent as reasoning.
    pub progress: bool,
    pub session: Session,
    pub drain: Drain,
}

pub(super) fn events(story: Story, watch: Watch) -> impl Stream<Item = Event> {
    let telling = ChunkBody::begin(story, watch);
    stream::unfold(telling, |mut telling| async {
        let next = telling.next().await?;
        Some((next, telling))
    })
}

struct ChunkBody {
    story: Story,
    /// `None` after the end.
    watch: Option<Watch>,
    ready: VecDeque<Event>,
    told: String,
}

impl ChunkBody {
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

    /// Waits for the next progress; returns the watch unless the query has ended.
    async fn go_on(&mut self, mut watch: Watch) -> Result<Option<Watch>, Problem> {
        let happened = tokio::select! {
            happened = watch.next() => happened?,
            () = self.story.drain.over() => return Err(Problem::ends()),
        };
        match happened {
            Some(Progress::Record(record)) => self.record(&record),
            // Such text may have to be retracted.
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
            // A blank line separates the texts of turns.
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

    /// Queues the remaining events of a query that has ended.
    fn end(&mut self, answer: &Answer) {
        let Some(reason) = FinishReason::of(&answer.outcome) else {
            if let Some(problem) = failure(&answer.outcome) {
                self.say(&problem.body());
            }
            return;
        };
        // A forced end adds a sentence that is part of no turn.
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

    /// If the usage is requested, it is null in every chunk but the last.
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

/// Describes an event to a reader in one line, or returns `None` if it has no meaning for them.
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
