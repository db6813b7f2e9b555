//! Spans that a host's own OpenTelemetry layer receives: what they say of calls that failed or had
//! no end; and in which spans a session works.

use std::sync::{Arc, LazyLock, Mutex};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use oracle_agent::{
    journal::Memory,
    llm::Scripted,
    model::{Fault, Submission},
    testkit::{
        Panics, Probe, TestOracle, TestTool,
        faulty::{FaultyJournal, Operation},
    },
    tool::{FnTool, Tool as _, ToolOutput},
};
use serde_json::{Value, json};
use tracing::{Dispatch, Instrument as _, Span, subscriber::DefaultGuard};
use tracing_subscriber::layer::SubscriberExt as _;

use super::{at_a_slow_tool, done};

/// Keeps the spans that have ended.
#[derive(Debug, Clone, Default)]
struct Exported(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Exported {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

impl Exported {
    /// Exports the spans of this thread, until the guard is dropped.
    async fn start() -> (Self, DefaultGuard) {
        // With fewer than two subscribers, tracing lets the thread that registers a call site decide
        // whether it is enabled, also for a subscriber that begins meanwhile on another thread. So
        // two always exist, and each call site is registered before ours begins.
        static SUBSCRIBERS: LazyLock<[Dispatch; 2]> =
            LazyLock::new(|| [(); 2].map(|()| Dispatch::new(tracing_subscriber::registry())));
        LazyLock::force(&SUBSCRIBERS);
        let script = Scripted::new().calls("Looking.", [("works", json!({}))]);
        let oracle = TestOracle::new(script.reply(done("Fine."))).tool(TestTool::new("works"));
        let oracle = oracle.start().await.unwrap();
        oracle.session("s").unwrap().ask("hi").await.unwrap();
        let exported = Self::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exported.clone());
        let tracer = provider.build().tracer("test");
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        let subscriber = tracing_subscriber::registry().with(layer);
        (exported, tracing::subscriber::set_default(subscriber))
    }

    /// Returns the errors of the spans of this name once there are so many.
    async fn errors(&self, name: &str, count: usize) -> Vec<Option<String>> {
        for _ in 0..10_000 {
            let errors = self.ended(name);
            if errors.len() >= count {
                return errors;
            }
            tokio::task::yield_now().await;
        }
        panic!("{count} {name}: {:?}", self.0)
    }

    fn ended(&self, name: &str) -> Vec<Option<String>> {
        let spans = self.0.lock().unwrap();
        let spans = spans.iter().filter(|span| span.name == name);
        let error = |span: &SpanData| {
            let mut attributes = span.attributes.iter();
            let error = attributes.find(|attribute| attribute.key.as_str() == "error")?;
            Some(error.value.to_string())
        };
        spans.map(error).collect()
    }
}

fn error(code: &str) -> Option<String> {
    Some(code.to_owned())
}

#[tokio::test(start_paused = true)]
async fn records_of_a_request_are_written_within_its_span() {
    let (_exported, _guard) = Exported::start().await;
    let appends = Arc::<Mutex<Vec<_>>>::default();
    let seen = Arc::clone(&appends);
    let journal = FaultyJournal::new(Memory::new(), move |operation, _| {
        if operation == Operation::Append {
            seen.lock().unwrap().push(Span::current().id());
        }
        None
    });
    let oracle = TestOracle::new(Scripted::new().stall("Let me")).journal(Arc::new(journal));
    let oracle = oracle.start().await.unwrap();
    let [new, asks] = ["new", "asks"].map(|name| oracle.session(name).unwrap());
    let spans = [(); 3].map(|()| tracing::info_span!("request"));
    let [opens, held, waits] = spans.clone();
    new.pause().instrument(opens).await.unwrap();
    // The second message comes while the first is prepared.
    let first = asks.submit(Submission::new("one")).instrument(held);
    let second = asks.submit(Submission::new("two")).instrument(waits);
    tokio::try_join!(first, second).unwrap();
    let expected = spans.map(|span| span.id());
    assert_eq!(*appends.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn span_of_a_cancelled_call_says_that_it_was_cancelled() {
    let stalls = Scripted::new().stall("Let me").reply(done("Fine."));
    let stalls = TestOracle::new(stalls).start().await.unwrap();
    for (oracle, begun, name) in [
        (stalls, "turn.started", "model_call"),
        (at_a_slow_tool("Fine.").await, "tool.started", "tool_call"),
    ] {
        let (exported, _guard) = Exported::start().await;
        let session = oracle.session("s").unwrap();
        session.submit(Submission::new("hi")).await.unwrap();
        session.wait_for(begun).await.unwrap();
        session.cancel(None).await.unwrap();
        session.wait_for("query.finished").await.unwrap();
        assert_eq!(exported.errors(name, 1).await, [error("cancelled")]);
    }
}

#[tokio::test(start_paused = true)]
async fn span_of_a_call_whose_task_panicked_has_the_fault_of_its_retry() {
    let model = Probe::new(Scripted::new().reply(done("Fine."))).panics(Panics::times(1));
    let oracle = TestOracle::new(model).start().await.unwrap();
    let (exported, _guard) = Exported::start().await;
    let session = oracle.session("s").unwrap();
    session.ask("hi").await.unwrap();
    let errors = exported.errors("model_call", 2).await;
    assert_eq!(errors, [error("gateway"), None]);
}

#[tokio::test(start_paused = true)]
async fn span_of_a_tool_call_names_the_kind_of_its_failure() {
    let broken = Fault::permanent("journal_broken", "the disk is gone");
    let spec = TestTool::new("broken").spec().clone();
    let broken = FnTool::new(spec, move |_: Value, _| {
        std::future::ready(Err::<ToolOutput, _>(broken.clone().into()))
    });
    let tools = [
        (TestTool::new("works"), None),
        (
            TestTool::new("fails").fails("no such file"),
            error("tool_error"),
        ),
        (TestTool::new("hangs").hangs(), error("tool_timeout")),
        (
            TestTool::new("panics").panics(Panics::times(1)),
            error("tool_panicked"),
        ),
    ];
    let names = tools.iter().map(|(tool, _)| tool.spec().name.clone());
    // One after another, so that their spans end in this order.
    let names: Vec<_> = names.chain(["broken".to_owned()]).collect();
    let script = names.iter().fold(Scripted::new(), |script, name| {
        script.calls("Looking.", [(name.as_str(), json!({}))])
    });
    let oracle = TestOracle::new(script.reply(done("Fine."))).tool(broken);
    let (tools, expected): (Vec<_>, Vec<_>) = tools.into_iter().unzip();
    let oracle = tools.into_iter().fold(oracle, TestOracle::tool);
    let oracle = oracle.start().await.unwrap();
    let (exported, _guard) = Exported::start().await;
    let session = oracle.session("s").unwrap();
    session.ask("look it up").await.unwrap();
    let expected = [expected, vec![error("journal_broken")]].concat();
    assert_eq!(exported.errors("tool_call", 5).await, expected);
}
