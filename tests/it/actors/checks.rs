//! Checks of JSON by a schema that would take hours.

use oracle_agent::{
    llm::Scripted,
    model::{AnswerFormat, AnswerOptions, Submission, ToolSpec},
    testkit::{Probe, TestOracle},
};
use serde_json::{Value, json};

use super::{answered, counts, done, end, last, memory};

/// A schema that matches a text ten thousand times, and the text.
fn endless() -> (Value, String) {
    let refer = |name: &str| vec![json!({"$ref": format!("#/$defs/{name}")}); 100];
    let schema = json!({
        "$defs": {
            "text": {"pattern": "[ab]*a[ab]{800}[cd]"},
            "all": {"oneOf": refer("text")},
        },
        "properties": {"text": {"oneOf": refer("all")}},
    });
    (schema, "aab".repeat(4_000))
}

fn submission(options: AnswerOptions) -> Submission {
    Submission {
        options: Some(options.into()),
        ..Submission::new("which?")
    }
}

#[tokio::test(start_paused = true)]
async fn a_format_that_takes_too_much_work_fails_its_query_alone() {
    let (schema, text) = endless();
    let format = AnswerFormat::Schema {
        name: "text".into(),
        description: None,
        schema,
        strict: true,
    };
    let options = AnswerOptions {
        format,
        ..AnswerOptions::default()
    };
    let journal = memory();
    let reply = json!({"text": text}).to_string();
    let script = Scripted::new().reply(&reply);
    let before = TestOracle::new(script.reply(done("Fine."))).journal(journal.clone());
    let before = before.start().await.unwrap();
    let session = before.session("s").unwrap();
    session.submit(submission(options)).await.unwrap();
    session.wait_for("query.finished").await.unwrap();
    let finished = last(&session, "query.finished").await;
    assert_eq!(finished["code"], "answer_format", "{finished}");
    let detail = finished["detail"].as_str().unwrap();
    assert!(detail.contains("takes too much work"), "{detail}");
    let other = before.session("other").unwrap();
    assert_eq!(end(&other.ask("how?").await.unwrap()), answered(&reply));
    before.die().await;

    let model = Probe::new(Scripted::new().reply("A long text.").reply(done("Well.")));
    let after = TestOracle::new(model).journal(journal);
    let after = after.start().await.unwrap();
    let session = after.session("s").unwrap();
    assert_eq!(end(&session.ask("and?").await.unwrap()), answered("Well."));
    let ends = counts(&session, ["query.finished", "supervisor.restarted"]).await;
    assert_eq!(ends, [2, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_check_takes_too_much_work_is_refused() {
    let (schema, text) = endless();
    let options = AnswerOptions {
        tools: [ToolSpec::new("find", "Finds.", schema)].into(),
        ..AnswerOptions::default()
    };
    let script = Scripted::new()
        .calls("Looking.", [("find", json!({"text": text}))])
        .reply(done("Without it."));
    let oracle = TestOracle::new(script).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(submission(options)).await.unwrap();
    session.wait_for("query.finished").await.unwrap();
    let refused = last(&session, "tool.refused").await;
    assert_eq!(refused["why"], "invalid_arguments", "{refused}");
    let content = refused["content"].as_str().unwrap();
    assert!(content.contains("takes too much work"), "{content}");
}
