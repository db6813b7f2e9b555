//! What the builder accepts from a host.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::TryStreamExt as _;
use oracle_agent::{
    actor::{Clock, Oracle, Progress, System},
    app::BuildError,
    config::Config,
    journal::{Journal, Memory},
    kernel::{DecisionTable, TurnDecision, TurnEnd, TurnPolicy, Verdict},
    llm::{Backend, DeltaStream, Request, Scripted, estimate_tokens},
    model::{QueryClassification, QueryType, Seq, SessionName, Submission, Timestamp, ToolSpec},
    query::{QueryClassifier, QueryContext},
};

use serde_json::json;

use super::done;

struct Always(QueryType, f64);

impl QueryClassifier for Always {
    fn classify(&self, _: &str, _: QueryContext<'_>) -> QueryClassification {
        let keywords = ["own", "and", "own"].map(str::to_owned).into();
        QueryClassification {
            query_type: self.0,
            needs: QueryType::Code.needs(),
            confidence: self.1,
            keywords_matched: keywords,
        }
    }

    fn is_immediate(&self) -> bool {
        true
    }
}

/// Panics when it classifies, and where its answers do when it is asked what it is.
struct Broken(fn() -> bool, fn() -> usize);

impl QueryClassifier for Broken {
    fn classify(&self, _: &str, _: QueryContext<'_>) -> QueryClassification {
        panic!("a host's mistake")
    }

    fn is_immediate(&self) -> bool {
        self.0()
    }

    fn max_batch(&self) -> usize {
        self.1()
    }
}

fn name() -> SessionName {
    SessionName::new("s").unwrap()
}

async fn event(system: &System, kind: &str) -> serde_json::Value {
    let session = system.oracle().session_by_key(name());
    let events = session.events(Seq(0)).await.unwrap();
    events
        .into_iter()
        .find(|event| event.kind == kind)
        .unwrap()
        .payload
}

#[tokio::test(start_paused = true)]
async fn custom_classifier_is_used_and_recorded() {
    for (confidence, recorded) in [(0.75, 0.75), (7.0, 1.0), (f64::NAN, 0.0)] {
        let builder = Oracle::builder().classifier(Always(QueryType::Research, confidence));
        let system = builder.start().await.unwrap();
        let session = system.oracle().session_by_key(name());
        session
            .answer(Submission::new("how is the code?"))
            .await
            .unwrap();
        let classified = event(&system, "query.classified").await;
        let found = &classified["classification"];
        assert_eq!(found["query_type"], "research", "{classified}");
        assert_eq!(found["needs_web"], true, "the needs are those of the type");
        assert_eq!(found["confidence"], recorded);
        assert_eq!(found["keywords_matched"], serde_json::json!(["and", "own"]));
    }
}

#[tokio::test(start_paused = true)]
async fn built_in_classifier_answers_for_one_that_panics() {
    for broken in [
        Broken(|| true, || 1),
        Broken(|| panic!("a host's mistake"), || 1),
        Broken(|| true, || panic!("a host's mistake")),
    ] {
        let system = Oracle::builder().classifier(broken).start().await.unwrap();
        let session = system.oracle().session_by_key(name());
        for _ in 0..300 {
            session
                .answer(Submission::new("how is the code?"))
                .await
                .unwrap();
        }
        let classified = event(&system, "query.classified").await;
        assert_eq!(classified["fallback"], true, "{classified}");
        assert_eq!(classified["classification"]["query_type"], "code");
        let metrics = system.oracle().metrics();
        assert_eq!(metrics.unclassified.get(), 300);
        assert!(!system.oracle().has_ended(), "the actors live on");
    }
}

/// Demands at least two turns of every query.
struct Twice;

impl TurnPolicy for Twice {
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
        match DecisionTable.decide(turn) {
            decision if decision.verdict == Verdict::Answered && turn.turns < 2 => {
                Verdict::Next.into()
            }
            decision => decision,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cloned_builder_continues_over_the_same_journal() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let builder = Oracle::builder()
        .backend(Scripted::new().reply(done("First.")).reply(done("Second.")))
        .model("scripted/any")
        .clock(Clock::from(Timestamp::from_millis(1_000)))
        .journal(Arc::clone(&journal));
    let first = builder.clone().turn_policy(Twice).start().await.unwrap();
    let session = first.oracle().session_by_key(name());
    let answer = session
        .answer(Submission::new("how is the code?"))
        .await
        .unwrap();
    assert_eq!((answer.text.as_str(), answer.turns), ("Second.", 2));
    let log = session.events(Seq(0)).await.unwrap();
    assert_eq!(
        log[0].at,
        Timestamp::from_millis(1_000),
        "by the host's clock"
    );
    first.shut_down(Duration::ZERO).await;

    let second = builder.start().await.unwrap();
    let session = second.oracle().session_by_key(name());
    let mut watch = session.watch(answer.query).await.unwrap();
    let mut told = 0;
    while let Some(progress) = watch.try_next().await.unwrap() {
        told += u32::from(matches!(progress, Progress::Record(_)));
    }
    assert!(told > 0);
    assert_eq!(
        watch.answer().await.unwrap(),
        answer,
        "the records say it all"
    );
    assert!(journal.find(name().into()).await.unwrap().is_some());
}

#[tokio::test]
async fn unknown_models_are_refused_at_build() {
    for (model, says) in [
        ("nobody/any", "unknown model `nobody/any`"),
        ("any", "written provider/model"),
    ] {
        let started = Oracle::builder().model(model).start().await;
        let error = started.err().map(|error: BuildError| error.to_string());
        assert!(
            error.as_ref().is_some_and(|error| error.contains(says)),
            "{error:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn watch_streams_records_and_the_text_of_the_answer() {
    let words = |text| Scripted::new().reply(done(text));
    let builder = Oracle::builder().backend(words("Hello there, and how are you today?"));
    let system = builder.model("scripted/any").start().await.unwrap();
    let session = system.oracle().session("s").unwrap();
    let mut watch = session.ask("hello").await.unwrap();
    let pieces: Vec<String> = watch.text().try_collect().await.unwrap();
    let answer = watch.answer().await.unwrap();
    assert_eq!(pieces.concat(), answer.text);
    assert!(answer.text.starts_with("Hello there"), "{}", answer.text);

    let watch = session.watch(answer.query).await.unwrap();
    let all: Vec<Progress> = watch.try_collect().await.unwrap();
    let Some(Progress::Record(last)) = all.last() else {
        panic!("{all:?}")
    };
    assert!(last.finished().is_some());
    let error = system.oracle().session("a b").err().unwrap().to_string();
    assert!(
        error.starts_with("the session name `a b` contains the character ` `"),
        "{error}"
    );
}

/// Records what is sent, and answers.
#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<Request>>>);

impl Backend for Recording {
    fn provider(&self) -> &'static str {
        "recording"
    }

    fn call(&self, request: Request) -> DeltaStream {
        self.0.lock().unwrap().push(request.clone());
        Scripted::new().reply(done("Here.")).call(request)
    }
}

/// Tokens of all that is sent, in OpenAI's dialect.
fn sent_tokens(request: &Request) -> u64 {
    let tool = |tool: &ToolSpec| {
        let (name, about, schema) = (&tool.name, &tool.description, &tool.schema);
        let function = json!({"name": name, "description": about, "parameters": schema});
        json!({"type": "function", "function": function})
    };
    let tools: Vec<_> = request.tools.iter().map(tool).collect();
    let tools = match tools.is_empty() {
        true => String::new(),
        false => serde_json::to_string(&tools).unwrap(),
    };
    let texts = request.messages.iter().flat_map(|message| message.texts());
    let texts: String = texts.chain([&*request.system, &*tools]).collect();
    estimate_tokens(&texts)
}

/// With the tools over a project that are there without configuration, and with none.
#[tokio::test(start_paused = true)]
async fn question_of_four_words_costs_at_most_2000_tokens_and_900_without_tools() {
    for (only, offered, most) in [(None, 6, 2_000), (Some(Vec::new()), 0, 900)] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.model.chain = Some(vec!["recording/m".to_owned()].try_into().unwrap());
        config.tools.only = only;
        let backend = Recording::default();
        let builder = Oracle::builder().config(config).project(folder.path());
        let system = builder.backend(backend.clone()).start().await.unwrap();
        for (question, query_type) in [
            ("which function parses arguments?", "code"),
            ("what decisions were documented?", "documentation"),
            ("compare current web frameworks", "research"),
            ("thanks, that helped me", "conversational"),
            ("write a new note", "action"),
        ] {
            let session = system.oracle().session(query_type).unwrap();
            session.answer(Submission::new(question)).await.unwrap();
            let events = session.events(Seq(0)).await.unwrap();
            let mut events = events.iter();
            let classified = events.find(|event| event.kind == "query.classified");
            let got = &classified.unwrap().payload["classification"]["query_type"];
            assert_eq!(got, query_type);
            let request = backend.0.lock().unwrap().pop().unwrap();
            assert_eq!(request.tools.len(), offered);
            let tokens = sent_tokens(&request);
            eprintln!("{query_type}, {offered} tools: {tokens} tokens");
            assert!(
                tokens <= most,
                "{query_type}, {offered} tools: {tokens} tokens"
            );
        }
    }
}
