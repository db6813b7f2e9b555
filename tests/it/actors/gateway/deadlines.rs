//! Keep-alives are no progress, and deadlines end a call that sends nothing else.

use oracle_agent::{model::Seq, testkit::TestOracle};

use super::*;
use crate::actors::counts;

/// Sends text once, or never, and then keep-alives without end.
#[derive(Clone, Copy)]
struct Alive {
    first: Option<&'static str>,
    every: Duration,
}

impl Backend for Alive {
    fn provider(&self) -> &'static str {
        "alive"
    }

    fn call(&self, _: Request) -> DeltaStream {
        let every = self.every;
        let first = self.first.map(|text| Ok(Delta::Text(text.to_owned())));
        let told = Ok(Delta::Limits(RateLimits::default()));
        let comment = move |()| async move {
            advance_time(every).await;
            Some((Ok(Delta::Alive), ()))
        };
        let comments = stream::unfold((), comment);
        stream::iter([told])
            .chain(stream::iter(first))
            .chain(comments)
            .boxed()
    }
}

/// A reply in many pieces without visible text, as of a tool call.
#[derive(Clone, Copy)]
struct Writes {
    pieces: usize,
    every: Duration,
}

impl Backend for Writes {
    fn provider(&self) -> &'static str {
        "writes"
    }

    fn call(&self, _: Request) -> DeltaStream {
        let every = self.every;
        let piece = move |_| async move {
            advance_time(every).await;
            Ok(Delta::Progress(String::new()))
        };
        let pieces = stream::iter(0..self.pieces).then(piece);
        pieces
            .chain(stream::iter([Ok(reply(&done("Written.")))]))
            .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn slow_tool_call_stream_counts_as_progress() {
    let backend = Writes {
        pieces: 30,
        every: Duration::from_secs(20),
    };
    let oracle = TestOracle::new(backend)
        .settings(|settings| {
            settings.gateway.first_token = Duration::from_secs(30);
            settings.gateway.idle = Duration::from_secs(30);
            settings.gateway.total = Duration::from_secs(700);
            // Shorter than the call: each piece counts as progress of the session.
            settings.stall_limit = Duration::from_secs(90);
        })
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("write it down").await.unwrap();
    assert_eq!(
        crate::actors::end(&answer),
        crate::actors::answered("Written.")
    );
    let cut_off = counts(&session, ["llm.retried", "supervisor.restarted"]).await;
    assert_eq!(cut_off, [0, 0]);
}

#[tokio::test(start_paused = true)]
async fn keep_alive_comments_prevent_a_stall_but_are_no_progress() {
    let every = Duration::from_secs(20);
    for (name, backend, code, seconds) in [
        ("no first piece", Alive { first: None, every }, "stall", 40),
        (
            "comments for ever",
            Alive {
                first: Some("Half an ans"),
                every,
            },
            "total_timeout",
            600,
        ),
        (
            "comments too seldom",
            Alive {
                first: Some("Half an ans"),
                every: Duration::from_secs(50),
            },
            "stall",
            30,
        ),
    ] {
        let oracle = TestOracle::new(backend)
            .settings(|settings| {
                settings.gateway.first_token = Duration::from_secs(40);
                settings.gateway.idle = Duration::from_secs(30);
                settings.gateway.total = Duration::from_secs(600);
                settings.stall_limit = Duration::from_secs(601);
            })
            .policy(|policy| policy.retry.attempts = 1)
            .start()
            .await
            .unwrap();
        let session = oracle.session("s").unwrap();
        let answer = session.ask("what is it?").await.unwrap();
        assert_eq!(answer.outcome.reason(), Some(code), "{name}");
        let events = session.events(Seq(0)).await.unwrap();
        let at = |kind: &str| events.iter().find(|event| event.kind == kind).unwrap().at;
        let took = at("query.finished").since(at("turn.started"));
        assert_eq!(took.as_secs(), seconds, "{name}");
        let restarted = counts(&session, ["supervisor.restarted"]).await;
        assert_eq!(restarted, [0], "{name}: whoever waits is not stuck");
    }
}
