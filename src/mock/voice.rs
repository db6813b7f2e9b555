//! What the mock model says, and how faults bend it: a function of the request alone.
//!
//! A script that has failing tries is the exception: which of a turn's tries is due is counted, over all
//! conversations, as the scripted model does it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use super::{
    asked::{self, Asked},
    fault::{AFTER_CONTENT, Fault, FaultKind},
    problem::Problem,
    said::{Call, Reasoning, Said, Stop, Text},
    settings::Settings,
};
use crate::llm::script::{ScriptFault, ScriptText, ScriptTurn};

const FILLER: &str =
    "The handler checks the session token, loads the row and returns it to the caller. ";
const SUFFICIENT: &str = "<signal type=\"context_sufficient\"><sources_found>3</sources_found>\
                          <confidence>0.9</confidence></signal>";
/// Characters of one, two, three and four bytes.
const WIDE: &str = "Grüße aus 東京 – 🦀. ";
const REFUSED: &str = "I can't help with that.";
/// What is called where no tool is listed.
const SOME_TOOL: &str = "lookup";
const NO_TOOL: &str = "no_such_tool";
/// More than this much of one line is not asked for by any test.
const MOST_OF_A_LINE: u64 = 1 << 30;
const HUGE: u64 = 16 << 20;

/// What is to be said, and what is to go wrong with it.
#[derive(Debug)]
pub(super) struct Utterance {
    pub(super) said: Said,
    pub(super) fault: Option<Fault>,
    /// Before the answer, besides the latency.
    pub(super) delay: Duration,
    /// Between its pieces.
    pub(super) gap: Duration,
}

impl Utterance {
    const fn plain(said: Said) -> Self {
        Self {
            said,
            fault: None,
            delay: Duration::ZERO,
            gap: Duration::ZERO,
        }
    }
}

/// Says things.
#[derive(Debug)]
pub(super) enum Voice {
    /// Replies that follow one another, and begin again with the next question.
    Turns {
        replies: Vec<Arc<Text>>,
        tools: Tools,
    },
    /// A script.
    Script(Vec<Played>),
    /// What the user said.
    Echo,
}

/// Whether the first reply calls a tool.
#[derive(Debug)]
pub(super) enum Tools {
    Never,
    /// With these arguments, or some that fit its schema.
    First(Option<String>),
}

/// A turn of a script, and how often it was tried.
#[derive(Debug)]
pub(super) struct Played {
    turn: ScriptTurn,
    tries: AtomicUsize,
}

impl Voice {
    pub(super) fn new(settings: &Settings) -> Self {
        if let Some(script) = &settings.script {
            let played = |turn: &ScriptTurn| Played {
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
            tools: if settings.tools {
                Tools::First(settings.tool_arguments.clone())
            } else {
                Tools::Never
            },
        }
    }

    /// What answers this.
    pub(super) fn say(&self, asked: &Asked) -> Result<Utterance, Problem> {
        match self {
            Self::Turns { replies, tools } => {
                let turn = asked.replies % replies.len().max(1);
                let mut said = Said::text(replies.get(turn).cloned().unwrap_or_default());
                let last = turn + 1 == replies.len();
                if let (Tools::First(arguments), 0, false) = (tools, turn, last)
                    && let Some(tool) = asked.tools.first()
                {
                    let fitting = || asked::arguments(tool.schema);
                    said.calls = vec![Call {
                        id: call_id(asked, 0),
                        name: tool.name.to_string(),
                        arguments: arguments.clone().unwrap_or_else(fitting),
                    }];
                    said.stop = Stop::ToolCalls;
                }
                Ok(Utterance::plain(said))
            }
            Self::Script(turns) => match turns.get(asked.replies) {
                Some(played) => played.next(asked),
                None => Err(exhausted(turns.len(), asked.replies + 1)),
            },
            Self::Echo => {
                let text = asked.user.map(asked::text_of).unwrap_or_default();
                let text = Text::cut(&format!("{text}\n{SUFFICIENT}"), 20);
                Ok(Utterance::plain(Said::text(text)))
            }
        }
    }
}

fn call_id(asked: &Asked, n: usize) -> String {
    format!("call_{}_{n}", asked.replies)
}

fn exhausted(turns: usize, asked: usize) -> Problem {
    let detail = format!("script exhausted: it has {turns} turns and was asked for turn {asked}");
    Problem::new(400, detail)
}

impl Played {
    fn next(&self, asked: &Asked) -> Result<Utterance, Problem> {
        let tried = self.tries.fetch_add(1, Ordering::Relaxed);
        let delay = Duration::from_millis(self.turn.delay_ms);
        let faults = &self.turn.faults;
        let due = match &self.turn.reply {
            Some(_) => faults.get(tried),
            None => faults.get(tried).or(faults.last()),
        };
        let shown = |shown: &str, kind| Utterance {
            said: Said::text(Text::cut(shown, 4)),
            fault: Some(Fault {
                kind,
                number: Some(AFTER_CONTENT),
            }),
            delay,
            gap: Duration::ZERO,
        };
        match (due, &self.turn.reply) {
            (Some(ScriptFault::Stall { shown: text }), _) => Ok(shown(text, FaultKind::Stall)),
            (Some(ScriptFault::Cut { shown: text }), _) => Ok(shown(text, FaultKind::Cut)),
            (Some(ScriptFault::Fault { shown: text, .. }), _) if !text.is_empty() => {
                Ok(shown(text, FaultKind::ErrorLate))
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
                    ScriptText::Whole(text) => (Text::cut(text, 20), Duration::ZERO),
                    ScriptText::Chunks(chunks) => {
                        (Text::of(chunks.iter().map(String::as_str)), delay)
                    }
                };
                let mut said = Said::text(text);
                let calls = reply.tool_calls.iter().enumerate();
                said.calls = calls
                    .map(|(n, call)| Call {
                        id: call_id(asked, n),
                        name: call.name.clone(),
                        arguments: match &call.arguments {
                            None => "{}".to_owned(),
                            Some(serde_json::Value::String(text)) => text.clone(),
                            Some(arguments) => arguments.to_string(),
                        },
                    })
                    .collect();
                if !said.calls.is_empty() {
                    said.stop = Stop::ToolCalls;
                }
                Ok(Utterance {
                    said,
                    fault: None,
                    delay,
                    gap,
                })
            }
            (None, None) => Ok(Utterance::plain(Said::text(Arc::default()))),
        }
    }
}

/// The reply as a fault would have it.
pub(super) fn bend(mut said: Said, fault: Fault, asked: &Asked) -> Said {
    match fault.kind {
        FaultKind::Calls
        | FaultKind::FinishStop
        | FaultKind::CallNoIndex
        | FaultKind::CallSameIndex => call(said, asked, 2),
        FaultKind::CallObject => call(said, asked, 1),
        FaultKind::CallCut => {
            let mut said = call(said, asked, 1);
            for call in &mut said.calls {
                // Long enough for a cut that leaves something, and no end.
                "{\"query\":\"where is it".clone_into(&mut call.arguments);
            }
            said
        }
        FaultKind::CallUnknown => {
            let mut said = call(said, asked, 1);
            for call in &mut said.calls {
                NO_TOOL.clone_into(&mut call.name);
            }
            said
        }
        FaultKind::EmptyText | FaultKind::EmptyChoices => Said::text(Arc::default()),
        FaultKind::ReasoningOnly => Said {
            reasoning: Some(Reasoning::Plain),
            ..Said::text(Arc::default())
        },
        FaultKind::Reasoning => {
            said.reasoning = Some(Reasoning::Plain);
            said
        }
        FaultKind::ReasoningContent => {
            said.reasoning = Some(Reasoning::Content);
            said
        }
        FaultKind::Refusal => Said {
            stop: Stop::Refusal,
            ..Said::text(Text::cut(REFUSED, 3))
        },
        FaultKind::ContentFilter => Said {
            stop: Stop::ContentFilter,
            ..Said::text(Text::cut(&FILLER[..30], 3))
        },
        FaultKind::Length => Said {
            stop: Stop::MaxTokens,
            ..Said::text(Text::cut(&FILLER[..30], 3))
        },
        FaultKind::Split => {
            said.text = Text::cut(&format!("{WIDE}{WIDE}\n{SUFFICIENT}"), 6);
            said
        }
        FaultKind::HugeLine => {
            let bytes = fault.number_or(HUGE).min(MOST_OF_A_LINE);
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
            said.text = Text::cut(&FILLER.repeat(bytes / FILLER.len() + 1)[..bytes], 1);
            said
        }
        _ => said,
    }
}

/// The same reply with so many calls at its end.
fn call(mut said: Said, asked: &Asked, calls: usize) -> Said {
    let tool = asked.tools.first();
    said.stop = Stop::ToolCalls;
    said.calls = (0..calls)
        .map(|n| Call {
            id: call_id(asked, n),
            name: tool.map_or(SOME_TOOL, |tool| &*tool.name).to_owned(),
            arguments: asked::arguments(tool.and_then(|tool| tool.schema)),
        })
        .collect();
    said
}

#[cfg(test)]
mod tests;
