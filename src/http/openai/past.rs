//! Whether the conversation that a client sends is the one that a session holds.
//!
//! Chat clients send the whole conversation with each question, under the same id whatever was edited in it.
//! Exchange by exchange it is held against the session's. Where the two part, the client goes on in a *branch*:
//! a session of its own that has what both have in common. A branch's name follows from where it leaves its
//! parent and from the question that leads away, so that the next request of the same edited conversation
//! finds it by the same walk, and nothing has to be remembered.
//!
//! What counts as the same: texts that differ in white space alone; an answer that the client cut short, or
//! has without what a turn showed before it; a question that has no answer yet, because its client went away.
//! A query that failed has left the session's history, so a client may show it or not.
//!
//! No I/O; `place` reads and acts.

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::request::Exchange;
use crate::model::{QueryId, SessionName};

/// A question that a session was asked, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    /// Its query; none where it was brought along from elsewhere.
    pub query: Option<QueryId>,
    /// What was asked.
    pub question: String,
    /// What clients may have been shown as its answer: all that was said, or the last of it.
    pub answers: Vec<String>,
    /// How it stands.
    pub state: State,
}

/// How a question stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It waits or is being answered.
    Open,
    /// It is a part of the conversation.
    Done,
    /// It went into a query that ran: clients that did not send it do not know it.
    Added,
    /// It is no part of the conversation any more: clients may still show it.
    Gone,
}

impl State {
    /// Whether a client's conversation may be without it and still be the same.
    const fn may_miss(self) -> bool {
        match self {
            Self::Open | Self::Done => false,
            Self::Added | Self::Gone => true,
        }
    }
}

/// What a request is to a session. Places are those in the list of what the session kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The session is as far as the client, or not as far: so many of the client's exchanges are there.
    GoesOn { known: usize },
    /// It asks what is being answered at the moment.
    Asked(usize),
    /// It asks what was answered last: for another answer, or because the answer was lost.
    Answered(usize),
    /// The client's conversation leaves the session's here; so many of its exchanges are before that.
    Parts { at: usize, known: usize },
}

/// Holds a client's conversation against a session's.
pub(super) fn compare(ours: &[Kept], theirs: &[Exchange], question: &str) -> Standing {
    let mut at = 0;
    for (known, exchange) in theirs.iter().enumerate() {
        loop {
            let Some(kept) = ours.get(at) else {
                return Standing::GoesOn { known };
            };
            if is(kept, exchange) {
                at += 1;
                break;
            }
            if !kept.state.may_miss() {
                return Standing::Parts { at, known };
            }
            at += 1;
        }
    }
    let known = theirs.len();
    let rest = ours.iter().enumerate().skip(at);
    let mut rest = rest.filter(|(_, kept)| !kept.state.may_miss());
    match (rest.next(), rest.next()) {
        (None, _) => Standing::GoesOn { known },
        (Some((at, last)), None) if same(&last.question, question) => match last.state {
            State::Open => Standing::Asked(at),
            State::Done | State::Added | State::Gone => Standing::Answered(at),
        },
        (Some((at, _)), _) => Standing::Parts { at, known },
    }
}

fn is(kept: &Kept, exchange: &Exchange) -> bool {
    if !same(&kept.question, &exchange.question) {
        return false;
    }
    let Some(answer) = &exchange.answer else {
        return true;
    };
    match kept.state {
        // What is not whole, or is not kept, cannot be held against anything.
        State::Open | State::Gone => true,
        State::Done | State::Added => {
            // What looks like reasoning may be a part of our answer.
            let (whole, answer) = (folded(answer), folded(&spoken(answer)));
            let goes_on_as = |ours: &String| {
                folded(ours).starts_with(&whole) || folded(&spoken(ours)).starts_with(&answer)
            };
            answer.is_empty() || kept.answers.iter().any(goes_on_as)
        }
    }
}

/// Whether texts differ in white space alone.
pub(super) fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// How chat pages keep what was streamed as reasoning within an answer.
const REASONING: [(&str, &str); 2] = [
    ("<details type=\"reasoning\"", "</details>"),
    ("<think>", "</think>"),
];

/// An answer without reasoning.
pub(super) fn spoken(answer: &str) -> String {
    let mut spoken = String::with_capacity(answer.len());
    let mut rest = answer;
    loop {
        let starts = REASONING.iter().filter_map(|(opens, closes)| {
            let start = rest.find(opens)?;
            let end = start + rest.get(start..)?.find(closes)? + closes.len();
            Some((start, end))
        });
        let Some((start, end)) = starts.min() else {
            spoken.push_str(rest);
            return spoken;
        };
        spoken.push_str(rest.get(..start).unwrap_or_default());
        rest = rest.get(end..).unwrap_or_default();
    }
}

/// Longest part of a conversation's own name in that of a branch.
const STEM: usize = 95;

/// The branch that leaves `parent` at a place of what it kept, by another question or another answer to it.
pub(super) fn branch(
    (root, parent): (&SessionName, &SessionName),
    ours: &[Kept],
    at: usize,
    question: &str,
) -> SessionName {
    let print = print(&[parent.as_str(), &place(ours, at), &folded(question)]);
    let stem = root.as_str().get(..STEM).unwrap_or(root.as_str());
    let name = format!("{stem}.{}", print.simple());
    SessionName::new(&name).unwrap_or_else(|_| SessionName::from_uuid(print))
}

/// The name of a conversation whose id cannot be one.
pub(super) fn stand_in(id: &str) -> SessionName {
    SessionName::from_uuid(print(&[id]))
}

/// A place by a name that what comes later does not change.
fn place(ours: &[Kept], at: usize) -> String {
    match ours.get(at) {
        Some(Kept {
            query: Some(query), ..
        }) => query.to_string(),
        Some(Kept { query: None, .. }) => format!("imported {at}"),
        // Where the next one will be.
        None => {
            let last = ours.iter().filter_map(|kept| kept.query).max();
            last.unwrap_or_default().next().to_string()
        }
    }
}

/// 128 bits of a hash.
fn print(parts: &[&str]) -> Uuid {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes
        .iter_mut()
        .zip(hash.finalize())
        .for_each(|(byte, hashed)| *byte = hashed);
    Uuid::from_bytes(bytes)
}

#[cfg(test)]
mod tests;
