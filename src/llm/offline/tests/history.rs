//! Questions about the history that ask for one commit, for somebody's, for those among the last ones, or go
//! on from one before.

use super::{interests::all_tools, *};

pub(super) const LOG: &str = "\
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

pub(super) fn with_all_arguments() -> Vec<ToolSpec> {
    let mut tools = all_tools();
    for tool in &mut tools {
        if tool.name == "history_search" {
            let properties = &mut tool.schema["properties"];
            properties["author"] = json!({"type": "string"});
            properties["oldest_first"] = json!({"type": "boolean"});
            properties["commit"] = json!({"type": "string"});
            properties["skip"] = json!({"type": "integer"});
            properties["line"] = json!({"type": "string"});
            properties["by_author"] = json!({"type": "boolean"});
        }
    }
    tools
}

/// What is said to the last question, the calls for it first.
pub(super) fn told(questions: &[&str], answer: impl Fn(&str) -> String) -> (Vec<String>, String) {
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
            "what was changed in any way",
            &["who changed open_session?"],
            r#"{"line":"open_session"}"#,
            "The latest commit about “open_session” is `1a2b3c4`",
        ),
        (
            "what came",
            &["who added open_session?"],
            r#"{"max_results":50,"text":"open_session"}"#,
            "The first commit about “open_session” is `5c5c5c5`",
        ),
        (
            "what went",
            &["when was open_session removed?"],
            r#"{"text":"open_session"}"#,
            "",
        ),
        (
            "by whom, of the latest days",
            &[
                "what changed in February 2024?",
                "and in March 2024?",
                "by whom?",
            ],
            r#"{"by_author":true,"max_results":20,"since":"2024-03-01","until":"2024-03-31"}"#,
            "",
        ),
        (
            "no more than was told",
            &["what changed last week?", "show me more"],
            r#"{"max_results":20,"since":"1 week ago","skip":3}"#,
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
fn who_made_commits_is_told_by_their_numbers() {
    const OF_ALL: &str = "40 commits by Ann Lee\n2 commits by Bo\n\nall 2 authors of 42 commits";
    for (name, questions, call, answer, says, signal) in [
        (
            "of all",
            &["who committed most?"][..],
            r#"{"by_author":true,"max_results":20}"#,
            OF_ALL,
            "Ann Lee made the most commits: 40 of 42. All 2 authors:\n\n- Ann Lee: 40\n- Bo: 2\n",
            "context_sufficient",
        ),
        (
            "contributors",
            &["who are the contributors?"],
            r#"{"by_author":true,"max_results":20}"#,
            OF_ALL,
            "- Bo: 2",
            "context_sufficient",
        ),
        (
            "no more than were told",
            &["who committed most?", "show me more"],
            r#"{"by_author":true,"max_results":20}"#,
            OF_ALL,
            "There are no more authors of commits than those that I told of before.",
            "context_sufficient",
        ),
        (
            "of other days",
            &["who committed most in 2024?", "and in 2025?"],
            r#"{"by_author":true,"max_results":20,"since":"2025-01-01","until":"2025-12-31"}"#,
            "3 commits by Bo\n\nall 1 author of 3 commits since `2025-01-01` until `2025-12-31`",
            "All 3 commits from 2025-01-01 to 2025-12-31 are by Bo.",
            "context_sufficient",
        ),
        (
            "of a file",
            &["who changed src/cache.rs most often?"],
            r#"{"by_author":true,"max_results":20,"path":"src/cache.rs"}"#,
            "1 commit by Ann\n1 commit by Bo\n\nall 2 authors of 2 commits that changed `src/cache.rs`",
            "2 authors made the most commits about “src/cache.rs”, 1 each of 2.",
            "context_sufficient",
        ),
        (
            "the first of many",
            &["top 2 contributors"],
            r#"{"by_author":true,"max_results":2}"#,
            "9 commits by Ann\n8 commits by Bo\n\nthe first 2 of 5 authors of 20 commits",
            "- Bo: 8\n- … and 3 more",
            "context_sufficient",
        ),
        (
            "the first of some who made as many",
            &["top 2 contributors"],
            r#"{"by_author":true,"max_results":2}"#,
            "2 commits by Ann\n2 commits by Bo\n\nthe first 2 of 3 authors of 6 commits",
            "At least 2 authors made the most commits, 2 each of 6. The first 2 of 3 authors:",
            "context_sufficient",
        ),
        (
            "the first of some who cannot have made as many",
            &["top 2 contributors"],
            r#"{"by_author":true,"max_results":2}"#,
            "2 commits by Ann\n2 commits by Bo\n\nthe first 2 of 3 authors of 5 commits",
            "2 authors made the most commits, 2 each of 5. The first 2 of 3 authors:",
            "context_sufficient",
        ),
        (
            "one who may have equals",
            &["top 1 contributor"],
            r#"{"by_author":true,"max_results":1}"#,
            "2 commits by Ann\n\nthe first 1 of 3 authors of 6 commits",
            "Nobody made more commits than Ann: 2 of 6.",
            "context_sufficient",
        ),
        (
            "somebody without a name",
            &["who committed most?"],
            r#"{"by_author":true,"max_results":20}"#,
            "2 commits by Ann\n1 commit by \n\nall 2 authors of 3 commits",
            "- Ann: 2\n- (no name): 1",
            "context_sufficient",
        ),
        (
            "more names than are read",
            &["who committed most?"],
            r#"{"by_author":true,"max_results":20}"#,
            "9 commits by Ann\n\nall 1 author of 9 commits; too many names to read: older commits were not looked at",
            "Missing: older commits, which were not looked at.",
            "partial_answer",
        ),
        (
            "as far as they were looked at",
            &["who committed most?"],
            r#"{"by_author":true,"max_results":20}"#,
            "9 commits by Ann\n\nall 1 author of 9 commits; stopped at the deadline: older commits were not looked at",
            "Missing: older commits, which were not looked at.",
            "partial_answer",
        ),
        (
            "none",
            &["who committed most in 2031?"],
            r#"{"by_author":true,"max_results":20,"since":"2031-01-01","until":"2031-12-31"}"#,
            "no commit since `2031-01-01` until `2031-12-31`",
            "There is no commit from 2031-01-01 to 2031-12-31.",
            "context_sufficient",
        ),
    ] {
        let (calls, text) = told(questions, |_| answer.to_owned());
        assert_eq!(calls, [format!("history_search {call}")], "{name}: {text}");
        assert!(text.contains(says), "{name}: {text}");
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
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
            "There are no more commits since 1 week ago than those that I told of before.",
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

pub(super) const ONE: &str = "\
commit 1a2b3c4 2024-03-01T10:00:00+01:00 Ann Lee
    Evict by age
    It was full.
  changed 2 files: +12 -3
  +12 -3 src/cache.rs
  binary docs/a.png

the commit that `1a2b3c4` names";

#[test]
fn a_single_commit_is_told_with_its_files() {
    let latest = [
        r#"history_search {"max_results":1}"#,
        r#"history_search {"commit":"1a2b3c4"}"#,
    ];
    let named = [r#"history_search {"commit":"1a2b3c4"}"#];
    let files = "of 2024-03-01 by Ann Lee: “Evict by age”.\n\n> It was full.\n\nIt changed 2 files, +12 -3 lines:\n\
                 - `src/cache.rs` +12 -3\n- `docs/a.png` binary";
    for (questions, calls, begins) in [
        (
            &["what did the last commit change?"][..],
            &latest[..],
            "The latest commit is `1a2b3c4`",
        ),
        (
            &["was hat der letzte Commit geändert?"],
            &latest,
            "The latest commit is",
        ),
        (
            &["qu'est-ce que le dernier commit a changé ?"],
            &latest,
            "The latest commit is",
        ),
        (
            &["¿qué cambió el último commit?"],
            &latest,
            "The latest commit is",
        ),
        (
            &["show me the last commit"],
            &latest,
            "The latest commit is",
        ),
        (
            &["what did commit 1A2B3C4 change?"],
            &named,
            "This is commit `1a2b3c4`",
        ),
        (&["show me commit `1a2b3c4`"], &named, "This is commit"),
        (&["commit 1a2b3c4"], &named, "This is commit"),
        (&["who wrote 1a2b3c4?"], &named, "This is commit"),
        (
            &["was hat Commit 1a2b3c4 geändert?"],
            &named,
            "This is commit",
        ),
        (
            &["what did commit 1a2b3c4 change?", "who wrote it?"],
            &named,
            "This is commit",
        ),
        (
            &["what did the last commit change?", "and before that?"],
            &[
                r#"history_search {"max_results":1,"skip":1}"#,
                r#"history_search {"commit":"1a2b3c4"}"#,
            ],
            "The commit before that is",
        ),
    ] {
        let (made, text) = told(questions, |arguments| {
            match arguments.contains("\"commit\"") {
                true => ONE.to_owned(),
                false => format!("{LOG}the newest 3 commits; there are more: narrow the search"),
            }
        });
        assert_eq!(made, calls, "{questions:?}: {text}");
        assert!(text.starts_with(begins), "{questions:?}: {text}");
        assert!(text.contains(files), "{questions:?}: {text}");
    }
}

#[test]
fn what_a_hash_does_not_name_is_told() {
    for (said, holds) in [
        (
            "no commit has a hash that begins with `abcd123`".to_owned(),
            "There is no commit `abcd123` here",
        ),
        (
            "no commit has a hash that begins with `abcd123`; the clone is shallow: older"
                .to_owned(),
            "in this clone, which is shallow",
        ),
        (
            "the commit `abcd123` changed nothing in this folder".to_owned(),
            "The commit `abcd123` changed nothing in this folder",
        ),
        (
            format!("{LOG}3 commits have hashes that begin with `abcd123`: give more digits"),
            "Some of them:\n\n- `1a2b3c4` of",
        ),
        (
            "many hashes begin with `abcd123`: give more digits".to_owned(),
            "`abcd123` begins the hashes of several commits",
        ),
    ] {
        let (calls, text) = told(&["what did commit abcd123 change?"], |_| said.clone());
        assert_eq!(calls, [r#"history_search {"commit":"abcd123"}"#]);
        assert_eq!(ends_with(&text), "partial_answer", "{text}");
        assert!(text.contains(holds), "{text}");
    }
}

#[test]
fn what_comes_next_is_not_the_same_again() {
    const OLDER: &str = "\
commit 5c5c5c5 2024-02-01T09:00:00+01:00 Bo
    Start

commit 4b4b4b4 2024-01-31T09:00:00+01:00 Bo
    Before all

";
    for (questions, call, begins) in [
        (
            &["what changed last week?", "zeig mir mehr"][..],
            r#"{"max_results":20,"since":"1 week ago","skip":3}"#,
            "The next commit since 1 week ago, which is the last one:\n\n- `4b4b4b4`",
        ),
        (
            &["show me the last 3 commits", "show me more"],
            r#"{"max_results":3,"skip":3}"#,
            "The next commit, which is the last one:",
        ),
        (
            &["who changed the cache?", "show me more"],
            r#"{"max_results":20,"query":"cach","skip":2}"#,
            "The next commit about “cache”, which is the last one:",
        ),
        (
            &[
                "what changed last week?",
                "and in February 2024?",
                "show me more",
            ],
            r#"{"max_results":20,"since":"2024-02-01","skip":3,"until":"2024-02-29"}"#,
            "The next commit from 2024-02-01 to 2024-02-29, which is the last one:",
        ),
    ] {
        let (calls, text) = told(questions, |arguments| {
            match arguments.contains("\"skip\"") {
                true => format!("{OLDER}the last 2 commits behind the newest 3 commits"),
                false => format!("{LOG}all 3 commits"),
            }
        });
        assert_eq!(calls, [format!("history_search {call}")], "{text}");
        assert!(text.starts_with(begins), "{questions:?}: {text}");
        assert!(!text.contains("`5c5c5c5`"), "{questions:?}: {text}");
    }
    // Where none came behind them, nothing else is looked for.
    let (calls, text) =
        told(
            &["who changed the cache?", "show me more"],
            |arguments| match arguments.contains("\"skip\"") {
                true => {
                    "no commit with `cach` in the message behind the newest 3 commits".to_owned()
                }
                false => format!("{LOG}all 3 commits with `cach` in the message"),
            },
        );
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert!(
        text.starts_with("There are no more commits about “cache”"),
        "{text}"
    );
}

#[test]
fn a_word_with_a_capital_is_an_author_only_if_there_is_one() {
    for (name, question, known, calls, begins) in [
        (
            "no author",
            "what did Session change?",
            false,
            &[
                r#"{"author":"Session"}"#,
                r#"{"query":"session"}"#,
                r#"{"line":"Session"}"#,
            ][..],
            "No commit is by anybody called “Session”, so I looked for the word. The latest commit about “Session”",
        ),
        (
            "no author, of some days",
            "what did Session change last week?",
            false,
            &[
                r#"{"author":"Session","max_results":20,"since":"1 week ago"}"#,
                r#"{"author":"Session","max_results":1}"#,
                r#"{"max_results":20,"query":"session","since":"1 week ago"}"#,
                r#"{"line":"Session","max_results":20,"since":"1 week ago"}"#,
            ],
            "No commit is by anybody called “Session”, so I looked for the word. There are 3 commits about “Session”",
        ),
        (
            "an author, but not of those days",
            "what did Ann change last week?",
            true,
            &[
                r#"{"author":"Ann","max_results":20,"since":"1 week ago"}"#,
                r#"{"author":"Ann","max_results":1}"#,
            ],
            "There is no commit by Ann since 1 week ago.",
        ),
        (
            "who is surely meant",
            "commits by Session",
            false,
            &[r#"{"author":"Session"}"#],
            "There is no commit by Session.",
        ),
    ] {
        let (made, text) = told(&[question], |arguments| {
            let is_of_author = arguments.contains("\"author\"");
            let is_found = match is_of_author {
                true => known && !arguments.contains("since"),
                false => arguments.contains("\"query\""),
            };
            match is_found {
                true => format!("{LOG}all 3 commits"),
                false => "no commit by `Session`".to_owned(),
            }
        });
        let calls: Vec<String> = calls
            .iter()
            .map(|call| format!("history_search {call}"))
            .collect();
        assert_eq!(made, calls, "{name}: {text}");
        assert!(text.starts_with(begins), "{name}: {text}");
    }
}
