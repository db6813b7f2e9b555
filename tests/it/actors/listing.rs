//! Lists of sessions and pending approvals, deletion, and shutdown.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use oracle_agent::{
    actor::{Approval, AskError, Oracle, Recovery, SessionFilter, SessionState, StateFilter},
    journal::{Error, Journal, Only, SessionStatus},
    kernel::Refusal,
    llm::Scripted,
    model::{
        By, ForkPoint, Limits, ProfileName, QueryId, Record, Seq, SessionKey, SessionName,
        Submission, TenantId, Timestamp,
        command::MAX_REASON,
        record::{Noted, SessionFact},
    },
    testkit::{
        InterceptedCall, InterceptedJournal, Obstacle, ObstructedJournal, Operation, SilentBackend,
        TestOracle, TestSystem, TestTool, advance_time,
    },
};
use serde_json::json;
use uuid::Uuid;

use super::{HOUR, done, memory};

fn name(name: &str) -> SessionName {
    SessionName::new(name).unwrap()
}

fn key(of: &str) -> SessionKey {
    SessionKey::local(name(of))
}

async fn listed(oracle: &Oracle, filter: SessionFilter) -> Vec<(String, SessionState)> {
    let tenant = TenantId::local();
    let listing = oracle.list(&tenant, &filter, None, 100).await.unwrap();
    assert_eq!(listing.next, None);
    let sessions = listing.sessions.into_iter();
    sessions
        .map(|listed| (listed.key.name.to_string(), listed.state))
        .collect()
}

fn of(state: SessionState) -> SessionFilter {
    SessionFilter {
        state: Some(StateFilter::Is(state)),
        ..SessionFilter::default()
    }
}

/// Four sessions: `a.1` and `c` are idle, `a.2` runs a tool that hangs, `b` is closed.
async fn some_sessions() -> TestSystem {
    let script = Scripted::new()
        .reply(done("One."))
        .calls("Looking.", [("slow", json!({}))]);
    let oracle = TestOracle::new(script)
        .tool(TestTool::new("slow").hangs())
        .start()
        .await
        .unwrap();
    for each in ["a.1", "a.2", "b", "c"] {
        oracle.session(each).unwrap().ask("first").await.unwrap();
        advance_time(Duration::from_secs(10)).await;
    }
    let busy = oracle.session("a.2").unwrap();
    busy.submit(Submission::new("second")).await.unwrap();
    busy.wait_for("tool.started").await.unwrap();
    let closed = oracle.session("b").unwrap();
    closed.close().await.unwrap();
    oracle
}

#[tokio::test(start_paused = true)]
async fn listing_filters_by_name_state_and_time_without_activating_sessions() {
    use SessionState::{Closed, Idle, Tools};
    let oracle = some_sessions().await;
    let all = || ("a.1".to_owned(), Idle);
    let [b, c] = [("b".to_owned(), Closed), ("c".to_owned(), Idle)];
    let running = ("a.2".to_owned(), Tools);
    let (oracle, any) = (oracle.oracle(), SessionFilter::default());
    let everybody = [all(), running.clone(), b.clone(), c.clone()];
    assert_eq!(listed(oracle, any.clone()).await, everybody);
    assert_eq!(listed(oracle, of(Tools)).await, vec![running.clone()]);
    assert_eq!(listed(oracle, of(Closed)).await, [b]);
    for (prefix, found) in [
        ("a.", vec![all(), running.clone()]),
        ("a.2", vec![running.clone()]),
        ("c", vec![c.clone()]),
        ("d", vec![]),
        ("no name!", vec![]),
    ] {
        let filter = SessionFilter {
            prefix: Some(prefix.to_owned()),
            ..any.clone()
        };
        assert_eq!(listed(oracle, filter).await, found, "{prefix}");
    }
    // 2026-01-01T00:00:25Z on the test's clock.
    let since = SessionFilter {
        updated_since: Some(Timestamp::from_millis(1_767_225_625_000)),
        ..any
    };
    let found = listed(oracle, since).await;
    assert!(!found.contains(&all()) && found.contains(&c), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn sessions_are_listed_by_the_state_that_a_view_shows() {
    let oracle = some_sessions().await;
    let (oracle, any) = (oracle.oracle(), SessionFilter::default());
    // It runs no call while it is paused.
    let held = oracle.session("c").unwrap();
    held.pause().await.unwrap();
    held.submit(Submission::new("second")).await.unwrap();
    for (name, state) in listed(oracle, any).await {
        let shown = oracle.session(&name).unwrap().view().await.unwrap().state;
        assert_eq!(shown, state, "{name}");
        let found = listed(oracle, of(shown)).await;
        assert!(found.contains(&(name, shown)), "{found:?}");
    }
    let with = |state| SessionFilter {
        state: Some(state),
        ..SessionFilter::default()
    };
    let paused = [("c".to_owned(), SessionState::Paused)];
    assert_eq!(listed(oracle, with(StateFilter::Waiting)).await, paused);
    let running = [("a.2".to_owned(), SessionState::Tools)];
    assert_eq!(listed(oracle, with(StateFilter::Running)).await, running);
    let busy = oracle.session("a.2").unwrap();
    busy.pause().await.unwrap();
    let still = listed(oracle, with(StateFilter::Running)).await;
    assert_eq!(still, running, "its call goes on");
    assert!(busy.view().await.unwrap().paused);
    held.resume().await.unwrap();
    assert_eq!(listed(oracle, with(StateFilter::Waiting)).await, []);
}

#[tokio::test(start_paused = true)]
async fn what_a_passivated_session_waits_for_is_listed_once_it_was_shown() {
    let journal = memory();
    let start = || {
        let script = Scripted::new().calls("May I?", [("deploy", json!({}))]);
        let oracle = TestOracle::new(script).tool(TestTool::new("deploy").needs_approval());
        let oracle = oracle.journal(journal.clone());
        let oracle = oracle.settings(|settings| settings.idle_timeout = HOUR / 60);
        oracle.settings(|settings| settings.recovery = Recovery::OnDemand)
    };
    let approval = [("s".to_owned(), SessionState::Approval)];
    let first = start().start().await.unwrap();
    let session = first.session("s").unwrap();
    session.submit(Submission::new("deploy it")).await.unwrap();
    session.wait_for("session.passivated").await.unwrap();
    advance_time(HOUR).await;
    assert_eq!(
        listed(first.oracle(), of(SessionState::Approval)).await,
        approval
    );
    first.die().await;
    let second = start().start().await.unwrap();
    let (oracle, suspended) = (second.oracle(), SessionState::Suspended);
    let all = listed(oracle, SessionFilter::default()).await;
    assert_eq!(all, [("s".to_owned(), suspended)], "its log was not read");
    let view = oracle.session("s").unwrap().view().await.unwrap();
    assert_eq!(view.state, SessionState::Approval);
    assert_eq!(listed(oracle, of(SessionState::Approval)).await, approval);
    assert_eq!(listed(oracle, of(suspended)).await, []);
}

#[tokio::test(start_paused = true)]
async fn session_list_is_paged() {
    let oracle = some_sessions().await;
    let (tenant, filter) = (TenantId::local(), SessionFilter::default());
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let page = oracle
            .oracle()
            .list(&tenant, &filter, after, 2)
            .await
            .unwrap();
        pages.push(page.sessions.len());
        let Some(next) = page.next else { break };
        after = Some(next);
    }
    assert_eq!(pages, [2, 2]);
    let other = TenantId::new("other").unwrap();
    let page = oracle
        .oracle()
        .list(&other, &filter, None, 2)
        .await
        .unwrap();
    assert_eq!(page.sessions, [], "a tenant sees its own");
}

fn approving() -> TestOracle {
    let script = Scripted::new()
        .calls("May I?", [("deploy", json!({ "to": "prod" }))])
        .reply(done("Done."));
    TestOracle::new(script).tool(TestTool::new("deploy").needs_approval())
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_are_listed_from_every_session() {
    let journal = memory();
    let before = approving().journal(journal.clone()).start().await.unwrap();
    for each in ["a", "b"] {
        let session = before.session(each).unwrap();
        session.submit(Submission::new("deploy it")).await.unwrap();
        session.wait_for("approval.requested").await.unwrap();
        advance_time(Duration::from_secs(1)).await;
    }
    let there = waiting(&before, 9).await;
    let told = there.iter();
    let told: Vec<_> = told
        .map(|waits| (waits.session.name.as_str(), waits.call.name.as_str()))
        .collect();
    assert_eq!(told, [("a", "deploy"), ("b", "deploy")], "the oldest first");
    assert_eq!(there[0].call.parsed().unwrap(), json!({ "to": "prod" }));
    // It stays pending while the session is passivated.
    advance_time(HOUR).await;
    assert_eq!(waiting(&before, 9).await, there);
    before.shut_down(Duration::ZERO).await;

    let after = approving().journal(journal);
    let after = after
        .settings(|settings| settings.recovery = oracle_agent::actor::Recovery::OnDemand)
        .start()
        .await
        .unwrap();
    assert_eq!(waiting(&after, 9).await, there);
    assert_eq!(waiting(&after, 1).await, there[..1]);
    let session = after.session("a").unwrap();
    session.approve(&there[0]).await.unwrap();
    session.wait_for("query.finished").await.unwrap();
    assert_eq!(waiting(&after, 9).await, there[1..]);
    after
        .oracle()
        .delete(&key("b"), Only::Always)
        .await
        .unwrap();
    assert_eq!(waiting(&after, 9).await, []);
}

#[tokio::test(start_paused = true)]
async fn denied_call_is_recorded_with_its_reason() {
    let longest = "я".repeat(MAX_REASON);
    for (reason, recorded) in [
        (None, None),
        (Some(" \n"), None),
        (Some("not on a Friday"), Some("not on a Friday")),
        (Some(longest.as_str()), Some(longest.as_str())),
    ] {
        let oracle = approving().start().await.unwrap();
        let session = oracle.session("s").unwrap();
        session.submit(Submission::new("deploy it")).await.unwrap();
        session.wait_for("approval.requested").await.unwrap();
        let call = &session.waiting_calls()[0];
        let refused = session.deny(call, Some(format!("{longest}."))).await;
        assert_eq!(refused, Err(AskError::ReasonTooLong(MAX_REASON + 1)));
        session.deny(call, reason.map(str::to_owned)).await.unwrap();
        let answered = session.wait_for("approval.answered").await.unwrap();
        assert_eq!(answered.payload["verdict"], "denied");
        assert_eq!(answered.payload["reason"].as_str(), recorded);
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_session_has_no_waiting_calls() {
    let oracle = approving().start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("deploy it")).await.unwrap();
    session.wait_for("approval.requested").await.unwrap();
    assert_eq!(session.waiting_calls().len(), 1);
    oracle
        .oracle()
        .delete(&key("s"), Only::Always)
        .await
        .unwrap();
    assert_eq!(session.waiting_calls(), []);
    assert_eq!(waiting(&oracle, 9).await, []);
}

#[tokio::test(start_paused = true)]
async fn new_session_of_a_deleted_name_has_no_waiting_calls() {
    let oracle = approving().start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("deploy it")).await.unwrap();
    session.wait_for("session.passivated").await.unwrap();
    // As another process deletes it.
    let known = oracle.journal().find(key("s")).await.unwrap().unwrap();
    let deleted = oracle.journal().delete(known.sid, Only::Always).await;
    assert_eq!(deleted.unwrap().len(), 1);
    session.pause().await.unwrap();
    assert_eq!(session.waiting_calls(), []);
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_are_read_in_batches_and_an_incomplete_list_says_so() {
    let journal = memory();
    let before = approving().journal(journal.clone()).start().await.unwrap();
    for number in 0..20 {
        let session = before.session(&format!("s{number}")).unwrap();
        session.submit(Submission::new("deploy it")).await.unwrap();
        session.wait_for("approval.requested").await.unwrap();
    }
    before.shut_down(Duration::ZERO).await;

    let slow = ObstructedJournal::new(journal);
    let after = approving().journal(Arc::new(slow.clone()));
    let after = after
        .settings(|settings| settings.recovery = oracle_agent::actor::Recovery::OnDemand)
        .start()
        .await
        .unwrap();
    slow.set(Obstacle::SilentReads);
    let told = after
        .oracle()
        .approvals(&TenantId::local(), 99)
        .await
        .unwrap();
    assert_eq!((told.approvals.len(), told.incomplete), (0, true));
    assert_eq!(slow.hits(), 8, "no more at a time");
    slow.set(Obstacle::None);
    let told = after
        .oracle()
        .approvals(&TenantId::local(), 99)
        .await
        .unwrap();
    assert_eq!((told.approvals.len(), told.incomplete), (20, false));
    // A lower limit also reports how many more there are.
    let few = after.oracle().approvals(&TenantId::local(), 3).await;
    let few = few.unwrap();
    assert_eq!(few.approvals, told.approvals[..3]);
    assert_eq!((few.incomplete, few.more), (true, 17));
    // Known approvals are listed whatever the journal does.
    slow.set(Obstacle::SilentReads);
    let again = after
        .oracle()
        .approvals(&TenantId::local(), 99)
        .await
        .unwrap();
    assert_eq!(again, told);
    // A session that cannot be read is missing, and the list says that it is incomplete.
    let broken = ObstructedJournal::new(after.journal());
    after.shut_down(Duration::ZERO).await;
    let last = approving().journal(Arc::new(broken.clone()));
    let last = last
        .settings(|settings| settings.recovery = oracle_agent::actor::Recovery::OnDemand)
        .start()
        .await
        .unwrap();
    slow.set(Obstacle::None);
    let known = broken.find(key("s7")).await.unwrap().unwrap();
    broken.set(Obstacle::Unreadable(known.sid));
    let told = last
        .oracle()
        .approvals(&TenantId::local(), 99)
        .await
        .unwrap();
    assert_eq!((told.approvals.len(), told.incomplete), (19, true));
}

#[derive(Clone)]
struct CountedLookups(Arc<dyn Journal>, Arc<AtomicUsize>);

impl InterceptedJournal for CountedLookups {
    fn inner(&self) -> &dyn Journal {
        &*self.0
    }

    fn intercept<'a, T: Send + 'a>(
        &'a self,
        call: InterceptedCall,
        done: impl FnOnce() -> BoxFuture<'a, Result<T, Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, Error>> {
        if call.operation == Operation::Unfinished {
            self.1.fetch_add(1, Relaxed);
        }
        done()
    }
}

#[tokio::test(start_paused = true)]
async fn approvals_of_a_tenant_do_not_page_through_those_of_others() {
    let journal = memory();
    for number in 0..600 {
        let key = SessionKey {
            tenant: TenantId::new("noisy").unwrap(),
            name: name(&format!("s{number}")),
        };
        let opened = SessionFact::Passivated(Noted {});
        let record = Record::new(Timestamp::from_millis(0), None, None, opened);
        let begun = journal.begin(key, vec![Arc::new(record)], SessionStatus::Busy);
        begun.await.unwrap();
    }
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = CountedLookups(journal, Arc::clone(&lookups));
    let system = approving().journal(Arc::new(counted));
    let system = system
        .settings(|settings| settings.recovery = oracle_agent::actor::Recovery::OnDemand)
        .start()
        .await
        .unwrap();
    let session = system.session("s").unwrap();
    session.submit(Submission::new("deploy it")).await.unwrap();
    session.wait_for("approval.requested").await.unwrap();
    lookups.store(0, Relaxed);
    assert_eq!(waiting(&system, 9).await.len(), 1);
    // The page, and the empty one behind it.
    assert_eq!(lookups.load(Relaxed), 2);
}

async fn waiting(system: &TestSystem, limit: usize) -> Vec<Approval> {
    let told = system.oracle().approvals(&TenantId::local(), limit).await;
    let told = told.unwrap();
    assert_eq!(told.incomplete, told.more > 0);
    told.approvals
}

#[tokio::test(start_paused = true)]
async fn deletion_is_permanent_and_records_its_author() {
    let oracle = some_sessions().await;
    let anna = oracle.oracle().acting(By::new("anna"));
    let busy = anna.delete(&key("a.2"), Only::WhenIdle).await;
    assert!(matches!(busy, Err(AskError::Unfinished(_))), "{busy:?}");
    for each in ["a.1", "a.2"] {
        anna.delete(&key(each), Only::Always).await.unwrap();
        let gone = oracle.journal().find(key(each)).await.unwrap();
        assert_eq!(gone, None, "{each}");
        let again = anna.delete(&key(each), Only::Always).await;
        assert!(matches!(again, Err(AskError::NoSession(_))), "{again:?}");
    }
    let reserved = anna.delete(&key("system"), Only::Always).await;
    assert!(matches!(reserved, Err(AskError::Reserved(_))));
    let log = oracle.session("system").unwrap();
    let deleted = log.wait_for("control.deleted").await.unwrap();
    assert_eq!(deleted.payload["session"]["name"], "a.1");
    assert_eq!(deleted.payload["by"], "anna");
    // A new session of the name starts from nothing.
    let anew = oracle.session("a.1").unwrap();
    assert_eq!(anew.ask("first").await.unwrap().text, "One.");
    assert_eq!(anew.events(Seq(0)).await.unwrap()[0].seq, Seq(1));
}

#[tokio::test(start_paused = true)]
async fn deletion_completes_and_is_recorded_after_its_caller_gave_up() {
    let oracle = some_sessions().await;
    let anna = oracle.oracle().acting(By::new("anna"));
    let busy = key("a.2");
    let given_up = tokio::time::timeout(Duration::ZERO, anna.delete(&busy, Only::Always));
    assert!(given_up.await.is_err());
    let log = oracle.session("system").unwrap();
    let deleted = log.wait_for("control.deleted").await.unwrap();
    assert_eq!(deleted.payload["session"]["name"], "a.2");
    assert_eq!(oracle.journal().find(key("a.2")).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn drain_and_shutdown_record_their_author() {
    let oracle = some_sessions().await;
    let anna = oracle.oracle().acting(By::new("anna"));
    anna.drain();
    anna.drain();
    let refused = oracle
        .session("c")
        .unwrap()
        .submit(Submission::new("more"))
        .await;
    let drains = |error: AskError| matches!(error, AskError::Refused(Refusal::Draining));
    assert!(drains(refused.unwrap_err()));
    // A draining system neither continues a query that was forced to end nor forks a session.
    let goes_on = oracle.session("c").unwrap();
    let goes_on = goes_on.continue_query(Limits::default()).await;
    assert!(drains(goes_on.unwrap_err()));
    let point = ForkPoint {
        query: QueryId(1),
        turn: None,
    };
    let copy = anna.fork(&key("c"), point, name("d")).await;
    assert!(drains(copy.err().unwrap()));
    anna.shut_down();
    oracle.oracle().shutdown_requested().await;
    let log = oracle.session("system").unwrap();
    let ends = log.wait_for("control.shut_down").await.unwrap();
    assert_eq!(ends.payload, json!({ "by": "anna" }));
    let kinds = log.kinds().await.unwrap();
    let drained = kinds.iter().filter(|kind| *kind == "control.drained");
    assert_eq!(drained.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn journal_knows_closed_sessions_without_reading_a_log() {
    let oracle = some_sessions().await;
    let known = oracle.journal().find(key("b")).await.unwrap().unwrap();
    assert_eq!(known.standing, SessionStatus::Closed);
}

#[tokio::test(start_paused = true)]
async fn only_its_own_request_opens_an_ephemeral_session() {
    let model = SilentBackend::new(9, Scripted::new());
    let system = TestOracle::new(model).start().await.unwrap();
    system
        .session("s")
        .unwrap()
        .submit(Submission::new("why?"))
        .await
        .unwrap();
    let oracle = system.oracle();
    let profile = ProfileName::oracle();
    let gone = SessionKey::local(SessionName::ephemeral(Uuid::from_u128(7)));
    let below = key(&format!("~{}.1.1", gone.name));
    for key in [&gone, &below] {
        let session = oracle.session_by_key(key.clone());
        let point = ForkPoint {
            query: QueryId(0),
            turn: None,
        };
        let refused = [
            session.submit(Submission::new("why?")).await.err(),
            session.answer(Submission::new("why?")).await.err(),
            session.pause().await.err(),
            oracle
                .create(key.clone(), profile.clone(), None)
                .await
                .err(),
            oracle
                .fork(&self::key("s"), point, key.name.clone())
                .await
                .err(),
        ];
        for refused in refused {
            let Some(AskError::Reserved(name)) = &refused else {
                panic!("{refused:?}");
            };
            assert_eq!(*name, key.name);
            let said = refused.unwrap().to_string();
            assert!(said.contains("sessions of a single request"), "{said}");
        }
    }
    // While it lives, an operator can control it like any other.
    let ours = oracle.ephemeral(TenantId::local(), profile);
    ours.submit(Submission::new("why?")).await.unwrap();
    let brief = ours.key().clone();
    let session = oracle.session_by_key(brief.clone());
    session.cancel(None).await.unwrap();
    let name = |key: &SessionKey| key.name.to_string();
    let all = listed(oracle, SessionFilter::default()).await;
    assert!(
        all.iter().any(|(listed, _)| *listed == name(&brief)),
        "{all:?}"
    );
    let lasting = SessionFilter {
        lasting: true,
        ..SessionFilter::default()
    };
    let lasting = listed(oracle, lasting).await;
    let lasting: Vec<_> = lasting.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(lasting, ["s"]);
}
