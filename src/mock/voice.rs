//! The content of replies, a function of the request; faults change it.
//!
//! Scripts with failing tries are the exception: they count tries of a turn over all conversations.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use serde_json::Value;

use super::{
    fault::{AFTER_CONTENT, Fault, FaultKind, Problem},
    reply::{ReplyContent, cut},
    request::{ParsedRequest, fitting},
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
        replies: Vec<Arc<[String]>>,
        /// Arguments of the first reply's call, if it makes one; an inner `None` derives them from
        /// the tool's schema.
        tools: Option<Option<String>>,
    },
    /// Turns, each with its tries so far.
    Script(Vec<(ScriptTurn, AtomicUsize)>),
    Echo,
}

impl ReplySource {
    pub(super) fn new(settings: &Settings) -> Self {
        if let Some(script) = &settings.script {
            let turns = script.turns.iter().cloned();
            return Self::Script(turns.map(|turn| (turn, AtomicUsize::new(0))).collect());
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
            cut(&format!("{text}\n{signal}"), pieces)
        };
        Self::Turns {
            replies: (0..turns).map(reply).collect(),
            tools: settings.tools.then(|| settings.tool_arguments.clone()),
        }
    }

    pub(super) fn say(&self, asked: &ParsedRequest) -> Result<PlannedReply, Problem> {
        if let Some((script, replies)) = &asked.script {
            return play_text(script, *replies, asked);
        }
        match self {
            Self::Turns { replies, tools } => {
                let turn = asked.replies % replies.len().max(1);
                let text = match &asked.format {
                    Some(schema) => cut(&fitting(schema), PIECES),
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
                    let fitting = || fitting(&tool.schema);
                    let arguments = tools.clone().flatten().unwrap_or_else(fitting);
                    said = said.calling(asked, [(tool.name.clone(), arguments)]);
                }
                Ok(PlannedReply::plain(said))
            }
            Self::Script(turns) => match turns.get(asked.replies) {
                Some((turn, tries)) => play(turn, tries.fetch_add(1, Ordering::Relaxed), asked),
                None => Err(exhausted(turns.len(), asked.replies + 1)),
            },
            Self::Echo => {
                let text = cut(&format!("{}\n{SUFFICIENT}", asked.user), PIECES);
                Ok(PlannedReply::plain(ReplyContent::text(text)))
            }
        }
    }
}

/// Plays a script that is part of the question.
fn play_text(script: &str, replies: usize, asked: &ParsedRequest) -> Result<PlannedReply, Problem> {
    // Text after the script is ignored.
    let script = serde_json::Deserializer::from_str(script).into_iter::<Script>();
    let script = { script }.next().transpose();
    let script = script.map_err(|error| {
        let what = format!("invalid script after `mock: `: {error}; see docs/scripts.md");
        Problem::new(400, what)
    })?;
    let turns = script.map(|script| script.turns).unwrap_or_default();
    match turns.get(replies) {
        Some(turn) => play(turn, 0, asked),
        None => Err(exhausted(turns.len(), replies + 1)),
    }
}

fn exhausted(turns: usize, asked: usize) -> Problem {
    let detail = format!("script exhausted: it has {turns} turns, but turn {asked} was requested");
    Problem::new(400, detail)
}

/// Plays a turn after so many tries of it.
fn play(turn: &ScriptTurn, tried: usize, asked: &ParsedRequest) -> Result<PlannedReply, Problem> {
    let delay = Duration::from_millis(turn.delay_ms);
    let due = turn.faults.get(tried);
    let due = due.or(turn.faults.last().filter(|_| turn.reply.is_none()));
    let broken_off = match due {
        None => None,
        Some(ScriptFault::Stall { shown }) => Some((FaultKind::Stall, shown)),
        Some(ScriptFault::Cut { shown }) => Some((FaultKind::Cut, shown)),
        Some(ScriptFault::Fault {
            shown,
            code,
            detail,
            permanent,
            after_ms,
        }) => match shown.is_empty() {
            true => return Err(Problem::of_code(code, detail, *permanent, *after_ms)),
            false => Some((FaultKind::ErrorLate, shown)),
        },
    };
    let mut planned = PlannedReply::plain(ReplyContent::text(Arc::default()));
    planned.delay = delay;
    if let Some((kind, shown)) = broken_off {
        let number = Some(AFTER_CONTENT);
        planned.fault = Some(Fault { kind, number });
        planned.said.text = cut(shown, 4);
    } else if let Some(reply) = &turn.reply {
        (planned.said.text, planned.gap) = match &reply.text {
            ScriptText::Whole(text) => (cut(text, PIECES), Duration::ZERO),
            ScriptText::Chunks(chunks) => (chunks.as_slice().into(), delay),
        };
        let calls = reply.tool_calls.iter();
        let calls = calls.map(|call| (call.name.clone(), call.sent()));
        planned.said = planned.said.calling(asked, calls);
    }
    Ok(planned)
}

pub(super) fn apply_fault(
    mut said: ReplyContent,
    fault: Fault,
    asked: &ParsedRequest,
) -> ReplyContent {
    let ending = |stop, text: &str| ReplyContent {
        stop,
        ..ReplyContent::text(cut(text, 3))
    };
    said = match fault.kind {
        FaultKind::CallObject | FaultKind::CallCut | FaultKind::CallUnknown => call(said, asked, 1),
        FaultKind::Calls
        | FaultKind::CallNoIndex
        | FaultKind::CallSameIndex
        | FaultKind::FinishStop => call(said, asked, 2),
        _ => said,
    };
    match fault.kind {
        FaultKind::FinishStop => said.stop = StopReason::EndTurn,
        FaultKind::CallCut => said.calls[0].arguments = "{\"query\":\"where is it".to_owned(),
        FaultKind::CallUnknown => said.calls[0].name = NO_TOOL.to_owned(),
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
        FaultKind::Split => said.text = cut(&format!("{WIDE}{WIDE}\n{SUFFICIENT}"), 6),
        FaultKind::HugeLine => {
            let bytes = fault.number_or(HUGE).min(MOST_OF_A_LINE);
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            said.text = [FILLER.repeat(bytes / FILLER.len() + 1)[..bytes].to_owned()].into();
        }
        _ => {}
    }
    said
}

fn call(said: ReplyContent, asked: &ParsedRequest, calls: usize) -> ReplyContent {
    let tool = asked.tools.first();
    let name = tool.map_or(SOME_TOOL, |tool| &*tool.name).to_owned();
    let arguments = fitting(tool.map_or(&Value::Null, |tool| &tool.schema));
    said.calling(asked, vec![(name, arguments); calls])
}

#[cfg(test)]
mod tests;
