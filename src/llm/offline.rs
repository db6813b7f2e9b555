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

/// Characters of a row that names a place, and minimum for its name.
const ROW: usize = 72;
const SHORTEST_NAME: usize = 24;

const HINT: &str = "This is a search without a language model. For an explanation, set \
     `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, start Ollama, or use `--model`.";

/// The hint of an answer in place of a model that failed.
fn hint(request: &Request) -> String {
    match &request.instead_of {
        None => HINT.to_owned(),
        Some(model) => format!(
            "This is a search without a language model, because `{}` failed. `oracle doctor` tests it.",
            inert(model)
        ),
    }
}

const NO_ANSWER: &str = "the project's files do not answer the question; ask in other words";

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
        let answer = Part::text(task::answer(&query.question));
        (vec![answer], StopReason::EndTurn)
    } else if is_offered && query.searches() {
        (vec![query.searching(), query.call()], StopReason::ToolCalls)
    } else {
        let result = query.results.last().copied();
        (
            vec![answer(result, has_tool, &hint(request))],
            StopReason::EndTurn,
        )
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

fn answer(result: Option<&ToolResult>, has_tool: bool, hint: &str) -> Part {
    let failed = |why: &str| {
        let why = format!("The search failed: {why}");
        stuck(&why, &why, hint)
    };
    let Some(result) = result else {
        let missing = "there was no search and no language model to answer with";
        let fields = [("missing", text(missing))];
        let why = match has_tool {
            true => "no tools are available in this turn",
            false => "this session has no search tool",
        };
        return Part::text(format!(
            "I can only search files, and {why}.\n\n{hint}\n\n{}",
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
            _ if !found.absent.is_empty() && found.absent.len() >= found.words => {
                let absent = listed(&found.absent);
                stuck(&format!("Nothing here mentions {absent}"), NO_ANSWER, hint)
            }
            Some((best, more)) => places(best, more, &found, hint),
            None => stuck("Nothing in the files matches the question", NO_ANSWER, hint),
        },
        Some(Err(_)) | None => failed("its result has no places"),
    }
}

fn places(best: &Place, more: &[Place], found: &SearchData, hint: &str) -> Part {
    let excerpt = found.excerpt.as_ref().unwrap_or(best);
    let mut answer = match &*listed(&found.absent) {
        "" => String::new(),
        absent => format!("Nothing here mentions {absent}. "),
    };
    if found.coverage < SURE {
        answer.push_str("The closest match is ");
    }
    let name = name(excerpt, LONGEST_LINE);
    if !name.is_empty() {
        let _ = write!(answer, "`{name}` in ");
    }
    let quoted = quoted(&excerpt.path, &excerpt.text);
    let _ = write!(answer, "`{}`:\n{quoted}\n", location(excerpt));
    let more = &more[..more.len().min(PLACES - 1)];
    for place in more {
        let _ = write!(answer, "\n- {}", row(place));
    }
    let coverage = found.coverage.clamp(0.0, 1.0);
    let sources = 1 + more.len();
    let signal = if coverage >= SURE {
        let fields = [
            ("sources_found", sources.to_string()),
            ("source_types", json!(["code"]).to_string()),
        ];
        signal("context_sufficient", &fields, coverage)
    } else {
        let missing = match &*listed(&found.missing) {
            "" => "the closest match has only some words of the question; ask in other words"
                .to_owned(),
            missing => format!("the closest match does not mention {missing}; ask in other words"),
        };
        let fields = [("missing", text(&missing))];
        signal("partial_answer", &fields, coverage.max(0.3))
    };
    let _ = write!(answer, "\n\n{hint}\n\n{signal}");
    Part::text(answer)
}

/// Words in quotes: `“a”, “b” or “c”`.
fn listed(words: &[String]) -> String {
    let quoted = |word: &String| format!("“{}”", inert(word));
    let words: Vec<String> = words.iter().map(quoted).collect();
    match words.split_last() {
        Some((last, first @ [_, ..])) => format!("{} or {last}", first.join(", ")),
        Some((last, [])) => last.clone(),
        None => String::new(),
    }
}

/// The location of a place and what it is, on one row.
fn row(place: &Place) -> String {
    let location = location(place);
    let room = ROW.saturating_sub(location.chars().count());
    match &*name(place, room.max(SHORTEST_NAME)) {
        "" => format!("`{location}`"),
        name => format!("`{location}` `{name}`"),
    }
}

fn name(place: &Place, most: usize) -> String {
    let name = shortened(&place.description, most);
    match name.to_lowercase().contains("signal") {
        // It could begin or end a signal.
        true => inert(&name),
        false => name.replace(|c: char| c == '`' || c.is_control(), " "),
    }
}

fn stuck(answer: &str, blocker: &str, hint: &str) -> Part {
    let answer = shortened(&inert(answer), LONGEST_FIELD);
    let suggestions = [
        "use words that occur in the files",
        "configure a language model",
    ];
    let fields = [
        ("attempted", json!([TOOL]).to_string()),
        ("blocker", text(blocker)),
        ("suggestions", json!(suggestions).to_string()),
    ];
    let signal = signal("stuck", &fields, 0.9);
    Part::text(format!("{answer}.\n\n{hint}\n\n{signal}"))
}

fn quoted(path: &str, text: &str) -> String {
    let lines = text.lines().map(|line| shortened(line, LONGEST_LINE));
    let lines: Vec<String> = lines
        .map(|line| line.replace(|c: char| c.is_control() && c != '\t', " "))
        .collect();
    let body = lines.join("\n");
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_plain = extension.chars().all(|c| c.is_ascii_alphanumeric());
    let language = if is_plain { extension } else { "" };
    format!("{fence}{language}\n{body}\n{fence}")
}

fn location(place: &Place) -> String {
    let (path, start, end) = (inert(&place.path), place.start, place.end);
    match start == end {
        true => format!("{path}:{start}"),
        false => format!("{path}:{start}-{end}"),
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
