//! `oracle ask --jsonl`: many questions at once, in as many sessions as they name.
//!
//! Questions of one session are asked one after the other, as they stand; sessions do not wait for
//! each other. Nothing is asked before every line was read and is in order.
//!
//! **Invariant:** each line gets one object on standard output, whatever became of it.

use std::{collections::HashMap, pin::pin};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use super::{
    Stop,
    ask::{self, Format},
    exit,
    input::{self, Source},
    interrupts::Interrupts,
    question::Question,
    terminal::{Input, Terminal},
};
use crate::{
    actor::{Oracle, Progress, SessionHandle},
    control::Refused,
    journal::Journal,
    model::{BusyPolicy, Event, ProfileName, SessionKey, SessionName, Submission},
    tool::ProjectRoot,
};

const WAITING: usize = 64;

/// What is asked, and how.
#[derive(Debug, Clone)]
pub struct BatchRequest {
    /// The questions.
    pub questions: Questions,
    /// What to do where a session is busy with something else.
    pub busy: BusyPolicy,
    /// How many sessions are asked at the same time.
    pub parallel: usize,
    /// Whether events are printed too.
    pub format: Format,
    /// Where citations are checked.
    pub root: ProjectRoot,
    /// By what a session lives that is new.
    pub profile: ProfileName,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    question: String,
    #[serde(default)]
    session: Option<SessionName>,
    #[serde(default)]
    idempotency_key: Option<String>,
}

impl From<String> for Line {
    fn from(question: String) -> Self {
        Self {
            question,
            session: None,
            idempotency_key: None,
        }
    }
}

/// Questions by session, both in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions(Vec<Talk>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Talk {
    session: SessionName,
    /// With their numbers.
    lines: Vec<(usize, Line)>,
}

impl Questions {
    /// All lines of standard input. Those that name no session go to `session`, or to a new one each.
    pub fn read(session: Option<&SessionName>, input: &mut Input) -> Result<Self, Stop> {
        let mut source = Source::standard(input);
        let (mut talks, mut places) = (Vec::<Talk>::new(), HashMap::new());
        while let Some((number, item)) = source.item::<Line>()? {
            input::checked(&item.question).map_err(|error| source.bad_line(error))?;
            let named = item.session.as_ref().or(session);
            if named.is_none() && item.idempotency_key.is_some() {
                return Err(source.bad_line(KEY_WITHOUT_SESSION));
            }
            let new = || SessionName::from_uuid(Uuid::now_v7());
            let session = named.cloned().unwrap_or_else(new);
            let place = *places.entry(session.clone()).or_insert(talks.len());
            if place == talks.len() {
                let lines = Vec::new();
                talks.push(Talk { session, lines });
            }
            talks[place].lines.push((number, item));
        }
        Ok(Self(talks))
    }
}

/// Why a key alone is of no use.
pub const KEY_WITHOUT_SESSION: &str =
    "an idempotency key is known within its session: name the session too";

enum Told {
    Event(String),
    Note(String),
    /// What became of a line; the code that this has, and what people are told.
    Object {
        object: Value,
        code: u8,
        note: Option<String>,
    },
}

/// Asks all, shows each as it is answered, and gives the worst exit code. Ctrl-C takes back what runs
/// and asks nothing more; a second one leaves at once.
pub async fn run(
    oracle: &Oracle,
    journal: &dyn Journal,
    request: BatchRequest,
    terminal: &mut Terminal,
) -> Result<u8, Stop> {
    let BatchRequest {
        questions: Questions(talks),
        busy,
        parallel,
        format,
        root,
        profile,
    } = request;
    let mut interrupts = Interrupts::listen();
    let (listener, mut told) = mpsc::channel(WAITING);
    let (end, until) = watch::channel(Until::Answered);
    let talks = talks.into_iter().map(|talk| Asker {
        session: oracle.session_of(SessionKey::local(talk.session), profile.clone()),
        journal,
        lines: talk.lines,
        busy,
        format,
        root: root.clone(),
        listener: listener.clone(),
        until: until.clone(),
    });
    let mut asked = pin!(
        stream::iter(talks)
            .map(Asker::ask)
            .buffer_unordered(parallel)
    );
    let mut code = exit::DONE;
    loop {
        tokio::select! {
            Some(told) = told.recv() => code = exit::worse(code, show(told, terminal)?),
            done = asked.next() => if done.is_none() { break },
            () = interrupts.pressed() => {
                if end.send_replace(Until::TakenBack) == Until::TakenBack {
                    return Err(Stop::Interrupted);
                }
                terminal.status("taking the questions back; Ctrl-C again leaves at once");
            }
        }
    }
    while let Ok(told) = told.try_recv() {
        code = exit::worse(code, show(told, terminal)?);
    }
    terminal.clear_status();
    Ok(code)
}

fn show(told: Told, terminal: &mut Terminal) -> Result<u8, Stop> {
    match told {
        Told::Event(event) => {
            terminal.line(&event)?;
            Ok(exit::DONE)
        }
        Told::Note(note) => {
            terminal.note(&format!("oracle: {note}"));
            Ok(exit::DONE)
        }
        Told::Object { object, code, note } => {
            if let Some(note) = note {
                terminal.note(&format!("oracle: {note}"));
            }
            terminal.line(&object.to_string())?;
            Ok(code)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Answered,
    /// No longer: what runs is taken back, what is not asked yet is not asked.
    TakenBack,
}

struct Asker<'a> {
    session: SessionHandle,
    journal: &'a dyn Journal,
    lines: Vec<(usize, Line)>,
    busy: BusyPolicy,
    format: Format,
    root: ProjectRoot,
    listener: mpsc::Sender<Told>,
    until: watch::Receiver<Until>,
}

impl Asker<'_> {
    async fn ask(mut self) {
        for (line, asked) in std::mem::take(&mut self.lines) {
            let told = if *self.until.borrow() == Until::TakenBack {
                self.without(line, exit::CANCELLED, "it was not asked any more")
            } else {
                match self.answer(line, asked).await {
                    Ok(told) => told,
                    Err(Refused { code, message, .. }) => {
                        self.without(line, exit::of_code(code), &message)
                    }
                }
            };
            self.tell(told).await;
        }
    }

    async fn answer(&mut self, line: usize, asked: Line) -> Result<Told, Refused> {
        let submission = Submission {
            busy: self.busy,
            idempotency_key: asked.idempotency_key,
            ..Submission::new(asked.question)
        };
        ask::leave_alone_if_busy(self.journal, self.session.key(), &submission).await?;
        let mut question = Question::ask(&self.session, submission).await?;
        let mut until = self.until.clone();
        let told_to_end = async {
            until
                .wait_for(|until| *until == Until::TakenBack)
                .await
                .is_ok()
        };
        let mut told_to_end = pin!(told_to_end.fuse());
        loop {
            tokio::select! {
                progress = question.next() => match progress? {
                    Some(Progress::Record(record)) => {
                        self.event(&record.event()).await;
                        self.leave_calls(line, &mut question).await?;
                    }
                    Some(Progress::Frame(_)) => {}
                    None => break,
                },
                true = &mut told_to_end => question.take_back().await?,
            }
        }
        let answer = question.answer().await?;
        let mut object = ask::object(&self.session, &self.root, &answer).await?;
        object["line"] = line.into();
        Ok(Told::Object {
            object,
            code: exit::of_outcome(&answer.outcome),
            note: None,
        })
    }

    /// No person is asked here.
    async fn leave_calls(&self, line: usize, question: &mut Question) -> Result<(), Refused> {
        while let Some(call) = question.waiting().first().cloned() {
            let (why, left) = question.leave_call(&call);
            self.tell(Told::Note(format!("line {line}: {why}"))).await;
            left.await?;
        }
        Ok(())
    }

    fn without(&self, line: usize, code: u8, why: &str) -> Told {
        let session = &self.session.key().name;
        Told::Object {
            object: json!({ "line": line, "session": session, "outcome": null, "error": why }),
            code,
            note: Some(format!("line {line}, session `{session}`: {why}")),
        }
    }

    async fn event(&self, event: &Event) {
        if self.format.has_events()
            && let Ok(event) = serde_json::to_string(event)
        {
            self.tell(Told::Event(event)).await;
        }
    }

    async fn tell(&self, told: Told) {
        // Who listens is there for as long as somebody asks.
        let _ = self.listener.send(told).await;
    }
}
