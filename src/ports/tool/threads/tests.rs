//! The tool over fabricated conversations: its requests, and its text for the model.

use std::sync::Mutex;

use futures_util::FutureExt;
use serde_json::{Value, json};

use super::*;
use crate::{
    model::{CallId, SessionKey},
    testkit::tool_conformance::{Subject, conforms},
    tool::Tool as _,
};

const SOON: Duration = Duration::from_secs(5);

/// Fixed results, and the searches that were made.
#[derive(Default)]
struct Fixed {
    places: Vec<ThreadHit>,
    fault: Option<Fault>,
    hangs: bool,
    asked: Mutex<Vec<(String, String, usize)>>,
}

impl Threads for Fixed {
    fn search(
        &self,
        tenant: TenantId,
        words: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ThreadHit>, Fault>> {
        let asked = (tenant.as_str().to_owned(), words, limit);
        self.asked.lock().unwrap().push(asked);
        if self.hangs {
            return std::future::pending().boxed();
        }
        let places = self.places.iter().take(limit).cloned().collect();
        let result = self.fault.clone().map_or(Ok(places), Err);
        std::future::ready(result).boxed()
    }
}

fn name(name: &str) -> SessionName {
    SessionName::new(name).unwrap()
}

fn place(session: &str, seq: u64, query: u32, excerpt: &str) -> ThreadHit {
    ThreadHit {
        session: name(session),
        seq: Seq(seq),
        at: Timestamp::from_millis(1_767_225_600_000),
        query: Some(QueryId(query)),
        said: Utterance::Question,
        excerpt: excerpt.to_owned(),
    }
}

fn of(places: impl IntoIterator<Item = ThreadHit>) -> Arc<Fixed> {
    Arc::new(Fixed {
        places: places.into_iter().collect(),
        ..Fixed::default()
    })
}

/// A call in query 3 of the session `here`.
fn context() -> ToolContext {
    let session = SessionKey {
        tenant: TenantId::new("acme").unwrap(),
        name: name("here"),
    };
    ToolContext::for_call(CallId::new("call"), session, QueryId(3))
}

async fn call(threads: &Arc<Fixed>, arguments: Value) -> Result<String, ToolError> {
    let threads: Arc<dyn Threads> = Arc::<Fixed>::clone(threads);
    let tool = thread_search(threads, SOON);
    let found = tool.call(arguments, context()).await;
    found.map(|output| output.text)
}

#[tokio::test]
async fn thread_search_conforms_with_maximal_input() {
    let longest = "x".repeat(128);
    let places = (0..5_000).map(|seq| place(&longest, u64::MAX - seq, 1, &"\u{1F980}".repeat(999)));
    let tool = thread_search(of(places), SOON);
    conforms(&Subject {
        tool: &tool,
        works: json!({"query": "crab", "limit": 20}),
        host_path: "/home",
        max_output: 32 * 1024,
    })
    .await;
}

#[tokio::test]
async fn results_name_session_time_and_speaker() {
    let answer = ThreadHit {
        said: Utterance::Answer,
        ..place("a", 9, 1, "In `limits.rs`.")
    };
    let added = ThreadHit {
        said: Utterance::Addition,
        ..place("here", 7, 2, "the upper limit\u{1b}[2J")
    };
    let threads = of([answer, added, place("b-2", 1, 1, "Where is the limit?")]);
    let found = call(&threads, json!({"query": "limit"})).await.unwrap();
    assert_eq!(
        found,
        "a, event 9, 2026-01-01T00:00:00.000Z, Oracle answered: In `limits.rs`.\n\
         here (this session), event 7, 2026-01-01T00:00:00.000Z, added while it was answered: \
         the upper limit\\u{1b}[2J\n\
         b-2, event 1, 2026-01-01T00:00:00.000Z, the user asked: Where is the limit?\n\n\
         all found: 3 places, the latest first"
    );
    let asked = threads.asked.lock().unwrap().clone();
    assert_eq!(asked, [("acme".into(), "limit".into(), 64)]);
}

#[tokio::test]
async fn current_query_is_excluded_from_its_results() {
    let places = [
        place("here", 30, 3, "now"),
        place("here", 20, 2, "before"),
        place("there", 10, 3, "elsewhere"),
    ];
    let found = call(&of(places.clone()), json!({"query": "x"})).await;
    let found = found.unwrap();
    assert!(!found.contains("now"), "{found}");
    assert!(found.contains("before") && found.contains("elsewhere"));
    let only = call(&of([places[0].clone()]), json!({"query": "x"})).await;
    let none = "No message has all words of `x` in an earlier conversation. Whole words are \
                compared: try fewer words, other forms, or other words.";
    assert_eq!(only, Ok(none.to_owned()));
}

#[tokio::test]
async fn omitted_results_are_reported() {
    let threads = of((1..=30).map(|seq| place("a", seq, 1, "text")));
    for (arguments, shown, last) in [
        (
            json!({"query": "text"}),
            8,
            "8 places shown, the latest first; there are more: add words, name a session, or raise limit",
        ),
        (
            json!({"query": "text", "limit": 1}),
            1,
            "1 place shown, the latest first; there are more: add words, name a session, or raise limit",
        ),
    ] {
        let found = call(&threads, arguments).await.unwrap();
        assert_eq!(
            found
                .lines()
                .filter(|line| line.ends_with(": text"))
                .count(),
            shown
        );
        assert_eq!(found.lines().last(), Some(last));
    }
}

#[tokio::test]
async fn session_filter_widens_the_search_up_to_a_bound() {
    let others = |count| (0..count).map(|seq| place("a", seq, 1, "text"));
    let rare = || [place("rare", 5, 1, "the text")];
    for (name, places, reaches, says) in [
        (
            "behind some",
            others(600).chain(rare()),
            &[64, 512, 4_096][..],
            "all found: 1 place, the latest first",
        ),
        (
            "among the first",
            others(10).chain(rare()),
            &[64],
            "all found: 1 place, the latest first",
        ),
        (
            "too far behind",
            others(4_096).chain(rare()),
            &[64, 512, 4_096],
            "No message has all words of `text` in the session rare among the latest places with \
             these words. Whole words are compared: try fewer words, other forms, or other words.",
        ),
    ] {
        let threads = of(places);
        let found = call(&threads, json!({"query": "text", "session": "rare"})).await;
        let found = found.unwrap();
        assert_eq!(found.lines().last(), Some(says), "{name}");
        let asked = threads.asked.lock().unwrap();
        let asked: Vec<usize> = asked.iter().map(|(.., limit)| *limit).collect();
        assert_eq!(asked, reaches, "{name}");
    }
}

#[tokio::test]
async fn invalid_thread_search_arguments_are_explained() {
    for (arguments, says) in [
        (
            json!({"query": " -* "}),
            "`query` contains no word: use words that were said",
        ),
        (
            json!({"query": "x", "limit": 21}),
            "`limit` is 21, the range is 1 to 20: add words instead",
        ),
        (
            json!({"query": "x", "session": "../b"}),
            "`session` is not a session name: use one that a search has shown, or omit it",
        ),
        (
            json!({"query": "x", "tenant": "other"}),
            "the argument `tenant`: unknown field `tenant`, expected one of `query`, `session`, `limit`",
        ),
    ] {
        let threads = of([]);
        let refused = call(&threads, arguments).await;
        assert_eq!(refused, Err(ToolError::ForModel(says.to_owned())));
        assert_eq!(threads.asked.lock().unwrap().len(), 0, "{says}");
    }
}

#[tokio::test(start_paused = true)]
async fn search_failure_is_explained() {
    let failing = |fault| {
        Arc::new(Fixed {
            fault: Some(fault),
            ..Fixed::default()
        })
    };
    let hanging = Arc::new(Fixed {
        hangs: true,
        ..Fixed::default()
    });
    let broken = Fault::permanent("journal_broken", "the disk is gone");
    for (name, threads, error) in [
        (
            "for now",
            failing(Fault::retryable("journal_unavailable", "/data is busy")),
            for_model!(
                "earlier conversations are currently not searchable: try again later, or continue \
                 without them",
            ),
        ),
        (
            "for good",
            failing(broken.clone()),
            ToolError::Internal(broken),
        ),
        (
            "too slow",
            hanging,
            for_model!(
                "the search over earlier conversations took too long: search for rarer words, or \
                 continue without it",
            ),
        ),
    ] {
        assert_eq!(
            call(&threads, json!({"query": "x"})).await,
            Err(error),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_search_ends_a_hanging_call() {
    let hanging = Fixed {
        hangs: true,
        ..Fixed::default()
    };
    let tool = thread_search(Arc::new(hanging), SOON);
    let context = context();
    let cancelled = context.cancelled.clone();
    let mut running = tool.call(json!({"query": "x"}), context);
    assert!(futures_util::poll!(&mut running).is_pending());
    cancelled.cancel();
    let ended = futures_util::poll!(&mut running);
    assert_eq!(ended, std::task::Poll::Ready(Err(cancelled_error())));
}
