//! Steps that send a body, and how faults damage them.

use std::time::Duration;

use bytes::Bytes;

use super::{
    fault::{AFTER_CONTENT, Fault, FaultKind},
    reply::{EventKind, Events},
};

const COMMENT: &[u8] = b": keep-alive\n\n";
const BOM: &[u8] = "\u{feff}".as_bytes();

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Send(Bytes),
    Flush,
    Pause(Duration),
    Repeat(Bytes, Duration),
    Cut,
    Stall,
}

pub(super) fn of_body(body: String, fault: Fault) -> Vec<Step> {
    let body = Bytes::from(body);
    let half = || Step::Send(body.slice(..body.len() / 2));
    match fault.kind {
        FaultKind::Cut => vec![half(), Step::Flush, Step::Cut],
        FaultKind::Stall => vec![half(), Step::Stall],
        FaultKind::NoEnd => vec![half()],
        // White space takes the place of comments in JSON.
        FaultKind::CommentsOnly => vec![Step::Repeat(Bytes::from_static(b" \n"), between(fault))],
        FaultKind::Bom => vec![Step::Send(Bytes::from_static(BOM)), Step::Send(body)],
        FaultKind::Slow => slowly(&body, fault),
        FaultKind::Split => split(&body, fault),
        _ => vec![Step::Send(body)],
    }
}

/// A stream, with a pause between events.
pub(super) fn of_stream(
    events: Events,
    fault: Option<Fault>,
    error: Bytes,
    mut gap: impl FnMut() -> Duration,
) -> Vec<Step> {
    let mut parts = events.parted();
    let Some(fault) = fault else {
        return paced(parts.into_iter().map(|(part, _)| part), gap);
    };
    let is_content = |(_, holds): &(Bytes, EventKind)| *holds == EventKind::Content;
    let first = parts.iter().position(is_content);
    let last = parts.iter().rposition(is_content);
    let number = fault
        .number
        .map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    let which = |default| number.map_or(default, |number| number.checked_sub(1));
    let first_of = |wanted: &[EventKind]| {
        let found = parts.iter().position(|(_, holds)| wanted.contains(holds));
        found.unwrap_or(parts.len())
    };
    let end = match fault.kind {
        FaultKind::ErrorFirst => first.unwrap_or(parts.len()),
        FaultKind::ErrorLate | FaultKind::Cut | FaultKind::Stall => match fault.number {
            Some(AFTER_CONTENT) => last.map_or(0, |last| last + 1),
            _ => match number {
                Some(number) => number.min(parts.len()),
                None => (first.unwrap_or(0) + last.unwrap_or(0)).div_ceil(2),
            },
        },
        FaultKind::NoMark => first_of(&[EventKind::Mark]),
        FaultKind::NoEnd => first_of(&[EventKind::Mark, EventKind::End]),
        _ => parts.len(),
    };
    match fault.kind {
        FaultKind::Duplicate => {
            let again = which(first).and_then(|at| Some((at, parts.get(at)?.clone())));
            if let Some((at, part)) = again {
                parts.insert(at, part);
            }
        }
        FaultKind::OutOfOrder => {
            if let Some(at) = which(last).filter(|at| at + 1 < parts.len()) {
                parts.swap(at, at + 1);
            }
        }
        _ => parts.truncate(end),
    }
    let mut parts: Vec<Bytes> = parts.into_iter().map(|(part, _)| part).collect();
    match fault.kind {
        FaultKind::ErrorFirst | FaultKind::ErrorLate => parts.push(error),
        FaultKind::Comments => {
            let comment = Bytes::from_static(COMMENT);
            parts = (parts.into_iter())
                .flat_map(|part| [comment.clone(), part])
                .collect();
        }
        FaultKind::Bom => parts.insert(0, Bytes::from_static(BOM)),
        FaultKind::Crlf => parts.iter_mut().for_each(|part| *part = crlf(part)),
        FaultKind::CommentsOnly => {
            return vec![Step::Repeat(Bytes::from_static(COMMENT), between(fault))];
        }
        FaultKind::Slow => return slowly(&parts.concat(), fault),
        FaultKind::Split => return split(&parts.concat(), fault),
        _ => {}
    }
    let mut steps = paced(parts, &mut gap);
    match fault.kind {
        FaultKind::Cut => steps.extend([Step::Flush, Step::Cut]),
        FaultKind::Stall => steps.push(Step::Stall),
        _ => {}
    }
    steps
}

fn paced(parts: impl IntoIterator<Item = Bytes>, mut gap: impl FnMut() -> Duration) -> Vec<Step> {
    let mut steps = Vec::new();
    for part in parts {
        if !steps.is_empty() {
            steps.extend(Some(gap()).filter(|gap| !gap.is_zero()).map(Step::Pause));
        }
        steps.push(Step::Send(part));
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

fn crlf(part: &Bytes) -> Bytes {
    String::from_utf8_lossy(part).replace('\n', "\r\n").into()
}
