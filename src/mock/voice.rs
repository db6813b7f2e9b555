//! The content of replies, a function of the request; faults change it.
//!
//! Scripts with failing tries are the exception: they count tries of a turn over all conversations.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use super::{
    fault::{AFTER_CONTENT, Fault, FaultKind, Problem},
    reply::{Call, ReplyContent, Text},
    request::{self, ParsedRequest},
    settings::Settings,
};
use crate::{
    llm::script::{Script, ScriptFault, ScriptText, ScriptTurn},
    model::StopReason,
};

/// Pieces of a streamed text without a setting.
const PIECES: usize = 20;
const FILLER: &str =
    "The handler checks the session token, loads the row and returns it to the caller. ";
const SUFFICIENT: &str = "<signal type=\"context_sufficient\"><sources_found>3</sources_found>\
                          <confidence>0.9</confidence></signal>";
/// Characters of one to four bytes.
const WIDE: &str = "Grüße aus 東京 – 🦀. ";
const REFUSED: &str = "I can't help with that.";
/// The tool to call if the request lists none.
const SOME_TOOL: &str = "lookup";
const NO_TOOL: &str = "no_such_tool";
const MOST_OF_A_LINE: u64 = 1 << 30;
const HUGE: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct PlannedReply {
    pub(super) said: ReplyContent,
    pub(super) fault: Option<Fault>,
    /// Replaces the latency, unless zero.
    pub(super) delay: Duration,
    pub(super) gap: Duration,
}

impl PlannedReply {
    const fn plain(said: ReplyContent) -> Self {
        Self {
            said,
            fault: None,
            delay: Duration::ZERO,
            gap: Duration::ZERO,
        }
    }
}

#[derive(Debug)]
pub(super) enum ReplySource {
    /// Replies in turn; each question starts again with the first.
    Turns {
        replies: Vec<Arc<Text>>,
        /// Arguments of the first reply's call, if it makes one; an inner `None` derives them from
        /// the tool's schema.
        tools: Option<Option<String>>,
    },
    Script(Vec<ScriptedTurn>),
    Echo,
}

#[derive(Debug)]
pub(super) struct ScriptedTurn {
    turn: ScriptTurn,
    tries: AtomicUsize,
}

impl ReplySource {
    pub(super) fn new(settings: &Settings) -> Self {
        if let Some(script) = &settings.script {
            let played = |turn: &ScriptTurn| ScriptedTurn {
                turn: turn.clone(),
                tries: AtomicUsize::new(0),
            };
            return Self::Script(script.turns.iter().map(played).collect());
        }
        if settings.echo {
            return Self::Echo;
        }
        let turns = settings.turns.get() as usize;
        let pieces = settings.chunks.get() as usize;
        let text: String = FILLER.chars().cycle().take(settings.size).collect();
        let reply = |k: usize| {
            let more = format!(
                "<signal type=\"need_turn\"><reason>Step {} is done, step {} is still open</reason>\
                 <confidence>0.8</confidence></signal>",
                k + 1,
                k + 2
            );
            let signal = if k + 1 < turns { &more } else { SUFFICIENT };
            Text::cut(&format!("{text}\n{signal}"), pieces)
        };
        Self::Turns {
            replies: (0..turns).map(reply).collect(),
            tools: settings.tools.then(|| settings.tool_arguments.clone()),
        }
    }

    pub(super) fn say(&self, asked: &ParsedRequest) -> Result<PlannedReply, Problem> {
        if let Some((script, replies)) = &asked.script {
            return play(script, *replies, asked);
        }
        match self {
            Self::Turns { replies, tools } => {
                let turn = asked.replies % replies.len().max(1);
                let text = match &asked.format {
                    Some(format) => Text::cut(&format.object(), PIECES),
                    None => replies.get(turn).cloned().unwrap_or_default(),
                };
                let mut said = ReplyContent::text(text);
                let calls = tools.is_some() && turn == 0 && turn + 1 < replies.len();
                // The last tool, because Oracle lists those of its client last.
                let tool = match asked.must_call {
                    true => asked.tools.last(),
                    false => asked.tools.first().filter(|_| calls),
                };
                if let Some(tool) = tool {
                    let fitting = || request::arguments(tool.schema);
                    said.calls = vec![Call {
                        id: call_id(asked, 0),
                        name: tool.name.to_string(),
                        arguments: tools.clone().flatten().unwrap_or_else(fitting),
                    }];
                    said.stop = StopReason::ToolCalls;
                }
                Ok(PlannedReply::plain(said))
            }
            Self::Script(turns) => match turns.get(asked.replies) {
                Some(played) => played.next(asked),
                None => Err(exhausted(turns.len(), asked.replies + 1)),
            },
            Self::Echo => {
                let text = asked.user.map(request::text_of).unwrap_or_default();
                let text = Text::cut(&format!("{text}\n{SUFFICIENT}"), PIECES);
                Ok(PlannedReply::plain(ReplyContent::text(text)))
            }
        }
    }
}

/// Plays a script that is part of the question.
fn play(script: &str, replies: usize, asked: &ParsedRequest) -> Result<PlannedReply, Problem> {
    // Text after the script is ignored.
    let script = serde_json::Deserializer::from_str(script).into_iter::<Script>();
    let script = { script }.next().transpose();
    let script = script.map_err(|error| {
        let what = format!("invalid script after `mock: `: {error}; see docs/scripts.md");
        Problem::new(400, what)
    })?;
    let mut turns = script.map(|script| script.turns).unwrap_or_default();
    if replies >= turns.len() {
        return Err(exhausted(turns.len(), replies + 1));
    }
    let turn = ScriptedTurn {
        turn: turns.swap_remove(replies),
        tries: AtomicUsize::new(0),
    };
    turn.next(asked)
}

fn call_id(asked: &ParsedRequest, n: usize) -> String {
    format!("call_{}_{n}", asked.replies)
}

fn exhausted(turns: usize, asked: usize) -> Problem {
    let detail = format!("script exhausted: it has {turns} turns, but turn {asked} was requested");
    Problem::new(400, detail)
}

impl ScriptedTurn {
    fn next(&self, asked: &ParsedRequest) -> Result<PlannedReply, Problem> {
        let tried = self.tries.fetch_add(1, Ordering::Relaxed);
        let delay = Duration::from_millis(self.turn.delay_ms);
        let faults = &self.turn.faults;
        let due = match &self.turn.reply {
            Some(_) => faults.get(tried),
            None => faults.get(tried).or(faults.last()),
        };
        let fail_after = |shown: &str, kind| {
            let number = Some(AFTER_CONTENT);
            Ok(PlannedReply {
                fault: Some(Fault { kind, number }),
                delay,
                ..PlannedReply::plain(ReplyContent::text(Text::cut(shown, 4)))
            })
        };
        match (due, &self.turn.reply) {
            (Some(ScriptFault::Stall { shown: text }), _) => fail_after(text, FaultKind::Stall),
            (Some(ScriptFault::Cut { shown: text }), _) => fail_after(text, FaultKind::Cut),
            (Some(ScriptFault::Fault { shown: text, .. }), _) if !text.is_empty() => {
                fail_after(text, FaultKind::ErrorLate)
            }
            (
                Some(ScriptFault::Fault {
                    code,
                    detail,
                    permanent,
                    after_ms,
                    ..
                }),
                _,
            ) => Err(Problem::of_code(code, detail, *permanent, *after_ms)),
            (None, Some(reply)) => {
                let (text, gap) = match &reply.text {
                    ScriptText::Whole(text) => (Text::cut(text, PIECES), Duration::ZERO),
                    ScriptText::Chunks(chunks) => {
                        (Text::of(chunks.iter().map(String::as_str)), delay)
                    }
                };
                let mut said = ReplyContent::text(text);
                let calls = reply.tool_calls.iter().enumerate();
                said.calls = calls
                    .map(|(n, call)| Call {
                        id: call_id(asked, n),
                        name: call.name.clone(),
                        arguments: call.sent(),
                    })
                    .collect();
                if !said.calls.is_empty() {
                    said.stop = StopReason::ToolCalls;
                }
                Ok(PlannedReply {
                    delay,
                    gap,
                    ..PlannedReply::plain(said)
                })
            }
            (None, None) => Ok(PlannedReply::plain(ReplyContent::text(Arc::default()))),
        }
    }
}

pub(super) fn apply_fault(
    mut said: ReplyContent,
    fault: Fault,
    asked: &ParsedRequest,
) -> ReplyContent {
    let ending = |stop, text: &str| ReplyContent {
        stop,
        ..ReplyContent::text(Text::cut(text, 3))
    };
    match fault.kind {
        FaultKind::Calls
        | FaultKind::FinishStop
        | FaultKind::CallNoIndex
        | FaultKind::CallSameIndex => call(&mut said, asked, 2),
        FaultKind::CallObject => call(&mut said, asked, 1),
        FaultKind::CallCut => {
            call(&mut said, asked, 1);
            "{\"query\":\"where is it".clone_into(&mut said.calls[0].arguments);
        }
        FaultKind::CallUnknown => {
            call(&mut said, asked, 1);
            NO_TOOL.clone_into(&mut said.calls[0].name);
        }
        FaultKind::EmptyText | FaultKind::EmptyChoices => said = ReplyContent::text(Arc::default()),
        FaultKind::ReasoningOnly => {
            said = ReplyContent::text(Arc::default());
            said.reasoning = Some("reasoning");
        }
        FaultKind::Reasoning => said.reasoning = Some("reasoning"),
        FaultKind::ReasoningContent => said.reasoning = Some("reasoning_content"),
        FaultKind::Refusal => said = ending(StopReason::Refusal, REFUSED),
        FaultKind::ContentFilter => said = ending(StopReason::ContentFilter, &FILLER[..30]),
        FaultKind::Length => said = ending(StopReason::MaxTokens, &FILLER[..30]),
        FaultKind::Split => said.text = Text::cut(&format!("{WIDE}{WIDE}\n{SUFFICIENT}"), 6),
        FaultKind::HugeLine => {
            let bytes = fault.number_or(HUGE).min(MOST_OF_A_LINE);
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            said.text = Text::cut(&FILLER.repeat(bytes / FILLER.len() + 1)[..bytes], 1);
        }
        _ => {}
    }
    said
}

fn call(said: &mut ReplyContent, asked: &ParsedRequest, calls: usize) {
    let tool = asked.tools.first();
    said.stop = StopReason::ToolCalls;
    said.calls = (0..calls)
        .map(|n| Call {
            id: call_id(asked, n),
            name: tool.map_or(SOME_TOOL, |tool| &*tool.name).to_owned(),
            arguments: request::arguments(tool.and_then(|tool| tool.schema)),
        })
        .collect();
}

#[cfg(test)]
mod tests;
