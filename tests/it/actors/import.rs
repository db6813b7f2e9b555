//! Conversations that began elsewhere.

use oracle_agent::{
    actor::AskError,
    kernel::Refusal,
    llm::Scripted,
    model::{Import, ImportedMessage, Role, Seq, Speaker, Submission},
    testkit::TestOracle,
};

use super::{done, memory};

fn talked() -> Import {
    let said = |speaker, text: &str| ImportedMessage {
        speaker,
        text: text.to_owned(),
    };
    Import {
        instructions: Some("Answer in French.".to_owned()),
        messages: vec![
            said(Speaker::User, "Where is main?"),
            said(Speaker::Assistant, "In src/main.rs."),
        ],
    }
}

#[tokio::test(start_paused = true)]
async fn the_model_gets_what_was_said_elsewhere_also_after_a_restart_of_the_system() {
    let (journal, script) = (
        memory(),
        Scripted::new().starting_after(1).reply(done("One.")),
    );
    let before = TestOracle::new(script.clone()).journal(journal.clone());
    let before = before.start().await.unwrap();
    let session = before.session("s").unwrap();
    let message = Submission::new("first").with(talked());
    assert_eq!(session.answer(message).await.unwrap().text, "One.");
    let sent = script.requests();
    let roles: Vec<Role> = sent[0]
        .messages
        .iter()
        .map(|message| message.role)
        .collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
    assert!(sent[0].system.ends_with("\n\nAnswer in French."));
    before.die().await;

    let script = Scripted::new().starting_after(2).reply(done("Two."));
    let after = TestOracle::new(script.clone()).journal(journal);
    let after = after.start().await.unwrap();
    let session = after.session("s").unwrap();
    session.ask("second").await.unwrap();
    let sent = script.requests();
    assert_eq!(sent[0].messages.len(), 5);
    assert!(sent[0].system.ends_with("\n\nAnswer in French."));
    let again = session
        .submit(Submission::new("third").with(talked()))
        .await;
    assert!(matches!(again, Err(AskError::Refused(Refusal::NotNew))));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_read_back_and_nobody_wakes_for_it() {
    let script = Scripted::new().starting_after(1).reply(done("One."));
    let oracle = TestOracle::new(script).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let unknown = session.conversation().await;
    assert!(matches!(unknown, Err(AskError::NoSession { .. })));
    let message = Submission::new("first").with(talked());
    session.answer(message).await.unwrap();
    let events = session.events(Seq(0)).await.unwrap().len();
    let conversation = session.conversation().await.unwrap();
    let said = conversation.messages.iter();
    let said: Vec<_> = said
        .map(|said| (said.query.map(|query| query.0), said.text.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (None, "Where is main?"),
            (None, "In src/main.rs."),
            (Some(1), "first"),
            (Some(1), "One."),
        ]
    );
    assert_eq!(session.events(Seq(0)).await.unwrap().len(), events);
}
