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
        "history_search" if call.arguments.contains("zygot") => {
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

pub(super) fn all_tools() -> Vec<ToolSpec> {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let with = |name: &str, properties: Value| spec(name, json!({"properties": properties}));
    let mut all = tools();
    all.extend([
        with(
            "history_search",
            json!({"query": text, "path": text, "text": text, "max_results": number, "since": text,
                "until": text, "count": {"type": "boolean"}}),
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
            "those of some days",
            &["what changed last week?"],
            vec![r#"history_search {"max_results":20,"since":"1 week ago"}"#],
            "context_sufficient",
            &[
                "There are 2 commits since 1 week ago, the newest first:\n\n- `1a2b3c4` of 2026-03-01",
                "- `9f8e7d6`",
            ],
        ),
        (
            "those of a month that changed a folder",
            &["what happened to src/kernel in March 2026?"],
            vec![
                r#"history_search {"max_results":20,"path":"src/kernel","since":"2026-03-01","until":"2026-03-31"}"#,
            ],
            "context_sufficient",
            &["There are 2 commits about “src”, “kernel” from 2026-03-01 to 2026-03-31"],
        ),
        (
            "so many",
            &["show me the last 2 commits"],
            vec![r#"history_search {"max_results":2}"#],
            "context_sufficient",
            &["There are 2 commits, the newest first:\n\n- `1a2b3c4`"],
        ),
        (
            "how many",
            &["how many commits are there?"],
            vec![r#"history_search {"count":true,"max_results":3}"#],
            "context_sufficient",
            &["There are 2 commits:\n\n- `1a2b3c4`"],
        ),
        (
            "a folder",
            &["who changed src/kernel?"],
            vec![r#"history_search {"path":"src/kernel"}"#],
            "context_sufficient",
            &["The latest commit about “src”, “kernel” is `1a2b3c4`"],
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
                "[\"history_search for “zygote”: nothing",
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
            "a name of a type is no word for where to look",
            &["Where is Overview?"],
            vec!["code_search"],
            "stuck",
            &["I found nothing about “Overview”"],
        ),
        (
            "who uses a name",
            &["Who uses Session?"],
            vec![
                r#"code_search {"context":2,"max_results":100,"mode":"regex","query":"(?-i)\\bSession\\b"}"#,
            ],
            "context_sufficient",
            &[
                "`Session` is used in src/session.rs:4 and in one other place.",
                "src/session.rs:4-5\n```rust",
                "Also in src/session.rs:5.",
                "It is defined in src/session.rs:10.",
            ],
        ),
        (
            "nobody uses it",
            &["where is evict defined?", "and who calls it?"],
            vec![
                r#"code_search {"context":2,"max_results":100,"mode":"regex","query":"(?-i)\\bevict\\b"}"#,
            ],
            "partial_answer",
            &["`evict` is only defined in src/cache.rs:2."],
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
fn a_commit_is_said_to_be_about_no_more_than_it_has() {
    const RETRY: &str = "\
        commit 3c3c3c3 2026-02-01T10:00:00+01:00 Ann\n    Tests of the retry\n  changed: t.rs\n\n\
        commit 2b2b2b2 2026-01-02T10:00:00+01:00 Bo\n    Drop the retry of cards\n  changed: a.rs\n\n\
        commit 1a1a1a1 2026-01-01T10:00:00+01:00 Bo\n    Add the retry\n  changed: a.rs\n\n\
        all 3 commits with `retri` in the message";
    let only_added = RETRY.split("commit 1a").last().unwrap_or_default();
    let only_added = format!("commit 1a{only_added}");
    for (name, question, log, signal, holds, lacks) in [
        (
            "a word that no commit has",
            "when was kubernetes support for retries added?",
            RETRY,
            "partial_answer",
            &[
                "The first commit about “retries” is `1a1a1a1`",
                "It does not have “kubernetes”.",
                "a commit that has “kubernetes” as well",
            ][..],
            "about “kubernetes”",
        ),
        (
            "the one that says what was asked for",
            "who removed the retry?",
            RETRY,
            "context_sufficient",
            &["The latest commit about “retry” is `2b2b2b2`"],
            "No commit",
        ),
        (
            "none says it",
            "who removed the retry?",
            &only_added,
            "partial_answer",
            &[
                "No commit that I found says “removed”. The latest commit about “retry” is `1a1a1a1`",
                "a commit that says “removed”",
            ],
            "It does not have",
        ),
        (
            "a list without a word of it",
            "how many commits mention the guard of retries since 2025?",
            RETRY,
            "partial_answer",
            &[
                "No commit that I found has “guard”. There are 3 commits about “retries” since 2025-01-01:\n",
                "a commit that has “guard”",
            ],
            "mention",
        ),
        (
            "the one that has most of it",
            "who last changed retries of gateways for cards?",
            RETRY,
            "partial_answer",
            &[
                "The latest commit about “retries”, “cards” is `2b2b2b2`",
                "It does not have “gateways”.",
            ],
            "No commit",
        ),
    ] {
        let of_retry = |call: &ToolCall| call.arguments.contains(r#":"retr"#);
        let mut run = Run::new(all_tools());
        run.say(Role::User, question);
        let text = run.finish(|call| match call.name.as_str() {
            "history_search" if !of_retry(call) => (
                ToolStatus::Ok,
                "no commit with that in the message".to_owned(),
            ),
            "history_search" => (ToolStatus::Ok, log.to_owned()),
            _ => answer(call),
        });
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        for piece in holds {
            assert!(text.contains(piece), "{name}: no {piece:?} in {text}");
        }
        assert!(!text.contains(lacks), "{name}: {text}");
    }
}

#[test]
fn commits_of_days_are_listed_as_far_as_they_are_known() {
    const SHALLOW: &str = "the clone is shallow: older commits are not here";
    for (name, question, log, signal, says) in [
        (
            "none",
            "what changed yesterday?",
            "no commit since `yesterday` until `yesterday`".to_owned(),
            "context_sufficient",
            "There is no commit of yesterday.\n",
        ),
        (
            "more than are shown",
            "what changed since 2020-01-01?",
            LOG.replace("all 2 commits", "the newest 2 commits; there are more"),
            "partial_answer",
            "The newest 2 commits since 2020-01-01:\n",
        ),
        (
            "more, that are counted",
            "how many commits are there?",
            LOG.replace(
                "all 2 commits with `cache` in the message",
                "the newest 2 commits of 573; there are more",
            ),
            "context_sufficient",
            "There are 573 commits. The newest:\n",
        ),
        (
            "none in a shallow clone",
            "what changed yesterday?",
            format!("no commit since `yesterday` until `yesterday`; {SHALLOW}"),
            "partial_answer",
            "There is no commit of yesterday in this clone, which is shallow: older commits are not here.\n",
        ),
        (
            "some in a shallow clone",
            "how many commits are there?",
            LOG.replace(
                "all 2 commits with `cache` in the message",
                &format!("the newest 2 commits of 3; there are more; {SHALLOW}"),
            ),
            "partial_answer",
            "I cannot tell how many commits there are: the clone is shallow. The newest:\n",
        ),
        (
            "fewer than were asked for",
            "show me the last 200 commits",
            LOG.replace("all 2 commits", "the newest 2 commits; there are more"),
            "partial_answer",
            "The newest 2 of the 200 commits that you asked for:\n",
        ),
        (
            "a word that says no more",
            "how many commits mention kubernetes since 2020-01-01?",
            LOG.replace("`cache` in", "`kubernet` in"),
            "context_sufficient",
            "There are 2 commits about “kubernetes” since 2020-01-01:\n",
        ),
        (
            "none says what was asked for",
            "who removed the cache since 2025?",
            LOG.to_owned(),
            "partial_answer",
            "No commit that I found says “removed”. There are 2 commits about “cache” since 2025-01-01",
        ),
        (
            "one says what was asked for",
            "who removed the cache since 2025?",
            LOG.replace("Add the cache", "Drop the cache"),
            "context_sufficient",
            "What says “removed” comes first. There are 2 commits about “cache” since 2025-01-01:\n",
        ),
        (
            "nobody counts",
            "how many commits are there?",
            LOG.replace("all 2 commits", "the newest 2 commits; there are more"),
            "partial_answer",
            "I cannot tell how many commits there are. The newest:\n",
        ),
    ] {
        let mut run = Run::new(all_tools());
        run.say(Role::User, question);
        let text = run.finish(|call| match call.name.as_str() {
            "history_search" => (ToolStatus::Ok, log.clone()),
            _ => answer(call),
        });
        assert!(text.starts_with(says), "{name}: {text}");
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
    }
}

#[test]
fn of_commits_those_that_say_most_lead() {
    const BRACES: &str = "\
        commit 3c3c3c3 2026-02-01T10:00:00+01:00 Ann\n    Limit braces in patterns\n  changed: a.rs\n\n\
        commit 2b2b2b2 2026-01-02T10:00:00+01:00 Bo\n    Braces of patterns\n  changed: limit.rs\n\n\
        commit 1a1a1a1 2026-01-01T10:00:00+01:00 Bo\n    A limit of brackets\n  changed: limit.rs\n\n\
        all 3 commits with `brac limit` in the message";
    let mut run = Run::new(all_tools());
    run.say(Role::User, "why was the limit on braces introduced?");
    let text = run.finish(|call| match call.name.as_str() {
        "history_search" => (ToolStatus::Ok, BRACES.to_owned()),
        _ => answer(call),
    });
    assert!(
        text.starts_with("The first commit about “limit”, “braces” is `3c3c3c3`"),
        "{text}"
    );
}

#[test]
fn where_there_is_no_repository_that_is_told() {
    const WHY: &str = "the history could not be searched, “this is no git repository”";
    const BEHIND: &str = "There are no commits to look at: this is no git repository.";
    for (name, question, signal, begins) in [
        (
            "the files answer",
            "who wrote evict?",
            "partial_answer",
            "The closest match".to_owned(),
        ),
        (
            "nothing does",
            "show me the last commits",
            "stuck",
            format!("I found nothing about the latest changes: {WHY}."),
        ),
    ] {
        let mut run = Run::new(all_tools());
        let no_history = |call: &ToolCall| match call.name.as_str() {
            "history_search" => (
                ToolStatus::Failed,
                "this is no git repository: go on".to_owned(),
            ),
            _ => answer(call),
        };
        run.say(Role::User, question);
        let mut text = run.finish(no_history);
        if signal == "stuck" {
            // Files can be listed all the same.
            run.say(Role::Guidance, "Try an alternative strategy.");
            text = run.finish(no_history);
        }
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert!(text.starts_with(&begins), "{name}: {text}");
        assert!(signal == "stuck" || text.contains(BEHIND), "{name}: {text}");
    }
}

#[test]
fn an_order_begins_where_its_subject_is_or_nowhere() {
    let place = |path: &str, line: &str, note: &str| {
        format!(
            "{path} (lines 1–1 of 9)\n{path}:1: {line}\n\nall 1 place shown; 1 file searched; {note}"
        )
    };
    let note = place(
        "src/a.rs",
        "// charged, but not twice",
        "`note` read as `not`; in no file: `caching`; the best place has 40 % of what was asked, not `caching`",
    );
    let cache = place(
        "src/a.rs",
        "fn cache() {}",
        "the best place has 50 % of what was asked, not `lru`",
    );
    let named = place(
        "src/a.rs",
        "fn keep_all() {}",
        "the best place has 20 % of what was asked, not `mend`, `fault`",
    );
    for (name, order, content, holds, lacks) in [
        (
            "only a word taken for another",
            "write a note about caching",
            &note,
            "It would begin with “note”, “caching”, of which I found nothing that fits.",
            "src/a.rs",
        ),
        (
            "half of it",
            "rename the cache to lru",
            &cache,
            "It would begin here:\n\nsrc/a.rs:1\n",
            "“rename”,",
        ),
        (
            "a name of it",
            "replace keep_all by mended odd faults",
            &named,
            "It would begin here:\n\nsrc/a.rs:1\n",
            "fits",
        ),
        (
            "too little of it",
            "fix the odd flux of the capacitor in the cache",
            &cache,
            "It would begin with “odd”, “flux”, “capacitor”, “cache”, of which",
            "src/a.rs",
        ),
    ] {
        let mut run = Run::new(tools());
        run.say(Role::User, order);
        let text = run.finish(|call| match call.arguments.contains("words") {
            true => (ToolStatus::Ok, content.clone()),
            false => (ToolStatus::Ok, "No matches.".to_owned()),
        });
        assert!(
            text.contains(holds) && !text.contains(lacks),
            "{name}: {text}"
        );
        assert_eq!(ends_with(&text), "partial_answer", "{name}: {text}");
    }
}

#[test]
fn notes_that_no_other_search_sees_are_asked_for_places_too() {
    const HOUSE: &str = "\
notes:house.md:3: The password of the router is on its back.
  in \"House › Router\" · lines 3–3
  words found: password, router

all that fits is shown; 1 section in 1 note searched";
    let mut tools = all_tools();
    for tool in &mut tools {
        if tool.name == "note_search" {
            tool.description = "Finds notes; their paths begin with `notes:`.".to_owned();
        }
    }
    let mut run = Run::new(tools);
    run.say(Role::User, "where is the password of the router?");
    let text = run.finish(|call| match call.name.as_str() {
        "note_search" => (ToolStatus::Ok, HOUSE.to_owned()),
        "note_read" => (
            ToolStatus::Ok,
            listing(
                "notes:house.md",
                "# House\n\nThe password of the router is on its back.\n",
            ),
        ),
        _ => project().answer(call),
    });
    assert!(
        run.calls.iter().any(|call| call.starts_with("note_search")),
        "{:#?}",
        run.calls
    );
    assert!(
        text.starts_with("The closest match is in notes:house.md:3"),
        "{text}"
    );
    assert!(
        run.calls.iter().all(|call| !call.starts_with("file_read")),
        "{:#?}",
        run.calls
    );
    assert_eq!(ends_with(&text), "context_sufficient", "{text}");
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
