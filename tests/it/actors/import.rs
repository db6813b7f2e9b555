//! Sessions that start with an imported history.

use oracle_agent::{
    actor::AskError,
    kernel::Refusal,
    llm::Scripted,
    model::{Import, ImportedMessage, Role, Speaker, Submission},
    testkit::TestOracle,
};

use super::{done, memory};

fn talked() -> Import {
    let said = |speaker, text: &str| ImportedMessage::new(speaker, text);
    Import {
        instructions: Some("Answer in French.".to_owned()),
        messages: vec![
            said(Speaker::User, "Where is main?"),
            said(Speaker::Assistant, "In src/main.rs."),
        ],
    }
}

#[tokio::test(start_paused = true)]
async fn model_receives_imported_messages_also_after_a_restart() {
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
