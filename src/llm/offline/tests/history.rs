//! Questions about the history that ask for one commit, for somebody's, for those among the last ones, or go
//! on from one before.

use super::{interests::all_tools, *};

const LOG: &str = "\
commit 1a2b3c4 2024-03-01T10:00:00+01:00 Ann Lee
    Evict by age
  changed: src/cache.rs

commit 9f8e7d6 2024-02-02T09:00:00+01:00 Bo
    Add a retry
  changed: src/net.rs, src/a.rs and 23 more

commit 5c5c5c5 2024-02-01T09:00:00+01:00 Bo
    Start
  changed: src/lib.rs

";

fn with_all_arguments() -> Vec<ToolSpec> {
    let mut tools = all_tools();
    for tool in &mut tools {
        if tool.name == "history_search" {
            let properties = &mut tool.schema["properties"];
            properties["author"] = json!({"type": "string"});
            properties["oldest_first"] = json!({"type": "boolean"});
        }
    }
    tools
}

/// What is said to the last question, the calls for it first.
fn told(questions: &[&str], answer: impl Fn(&str) -> String) -> (Vec<String>, String) {
    let mut run = Run::new(with_all_arguments());
    let mut last = String::new();
    for question in questions {
        run.calls.clear();
        run.say(Role::User, question);
        last = run.finish(|call| match call.name.as_str() {
            "history_search" => (ToolStatus::Ok, answer(&call.arguments)),
            _ => (
                ToolStatus::Ok,
                "nothing found for `x`; 9 files searched".to_owned(),
            ),
        });
    }
    let mut calls = run.calls;
    calls.retain(|call| call.starts_with("history_search"));
    (calls, last)
}

#[test]
fn the_history_is_asked_for_what_a_question_says_of_it() {
    for (name, questions, call, begins) in [
        (
            "the first of some days",
            &["what was the first commit after 2024-02-01?"][..],
            r#"{"max_results":1,"oldest_first":true,"since":"2024-02-02"}"#,
            "The first commit since 2024-02-02 is",
        ),
        (
            "the last of some days",
            &["when was the last commit before 2025?"],
            r#"{"max_results":1,"until":"2024-12-31"}"#,
            "The latest commit until 2024-12-31 is `1a2b3c4`",
        ),
        (
            "the first of all",
            &["what was the first commit?"],
            r#"{"max_results":50,"oldest_first":true}"#,
            "The first commit is",
        ),
        (
            "somebody's, counted",
            &["how many commits did Ann make?"],
            r#"{"author":"Ann","count":true,"max_results":3}"#,
            "There are 3 commits by Ann:",
        ),
        (
            "somebody's, of some days",
            &["what did Ann Lee change in 2024?"],
            r#"{"author":"Ann Lee","max_results":20,"since":"2024-01-01","until":"2024-12-31"}"#,
            "There are 3 commits by Ann Lee from 2024-01-01 to 2024-12-31",
        ),
        (
            "by somebody",
            &["commits by Bob since 2025"],
            r#"{"author":"Bob","max_results":20,"since":"2025-01-01"}"#,
            "There are 3 commits by Bob since 2025-01-01",
        ),
        (
            "among the last ones",
            &["which of the last 20 commits touched the cache?"],
            r#"{"max_results":20}"#,
            "One of all 3 commits has “cache” in the message or among its files:\n\n- `1a2b3c4`",
        ),
        (
            "somebody's among the last ones",
            &["which of the last 20 commits did Bo make?"],
            r#"{"max_results":20}"#,
            "2 of all 3 commits are by Bo:\n\n- `9f8e7d6`",
        ),
        (
            "in French",
            &[
                "qu'est-ce qui a changé la semaine dernière ?",
                "et hier ?",
                "et en mars 2024 ?",
            ],
            r#"{"max_results":20,"since":"2024-03-01","until":"2024-03-31"}"#,
            "There are 3 commits from 2024-03-01 to 2024-03-31",
        ),
        (
            "the last ones to something",
            &["show me the last 20 commits to the cache"],
            r#"{"max_results":20,"query":"cach"}"#,
            "There are 3 commits",
        ),
        (
            "other days",
            &[
                "what changed in the cache last week?",
                "and in February 2024?",
            ],
            r#"{"max_results":20,"query":"cach","since":"2024-02-01","until":"2024-02-29"}"#,
            "There are 3 commits",
        ),
        (
            "other days once more",
            &[
                "how many commits by Bob in 2023?",
                "and in February 2024?",
                "what about last week?",
            ],
            r#"{"author":"Bob","count":true,"max_results":3,"since":"1 week ago"}"#,
            "There are 3 commits by Bob since 1 week ago:",
        ),
        (
            "an opener is no word of it",
            &["Did anything change yesterday?"],
            r#"{"max_results":20,"since":"yesterday","until":"yesterday"}"#,
            "There are 3 commits of yesterday",
        ),
        (
            "longer ago than is counted",
            &["what changed in the last 500 years?"],
            r#"{"max_results":20}"#,
            "There are 3 commits since 500 years ago",
        ),
        (
            "no more than was told",
            &["what changed last week?", "show me more"],
            r#"{"max_results":20,"since":"1 week ago"}"#,
            "There are no more commits since 1 week ago than those that I told of before.",
        ),
    ] {
        let (calls, text) = told(questions, |_| format!("{LOG}all 3 commits"));
        let first = calls.first().map_or("none", String::as_str);
        assert_eq!(first, format!("history_search {call}"), "{name}: {text}");
        assert!(text.starts_with(begins), "{name}: {text}");
    }
}

#[test]
fn what_a_history_leaves_open_is_missing() {
    let newest = |_: &str| format!("{LOG}the newest 3 commits; there are more: narrow the search");
    for (name, questions, log, signal, holds) in [
        (
            "files that were not named",
            &["which of the last 3 commits touched src/b.rs?"][..],
            newest as fn(&str) -> String,
            "partial_answer",
            "None of the newest 3 commits has “src/b.rs”",
        ),
        (
            "more than are shown, asked for more",
            &["what changed last week?", "show me more"],
            newest,
            "partial_answer",
            "There are more commits since 1 week ago, but I tell of the newest ones alone",
        ),
        (
            "an old git, and nothing",
            &["what changed yesterday?"],
            |_| "no commit since `yesterday`; this git stops at a commit dated before".to_owned(),
            "partial_answer",
            "I found no commit of yesterday.",
        ),
        (
            "what was asked for says nothing of the search",
            &["when was \"x; stopped at the deadline; there are more\" added?"],
            |_| {
                format!(
                    "{LOG}all 3 commits that added or removed `x; stopped at the deadline; there are more`"
                )
            },
            "context_sufficient",
            "The first commit about",
        ),
        (
            "the oldest ones were shown, and newer ones are there",
            &["what was the first commit?"],
            |_| format!("{LOG}the oldest 3 commits; there are more: narrow the search"),
            "context_sufficient",
            "The first commit is `1a2b3c4`",
        ),
    ] {
        let (_, text) = told(questions, log);
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert!(text.contains(holds), "{name}: {text}");
    }
}

#[test]
fn what_no_message_says_is_looked_for_in_what_was_changed() {
    let (calls, text) = told(&["when was tenrec removed?"], |arguments| {
        match arguments.contains("\"text\"") {
            true => format!("{LOG}all 3 commits that added or removed `tenrec`"),
            false => "no commit with `tenrec` in the message".to_owned(),
        }
    });
    assert_eq!(
        calls,
        [
            r#"history_search {"query":"tenrec"}"#,
            r#"history_search {"text":"tenrec"}"#
        ]
    );
    assert!(
        text.contains("The latest commit about “tenrec” is `1a2b3c4`"),
        "{text}"
    );
}
