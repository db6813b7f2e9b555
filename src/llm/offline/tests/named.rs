//! Files by their names: such as notes have, with lines, and those that lie elsewhere.

use super::*;

const RETRY: &str = "//! Retries.\n\npub fn backoff() -> u64 {\n    100\n}\n\npub fn charge() {}\n";

/// What the tools of the project say of two files.
fn answer(call: &ToolCall) -> (ToolStatus, String) {
    let arguments = call.parsed().unwrap();
    let text = |name: &str| arguments[name].as_str().unwrap_or("");
    let found = match (call.name.as_str(), text("path"), text("query")) {
        ("file_read", _, _) if arguments["around"] == 900 => {
            return (ToolStatus::Failed, "the file has 7 lines".to_owned());
        }
        ("file_read", "src/retry.rs", _) => listing("src/retry.rs", RETRY),
        ("file_read", "Garden - Plan.md", _) => {
            listing("Garden - Plan.md", "# Garden\n\nThe budget is 300.\n")
        }
        ("file_read", path, _) => {
            return (ToolStatus::Failed, format!("there is no file `{path}`"));
        }
        (_, _, query) if query.contains("budget") => {
            "Garden - Plan.md (lines 1–3 of 3): Garden\nGarden - Plan.md-1- # Garden\n\
             Garden - Plan.md:3: The budget is 300.\n\n\
             src/plan (b).md (lines 2–2 of 2)\nsrc/plan (b).md:2: a budget\n\n\
             src/c.md (lines 2–2 of 2)\nsrc/c.md:2: a budget\n\n\
             src/d.md (lines 2–2 of 2)\nsrc/d.md:2: a budget\n\n\
             src/e f.md (lines 2–2 of 2)\nsrc/e f.md:2: a budget\n\n\
             all 5 places shown; 9 files searched; the best place has 100 % of what was asked"
                .to_owned()
        }
        (_, _, query) if query.contains("retry.rs") => {
            let lacking = match query.contains("wait") {
                true => "`rs`, `7`, `wait`",
                false => "`rs`",
            };
            format!(
                "src/retry.rs (lines 1–1 of 7)\nsrc/retry.rs:1: //! Retries.\n\n\
                 all 1 place shown; 9 files searched; the best place has 40 % of what was asked, \
                 not {lacking}"
            )
        }
        _ => "nothing found; 9 files searched".to_owned(),
    };
    (ToolStatus::Ok, found)
}

#[test]
fn files_are_answered_from_whatever_they_are_called() {
    for (name, question, signal, holds, lacks) in [
        (
            "blanks and dashes",
            "what is the budget of the garden?",
            "context_sufficient",
            &[
                "The closest match is the section “Garden” in `Garden - Plan.md:1-3`.",
                "\nGarden - Plan.md:1-3\n```markdown\n# Garden\n",
                "See also",
                "`src/e f.md:2`",
            ][..],
            "found nothing",
        ),
        (
            "a line as we cite it",
            "src/retry.rs:4",
            "context_sufficient",
            &[
                "in src/retry.rs:3-5.",
                "\nsrc/retry.rs:3-5\n```rust\npub fn backoff",
            ],
            "Missing",
        ),
        (
            "a line of a trace",
            "at charge (src/retry.rs:7:5)",
            "context_sufficient",
            &["src/retry.rs:7\n```rust\npub fn charge() {}"],
            "Missing",
        ),
        (
            "some lines of it",
            "show me lines 2 to 4 of src/retry.rs",
            "context_sufficient",
            &["\nsrc/retry.rs:2-4\n```rust\n\npub fn backoff() -> u64 {\n    100\n```"],
            "Missing",
        ),
        (
            "more lines than it has",
            "src/retry.rs:5-70",
            "context_sufficient",
            &["\nsrc/retry.rs:5-7\n"],
            "Missing",
        ),
        (
            "lines of a file in a folder",
            "lines 5-7 of retry.rs",
            "context_sufficient",
            &["\nsrc/retry.rs:5-7\n"],
            "Missing",
        ),
        (
            "a line that it does not have",
            "src/retry.rs:900",
            "partial_answer",
            &["Missing: line 900 of “src/retry.rs”."],
            "not found",
        ),
        (
            "a line that it has and one that it has not",
            "compare src/retry.rs:7 and src/pay.rs:900",
            "partial_answer",
            &["src/retry.rs:7\n", "Missing: line 900 of “src/pay.rs”."],
            "not found",
        ),
        (
            "an order to show it",
            "open src/retry.rs",
            "context_sufficient",
            &["src/retry.rs:1-7"],
            "Missing",
        ),
        (
            "a file in a folder",
            "open retry.rs",
            "context_sufficient",
            &["src/retry.rs:"],
            "Missing",
        ),
        (
            "a part of it is missing",
            "what does src/retry.rs:7 wait for?",
            "partial_answer",
            &["Missing: “wait” not found with the rest."],
            "“rs”",
        ),
    ] {
        let mut run = Run::new(tools());
        run.say(Role::User, question);
        let text = run.finish(answer);
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        for piece in holds {
            assert!(text.contains(piece), "{name}: no {piece:?} in {text}");
        }
        assert!(!text.contains(lacks), "{name}: {text}");
    }
}

#[test]
fn words_are_told_as_they_were_asked_for() {
    let mut run = Run::new(tools());
    run.say(Role::User, "where are routes of offce?");
    let text = run.finish(|call| {
        let found = match call.arguments.contains("words") {
            true => {
                "src/a.rs (lines 1–1 of 1)\nsrc/a.rs:1: // the offices\n\n\
                 all 1 place shown; 1 file searched; `offce` read as `offic`; `routes` read as `rout`; \
                 the best place has 90 % of what was asked"
            }
            false => "nothing found",
        };
        (ToolStatus::Ok, found.to_owned())
    });
    let read = "I read “offce” as “offices”. The closest";
    assert!(text.starts_with(read), "{text}");

    let mut run = Run::new(tools());
    run.say(Role::User, "caching of payments");
    let text = run.finish(|_| (ToolStatus::Ok, "nothing found".to_owned()));
    let all = run.texts.concat();
    assert!(
        run.calls.iter().any(|call| call.contains("\"cach\"")),
        "{:?}",
        run.calls
    );
    assert!(all.contains("searching for “payments”, “caching”"), "{all}");
    assert!(
        !all.contains("“cach”") && text.contains("code_search for “caching”: nothing"),
        "{all}"
    );
}

#[test]
fn what_a_search_found_is_not_told_to_be_in_no_file() {
    let mut run = Run::new(tools());
    run.say(Role::User, "where is the quarantine?");
    let text = run.finish(|_| {
        let note = "all 1 place shown; 1 file searched; the best place has 90 % of what was asked";
        (ToolStatus::Ok, note.to_owned())
    });
    assert_eq!(ends_with(&text), "stuck", "{text}");
    assert!(
        text.contains("a search found something") && !text.contains("no file"),
        "{text}"
    );
}
