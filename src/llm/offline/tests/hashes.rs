//! Questions that name commits by their hashes, what is no commit, and those that go on before some days.

use super::{
    history::{LOG, ONE, told, with_all_arguments},
    *,
};

const SHALLOW: &str = "; the clone is shallow: older commits are not here";

fn asked(calls: &[&str]) -> Vec<String> {
    let named = calls.iter().map(|call| format!("history_search {call}"));
    named.collect()
}

#[test]
fn commits_are_told_behind_one_and_before_it() {
    for (questions, call, begins) in [
        (
            &["what changed since 1a9e23a?"][..],
            r#"{"max_results":20,"since":"1a9e23a"}"#,
            "There are 3 commits since 1a9e23a",
        ),
        (
            &["how many commits since 0d491c0?"],
            r#"{"count":true,"max_results":3,"since":"0d491c0"}"#,
            "There are 3 commits since 0d491c0:",
        ),
        (
            &["what changed before 3477bff?"],
            r#"{"max_results":20,"until":"the commit before 3477bff"}"#,
            "There are 3 commits until the commit before 3477bff",
        ),
        (
            &["what changed between 1a9e23a and 3477bff?"],
            r#"{"max_results":20,"since":"1a9e23a","until":"3477bff"}"#,
            "There are 3 commits between 1a9e23a and 3477bff, the newer one included",
        ),
        (
            &["which commits came after 1a9e23a?"],
            r#"{"max_results":20,"since":"1a9e23a"}"#,
            "There are 3 commits since 1a9e23a",
        ),
        (
            &["who changed the cache since 1a9e23a?"],
            r#"{"max_results":20,"query":"cach","since":"1a9e23a"}"#,
            "There are 3 commits about “cache” since 1a9e23a",
        ),
        (
            &["what changed since 1a9e23a?", "and before that?"],
            r#"{"max_results":20,"until":"1a9e23a"}"#,
            "There are 3 commits until 1a9e23a",
        ),
    ] {
        let (calls, text) = told(questions, |_| format!("{LOG}all 3 commits"));
        assert_eq!(calls, asked(&[call]), "{questions:?}: {text}");
        assert!(text.starts_with(begins), "{questions:?}: {text}");
        assert_eq!(ends_with(&text), "context_sufficient", "{text}");
    }
}

#[test]
fn what_is_open_about_commits_that_bound_others_is_missing() {
    for (said, holds) in [
        (
            "no commit has a hash that begins with `1a9e23a`".to_owned(),
            "There is no commit `1a9e23a` here",
        ),
        (
            "many hashes begin with `1a9e23a`: give more digits".to_owned(),
            "`1a9e23a` begins the hashes of several commits",
        ),
        (
            format!("{LOG}all 3 commits since `1a9e23a`"),
            "There are 3 commits since 1a9e23a",
        ),
        (
            format!(
                "{LOG}all 3 commits since `1a9e23a`; the commit `1a9e23a` is not among those before them: these"
            ),
            "is on another branch",
        ),
    ] {
        let (calls, text) = told(&["show me the differences since commit 1a9e23a"], |_| {
            said.clone()
        });
        assert_eq!(calls.len(), 1, "{calls:?}");
        assert_eq!(ends_with(&text), "partial_answer", "{text}");
        assert!(text.contains(holds), "{text}");
    }
}

#[test]
fn before_some_days_come_those_that_are_older() {
    for (questions, call, begins) in [
        (
            &[
                "what was the first commit since 2026-11-14?",
                "and before that?",
            ][..],
            r#"{"max_results":1,"until":"2026-11-13"}"#,
            "The latest commit until 2026-11-13 is",
        ),
        (
            &["how many commits since 2026-11-12?", "and before that?"],
            r#"{"max_results":20,"until":"2026-11-11"}"#,
            "There are 3 commits until 2026-11-11",
        ),
        (
            &["what changed last week?", "and before that?"],
            r#"{"max_results":20,"until":"8 days ago"}"#,
            "There are 3 commits until 8 days ago",
        ),
        (
            &[
                "what changed last week?",
                "show me more",
                "and before that?",
            ],
            r#"{"max_results":20,"until":"8 days ago"}"#,
            "There are 3 commits until 8 days ago",
        ),
        (
            &[
                "what changed last week?",
                "and before that?",
                "and before that?",
            ],
            r#"{"max_results":20,"skip":3,"until":"8 days ago"}"#,
            "",
        ),
        (
            &["what changed in the last 2 months?", "and before that?"],
            r#"{"max_results":20,"until":"the day before 2 months ago"}"#,
            "There are 3 commits until the day before 2 months ago",
        ),
    ] {
        let (calls, text) = told(questions, |_| format!("{LOG}all 3 commits"));
        assert_eq!(calls, asked(&[call]), "{questions:?}: {text}");
        assert!(text.starts_with(begins), "{questions:?}: {text}");
    }
}

#[test]
fn what_is_no_commit_is_looked_for_in_the_files() {
    let hash = "d41d8cd98f00b204e9800998ecf8427e";
    for (question, is_asked_first) in [
        (format!("what did {hash} change?"), true),
        (hash.to_owned(), true),
        (format!("where is the hash {hash} used?"), false),
        (format!("where is sha1 {hash} changed?"), false),
    ] {
        let mut run = Run::new(with_all_arguments());
        run.say(Role::User, &question);
        let text = run.finish(|call| match call.name.as_str() {
            "history_search" => (
                ToolStatus::Ok,
                format!("no commit has a hash that begins with `{hash}`"),
            ),
            _ => (
                ToolStatus::Ok,
                format!("src/sums.rs:3: const EMPTY: &str = \"{hash}\";"),
            ),
        });
        let of_history = run.calls.iter().any(|it| it.starts_with("history_search"));
        assert_eq!(of_history, is_asked_first, "{question}: {:?}", run.calls);
        let is_searched = |it: &String| !it.starts_with("history_search") && it.contains(hash);
        assert!(
            run.calls.iter().any(is_searched),
            "{question}: {:?}",
            run.calls
        );
        let lead =
            format!("No commit has a hash that begins with “{hash}”, so I looked in the files. ");
        assert_eq!(text.contains(&lead), is_asked_first, "{question}: {text}");
        assert!(text.contains("src/sums.rs:3"), "{question}: {text}");
    }
}

#[test]
fn of_one_commit_it_is_told_what_is_not_known() {
    let begun = "commit 1a2b3c4 2024-03-01T10:00:00+01:00 Ann Lee\n    Evict by age\n\nthe commit that `1a2b3c4` names";
    let boundary =
        format!("{begun}; the shallow clone begins with it, so that what it changed{SHALLOW}");
    let cut =
        ONE.replace("changed 2", "changed at least 2") + "; not all of its files were looked at";
    let beside = format!("{ONE}; it is not in the history of HEAD");
    for (question, one, signal, holds) in [
        (
            "what did commit 1a2b3c4 change?",
            &*boundary,
            "partial_answer",
            "What it changed is not known: the clone is shallow and begins with it.",
        ),
        (
            "what did commit 1a2b3c4 change?",
            &cut,
            "partial_answer",
            "It changed at least 2 files, +12 -3 lines:",
        ),
        (
            "what did commit 1a2b3c4 change?",
            &beside,
            "context_sufficient",
            "It is not in the history of HEAD",
        ),
        (
            "is commit 1a2b3c4 on main?",
            ONE,
            "partial_answer",
            "It is in the history of HEAD",
        ),
        (
            "is commit 1a2b3c4 on main?",
            &beside,
            "partial_answer",
            "It is not in the history of HEAD",
        ),
        (
            "why was 1a2b3c4 reverted?",
            ONE,
            "partial_answer",
            "This is commit `1a2b3c4`",
        ),
        (
            "which files were touched by 1a2b3c4?",
            ONE,
            "context_sufficient",
            "This is commit `1a2b3c4`",
        ),
        (
            "1a2b3c4",
            ONE,
            "context_sufficient",
            "This is commit `1a2b3c4`",
        ),
    ] {
        let (calls, text) = told(&[question], |_| one.to_owned());
        assert_eq!(
            calls,
            asked(&[r#"{"commit":"1a2b3c4"}"#]),
            "{question}: {text}"
        );
        assert_eq!(ends_with(&text), signal, "{question}: {text}");
        assert!(text.contains(holds), "{question}: {text}");
    }
}

#[test]
fn the_first_commit_of_a_shallow_clone_may_not_be_the_first() {
    let (_, text) = told(
        &["what did the first commit change?"],
        |arguments| match arguments.contains("\"commit\"") {
            true => format!("{ONE}{SHALLOW}"),
            false => format!("{LOG}the oldest 3 commits; there are more{SHALLOW}"),
        },
    );
    assert!(
        text.starts_with("The oldest commit that I can see is"),
        "{text}"
    );
    assert_eq!(ends_with(&text), "partial_answer", "{text}");
}

#[test]
fn what_was_not_told_is_no_reason_for_no_more() {
    for question in ["which commit mentions work?", "what changed yesterday?"] {
        let (_, text) = told(&[question, "more"], |_| "no commit with `work`".to_owned());
        assert!(
            !text.contains("than those that I told"),
            "{question}: {text}"
        );
    }
}

#[test]
fn nobody_is_no_author_of_what_is_not_here() {
    let (_, text) = told(&["what did Session change?"], |arguments| {
        match arguments.contains("\"author\"") {
            true => format!("no commit by `Session`{SHALLOW}"),
            false => format!("{LOG}all 3 commits{SHALLOW}"),
        }
    });
    let begins = "No commit that I can see here is by anybody called “Session”";
    assert!(text.starts_with(begins), "{text}");
    assert_eq!(ends_with(&text), "partial_answer", "{text}");
}

#[test]
fn an_old_git_may_find_no_more() {
    let (_, text) = told(&["what changed last week?", "show me more"], |arguments| {
        match arguments.contains("\"skip\"") {
            true => "commit 4b4b4b4 2024-01-31 Bo\n    Old\n\nthe last 1 commit behind the newest 3 commits; this git stops at"
                .to_owned(),
            false => format!("{LOG}all 3 commits"),
        }
    });
    assert!(text.contains(", as far as this git finds them:"), "{text}");
}
