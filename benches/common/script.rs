//! A model in the process whose queries take three turns.

use futures_util::{StreamExt, stream};
use oracle_agent::{
    llm::{Backend, Delta, DeltaStream, Request},
    model::{CallId, Part, Reply, Role, StopReason, ToolCall, Usage},
};

pub(crate) const TURNS: usize = 3;

pub(crate) const MORE: &str = "Found the place, now the rest.\n\n<signal type=\"need_turn\">\n  <reason>Still \
                               have to check the other file</reason>\n  <confidence>0.85</confidence>\n</signal>";
pub(crate) const DONE: &str = "It is defined in the second file, at line 12.\n\n<signal \
                               type=\"context_sufficient\">\n  <sources_found>2</sources_found>\n  \
                               <confidence>0.9</confidence>\n</signal>";

/// Calls a tool, asks for another turn, answers, by the number of replies in the query. Without
/// state of its own, so that only the actors are measured.
pub(crate) struct Script {
    /// Pieces of each reply.
    pub(crate) pieces: usize,
}

impl Backend for Script {
    fn provider(&self) -> &'static str {
        "mock"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let replies = request.messages.iter().rev();
        let replies = replies.take_while(|message| message.role != Role::User);
        let turn = replies
            .filter(|message| message.role == Role::Assistant)
            .count();
        let (text, call) = match turn {
            0 => ("Let me look.", true),
            1 => (MORE, false),
            _ => (DONE, false),
        };
        let call = call.then(|| {
            Part::ToolCall(ToolCall {
                id: CallId::new("call"),
                name: "look".to_owned(),
                arguments: "{\"at\":\"a\"}".to_owned(),
            })
        });
        let stop = if call.is_some() {
            StopReason::ToolCalls
        } else {
            StopReason::EndTurn
        };
        let parts = std::iter::once(Part::text(text)).chain(call).collect();
        let reply = Reply {
            parts,
            stop,
            usage: Usage::default(),
            model: "mock/test".to_owned(),
        };
        let length = text.len().div_ceil(self.pieces);
        // The texts are ASCII.
        let pieces = text.as_bytes().chunks(length);
        let pieces = pieces.map(|piece| String::from_utf8_lossy(piece).into_owned());
        let pieces = pieces.map(|piece| Ok(Delta::Text(piece)));
        stream::iter(pieces.chain([Ok(Delta::Done(reply))])).boxed()
    }
}
