//! What never happens in which room (architecture.md, the table of rooms; style.md, 1, 9 and 17).
//!
//! Time, ids and randomness are inputs of the kernel; the rooms below it do no I/O; actors are
//! reached through handles.

use super::Violation;
use super::paths::starting_with;
use super::source::Source;
use super::tokens::{Gate, Kind, Token};

/// Rooms that do no I/O and know no runtime.
const PURE: &[&str] = &["model", "signal", "words", "query", "kernel"];
/// The room that besides has no clock and no randomness.
const KERNEL: &str = "kernel";

/// Crates that are I/O or a runtime.
const RUNTIMES: &[&str] = &["tokio", "ractor", "reqwest"];
/// Parts of std that are I/O or threads.
const STD_IO: &[&str] = &["env", "fs", "io", "net", "process", "thread"];
/// Names by which time and randomness come in.
const CLOCKS: &[&str] = &[
    "SystemTime",
    "Instant",
    "rand",
    "fastrand",
    "getrandom",
    "now_v7",
    "new_v4",
];

/// Names that only the actor room and the embedding API may see.
const ACTOR_REFS: &[&str] = &["ActorRef", "ActorCell", "RpcReplyPort"];
const SEES_ACTOR_REFS: &[&str] = &["actor", "control", "testkit"];
/// Takes the host's actor that a system is put below, and hands it on.
const EMBEDS: &str = "src/app/builder.rs";

/// Pure rooms have neither I/O nor runtime; the kernel has no clock and no randomness either, and
/// holds its tests to it too. Tests of the others may read a file or the environment.
pub(super) fn rooms_stay_pure(source: &Source) -> Vec<Violation> {
    let Some(room) = source.room().filter(|room| PURE.contains(room)) else {
        return Vec::new();
    };
    let held = |gate: Gate| gate < Gate::Test || room == KERNEL;
    let impure = |line, name: &str, remedy| {
        let what = format!("`{room}` is pure and must not use `{name}`: {remedy}");
        source.violation(line, what)
    };
    let elsewhere = "move it to `actor` or behind a port";
    let runtimes = names(source)
        .filter(|(token, name)| held(token.gate) && RUNTIMES.contains(name))
        .map(|(token, name)| impure(token.line, name, elsewhere));
    let io = starting_with(source, "std")
        .into_iter()
        .filter(|named| held(named.gate))
        .filter_map(|named| {
            let part = named.segments.get(1)?;
            STD_IO
                .contains(&part.as_str())
                .then(|| impure(named.line, &format!("std::{part}"), elsewhere))
        });
    let mut found: Vec<Violation> = runtimes.chain(io).collect();
    if room == KERNEL {
        let input = "take the time, the id or the number as an input";
        let clocks = names(source).filter(|(_, name)| CLOCKS.contains(name));
        found.extend(clocks.map(|(token, name)| impure(token.line, name, input)));
        let reads = source
            .tokens
            .windows(2)
            .filter(|two| two[0].is("::") && two[1].is("now"));
        found.extend(reads.map(|two| impure(two[1].line, "::now", input)));
    }
    found
}

/// Nobody outside the actor room sees a mailbox.
pub(super) fn actor_refs_stay_in_actor(source: &Source) -> Vec<Violation> {
    if source
        .room()
        .is_none_or(|room| SEES_ACTOR_REFS.contains(&room))
        || source.path == EMBEDS
    {
        return Vec::new();
    }
    names(source)
        .filter(|(_, name)| ACTOR_REFS.contains(name))
        .map(|(token, name)| {
            source.violation(
                token.line,
                format!("`{name}` outside `actor`: use the actor's handle"),
            )
        })
        .collect()
}

/// A library's errors have types; only the binary may do without.
pub(super) fn anyhow_stays_in_the_binary(source: &Source) -> Vec<Violation> {
    if source.room().is_none_or(|room| room == "cli") {
        return Vec::new();
    }
    names(source)
        .filter(|(_, name)| *name == "anyhow")
        .map(|(token, _)| {
            source.violation(
                token.line,
                "`anyhow` in the library: give the module an error of its own",
            )
        })
        .collect()
}

fn names(source: &Source) -> impl Iterator<Item = (&Token, &str)> {
    source
        .tokens
        .iter()
        .filter(|token| token.kind == Kind::Ident)
        .map(|token| (token, token.text.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&Source) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
        rule(&Source::new(path, text))
            .iter()
            .map(|violation| violation.line)
            .collect()
    }

    #[test]
    fn a_pure_room_that_does_something_is_refused() {
        for (name, path, text, expected) in [
            (
                "runtime",
                "src/kernel/a.rs",
                "use tokio::sync::oneshot;",
                vec![1],
            ),
            (
                "actors",
                "src/kernel/a.rs",
                "\nfn f(a: ractor::ActorId) {}",
                vec![2],
            ),
            (
                "actors in query",
                "src/query.rs",
                "use ractor::Actor;",
                vec![1],
            ),
            (
                "network in model",
                "src/model/a.rs",
                "use reqwest::Url;",
                vec![1],
            ),
            (
                "files",
                "src/signal/a.rs",
                "use std::{\n fmt,\n fs::File,\n};",
                vec![3],
            ),
            (
                "environment",
                "src/kernel/a.rs",
                "fn f() { std::env::var(\"A\"); }",
                vec![1],
            ),
            (
                "clock",
                "src/kernel/a.rs",
                "use std::time::{Duration, SystemTime};",
                vec![1],
            ),
            (
                "monotonic clock",
                "src/kernel/a.rs",
                "use std::time::Instant;",
                vec![1],
            ),
            (
                "another clock",
                "src/kernel/a.rs",
                "fn f() { jiff::Timestamp::now() }",
                vec![1],
            ),
            (
                "randomness",
                "src/kernel/a.rs",
                "fn f() { rand::random() }",
                vec![1],
            ),
            (
                "random id",
                "src/kernel/a.rs",
                "fn f() { Uuid::now_v7() }",
                vec![1],
            ),
            (
                "in other tests",
                "src/signal/a/tests.rs",
                "fn f() { std::env::var(\"A\"); }",
                vec![],
            ),
            (
                "in the kernel's tests",
                "src/kernel/a.rs",
                "#[cfg(test)] mod tests { use tokio::test; }",
                vec![1],
            ),
            (
                "time as an input",
                "src/kernel/a.rs",
                "fn f(now: Timestamp) { g(now) }",
                vec![],
            ),
            (
                "durations",
                "src/kernel/a.rs",
                "use std::time::Duration; use std::fmt;",
                vec![],
            ),
            (
                "an own module named io",
                "src/kernel/a.rs",
                "use crate::kernel::io;",
                vec![],
            ),
            (
                "words",
                "src/kernel/a.rs",
                "//! No tokio.\nconst A: &str = \"tokio\";",
                vec![],
            ),
            (
                "the shell",
                "src/actor/a.rs",
                "use tokio::time::Instant;",
                vec![],
            ),
            (
                "a port",
                "src/journal/memory.rs",
                "use std::fs; use tokio::sync::Mutex;",
                vec![],
            ),
        ] {
            assert_eq!(lines(rooms_stay_pure, path, text), expected, "{name}");
        }
    }

    #[test]
    fn a_mailbox_seen_from_outside_is_refused() {
        for (name, path, text, expected) in [
            (
                "reference",
                "src/http/a.rs",
                "\nuse ractor::ActorRef;",
                vec![2],
            ),
            (
                "reply port",
                "src/app.rs",
                "fn f(r: RpcReplyPort<()>) {}",
                vec![1],
            ),
            (
                "actor",
                "src/actor/a.rs",
                "use ractor::{ActorRef, RpcReplyPort};",
                vec![],
            ),
            (
                "embedding",
                "src/control/port.rs",
                "use ractor::ActorCell;",
                vec![],
            ),
            ("test", "tests/it/embed.rs", "use ractor::ActorRef;", vec![]),
            ("doc", "src/llm.rs", "//! No `ActorRef` here.", vec![]),
        ] {
            assert_eq!(
                lines(actor_refs_stay_in_actor, path, text),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn an_untyped_error_in_the_library_is_refused() {
        for (name, path, text, expected) in [
            ("room", "src/journal.rs", "use anyhow::Result;", vec![1]),
            (
                "macro",
                "src/app.rs",
                "\nfn f() { anyhow::bail!(\"x\") }",
                vec![2],
            ),
            ("cli", "src/cli/ask.rs", "use anyhow::Result;", vec![]),
            (
                "binary",
                "src/main.rs",
                "fn main() -> anyhow::Result<()> {}",
                vec![],
            ),
            (
                "example",
                "examples/a.rs",
                "fn main() -> anyhow::Result<()> {}",
                vec![],
            ),
        ] {
            assert_eq!(
                lines(anyhow_stays_in_the_binary, path, text),
                expected,
                "{name}"
            );
        }
    }
}
