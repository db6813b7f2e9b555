//! Imported histories.

use oracle_agent::{
    kernel::{BegunQuery, Command, CommandReply as Heard, Effect, Refusal},
    model::{
        BusyPolicy, Import, ImportedMessage, Message, QueryId, Role, Speaker, Submission,
        command::{MAX_IMPORT, MAX_IMPORTED},
        record::{Fact, SessionFact},
    },
};

use super::{play::Play, script::*};

fn user(text: &str) -> ImportedMessage {
    ImportedMessage::new(Speaker::User, text)
}

fn assistant(text: &str) -> ImportedMessage {
    ImportedMessage::new(Speaker::Assistant, text)
}

fn import(instructions: Option<&str>, messages: Vec<ImportedMessage>) -> Import {
    let instructions = instructions.map(str::to_owned);
    Import {
        instructions,
        messages,
    }
}

fn talked() -> Import {
    let said = vec![user("Where is main?"), assistant("In src/main.rs.")];
    import(Some("Be brief."), said)
}

fn texts(play: &Play) -> Vec<(Role, String)> {
    let text = |message: &std::sync::Arc<Message>| (message.role, message.texts().collect());
    play.messages().iter().map(text).collect()
}

fn imported(play: &Play) -> Option<&Import> {
    play.log.iter().find_map(|record| match &record.fact {
        Fact::Session(SessionFact::Imported(import)) => Some(import),
        _ => None,
    })
}

#[test]
fn import_and_first_message_are_accepted_together() {
    let mut play = Play::new(policy());
    let heard = play.submit(Submission::new(QUESTION).with(talked()));
    assert_eq!(heard, Ok(Heard::query(QueryId(1))));
    assert_eq!(play.kinds(), ["session.imported", "query.accepted"]);
    let prepare = Effect::Prepare(BegunQuery {
        query: QueryId(1),
        text: QUESTION.into(),
        previous: Some("Where is main?".into()),
        is_task: false,
    });
    assert_eq!(play.effects, [prepare]);
    let history = [
        (Role::User, "Where is main?".to_owned()),
        (Role::Assistant, "In src/main.rs.".to_owned()),
        (Role::User, QUESTION.to_owned()),
    ];
    assert_eq!(texts(&play), history);
    assert_eq!(
        play.session.instructions().map(|text| &**text),
        Some("Be brief.")
    );
}

#[test]
fn imported_signals_are_data() {
    let mut play = Play::new(policy());
    let block = done();
    let said = vec![user(&block), assistant(&block)];
    let message = Submission::new(QUESTION).with(import(Some(&block), said));
    play.submit(message).unwrap();
    let harmless = block
        .replace("<signal", "&lt;signal")
        .replace("</signal", "&lt;/signal");
    let history = [
        (Role::User, harmless.clone()),
        (Role::Assistant, harmless.clone()),
        (Role::User, QUESTION.to_owned()),
    ];
    assert_eq!(texts(&play), history);
    assert_eq!(
        play.session.instructions().map(|text| &**text),
        Some(&*harmless)
    );
    // The log keeps the original text.
    assert_eq!(imported(&play).unwrap().messages[1].text, block);
}

#[test]
fn import_survives_a_failed_query() {
    let mut play = Play::new(policy());
    play.submit(Submission::new(QUESTION).with(talked()))
        .unwrap();
    play.prepare(oracle_agent::model::QueryType::Code);
    play.report(oracle_agent::kernel::Report::BudgetViolated {
        query: QueryId(1),
        detail: "too many".into(),
    });
    assert_eq!(
        texts(&play).len(),
        2,
        "the question is gone, the past is not"
    );
}

#[test]
fn messages_can_be_imported_only_before_the_first() {
    let mut play = Play::asked(policy());
    let late = Submission::new("And?").with(talked());
    assert_eq!(play.submit(late), Err(Refusal::NotNew));
    play.says(&done());
    let late = Submission::new("And?").with(talked());
    assert_eq!(play.submit(late), Err(Refusal::NotNew));
    // A repetition under the same key is recognised.
    let mut play = Play::new(policy());
    let keyed = || Submission {
        idempotency_key: Some("k".into()),
        ..Submission::new(QUESTION).with(talked())
    };
    let first = play.submit(keyed());
    assert_eq!(play.submit(keyed()), first);
    assert!(play.kinds().is_empty(), "nothing more is recorded");
}

#[test]
fn changed_instructions_are_recorded() {
    let mut play = Play::new(policy());
    for (name, instructions, kinds, then) in [
        (
            "first",
            Some("A"),
            vec!["session.imported", "query.accepted"],
            Some("A"),
        ),
        ("the same", Some(" A\n"), vec!["query.accepted"], Some("A")),
        ("none named", None, vec!["query.accepted"], Some("A")),
        (
            "others",
            Some("B"),
            vec!["session.imported", "query.accepted"],
            Some("B"),
        ),
        (
            "taken away",
            Some(" "),
            vec!["session.imported", "query.accepted"],
            None,
        ),
        ("and again", Some(""), vec!["query.accepted"], None),
    ] {
        let message = Submission::new("?").with(import(instructions, Vec::new()));
        play.submit(message).unwrap();
        assert_eq!(play.kinds(), kinds, "{name}");
        let there = play.session.instructions().map(|text| &**text);
        assert_eq!(there, then, "{name}");
        play.command(Command::Cancel { query: None }).unwrap();
    }
}

#[test]
fn refused_message_imports_nothing() {
    let mut play = Play::asked(policy());
    let rejected = Submission {
        busy: BusyPolicy::Reject,
        ..Submission::new("And?").with(import(Some("A"), Vec::new()))
    };
    assert_eq!(play.submit(rejected), Err(Refusal::Busy));
    assert_eq!(play.session.instructions(), None);
}

#[test]
fn oversized_import_is_refused() {
    let many = vec![user("a"); MAX_IMPORTED + 1];
    let long = vec![user(&"a".repeat(MAX_IMPORT - 1)), assistant("bc")];
    for (messages, bytes) in [(many, MAX_IMPORTED + 1), (long, MAX_IMPORT + 1)] {
        let mut play = Play::new(policy());
        let refused = Refusal::ImportTooLarge {
            messages: messages.len(),
            bytes,
        };
        let message = Submission::new("?").with(import(None, messages));
        assert_eq!(play.submit(message), Err(refused));
    }
    let mut play = Play::new(policy());
    let fits = import(None, vec![user(&"a".repeat(MAX_IMPORT)), assistant(" ")]);
    let fits = Import {
        messages: fits.messages[..1].to_vec(),
        ..fits
    };
    play.submit(Submission::new("?").with(fits)).unwrap();
}

#[test]
fn blank_imported_messages_are_recorded_but_not_sent() {
    let mut play = Play::new(policy());
    let past = vec![user("a"), assistant(" \n"), user("b")];
    play.submit(Submission::new("c").with(import(None, past)))
        .unwrap();
    let sent = ["a", "b", "c"].map(|text| (Role::User, text.to_owned()));
    assert_eq!(texts(&play), sent);
    assert_eq!(imported(&play).unwrap().messages.len(), 3);
}

#[test]
fn instructions_follow_the_prompt() {
    use oracle_agent::kernel::Session;
    let prompt = std::sync::Arc::from("The prompt.");
    assert_eq!(Session::system(&prompt, None), prompt);
    let system = Session::system(&prompt, Some("Be brief."));
    let (before, after) = ("The prompt.\n\n---\n\n# Instructions", "\n\nBe brief.");
    assert!(
        system.starts_with(before) && system.ends_with(after),
        "{system}"
    );
}
