//! The control port for other actor systems.

use oracle_agent::{
    control::{Controller, Verb, port},
    model::Principal,
};
use ractor::rpc::CallResult;

use super::system;

#[tokio::test(flavor = "multi_thread")]
async fn verbs_are_answered_or_refused_as_overloaded() {
    let system = system().await;
    let controller = Controller::new(system.oracle().clone());
    let (port, ended) = port::start(controller, None).await.unwrap();
    let ask = || async {
        let verb: Verb = serde_json::from_str(r#"{"verb":"inspect","session":"s"}"#).unwrap();
        let who = Principal::local();
        let message = |reply| port::ControlMsg::Do { who, verb, reply };
        port.call(message, None).await.unwrap()
    };
    // Far more than run at a time: each is answered, or rejected at once.
    let all = (0..4 * port::MAX_IN_FLIGHT).map(|_| ask());
    let answers = futures_util::future::join_all(all).await;
    let mut carried_out = 0;
    for answer in answers {
        let CallResult::Success(answer) = answer else {
            panic!("nobody answered")
        };
        match answer {
            Ok(_) => carried_out += 1,
            Err(refused) => {
                assert_eq!(refused.code.as_str(), "overloaded");
                assert!(refused.retry_after_ms.is_some());
            }
        }
    }
    assert!(carried_out > 0);
    port.stop(None);
    ended.await.unwrap();
}
