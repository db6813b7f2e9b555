//! Random models behind a stream: a stream without an error shows the whole answer from the turn
//! that its end names, shows nothing twice, and shows no part of a signal.
//!
//! A seed alone determines a script. 300 run; 1,000 with `ORACLE_LONG_TESTS=1`, and one alone with
//! `ORACLE_STREAM_SEED=17`.

use std::{collections::BTreeMap, time::Duration};

use oracle_agent::{
    actor::AskError,
    kernel::{Command, OnMissingSignal},
    llm::scripted::{ScriptedReply, Try},
    model::{
        Fault, Outcome, QueryId, Seq,
        record::{Fact, ToolFact, TurnFact},
    },
    testkit::TestTool,
};

use super::{
    streams::{answer_alone, objects, text},
    *,
};
use crate::actors::simulation::{Dice, long};

/// Occurs in signals and thoughts only.
pub(super) const HIDDEN: &str = "§";

const WORDS: [&str; 14] = [
    "one", "Wörter", "a < b", "<b>", "`code`", "it", "is", "\n", "\n\n", "x`", "日本", "<", ".",
    "1.",
];

fn words(dice: &mut Dice, most: u64) -> String {
    let count = dice.below(most + 1);
    let words: Vec<_> = (0..count).map(|_| *dice.of(&WORDS)).collect();
    words.join(" ")
}

fn signal(dice: &mut Dice) -> String {
    let reason = dice.below(4);
    match dice.below(12) {
        0..=2 => format!("<signal type=\"need_turn\"><reason>{HIDDEN} {reason}</reason></signal>"),
        3..=5 => format!(
            "<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
             <confidence>0.9</confidence><note>{HIDDEN}</note></signal>"
        ),
        6 => format!("<signal type=\"partial_answer\"><missing>{HIDDEN}</missing></signal>"),
        7 => format!("<signal type=\"need_tern\"><reason>{HIDDEN}</reason></signal>"),
        8 => format!("<signal type=\"need_turn\"><why>{HIDDEN}</why></signal>"),
        9 => format!("<signal type=need_turn><reason>{HIDDEN}</reason></signal>"),
        10 => format!("<signal type=\"need_turn\"><reason>{HIDDEN}"),
        _ => String::new(),
    }
}

/// A reply with its signal at the end or, rarely, in the middle.
fn reply(dice: &mut Dice) -> String {
    let thought = match dice.below(6) {
        0 => format!("<think>{HIDDEN}</think>\n"),
        _ => String::new(),
    };
    let (text, signal) = (words(dice, 12), signal(dice));
    let after = match dice.below(6) {
        0 => words(dice, 4),
        _ => String::new(),
    };
    format!("{thought}{text}\n{signal}{after}")
}

fn pieces(dice: &mut Dice, text: &str) -> Vec<String> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = usize::try_from(1 + dice.below(12)).unwrap();
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(end.min(rest.len())));
        pieces.push(piece.to_owned());
        rest = after;
    }
    pieces
}

/// A failure before a reply, after text that mostly begins like it.
fn failure(dice: &mut Dice, reply: &str) -> Try {
    let end = usize::try_from(dice.below(reply.len() as u64 + 1)).unwrap();
    let shown = match dice.below(4) {
        0 => String::new(),
        1 => words(dice, 6),
        _ => reply[..reply.floor_char_boundary(end)].to_owned(),
    };
    match dice.below(4) {
        0 => Try::Cut { shown },
        1 => Try::Stall { shown },
        2 => Try::Fault {
            shown,
            fault: Fault::permanent("broken", "this model fails over"),
        },
        _ => Try::Fault {
            shown,
            fault: Fault::retryable("reset", "the connection was reset"),
        },
    }
}

pub(super) fn script(dice: &mut Dice, tools: &[&str]) -> Scripted {
    let characters = usize::try_from(1 + dice.below(20)).unwrap();
    let mut script = Scripted::new().chunk_characters(characters);
    for step in 0..1 + dice.below(5) {
        let text = reply(dice);
        let failures = dice.below(6).saturating_sub(3);
        let mut tries: Vec<_> = (0..failures).map(|_| failure(dice, &text)).collect();
        let mut reply = ScriptedReply::chunks(pieces(dice, &text));
        if dice.below(4) == 0 {
            reply = reply.call(*dice.of(tools), json!({ "at": step }));
        }
        tries.push(Try::Reply(reply));
        let pause = Duration::from_millis(*dice.of(&[0, 0, 1, 10]));
        script = script.step(tries).slowly(pause);
    }
    let end = ScriptedReply::text(done("The end."));
    script.step([Try::Reply(end)])
}

/// Something an operator does during the query.
async fn disturb(served: &Served, dice: &mut Dice) {
    let after = Duration::from_millis(dice.below(200));
    let command = match dice.below(10) {
        0 | 1 => Command::FinishNow,
        2 => Command::Restart,
        3 => Command::Cancel { query: None },
        _ => return,
    };
    advance_time(after).await;
    let done = served.system.session("s").unwrap().command(command).await;
    // The query may have ended already.
    assert!(!matches!(done, Err(AskError::Stopped)), "{done:?}");
}

/// Plays a script and returns how its stream ended.
async fn by_seed(seed: u64) -> &'static str {
    let mut dice = Dice(seed);
    let silent = *dice.of(&[
        OnMissingSignal::Auto,
        OnMissingSignal::Remind,
        OnMissingSignal::Finish,
    ]);
    let turns = u32::try_from(2 + dice.below(6)).unwrap();
    let oracle = TestOracle::new(script(&mut dice, &["look"]))
        .models(&["scripted/one", "scripted/two"])
        .tool(TestTool::new("look"))
        .policy(move |policy| {
            policy.limits.max_turns = turns;
            policy.on_missing_signal = silent;
        });
    let served = Served::start(oracle).await;
    let only_answer = dice.below(4) == 0;
    let is_late = dice.below(4) == 0;
    let body = match only_answer {
        true => answer_alone(chat(&["where-is-it?"])),
        false => streamed(chat(&["where-is-it?"])),
    };
    let (_, _, body) = served.open(&[("x-oracle-session", "s")], body).await;
    let session = served.system.session("s").unwrap();
    let got = async {
        if is_late {
            session.wait_for("query.finished").await.unwrap();
        }
        read(body).await
    };
    let (got, ()) = tokio::join!(got, disturb(&served, &mut dice));
    session.wait_for("query.finished").await.unwrap();

    let account = session.account(QueryId(1)).await.unwrap().unwrap();
    let (_, finished) = account.finished.unwrap();
    let answer = finished.outcome.readable(&finished.answer, finished.turns);
    let (mut texts, mut restarts) = (Vec::new(), BTreeMap::new());
    for entry in session.records(Seq(0)).await.unwrap() {
        match &entry.record.fact {
            Fact::Turn(TurnFact::Replied(replied)) if !replied.text.is_empty() => {
                texts.push(replied.text.to_string());
            }
            Fact::Turn(TurnFact::Restarted(_)) => {
                *restarts.entry(entry.record.turn).or_insert(0) += 1;
            }
            _ => {}
        }
    }
    let written = texts.join("\n\n");

    let mut events = objects(&got);
    let shown = text(&events);
    assert!(!shown.contains(HIDDEN), "{shown:?}");
    assert!(!shown.contains("<sig"), "{shown:?}");
    let is_complete = got.ends_with("data: [DONE]\n\n");
    let last = events.pop().unwrap();
    if !is_complete {
        let code = last["error"]["code"].as_str().unwrap();
        if code != "retracted" {
            let failed = matches!(
                finished.outcome,
                Outcome::Failed { .. } | Outcome::Cancelled
            );
            assert!(failed, "{code}: {:?}", finished.outcome);
            return "failed";
        }
        assert!(!only_answer, "nothing was sent before the answer");
        let failed = matches!(
            finished.outcome,
            Outcome::Failed { .. } | Outcome::Cancelled
        );
        let all = match &finished.outcome {
            Outcome::Forced { .. } => &answer,
            _ => &written,
        };
        // Attempts between the first and the last may have had another text.
        let has_others = restarts.values().any(|restarts| *restarts > 1);
        assert!(
            failed || has_others || !all.starts_with(&shown),
            "{shown:?} could go on as {all:?}"
        );
        return "retracted";
    }
    let from = last["oracle"]["answer_from"].as_u64().unwrap();
    let turn = |event: &Value| event["oracle"]["turn"].as_u64();
    let with_text = events
        .iter()
        .filter(|event| !text(std::slice::from_ref(event)).is_empty());
    let chunks: Vec<_> = with_text.cloned().collect();
    assert!(chunks.is_sorted_by_key(|chunk| turn(chunk).unwrap()));
    let rest = chunks.iter().position(|chunk| turn(chunk) >= Some(from));
    let rest = &chunks[rest.unwrap_or(chunks.len())..];
    assert_eq!(text(rest), answer, "from turn {from} of {shown:?}");
    if only_answer {
        assert_eq!(shown, answer);
        return "answer";
    }
    if let Outcome::Forced { .. } = finished.outcome {
        assert!(shown.ends_with(&answer), "{shown:?}");
        return "forced";
    }
    assert_eq!(shown, written, "each text once");
    if is_late { "late" } else { "live" }
}

/// Plays a script with calls of a client's tool; returns how its last stream ended.
async fn with_a_client(seed: u64) -> &'static str {
    let mut dice = Dice(seed);
    let turns = u32::try_from(1 + dice.below(4)).unwrap();
    let oracle = TestOracle::new(script(&mut dice, &["look", "ask", "ask"]))
        .models(&["scripted/one", "scripted/two"])
        .tool(TestTool::new("look"))
        .policy(move |policy| policy.limits.max_turns = turns);
    let served = Served::start(oracle).await;
    let session = served.system.session("s").unwrap();
    let mut body = streamed(chat(&["where-is-it?"]));
    body["tools"] = json!([{ "type": "function", "function": { "name": "ask" } }]);
    for response in 0.. {
        let got = served
            .post(&[("x-oracle-session", "s")], body.clone())
            .await;
        let mut events = objects(&got.text);
        let shown = text(&events);
        if !got.text.ends_with("data: [DONE]\n\n") {
            let code = events.pop().unwrap()["error"]["code"].clone();
            return if code == "retracted" {
                "retracted"
            } else {
                "failed"
            };
        }
        let mut texts = vec![Vec::new()];
        for entry in session.records(Seq(0)).await.unwrap() {
            match &entry.record.fact {
                Fact::Turn(TurnFact::Replied(replied)) if !replied.text.is_empty() => {
                    texts.last_mut().unwrap().push(replied.text.to_string());
                }
                Fact::Tool(ToolFact::Returned(_)) => texts.push(Vec::new()),
                _ => {}
            }
        }
        let written = texts[response].join("\n\n");
        let end = events.pop().unwrap();
        if end["choices"][0]["finish_reason"] == "tool_calls" {
            assert_eq!(shown, written, "each text once");
            let called = events
                .iter()
                .map(|event| &event["choices"][0]["delta"]["tool_calls"][0]);
            let calls: Vec<_> = called.filter(|call| !call.is_null()).cloned().collect();
            let results = calls.iter().map(
                |call| json!({ "role": "tool", "tool_call_id": call["id"], "content": "found" }),
            );
            let results: Vec<_> = results.collect();
            let messages = body["messages"].as_array_mut().unwrap();
            messages.push(json!({ "role": "assistant", "content": shown, "tool_calls": calls }));
            messages.extend(results);
            continue;
        }
        let account = session.account(QueryId(1)).await.unwrap().unwrap();
        let (_, finished) = account.finished.unwrap();
        let answer = finished.outcome.readable(&finished.answer, finished.turns);
        let from = end["oracle"]["answer_from"].as_u64().unwrap();
        events.retain(|event| event["oracle"]["turn"].as_u64() >= Some(from));
        let rest = text(&events);
        assert!(answer.ends_with(&rest), "{rest:?} of {answer:?}");
        assert_eq!(rest.is_empty(), answer.is_empty(), "{answer:?}");
        assert!(shown.starts_with(&written), "{written:?} in {shown:?}");
        if let Outcome::Forced { .. } = finished.outcome {
            return "forced";
        }
        let is_repeated = written.is_empty() && response > 0;
        assert!(
            is_repeated || shown == written,
            "{shown:?}, not {written:?}"
        );
        return if response > 0 { "continued" } else { "alone" };
    }
    unreachable!()
}

/// A runtime for each run: what ran before has no influence.
fn paused<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(work)
}

/// Names the command that repeats a seed that fails.
struct Repeat(u64, &'static str);

impl Drop for Repeat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(seed, test) = self;
            eprintln!("to repeat: ORACLE_STREAM_SEED={seed} cargo test --test it {test}");
        }
    }
}

/// Plays all seeds, and counts how they end; `None` for a single seed.
pub(super) fn play<F: Future<Output = &'static str>>(
    test: &'static str,
    by_seed: impl Fn(u64) -> F,
) -> Option<BTreeMap<&'static str, u32>> {
    let one = std::env::var("ORACLE_STREAM_SEED").ok();
    let seeds = match &one {
        Some(seed) => vec![seed.parse().unwrap()],
        None => (0..if long() { 1_000 } else { 300_u64 }).collect(),
    };
    let mut ends = BTreeMap::new();
    for seed in seeds {
        let _repeat = Repeat(seed, test);
        *ends.entry(paused(by_seed(seed))).or_insert(0) += 1;
    }
    one.is_none().then_some(ends)
}

#[test]
fn stream_without_an_error_shows_the_answer_once() {
    let ends = play("stream_without_an_error_shows_the_answer_once", by_seed);
    println!("{ends:?}");
    let Some(ends) = ends else { return };
    for end in ["answer", "failed", "forced", "late", "live", "retracted"] {
        assert!(ends.get(end) >= Some(&5), "{end} in {ends:?}");
    }
}

#[test]
fn streams_of_a_query_with_a_client_show_each_text_once() {
    let test = "streams_of_a_query_with_a_client_show_each_text_once";
    let ends = play(test, with_a_client);
    println!("{ends:?}");
    let Some(ends) = ends else { return };
    for (end, least) in [
        ("alone", 50),
        ("continued", 20),
        ("forced", 2),
        ("retracted", 5),
    ] {
        assert!(ends.get(end) >= Some(&least), "{end} in {ends:?}");
    }
}
