//! What is sent, step by step, and how faults damage it on its way.

use std::time::Duration;

use bytes::Bytes;

use super::{
    events::{Events, Holds},
    fault::{AFTER_CONTENT, Fault, FaultKind},
};

const COMMENT: &[u8] = b": keep-alive\n\n";
const BOM: &[u8] = "\u{feff}".as_bytes();

/// One thing that a server does with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Sends this.
    Send(Bytes),
    /// Lets go out what was sent.
    Flush,
    /// Waits.
    Pause(Duration),
    /// Sends this again and again, with pauses.
    Repeat(Bytes, Duration),
    /// Breaks the connection off.
    Cut,
    /// Does nothing more, and keeps the connection.
    Stall,
}

/// A body that is no stream.
pub(super) fn of_body(body: String, fault: Option<Fault>) -> Vec<Step> {
    let body = Bytes::from(body);
    let half = || Step::Send(body.slice(..body.len() / 2));
    let Some(fault) = fault else {
        return vec![Step::Send(body)];
    };
    match fault.kind {
        FaultKind::Cut => vec![half(), Step::Flush, Step::Cut],
        FaultKind::Stall => vec![half(), Step::Stall],
        FaultKind::NoEnd => vec![half()],
        // White space is JSON's comment.
        FaultKind::CommentsOnly => vec![Step::Repeat(Bytes::from_static(b" \n"), between(fault))],
        FaultKind::Bom => vec![Step::Send(Bytes::from_static(BOM)), Step::Send(body)],
        FaultKind::Slow => slowly(&body, fault),
        FaultKind::Split => split(&body, fault),
        _ => vec![Step::Send(body)],
    }
}

/// A stream, with these pauses before its events but the first.
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
    let first = || parts.iter().position(|(_, holds)| *holds == Holds::Content);
    let last = || {
        parts
            .iter()
            .rposition(|(_, holds)| *holds == Holds::Content)
    };
    let which = |default: Option<usize>| match fault.number {
        Some(number) => usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1)),
        None => default,
    };
    let end = match fault.kind {
        FaultKind::ErrorFirst => first().unwrap_or(parts.len()),
        FaultKind::ErrorLate | FaultKind::Cut | FaultKind::Stall => match fault.number {
            Some(AFTER_CONTENT) => last().map_or(0, |last| last + 1),
            Some(number) => usize::try_from(number)
                .unwrap_or(usize::MAX)
                .min(parts.len()),
            None => (first().unwrap_or(0) + last().unwrap_or(0)).div_ceil(2),
        },
        FaultKind::NoMark => first_of(&parts, &[Holds::Mark]),
        FaultKind::NoEnd => first_of(&parts, &[Holds::Mark, Holds::End]),
        _ => parts.len(),
    };
    match fault.kind {
        FaultKind::Duplicate => {
            let again = which(first()).and_then(|at| Some((at, parts.get(at)?.clone())));
            if let Some((at, part)) = again {
                parts.insert(at, part);
            }
        }
        FaultKind::OutOfOrder => {
            if let Some(at) = which(last()).filter(|at| at + 1 < parts.len()) {
                parts.swap(at, at + 1);
            }
        }
        _ => parts.truncate(end),
    }
    let mut parts: Vec<Bytes> = parts.into_iter().map(|(part, _)| part).collect();
    match fault.kind {
        FaultKind::ErrorFirst | FaultKind::ErrorLate => parts.push(error),
        FaultKind::Comments => {
            let comment = || Bytes::from_static(COMMENT);
            parts = parts
                .into_iter()
                .flat_map(|part| [comment(), part])
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

fn first_of(parts: &[(Bytes, Holds)], wanted: &[Holds]) -> usize {
    let found = parts.iter().position(|(_, holds)| wanted.contains(holds));
    found.unwrap_or(parts.len())
}

fn paced(parts: impl IntoIterator<Item = Bytes>, mut gap: impl FnMut() -> Duration) -> Vec<Step> {
    let mut steps = Vec::new();
    for part in parts {
        if !steps.is_empty() {
            let gap = gap();
            if !gap.is_zero() {
                steps.push(Step::Pause(gap));
            }
        }
        steps.push(Step::Send(part));
    }
    steps
}

fn between(fault: Fault) -> Duration {
    Duration::from_millis(fault.number_or(1_000))
}

fn slowly(bytes: &[u8], fault: Fault) -> Vec<Step> {
    let byte = |byte: &u8| {
        [
            Step::Send(Bytes::copy_from_slice(&[*byte])),
            Step::Pause(between(fault)),
        ]
    };
    bytes.iter().flat_map(byte).collect()
}

fn split(bytes: &[u8], fault: Fault) -> Vec<Step> {
    let size = usize::try_from(fault.number_or(5).max(1)).unwrap_or(usize::MAX);
    let piece = |piece: &[u8]| [Step::Send(Bytes::copy_from_slice(piece)), Step::Flush];
    bytes.chunks(size).flat_map(piece).collect()
}

fn crlf(part: &Bytes) -> Bytes {
    let mut lines = Vec::with_capacity(part.len() + 8);
    for &byte in part {
        if byte == b'\n' {
            lines.push(b'\r');
        }
        lines.push(byte);
    }
    lines.into()
}
