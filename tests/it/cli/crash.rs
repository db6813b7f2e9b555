//! The program itself, killed while it answers: at random moments, and at every named point of a turn.
//!
//! Twenty sessions are asked a question each, in one process, which is killed and started again with the same
//! input until it comes to an end by itself: a round. Then comes the next question. When a process dies
//! follows from a seed and from how much it has said, never from time. A checker keeps what was seen from
//! outside, and compares it with the journal after each death.
//!
//! 25 deaths; at least 200 with `ORACLE_LONG_TESTS=1`.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    process::{ExitStatus, Stdio},
    sync::Arc,
};

use oracle_agent::journal::{Entry, Journal, Known, Sqlite};
use serde_json::{Value, json};

use super::{Place, ask::FILES};
use crate::actors::simulation::{
    Dice,
    check::{Ended, all_ended, audited, logs},
    long,
};

const SESSIONS: usize = 20;
/// Deaths in one round at most: ten in one query would end it (spec 10).
const DEATHS: usize = 8;
/// About as many lines are said in a round.
const LINES: u64 = 220;
const ABORTED: i32 = 6;
const KILLED: i32 = 9;

/// What a question leaves in the journal, and what a restart adds.
const KINDS: [&str; 10] = [
    "session.opened",
    "query.accepted",
    "query.classified",
    "turn.started",
    "turn.replied",
    "tool.started",
    "tool.finished",
    "query.finished",
    "supervisor.restarted",
    "turn.restarted",
];

/// When a process dies.
#[derive(Debug, Clone)]
enum Fate {
    /// Killed when it has said so many lines.
    Killed { lines: u64 },
    /// At a point of its journal.
    At { point: String },
    /// When it is done.
    Old,
}

fn answer(round: usize) -> String {
    format!("In src/parser.rs:4, as of round {round}.")
}

/// Two turns a question: one that searches, one that answers.
fn script(rounds: usize) -> String {
    let turns = (0..rounds).flat_map(|round| {
        let search = json!({ "name": "code_search", "success": true,
            "arguments": { "query": "parse_invoice" } });
        let done = format!(
            "{} <signal type='context_sufficient'><sources_found>1</sources_found></signal>",
            answer(round)
        );
        [
            json!({ "reply": "Looking.", "tool_calls": [search], "delay_ms": 10 }),
            json!({ "chunks": done.split_inclusive(' ').collect::<Vec<_>>(), "delay_ms": 2 }),
        ]
    });
    json!({ "turns": turns.collect::<Vec<_>>() }).to_string()
}

/// What was seen from outside.
#[derive(Default)]
struct Seen {
    /// By session and number.
    events: BTreeMap<(String, u64), Value>,
    /// By session and round: query, outcome, answer, turns.
    answers: BTreeMap<(String, usize), Value>,
    /// The journal as of the last death.
    logs: Vec<(Known, Vec<Entry>)>,
    deaths: usize,
}

impl Seen {
    /// Takes in what one process said in a round.
    fn hear(&mut self, round: usize, said: &[Value], name: &str) {
        let mut last = BTreeMap::new();
        for line in said {
            let session = line["session"].as_str().expect(name).to_owned();
            if let Some(seq) = line["seq"].as_u64() {
                let before = last.insert(session.clone(), seq).unwrap_or_default();
                assert!(seq > before, "{name}: {session} tells {seq} after {before}");
                let event = self
                    .events
                    .entry((session, seq))
                    .or_insert_with(|| line.clone());
                assert_eq!(event, line, "{name}: another event of the same number");
            } else {
                let told = ["query", "outcome", "answer", "turns"].map(|field| &line[field]);
                let told = json!(told);
                let known = self.answers.entry((session, round));
                let known = known.or_insert_with(|| told.clone());
                assert_eq!(*known, told, "{name}: another answer to the same question");
            }
        }
    }

    /// Looks at the journal. What was there is there, and what was seen is what stands there.
    async fn look(&mut self, journal: &Arc<dyn Journal>, name: &str) -> Vec<Vec<Ended>> {
        let now = logs(journal).await;
        for (known, before) in &self.logs {
            let log = now.iter().find(|(now, _)| now.key == known.key);
            let (_, log) = log.expect("a session is gone");
            assert!(
                log.starts_with(before),
                "{name}: {} forgets",
                known.key.name
            );
        }
        let kinds: BTreeMap<(String, u64), &str> = now
            .iter()
            .flat_map(|(known, log)| {
                let session = known.key.name.to_string();
                log.iter()
                    .map(move |entry| ((session.clone(), entry.seq.0), entry.record.fact.kind()))
            })
            .collect();
        for (at, event) in &self.events {
            let kind = event["type"].as_str().unwrap();
            assert_eq!(
                kinds.get(at),
                Some(&kind),
                "{name}: {at:?} was told, and is not so"
            );
        }
        let ended = now.iter().map(|(known, log)| audited(known, log, name).0);
        let ended = ended.collect();
        self.logs = now;
        ended
    }
}

/// A question for every session, under a key of the round.
fn questions(round: usize) -> Vec<u8> {
    let line = |number| {
        let line = json!({ "session": format!("s{number:02}"), "idempotency_key": format!("k{round}"),
            "question": format!("where is parse_invoice, please, for the {round}th time?") });
        format!("{line}\n")
    };
    (0..SESSIONS).map(line).collect::<String>().into_bytes()
}

/// One process, from its start to its death; what it said in whole lines.
fn live(place: &Place, round: usize, fate: &Fate) -> (Vec<Value>, ExitStatus) {
    let line = "ask --jsonl --events --parallel 20 --model scripted/script.json";
    let run = place.oracle(line);
    let run = match fate {
        Fate::At { point } => run.env("ORACLE_TESTKIT_DIE", point),
        Fate::Killed { .. } | Fate::Old => run,
    };
    let mut command = run.command();
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&questions(round))
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = Vec::new();
    loop {
        if let Fate::Killed { lines } = fate
            && said.len() as u64 == *lines
        {
            child.kill().unwrap();
        }
        let mut line = Vec::new();
        out.read_until(b'\n', &mut line).unwrap();
        // What death has cut off was not said.
        if line.pop() != Some(b'\n') {
            break;
        }
        said.push(serde_json::from_slice(&line).unwrap());
    }
    (said, child.wait().unwrap())
}

/// Named points and random moments, mixed.
fn fates(deaths: usize, dice: &mut Dice) -> VecDeque<Fate> {
    let mut fates = Vec::new();
    let sides = ["before", "after"];
    let points = KINDS.iter().flat_map(|kind| sides.map(|side| (side, kind)));
    for (side, kind) in points.cycle().take(deaths * 4 / 5) {
        let number = dice.below(6) + 1;
        let point = format!("{side}:{kind}:{number}");
        fates.push(Fate::At { point });
    }
    while fates.len() < deaths {
        let lines = dice.below(LINES);
        fates.push(Fate::Killed { lines });
    }
    for last in (1..fates.len()).rev() {
        let other = usize::try_from(dice.below(last as u64 + 1)).unwrap();
        fates.swap(last, other);
    }
    // A session is opened once, in the first round.
    fates.sort_by_key(|fate| match fate {
        Fate::At { point } if point.contains("session.opened") => 0,
        Fate::At { .. } | Fate::Killed { .. } | Fate::Old => 1,
    });
    fates.into()
}

#[tokio::test]
async fn whenever_the_program_is_killed_every_question_is_answered_once() {
    let seed = 1;
    let wanted = if long() { 200 } else { 25 };
    let rounds = wanted * 2;
    let place = Place::new(&FILES);
    std::fs::write(place.path("script.json"), script(rounds)).unwrap();
    let data = place.data.path().join("oracle");
    let (mut seen, mut dice) = (Seen::default(), Dice(seed));
    let mut waiting = fates(wanted, &mut dice);
    let mut round = 0;
    while !waiting.is_empty() {
        assert!(
            round < rounds,
            "moments that are never reached: {waiting:?}"
        );
        if round == rounds / 2 {
            // Whether a late point is reached at all depends on what else the machine does: an early moment
            // takes its place, so that as many deaths are died.
            waiting
                .iter_mut()
                .for_each(|fate| *fate = Fate::Killed { lines: 3 });
        }
        for death in 0..=DEATHS {
            let fate = match waiting.pop_front() {
                Some(fate) if death < DEATHS => fate,
                Some(fate) => {
                    waiting.push_front(fate);
                    Fate::Old
                }
                None => Fate::Old,
            };
            let name = format!("seed {seed}, round {round}, {fate:?}");
            let (said, status) = live(&place, round, &fate);
            seen.hear(round, &said, &name);
            let broken = |why: &str| panic!("{why}");
            let journal = Sqlite::open(&data, Box::new(broken)).unwrap();
            let journal: Arc<dyn Journal> = Arc::new(journal);
            let ended = seen.look(&journal, &name).await;
            if let Some(signal) = status.signal() {
                assert!([ABORTED, KILLED].contains(&signal), "{name}: {status}");
                seen.deaths += 1;
                continue;
            }
            // It came to its end, so that everybody has an answer; the point waits for another round.
            assert_eq!(status.code(), Some(0), "{name}");
            match &fate {
                // It takes a death before it in the same round.
                Fate::At { point } if point.contains("restarted") => {
                    let place = waiting.len().min(1);
                    waiting.insert(place, fate);
                }
                Fate::At { .. } | Fate::Killed { .. } => waiting.push_front(fate),
                Fate::Old => {}
            }
            all_is_answered(&seen, &ended, round, &name);
            break;
        }
        round += 1;
    }
    assert!(seen.deaths >= wanted, "{} deaths", seen.deaths);
}

/// Each session was asked each question once and in order, and everybody was told what stands there.
fn all_is_answered(seen: &Seen, ended: &[Vec<Ended>], round: usize, name: &str) {
    assert_eq!(seen.logs.len(), SESSIONS, "{name}");
    for ((known, log), ended) in seen.logs.iter().zip(ended) {
        all_ended(known, log, ended, name);
        let session = known.key.name.to_string();
        let keys = ended.iter().map(|ended| ended.key.clone().unwrap());
        let expected = (0..=round).map(|round| format!("k{round}"));
        assert!(keys.eq(expected), "{name}: {session} was asked {ended:?}");
        for (round, ended) in ended.iter().enumerate() {
            let stands = json!([ended.query, "answered", answer(round), 2]);
            let told = &seen.answers[&(session.clone(), round)];
            assert_eq!(*told, stands, "{name}: {session}, round {round}");
            assert_eq!(ended.outcome.0, "answered", "{name}: {session}");
            assert_eq!(ended.answer, answer(round), "{name}: {session}");
        }
    }
}
