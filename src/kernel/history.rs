//! The conversation as the model gets it.
//!
//! Follows from the records alone. Text that is not the model's own (questions, tool results) is
//! escaped here, where it enters: a signal in it is data (spec 2). Guidance leaves with its query;
//! so does everything of a query that failed. A summary stands for the messages that it was made of
//! (`compaction.rs`), also for those that come to be of a failed query's past.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    model::{
        CallId, ImportedMessage, Message, Outcome, Part, Role, Speaker, ToolCall, ToolResult,
        ToolStatus,
        command::Author,
        record::{MessageRange, Replied, Steered},
    },
    signal::escape,
};

use super::{guidance, phase::ToolSlot};

/// The messages so far. Cheap to hand out: a reader shares them until the next change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    messages: Arc<Vec<Arc<Message>>>,
    /// Where the running query begins.
    query_start: usize,
    /// Characters of all texts, for the estimate of the context window.
    chars: usize,
}

impl Transcript {
    /// All messages, oldest first.
    #[must_use]
    pub fn messages(&self) -> &Arc<Vec<Arc<Message>>> {
        &self.messages
    }

    /// About how many tokens they come to: floor(characters / 4), as everywhere (spec 5).
    #[must_use]
    pub const fn token_estimate(&self) -> u64 {
        (self.chars / 4) as u64
    }

    /// Where the running query begins: its question.
    pub(super) const fn query_start(&self) -> usize {
        self.query_start
    }

    /// Characters that go to the model.
    pub(super) const fn chars(&self) -> usize {
        self.chars
    }

    /// The messages of a range; none where it does not fit.
    pub(super) fn range(&self, range: MessageRange) -> &[Arc<Message>] {
        self.messages.get(range.from..range.to).unwrap_or_default()
    }

    /// A summary takes the place of messages, all before the running query or all behind its question.
    pub(super) fn compact(&mut self, range: MessageRange, summary: &str) {
        let MessageRange { from, to } = range;
        if range.is_empty() || to > self.messages.len() {
            return;
        }
        let summary = Message::text(Role::User, summary);
        self.chars += chars(&summary.parts);
        let gone = Arc::make_mut(&mut self.messages).splice(from..to, [Arc::new(summary)]);
        self.chars -= gone.map(|message| chars(&message.parts)).sum::<usize>();
        if to <= self.query_start {
            self.query_start -= range.len() - 1;
        }
    }

    fn push(&mut self, message: Message) {
        self.share(Arc::new(message));
    }

    fn share(&mut self, message: Arc<Message>) {
        self.chars += chars(&message.parts);
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Something was said elsewhere before. Also what another model answered: its signals are not ours.
    pub(super) fn import(&mut self, message: &ImportedMessage) {
        // Some providers refuse a message without words.
        if message.text.trim().is_empty() {
            return;
        }
        let role = match message.speaker {
            Speaker::User => Role::User,
            Speaker::Assistant => Role::Assistant,
        };
        self.push(Message::text(role, escape(&message.text)));
        self.query_start = self.messages.len();
    }

    /// A query begins.
    pub(super) fn begin(&mut self, question: &str) {
        self.query_start = self.messages.len();
        self.push(Message::text(Role::User, escape(question)));
    }

    /// Words that came in while the query ran.
    pub(super) fn steer(&mut self, steered: &Steered) {
        let role = match steered.author {
            Author::User => Role::User,
            Author::Operator => Role::Guidance,
        };
        self.push(Message::text(role, escape(&steered.text)));
    }

    /// The runtime speaks. Foreign words in it are quoted already.
    pub(super) fn guide(&mut self, text: &str) {
        self.push(Message::text(Role::Guidance, text));
    }

    /// The model spoke: as received, signals included.
    pub(super) fn reply(&mut self, replied: &Replied) {
        self.share(Arc::clone(&replied.message));
    }

    /// The last reply goes again, with the results of its calls.
    pub(super) fn drop_reply(&mut self) {
        let messages = Arc::make_mut(&mut self.messages);
        let replied = messages
            .iter()
            .rposition(|message| message.role == Role::Assistant);
        if let Some(at) = replied.filter(|at| *at > self.query_start) {
            let gone = messages.drain(at..);
            self.chars -= gone.map(|message| chars(&message.parts)).sum::<usize>();
        }
    }

    /// The turn's calls have results, in the order of the calls.
    pub(super) fn results(&mut self, slots: &[ToolSlot]) {
        let parts = slots.iter().filter_map(ToolSlot::result).map(|result| {
            Part::ToolResult(ToolResult {
                call: result.call.clone(),
                status: result.status,
                content: escape(&result.content).into_owned(),
                data: result.data.clone(),
            })
        });
        self.push(Message {
            role: Role::Tool,
            parts: parts.collect(),
        });
    }

    /// The query ended: its guidance goes, or all of it if it failed.
    pub(super) fn end(&mut self, outcome: &Outcome) {
        let start = self.query_start;
        let mut gone = 0;
        match outcome {
            Outcome::Failed { .. } => self.forget(),
            _ => {
                // Only the query's own part is looked at: a session can be long.
                let messages = Arc::make_mut(&mut self.messages);
                for message in messages.split_off(start) {
                    if message.role == Role::Guidance {
                        gone += chars(&message.parts);
                    } else {
                        messages.push(message);
                    }
                }
            }
        }
        self.chars -= gone;
        self.close_open_calls();
        self.query_start = self.messages.len();
    }

    /// The running query leaves, as if it had never been.
    pub(super) fn forget(&mut self) {
        let messages = Arc::make_mut(&mut self.messages);
        let gone = messages.drain(self.query_start..);
        self.chars -= gone.map(|message| chars(&message.parts)).sum::<usize>();
    }

    /// No call may stay without a result: providers refuse such a conversation.
    fn close_open_calls(&mut self) {
        let open: Vec<CallId> = match self.messages.last() {
            Some(last) if last.role == Role::Assistant => {
                last.calls().map(|ToolCall { id, .. }| id.clone()).collect()
            }
            Some(_) | None => Vec::new(),
        };
        if open.is_empty() {
            return;
        }
        let parts = open.into_iter().map(|call| {
            let content = guidance::QUERY_ENDED.to_owned();
            Part::ToolResult(ToolResult {
                call,
                status: ToolStatus::Refused,
                content,
                data: None,
            })
        });
        self.push(Message {
            role: Role::Tool,
            parts: parts.collect(),
        });
    }
}

/// Characters that go to the model.
pub(super) fn chars(parts: &[Part]) -> usize {
    let part = |part: &Part| match part {
        Part::Text { text } => text.chars().count(),
        Part::ToolCall(call) => call.name.len() + call.arguments.chars().count(),
        Part::ToolResult(result) => result.content.chars().count(),
        Part::Opaque(opaque) => opaque.body.len(),
    };
    parts.iter().map(part).sum()
}
