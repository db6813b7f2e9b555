//! A gateway with calls that sessions would not make: many of one session, or longer than it lives.

use super::*;
use crate::{
    actor::live_session::tests::running,
    llm::scripted::ScriptedReply,
    model::{FaultClass, FaultCode, SessionState, TenantId},
    testkit::Probe,
};

/// A call of a live session.
fn call(parts: &Parts, tenant: &str, sid: u64) -> (Box<Ticket>, Waits) {
    let (mut ticket, waits) = ticket(Sid(sid), 0);
    let name = SessionName::new(&format!("s{sid}")).unwrap();
    let tenant = TenantId::new(tenant).unwrap();
    ticket.key = SessionKey { tenant, name };
    let services = &parts.services;
    let ledger = &services.router.ledger;
    let enter = || ledger.enter(&ticket.key, &services.meter, &services.tenants);
    ticket.live = ledger.get(&ticket.key).unwrap_or_else(enter);
    let calling = running(SessionState::Calling, (1, 0, 9));
    ticket.live.update(calling, By::local, 0);
    ticket.request.system = format!("{}", ticket.key).into();
    (ticket, waits)
}

fn send(parts: &Parts, ticket: Box<Ticket>) {
    let gateway = parts.gateways["scripted"].any().unwrap();
    gateway.cast(GatewayMsg::Call(ticket));
}

async fn end(waits: Waits) -> Result<(), String> {
    let answer = waits.answer.await.unwrap();
    answer
        .map(drop)
        .map_err(|failed| failed.fault.code.to_string())
}

async fn waiting(parts: &Parts, calls: usize) {
    while parts.oracle.providers()[0].waiting != calls {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn busy_session_or_tenant_does_not_delay_others_at_the_gateway() {
    let script = Scripted::new().reply(DONE).slowly(Duration::from_secs(1));
    let oracle = TestOracle::new(script.clone());
    let parts = parts(oracle.settings(|settings| settings.gateway.concurrency = 1)).await;
    let mut calls = Vec::new();
    let mut push = |tenant: &str, sid| {
        let (ticket, waits) = call(&parts, tenant, sid);
        send(&parts, ticket);
        calls.push(Task::spawn(end(waits)));
    };
    (0..100).for_each(|_| push("many", 1));
    (100..200).for_each(|sid| push("many", sid));
    push("few", 900);
    waiting(&parts, 200).await;
    advance_time(Duration::from_secs(5)).await;
    let asked: Vec<String> = script
        .requests()
        .iter()
        .map(|request| request.system.to_string())
        .collect();
    let place = |name: &str| asked.iter().position(|asked| asked == name);
    assert!(
        place("few/s900").is_some_and(|place| place <= 2),
        "{asked:?}"
    );
    assert!(
        place("many/s100").is_some_and(|place| place <= 3),
        "{asked:?}"
    );
    let again = asked.iter().filter(|asked| *asked == "many/s1").count();
    assert!(again <= 2, "{asked:?}");
    drop(calls);
}

#[tokio::test(start_paused = true)]
async fn abandoned_call_frees_its_queue_place_at_once() {
    let backend = Probe::new(Scripted::new().stall("Half an ans"));
    let oracle = TestOracle::new(backend.clone()).settings(|settings| {
        (settings.gateway.concurrency, settings.gateway.queue) = (1, 1);
        settings.gateway.queue_deadline = Duration::from_secs(5);
    });
    let parts = parts(oracle).await;
    let [first, second, third, fourth] = [1, 2, 3, 4].map(|sid| call(&parts, "default", sid));
    let running = first.1;
    send(&parts, first.0);
    send(&parts, second.0);
    waiting(&parts, 1).await;
    send(&parts, third.0);
    assert_eq!(end(third.1).await, Err("queue_full".to_owned()));
    drop(second.1);
    waiting(&parts, 0).await;
    send(&parts, fourth.0);
    let late = fourth.1.answer.await.unwrap().unwrap_err().fault;
    assert_eq!(late.code, FaultCode::QueueTimeout);
    let detail = "the call waited 5 s in the queue of `scripted/test`";
    assert_eq!(late.detail, detail);
    waiting(&parts, 0).await;
    assert_eq!((backend.opened(), backend.open()), (1, 1));
    drop(running);
    while backend.open() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(backend.dropped(), 1, "its connection was closed");
}

#[tokio::test(start_paused = true)]
async fn gateway_restart_fails_pending_calls_and_admits_new_ones() {
    let script = Scripted::new().reply(DONE).slowly(Duration::from_secs(1));
    let oracle = TestOracle::new(script).settings(|settings| settings.gateway.concurrency = 1);
    let parts = parts(oracle).await;
    let send_all = || {
        let calls = (1..40).map(|sid| call(&parts, "default", sid));
        let sent = calls.map(|(ticket, waits)| {
            send(&parts, ticket);
            waits
        });
        sent.collect::<Vec<Waits>>()
    };
    let all = send_all();
    waiting(&parts, 38).await;
    parts.gateways.values().for_each(kill);
    for waits in all {
        assert_eq!(end(waits).await, Err("gateway".to_owned()));
    }
    while parts.gateways["scripted"].is_closed() {
        tokio::task::yield_now().await;
    }
    let ends = futures_util::future::join_all(send_all().into_iter().map(end)).await;
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn small_calls_do_not_starve_a_large_one_of_another_model() {
    let used = Usage {
        input_tokens: 300,
        output_tokens: 300,
        ..Usage::default()
    };
    let script = Scripted::new().play(ScriptedReply::text(DONE).usage(used));
    // A burst is a quarter of a minute's tokens, all of which a large call needs.
    let oracle = TestOracle::new(script)
        .settings(|settings| settings.gateway.tokens_per_minute = Some(40_000));
    let parts = parts(oracle).await;
    let of = |model: &str, sid, bytes: usize| {
        let (mut ticket, waits) = call(&parts, "default", sid);
        ticket.model = format!("scripted/{model}").into();
        ticket.request.system = "x".repeat(bytes).into();
        send(&parts, ticket);
        waits
    };
    // Ten small calls a second, of which the provider's rate admits one.
    let mut small = Vec::new();
    let flood = async {
        for sid in 100..1_300 {
            small.push(of("small", sid, 400));
            advance_time(Duration::from_millis(100)).await;
        }
    };
    let large = async {
        advance_time(Duration::from_secs(30)).await;
        end(of("large", 1, 80_000)).await
    };
    tokio::select! {
        () = flood => panic!("the large call did not come to its turn within a minute and a half"),
        ended = large => assert_eq!(ended, Ok(())),
    }
}

#[tokio::test(start_paused = true)]
async fn queue_full_error_derives_its_retry_hint_from_the_rate_limit() {
    let oracle = TestOracle::new(Scripted::new().stall("Half")).settings(|settings| {
        settings.gateway.queue = 10;
        settings.gateway.requests_per_minute = Some(30);
    });
    let parts = parts(oracle).await;
    let mut kept = Vec::new();
    for sid in 1..12 {
        let (ticket, waits) = call(&parts, "default", sid);
        send(&parts, ticket);
        kept.push(waits);
    }
    waiting(&parts, 10).await;
    let (ticket, waits) = call(&parts, "default", 99);
    send(&parts, ticket);
    let fault = waits.fault().await;
    let after_ms = Some(22_000);
    assert_eq!(fault.code.as_str(), "queue_full");
    assert_eq!(
        fault.class,
        FaultClass::Overloaded { after_ms },
        "eleven, at thirty a minute"
    );
}
