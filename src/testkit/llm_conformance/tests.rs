//! The suite on our own backends, and on broken ones that it has to notice.

use futures_util::stream;

use super::*;
use crate::llm::{DeltaStream, Offline, Scripted, estimate_usage};

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

/// Replies by a function of the request and of how often it was called.
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

/// Name, behaviour, what the suite says of it.
type Row = (
    &'static str,
    fn(&Request, usize) -> Items,
    Result<(), Breach>,
);

fn shown(reply: Reply) -> Items {
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
async fn what_is_broken_is_noticed() {
    let (scenario, pieces) = (Scenario::Question, "All is well.".to_owned());
    let fault = Fault::permanent("code", "why");
    let rows: Vec<Row> = vec![
        ("nothing is", |r, _| shown(good(r)), Ok(())),
        ("no end", |_, _| vec![], Err(Breach::NoEnd { scenario })),
        (
            "a fault",
            |_, _| vec![Err(Fault::permanent("code", "why"))],
            Err(Breach::Faulted { scenario, fault }),
        ),
        (
            "more after the end",
            |r, _| [shown(good(r)), vec![Err(Fault::permanent("code", "why"))]].concat(),
            Err(Breach::AfterEnd {
                scenario,
                after: format!("{:?}", Err::<Delta, _>(Fault::permanent("code", "why"))),
            }),
        ),
        (
            "text that was not shown",
            |r, _| vec![Ok(Delta::Done(good(r)))],
            Err(Breach::Text {
                scenario,
                pieces: String::new(),
                reply: pieces,
            }),
        ),
        (
            "arguments that are no object",
            |r, _| shown(calling(r, "a", "[1]")),
            Err(Breach::Arguments {
                scenario,
                name: "code_search".to_owned(),
                arguments: "[1]".to_owned(),
            }),
        ),
        (
            "an id that was given before",
            |r, _| shown(calling(r, "conformance-1", "{}")),
            Err(Breach::SameId {
                scenario: Scenario::Results,
                id: CallId::new("conformance-1"),
            }),
        ),
        (
            "a call that was not allowed",
            |r, _| shown(calling(r, "a", "{}")),
            Err(Breach::Uninvited {
                scenario: Scenario::NoTools,
                name: "code_search".to_owned(),
            }),
        ),
        (
            "a stop that does not fit",
            |r, _| {
                shown(Reply {
                    stop: StopReason::ToolCalls,
                    ..good(r)
                })
            },
            Err(Breach::Stop {
                scenario,
                calls: 0,
                stop: StopReason::ToolCalls,
            }),
        ),
        (
            "no usage",
            |r, _| {
                shown(Reply {
                    usage: Usage::default(),
                    ..good(r)
                })
            },
            Err(Breach::NoUsage {
                scenario,
                usage: Usage::default(),
            }),
        ),
        (
            "another provider's model",
            |r, _| {
                shown(Reply {
                    model: "model".to_owned(),
                    ..good(r)
                })
            },
            Err(Breach::Model {
                scenario,
                model: "model".to_owned(),
                provider: "broken".to_owned(),
            }),
        ),
        (
            "another reply the second time",
            |r, before| {
                let model = format!("broken/{before}");
                shown(Reply { model, ..good(r) })
            },
            Err(Breach::Changed { scenario }),
        ),
        (
            "a dropped stream that is missed",
            |r, before| match (r.tool_choice, before) {
                (ToolChoice::Auto, 2) => vec![],
                (ToolChoice::Auto | ToolChoice::None, _) => shown(good(r)),
            },
            Err(Breach::NoEnd {
                scenario: Scenario::Dropped,
            }),
        ),
    ];
    for (name, broken, expected) in rows {
        assert_eq!(breach(broken).await, expected, "{name}");
    }
}
