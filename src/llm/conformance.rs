//! Tests of the conformance suite on our own backends, and on broken ones that it has to detect.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use serde_json::json;

use crate::{
    llm::{Backend, Delta, DeltaStream, Offline, Request, Scripted, ToolChoice, estimate_usage},
    model::{CallId, Fault, Part, Reply, StopReason, ToolCall, Usage},
    testkit::llm_conformance::*,
};

#[tokio::test]
async fn the_offline_model_conforms() {
    assert_eq!(
        check(|_| Arc::new(Offline), Determinism::Deterministic).await,
        Ok(())
    );
}

#[tokio::test]
async fn a_script_conforms() {
    let script = |scenario| -> Arc<dyn Backend> {
        let first = match scenario {
            Scenario::NoTools => Scripted::new().reply("From what I know."),
            Scenario::Question | Scenario::Results | Scenario::Dropped => {
                Scripted::new().calls("Looking.", [("code_search", json!({"query": "cache"}))])
            }
        };
        Arc::new(first.calls("And again.", [("code_search", json!({"query": "session"}))]))
    };
    assert_eq!(check(script, Determinism::Deterministic).await, Ok(()));
}

/// Replies by a function of the request and of the number of earlier calls.
struct Broken<F>(F, std::sync::atomic::AtomicUsize);

impl<F> Backend for Broken<F>
where
    F: Fn(&Request, usize) -> Vec<Result<Delta, Fault>> + Send + Sync + 'static,
{
    fn provider(&self) -> &'static str {
        "broken"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let before = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        stream::iter((self.0)(&request, before)).boxed()
    }
}

fn good(request: &Request) -> Reply {
    let parts = vec![Part::text("All is well.")];
    let usage = estimate_usage(request, &parts);
    Reply {
        parts,
        stop: StopReason::EndTurn,
        usage,
        model: "broken/model".to_owned(),
    }
}

fn calling(request: &Request, id: &str, arguments: &str) -> Reply {
    let (id, name, arguments) = (
        CallId::new(id),
        "code_search".to_owned(),
        arguments.to_owned(),
    );
    let mut reply = good(request);
    reply.parts.push(Part::ToolCall(ToolCall {
        id,
        name,
        arguments,
    }));
    Reply {
        stop: StopReason::ToolCalls,
        ..reply
    }
}

type Items = Vec<Result<Delta, Fault>>;

/// Name, behaviour, and the breach that the suite reports.
type Row = (&'static str, fn(&Request, usize) -> Items, &'static str);

fn items(reply: Reply) -> Items {
    vec![
        Ok(Delta::Text("All is well.".to_owned())),
        Ok(Delta::Done(reply)),
    ]
}

async fn breach(broken: fn(&Request, usize) -> Items) -> Result<(), Breach> {
    let make = move |_| -> Arc<dyn Backend> { Arc::new(Broken(broken, 0.into())) };
    check(make, Determinism::Deterministic).await
}

#[tokio::test]
async fn model_conformance_detects_violations() {
    let rows: Vec<Row> = vec![
        ("nothing is", |r, _| items(good(r)), ""),
        (
            "no end",
            |_, _| vec![],
            "Question: the stream ended without a whole reply",
        ),
        (
            "a fault",
            |_, _| vec![Err(Fault::permanent("code", "why"))],
            "Question: a reply was due, not the fault `why`",
        ),
        (
            "more after the end",
            |r, _| [items(good(r)), vec![Err(Fault::permanent("code", "why"))]].concat(),
            "Question: after its end the stream went on with Err(",
        ),
        (
            "text that was not shown",
            |r, _| vec![Ok(Delta::Done(good(r)))],
            r#"Question: the pieces say "", the reply "All is well.""#,
        ),
        (
            "arguments that are no object",
            |r, _| items(calling(r, "a", "[1]")),
            r#"Question: the arguments "[1]" of `code_search` are not a JSON object"#,
        ),
        (
            "an id that was given before",
            |r, _| items(calling(r, "conformance-1", "{}")),
            "Results: the id `conformance-1` was given to two calls",
        ),
        (
            "a call that was not allowed",
            |r, _| items(calling(r, "a", "{}")),
            "NoTools: `code_search` was asked for, and tools were not to be",
        ),
        (
            "a stop that does not fit",
            |r, _| {
                items(Reply {
                    stop: StopReason::ToolCalls,
                    ..good(r)
                })
            },
            "Question: 0 calls in a reply that stopped with ToolCalls",
        ),
        (
            "no usage",
            |r, _| {
                items(Reply {
                    usage: Usage::default(),
                    ..good(r)
                })
            },
            "Question: usage is not filled in: ",
        ),
        (
            "another provider's model",
            |r, _| {
                items(Reply {
                    model: "model".to_owned(),
                    ..good(r)
                })
            },
            "Question: the reply is by `model`, not by a model of `broken`",
        ),
        (
            "another reply the second time",
            |r, before| {
                let model = format!("broken/{before}");
                items(Reply { model, ..good(r) })
            },
            "Question: the same request gave two replies",
        ),
        (
            "a dropped stream that is missed",
            |r, before| match (&r.tool_choice, before) {
                (ToolChoice::Auto, 2) => vec![],
                _ => items(good(r)),
            },
            "Dropped: the stream ended without a whole reply",
        ),
    ];
    for (name, broken, expected) in rows {
        let said = breach(broken).await.err().map(|found| found.to_string());
        let said = said.unwrap_or_default();
        assert!(said.starts_with(expected), "{name}: {said}");
        assert_eq!(said.is_empty(), expected.is_empty(), "{name}: {said}");
    }
}
