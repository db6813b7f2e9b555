//! Requests that are refused before a message is sent.

use crate::{
    actor::System,
    llm::Scripted,
    model::{SessionKey, SessionName, Submission},
    testkit::TestOracle,
};

#[tokio::test(start_paused = true)]
async fn idempotency_key_of_invalid_length_is_refused() {
    let oracle = TestOracle::new(Scripted::new().stall("Let me see"));
    let system = System::start(oracle.args().unwrap()).await.unwrap();
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let session = system.oracle().session_by_key(key);
    let with_key = |bytes| Submission {
        idempotency_key: Some("k".repeat(bytes)),
        ..Submission::new("and?")
    };
    for bytes in [0, 257] {
        let refused = session.submit(with_key(bytes)).await.unwrap_err();
        let said = format!("the idempotency key has {bytes} bytes: use 1 to 256");
        assert_eq!(refused.to_string(), said);
    }
    session.submit(with_key(256)).await.unwrap();
}
