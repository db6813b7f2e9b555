//! What of a conversation belongs to the query at hand: its question, what was asked of tools for
//! it, and how it stands.
//!
//! Reads messages only. Of earlier queries there are the questions, and the answers for those who want to
//! hear them again or go on from there; their results are not used, since they may be out of date. Pure.

use super::{
    protocol::{is_stuck, without_signal},
    question::{asks, stands_alone},
};
use crate::model::{Message, Role, ToolCall, ToolResult, ToolStatus};

/// How many earlier messages are looked at for what a question goes on from.
pub(super) const MOST_EARLIER: usize = 20;

/// Begins the ids of our calls; a number follows.
const CALL_PREFIX: &str = "offline_";

/// A call of this query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) call: &'a ToolCall,
    /// None if there is none in the conversation.
    pub(super) result: Option<&'a ToolResult>,
}

impl Asked<'_> {
    /// Whether there is something to read.
    pub(super) fn worked(&self) -> bool {
        self.result
            .is_some_and(|result| result.status == ToolStatus::Ok)
    }

    /// Whether asking this tool again is of no use: a person said no, or it cannot be called.
    pub(super) fn shut(&self) -> bool {
        self.result.is_some_and(|result| match result.status {
            ToolStatus::Denied | ToolStatus::Refused => true,
            ToolStatus::Ok | ToolStatus::Failed | ToolStatus::Unknown => false,
        })
    }
}

/// What was said to an earlier question.
#[derive(Debug)]
pub(super) struct Answer {
    /// Without its signal.
    pub(super) text: String,
    pub(super) is_whole: bool,
    /// What it said to be missing.
    pub(super) lacking: Option<String>,
}

impl Answer {
    fn read(reply: &str) -> Self {
        let (text, is_whole) = without_signal(reply);
        let behind = reply.rsplit_once("<missing>").map(|(_, behind)| behind);
        let lacking = behind.and_then(|behind| behind.split_once("</missing>"));
        Self {
            lacking: lacking.map(|(lacking, _)| lacking.to_owned()),
            text,
            is_whole,
        }
    }
}

/// Whether the query was given up before, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not so far.
    Going,
    /// We said `stuck`, and the runtime answered: one other strategy is due.
    Urged,
    /// The other strategy has been begun.
    Retried,
}

/// The query at hand.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    pub(super) question: String,
    /// What the user said while it was worked on.
    pub(super) added: Vec<&'a str>,
    /// The last question before this one that names something by itself. What follows it may be about
    /// "it": "and where is it tested?", "who calls it?".
    pub(super) previous: Option<String>,
    /// What was asked before, the latest first; at most [`MOST_EARLIER`].
    pub(super) earlier: Vec<String>,
    /// The first thing that was asked in what there is of the conversation.
    pub(super) first: Option<String>,
    /// The answers before this question that were not about the conversation itself, the latest first; at
    /// most [`MOST_EARLIER`].
    pub(super) answers: Vec<Answer>,
    /// The calls of this query, in order.
    pub(super) asked: Vec<Asked<'a>>,
    /// How many replies of this query asked for tools.
    pub(super) rounds: usize,
    pub(super) standing: Standing,
    next_call: u64,
}

impl<'a> Conversation<'a> {
    pub(super) fn read(messages: &'a [impl AsRef<Message>]) -> Self {
        let messages: Vec<&Message> = messages.iter().map(AsRef::as_ref).collect();
        let question = question(&messages);
        let own = &messages[question.map_or(0, |at| at + 1)..];
        let text = |message: &Message| message.texts().collect::<Vec<_>>().join("\n");
        let results: Vec<&ToolResult> = own.iter().flat_map(|message| message.results()).collect();
        let replies = || own.iter().filter(|message| message.role == Role::Assistant);
        let asked = replies()
            .flat_map(|message| message.calls())
            .map(|call| Asked {
                call,
                result: results
                    .iter()
                    .find(|result| result.call == call.id)
                    .copied(),
            });
        let added = own.iter().filter(|message| is_said(message));
        let before = &messages[..question.unwrap_or_default()];
        let earlier = before
            .iter()
            .rev()
            .filter(|message| is_said(message))
            .map(|message| text(message))
            .filter(|text| asks(text));
        let mut earlier: Vec<String> = earlier.collect();
        let first = earlier.last().cloned();
        earlier.truncate(MOST_EARLIER);
        let is_reply = |at: &usize| {
            before[*at].role == Role::Assistant && before[*at].calls().next().is_none()
        };
        let is_of_talk = |at: usize| {
            let mut asked = before[..at].iter().rev();
            let asked = asked.find(|message| is_said(message));
            asked.is_some_and(|message| !asks(&text(message)))
        };
        let answers = (0..before.len())
            .rev()
            .filter(is_reply)
            .map(|at| (at, Answer::read(&text(before[at]))))
            .filter(|(at, answer)| !answer.text.is_empty() && !is_of_talk(*at))
            .map(|(_, answer)| answer);
        Self {
            question: question.map_or_else(String::new, |at| text(messages[at])),
            added: added.flat_map(|message| message.texts()).collect(),
            previous: earlier.iter().find(|text| stands_alone(text)).cloned(),
            earlier,
            first,
            answers: answers.take(MOST_EARLIER).collect(),
            asked: asked.collect(),
            rounds: replies()
                .filter(|message| message.calls().next().is_some())
                .count(),
            standing: standing(own),
            next_call: next_call(&messages),
        }
    }

    /// The id of our next call but `skip`; unlike that of any call in the conversation.
    pub(super) fn call_id(&self, skip: usize) -> String {
        format!("{CALL_PREFIX}{}", self.next_call + skip as u64)
    }

    /// What can be read, each with the call that it answers.
    pub(super) fn readable(&self) -> impl Iterator<Item = (&'a ToolCall, &'a str)> {
        self.asked
            .iter()
            .filter(|asked| asked.worked())
            .filter_map(|asked| {
                asked
                    .result
                    .map(|result| (asked.call, result.content.as_str()))
            })
    }
}

/// Whether a person said it. What a summary reports can be looked up again; nobody asks for it.
fn is_said(message: &Message) -> bool {
    message.role == Role::User && !message.is_summary()
}

/// Where the question is, if there is one: whatever is there else counts as work on an empty one.
fn question(messages: &[&Message]) -> Option<usize> {
    let mut said = (0..messages.len()).rev();
    said.find(|&at| is_said(messages[at]) && opens(&messages[..at]))
}

/// Whether what a person says behind these opens a query; else it is added to the query at hand.
fn opens(before: &[&Message]) -> bool {
    // Where the first of a run opens one, it had no reply when it was taken back, and the next opens another.
    let run = before.iter().rev().take_while(|one| is_said(one)).count();
    let Some((last, earlier)) = before[..before.len() - run].split_last() else {
        return true;
    };
    match last.role {
        Role::System => true,
        // A summary stands for all before a query, or for turns of the query at hand.
        Role::User => !earlier.iter().any(|one| is_said(one)),
        // Guidance leaves the history with its query, so what follows it belongs to the same one.
        Role::Guidance => false,
        Role::Assistant => last.calls().next().is_none() && !wants_another_turn(last),
        Role::Tool => last.results().any(ToolResult::says_query_ended),
    }
}

fn wants_another_turn(reply: &Message) -> bool {
    let text = reply.texts().last().unwrap_or("");
    let signal = text.rfind("<signal").map_or("", |at| &text[at..]);
    signal.contains("need_turn")
}

fn standing(own: &[&Message]) -> Standing {
    let stuck = own.iter().position(|message| {
        message.role == Role::Assistant && message.texts().last().is_some_and(is_stuck)
    });
    let Some(stuck) = stuck else {
        return Standing::Going;
    };
    let behind = &own[stuck + 1..];
    match behind.iter().any(|message| message.role == Role::Assistant) {
        true => Standing::Retried,
        false => Standing::Urged,
    }
}

fn next_call(messages: &[&Message]) -> u64 {
    let numbers = messages
        .iter()
        .flat_map(|message| message.calls())
        .filter_map(|call| {
            let number: u64 = call.id.0.strip_prefix(CALL_PREFIX)?.parse().ok()?;
            number.checked_add(1)
        });
    numbers.max().unwrap_or(1)
}

#[cfg(test)]
mod tests;
