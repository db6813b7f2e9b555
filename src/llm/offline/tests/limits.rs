//! Searches that did not look everywhere, or came too early.

use std::cell::Cell;

use super::{interests::all_tools, *};

const QUESTION: &str = "How does the parser skip blanks?";
const EARLY: &str = "docs/a.md:9: the parser and blanks to skip\n\n…7 more matches in 2 files; narrow the query; \
                     9 files searched; the index was not ready, so the lines are not ranked by what they say";
const RANKED: &str = "src/parser.rs (lines 3–5 of 9): skip_blanks\nsrc/parser.rs:3: /// The parser skips blanks.\n\
                      src/parser.rs:4: fn skip_blanks() {\nsrc/parser.rs-5- }\n\n\
                      all 1 place shown; 9 files searched; the best place has 100 % of what was asked";
const STOPPED: &str = "…7 more matches in 2 files; narrow the query; 9 files searched; stopped at the deadline after 9 files";

#[test]
fn what_came_before_the_index_was_ready_is_asked_once_more() {
    for (name, second, searches, signal, holds) in [
        (
            "ready by then",
            RANKED,
            2,
            "context_sufficient",
            "definition of `skip_blanks` in src/parser.rs",
        ),
        (
            "still not",
            EARLY,
            2,
            "partial_answer",
            "Missing: the best places: the index was not ready",
        ),
    ] {
        let asked = Cell::new(0);
        let mut run = Run::new(tools());
        run.say(Role::User, QUESTION);
        let text = run.finish(|call| {
            let found = match call.name.as_str() {
                "code_search" => {
                    asked.set(asked.get() + 1);
                    if asked.get() == 1 { EARLY } else { second }
                }
                _ => "there is no such file",
            };
            (ToolStatus::Ok, found.to_owned())
        });
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert!(text.contains(holds), "{name}: {text}");
        assert_eq!(asked.get(), searches, "{name}: {:?}", run.calls);
    }
}

#[test]
fn what_was_not_looked_at_is_told() {
    const LINE: &str = "docs/a.md:9: the parser and blanks to skip\n\n";
    for (name, question, tool, found, signal, holds) in [
        (
            "files that were not reached",
            QUESTION,
            "code_search",
            format!("{LINE}{STOPPED}"),
            "partial_answer",
            "Missing: a look at all files: the search was stopped at its deadline after 9 files.",
        ),
        (
            "files that cannot be read",
            QUESTION,
            "code_search",
            "nothing found for `x`; 9 files searched; skipped: 2 unreadable".to_owned(),
            "stuck",
            "(not read: 2 unreadable)",
        ),
        (
            "no files",
            QUESTION,
            "code_search",
            "nothing found for `x`; 0 files searched".to_owned(),
            "stuck",
            "there is no file here that could be searched",
        ),
        (
            "commits that were not reached",
            "who last changed the parser?",
            "history_search",
            "no commit with that in the message; stopped at the deadline: older commits were not looked at".to_owned(),
            "stuck",
            "the search of the history was stopped at its deadline",
        ),
    ] {
        let mut run = Run::new(all_tools());
        run.say(Role::User, question);
        let none = "nothing found for `x`; 9 files searched";
        let answer = |call: &ToolCall| {
            let found = if call.name == tool { &*found } else { none };
            (ToolStatus::Ok, found.to_owned())
        };
        let mut text = run.finish(answer);
        if signal == "stuck" {
            run.say(Role::Guidance, "Try an alternative strategy.");
            text = run.finish(answer);
        }
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert!(text.contains(holds), "{name}: {text}");
    }
}
