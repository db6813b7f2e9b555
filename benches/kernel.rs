//! One step of a session without I/O: the kernel observes a reply and evolves by its records.

use divan::{Bencher, black_box};
use oracle_agent::{
    kernel::{Report, Session},
    model::Part,
};

#[path = "common/steps.rs"]
mod steps;

use steps::{NOW, apply, reply, result, session_at, with_a_call};

fn main() {
    divan::main();
}

/// Completed turns at which a step is measured.
const TURNS: [u32; 2] = [5, 29];

fn step(bencher: Bencher<'_, '_>, before: impl Fn() -> Option<(Session, Report)> + Sync) {
    bencher.with_inputs(before).bench_values(|input| {
        input.map(|(mut session, report)| {
            let decision = session.observe(black_box(report), NOW);
            let next = apply(&mut session, decision);
            (session, next)
        })
    });
}

#[divan::bench(args = TURNS, sample_count = 1_000)]
fn observe_and_evolve(bencher: Bencher<'_, '_>, turns: u32) {
    step(bencher, || {
        let (session, token) = session_at(turns)?;
        let reply = reply(turns, &[]);
        Some((session, Report::ModelReplied { token, reply }))
    });
}

#[divan::bench(args = TURNS, sample_count = 1_000)]
fn observe_and_evolve_a_call(bencher: Bencher<'_, '_>, turns: u32) {
    step(bencher, || {
        let (session, token) = session_at(turns)?;
        Some((session, with_a_call(turns, token)))
    });
}

#[divan::bench(args = TURNS, sample_count = 1_000)]
fn observe_and_evolve_a_result(bencher: Bencher<'_, '_>, turns: u32) {
    step(bencher, || {
        let (mut session, token) = session_at(turns)?;
        let decision = session.observe(with_a_call(turns, token), NOW);
        apply(&mut session, decision);
        Some((session, result(turns, token)))
    });
}

/// Evolution by the records of a step, as in a replay.
#[divan::bench(args = TURNS, sample_count = 1_000)]
fn evolve(bencher: Bencher<'_, '_>, turns: u32) {
    bencher
        .with_inputs(|| {
            session_at(turns).map(|(session, token)| {
                let reply = reply(turns, &[]);
                let decision = session.observe(Report::ModelReplied { token, reply }, NOW);
                (session, decision)
            })
        })
        .bench_values(|input| {
            input.map(|(mut session, decision)| {
                let next = apply(&mut session, black_box(decision));
                (session, next)
            })
        });
}

/// The decision alone, repeated on one session.
#[divan::bench(args = TURNS)]
fn observe(bencher: Bencher<'_, '_>, turns: u32) {
    let waiting = session_at(turns);
    bencher
        .with_inputs(|| reply(turns, &[]))
        .bench_values(|reply| {
            waiting.as_ref().map(|(session, token)| {
                let token = *token;
                session.observe(Report::ModelReplied { token, reply }, NOW)
            })
        });
}

#[divan::bench]
fn read_the_signal(bencher: Bencher<'_, '_>) {
    let reply = reply(5, &[]);
    let text: String = reply
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    bencher.bench(|| oracle_agent::signal::read(black_box(&text), NOW.at));
}
