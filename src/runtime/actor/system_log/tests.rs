//! The log of the system: with one writer, with several, and when it cannot be written.

use super::*;
use crate::{
    actor::pool::Pool,
    journal::{Memory, Only},
    model::{
        Event, Timestamp,
        record::{CircuitClosed, LlmFact},
    },
};

fn fact(provider: &str) -> LlmFact {
    LlmFact::CircuitClosed(CircuitClosed {
        provider: provider.to_owned(),
        model: None,
    })
}

fn start(journal: &Arc<dyn Journal>) -> (SystemLog, Task) {
    let bus = BusHandle::new(Pool::new(1, 16));
    let clock = Clock::from(Timestamp::from_millis(0));
    let (journal, deadline) = (Arc::clone(journal), Duration::from_secs(1));
    SystemLog::start(SessionName::system(), clock, journal, bus, deadline)
}

async fn events(journal: &Arc<dyn Journal>, many: usize) -> Vec<String> {
    let key = SessionKey::local(SessionName::system());
    for _ in 0..10_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let Some(known) = journal.find(key.clone()).await.unwrap() else {
            continue;
        };
        let log = journal.read(known.sid, Seq(0), 1_000).await.unwrap();
        if log.len() >= many {
            let line = |entry: &Entry| {
                let event = Event::of(&key.name, entry.seq, &entry.record);
                let provider = event.payload["provider"].as_str().unwrap_or_default();
                format!("{} {} {provider}", event.seq, event.kind)
                    .trim_end()
                    .to_owned()
            };
            return log.iter().map(line).collect();
        }
    }
    panic!("the system log has fewer than {many} events");
}

#[tokio::test(start_paused = true)]
async fn processes_share_one_system_log() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let (one, _writes) = start(&journal);
    one.note(fact("a"));
    events(&journal, 2).await;
    // Another process claims the log, and then the first one claims it again.
    let (other, _writes_too) = start(&journal);
    other.note(fact("b"));
    events(&journal, 3).await;
    one.note(fact("c"));
    one.note(fact("d"));
    let kind = "llm.circuit_closed";
    let expected = [
        "1 session.opened".to_owned(),
        format!("2 {kind} a"),
        format!("3 {kind} b"),
        format!("4 {kind} c"),
        format!("5 {kind} d"),
    ];
    assert_eq!(events(&journal, 5).await, expected);
}

#[tokio::test(start_paused = true)]
async fn system_log_restarts_after_deletion() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let (log, _writes) = start(&journal);
    log.note(fact("a"));
    events(&journal, 2).await;
    let key = SessionKey::local(SessionName::system());
    let claim = journal.claim(key).await.unwrap();
    journal.delete(claim.sid, Only::Always).await.unwrap();
    log.note(fact("b"));
    let expected = ["1 session.opened", "2 llm.circuit_closed b"];
    assert_eq!(events(&journal, 2).await, expected);
}

#[tokio::test(start_paused = true)]
async fn written_waits_for_all_pending_notes() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let (log, _writes) = start(&journal);
    log.note(fact("a"));
    log.note(fact("b"));
    log.written().await;
    let key = SessionKey::local(SessionName::system());
    let known = journal.find(key).await.unwrap().unwrap();
    assert_eq!(known.last, Seq(3));
}
