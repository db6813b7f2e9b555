//! The scripted model: plays given replies, for tests, examples, dry runs and `oracle dev replay`.
//!
//! **The step** follows from the request: the number of its assistant messages, less those before
//! the script begins ([`Scripted::starting_after`]). So a restarted attempt plays the same step
//! again, and conversations can share a script.
//!
//! A step may hold several **tries**, which successive requests for it play in order; the last one
//! repeats. Tries are counted over all conversations.
//!
//! The model plays what is written, including calls under [`ToolChoice::None`](super::ToolChoice)
//! and broken arguments. It waits only where the script says so ([`Scripted::slowly`]). A script
//! may also come from a file ([`Scripted::of_turns`], [`Scripts`]).

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::Value;

use super::{
    Backend, Delta, DeltaStream, Request, estimate_usage,
    offline::DETERMINISTIC,
    pieces::{self, Cut, DeltaResult},
    script::ScriptText,
};
use crate::model::{
    CallId, Capabilities, Fault, FaultCode, Part, Reply, Role, StopReason, ToolCall, Usage,
};

mod file;

pub use file::Scripts;

/// Number of requests kept; older ones are dropped.
pub const REQUESTS_KEPT: usize = 1024;

const SCRIPTED: Capabilities = Capabilities {
    images: true,
    ..DETERMINISTIC
};

const CHUNK_CHARACTERS: usize = 16;

/// A [`Backend`] that plays a script. Clones share the requests seen and the counts of tries.
///
/// ```
/// # mod oracle_agent { pub use oracle_llm as llm; pub use oracle_core::model; }
/// use oracle_agent::{llm::Scripted, model::Fault};
/// use serde_json::json;
///
/// let script = Scripted::new()
///     .calls("Looking.", [("code_search", json!({"query": "actor"}))])
///     .fault(Fault::retryable("overloaded", "come back later"))
///     .reply("Found it.");
/// assert_eq!(script.len(), 2);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Scripted {
    steps: Vec<Step>,
    open: bool,
    start: usize,
    chunk: usize,
    kept: usize,
    // A lock, because `call` takes `&self` and requests come from many tasks; held for one push.
    seen: Arc<Mutex<VecDeque<Request>>>,
}

#[derive(Debug, Clone, Default)]
struct Step {
    tries: Vec<Try>,
    pause: Duration,
    played: Arc<AtomicUsize>,
}

impl Step {
    fn play(&self, index: usize, request: &Request, cut: Cut) -> DeltaStream {
        let played = self.played.fetch_add(1, Ordering::Relaxed);
        let tried = self.tries.get(played).or(self.tries.last());
        let items = match tried {
            None => Vec::new(),
            Some(Try::Reply(reply)) => reply.at_step(index, request, cut),
            Some(Try::Fault { shown, fault }) => {
                let mut items = pieces::of_text(shown, cut);
                items.push(Err(fault.clone()));
                items
            }
            Some(Try::Stall { shown } | Try::Cut { shown }) => pieces::of_text(shown, cut),
        };
        let (pause, in_chunks) = (self.pause, tried.is_some_and(Try::is_in_chunks));
        let paced = move |(at, item)| async move {
            if at == 0 || (in_chunks && matches!(item, Ok(Delta::Text(_)))) {
                tokio::time::sleep(pause).await;
            }
            item
        };
        let played = match pause.is_zero() {
            true => stream::iter(items).boxed(),
            false => stream::iter(items).enumerate().then(paced).boxed(),
        };
        match tried {
            Some(Try::Stall { .. }) => played.chain(stream::pending()).boxed(),
            _ => played,
        }
    }
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new()
    }
}

impl Scripted {
    /// Creates an empty script.
    pub fn new() -> Self {
        Self {
            steps: Vec::new(),
            open: false,
            start: 0,
            chunk: CHUNK_CHARACTERS,
            kept: REQUESTS_KEPT,
            seen: Arc::default(),
        }
    }

    /// Sets the number of assistant messages before the script begins (default 0). Conversations
    /// with fewer play the first step.
    pub const fn starting_after(mut self, assistant_messages: usize) -> Self {
        self.start = assistant_messages;
        self
    }

    /// Sets the number of characters in a piece of text (default 16; 0 counts as 1).
    pub const fn chunk_characters(mut self, characters: usize) -> Self {
        self.chunk = characters;
        self
    }

    /// Adds a step that replies with text, its signal as written.
    pub fn reply(self, text: impl Into<String>) -> Self {
        self.play(ScriptedReply::text(text))
    }

    /// Adds a step that replies with text and tool calls.
    pub fn calls<N: Into<String>>(
        self,
        text: impl Into<String>,
        calls: impl IntoIterator<Item = (N, Value)>,
    ) -> Self {
        let reply = ScriptedReply::text(text);
        let calls = calls.into_iter();
        self.play(calls.fold(reply, |reply, (name, args)| reply.call(name, args)))
    }

    /// Adds a step with any reply.
    pub fn play(self, reply: ScriptedReply) -> Self {
        self.step([Try::Reply(reply)])
    }

    /// Adds a step with these tries, after any that wait for their step. The last one repeats.
    pub fn step(mut self, tries: impl IntoIterator<Item = Try>) -> Self {
        self = tries.into_iter().fold(self, Self::with_try);
        self.open = false;
        self
    }

    /// Adds a try to the next step that fails at once; the step's reply follows on a later try. At
    /// the end of a script it is a step of its own that always fails.
    pub fn fault(self, fault: Fault) -> Self {
        self.fault_after("", fault)
    }

    /// Like [`Self::fault`], but shows some text first.
    pub fn fault_after(self, shown: impl Into<String>, fault: Fault) -> Self {
        let shown = shown.into();
        self.with_try(Try::Fault { shown, fault })
    }

    /// Adds a try to the next step that shows some text and then never ends.
    pub fn stall(self, shown: impl Into<String>) -> Self {
        let shown = shown.into();
        self.with_try(Try::Stall { shown })
    }

    /// Adds a try to the next step whose stream ends without its end mark.
    pub fn cut(self, shown: impl Into<String>) -> Self {
        let shown = shown.into();
        self.with_try(Try::Cut { shown })
    }

    /// Pauses the last step this long before the first piece of each try, and before each further
    /// chunk of a reply in [`chunks`](ScriptedReply::chunks). Without a step it has no effect.
    pub fn slowly(mut self, pause: Duration) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.pause = pause;
        }
        self
    }

    fn with_try(mut self, new: Try) -> Self {
        if !self.open {
            self.steps.push(Step::default());
            self.open = true;
        }
        if let Some(step) = self.steps.last_mut() {
            step.tries.push(new);
        }
        self
    }

    /// The number of steps.
    pub const fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether the script has no step.
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The last [`REQUESTS_KEPT`] requests, oldest first. Keep a clone of the script to call this
    /// after handing it over.
    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().iter().cloned().collect()
    }

    fn remember(&self, request: Request) {
        if self.kept == 0 {
            return;
        }
        let mut seen = self.seen.lock();
        if seen.len() == self.kept {
            seen.pop_front();
        }
        seen.push_back(request);
    }

    fn index(&self, request: &Request) -> usize {
        let messages = request.messages.iter();
        let replies = messages.filter(|message| message.role == Role::Assistant);
        replies.count().saturating_sub(self.start)
    }

    fn exhausted(&self, index: usize) -> Fault {
        let (steps, asked) = (self.steps.len(), index + 1);
        let detail = format!(
            "the script has {steps} steps, but step {asked} was requested: add the missing \
             replies"
        );
        Fault::permanent(FaultCode::ScriptExhausted, detail)
    }
}

impl Backend for Scripted {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self, _model: &str) -> Capabilities {
        SCRIPTED
    }

    fn call(&self, request: Request) -> DeltaStream {
        let index = self.index(&request);
        let stream = match self.steps.get(index) {
            None => stream::iter([Err(self.exhausted(index))]).boxed(),
            Some(step) => step.play(index, &request, Cut::Characters(self.chunk)),
        };
        self.remember(request);
        stream
    }
}

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
    const fn is_in_chunks(&self) -> bool {
        matches!(self, Self::Reply(reply) if matches!(reply.text, ScriptText::Chunks(_)))
    }
}

/// A reply in a script.
#[derive(Debug, Clone, Default)]
#[must_use]
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

    fn of(text: ScriptText) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }

    /// Adds a tool call. Its id will be `call_{step}_{n}`, both from 0.
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.raw_call(name, arguments.to_string())
    }

    /// Adds a tool call whose arguments may be invalid JSON.
    pub fn raw_call(mut self, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.calls.push((name.into(), arguments.into()));
        self
    }

    /// Sets the stop reason; by default, it depends on whether there are calls.
    pub const fn stop(mut self, stop: StopReason) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the usage; by default, it is estimated.
    pub const fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    fn at_step(&self, step: usize, request: &Request, cut: Cut) -> Vec<DeltaResult> {
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

#[cfg(test)]
mod tests;
