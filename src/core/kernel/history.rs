//! The conversation as the model gets it, derived from the records.
//!
//! Foreign text (questions, tool results) is escaped, so that a signal in it is data.
//!
//! **Invariant:** in a session with a head, messages are only appended, as the model was sent them.
//! The exceptions have records: a summary replaces the messages that it covers; a new head, or
//! `llm.prefix_broken`, voids the reasoning before it; of a query that failed, or that a fork leaves out,
//! what no model has accepted goes, and so does a reply that was to have a signal and has none.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    model::{
        AnswerOptions, FaultCode, ImportedMessage, Message, Outcome, Part, Record, Role, Speaker,
        ToolResult, ToolStatus, ToolTrust,
        command::Author,
        record::{
            BudgetFact, Fact, HeadReason, LlmFact, MessageRange, QueryFact, SessionFact, Steered,
            TurnFact,
        },
    },
    signal::escape,
};

use super::{format, guidance, phase::ToolSlot, query::Query};

/// The messages so far. Clones share them until the next change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    messages: Arc<Vec<Arc<Message>>>,
    query_start: usize,
    chars: usize,
    /// Replies to the running query.
    replies: usize,
}

impl Transcript {
    /// Takes in a record of the running query, and so does the query: what each makes of it depends on
    /// the other.
    pub(super) fn evolve(&mut self, query: &mut Query, record: &Record) {
        match &record.fact {
            Fact::Turn(TurnFact::Started(started)) => {
                query.steers.iter().for_each(|steered| self.steer(steered));
                for text in &started.guidance {
                    // Not escaped: foreign words in guidance are already quoted.
                    self.push(Message::text(Role::Guidance, text));
                }
            }
            Fact::Turn(TurnFact::Replied(replied)) => {
                self.share(Arc::clone(&replied.message));
                self.replies += 1;
            }
            Fact::Query(QueryFact::Classified(classified)) => {
                let format = classified.formatted.then(|| &query.options().format);
                let format = format.and_then(format::instruction);
                let told = classified.segment.clone().into_iter().chain(format);
                for (place, text) in told.enumerate() {
                    self.insert(
                        self.query_start + place,
                        Message::text(Role::Guidance, text),
                    );
                }
            }
            Fact::Session(SessionFact::HeadComposed(head)) => {
                self.drop_opaque(self.messages.len());
                // An earlier version had the format in its prompt, which the first head replaces.
                if head.reason == HeadReason::First
                    && !query.format_told
                    && let Some(format) = format::instruction(&query.options().format)
                {
                    self.push(Message::text(Role::Guidance, format));
                }
            }
            Fact::Llm(LlmFact::PrefixBroken(broken)) => self.drop_opaque(broken.messages),
            Fact::Budget(BudgetFact::ContextCompacted(compacted)) => {
                self.compact(compacted.messages, &compacted.summary);
            }
            _ => {}
        }
        query.evolve(record);
        if let Fact::Tool(_) = record.fact
            && query.calls_complete()
        {
            self.results(query.step.slots());
        }
    }

    /// Messages, oldest first.
    pub fn messages(&self) -> &Arc<Vec<Arc<Message>>> {
        &self.messages
    }

    /// Estimated tokens: floor(characters / 4).
    pub const fn token_estimate(&self) -> u64 {
        (self.chars / 4) as u64
    }

    pub(super) const fn query_start(&self) -> usize {
        self.query_start
    }

    /// The place after the question of the running query, which guidance may precede.
    pub(super) fn after_question(&self) -> usize {
        let mut own = self.messages.iter().skip(self.query_start);
        let question = own.position(|message| message.role == Role::User);
        self.query_start + question.map_or(0, |at| at + 1)
    }

    pub(super) const fn chars(&self) -> usize {
        self.chars
    }

    /// Returns an empty slice if the range is invalid.
    pub(super) fn range(&self, range: MessageRange) -> &[Arc<Message>] {
        self.messages.get(range.from..range.to).unwrap_or_default()
    }

    /// Replaces messages, which must all precede the running query or all follow its question.
    fn compact(&mut self, range: MessageRange, summary: &str) {
        let MessageRange { from, to } = range;
        if range.is_empty() || to > self.messages.len() {
            return;
        }
        let summary = Message::text(Role::User, summary);
        self.chars += chars(&summary.parts);
        let messages = Arc::make_mut(&mut self.messages);
        self.chars -= chars_of(messages.splice(from..to, [Arc::new(summary)]));
        if to <= self.query_start {
            self.query_start -= range.len() - 1;
        }
        self.drop_opaque(self.messages.len());
    }

    /// How many messages to send without their opaque parts, after the provider has refused some:
    /// those before the running query, or all if these have none. `None` if no message has any.
    pub(super) fn count_to_strip(&self) -> Option<usize> {
        let has = |message: &Arc<Message>| message.parts.iter().any(is_opaque);
        let (earlier, current) = self.messages.split_at(self.query_start);
        match (earlier.iter().any(has), current.iter().any(has)) {
            (true, _) => Some(self.query_start),
            (false, true) => Some(self.messages.len()),
            (false, false) => None,
        }
    }

    /// Drops the opaque parts of the first messages.
    fn drop_opaque(&mut self, count: usize) {
        let first = Arc::make_mut(&mut self.messages).iter_mut().take(count);
        for message in first.filter(|message| message.parts.iter().any(is_opaque)) {
            self.chars -= chars(&message.parts);
            Arc::make_mut(message).parts.retain(|part| !is_opaque(part));
            self.chars += chars(&message.parts);
        }
    }

    fn push(&mut self, message: Message) {
        self.share(Arc::new(message));
    }

    fn insert(&mut self, at: usize, message: Message) {
        self.chars += chars(&message.parts);
        Arc::make_mut(&mut self.messages).insert(at, Arc::new(message));
    }

    fn share(&mut self, message: Arc<Message>) {
        self.chars += chars(&message.parts);
        Arc::make_mut(&mut self.messages).push(message);
    }

    /// Escapes imported answers too: another model's signals do not count.
    pub(super) fn import(&mut self, message: &ImportedMessage) {
        self.exchange(message);
        self.query_start = self.messages.len();
    }

    fn exchange(&mut self, message: &ImportedMessage) {
        let role = match message.speaker {
            Speaker::User => Role::User,
            Speaker::Assistant => Role::Assistant,
            Speaker::Tool => Role::Tool,
        };
        let text = escape(&message.text);
        let mut parts: Vec<Part> = match &message.call {
            Some(call) => vec![Part::ToolResult(ToolResult::new(
                call.clone(),
                ToolStatus::Ok,
                text,
            ))],
            None if text.trim().is_empty() => Vec::new(),
            None => vec![Part::text(text)],
        };
        parts.extend(message.images.iter().cloned().map(Part::Image));
        parts.extend(message.calls.iter().cloned().map(Part::ToolCall));
        // Some providers refuse an empty message.
        if parts.is_empty() {
            return;
        }
        // The results of one reply are one message.
        if role == Role::Tool
            && let Some(last) = Arc::make_mut(&mut self.messages).last_mut()
            && last.role == Role::Tool
        {
            self.chars += chars(&parts);
            Arc::make_mut(last).parts.extend(parts);
            return;
        }
        self.push(Message { role, parts });
    }

    pub(super) fn begin(&mut self, question: &str, options: &AnswerOptions) {
        (self.query_start, self.replies) = (self.messages.len(), 0);
        let mut message = Message::text(Role::User, escape(question));
        let images = options.images.iter().cloned();
        message.parts.extend(images.map(Part::Image));
        self.push(message);
        for message in &options.exchanged {
            self.exchange(message);
        }
    }

    fn steer(&mut self, steered: &Steered) {
        let role = match steered.author {
            Author::User => Role::User,
            Author::Operator => Role::Guidance,
        };
        self.push(Message::text(role, escape(&steered.text)));
    }

    pub(super) fn drop_reply(&mut self) {
        let is_reply = |message: &Arc<Message>| message.role == Role::Assistant;
        let replied = self.messages.iter().rposition(is_reply);
        if let Some(at) = replied.filter(|at| *at > self.query_start) {
            self.truncate(at);
        }
    }

    fn results(&mut self, slots: &[ToolSlot]) {
        let parts = slots.iter().filter_map(|slot| {
            let result = slot.result()?;
            Some(Part::ToolResult(ToolResult {
                content: content(&slot.call.name, result).into_owned(),
                ..(**result).clone()
            }))
        });
        self.push(Message {
            role: Role::Tool,
            parts: parts.collect(),
        });
    }

    /// Ends the running query, and returns how many messages have stayed. Without a head, guidance is
    /// withdrawn, and so is a query that failed.
    pub(super) fn end(&mut self, outcome: &Outcome, has_head: bool) -> usize {
        match outcome {
            Outcome::Failed { code, .. } => {
                // The last reply may be what the server refuses.
                let refused = matches!(
                    code,
                    FaultCode::Refusal
                        | FaultCode::ContentFilter
                        | FaultCode::BadRequest
                        | FaultCode::TooLarge
                        | FaultCode::ThinkingRefused
                );
                let proven = self.replies.saturating_sub(usize::from(refused));
                match !has_head || proven == 0 {
                    true => self.forget(),
                    false => self.keep_to_reply(self.replies - proven),
                }
            }
            _ if has_head => {
                let last = self.messages.last().map(|last| last.role);
                if last == Some(Role::Guidance) {
                    self.push(Message::text(Role::Guidance, guidance::OVER));
                }
            }
            _ => {
                // Searches only the messages of the query, because a session can be long.
                let messages = Arc::make_mut(&mut self.messages);
                let guides = |message: &mut Arc<Message>| message.role == Role::Guidance;
                self.chars -= chars_of(messages.extract_if(self.query_start.., guides));
            }
        }
        let kept = self.messages.len();
        self.close_open_calls();
        self.query_start = self.messages.len();
        kept
    }

    /// Removes what follows the last reply, or the one that is so many replies before it: it may be why
    /// the query failed, and must not make the next one fail.
    fn keep_to_reply(&mut self, but: usize) {
        let places = (self.query_start..self.messages.len()).rev();
        let is_reply = |at: &usize| self.messages[*at].role == Role::Assistant;
        let last = places.filter(is_reply).nth(but);
        let kept = last.map_or(self.query_start, |last| last + 1);
        self.truncate(kept);
    }

    pub(super) fn forget(&mut self) {
        self.truncate(self.query_start);
    }

    fn truncate(&mut self, kept: usize) {
        self.chars -= chars_of(Arc::make_mut(&mut self.messages).drain(kept..));
    }

    /// Providers refuse a conversation in which a call has no result.
    fn close_open_calls(&mut self) {
        let last = self.messages.last();
        let Some(last) = last.filter(|last| last.role == Role::Assistant).cloned() else {
            return;
        };
        let results = last.calls().map(|call| {
            let (id, why) = (call.id.clone(), ToolResult::QUERY_ENDED);
            Part::ToolResult(ToolResult::new(id, ToolStatus::Refused, why))
        });
        let (role, parts) = (Role::Tool, results.collect::<Vec<_>>());
        if !parts.is_empty() {
            self.push(Message { role, parts });
        }
    }
}

/// A result as the model reads it: escaped, and framed if it is untrusted.
fn content<'a>(tool: &str, result: &'a ToolResult) -> Cow<'a, str> {
    match result.trust {
        ToolTrust::Trusted => escape(&result.content),
        ToolTrust::Untrusted => guidance::from_outside(tool, &result.content).into(),
    }
}

pub(super) fn chars_of(messages: impl IntoIterator<Item = impl AsRef<Message>>) -> usize {
    let messages = messages.into_iter();
    messages.map(|message| chars(&message.as_ref().parts)).sum()
}

const fn is_opaque(part: &Part) -> bool {
    matches!(part, Part::Opaque(_))
}

fn chars(parts: &[Part]) -> usize {
    let part = |part: &Part| match part {
        Part::Text { text } => text.chars().count(),
        Part::ToolCall(call) => call.name.len() + call.arguments.chars().count(),
        Part::ToolResult(result) => {
            result.content.chars().count() + result.images.len() * Part::IMAGE_CHARS
        }
        Part::Image(_) => Part::IMAGE_CHARS,
        Part::Opaque(opaque) => opaque.body.len(),
    };
    parts.iter().map(part).sum()
}
