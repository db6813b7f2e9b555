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
    Backend, Delta, DeltaStream, Request,
    offline::DETERMINISTIC,
    pieces::{self, Cut},
};
use crate::model::{Capabilities, Fault, FaultCode, Role};

mod file;
mod step;

pub use file::Scripts;
pub use step::{ScriptedReply, Try};

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
    #[must_use]
    pub const fn starting_after(mut self, assistant_messages: usize) -> Self {
        self.start = assistant_messages;
        self
    }

    /// Sets the number of characters in a piece of text (default 16; 0 counts as 1).
    #[must_use]
    pub const fn chunk_characters(mut self, characters: usize) -> Self {
        self.chunk = characters;
        self
    }

    /// Adds a step that replies with text, its signal as written.
    #[must_use]
    pub fn reply(self, text: impl Into<String>) -> Self {
        self.play(ScriptedReply::text(text))
    }

    /// Adds a step that replies with text and tool calls.
    #[must_use]
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
    #[must_use]
    pub fn play(self, reply: ScriptedReply) -> Self {
        self.step([Try::Reply(reply)])
    }

    /// Adds a step with these tries, after any that wait for their step. The last one repeats.
    #[must_use]
    pub fn step(mut self, tries: impl IntoIterator<Item = Try>) -> Self {
        self = tries.into_iter().fold(self, Self::with_try);
        self.open = false;
        self
    }

    /// Adds a try to the next step that fails at once; the step's reply follows on a later try. At
    /// the end of a script it is a step of its own that always fails.
    #[must_use]
    pub fn fault(self, fault: Fault) -> Self {
        self.fault_after("", fault)
    }

    /// Like [`Self::fault`], but shows some text first.
    #[must_use]
    pub fn fault_after(self, shown: impl Into<String>, fault: Fault) -> Self {
        let shown = shown.into();
        self.with_try(Try::Fault { shown, fault })
    }

    /// Adds a try to the next step that shows some text and then never ends.
    #[must_use]
    pub fn stall(self, shown: impl Into<String>) -> Self {
        let shown = shown.into();
        self.with_try(Try::Stall { shown })
    }

    /// Adds a try to the next step whose stream ends without its end mark.
    #[must_use]
    pub fn cut(self, shown: impl Into<String>) -> Self {
        let shown = shown.into();
        self.with_try(Try::Cut { shown })
    }

    /// Pauses the last step this long before the first piece of each try, and before each further
    /// chunk of a reply in [`chunks`](ScriptedReply::chunks). Without a step it has no effect.
    #[must_use]
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

#[cfg(test)]
mod tests;
