//! `oracle sessions` and `oracle journal`: inspection and deletion from the command line.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    sync::Arc,
};

use oracle_agent::{
    journal::{Append, Journal, SessionStatus, Sqlite},
    model::{
        ProfileName, QueryId, Record, SessionKey, SessionName, Timestamp,
        record::{AgentFact, ChildStart, Fact, Opened, Parent, Quarantined, SessionFact},
    },
};
use serde_json::{Value, json};

use super::{
    Workspace,
    ask::{FILES, QUESTION, json_lines, numbered},
    assert_transcript,
};

fn place() -> Workspace {
    let place = Workspace::new(&FILES);
    for (session, question) in [
        ("shop-1", QUESTION),
        ("b", "longer"),
        ("shop-1", "longer"),
        ("a", "longer"),
    ] {
        let line = format!("ask --session {session}");
        let output = place.oracle(&line).arg(question).output();
        assert_eq!(output.status.code(), Some(0));
    }
    place
}

fn out(place: &Workspace, line: &str) -> String {
    let output = place.oracle(line).output();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{line}");
    assert_eq!(output.status.code(), Some(0), "{line}");
    String::from_utf8(output.stdout).unwrap()
}

fn objects(place: &Workspace, line: &str) -> Vec<Value> {
    json_lines(out(place, line).as_bytes())
}

#[test]
fn sessions_are_listed_the_last_used_first() {
    let place = place();
    let names = |lines: &[Value]| -> Vec<Value> {
        lines.iter().map(|line| line["session"].clone()).collect()
    };
    let all = objects(&place, "sessions list --json");
    assert_eq!(names(&all), ["a", "shop-1", "b"]);
    assert!(all.iter().all(|line| line["state"] == "idle"));
    let text = out(&place, "sessions list");
    let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split('\t').collect()).collect();
    for (row, line) in rows.iter().zip(&all) {
        let records = line["records"].to_string();
        let at = line["last_activity"].as_str().unwrap();
        assert_eq!(
            *row,
            [line["session"].as_str().unwrap(), at, "idle", &records]
        );
    }
    let limited = place.oracle("sessions list --limit 1").output();
    let said = String::from_utf8(limited.stderr).unwrap();
    assert!(limited.stdout.starts_with(b"a\t"));
    assert_eq!(
        said,
        "oracle: there are more sessions: show them with --limit\n"
    );
}

#[test]
fn a_session_is_written_as_one_page_that_makes_no_request() {
    const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(1)>";
    let reply = format!(
        "{HOSTILE}\n<signal type='context_sufficient'><sources_found>1</sources_found></signal>"
    );
    let script = json!({ "turns": [{ "reply": reply }] }).to_string();
    let place = Workspace::new(&[("script.json", &script)]);
    let asked = place
        .oracle("ask --session s --model scripted/script.json Hello?")
        .output();
    assert_eq!(asked.status.code(), Some(0));
    assert_eq!(out(&place, "sessions show s --html page.html"), "");
    let page = fs::read_to_string(place.here.path().join("page.html")).unwrap();
    let (head, data) = page
        .split_once(r#"<script id="data" type="application/json">"#)
        .unwrap();
    let (data, rest) = data.split_once("</script>").unwrap();
    assert_eq!(rest.matches("</script").count(), 1, "{rest}");
    let links = |text: &str| text.contains("src=") || text.contains("href=");
    assert!(!data.contains('<') && !links(head) && !links(rest));
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["session"], "s");
    let events = data["events"].as_array().unwrap();
    assert_eq!(events.len(), objects(&place, "sessions events s").len());
    assert!(data.to_string().contains("<img src=x onerror=alert(1)>"));
    let failed = place
        .oracle("sessions show s --html none/page.html")
        .output();
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(
        said.starts_with("oracle: cannot write none/page.html: "),
        "{said}"
    );
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn session_is_found_by_a_short_id() {
    let place = Workspace::new(&FILES);
    let [object] = &json_lines(&place.oracle("ask --json invoices").output().stdout)[..] else {
        panic!("not one object");
    };
    let name = object["session"].as_str().unwrap();
    let last = |many: usize| &name[name.len() - many..];
    for short in [
        last(6),
        last(8),
        last(12),
        &name[..8],
        name,
        &last(8).to_uppercase(),
    ] {
        let shown = objects(&place, &format!("sessions show {short} --json"));
        assert_eq!(shown[0]["session"], name, "{short}");
        let events = objects(&place, &format!("sessions events {short}"));
        assert_eq!(events[0]["session"], name, "{short}");
        let export = objects(&place, &format!("sessions export {short}"));
        assert_eq!(export[0]["session"], name, "{short}");
    }
    let asked = |session: &str| {
        let line = format!("ask --json --session {session} invoices");
        json_lines(&place.oracle(&line).output().stdout)[0]["session"].clone()
    };
    assert_eq!(asked(last(8)), name);
    // Too short, and no part of a UUID: names of new sessions.
    for new in [last(5), "abcdef", &format!("x{}", last(8))] {
        assert_eq!(asked(new), new);
    }
    let others = [
        "01a20000-0000-7000-8000-00000000abcd",
        "01a20000-0000-7000-9000-00000000abcd",
    ];
    for other in others {
        assert_eq!(asked(other), other);
    }
    let output = place.oracle("ask --session 0000abcd invoices").output();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("`0000abcd` matches 2 sessions"), "{said}");
    assert!(others.iter().all(|other| said.contains(other)), "{said}");
    // A session that has the short id as its name comes first.
    assert_eq!(asked("9000-00000000abcd"), others[1]);
    let told = out(&place, &format!("sessions delete {} --yes", last(8)));
    assert_eq!(told, format!("deleted session `{name}`\n"));
}

#[test]
fn sessions_are_known_by_title_and_project() {
    let place = Workspace::new(&FILES);
    let title = |text: &str| {
        let line = "ask --json --session";
        let name = format!("s{}", text.len());
        place.oracle(&format!("{line} {name}")).arg(text).output();
        let listed = objects(&place, "sessions list --json");
        let session = listed
            .iter()
            .find(|one| one["session"] == name)
            .unwrap()
            .clone();
        let project = place.path(".").canonicalize().unwrap();
        assert_eq!(session["project"], project.to_str().unwrap());
        session["title"].as_str().unwrap().to_owned()
    };
    assert_eq!(title(" where\n\tis it? "), "where is it?");
    let long = title(&"word ".repeat(30));
    assert!(long.ends_with('…') && long.chars().count() == 80, "{long}");
}

#[test]
fn usage_sums_the_recorded_usage() {
    let place = place();
    let [all] = &objects(&place, "usage --json")[..] else {
        panic!("one tenant");
    };
    assert_eq!(
        (&all["by"], &all["of"]),
        (&json!("tenant"), &json!("default"))
    );
    let sessions = objects(&place, "usage --by session --json");
    let names: Vec<_> = sessions.iter().map(|row| row["of"].clone()).collect();
    assert_eq!(names, ["a", "b", "shop-1"]);
    let sum = |field: &str| -> u64 {
        let each = sessions
            .iter()
            .map(|row| row["usage"][field].as_u64().unwrap());
        each.sum()
    };
    assert_eq!(all["usage"]["input_tokens"], sum("input_tokens"));
    assert!(sum("output_tokens") > 0);
    let [model] = &objects(&place, "usage --by model --json")[..] else {
        panic!("one model");
    };
    assert!(
        model["of"].as_str().unwrap().starts_with("offline"),
        "{model}"
    );
    assert_eq!(model["usage"], all["usage"]);
    let row = out(&place, "usage");
    assert_eq!(row.split('\t').count(), 8, "{row}");
    let empty = Workspace::new(&[]).oracle("usage").output();
    assert_eq!(empty.status.code(), Some(0));
    assert_eq!(empty.stderr, b"oracle: no model calls are recorded yet\n");
}

#[test]
fn a_session_is_shown_with_its_questions_and_answers() {
    let place = place();
    let [shown] = &objects(&place, "sessions show shop-1 --json")[..] else {
        panic!("not one object");
    };
    let state = (&shown["session"], &shown["state"], &shown["quarantine"]);
    assert_eq!(state, (&json!("shop-1"), &json!("idle"), &Value::Null));
    let exchanges = shown["conversation"].as_array().unwrap();
    let told: Vec<_> = exchanges
        .iter()
        .map(|one| (&one["question"], &one["outcome"]))
        .collect();
    let answered = json!("answered");
    let questions = [json!(QUESTION), json!("longer")];
    assert_eq!(
        told,
        [(&questions[0], &answered), (&questions[1], &answered)]
    );
    let text = out(&place, "sessions show shop-1");
    for exchange in exchanges {
        let question = format!("> {}\n", exchange["question"].as_str().unwrap());
        let answer = exchange["answer"].as_str().unwrap().trim_end();
        assert!(text.contains(&question) && text.contains(answer), "{text}");
    }
    let before = objects(&place, "sessions events shop-1").len();
    assert_eq!(
        before as u64,
        shown["last"].as_u64().unwrap(),
        "nothing woke it"
    );
}

#[test]
fn events_filter_by_number_and_type() {
    let place = place();
    let all = objects(&place, "sessions events shop-1");
    numbered(&all);
    let object = &json_lines(&place.oracle("ask --json --session b again").output().stdout)[0];
    let asked = object["events"].as_array().unwrap();
    let after = asked[0]["seq"].as_u64().unwrap() - 1;
    let line = format!("sessions events b --after {after}");
    assert_eq!(&objects(&place, &line), asked);
    let queries = objects(&place, "sessions events shop-1 --type query.");
    assert_eq!(queries.len(), 6);
    assert!(queries.iter().all(|event| all.contains(event)));
    assert_eq!(out(&place, "sessions events shop-1 --type nothing"), "");
    assert_eq!(out(&place, "sessions events shop-1 --after 9999"), "");
}

#[test]
fn export_contains_full_texts() {
    let place = Workspace::new(&[]);
    let long = "long ".repeat(4_000);
    place.oracle("ask --session s").arg(&long).output();
    let text_of = |line| objects(&place, line)[1]["payload"]["text"].clone();
    assert_eq!(text_of("sessions export s"), json!(long));
    let reference = json!({ "ref": { "seq": 2, "bytes": long.len() } });
    assert_eq!(text_of("sessions events s"), reference);
    numbered(&objects(&place, "sessions export s"));
}

#[test]
fn search_prints_hits_with_their_session() {
    let place = place();
    let hits = objects(&place, "sessions search PARSE invoice --json");
    assert!(!hits.is_empty());
    assert!(hits.iter().all(|hit| hit["session"] == "shop-1"));
    let first = hits[0]["seq"].as_u64().unwrap();
    let text = out(&place, "sessions search parse invoice --limit 1");
    assert!(text.starts_with(&format!("shop-1:{first}\t")), "{text}");
    assert_eq!(text.lines().count(), 1);
    let none = place.oracle("sessions search zanzibar").output();
    assert_eq!(none.stderr, b"oracle: no match\n");
    assert_eq!((none.stdout, none.status.code()), (vec![], Some(0)));
}

fn kept(folder: &Path, word: &str) -> bool {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    // A socket cannot be read.
    let mut texts = files.filter_map(|path| fs::read(path).ok());
    texts.any(|bytes| {
        bytes
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    })
}

#[test]
fn deleted_session_leaves_nothing_on_disk() {
    let place = place();
    let folder = place.data.path().join("oracle");
    place.oracle("ask --session s").arg("zanzibar").output();
    assert!(kept(&folder, "zanzibar"));
    let refused = place.oracle("sessions delete s").output();
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("confirm with --yes"), "{said}");
    assert!(kept(&folder, "zanzibar"));
    let told = out(&place, "sessions delete s --yes");
    assert_eq!(told, "deleted session `s`\n");
    assert!(!kept(&folder, "zanzibar"));
    let gone = place.oracle("sessions show s").output();
    assert_eq!(gone.status.code(), Some(1));
    assert_eq!(
        objects(&place, "sessions list --json").len(),
        3,
        "the others stay"
    );
    assert_eq!(out(&place, "journal verify"), "no corruption found\n");
}

const SLOW: &str = r#"{ "turns": [{ "reply": "zanzibar", "delay_ms": 600000 }] }"#;

#[test]
fn session_of_another_process_is_not_touched() {
    let place = Workspace::new(&[("slow.json", SLOW)]);
    let line = "ask --events --session s --model scripted/slow.json zanzibar";
    let mut asker = place.oracle(line).command().spawn().unwrap();
    let events = BufReader::new(asker.stdout.take().unwrap());
    let mut lines = events.lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("\"turn.started\"")));
    let state = |line| objects(&place, line)[0]["state"].clone();
    assert_eq!(state("sessions list --json"), "suspended");
    assert_eq!(state("sessions show s --json"), "calling");
    assert_eq!(objects(&place, "journal stats --json")[0]["running"], 1);
    for line in [
        "sessions delete s --yes",
        "ask --session s --busy reject invoices",
    ] {
        let output = place.oracle(line).output();
        assert_eq!(
            (output.stdout, output.status.code()),
            (vec![], Some(5)),
            "{line}"
        );
    }
    let kinds: Vec<Value> = objects(&place, "sessions events s");
    assert_eq!(
        kinds.last().unwrap()["type"],
        "turn.started",
        "nobody took it"
    );
    out(&place, "journal verify");
    // After its death the owner's records are still there and can be deleted.
    asker.kill().unwrap();
    asker.wait().unwrap();
    assert_eq!(state("sessions list --json"), "suspended");
    out(&place, "sessions delete s --yes --force");
    assert!(!kept(&place.data.path().join("oracle"), "zanzibar"));
}

#[test]
fn session_can_be_deleted_after_its_process_ended() {
    let place = Workspace::new(&[("slow.json", SLOW)]);
    let line = "ask --events --session s --model scripted/slow.json zanzibar";
    let mut asker = place.oracle(line).command().spawn().unwrap();
    let events = BufReader::new(asker.stdout.take().unwrap());
    let mut lines = events.lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("\"turn.started\"")));
    let refused = place.oracle("sessions delete s --yes --force").output();
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    asker.kill().unwrap();
    asker.wait().unwrap();
    out(&place, "sessions delete s --yes --force");
    assert!(!kept(&place.data.path().join("oracle"), "zanzibar"));
    let unknown = place.oracle("sessions show s").output();
    assert_eq!(unknown.status.code(), Some(1));
}

#[test]
fn last_option_continues_the_most_recent_session() {
    let place = place();
    let asked = |line: &str| {
        let output = place.oracle(line).stdin(b"invoices\n").output();
        let object = &json_lines(&output.stdout)[0];
        (object["session"].clone(), object["query"].clone())
    };
    assert_eq!(asked("ask --last --json invoices"), (json!("a"), json!(2)));
    assert_eq!(
        asked("ask --session b --json invoices"),
        (json!("b"), json!(2))
    );
    assert_eq!(asked("chat --last --json"), (json!("b"), json!(3)));
    // Sessions of another project do not count.
    let other = tempfile::tempdir().unwrap();
    let here = |line: &str| format!("{line} --project {}", other.path().display());
    let none = place.oracle(&here("ask --last invoices")).output();
    let error = String::from_utf8(none.stderr).unwrap();
    assert!(
        error.contains("this project has no earlier session"),
        "{error}"
    );
    let opened = asked(&here("ask --session c --json invoices"));
    assert_eq!(opened, (json!("c"), json!(1)));
    assert_eq!(asked("chat --last --json"), (json!("b"), json!(4)));
    assert_eq!(asked(&here("chat --last --json")), (json!("c"), json!(2)));
}

#[test]
fn a_question_with_a_key_is_asked_once() {
    let place = Workspace::new(&FILES);
    let ask = |question: &str| {
        let line = "ask --json --session s --idempotency-key k";
        place.oracle(line).arg(question).output()
    };
    let (first, second) = (ask(QUESTION), ask(QUESTION));
    assert_eq!(first.status.code(), Some(0));
    assert_eq!(first.stdout, second.stdout);
    let other = ask("invoices");
    assert_eq!((other.stdout, other.status.code()), (vec![], Some(1)));
    let said = String::from_utf8(other.stderr).unwrap();
    assert!(
        said.contains("`k` was already used for another message"),
        "{said}"
    );
    assert_eq!(
        objects(&place, "sessions events s --type query.accepted").len(),
        1
    );
}

#[test]
fn journal_stats_match_the_journal() {
    let place = place();
    let [stats] = &objects(&place, "journal stats --json")[..] else {
        panic!("not one object");
    };
    let listed = objects(&place, "sessions list --json");
    let records: u64 = listed
        .iter()
        .map(|one| one["records"].as_u64().unwrap())
        .sum();
    assert_eq!(
        (&stats["sessions"], &stats["records"]),
        (&json!(3), &json!(records))
    );
    assert_eq!(stats["kinds"]["query.accepted"], 4);
    assert!(out(&place, "journal stats").starts_with("sessions   3, 0 of them"));
    assert_eq!(
        objects(&place, "journal verify --json"),
        [json!({ "problems": [] })]
    );
}

#[test]
fn verify_names_a_tampered_record() {
    let place = place();
    let path = place.data.path().join("oracle/journal.db");
    // A write moves the rest of the log into the file.
    out(&place, "sessions delete a --yes");
    let mut bytes = fs::read(&path).unwrap();
    // Searches record the question too; the accepted message has it as its text.
    let accepted = format!("\"text\":\"{QUESTION}");
    let question = accepted.as_bytes();
    let at = bytes
        .windows(question.len())
        .position(|part| part == question);
    bytes[at.unwrap() + question.len() - 1] ^= 1;
    fs::write(&path, bytes).unwrap();
    let output = place.oracle("journal verify").output();
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(
        found.contains("session `default/shop-1` (1), record 2: "),
        "{found}"
    );
    assert_eq!(output.status.code(), Some(1));
    let json = json_lines(&place.oracle("journal verify --json").output().stdout);
    assert_eq!(json[0]["problems"][0]["session"], "default/shop-1");
    assert_eq!(json[0]["problems"][0]["seq"], 2);
    for (line, code) in [
        ("sessions show shop-1", 1),
        ("sessions events shop-1", 1),
        ("sessions show b", 0),
    ] {
        let output = place.oracle(line).output();
        assert_eq!(output.status.code(), Some(code), "{line}");
    }
    out(&place, "sessions list");
}

#[test]
fn sessions_commands_explain_their_failures() {
    let place = place();
    let other = |name: &str, bytes: &[u8]| {
        let folder = place.path(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("journal.db"), bytes).unwrap();
    };
    let mut newer = fs::read(place.data.path().join("oracle/journal.db")).unwrap();
    newer[60..64].copy_from_slice(&999_u32.to_be_bytes());
    other("newer", &newer);
    other(
        "text",
        b"not a database, but a text that is long enough to be taken for one",
    );
    fs::write(place.path("file"), "").unwrap();
    let lines = [
        "sessions show nobody",
        "sessions events nobody",
        "sessions export nobody",
        "sessions delete nobody --yes",
        "sessions release nobody",
        "sessions show system",
        "sessions events system",
        "sessions delete system --yes",
        "sessions release a",
        "sessions show a/b",
        "sessions",
        "sessions search",
        "sessions list --limit many",
        "sessions list --data-dir nowhere",
        "sessions search word --data-dir nowhere",
        "sessions show a --data-dir nowhere",
        "journal verify --data-dir nowhere",
        "journal stats --data-dir nowhere",
        "sessions list --data-dir file",
        "sessions list --data-dir newer",
        "journal verify --data-dir newer",
        "sessions list --data-dir text",
        "journal stats --data-dir text",
        "ask --last --session a invoices",
    ];
    assert_transcript!("sessions_refused", lines.map(|line| place.oracle(line)));
    assert!(!place.path("nowhere").exists(), "looking makes nothing");
    assert_eq!(fs::read(place.path("newer/journal.db")).unwrap(), newer);
    let nobody = Workspace::new(&[]);
    let last = ["ask --last invoices", "chat --last"].map(|line| nobody.oracle(line));
    assert_transcript!("last_of_none", last);
}

/// Appends facts to a session as another process would.
async fn append(place: &Workspace, session: &str, facts: Vec<Fact>) {
    let folder = place.data.path().join("oracle");
    let journal = Sqlite::open(&folder, Box::new(|why| panic!("{why}"))).unwrap();
    add(&journal, session, facts).await;
    journal.close().await;
}

fn name(session: &str) -> SessionKey {
    SessionKey::local(SessionName::new(session).unwrap())
}

async fn add(journal: &dyn Journal, session: &str, facts: Vec<Fact>) {
    let claim = journal.claim(name(session)).await.unwrap();
    // Later than anything that the program records.
    let at = Timestamp::from_millis(4_000_000_000_000);
    let record = |fact| Record::new(at, None, None, fact);
    let append = Append {
        sid: claim.sid,
        epoch: claim.epoch,
        after: claim.last,
        records: facts.into_iter().map(record).map(Arc::new).collect(),
        leaves: SessionStatus::Idle,
        charges: Vec::new(),
    };
    journal.append(append).await.unwrap();
}

fn opened(session: &str, parent: Option<&str>) -> Fact {
    let parent = parent.map(|name| Parent {
        session: SessionName::new(name).unwrap(),
        query: QueryId(1),
        depth: 1,
        tools: None,
    });
    Fact::from(SessionFact::Opened(Opened {
        key: SessionKey::local(SessionName::new(session).unwrap()),
        profile: ProfileName::oracle(),
        project: None,
        parent,
    }))
}

fn started(child: &str) -> Fact {
    Fact::from(AgentFact::DelegationStarted(ChildStart {
        child: SessionName::new(child).unwrap(),
        scope: "look".into(),
        max_tokens: None,
        max_cost: None,
        profile: None,
        tools: None,
    }))
}

#[tokio::test]
async fn sub_agents_are_deleted_with_their_parent_and_are_never_the_last_session() {
    let place = place();
    append(
        &place,
        "p",
        vec![opened("p", None), started("p.1.1"), started("p.1.2")],
    )
    .await;
    let child = vec![opened("p.1.1", Some("p")), started("p.1.1.1.1")];
    append(&place, "p.1.1", child).await;
    append(
        &place,
        "p.1.1.1.1",
        vec![opened("p.1.1.1.1", Some("p.1.1"))],
    )
    .await;
    assert_eq!(objects(&place, "sessions list --json").len(), 6);
    let last = &json_lines(&place.oracle("ask --last --json invoices").output().stdout)[0];
    assert_eq!(last["session"], "p");
    let told = out(&place, "sessions delete p --yes --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        told["sub_agents"], 2,
        "the one that never began is not counted"
    );
    assert_eq!(objects(&place, "sessions list --json").len(), 3);
}

#[tokio::test]
async fn released_session_leaves_quarantine() {
    let place = place();
    let reason = "it crashed while idle: boom".to_owned();
    let aside = Fact::from(SessionFact::Quarantined(Quarantined { reason }));
    append(&place, "b", vec![aside]).await;
    assert_eq!(
        objects(&place, "sessions show b --json")[0]["quarantine"],
        "it crashed while idle: boom"
    );
    let refused = place.oracle("ask --session b invoices").output();
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(
        out(&place, "sessions release b"),
        "session `b` was released from quarantine; it was quarantined because: it crashed while \
         idle: boom\n"
    );
    out(&place, "ask --session b invoices");
    assert_eq!(
        objects(&place, "sessions show b --json")[0]["state"],
        "idle"
    );
}
