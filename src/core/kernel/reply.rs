//! From a reply to its record, its signal and its calls, in the order of docs/protocol.md, "A turn".

use std::{borrow::Cow, ops::Range, sync::Arc, time::Duration};

use super::{
    calls,
    draft::Draft,
    effect::Decision,
    last_call, retry,
    schema::{self, Work, check_arguments},
};
use crate::{
    model::{
        Attempt, CallId, Cut, Fault, FaultCode, Message, Part, Reply, Role, Signal, StopReason,
        ToolCall, ToolSpec,
        record::{Replied, SignalFact, SignalPresence, TurnFact, TurnMode},
        signal::SignalClass,
    },
    signal::{self, Finding, TextLimit},
};

pub(super) fn replied(mut draft: Draft<'_>, attempt: Attempt, reply: Reply) -> Decision {
    let mut message = Message {
        role: Role::Assistant,
        parts: reply.parts,
    };
    let tools = draft.query.tools(&draft.policy().tools);
    // Calls in the text count only if the reply has no others.
    let callable = match message.calls().next() {
        Some(_) => Arc::default(),
        None => Arc::clone(&tools),
    };
    let is_text = draft.query.options().format.is_text();
    let read = signal::read_reply(&whole(&message), callable, is_text, draft.now.at);
    if !read.cuts.is_empty() {
        cut(&mut message.parts, &read.cuts);
    }
    let stop = match reply.stop {
        StopReason::EndTurn if !read.calls.is_empty() => StopReason::ToolCalls,
        stop => stop,
    };
    let (query, turn) = (draft.query.id.0, draft.query.turn.0);
    let written = read.calls.into_iter().zip(0..).map(|(call, number)| {
        let id = CallId::new(&format!("text_{query}_{turn}_{number}"));
        Part::ToolCall(ToolCall { id, ..call })
    });
    message.parts.extend(written);
    message.parts = with_unique_ids(message.parts);
    mend(&mut message.parts, &tools, &mut draft.work);
    let reading = read.reading;
    let reports = tools.contains(signal::report_tool());
    let is_report = |call: &&ToolCall| reports && call.name == ToolSpec::REPORT;
    let finding = match (reply.stop, reading.finding, message.calls().find(is_report)) {
        (StopReason::MaxTokens | StopReason::Paused, ..) => Finding::Nothing,
        (_, Finding::Nothing | Finding::Rejection(_), Some(call)) => {
            signal::read_report(call, draft.now.at)
        }
        (_, finding, _) => finding,
    };
    let reports = message.calls().filter(is_report).count();
    let ends = |signal: &Signal| signal.kind().class() == SignalClass::Terminal;
    if !matches!(&finding, Finding::Signal(signal) if ends(signal))
        && message.calls().count() > reports
        && is_to_be_forbidden(&draft)
        && let Some(token) = draft.query.token()
    {
        let detail = "the reply has calls, in a turn without tools";
        let fault = Fault::retryable(FaultCode::CalledInVain, detail);
        let usage = draft.priced(&draft.query.model, reply.usage);
        return retry::try_later(draft, token, fault, Duration::ZERO, usage);
    }
    let presence = match &finding {
        Finding::Signal(_) => SignalPresence::Valid,
        Finding::Rejection(_) => SignalPresence::Rejected,
        Finding::Nothing => SignalPresence::Absent,
    };
    let (text, cut) = shown(&draft, reading.text, reply.stop);
    let asked = message.calls().cloned().map(Arc::new).collect();
    let (usage, cache_miss) = last_call::judge(&draft, &reply.model, reply.usage);
    draft.emit(TurnFact::Replied(Replied {
        attempt,
        message: Arc::new(message),
        text: text.into(),
        signal: presence,
        stop,
        cut,
        reports,
        usage: draft.priced(&draft.query.model, usage),
        estimated: draft.now.call.is_uncounted(),
        cache_miss,
        model: reply.model,
    }));
    match finding {
        Finding::Signal(signal) => draft.emit(SignalFact::Emitted(Arc::new(signal))),
        Finding::Rejection(rejection) => draft.emit(SignalFact::Rejected(rejection)),
        Finding::Nothing => {}
    }
    match reply.stop {
        StopReason::Refusal => {
            let detail = "the model refused to answer: rephrase the question, or try another model";
            return draft.give_up(FaultCode::Refusal, detail);
        }
        StopReason::ContentFilter => {
            let detail = "the provider's content filter stopped the reply: rephrase the question";
            return draft.give_up(FaultCode::ContentFilter, detail);
        }
        _ => {}
    }
    let looping = draft.query.signals.reason_loop().is_some();
    calls::request(&mut draft, asked, looping);
    calls::advance(draft)
}

/// Whether guidance alone has asked for a turn without calls, and `tool_choice` can forbid them.
fn is_to_be_forbidden(draft: &Draft<'_>) -> bool {
    let query = &draft.query;
    let is_cached = draft.policy().caches_choice(&query.model);
    query.mode != TurnMode::Signal
        && !query.offers_tools(query.mode)
        && !query.forbids_calls(query.mode, is_cached)
}

/// The visible text of a reply as far as the caller's limits allow it.
fn shown(draft: &Draft<'_>, text: String, stop: StopReason) -> (String, Option<Cut>) {
    if draft.query.mode == TurnMode::Signal {
        return (String::new(), None);
    }
    let options = draft.query.options();
    let mut limit = TextLimit::new(options);
    let mut shown = limit.push(text);
    shown.push_str(&limit.finish());
    let by_model = options.max_tokens.is_some() && stop == StopReason::MaxTokens;
    let cut = limit.cut().or_else(|| by_model.then_some(Cut::Length));
    (shown, cut)
}

fn whole(message: &Message) -> Cow<'_, str> {
    let mut texts = message.texts();
    match (texts.next(), texts.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(text), None) => Cow::Borrowed(text),
        (Some(_), Some(_)) => Cow::Owned(message.texts().collect()),
    }
}

/// Renames duplicate call ids within a reply, because some providers number all of them 0 and each
/// result has to name its call.
pub(super) fn with_unique_ids(mut parts: Vec<Part>) -> Vec<Part> {
    for index in 0..parts.len() {
        let (before, rest) = parts.split_at_mut(index);
        let Some(Part::ToolCall(call)) = rest.first_mut() else {
            continue;
        };
        let taken = |id: &CallId| {
            let has = |part: &Part| matches!(part, Part::ToolCall(other) if other.id == *id);
            before.iter().any(has)
        };
        let numbered = |number: usize| CallId::new(&format!("{}-{number}", call.id));
        if taken(&call.id)
            && let Some(free) = (2..).map(numbered).find(|id| !taken(id))
        {
            call.id = free;
        }
    }
    parts
}

/// Mends calls that are right but odd, before they are recorded: the name, arguments that are no
/// JSON, and values of another type.
fn mend(parts: &mut [Part], tools: &[ToolSpec], work: &mut Work) {
    for part in parts {
        if let Part::ToolCall(call) = part
            && let Some(spec) = signal::meant(&call.name, tools)
        {
            spec.name.clone_into(&mut call.name);
            call.mend();
            if let Ok(odd) = call.parsed() {
                let mut arguments = odd.clone();
                schema::mend(&spec.schema, &mut arguments, work);
                let mut fits = |given| check_arguments(&spec.schema, given, work).is_ok();
                // What one alternative asks for may break another, which fits as it is.
                if arguments != odd && (fits(&arguments) || !fits(&odd)) {
                    call.arguments = arguments.to_string();
                }
            }
        }
    }
}

/// Cuts these ranges, sorted offsets into the joined text parts, out of a reply, and the parts that
/// are blank then.
fn cut(parts: &mut Vec<Part>, cuts: &[Range<usize>]) {
    let mut at = 0;
    parts.retain_mut(|part| {
        let Part::Text { text } = part else {
            return true;
        };
        let length = text.len();
        text.retain(|c| {
            let next = cuts.partition_point(|cut| cut.end <= at);
            let is_kept = cuts.get(next).is_none_or(|cut| at < cut.start);
            at += c.len_utf8();
            is_kept
        });
        text.len() == length || !text.trim().is_empty()
    });
}
