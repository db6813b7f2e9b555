//! Sessions that last for one request, and what crashes leave of them.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    actor::Recovery,
    journal::{Journal, Memory, Standing},
    llm::Scripted,
    model::{ProfileName, Seq, SessionKey, SessionName, Submission, TenantId},
    testkit::{Silence, TestOracle, TestServer, let_pass},
};
use serde_json::json;
use uuid::Uuid;

use super::{Served, chat, done};

fn key(tenant: &str, name: &SessionName) -> SessionKey {
    SessionKey {
        tenant: TenantId::new(tenant).unwrap(),
        name: name.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_has_left_is_gone_after_the_next_start_and_asks_no_model() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let model = Silence::new(100, Scripted::new());
    let oracle = TestOracle::new(model).journal(Arc::clone(&journal));
    let system = oracle.start().await.unwrap();
    let kept = SessionName::new("once-upon-a-time").unwrap();
    let left: Vec<SessionKey> = ["default", "acme"]
        .into_iter()
        .flat_map(|tenant| (0..3).map(move |_| key(tenant, &SessionName::brief(Uuid::now_v7()))))
        .collect();
    // One of them had a sub-agent.
    let below = SessionName::new(&format!("{}.1.1", left[0].name)).unwrap();
    let left = [left, vec![key("default", &below)]].concat();
    for key in left.iter().chain([&key("acme", &kept)]) {
        let profile = ProfileName::oracle();
        let session = system.oracle().brief_session(key.clone(), profile);
        session.submit(Submission::new("why?")).await.unwrap();
    }
    system.die().await;
    let known = journal.find(left[0].clone()).await.unwrap().unwrap();
    assert_eq!(known.standing, Standing::Busy);

    let model = Scripted::new().reply(done("Fine."));
    let oracle = TestOracle::new(model.clone()).journal(Arc::clone(&journal));
    let oracle =
        oracle.settings(|settings| settings.recovery = Recovery::AtStart { concurrency: 1 });
    let server = TestServer::start(oracle).await.unwrap();
    for key in &left {
        while journal.find(key.clone()).await.unwrap().is_some() {
            let_pass(Duration::from_millis(1)).await;
        }
    }
    let there = journal
        .list(TenantId::new("acme").unwrap(), None, 9)
        .await
        .unwrap();
    let there: Vec<&SessionName> = there.iter().map(|known| &known.key.name).collect();
    assert_eq!(there, [&kept]);
    let session = server.oracle().session(key("acme", &kept));
    while model.requests().is_empty() {
        let_pass(Duration::from_millis(1)).await;
    }
    assert!(session.last().await.unwrap() > Some(Seq(0)));
    server.shut_down().await;
    assert_eq!(
        model.requests().len(),
        1,
        "the one that was not meant for one request"
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_of_one_request_is_gone_with_it_and_leaves_no_record() {
    let served = Served::start(TestOracle::new(Scripted::new().reply(done("Fine.")))).await;
    let got = served.post(&[], chat(&["why?"])).await;
    assert_eq!(got.status, 200);
    let name = got.session();
    assert!(SessionName::new(&name).unwrap().is_brief(), "{name}");
    let_pass(Duration::from_secs(1)).await;
    assert_eq!(served.sessions().await, Vec::<String>::new());
    // Nobody goes on with it.
    let refused = served
        .post(&[("x-oracle-session", name.as_str())], chat(&["and?"]))
        .await;
    let body: serde_json::Value = serde_json::from_str(&refused.text).unwrap();
    let said = (refused.status.as_u16(), &body["error"]["param"]);
    assert_eq!(said, (400, &json!("x-oracle-session")));
}
