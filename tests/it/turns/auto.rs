//! Row 18, `auto`: a reply without a signal is kept, and one short turn asks for the signal alone.
//! `crate::weak` has the replies of weak models; here are the surrounding events.

use oracle_agent::{
    kernel::{Command, OnMissingSignal, Policy},
    model::{Fault, Limits, QueryType, Role, StopReason, command::Author, record::TurnMode},
};

use super::{play::Play, script::*};

fn auto() -> Policy {
    Policy {
        on_missing_signal: OnMissingSignal::Auto,
        ..policy()
    }
}

fn signal_turn() -> Play {
    let mut play = Play::asked(auto());
    play.says("It is in a.rs.");
    assert_eq!(play.turn().mode, TurnMode::Signal);
    play
}

#[test]
fn kept_reply_is_the_answer_however_the_signal_turn_ends() {
    type Ends = fn(&mut Play);
    let cases: [(&str, Ends); 7] = [
        ("nothing", |play| {
            play.says("");
        }),
        ("other words", |play| {
            play.says("Anything else?");
        }),
        ("a call instead", |play| {
            play.calls("", vec![call("s", "search")]);
        }),
        ("a pause", |play| {
            let paused = reply("", Vec::new());
            play.replies(stopped(StopReason::Paused, paused));
        }),
        ("a fault that may pass", |play| {
            play.fails(Fault::retryable("stall", "silence"));
        }),
        ("a server that is away", |play| {
            play.fails(Fault::unavailable("connect", "nobody"));
        }),
        ("a refusal", |play| {
            let mut reply = reply("", Vec::new());
            reply.stop = StopReason::Refusal;
            play.replies(reply);
        }),
    ];
    for (name, ends) in cases {
        let mut play = signal_turn();
        ends(&mut play);
        assert_eq!(play.end(), Some(("answered", "")), "{name}");
        assert_eq!(play.answer(), "It is in a.rs.", "{name}");
        let texts = play.session.transcript().messages();
        let said = texts
            .iter()
            .filter(|message| message.role == Role::Assistant);
        assert_eq!(said.count(), 1, "{name}: the model reads it once");
    }
}

#[test]
fn signal_of_a_signal_turn_applies_to_the_kept_reply() {
    for (signal, end) in [
        (done(), Some(("answered", ""))),
        (partial(), Some(("partial", "the error paths"))),
        (need("half is unread"), None),
        (stuck("no access"), None),
        (weak(&done()), None),
        (wants("a shell"), None),
    ] {
        let mut play = signal_turn();
        play.says(&signal);
        assert_eq!(play.end(), end, "{signal}");
        match end {
            Some(_) => assert_eq!(play.answer(), "It is in a.rs."),
            None => assert_eq!(play.turn().mode, TurnMode::Normal, "{signal}"),
        }
    }
}

#[test]
fn signal_turn_survives_a_restart() {
    let mut play = signal_turn();
    play.reboot();
    assert_eq!(play.turn().mode, TurnMode::Signal);
    play.says("");
    assert_eq!(play.answer(), "It is in a.rs.");
}

#[test]
fn signal_turn_needs_a_turn_budget_and_a_model_that_signals() {
    let limited = |max_turns| Policy {
        limits: Limits::turns(max_turns),
        ..auto()
    };
    let spent = Policy {
        limits: Limits {
            max_tokens: Some(1),
            ..Limits::default()
        },
        ..auto()
    };
    for (name, policy) in [
        ("one turn", limited(1)),
        ("two turns", limited(2)),
        ("tokens", spent),
    ] {
        let mut play = Play::asked(policy);
        play.says("It is in a.rs.");
        assert_eq!(play.end(), Some(("answered", "")), "{name}");
    }
    let mut play = Play::new(auto());
    play.unsignalled = true;
    play.ask(QUESTION);
    assert!(play.turn().unsignalled, "what was learned is recorded");
    play.says("It is in a.rs.");
    assert_eq!(play.end(), Some(("answered", "")));
}

#[test]
fn steered_messages_and_cut_replies_precede_the_signal_turn() {
    let mut play = Play::asked(auto());
    let (text, author) = ("And the tests?".to_owned(), Author::User);
    play.command(Command::Steer { text, author }).unwrap();
    play.says("It is in a.rs.");
    assert_eq!(
        play.turn().mode,
        TurnMode::Normal,
        "the words are read first"
    );

    let mut play = Play::asked(auto());
    let mut cut = reply("It is in", Vec::new());
    cut.stop = StopReason::MaxTokens;
    play.replies(cut);
    assert_eq!(play.turn().mode, TurnMode::Normal, "it goes on from there");
}

#[test]
fn silence_triggers_no_fallback_and_small_talk_needs_no_signal() {
    let mut play = Play::asked(auto());
    for turn in 0..4 {
        play.says(&format!("Part {turn}."));
        assert_eq!(play.turn().mode, TurnMode::Signal);
        play.says(&need(&format!("part {turn} is not the last")));
        assert_eq!(play.turn().mode, TurnMode::Normal);
    }
    assert_eq!(play.count("fallback.triggered"), 0);

    let mut play = Play::new(auto());
    play.ask_as(QueryType::Conversational, "hello");
    play.says("Hello.");
    assert_eq!(play.end(), Some(("answered", "")));
}

#[test]
fn same_reason_three_times_is_a_loop_in_signal_turns_too() {
    let mut play = Play::asked(auto());
    for _ in 0..3 {
        play.says("Reading on.");
        play.says(&need("the rest is unread"));
    }
    assert_eq!(play.end(), Some(("forced", "loop")));
}
