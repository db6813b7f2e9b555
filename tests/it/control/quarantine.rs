//! A session whose records cannot be read: each verb says so, and none asks for a retry.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    control::Verb,
    journal::{Journal as _, Memory},
    llm::Scripted,
    model::{Principal, Submission},
    testkit::{Obstacle, ObstructedJournal, TestOracle},
};

use super::{
    done,
    ways::{Answered, WAYS, Way},
};

#[tokio::test(flavor = "multi_thread")]
async fn verbs_give_the_reason_of_a_session_that_cannot_be_read() {
    for name in WAYS {
        let journal = ObstructedJournal::new(Arc::new(Memory::new()));
        let system = TestOracle::new(Scripted::new().reply(done("Fine.")))
            .journal(Arc::new(journal.clone()))
            .settings(|settings| settings.idle_timeout = Duration::ZERO)
            .start()
            .await
            .unwrap();
        let session = system.session("s").unwrap();
        session.submit(Submission::new("what?")).await.unwrap();
        session.wait_for("session.passivated").await.unwrap();
        let known = journal.find(session.key().clone()).await.unwrap().unwrap();
        journal.set(Obstacle::Unreadable(known.sid));
        let mut way = Way::to(name, &system).await;
        let mut ask = async |verb: &str| -> Answered {
            let verb = format!(r#"{{"verb":"{verb}","session":"s"}}"#);
            way.ask(
                Principal::local(),
                serde_json::from_str::<Verb>(&verb).unwrap(),
            )
            .await
        };
        let broken = format!("record 1 of session {} cannot be read", known.sid);
        for verb in ["inspect", "tail", "release", "release", "pause", "inspect"] {
            match ask(verb).await {
                Ok(answer) => {
                    let reason = answer["session"]["quarantine"].as_str().unwrap();
                    assert!(reason.starts_with(&broken), "{name}: {verb}: {reason}");
                }
                Err((code, message)) => {
                    assert_eq!(code, "quarantined", "{name}: {verb}: {message}");
                    assert!(message.contains(&broken), "{name}: {verb}: {message}");
                }
            }
        }
        assert_eq!(
            ask("inspect").await.unwrap()["session"]["state"],
            "quarantined"
        );
        journal.set(Obstacle::None);
        ask("release").await.unwrap();
        let shown = ask("inspect").await.unwrap();
        assert_eq!(shown["session"]["state"], "idle", "{name}");
    }
}
