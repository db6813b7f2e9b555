//! Crash test of the real program, killed while it answers: at random moments, at every named point
//! of a turn, and by power cuts and failing disks.
//!
//! In a round, clients ask a server one question in each of twenty sessions. The server is killed
//! and restarted, and asked the same again, until it has answered everyone. The next round asks the
//! next question, with a few new sessions in place of old ones. The moment of a death follows from
//! a seed and from the events that the clients read, never from time. After each death a checker
//! compares those events with the journal.
//!
//! The progress of the other sessions at a death is a matter of chance, so a round may no longer
//! pass a point. That point then comes first in the next round, where every session has to pass it;
//! so a process dies at each of them.
//!
//! 25 deaths, and 5 power cuts; at least 200 of each with `ORACLE_LONG_TESTS=1`.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::Arc,
};

use futures_util::StreamExt as _;
use oracle_agent::{
    control::{Client, SessionUpdate},
    journal::{Entry, Journal, Known, Sqlite},
    model::{Event, Seq, SessionName, Submission},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    task::JoinSet,
};

mod disk;
mod power;

use disk::{Disk, SyncFault};

use super::{
    Workspace,
    ask::FILES,
    serve::{SERVE, Served},
};
use crate::actors::simulation::{
    Dice,
    check::{Ended, all_ended, audited, logs},
    long,
};

const SESSIONS: usize = 20;
/// New sessions per round, each in the place of an old one.
const NEW: usize = 2;
/// Rounds in which a session is asked.
const ASKED: usize = SESSIONS / NEW;
/// Maximum deaths in a round: ten process deaths would end a query.
const DEATHS: usize = 8;
/// Approximate number of events in a round.
const EVENTS: u64 = 200;
const FINISHED: &str = "query.finished";
const ABORTED: i32 = 6;
const KILLED: i32 = 9;

/// The records of a question, and those that a restart adds.
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

/// A point where a process may die: "before", "after" or "during", and a record's type or a kind of
/// work.
type Named = (&'static str, &'static str);

fn named() -> impl Iterator<Item = Named> + Clone {
    let sides = ["before", "after"];
    let records = KINDS
        .iter()
        .flat_map(move |kind| sides.map(|side| (side, *kind)));
    records.chain(["stream", "tool"].map(|work| ("during", work)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundEnd {
    /// Killed after its clients have read so many events.
    Killed { events: u64 },
    /// Aborts itself when it passes the point for this time.
    At { point: Named, time: u64 },
    /// Ends by a fault of its disk at the sync with this number, from 1.
    Sync { fault: SyncFault, number: u64 },
    /// Exits normally.
    Old,
}

impl RoundEnd {
    /// Chooses a time that a round reaches if the point comes first in it.
    fn at(point: Named, dice: &mut Dice) -> Self {
        let times = match point.1 {
            "session.opened" => NEW as u64,
            "supervisor.restarted" | "turn.restarted" => 3,
            "stream" => 2 * SESSIONS as u64,
            _ => 6,
        };
        let time = dice.below(times) + 1;
        Self::At { point, time }
    }

    /// Returns the death that must come before: only a process that died in the middle of a turn
    /// restarts one.
    fn needs(self) -> Option<Self> {
        match self {
            Self::At { point, .. } if point.1.ends_with(".restarted") => Some(Self::At {
                point: ("before", "turn.replied"),
                time: 1,
            }),
            Self::At { .. } | Self::Killed { .. } | Self::Sync { .. } | Self::Old => None,
        }
    }

    /// Moves the death earlier in the round. A process killed before any event, or at a point's
    /// first time, surely dies.
    const fn easier(self) -> Self {
        match self {
            Self::Killed { events } => Self::Killed { events: events / 2 },
            Self::At { point, .. } => Self::At { point, time: 1 },
            Self::Sync { fault, number } => Self::Sync {
                fault,
                number: number.div_ceil(2),
            },
            Self::Old => Self::Old,
        }
    }
}

fn name_of(session: usize) -> String {
    format!("s{session:04}")
}

fn asked_in(round: usize) -> std::ops::Range<usize> {
    round * NEW..round * NEW + SESSIONS
}

fn answer(number: usize) -> String {
    format!("In src/parser.rs:4, as of question {number}.")
}

fn script() -> String {
    let turns = (0..ASKED).flat_map(|number| {
        let search = json!({ "name": "code_search", "success": true,
            "arguments": { "query": "parse_invoice" } });
        let done = format!(
            "{} <signal type='context_sufficient'><sources_found>1</sources_found></signal>",
            answer(number)
        );
        [
            json!({ "chunks": ["Look", "ing", "."], "tool_calls": [search], "delay_ms": 4 }),
            json!({ "chunks": done.split_inclusive(' ').collect::<Vec<_>>(), "delay_ms": 2 }),
        ]
    });
    json!({ "turns": turns.collect::<Vec<_>>() }).to_string()
}

/// What was observed from outside.
#[derive(Default)]
struct Seen {
    /// By session and sequence number.
    events: BTreeMap<(String, u64), Event>,
    /// Query, outcome, answer and turns, by session and round.
    answers: BTreeMap<(String, usize), Value>,
    logs: Vec<(Known, Vec<Entry>)>,
    deaths: usize,
}

impl Seen {
    /// Takes what a process told its clients.
    fn hear(&mut self, round: usize, told: &[Event], name: &str) {
        let mut last = BTreeMap::new();
        for event in told {
            let (session, seq) = (event.session.to_string(), event.seq.0);
            let before = last.insert(session.clone(), seq).unwrap_or_default();
            assert!(seq > before, "{name}: {session} tells {seq} after {before}");
            let known = self.events.entry((session.clone(), seq));
            let known = known.or_insert_with(|| event.clone());
            assert_eq!(known, event, "{name}: another event of the same number");
            if event.kind == FINISHED {
                let [outcome, answer, turns] =
                    ["outcome", "answer", "turns"].map(|field| &event.payload[field]);
                let told = json!([event.query, outcome, answer, turns]);
                let known = self.answers.entry((session, round));
                let known = known.or_insert_with(|| told.clone());
                assert_eq!(*known, told, "{name}: another answer to the same question");
            }
        }
    }

    fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.logs.iter().flat_map(|(_, log)| log) {
            *counts.entry(entry.record.fact.kind()).or_default() += 1;
        }
        counts
    }

    /// Compares the journal with its earlier content and with the events that were read.
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
            assert_eq!(
                kinds.get(at),
                Some(&&*event.kind),
                "{name}: {at:?} was told, and is not so"
            );
        }
        let ended = now.iter().map(|(known, log)| audited(known, log, name).0);
        let ended = ended.collect();
        self.logs = now;
        ended
    }
}

/// Asks a session the round's question, and passes its events on until the answer or a death.
async fn ask(client: Arc<Client>, session: usize, round: usize, told: UnboundedSender<Event>) {
    let session = SessionName::new(&name_of(session)).unwrap();
    let question = Submission {
        idempotency_key: Some(format!("k{round}")),
        ..Submission::new(format!(
            "where is parse_invoice, please, for the {round}th time?"
        ))
    };
    let accepted = client.submit(&session, &question).await;
    let Some(Seq(number)) = accepted.ok().and_then(|accepted| accepted.seq) else {
        return;
    };
    let Ok(mut updates) = client.follow(&session, Seq(number - 1)).await else {
        return;
    };
    while let Some(Ok(update)) = updates.next().await {
        let SessionUpdate::Event(event) = update else {
            continue;
        };
        let is_last = event.kind == FINISHED;
        told.send(*event).unwrap();
        if is_last {
            return;
        }
    }
}

/// Runs one process to its end and returns the events that its clients read.
async fn live(trial: &Trial, fate: RoundEnd) -> (Vec<Event>, ExitStatus) {
    let run = trial.place.oracle(SERVE);
    let run = match fate {
        RoundEnd::At { point, time } => {
            let (side, what) = point;
            run.env("ORACLE_TESTKIT_DIE", format!("{side}:{what}:{time}"))
        }
        RoundEnd::Killed { .. } | RoundEnd::Sync { .. } | RoundEnd::Old => run,
    };
    let mut command = run.command();
    if let (Some(disk), RoundEnd::Sync { fault, number }) = (&trial.disk, fate) {
        command.envs(disk.before(fault, number));
    }
    let (mut server, _) = Served::dead_or_alive(command);
    let (tell, mut hear) = unbounded_channel();
    let mut asking = JoinSet::new();
    if let Ok(client) = Client::http(&format!("http://{}", server.address), None) {
        let client = Arc::new(client);
        for session in asked_in(trial.round) {
            asking.spawn(ask(Arc::clone(&client), session, trial.round, tell.clone()));
        }
    }
    drop(tell);
    let mut told = Vec::new();
    loop {
        let events = told.len() as u64;
        if fate == (RoundEnd::Killed { events }) {
            server.signal("KILL");
        }
        let Some(event) = hear.recv().await else {
            break;
        };
        told.push(event);
    }
    server.signal("TERM");
    (told, server.child.wait().unwrap())
}

fn fates(deaths: usize, dice: &mut Dice) -> VecDeque<RoundEnd> {
    let points = named().count();
    let rounds = deaths / (points + 1);
    let points = named().cycle().take(rounds * points);
    let mut fates: Vec<RoundEnd> = points.map(|point| RoundEnd::at(point, dice)).collect();
    while fates.len() < deaths {
        let events = dice.below(EVENTS);
        fates.push(RoundEnd::Killed { events });
    }
    for last in (1..fates.len()).rev() {
        let other = usize::try_from(dice.below(last as u64 + 1)).unwrap();
        fates.swap(last, other);
    }
    fates.into()
}

struct Trial {
    place: Workspace,
    disk: Option<Disk>,
    dice: Dice,
    /// Sectors that power cuts lost.
    lost: usize,
    round: usize,
    seen: Seen,
    died: BTreeSet<Named>,
    /// The ends of each session's queries, as of the last death.
    ended: Vec<Vec<Ended>>,
}

impl Trial {
    fn new() -> Self {
        let place = Workspace::new(&FILES);
        std::fs::write(place.path("script.json"), script()).unwrap();
        Self {
            place,
            disk: None,
            dice: Dice(1),
            lost: 0,
            round: 0,
            seen: Seen::default(),
            died: BTreeSet::new(),
            ended: Vec::new(),
        }
    }

    fn name(&self, fate: RoundEnd) -> String {
        format!("round {}, {fate:?}", self.round)
    }

    fn journal(&self) -> Arc<dyn Journal> {
        let broken = |why: &str| panic!("{why}");
        let data = self.place.data.path().join("oracle");
        Arc::new(Sqlite::open(&data, Box::new(broken)).unwrap())
    }

    /// Runs one process and checks its traces. Returns whether it died this death; otherwise it
    /// exited normally.
    async fn dies(&mut self, fate: RoundEnd) -> bool {
        let name = self.name(fate);
        let (told, status) = live(self, fate).await;
        let is_dead = !status.success();
        if let (Some(disk), true) = (&self.disk, is_dead) {
            self.lost += disk.cut(&mut self.dice);
        }
        self.seen.hear(self.round, &told, &name);
        let before = self.seen.counts();
        self.ended = self.seen.look(&self.journal(), &name).await;
        match (fate, status.signal()) {
            (RoundEnd::At { point, .. }, Some(ABORTED)) => {
                self.died_at(point, &before, &name);
                self.died.insert(point);
            }
            (RoundEnd::Killed { .. }, Some(KILLED)) => {}
            (RoundEnd::Sync { fault, .. }, _) if !status.success() => {
                power::ended_by(fault, status, &name);
            }
            _ => {
                // A normal end, so every session has its answer.
                assert_eq!(status.code(), Some(0), "{name}: {status}");
                return false;
            }
        }
        self.seen.deaths += 1;
        true
    }

    /// Checks that the journal shows a death at this point.
    fn died_at(&self, point: Named, before: &BTreeMap<&str, usize>, name: &str) {
        let logs = || self.seen.logs.iter();
        // Whether in some session the last of these records is one that begins.
        let open = |begin: &[&str], end: &str| {
            let is_open = |log: &Vec<Entry>| {
                let mut kinds = log.iter().rev().map(|entry| entry.record.fact.kind());
                let last = kinds.find(|kind| begin.contains(kind) || *kind == end);
                last.is_some_and(|last| last != end)
            };
            logs().any(|(_, log)| is_open(log))
        };
        let shows = match point {
            ("during", "stream") => open(&["turn.started", "turn.restarted"], "turn.replied"),
            ("during", _) => open(&["tool.started"], "tool.finished"),
            ("after", kind) => self.seen.counts().get(kind) > before.get(kind),
            _ => true,
        };
        assert!(shows, "{name}: it did not die there");
        // The end is recorded, and the client has not read it.
        let untold = || {
            let mut ends = logs().zip(&self.ended);
            ends.any(|((known, _), ended)| {
                let asked = (known.key.name.to_string(), self.round);
                let key = Some(format!("k{}", self.round));
                let has_ended = ended.iter().any(|ended| ended.key == key);
                has_ended && !self.seen.answers.contains_key(&asked)
            })
        };
        assert!(point != ("after", "query.finished") || untold(), "{name}");
    }

    /// Plays one round: as many of the waiting deaths as fit, and then a normal end.
    async fn round(&mut self, waiting: &mut VecDeque<RoundEnd>) {
        if !self.outlives(waiting).await {
            assert!(!self.dies(RoundEnd::Old).await);
        }
        self.all_is_answered();
        self.round += 1;
    }

    /// Dies one death after the other. Returns whether a process exited normally instead; its death
    /// then waits for the next round.
    async fn outlives(&mut self, waiting: &mut VecDeque<RoundEnd>) -> bool {
        let mut deaths = 0;
        // A death may need another one before it.
        while deaths + 2 <= DEATHS
            && let Some(fate) = waiting.pop_front()
        {
            let is_first = deaths == 0;
            for next in fate.needs().into_iter().chain([fate]) {
                if !self.dies(next).await {
                    let must = is_first && matches!(next, RoundEnd::At { time: 1, .. });
                    assert!(!must, "{}: nobody passes there", self.name(next));
                    waiting.push_front(fate.easier());
                    return true;
                }
                deaths += 1;
            }
        }
        false
    }

    /// Checks that each session was asked each question once and in order, and told the recorded
    /// answers.
    fn all_is_answered(&self) {
        let name = self.name(RoundEnd::Old);
        assert_eq!(self.seen.logs.len(), asked_in(self.round).end, "{name}");
        let sessions = (0..).zip(&self.seen.logs).zip(&self.ended);
        for ((session, (known, log)), ended) in sessions {
            all_ended(known, log, ended, &name);
            let rounds = (0..=self.round).filter(|round| asked_in(*round).contains(&session));
            let rounds: Vec<usize> = rounds.collect();
            let session = name_of(session);
            assert_eq!(known.key.name.as_str(), session, "{name}");
            let keys = ended.iter().map(|ended| ended.key.clone().unwrap());
            let expected = rounds.iter().map(|round| format!("k{round}"));
            assert!(keys.eq(expected), "{name}: {session} was asked {ended:?}");
            for (number, (round, ended)) in rounds.into_iter().zip(ended).enumerate() {
                let stands = json!([ended.query, "answered", answer(number), 2]);
                let told = &self.seen.answers[&(session.clone(), round)];
                assert_eq!(*told, stands, "{name}: {session}, round {round}");
                assert_eq!(ended.outcome.0, "answered", "{name}: {session}");
                assert_eq!(ended.answer, answer(number), "{name}: {session}");
            }
        }
    }
}

#[tokio::test]
async fn every_question_is_answered_once_wherever_the_program_is_killed() {
    let wanted = if long() { 200 } else { 25 };
    let mut waiting = fates(wanted, &mut Dice(1));
    let mut trial = Trial::new();
    while !waiting.is_empty() {
        trial.round(&mut waiting).await;
    }
    assert!(trial.seen.deaths >= wanted, "{} deaths", trial.seen.deaths);
    assert_eq!(trial.died, named().collect(), "each point was died at");
}
