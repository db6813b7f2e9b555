//! Models that break the protocol, as clients of `/v1` and `/api` meet them.

use oracle_agent::{llm::script::Script, model::QueryId};

use super::{
    streams::{objects, text},
    *,
};
use crate::weak::{QUESTION, ROWS, script};

#[tokio::test(start_paused = true)]
async fn answer_without_a_signal_is_sent_once_whole_and_streamed() {
    for row in ROWS {
        let name = row.name;
        let parsed: Script = serde_json::from_str(&script(row)).unwrap();
        let model = || TestOracle::new(Scripted::of_turns(&parsed.turns));
        let named = [("x-oracle-session", "s")];

        let served = Served::start(model()).await;
        let got = served.post(&named, chat(&[QUESTION])).await;
        let session = served.system.session("s").unwrap();
        let account = session.account(QueryId(1)).await.unwrap().unwrap();
        let calls = usize::try_from(account.turns).unwrap();
        assert_eq!(calls, row.replies.len(), "{name}");
        let (_, finished) = account.finished.unwrap();
        let Some(answer) = row.answer else {
            assert_eq!(finished.outcome.reason(), Some("empty_answer"), "{name}");
            continue;
        };
        assert_eq!(finished.outcome.name(), "answered", "{name}");
        assert_eq!(finished.answer, answer, "{name}");
        assert_eq!(got.answer(), answer, "{name}");

        let served = Served::start(model()).await;
        let got = served.post(&named, streamed(chat(&[QUESTION]))).await;
        let shown = row.streamed.unwrap_or(answer);
        assert_eq!(text(&objects(&got.text)), shown, "{name}, streamed");
    }
}

#[tokio::test(start_paused = true)]
async fn model_without_signals_in_three_queries_is_no_longer_asked_for_them() {
    let script = Scripted::new().reply("It is in a.rs.").reply("");
    let served = Served::start(TestOracle::new(script)).await;
    let mut turns = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        let named = [("x-oracle-session", name)];
        let got = served.post(&named, chat(&[QUESTION])).await;
        assert_eq!(got.answer(), "It is in a.rs.");
        turns.push(served.count(name, "turn.started").await);
    }
    assert_eq!(turns, [2, 2, 2, 1, 1]);
}
