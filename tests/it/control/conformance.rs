//! One list of verbs over every transport, in one order, each time to a new system.

use std::collections::BTreeSet;

use oracle_agent::{
    control::{Verb, Watching},
    model::{Principal, Seq, SessionName, TenantId, access::Role},
};
use serde_json::{Value, json};

use super::{
    system,
    ways::{WAYS, Way},
};

/// Requests with the kind of their answer, or the code of the error.
const CASES: &[(&str, &str)] = &[
    (r#"{"verb":"list"}"#, "sessions"),
    (r#"{"verb":"list","state":"running"}"#, "sessions"),
    (r#"{"verb":"list","tenant":"nobody"}"#, "sessions"),
    (r#"{"verb":"tenants"}"#, "tenants"),
    (
        r#"{"verb":"tenants","after":"default","limit":1}"#,
        "tenants",
    ),
    (r#"{"verb":"inspect","session":"s"}"#, "session"),
    (r#"{"verb":"inspect","session":"default/s"}"#, "session"),
    (r#"{"verb":"inspect","session":"nobody/s"}"#, "no_session"),
    (r#"{"verb":"inspect","session":"none"}"#, "no_session"),
    (
        r#"{"verb":"tail","session":"s","after":0,"limit":3}"#,
        "events",
    ),
    (
        r#"{"verb":"tail","session":"s","after":3,"limit":2}"#,
        "events",
    ),
    (
        r#"{"verb":"tail","session":"s","after":3000}"#,
        "invalid_value",
    ),
    (r#"{"verb":"tail","session":"none"}"#, "no_session"),
    (r#"{"verb":"pause","session":"none"}"#, "no_session"),
    (r#"{"verb":"pause","session":"busy"}"#, "done"),
    (r#"{"verb":"inspect","session":"busy"}"#, "session"),
    (r#"{"verb":"resume","session":"busy"}"#, "done"),
    (
        r#"{"verb":"steer","session":"busy","text":" "}"#,
        "empty_question",
    ),
    (
        r#"{"verb":"steer","session":"busy","text":"Faster."}"#,
        "query",
    ),
    (
        r#"{"verb":"set_budget","session":"busy","limits":{"max_turns":50,"max_tokens":9000}}"#,
        "done",
    ),
    (
        r#"{"verb":"set_budget","session":"busy","limits":{}}"#,
        "no_limit",
    ),
    (
        r#"{"verb":"set_budget","session":"busy","limits":{"max_turns":null}}"#,
        "no_limit",
    ),
    (
        r#"{"verb":"set_budget","session":"busy","limits":{"max_turns":0}}"#,
        "turns_out_of_range",
    ),
    (
        r#"{"verb":"set_budget","session":"busy","limits":{"max_turns":9,"max_tokens":0}}"#,
        "tokens_out_of_range",
    ),
    (
        r#"{"verb":"set_budget","session":"busy","limits":{"max_turns":9,"max_cost":0}}"#,
        "cost_out_of_range",
    ),
    (r#"{"verb":"interrupt","session":"s"}"#, "nothing_running"),
    (
        r#"{"verb":"interrupt","session":"busy","query":9}"#,
        "nothing_running",
    ),
    (r#"{"verb":"interrupt","session":"none"}"#, "no_session"),
    (r#"{"verb":"finish_now","session":"s"}"#, "nothing_running"),
    (
        r#"{"verb":"continue","session":"s","limits":{"max_turns":9}}"#,
        "nothing_to_continue",
    ),
    (
        r#"{"verb":"continue","session":"s","limits":{"max_turns":9,"max_tokens":0}}"#,
        "tokens_out_of_range",
    ),
    (
        r#"{"verb":"attach_tool","session":"s","tool":"nothing"}"#,
        "unknown_tool",
    ),
    (
        r#"{"verb":"attach_tool","session":"s","tool":"extra"}"#,
        "done",
    ),
    (
        r#"{"verb":"attach_tool","session":"s","tool":"extra"}"#,
        "attached_already",
    ),
    (r#"{"verb":"approvals"}"#, "approvals"),
    (r#"{"verb":"approvals","tenant":"nobody"}"#, "approvals"),
    (
        r#"{"verb":"approve","session":"waits","call":"nothing","token":"t"}"#,
        "not_waiting",
    ),
    (
        r#"{"verb":"deny","session":"none","call":"nothing","token":"t"}"#,
        "no_session",
    ),
    (
        r#"{"verb":"fork","session":"s","into":"copy","query":1}"#,
        "forked",
    ),
    (
        r#"{"verb":"fork","session":"s","into":"copy","query":1}"#,
        "already_open",
    ),
    (
        r#"{"verb":"fork","session":"s","into":"more","query":9}"#,
        "no_such_turn",
    ),
    (
        r#"{"verb":"fork","session":"s","into":"system","query":1}"#,
        "reserved",
    ),
    (
        r#"{"verb":"fork","session":"s","into":"~s.1.1","query":1}"#,
        "reserved",
    ),
    (
        r#"{"verb":"fork","session":"none","into":"more","query":1}"#,
        "no_session",
    ),
    (r#"{"verb":"release","session":"s"}"#, "done"),
    (r#"{"verb":"restart","session":"s"}"#, "done"),
    (r#"{"verb":"restart","session":"none"}"#, "no_session"),
    (r#"{"verb":"close","session":"copy"}"#, "done"),
    (r#"{"verb":"inspect","session":"copy"}"#, "session"),
    (r#"{"verb":"pause","session":"copy"}"#, "closed"),
    (r#"{"verb":"delete","session":"busy"}"#, "busy"),
    (r#"{"verb":"finish_now","session":"busy"}"#, "done"),
    (r#"{"verb":"delete","session":"none"}"#, "no_session"),
    (r#"{"verb":"delete","session":"copy"}"#, "deleted"),
    (
        r#"{"verb":"delete","session":"waits","anyway":true}"#,
        "deleted",
    ),
    (r#"{"verb":"pause","session":"system"}"#, "reserved"),
    // It has no servers of tools either.
    (r#"{"verb":"tool_servers"}"#, "tool_servers"),
    (
        r#"{"verb":"approve_tool","tool":"s__t","sha256":"0"}"#,
        "unknown_tool",
    ),
    (r#"{"verb":"list"}"#, "sessions"),
    // The test's system has no configuration to reload.
    (r#"{"verb":"reload"}"#, "not_reloadable"),
    (r#"{"verb":"drain"}"#, "done"),
    (r#"{"verb":"shut_down"}"#, "done"),
];

/// Removes what differs from run to run.
fn timeless(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // `last` differs too: a passivation is an event whose time is not fixed.
            for name in ["at", "since", "updated", "process", "last"] {
                if let Some(time) = fields.get_mut(name) {
                    *time = Value::Null;
                }
            }
            fields.values_mut().for_each(timeless);
        }
        Value::Array(items) => items.iter_mut().for_each(timeless),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn play(name: &str) -> Vec<(String, Value)> {
    let system = system().await;
    let mut way = Way::to(name, &system).await;
    let mut played = Vec::new();
    for (asked, kind) in CASES {
        let verb: Verb = serde_json::from_str(asked).unwrap();
        let answered = way.ask(Principal::local(), verb).await;
        let mut got = match answered {
            Ok(answer) => answer,
            Err((code, message)) => json!({ "answer": code, "message": message }),
        };
        assert_eq!(got["answer"], *kind, "{name}: {asked}: {got}");
        timeless(&mut got);
        played.push(((*asked).to_owned(), got));
    }
    // Requests about unknown sessions have created none.
    let names: Vec<&str> = played[CASES.len() - 4].1["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["key"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["busy", "s"], "{name}");
    system.oracle().shutdown_requested().await;
    played
}

#[tokio::test(flavor = "multi_thread")]
async fn transports_answer_alike() {
    let mut others = Vec::new();
    for name in WAYS {
        others.push((name, play(name).await));
    }
    let (_, first) = others.remove(0);
    for (name, played) in others {
        for (first, other) in first.iter().zip(&played) {
            assert_eq!(first, other, "{name}");
        }
    }
}

/// The verbs about a session, with their other fields.
const OF_A_SESSION: &[(&str, &str)] = &[
    ("inspect", ""),
    ("tail", ""),
    ("pause", ""),
    ("resume", ""),
    ("interrupt", ""),
    ("finish_now", ""),
    ("steer", r#","text":"Faster.""#),
    ("set_budget", r#","limits":{"max_turns":9}"#),
    ("continue", r#","limits":{"max_turns":9}"#),
    ("restart", ""),
    ("release", ""),
    ("fork", r#","into":"copy","query":1"#),
    ("close", ""),
    ("delete", r#","anyway":true"#),
    ("approve", r#","call":"c","token":"t""#),
    ("deny", r#","call":"c","token":"t""#),
    ("attach_tool", r#","tool":"extra""#),
];

#[tokio::test(flavor = "multi_thread")]
async fn verbs_do_not_create_missing_sessions() {
    for name in WAYS {
        let system = system().await;
        let mut way = Way::to(name, &system).await;
        for (verb, more) in OF_A_SESSION {
            for session in ["none", "nobody/none"] {
                let text = format!(r#"{{"verb":"{verb}","session":"{session}"{more}}}"#);
                let asked: Verb = serde_json::from_str(&text).unwrap();
                let refused = way.ask(Principal::local(), asked).await.unwrap_err();
                assert_eq!(refused.0, "no_session", "{name}: {text}: {}", refused.1);
                let says = format!("unknown session `{session}`");
                assert!(refused.1.starts_with(&says), "{name}: {}", refused.1);
            }
        }
        // The rejected requests leave no trace.
        let journal = system.journal();
        let tenants = journal.tenants(None, 9).await.unwrap();
        assert_eq!(tenants, [TenantId::local()], "{name}");
        let kept = journal.list(TenantId::local(), None, 9).await.unwrap();
        let kept: Vec<&str> = kept.iter().map(|known| known.key.name.as_str()).collect();
        assert_eq!(kept, ["busy", "s", "waits"], "{name}");
    }
}

/// Returns all verbs, as serde's error lists them.
fn verbs() -> BTreeSet<String> {
    let unknown = serde_json::from_str::<Verb>(r#"{"verb":"?"}"#).unwrap_err();
    let told = unknown.to_string();
    let known = told.split('`').skip(3).step_by(2).map(str::to_owned);
    let known: BTreeSet<String> = known.collect();
    assert!(known.len() > 15, "{told}");
    known
}

#[test]
fn missing_session_cases_cover_every_session_verb() {
    let without = [
        "list",
        "tenants",
        "approvals",
        "tool_servers",
        "approve_tool",
        "drain",
        "shut_down",
        "reload",
    ];
    let asked = OF_A_SESSION.iter().map(|(verb, _)| (*verb).to_owned());
    let all: BTreeSet<String> = asked.chain(without.map(str::to_owned)).collect();
    assert_eq!(all, verbs());
}

#[test]
fn cases_cover_every_verb() {
    let asked: BTreeSet<String> = CASES
        .iter()
        .map(|(asked, _)| {
            let asked: Value = serde_json::from_str(asked).unwrap();
            asked["verb"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(asked, verbs());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_listed_answered_and_recorded_over_every_transport() {
    for name in WAYS {
        let system = system().await;
        let mut way = Way::to(name, &system).await;
        let approvals = Verb::Approvals {
            tenant: None,
            limit: 10,
        };
        let waiting = way
            .ask(Principal::local(), approvals.clone())
            .await
            .unwrap();
        let [waiting] = waiting["approvals"].as_array().unwrap().as_slice() else {
            panic!("{name}: {waiting}")
        };
        assert_eq!(waiting["session"]["name"], "waits");
        assert_eq!(waiting["call"]["name"], "write");
        let call = waiting["call"]["id"].as_str().unwrap();
        let approve = |token: &Value| -> Verb {
            let verb =
                json!({ "verb": "approve", "session": "waits", "call": call, "token": token });
            serde_json::from_value(verb).unwrap()
        };
        let of_another_call = approve(&json!("0000000000000000"));
        let refused = way.ask(Principal::local(), of_another_call).await;
        assert_eq!(refused.unwrap_err().0, "other_call", "{name}");
        let session = system.session("waits").unwrap();
        let requested = session.wait_for("approval.requested").await.unwrap();
        assert_eq!(requested.payload["token"], waiting["token"], "{name}");
        let answered = way
            .ask(Principal::local(), approve(&waiting["token"]))
            .await;
        assert_eq!(answered, Ok(json!({ "answer": "done" })), "{name}");
        let answered = session.wait_for("control.approval_answered").await.unwrap();
        let payload = json!({ "call": call, "verdict": "approved", "by": "local" });
        assert_eq!(answered.payload, payload, "{name}");
        let ended = session.wait_for("query.finished").await.unwrap();
        assert_eq!(ended.payload["outcome"], "answered", "{name}");
        let none = way.ask(Principal::local(), approvals).await.unwrap();
        assert_eq!(none["approvals"], json!([]), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn user_key_may_not_control_and_the_admins_name_is_recorded() {
    // The socket is left out: its peer is always the owner.
    for name in ["calls", "port", "http"] {
        let system = system().await;
        let mut way = Way::to(name, &system).await;
        let who = |role| Principal {
            name: "anna".into(),
            tenant: TenantId::new("acme").unwrap(),
            role,
            ..Principal::local()
        };
        let session = SessionName::new("busy").unwrap();
        let pause = |tenant: Option<TenantId>| Verb::Pause {
            session: oracle_agent::control::Subject {
                tenant,
                name: session.clone(),
            },
        };
        let refused = way
            .ask(who(Role::User), pause(Some(TenantId::local())))
            .await;
        assert_eq!(refused.unwrap_err().0, "admin_only", "{name}");
        // A bare name means a session of the caller's tenant.
        let refused = way.ask(who(Role::Admin), pause(None)).await;
        assert_eq!(refused.unwrap_err().0, "no_session", "{name}");
        let done = way
            .ask(who(Role::Admin), pause(Some(TenantId::local())))
            .await;
        assert_eq!(done, Ok(json!({ "answer": "done" })), "{name}");
        let busy = system.session("busy").unwrap();
        let paused = busy.wait_for("control.paused").await.unwrap();
        assert_eq!(paused.payload, json!({ "by": "anna" }), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_follows_one_session_from_any_event() {
    for name in WAYS {
        let system = system().await;
        let mut way = Way::to(name, &system).await;
        let session = system.session("busy").unwrap();
        let there = session.events(Seq(0)).await.unwrap();
        let wanted = Watching {
            session: Some("busy".parse().unwrap()),
            after: Some(Seq(1)),
            ..Watching::default()
        };
        let mut watched = way.watch(wanted).await.unwrap();
        for event in &there[1..] {
            let seen = watched.next().await;
            assert_eq!(seen["seen"], "event", "{name}: {seen}");
            assert_eq!(seen["tenant"], "default");
            assert_eq!(
                seen["event"],
                serde_json::to_value(event).unwrap(),
                "{name}"
            );
        }
        let pause: Verb = serde_json::from_str(r#"{"verb":"pause","session":"busy"}"#).unwrap();
        way.ask(Principal::local(), pause).await.unwrap();
        let seen = watched.next().await;
        assert_eq!(seen["event"]["type"], "control.paused", "{name}: {seen}");
        assert_eq!(seen["event"]["seq"], there.len() as u64 + 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_without_a_session_covers_all_sessions() {
    for name in WAYS {
        let system = system().await;
        let mut way = Way::to(name, &system).await;
        let wanted = Watching {
            types: vec!["control.".to_owned()],
            ..Watching::default()
        };
        let mut watched = way.watch(wanted).await.unwrap();
        for verb in [
            r#"{"verb":"pause","session":"busy"}"#,
            r#"{"verb":"restart","session":"s"}"#,
            r#"{"verb":"resume","session":"busy"}"#,
        ] {
            let verb: Verb = serde_json::from_str(verb).unwrap();
            way.ask(Principal::local(), verb).await.unwrap();
        }
        let mut seen = Vec::new();
        for _ in 0..3 {
            let next = watched.next().await;
            let text = |field: &str| next["event"][field].as_str().unwrap().to_owned();
            seen.push((text("session"), text("type")));
        }
        // Sessions may be on different buses, so the order across them is not fixed.
        seen.sort_by_key(|(session, _)| session.clone());
        let want = [
            ("busy", "control.paused"),
            ("busy", "control.resumed"),
            ("s", "control.restarted"),
        ];
        assert_eq!(
            seen,
            want.map(|(s, t)| (s.to_owned(), t.to_owned())),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_watch_is_refused_alike_by_every_transport() {
    for name in WAYS {
        let system = system().await;
        let mut way = Way::to(name, &system).await;
        for (session, after, types, code) in [
            (Some("none"), None, None, "no_session"),
            (None, Some(Seq(1)), None, "invalid_value"),
            (Some("s"), Some(Seq(9_999)), None, "invalid_value"),
            (None, None, Some("nonsense."), "unknown_type"),
        ] {
            let wanted = Watching {
                session: session.map(|name| name.parse().unwrap()),
                after,
                types: types.into_iter().map(str::to_owned).collect(),
                ..Watching::default()
            };
            let Err((found, _)) = way.watch(wanted).await else {
                panic!("{name}: {code}")
            };
            assert_eq!(found, code, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_of_a_session_ends_with_its_deletion() {
    for name in WAYS {
        let system = system().await;
        let mut way = Way::to(name, &system).await;
        let wanted = Watching {
            session: Some("s".parse().unwrap()),
            ..Watching::default()
        };
        let mut watched = way.watch(wanted).await.unwrap();
        let delete: Verb = serde_json::from_str(r#"{"verb":"delete","session":"s"}"#).unwrap();
        way.ask(Principal::local(), delete).await.unwrap();
        let ends = async {
            loop {
                let seen = watched.next().await;
                if seen["seen"] == "end" {
                    break seen;
                }
            }
        };
        assert_eq!(ends.await["why"], "session `s` was deleted", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_receive_the_end_of_the_system() {
    for name in ["calls", "port", "socket", "http"] {
        let system = system().await;
        let mut way = Way::to(name, &system).await;
        let mut watched = way.watch(Watching::default()).await.unwrap();
        system.die().await;
        loop {
            let seen = watched.next().await;
            if seen["seen"] == "end" {
                assert_eq!(seen["why"], "the server has shut down", "{name}");
                break;
            }
        }
    }
}
