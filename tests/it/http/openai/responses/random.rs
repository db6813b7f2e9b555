//! Random models behind a stream of events: the final item is the answer, and nothing shows a signal.

use super::{
    super::random::{HIDDEN, play, script},
    *,
};
use crate::actors::simulation::Dice;

async fn by_seed(seed: u64) -> &'static str {
    let mut dice = Dice(seed);
    let turns = u32::try_from(1 + dice.below(6)).unwrap();
    let oracle = TestOracle::new(script(&mut dice, &["look", "ask"]))
        .models(&["scripted/one", "scripted/two"])
        .tool(TestTool::new("look"))
        .policy(move |policy| policy.limits.max_turns = turns);
    let served = Served::start(oracle).await;
    let mut body = streamed(asking("where-is-it?"));
    body["tools"] = json!([{ "type": "function", "name": "ask" }]);
    if dice.below(4) == 0 {
        body["stream_options"] = json!({ "oracle": "turns" });
    }
    for response in 0.. {
        let stream = respond(&served, &body).await.text;
        assert!(
            !stream.contains(HIDDEN) && !stream.contains("<sig"),
            "{stream}"
        );
        let (_, ended) = checked(&stream);
        let kept = object(&get(&served, &ended).await);
        assert_eq!(
            (&kept["status"], text(&kept)),
            (&ended["status"], text(&ended))
        );
        let calls = calls(&ended);
        if calls.is_empty() {
            return match ended["status"].as_str().unwrap() {
                "completed" if response > 0 => "continued",
                "completed" => "completed",
                "incomplete" => "incomplete",
                _ => "failed",
            };
        }
        body["previous_response_id"] = ended["id"].clone();
        body["input"] = outputs(&calls).into();
    }
    "endless"
}

#[test]
fn stream_of_events_ends_with_the_answer() {
    let ends = play("stream_of_events_ends_with_the_answer", by_seed);
    println!("{ends:?}");
    let Some(ends) = ends else {
        return;
    };
    for (end, least) in [
        ("completed", 50),
        ("continued", 20),
        ("failed", 2),
        ("incomplete", 5),
    ] {
        assert!(ends.get(end) >= Some(&least), "{end} in {ends:?}");
    }
}
