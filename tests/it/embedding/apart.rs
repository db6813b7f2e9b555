//! Two systems in one process, both at work.

use std::sync::Arc;

use futures_util::{StreamExt as _, future::join_all};
use oracle_agent::{
    actor::{Filter, Notice},
    journal::{Journal, Memory},
    llm::Scripted,
    model::{
        Fault, SessionKey, SessionName, TenantId,
        record::{Fact, QueryFact},
    },
    testkit::{Probe, TestOracle, TestSystem},
};

use super::done;

const CONVERSATIONS: usize = 40;

async fn all_ask(system: &TestSystem) -> Vec<String> {
    let ask = |n| async move {
        let session = system.session(&format!("s{n}")).unwrap();
        session.ask("how is the code?").await.unwrap().text
    };
    join_all((0..CONVERSATIONS).map(ask)).await
}

#[tokio::test(start_paused = true)]
async fn two_systems_have_separate_journals_limits_and_metrics() {
    let journals: [Arc<dyn Journal>; 2] = [Arc::new(Memory::new()), Arc::new(Memory::new())];
    let models = ["From a.", "From b."].map(|text| {
        let second = std::time::Duration::from_secs(1);
        Probe::new(Scripted::new().reply(done(text)).slowly(second))
    });
    let start = |at: usize, concurrency| {
        TestOracle::new(models[at].clone())
            .journal(Arc::clone(&journals[at]))
            .settings(move |settings| settings.gateway.concurrency = concurrency)
            .start()
    };
    let (a, b) = (start(0, 3).await.unwrap(), start(1, 30).await.unwrap());
    let ends = || Filter::facts(|fact| matches!(fact, Fact::Query(QueryFact::Finished(_))));
    let heard = [a.oracle().subscribe(ends()), b.oracle().subscribe(ends())];

    let (from_a, from_b) = tokio::join!(all_ask(&a), all_ask(&b));

    assert_eq!(from_a, vec!["From a."; CONVERSATIONS]);
    assert_eq!(from_b, vec!["From b."; CONVERSATIONS]);
    assert_eq!(
        models.each_ref().map(Probe::most),
        [3, 30],
        "each its own limit"
    );
    for (system, text) in [(&a, "From a."), (&b, "From b.")] {
        let metrics = system.oracle().metrics();
        assert_eq!(metrics.accepted.get(), CONVERSATIONS as u64, "{text}");
        assert_eq!(
            metrics.queries.get("answered").unwrap(),
            CONVERSATIONS as u64,
            "{text}"
        );
    }
    for (heard, text) in heard.into_iter().zip(["From a.", "From b."]) {
        let notices: Vec<_> = heard.take(CONVERSATIONS).collect().await;
        for notice in notices {
            let Notice::Record(record) = notice else {
                panic!("nothing was dropped: {notice:?}")
            };
            assert_eq!(record.event().payload["answer"], text);
        }
    }
    for journal in &journals {
        let sessions = journal.list(TenantId::local(), None, 1_000).await.unwrap();
        let names = sessions
            .iter()
            .filter(|known| known.key.name.as_str().starts_with('s'));
        assert_eq!(names.count(), CONVERSATIONS);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_of_one_system_do_not_affect_the_other() {
    let broken = Scripted::new().fault(Fault::permanent("bad_request", "never"));
    let a = TestOracle::new(broken).start().await.unwrap();
    let b = TestOracle::new(Scripted::new().reply(done("Fine.")))
        .start()
        .await
        .unwrap();
    let of_b = async {
        let answers = all_ask(&b).await;
        b.oracle().drain();
        answers
    };
    let (_, answers) = tokio::join!(all_ask(&a), of_b);
    assert_eq!(answers, vec!["Fine."; CONVERSATIONS]);
    let metrics = [a.oracle().metrics(), b.oracle().metrics()];
    let failed = metrics
        .each_ref()
        .map(|metrics| metrics.queries.get("failed").unwrap());
    assert_eq!(failed, [CONVERSATIONS as u64, 0]);

    // A system that ends does not affect the other.
    assert!(a.session("more").unwrap().ask("still there?").await.is_ok());
    a.die().await;
    let key = SessionKey::local(SessionName::new("s1").unwrap());
    assert_eq!(
        b.oracle()
            .session_by_key(key)
            .view()
            .await
            .unwrap()
            .state
            .as_str(),
        "idle"
    );
}
