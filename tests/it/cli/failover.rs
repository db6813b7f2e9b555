//! What users see when a model fails over to the next one, or is asked in another form.

use super::{
    Run, Workspace,
    ask::{FILES, QUESTION, json_lines},
    server::{KEY, Server, ServerBehaviour},
};

pub(super) const CHAIN: &str = "--config o.toml --model local/small,offline";

pub(super) fn place(server: &Server) -> Workspace {
    let config = server.config();
    let files = FILES.iter().copied().chain([("o.toml", &*config)]);
    Workspace::new(&files.collect::<Vec<_>>())
}

/// With a key that the server repeats in its refusal.
fn keyed<'a>(run: Run<'a>, key: &str) -> Run<'a> {
    run.env("LOCAL_KEY", key).env("LOCAL_HEADER", "h")
}

#[test]
fn failover_is_told_with_its_cause_and_the_offline_answer_names_it() {
    let server = Server::start(ServerBehaviour::Good);
    let place = place(&server);
    let line = format!("ask {CHAIN}");
    let output = keyed(place.oracle(&line).arg(QUESTION), "wrong-key").output();
    let said = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<_> = said
        .lines()
        .filter(|line| line.contains("went on"))
        .collect();
    // The query stays with the model that answers.
    let [told] = lines[..] else { panic!("{said}") };
    let cause = "oracle: local/small failed (401 unauthorized: no such key: ";
    assert!(told.starts_with(cause), "{told}");
    assert!(told.ends_with("; went on with offline/offline"), "{told}");
    assert!(!said.contains("wrong-key"), "{said}");
    let answer = String::from_utf8(output.stdout).unwrap();
    let hint = "because `local/small` failed";
    assert!(
        answer.contains(hint) && !answer.contains("start Ollama"),
        "{answer}"
    );
    assert_eq!(output.status.code(), Some(0));

    let line = format!("ask --json {CHAIN}");
    let output = keyed(place.oracle(&line).arg(QUESTION), "wrong-key").output();
    let [answer] = &json_lines(&output.stdout)[..] else {
        panic!("not one object");
    };
    let events = answer["events"].as_array().unwrap().iter();
    let failed: Vec<_> = events
        .filter(|event| event["type"] == "llm.failed_over")
        .collect();
    let [failed] = failed[..] else {
        panic!("{answer}")
    };
    let told = (
        &failed["payload"]["to"],
        &failed["payload"]["fault"]["code"],
    );
    assert_eq!(told, (&"offline/offline".into(), &"unauthorized".into()));
    let said = String::from_utf8(output.stderr).unwrap();
    let told = said.matches("went on with offline/offline");
    assert_eq!(told.count(), 1, "{said}");
}

#[test]
fn model_without_tools_is_asked_without_them_and_that_is_said_once() {
    let server = Server::start(ServerBehaviour::NoTools);
    let place = place(&server);
    let line = "ask --config o.toml --model local/small";
    let output = keyed(place.oracle(line).arg(QUESTION), KEY).output();
    let said = String::from_utf8(output.stderr).unwrap();
    let sentence = "local/small takes no tools: answered without the project's tools";
    assert_eq!(said.matches(sentence).count(), 1, "{said}");
    let answer = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        (answer.trim(), output.status.code()),
        ("It is 42.", Some(0)),
        "{said}"
    );

    let line = "doctor --config o.toml --model local/small";
    let output = keyed(place.oracle(line), KEY).output();
    let report = String::from_utf8(output.stdout).unwrap();
    let finding = "fail  tools       the server says that the model takes no tools, and was asked \
                   without them; choose a model with tools";
    assert!(report.contains(finding), "{report}");
}
