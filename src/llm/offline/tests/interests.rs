//! Questions about the whole, about what happened and about what was noted: other tools than the
//! search are asked, and what they say is told.

use super::*;

const LOG: &str = "\
commit 1a2b3c4 2026-03-01T10:00:00+01:00 Ann Lee
    Evict by age, not by size

    Size says nothing about use.
  changed: src/cache.rs

commit 9f8e7d6 2025-11-02T09:00:00+01:00 Bo <b@x>
    Add the cache
  changed: src/cache.rs, src/lib.rs

all 2 commits with `cache` in the message";

const MAP: &str = "\
4 files, 3 with an outline
./ README.md
docs/ budgets.md
src/ cache.rs, session.rs

src/session.rs:4: pub fn open_session(name: &str) -> Session
src/session.rs:10: pub struct Session

src/cache.rs:2: pub fn evict(cache: &mut Cache)

3 of 3 symbols in 2 of 4 files";

const README: &str = "# Shop\n\nA shop that sells by the hour.\n\n## Install\n\nDo it.\n";

const NOTED: &str = "\
docs/adr/0003.md:5: Sessions are kept in SQLite.
  in \"Store › Decision\" · lines 3–5 · decision · accepted · 2025-06-01
  words found: sessions, SQLite

all that fits is shown; 2 sections in 1 note searched";

const RECORD: &str = "# Store\n\n## Decision\n\nSessions are kept in SQLite.\n";

fn answer(call: &ToolCall) -> (ToolStatus, String) {
    let arguments = call.parsed().unwrap();
    let text = |name: &str| arguments[name].as_str().unwrap_or("").to_owned();
    let found = match call.name.as_str() {
        "history_search" if text("query").contains("zygot") => {
            "no commit with `zygote` in the message".to_owned()
        }
        "history_search" => LOG.to_owned(),
        "repo_map" => MAP.to_owned(),
        "note_search" if text("query").contains("cache") => "nothing fits".to_owned(),
        "note_search" => NOTED.to_owned(),
        "note_read" => listing("docs/adr/0003.md", RECORD),
        "file_read" if text("path") == "README.md" => listing("README.md", README),
        _ => return project().answer(call),
    };
    (ToolStatus::Ok, found)
}

fn all_tools() -> Vec<ToolSpec> {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let with = |name: &str, properties: Value| spec(name, json!({"properties": properties}));
    let mut all = tools();
    all.extend([
        with(
            "history_search",
            json!({"query": text, "path": text, "text": text, "max_results": number}),
        ),
        with("repo_map", json!({"focus": text, "max_tokens": number})),
        with("note_search", json!({"query": text})),
        with("note_read", json!({"note": text, "start_line": number})),
    ]);
    all
}

fn asked(questions: &[&str]) -> (String, Run) {
    let mut run = Run::new(all_tools());
    let mut last = String::new();
    for question in questions {
        run.calls.clear();
        run.say(Role::User, question);
        last = run.finish(answer);
    }
    (last, run)
}

#[test]
fn each_interest_asks_its_tools_first_and_tells_what_they_say() {
    for (name, questions, calls, signal, holds) in [
        (
            "who began",
            &["when was the cache added?"][..],
            vec![
                r#"history_search {"max_results":50,"query":"cach"}"#,
                r#"code_search {"context":2"#,
            ],
            "context_sufficient",
            &[
                "The first commit about “cache” is `9f8e7d6` of 2025-11-02 by Bo ‹b@x›: “Add the cache” (src/cache.rs, src/lib.rs).",
                "The others:\n- `1a2b3c4` of 2026-03-01 by Ann Lee: “Evict by age, not by size” (src/cache.rs)",
                "[\"history\"]",
            ][..],
        ),
        (
            "who was last, and why",
            &["who last changed src/cache.rs?"],
            vec![r#"history_search {"path":"src/cache.rs"}"#],
            "context_sufficient",
            &[
                "The latest commit about “src/cache.rs” is `1a2b3c4`",
                "> Size says nothing about use.",
            ],
        ),
        (
            "a name is looked for where it came and went",
            &["which commit introduced open_session?"],
            vec![r#"history_search {"max_results":50,"text":"open_session"}"#],
            "context_sufficient",
            &["`9f8e7d6`"],
        ),
        (
            "the last ones of all",
            &["show me the latest commits"],
            vec!["history_search {}"],
            "context_sufficient",
            &["The latest commit is `1a2b3c4`"],
        ),
        (
            "it is what was asked about before",
            &["where is the cache?", "and who wrote it?"],
            vec![r#"history_search {"max_results":50,"query":"cach"}"#],
            "context_sufficient",
            &["The first commit about “cache”"],
        ),
        (
            "no commit, no file",
            &["when was the zygote added?"],
            vec![r#"history_search {"max_results":50,"query":"zygot"}"#],
            "stuck",
            &[
                "I found nothing about “zygote”",
                "- history_search for “zygot”: nothing",
            ],
        ),
        (
            "the whole",
            &["What is this project about?"],
            vec![
                r#"repo_map {"max_tokens":1500}"#,
                r#"file_read {"path":"README.md"}"#,
            ],
            "context_sufficient",
            &[
                "What it says of itself is in README.md:1-3.",
                "README.md:1-3\n```markdown\n# Shop\n\nA shop that sells by the hour.\n```",
                "Its folders:\n```\n./ README.md\ndocs/ budgets.md",
                "Where to read on: src/cache.rs:2, src/session.rs:4.",
            ],
        ),
        (
            "a part of the whole",
            &["Give me an overview of the cache"],
            vec![
                r#"repo_map {"focus":"cache","max_tokens":1500}"#,
                r#"code_search {"context":2"#,
            ],
            "context_sufficient",
            &["src/cache.rs:1-4"],
        ),
        (
            "nothing was decided",
            &["What was decided about evicting the cache?"],
            vec![],
            "partial_answer",
            &["I found no note about it. The closest match is"],
        ),
        (
            "what was decided",
            &["What was decided about sessions and SQLite?"],
            vec![r#"note_search {"query":"What was decided about sessions and SQLite?"}"#],
            "context_sufficient",
            &["The closest match is in docs/adr/0003.md:3-5 (decision, accepted, 2025-06-01)"],
        ),
    ] {
        let (text, run) = asked(questions);
        for (at, call) in calls.iter().enumerate() {
            let made = run.calls.get(at).map_or("none", String::as_str);
            assert!(made.starts_with(call), "{name}: {:#?}", run.calls);
        }
        for piece in holds {
            assert!(text.contains(piece), "{name}: no {piece:?} in {text}");
        }
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
    }
}

#[test]
fn a_history_that_is_cut_has_no_first_commit() {
    let mut run = Run::new(all_tools());
    run.say(Role::User, "when was the cache added?");
    let text = run.finish(|call| match call.name.as_str() {
        "history_search" => {
            let cut = LOG.replace("all 2 commits", "the newest 2 commits; there are more");
            (ToolStatus::Ok, cut)
        }
        _ => answer(call),
    });
    assert!(
        text.contains("The oldest shown commit about “cache”"),
        "{text}"
    );
    assert_eq!(ends_with(&text), "partial_answer", "{text}");
}

#[test]
fn where_there_is_no_repository_the_files_answer() {
    let mut run = Run::new(all_tools());
    run.say(Role::User, "who wrote evict?");
    let text = run.finish(|call| match call.name.as_str() {
        "history_search" => (ToolStatus::Failed, "this is no git repository".to_owned()),
        _ => answer(call),
    });
    assert!(
        text.starts_with("I found no commit about it. The closest match"),
        "{text}"
    );
}

#[test]
fn an_order_says_what_it_takes() {
    let (text, run) = asked(&["Write a note about the cache"]);
    assert!(
        text.contains("“Write a note about the cache” takes a configured model")
            && text.contains("waits for your approval"),
        "{text}"
    );
    assert!(
        run.calls.iter().all(|call| !call.starts_with("note_")),
        "{:#?}",
        run.calls
    );
}
