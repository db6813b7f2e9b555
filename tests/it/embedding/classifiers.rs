//! A host's classifier that hangs, panics, is slow or works in batches, under many sessions.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use futures_util::future::join_all;
use oracle_agent::{
    Oracle, Session, System,
    access::Budgets,
    actor::AskError,
    config::Config,
    kernel::Refusal,
    model::{QueryClassification, QueryType, Seq, SessionName, Submission},
    query::{QueryClassifier, QueryContext},
};
use parking_lot::Mutex;

const SESSIONS: usize = 200;

/// Finds research everywhere, and does what the text says.
struct Obedient;

impl QueryClassifier for Obedient {
    fn classify(&self, text: &str, _: QueryContext<'_>) -> QueryClassification {
        match text {
            "hang" => loop {
                std::thread::park();
            },
            "panic" => panic!("a host's mistake"),
            "be slow" => std::thread::sleep(Duration::from_millis(5)),
            _ => {}
        }
        QueryClassification::new(QueryType::Research, 0.5, Vec::new())
    }
}

async fn start(classifier: impl QueryClassifier) -> System {
    Oracle::builder()
        .classifier(classifier)
        .start()
        .await
        .unwrap()
}

fn session(system: &System, number: usize) -> Session {
    let name = SessionName::new(&format!("s{number}")).unwrap();
    system.oracle().session_by_key(name)
}

async fn answered(session: &Session, text: &str) {
    let answer = session.answer(Submission::new(text)).await.unwrap();
    assert_ne!(answer.outcome.name(), "failed", "{answer:?}");
}

/// Whether the built-in classifier answered instead of the host's, which finds research.
async fn is_fallback(session: &Session) -> bool {
    let events = session.events(Seq(0)).await.unwrap();
    let mut classified = events.iter().filter(|one| one.kind == "query.classified");
    let found = &classified.next_back().unwrap().payload;
    let fallback = found["fallback"] == true;
    let is_research = found["classification"]["query_type"] == "research";
    assert_ne!(is_research, fallback, "{found}");
    fallback
}

/// Asks in many sessions at once, and returns those that the built-in classifier answered for.
async fn fallbacks(system: &System, text: impl Fn(usize) -> &'static str) -> Vec<usize> {
    let sessions: Vec<_> = (0..SESSIONS).map(|one| session(system, one)).collect();
    let asked = sessions.iter().enumerate();
    join_all(asked.map(|(number, one)| answered(one, text(number)))).await;
    let mut found = Vec::new();
    for (number, one) in sessions.iter().enumerate() {
        if is_fallback(one).await {
            found.push(number);
        }
    }
    found
}

#[tokio::test]
async fn hanging_classifier_costs_only_its_own_queries() {
    let system = start(Obedient).await;
    let hangs = |number| number % 50 == 7;
    let found = fallbacks(&system, |number| match hangs(number) {
        true => "hang",
        false => "hello there",
    });
    assert_eq!(found.await, [7, 57, 107, 157]);
    // Four threads are left.
    let more: Vec<_> = (0..4).map(|one| session(&system, one)).collect();
    join_all(more.iter().map(|one| answered(one, "hang"))).await;
    let none = fallbacks(&system, |_| "hello again").await;
    assert_eq!(none.len(), SESSIONS, "the built-in one answers for all");
}

#[tokio::test]
async fn panicking_classifier_costs_only_its_own_queries() {
    let system = start(Obedient).await;
    let found = fallbacks(&system, |number| match number % 2 {
        0 => "panic",
        _ => "hello there",
    });
    let even: Vec<_> = (0..SESSIONS).step_by(2).collect();
    assert_eq!(found.await, even);
    assert_eq!(system.oracle().metrics().unclassified.get(), 100);
}

#[tokio::test]
async fn slow_classifier_is_waited_for() {
    let system = start(Obedient).await;
    let found = fallbacks(&system, |_| "be slow").await;
    assert_eq!(found, [] as [usize; 0]);
}

/// Tells each call's texts, and answers when the test says so.
struct Gated {
    called: Mutex<Sender<Vec<String>>>,
    open: Mutex<Receiver<()>>,
    max_batch: usize,
}

impl QueryClassifier for Gated {
    fn classify(&self, text: &str, context: QueryContext<'_>) -> QueryClassification {
        self.classify_batch(&[(text, context)]).remove(0)
    }

    fn classify_batch(&self, queries: &[(&str, QueryContext<'_>)]) -> Vec<QueryClassification> {
        let texts = queries.iter().map(|(text, _)| (*text).to_owned());
        let _ = self.called.lock().send(texts.collect());
        let _ = self.open.lock().recv();
        let found = QueryClassification::new(QueryType::Research, 0.5, Vec::new());
        vec![found; queries.len()]
    }

    fn max_batch(&self) -> usize {
        self.max_batch
    }
}

fn gated(max_batch: usize) -> (Gated, Receiver<Vec<String>>, Sender<()>) {
    let ((called, calls), (open, opened)) = (channel(), channel());
    let classifier = Gated {
        called: Mutex::new(called),
        open: Mutex::new(opened),
        max_batch,
    };
    (classifier, calls, open)
}

/// Waits, without blocking the system, until something is there.
async fn until<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    for _ in 0..10_000 {
        if let Some(found) = found() {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("not within ten seconds: {what}")
}

async fn next(calls: &Receiver<Vec<String>>) -> Vec<String> {
    until("a call", || calls.try_recv().ok()).await
}

/// Waits until this many sessions hold a message or begin a turn.
async fn preparing(system: &System, count: u64) {
    let metrics = system.oracle().metrics();
    let is_it = || (metrics.live.get("preparing") == Some(count)).then_some(());
    until("sessions that prepare a query", is_it).await;
}

#[tokio::test]
async fn queries_that_wait_for_a_thread_share_a_call() {
    let (classifier, calls, open) = gated(32);
    let system = start(classifier).await;
    let sessions: Vec<_> = (0..48).map(|one| session(&system, one)).collect();
    let asked = join_all(sessions.iter().map(|one| answered(one, "hello there")));
    let check = async {
        for _ in 0..8 {
            assert_eq!(next(&calls).await.len(), 1);
        }
        preparing(&system, 48).await;
        for size in [32, 8] {
            open.send(()).unwrap();
            assert_eq!(next(&calls).await.len(), size);
        }
        (0..8).for_each(|_| open.send(()).unwrap());
    };
    tokio::join!(asked, check);
}

#[tokio::test]
async fn session_with_a_held_message_answers_other_commands() {
    let (classifier, calls, open) = gated(1);
    let system = start(classifier).await;
    let session = session(&system, 0);
    let first = session.submit("hello there");
    let meanwhile = async {
        assert_eq!(next(&calls).await, ["hello there"]);
        let view = session.view().await;
        assert!(matches!(view, Err(AskError::NoSession(_))), "{view:?}");
        let (second, cancelled) = tokio::join!(session.submit("and then?"), session.cancel(None));
        cancelled.unwrap();
        second.unwrap()
    };
    let (first, second) = tokio::join!(first, meanwhile);
    (0..3).for_each(|_| open.send(()).unwrap());
    answered(&session, "thanks").await;
    let log = session.events(Seq(0)).await.unwrap();
    let of = |query, kind: &str| {
        let mut log = log.iter();
        let found = log.find(|one| one.query == Some(query) && one.kind == kind);
        &found.unwrap().payload
    };
    let first = first.unwrap();
    assert_eq!(of(first, "query.finished")["outcome"], "cancelled");
    assert_eq!(of(first, "query.classified")["fallback"], true);
    assert_ne!(of(second, "query.finished")["outcome"], "cancelled");
    assert!(of(second, "query.classified").get("fallback").is_none());
}

#[tokio::test]
async fn held_message_of_a_caller_that_left_is_not_recorded() {
    let (classifier, calls, open) = gated(1);
    let system = start(classifier).await;
    let session = session(&system, 0);
    tokio::select! {
        submitted = session.submit("hello there") => panic!("{submitted:?}"),
        call = next(&calls) => assert_eq!(call, ["hello there"]),
    }
    preparing(&system, 1).await;
    open.send(()).unwrap();
    preparing(&system, 0).await;
    let view = session.view().await;
    assert!(matches!(view, Err(AskError::NoSession(_))), "{view:?}");
    open.send(()).unwrap();
    answered(&session, "thanks").await;
    let log = session.events(Seq(0)).await.unwrap();
    let accepted = log.iter().filter(|one| one.kind == "query.accepted");
    assert_eq!(accepted.count(), 1);
}

#[tokio::test]
async fn shutdown_lets_a_held_message_be_answered() {
    let (classifier, calls, open) = gated(1);
    let system = start(classifier).await;
    let session = session(&system, 0);
    let shutdown = async {
        next(&calls).await;
        preparing(&system, 1).await;
        assert_eq!(system.oracle().running(), 1);
        let end = system.shut_down(Duration::from_secs(60));
        let classified = async {
            // It waits meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            open.send(()).unwrap();
        };
        tokio::join!(end, classified);
    };
    tokio::join!(answered(&session, "hello there"), shutdown);
    assert!(!is_fallback(&session).await);
}

#[tokio::test]
async fn budget_that_is_spent_meanwhile_refuses_a_held_message() {
    let (classifier, calls, open) = gated(1);
    let mut config = Config::default();
    config.tenants.all.budgets = Budgets {
        tokens_per_day: Some(1),
        ..Budgets::default()
    };
    let builder = Oracle::builder().config(config).classifier(classifier);
    let system = builder.start().await.unwrap();
    let (first, second) = (session(&system, 1), session(&system, 2));
    let held = async {
        // The calls are let go in their order.
        assert_eq!(next(&calls).await, ["hello there"]);
        let spends = async {
            assert_eq!(next(&calls).await, ["and me?"]);
            open.send(()).unwrap();
        };
        tokio::join!(second.submit("and me?"), spends).0
    };
    let spent = async {
        answered(&first, "hello there").await;
        open.send(()).unwrap();
    };
    let (refused, ()) = tokio::join!(held, spent);
    let refused = refused.unwrap_err();
    let is_it = matches!(refused, AskError::Refused(Refusal::BudgetSpent { .. }));
    assert!(is_it, "{refused:?}");
    let view = second.view().await;
    assert!(matches!(view, Err(AskError::NoSession(_))), "{view:?}");
    preparing(&system, 0).await;
    assert_eq!(system.oracle().running(), 0);
}
