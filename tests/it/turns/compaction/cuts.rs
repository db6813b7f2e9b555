//! Messages that are removed because no summary can be made.

use super::*;

type Tries = Vec<(i64, Result<Reply, Fault>)>;

fn hangs() -> Fault {
    Fault::permanent("total_timeout", "not complete in time")
}

fn compactions(play: &Play) -> impl Iterator<Item = &Compacted> {
    play.log.iter().filter_map(|record| match &record.fact {
        Fact::Budget(BudgetFact::ContextCompacted(made)) => Some(made),
        _ => None,
    })
}

/// The compactions so far: why there is no summary, and what takes the place of the messages.
fn compacted(play: &Play) -> Vec<(Option<&str>, &str)> {
    let all = compactions(play).map(|made| {
        assert!(made.after < made.before, "{made:?}");
        let cut = made.cut.as_ref().map(|fault| fault.code.as_str());
        (cut, made.summary.as_str())
    });
    all.collect()
}

fn within(play: &Play) -> Option<u64> {
    match play.effects[..] {
        [Effect::Compact { within, .. }] => Some(within.as_secs()),
        _ => None,
    }
}

#[test]
fn a_summary_is_tried_twice_and_then_messages_are_removed() {
    let says = |text: &str| Ok(reply(text, Vec::new()));
    let stops = |why| Ok(stopped(why, reply("No.", Vec::new())));
    let fails = |fault| (0, Err(fault));
    let chain = ["p/one", "p/two", "p/three"];
    let denied = || Fault::permanent("http_401", "no key");
    type Row<'a> = (&'a str, usize, Tries, &'a [usize], Option<&'a str>);
    let table: Vec<Row<'_>> = vec![
        (
            "hangs",
            1,
            vec![(19_000, Err(hangs())), (8_000, Err(hangs()))],
            &[0, 0],
            Some("total_timeout"),
        ),
        (
            "hangs, another does not",
            2,
            vec![(20_000, Err(hangs())), (0, says("Short."))],
            &[0, 1],
            None,
        ),
        (
            "empty",
            1,
            vec![(0, says(&done())), (0, says(&done()))],
            &[0, 0],
            Some("empty_summary"),
        ),
        (
            "empty once",
            1,
            vec![(0, says(&done())), (0, says("Short."))],
            &[0, 0],
            None,
        ),
        (
            "too long",
            1,
            vec![(0, says(&"endless ".repeat(2_000)))],
            &[0],
            None,
        ),
        (
            "refused",
            1,
            vec![(0, stops(StopReason::Refusal))],
            &[0],
            Some("refusal"),
        ),
        (
            "filtered",
            1,
            vec![(0, stops(StopReason::ContentFilter))],
            &[0],
            Some("content_filter"),
        ),
        (
            "refused by two",
            3,
            vec![
                (0, stops(StopReason::Refusal)),
                (0, stops(StopReason::Refusal)),
            ],
            &[0, 1],
            Some("refusal"),
        ),
        (
            "broken off",
            1,
            vec![
                fails(Fault::retryable("cut", "broke off")),
                fails(Fault::retryable("cut", "broke off")),
            ],
            &[0, 0],
            Some("cut"),
        ),
        (
            "denied",
            3,
            vec![fails(denied()), fails(denied())],
            &[0, 1],
            Some("http_401"),
        ),
        (
            "asks for a longer wait",
            1,
            vec![fails(Fault {
                class: FaultClass::Retryable {
                    after_ms: Some(40_000),
                },
                ..denied()
            })],
            &[0],
            Some("http_401"),
        ),
    ];
    for (name, models, tries, called, cut) in table {
        let mut play = steps::compacting_by(&chain[..models]);
        let begun = play.now().at;
        let (mut asked, mut deadlines) = (Vec::new(), Vec::new());
        for (millis, end) in tries {
            let model = chain.iter().position(|name| *name == play.compaction().0);
            asked.extend(model);
            deadlines.extend(within(&play));
            play.passes(millis);
            match end {
                Ok(reply) => play.summarised(reply),
                Err(fault) => play.no_summary(fault),
            };
            if let Some(Step::Compacting { pause: Some(_), .. }) =
                play.session.query().map(|query| &query.step)
            {
                let token = play.compaction_token();
                play.report(Report::RetryDue { token });
            }
        }
        assert_eq!(asked, called, "{name}");
        assert_eq!(deadlines[0], 20, "{name}");
        assert!(play.now().at.since(begun).as_secs() <= 30, "{name}");
        let [(why, text)] = compacted(&play)[..] else {
            panic!("{name}: {:?}", play.kinds());
        };
        assert_eq!(why, cut, "{name}");
        assert_eq!(
            text.contains("because no summary could be made"),
            cut.is_some(),
            "{name}: {text}"
        );
        assert!(
            text.starts_with(SUMMARY_LABEL) && text.chars().count() < 700,
            "{name}: {text}"
        );
        use Role::{Assistant, Tool, User};
        assert_eq!(play.roles(), [User, User, Assistant, Tool], "{name}");
        assert_eq!(
            play.model(),
            chain[0],
            "{name}: the turn begins as any other"
        );
        play.says(&format!("So. {}", done()));
        assert_eq!(play.end(), Some(("answered", "")), "{name}");
    }
}

#[test]
fn a_model_without_capacity_is_asked_for_a_summary_while_time_is_left() {
    let mut play = steps::compacting_by(&["p/one"]);
    let begun = play.now().at;
    let mut tries = 0;
    while play.session.state() == SessionState::Compacting {
        tries += 1;
        assert!(within(&play) <= Some(20));
        let class = FaultClass::Overloaded {
            after_ms: Some(4_000),
        };
        play.no_summary(Fault {
            class,
            ..Fault::permanent("overloaded", "no room")
        });
        if play.session.state() == SessionState::BackingOff {
            let token = play.compaction_token();
            play.passes(3_000).report(Report::RetryDue { token });
        }
    }
    assert!((5..8).contains(&tries), "{tries}");
    assert!(play.now().at.since(begun).as_secs() <= 30);
    assert_eq!(compacted(&play)[0].0, Some("overloaded"));
}

#[test]
fn the_deadline_of_a_summary_holds_after_a_restart_and_a_pause() {
    let mut play = steps::compacting();
    play.passes(10_000).restart(RestartCause::Crash);
    assert_eq!(within(&play), Some(19));
    assert_eq!(play.compaction().0, "p/one", "no model has failed");
    play.passes(12_000).reboot();
    assert_eq!(within(&play), Some(7));
    play.passes(60_000).reboot();
    let kinds = ["budget.context.compacted", "turn.started"];
    assert_eq!(&play.kinds()[1..], kinds);
    assert_eq!(compacted(&play)[0].0, Some("total_timeout"));
    let mut play = steps::compacting_by(&["p/one"]);
    play.command(Command::Pause).unwrap();
    play.passes(5_000).no_summary(hangs());
    assert_eq!(play.kinds(), ["llm.retried"]);
    let token = play.compaction_token();
    let mut late = play.clone();
    play.command(Command::Resume).unwrap();
    play.report(Report::RetryDue { token });
    play.command(Command::Pause).unwrap();
    play.no_summary(hangs());
    assert_eq!(play.kinds(), ["budget.context.compacted"], "the turn waits");
    play.command(Command::Resume).unwrap();
    assert_eq!(play.kinds(), ["control.resumed", "turn.started"]);
    late.passes(60_000).command(Command::Resume).unwrap();
    late.report(Report::RetryDue { token });
    assert_eq!(late.kinds(), kinds);
}

#[test]
fn a_conversation_that_fits_loses_nothing_to_a_wish_for_a_summary() {
    let mut play = second_question(windows(&[1_000_000]));
    play.says(&done());
    ask_with(&mut play, true);
    let before = play.roles();
    play.no_summary(Fault::permanent("http_401", "no key"));
    let kinds = ["budget.context.compaction_failed", "turn.started"];
    assert_eq!(play.kinds(), kinds);
    assert_eq!(play.roles(), before);
}

#[test]
fn the_oldest_messages_are_removed_with_their_results_and_what_users_said_is_kept() {
    let mut play = Play::new(windows(&[3_000]));
    let cuts = |play: &mut Play| {
        while play.session.state() == SessionState::Compacting {
            play.no_summary(Fault::permanent("http_401", "no key"));
            let cut = compactions(play).last().unwrap();
            // There is room for more than one question.
            assert!(cut.after < 1_600, "{cut:?}");
            let texts = texts(play);
            assert!(texts[0].starts_with(SUMMARY_LABEL));
            assert!(texts[0].contains("[user]\n"), "{}", texts[0]);
            assert!(texts[0].contains(": what does part "), "{}", texts[0]);
            assert!(!texts[1].starts_with(SUMMARY_LABEL));
            let first = play.messages()[1].role;
            assert!(first != Role::Tool, "no result without its call");
        }
    };
    for number in 0..40 {
        play.ask(&format!(
            "Question {number}: what does part {number} say?\n\nIn detail."
        ));
        cuts(&mut play);
        let asks = vec![call_with(
            &format!("c{number}"),
            "search",
            &format!("{{\"n\":{number}}}"),
        )];
        let said = need(&format!("to read part {number}"));
        play.replies(uncounted(reply(&said, asks)));
        play.ok(&format!("c{number}"), &"z".repeat(800));
        cuts(&mut play);
        let said = format!("It says so. {}", done());
        play.replies(uncounted(reply(&said, Vec::new())));
        assert_eq!(play.end(), Some(("answered", "")), "{number}");
    }
    let cuts = play.count("budget.context.compacted");
    assert!((5..15).contains(&cuts), "{cuts}");
    assert_eq!(
        play.count("budget.context.compacting"),
        cuts,
        "one try each"
    );
}

#[test]
fn a_cut_forgets_only_the_segments_that_it_removes() {
    let mut play = Play::asked(windows(&[2_000]));
    let say = |play: &mut Play, length| {
        let text = format!("{} {}", "word ".repeat(length), done());
        play.replies(uncounted(reply(&text, Vec::new())));
    };
    say(&mut play, 200);
    play.ask_as(QueryType::Research, "Is it known elsewhere?");
    say(&mut play, 600);
    play.ask_as(QueryType::Conversational, "Thanks!");
    say(&mut play, 100);
    play.ask("And the tests?");
    while play.session.state() == SessionState::Compacting {
        play.no_summary(Fault::permanent("http_401", "no key"));
    }
    assert_eq!(compacted(&play).len(), 1);
    say(&mut play, 1);
    for (kind, times) in [(QueryType::Conversational, 1), (QueryType::Research, 2)] {
        play.ask_as(kind, "And now?");
        say(&mut play, 1);
        let is_segment = |record: &&Record| match &record.fact {
            Fact::Query(QueryFact::Classified(classified)) => {
                let own = classified.classification.query_type == kind;
                own && classified.segment.is_some()
            }
            _ => false,
        };
        assert_eq!(play.log.iter().filter(is_segment).count(), times, "{kind}");
    }
}
