//! The wall clock is set forward or back while no process runs.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    actor::{Clock, Recovery, System},
    journal::Journal,
    llm::{Backend, Scripted},
    model::{Fault, Outcome, Seq, SessionKey, SessionName, Submission, Timestamp},
    testkit::{TestOracle, advance_time},
};
use tokio::time::timeout;

use super::{HOUR, done, memory};

const DAY: i64 = 24 * 3_600_000;
const START: i64 = 1_767_225_600_000;

async fn start(model: impl Backend, journal: &Arc<dyn Journal>, now: i64) -> System {
    let oracle = TestOracle::new(model).journal(Arc::clone(journal));
    let oracle = oracle.settings(|settings| {
        settings.recovery = Recovery::OnDemand;
        settings.idle_timeout = Duration::from_secs(60);
    });
    let mut args = oracle.args().unwrap();
    args.clock = Clock::from(Timestamp::from_millis(now));
    System::start(args).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn query_that_backs_off_outlives_a_clock_that_jumps() {
    for jump in [-DAY, -3_600_000, 0, 1_000, DAY] {
        let journal = memory();
        let busy = Fault::retryable("overloaded", "come back later");
        let model = Scripted::new().fault_after("Half", busy);
        let model = model.reply(done("A whole answer."));
        let question = || Submission {
            idempotency_key: Some("k".into()),
            ..Submission::new("where is it?")
        };
        let before = start(model.clone(), &journal, START).await;
        let session = before.oracle().session("s").unwrap();
        session.submit(question()).await.unwrap();
        while model.requests().is_empty() {
            advance_time(Duration::from_millis(10)).await;
        }
        advance_time(Duration::from_millis(10)).await;
        before.abort().await;

        let after = start(model.clone(), &journal, START + jump).await;
        let session = after.oracle().session("s").unwrap();
        // Hours of patience would be days of the clock that was set back.
        let answer = timeout(HOUR / 2, session.answer(question())).await;
        let answer = answer.unwrap_or_else(|_| panic!("no answer after {jump} ms"));
        assert_eq!(answer.unwrap().outcome, Outcome::Answered, "{jump}");
        assert_eq!(model.requests().len(), 2, "{jump}: one retry");

        // The session is passivated, and continues in a process with the first clock.
        advance_time(HOUR).await;
        let key = SessionKey::local(SessionName::new("s").unwrap());
        let known = journal.find(key).await.unwrap().unwrap();
        let log = journal.read(known.sid, Seq(0), 1_000).await.unwrap();
        let last = log.last().map(|entry| entry.record.fact.kind());
        assert_eq!(last, Some("session.passivated"), "{jump}");
        after.abort().await;
        let last = start(model.clone(), &journal, START).await;
        let session = last.oracle().session("s").unwrap();
        let again = timeout(HOUR, session.answer(question())).await.unwrap();
        assert_eq!(again.unwrap().text, "A whole answer.", "{jump}");
    }
}
