//! Tables for docs/protocol.md, "Signals": the signal of a reply, and the visible text.

mod calls;
mod confidence;
mod cost;
mod fields;
mod marks;
mod near_misses;
mod place;
mod strip;
mod tags;
mod thoughts;

use super::*;
use crate::model::signal::SignalFields;

/// The expected outcome of a row.
#[derive(Debug, PartialEq)]
enum Is {
    Nothing,
    /// A `need_turn` with this reason.
    Need(String),
    /// A valid signal of another type.
    Other(SignalType),
    /// A rejection for this reason.
    Rejected(String),
}

fn need(reason: &str) -> Is {
    Is::Need(reason.to_owned())
}

fn rejected(reason: &str) -> Is {
    Is::Rejected(reason.to_owned())
}

fn interpret(reply: &str) -> (Is, String) {
    let Reading { finding, text } = read(reply, Timestamp::default());
    let is = match finding {
        Finding::Nothing => Is::Nothing,
        Finding::Rejection(rejection) => Is::Rejected(rejection.reason),
        Finding::Signal(Signal {
            fields: SignalFields::NeedTurn(fields),
            ..
        }) => Is::Need(fields.reason),
        Finding::Signal(signal) => Is::Other(signal.kind()),
    };
    (is, text)
}

/// Checks rows of name, reply, outcome and visible text.
fn check(rows: &[(&str, &str, Is, &str)]) {
    for (name, reply, is, text) in rows {
        let (got, seen) = interpret(reply);
        assert_eq!((&got, seen.as_str()), (is, *text), "{name}: {reply:?}");
    }
}
