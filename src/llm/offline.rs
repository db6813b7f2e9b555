//! The offline model answers without a network, by one `code_search` over the user's own files. It
//! quotes the best place, names four more, and explains how to configure a model.
//!
//! **Invariant:** a reply is a pure function of the request, so a restarted attempt gives the same
//! reply. Text from questions and results is quoted, never obeyed, and can end neither its fence
//! nor a signal.

use std::fmt::Write as _;

use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::json;

use super::{
    Backend, DeltaStream, Request, ToolChoice, estimate_usage,
    pieces::{self, Cut},
};
use crate::model::{
    CallId, Capabilities, Message, Parameter, Part, Reply, Role, StopReason, ToolCall, ToolResult,
    ToolStatus,
    tool::{Place, SearchData},
};

mod task;

/// Name of both the provider and the model.
pub const OFFLINE: &str = "offline";

const TOOL: &str = "code_search";
/// Maximum characters of a question to search for.
const LONGEST_QUESTION: usize = 900;
/// Coverage from which the best place counts as an answer.
pub const SURE: f64 = 0.6;
const TRIES: usize = 6;
/// Number of places in an answer, the first of which is quoted.
const PLACES: usize = 5;
/// Maximum length of a quoted line and of a signal's field, in characters.
const LONGEST_LINE: usize = 200;
const LONGEST_FIELD: usize = 500;

const HINT: &str = "This is a search, not a language model. For an explanation, set \
     `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, start Ollama, or name a model with `--model`.";

/// What models without a network take: parameters that only concern sampling.
pub(super) const DETERMINISTIC: Capabilities = Capabilities {
    parameters: &[
        Parameter::Temperature,
        Parameter::TopP,
        Parameter::PresencePenalty,
        Parameter::FrequencyPenalty,
        Parameter::Seed,
    ],
    ..Capabilities::NONE
};

/// A [`Backend`] that needs nothing but `code_search`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offline;

impl Backend for Offline {
    fn provider(&self) -> &'static str {
        OFFLINE
    }

    fn capabilities(&self, _model: &str) -> Capabilities {
        DETERMINISTIC
    }

    fn call(&self, request: Request) -> DeltaStream {
        stream::iter(pieces::of_reply(reply(&request), Cut::Words)).boxed()
    }
}

fn reply(request: &Request) -> Reply {
    let query = Query::read(&request.messages);
    let has_tool = request.tools.iter().any(|tool| tool.name == TOOL);
    let is_offered =
        has_tool && matches!(request.tool_choice, ToolChoice::Auto | ToolChoice::Required);
    let is_task = request.options.as_ref().is_some_and(|own| own.is_task);
    let (parts, stop) = if is_task {
        (
            vec![Part::text(task::answer(&query.question))],
            StopReason::EndTurn,
        )
    } else if is_offered && query.searches() {
        (vec![query.searching(), query.call()], StopReason::ToolCalls)
    } else {
        let result = query.results.last().copied();
        (vec![answer(result, has_tool)], StopReason::EndTurn)
    };
    Reply {
        usage: estimate_usage(request, &parts),
        parts,
        stop,
        model: format!("{OFFLINE}/{OFFLINE}"),
    }
}

struct Query<'a> {
    question: String,
    results: Vec<&'a ToolResult>,
    calls: usize,
}

impl<'a> Query<'a> {
    fn read(messages: &'a [impl AsRef<Message>]) -> Self {
        let messages: Vec<&Message> = messages.iter().map(AsRef::as_ref).collect();
        let asked = messages
            .iter()
            .rposition(|message| message.role == Role::User && !message.is_summary());
        let question = asked.map(|at| messages[at].texts().collect::<Vec<_>>().join("\n"));
        let own = &messages[asked.map_or(0, |at| at + 1)..];
        Self {
            question: question.unwrap_or_default(),
            results: own.iter().flat_map(|message| message.results()).collect(),
            calls: messages.iter().map(|message| message.calls().count()).sum(),
        }
    }

    fn searches(&self) -> bool {
        match self.results[..] {
            [] => true,
            // The same result twice: another search is useless.
            [.., before, last] if before.content == last.content => false,
            // The index may not be ready.
            [.., last] => last.status == ToolStatus::Failed && self.results.len() < TRIES,
        }
    }

    fn searching(&self) -> Part {
        let mut reason = "The search results have to be read".to_owned();
        if !self.results.is_empty() {
            // The same reason three times would be a loop.
            let _ = write!(reason, " (try {})", self.results.len() + 1);
        }
        Part::text(signal("need_turn", &[("reason", text(&reason))], 0.9))
    }

    fn call(&self) -> Part {
        let query: String = self.question.chars().take(LONGEST_QUESTION).collect();
        Part::ToolCall(ToolCall {
            id: CallId::new(&format!("{OFFLINE}_{}", self.calls + 1)),
            name: TOOL.to_owned(),
            arguments: json!({ "query": query, "mode": "words" }).to_string(),
        })
    }
}

fn answer(result: Option<&ToolResult>, has_tool: bool) -> Part {
    let failed = |why: &str| stuck(&format!("The search failed: {why}"));
    let Some(result) = result else {
        let missing = "a language model, or the tool `code_search`";
        let fields = [("missing", text(missing))];
        let why = match has_tool {
            true => "no tools are available in this turn",
            false => "this session has no search tool",
        };
        return Part::text(format!(
            "I can only search files, and {why}.\n\n{HINT}\n\n{}",
            signal("partial_answer", &fields, 0.3)
        ));
    };
    if result.status != ToolStatus::Ok {
        return failed(&result.content);
    }
    // A scripted or host-provided search may have text only.
    let found = result.data.as_ref().map(SearchData::deserialize);
    match found {
        Some(Ok(found)) => match found.places.split_first() {
            Some((best, more)) => places(best, more, found.coverage),
            None => stuck("Nothing in the files matches the question"),
        },
        Some(Err(_)) | None => failed("its result has no places"),
    }
}

fn places(best: &Place, more: &[Place], coverage: f64) -> Part {
    let mut answer = quoted(best);
    let more = &more[..more.len().min(PLACES - 1)];
    if !more.is_empty() {
        answer.push_str("\n\nSee also:\n");
    }
    for place in more {
        let _ = write!(answer, "\n- `{}`", location(place));
    }
    let percent = (coverage.clamp(0.0, 1.0) * 100.0).round();
    let sources = 1 + more.len();
    let signal = if coverage >= SURE {
        let fields = [
            ("sources_found", sources.to_string()),
            ("source_types", json!(["code"]).to_string()),
        ];
        signal("context_sufficient", &fields, coverage)
    } else {
        let missing = format!("the best place matches only {percent} % of the question by words");
        let fields = [("missing", text(&missing))];
        signal("partial_answer", &fields, coverage.max(0.3))
    };
    let _ = write!(
        answer,
        "\n\nThe first place matches {percent} % of the question by words. {HINT}\n\n{signal}"
    );
    Part::text(answer)
}

fn stuck(blocker: &str) -> Part {
    let blocker = shortened(&inert(blocker), LONGEST_FIELD);
    let suggestions = [
        "use words that occur in the files",
        "configure a language model",
    ];
    let fields = [
        ("attempted", json!([TOOL]).to_string()),
        ("blocker", text(&blocker)),
        ("suggestions", json!(suggestions).to_string()),
    ];
    let signal = signal("stuck", &fields, 0.9);
    Part::text(format!("{blocker}.\n\n{HINT}\n\n{signal}"))
}

fn quoted(place: &Place) -> String {
    let lines = place.text.lines().map(|line| shortened(line, LONGEST_LINE));
    let lines: Vec<String> = lines
        .map(|line| line.replace(|c: char| c.is_control() && c != '\t', " "))
        .collect();
    let body = lines.join("\n");
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("`{}`\n{fence}\n{body}\n{fence}", location(place))
}

fn location(place: &Place) -> String {
    let Place {
        path, start, end, ..
    } = place;
    let path = inert(path);
    if start == end {
        format!("{path}:{start}")
    } else {
        format!("{path}:{start}-{end}")
    }
}

/// Formats a signal as the protocol requires, alone on its lines.
fn signal(kind: &str, fields: &[(&str, String)], confidence: f64) -> String {
    let mut block = format!("<signal type=\"{kind}\">");
    let confidence = format!("{:.2}", confidence.clamp(0.0, 1.0));
    let fields = fields.iter().map(|(name, value)| (*name, value.as_str()));
    for (name, value) in fields.chain([("confidence", confidence.as_str())]) {
        let _ = write!(block, "\n  <{name}>{value}</{name}>");
    }
    block + "\n</signal>"
}

fn text(text: &str) -> String {
    shortened(&inert(text), LONGEST_FIELD)
}

fn inert(text: &str) -> String {
    let plain = |c: char| match c {
        '<' => '‹',
        '>' => '›',
        '`' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    text.chars().map(plain).collect()
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests;
