//! Steps of a script: replies and ways to fail.

use serde_json::Value;

use crate::{
    llm::{
        Delta, Request, estimate_usage,
        pieces::{self, Cut, DeltaResult},
        script::ScriptText,
    },
    model::{CallId, Fault, Part, Reply, StopReason, ToolCall, Usage},
};

/// One try of a step.
#[derive(Debug, Clone)]
pub enum Try {
    /// A whole reply.
    Reply(ScriptedReply),
    /// Text, maybe empty, and then a fault.
    Fault {
        /// Text before the fault.
        shown: String,
        /// The fault.
        fault: Fault,
    },
    /// Text, and then nothing more.
    Stall {
        /// Text before the stall.
        shown: String,
    },
    /// Text, and then the end of the stream without its end mark.
    Cut {
        /// Text before the end.
        shown: String,
    },
}

impl Try {
    pub(super) const fn is_in_chunks(&self) -> bool {
        matches!(self, Self::Reply(reply) if matches!(reply.text, ScriptText::Chunks(_)))
    }
}

/// A reply in a script.
#[derive(Debug, Clone, Default)]
pub struct ScriptedReply {
    text: ScriptText,
    calls: Vec<(String, String)>,
    stop: Option<StopReason>,
    usage: Option<Usage>,
}

impl ScriptedReply {
    /// Creates a reply of text, its signal as written. Empty text gives a reply without text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(ScriptText::Whole(text.into()))
    }

    /// Creates a reply of text that arrives in these pieces.
    pub fn chunks<T: Into<String>>(chunks: impl IntoIterator<Item = T>) -> Self {
        let chunks = chunks.into_iter().map(Into::into);
        Self::of(ScriptText::Chunks(chunks.collect()))
    }

    pub(super) fn of(text: ScriptText) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// Adds a tool call. Its id will be `call_{step}_{n}`, both from 0.
    #[must_use]
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.raw_call(name, arguments.to_string())
    }

    /// Adds a tool call whose arguments may be invalid JSON.
    #[must_use]
    pub fn raw_call(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.calls.push((name.into(), arguments.into()));
        self
    }

    /// Sets the stop reason; by default, it depends on whether there are calls.
    #[must_use]
    pub const fn stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the usage; by default, it is estimated.
    #[must_use]
    pub const fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    pub(super) fn at_step(&self, step: usize, request: &Request, cut: Cut) -> Vec<DeltaResult> {
        match &self.text {
            ScriptText::Whole(text) => pieces::of_reply(self.whole(text, step, request), cut),
            ScriptText::Chunks(chunks) => {
                let reply = self.whole(&chunks.concat(), step, request);
                let chunk = |chunk: &String| Ok(Delta::Text(chunk.clone()));
                let mut items: Vec<DeltaResult> = chunks.iter().map(chunk).collect();
                items.push(Ok(Delta::Done(reply)));
                items
            }
        }
    }

    fn whole(&self, text: &str, step: usize, request: &Request) -> Reply {
        let text = (!text.is_empty()).then(|| Part::text(text));
        let calls = self.calls.iter().enumerate().map(|(n, (name, arguments))| {
            Part::ToolCall(ToolCall {
                id: CallId::new(&format!("call_{step}_{n}")),
                name: name.clone(),
                arguments: arguments.clone(),
            })
        });
        let parts: Vec<Part> = text.into_iter().chain(calls).collect();
        let by_calls = if self.calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolCalls
        };
        Reply {
            stop: self.stop.unwrap_or(by_calls),
            usage: self
                .usage
                .unwrap_or_else(|| estimate_usage(request, &parts)),
            model: format!("scripted/{}", request.model),
            parts,
        }
    }
}
