//! Steps that send a body, and how faults damage them.

use std::time::Duration;

use bytes::Bytes;

use super::{
    fault::{AFTER_CONTENT, Fault, FaultKind},
    reply::EventKind,
};

const COMMENT: &str = ": keep-alive\n\n";
const BOM: &str = "\u{feff}";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Send(Bytes),
    Flush,
    Pause(Duration),
    Repeat(Bytes, Duration),
    Cut,
    Stall,
}

/// The text of an event.
pub(super) type Event = (String, EventKind);

pub(super) fn of_body(body: Bytes, fault: Fault) -> Vec<Step> {
    let half = || Step::Send(body.slice(..body.len() / 2));
    match fault.kind {
        FaultKind::Cut => vec![half(), Step::Flush, Step::Cut],
        FaultKind::Stall => vec![half(), Step::Stall],
        FaultKind::NoEnd => vec![half()],
        // White space takes the place of comments in JSON.
        FaultKind::CommentsOnly => vec![Step::Repeat(" \n".into(), between(fault))],
        FaultKind::Bom => vec![Step::Send(BOM.into()), Step::Send(body)],
        FaultKind::Slow => slowly(&body, fault),
        FaultKind::Split => split(&body, fault),
        _ => vec![Step::Send(body)],
    }
}

/// A stream, with a pause between events.
pub(super) fn of_stream(
    mut events: Vec<Event>,
    fault: Option<Fault>,
    error: impl FnOnce(usize) -> Event,
    gap: impl FnMut() -> Duration,
) -> Vec<Step> {
    let Some(fault) = fault else {
        return paced(events, gap);
    };
    let is_content = |(_, holds): &Event| *holds == EventKind::Content;
    let first = events.iter().position(is_content);
    let last = events.iter().rposition(is_content);
    let clamped = |number| usize::try_from(number).unwrap_or(usize::MAX);
    let number = fault.number.map(clamped);
    let which = |default| number.map_or(default, |number| number.checked_sub(1));
    let first_of = |wanted: &[EventKind]| {
        let found = events.iter().position(|(_, holds)| wanted.contains(holds));
        found.unwrap_or(events.len())
    };
    let end = match fault.kind {
        FaultKind::ErrorFirst => first.unwrap_or(events.len()),
        FaultKind::ErrorLate | FaultKind::Cut | FaultKind::Stall => match fault.number {
            Some(AFTER_CONTENT) => last.map_or(0, |last| last + 1),
            Some(_) => number.unwrap_or(usize::MAX),
            None => (first.unwrap_or(0) + last.unwrap_or(0)).div_ceil(2),
        },
        FaultKind::NoMark => first_of(&[EventKind::Mark]),
        FaultKind::NoEnd => first_of(&[EventKind::Mark, EventKind::End]),
        _ => events.len(),
    };
    events.truncate(end);
    let whole = || -> String { events.iter().map(|(text, _)| &**text).collect() };
    match fault.kind {
        FaultKind::Duplicate => {
            if let Some((at, again)) = which(first).and_then(|at| Some((at, events.get(at)?))) {
                events.insert(at, again.clone());
            }
        }
        FaultKind::OutOfOrder => {
            if let Some(at) = which(last).filter(|at| at + 1 < events.len()) {
                events.swap(at, at + 1);
            }
        }
        FaultKind::ErrorFirst | FaultKind::ErrorLate => events.push(error(events.len())),
        FaultKind::Comments => {
            let comment = (COMMENT.to_owned(), EventKind::Frame);
            let with_comment = |event| [comment.clone(), event];
            events = events.into_iter().flat_map(with_comment).collect();
        }
        FaultKind::Bom => events.insert(0, (BOM.to_owned(), EventKind::Frame)),
        FaultKind::Crlf => {
            for (text, _) in &mut events {
                *text = text.replace('\n', "\r\n");
            }
        }
        FaultKind::CommentsOnly => {
            return vec![Step::Repeat(COMMENT.into(), between(fault))];
        }
        FaultKind::Slow => return slowly(whole().as_bytes(), fault),
        FaultKind::Split => return split(whole().as_bytes(), fault),
        _ => {}
    }
    let mut steps = paced(events, gap);
    match fault.kind {
        FaultKind::Cut => steps.extend([Step::Flush, Step::Cut]),
        FaultKind::Stall => steps.push(Step::Stall),
        _ => {}
    }
    steps
}

fn paced(events: Vec<Event>, mut gap: impl FnMut() -> Duration) -> Vec<Step> {
    let mut steps = Vec::new();
    for (text, _) in events {
        if !steps.is_empty() {
            steps.extend(Some(gap()).filter(|gap| !gap.is_zero()).map(Step::Pause));
        }
        steps.push(Step::Send(text.into()));
    }
    steps
}

fn between(fault: Fault) -> Duration {
    Duration::from_millis(fault.number_or(1_000))
}

fn slowly(bytes: &[u8], fault: Fault) -> Vec<Step> {
    let pause = Step::Pause(between(fault));
    let byte = |byte: &[u8]| [Step::Send(Bytes::copy_from_slice(byte)), pause.clone()];
    bytes.chunks(1).flat_map(byte).collect()
}

fn split(bytes: &[u8], fault: Fault) -> Vec<Step> {
    let size = usize::try_from(fault.number_or(5).max(1)).unwrap_or(usize::MAX);
    let piece = |piece: &[u8]| [Step::Send(Bytes::copy_from_slice(piece)), Step::Flush];
    bytes.chunks(size).flat_map(piece).collect()
}
