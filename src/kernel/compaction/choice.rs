//! Which part of a conversation a summary should stand for.

use crate::{
    kernel::history::{Transcript, chars},
    model::{
        Message, Role,
        record::{CompactedPart, MessageRange},
    },
};
use std::sync::Arc;

/// Sizes that follow from a window, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The window.
    pub window: usize,
    /// Most that a summary may come to.
    pub summary: usize,
}

/// Of what is worth a summary: the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::kernel) struct Choice {
    pub part: CompactedPart,
    pub messages: MessageRange,
}

/// The part that holds more: what was before the query, or its own earlier turns. None if neither is worth
/// a call.
pub(super) fn choose(transcript: &Transcript, sizes: Sizes) -> Option<Choice> {
    let messages = transcript.messages();
    let start = transcript.query_start();
    let history = Choice {
        part: CompactedPart::History,
        messages: MessageRange { from: 0, to: start },
    };
    let query = Choice {
        part: CompactedPart::Query,
        messages: earlier_turns(messages, start, sizes.window / KEPT),
    };
    // What becomes hardly shorter is not worth it.
    let worth = sizes.summary.saturating_mul(2);
    let sized = [history, query].map(|choice| (size(messages, choice.messages), choice));
    let worthy = sized.into_iter().filter(|(size, _)| *size > worth);
    // Of two that hold as much, the older one goes.
    let best = worthy.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, choice)| choice)
}

/// Turns that come to less than this part of the window stay as they are, besides the last one.
const KEPT: usize = 5;

/// What of a query stands between its question and the turns that stay.
fn earlier_turns(messages: &[Arc<Message>], question: usize, kept: usize) -> MessageRange {
    let from = question + 1;
    let nothing = MessageRange { from, to: from };
    let mut replies = (from..messages.len())
        .rev()
        .filter(|at| messages[*at].role == Role::Assistant);
    let Some(last) = replies.next() else {
        return nothing;
    };
    // A turn begins with its reply: the results of its calls follow and stay with it.
    let mut to = last;
    let mut held = size(
        messages,
        MessageRange {
            from: to,
            to: messages.len(),
        },
    );
    for at in replies {
        held += size(messages, MessageRange { from: at, to });
        if held > kept {
            break;
        }
        to = at;
    }
    MessageRange { from, to }
}

fn size(messages: &[Arc<Message>], range: MessageRange) -> usize {
    let part = messages.get(range.from..range.to).unwrap_or_default();
    part.iter().map(|message| chars(&message.parts)).sum()
}
