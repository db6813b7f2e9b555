//! Questions about who uses a name, of which a search shows only some lines.

use super::*;

/// A result of some lines, of which so many are not shown.
fn some(lines: &str, unshown: u64) -> (ToolStatus, String) {
    let last = match unshown {
        0 => "all matches shown; 90 files searched".to_owned(),
        1 => "…1 more match in 1 file; narrow the query; 90 files searched".to_owned(),
        many => format!("…{many} more matches in 7 files; narrow the query; 90 files searched"),
    };
    (ToolStatus::Ok, format!("{lines}\n\n{last}"))
}

#[test]
fn what_was_not_shown_is_told_and_is_no_proof() {
    const DOCS: &str = "docs/a.md:3: `charge` is not async.";
    const DEFINED: &str = "src/a.rs:1: fn charge() {}";
    const USED: &str = "src/b.rs:7:     charge();\nsrc/b.rs:9:     charge();";
    const IMPORTED: &str = "src/b.rs:1: use a::charge;";
    for (name, (any, unshown), (calls, more), signal, holds, lacks) in [
        (
            "all is shown",
            (USED, 0),
            (USED, 0),
            "context_sufficient",
            &["`charge` is used in src/b.rs:7 and in one other place."][..],
            "Not looked at",
        ),
        (
            "a few of many",
            (USED, 651),
            (USED, 0),
            "context_sufficient",
            &[
                "`charge` is used in src/b.rs:7 and in at least one other place.",
                "Not looked at: 651 more lines that were found.",
            ],
            "and in one other",
        ),
        (
            "the calls are beyond what was shown",
            (DOCS, 3),
            (USED, 0),
            "context_sufficient",
            &[
                "`charge` is used in src/b.rs:7 and in at least one other place.",
                "Not looked at: one more line that was found.",
            ],
            "mentioned",
        ),
        (
            "so are some of the calls",
            (IMPORTED, 300),
            (USED, 40),
            "context_sufficient",
            &["at least 2 other places", "Not looked at: 298 more lines"],
            "mentioned",
        ),
        (
            "there is none to be seen",
            (DOCS, 20),
            ("", 0),
            "partial_answer",
            &[
                "I saw no use of `charge`, but not all lines that have it. It is mentioned in docs/a.md:3.",
                "<missing>a place that uses 'charge'</missing>\n  <caveat>not looked at: 20 more lines",
            ],
            "only",
        ),
        (
            "nothing but its definition is to be seen",
            (DEFINED, 1),
            (DEFINED, 0),
            "partial_answer",
            &[
                "I saw no use of `charge`, but not all lines that have it. It is defined in src/a.rs:1.",
            ],
            "only",
        ),
        (
            "there is none",
            (DOCS, 0),
            ("", 0),
            "partial_answer",
            &["`charge` is only mentioned in docs/a.md:3."],
            "not all",
        ),
    ] {
        let mut run = Run::new(tools());
        run.say(Role::User, "who calls charge?");
        let text = run.finish(|call| match call.arguments.as_str() {
            query if query.contains(r"\\(") => some(calls, more),
            query if query.contains("regex") => some(any, unshown),
            _ => (ToolStatus::Ok, "nothing found".to_owned()),
        });
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        for piece in holds {
            assert!(text.contains(piece), "{name}: no {piece:?} in {text}");
        }
        assert!(!text.contains(lacks), "{name}: {text}");
    }
}

#[test]
fn without_patterns_a_name_is_looked_for_as_it_stands() {
    let mut tools = tools();
    let mode = json!({"enum": ["words", "literal"]});
    tools[0].schema["properties"]["mode"] = mode;
    let mut run = Run::new(tools);
    run.say(Role::User, "who calls is_fresh?");
    let project = project();
    let text = run.finish(|call| project.answer(call));
    assert!(
        text.starts_with("`is_fresh` is used in src/cache.rs:3."),
        "{text}"
    );
    assert!(
        run.calls[0].contains(r#""query":"is_fresh""#),
        "{:?}",
        run.calls
    );
}

#[test]
fn of_many_lines_those_of_the_code_are_asked_for() {
    let mut tools = tools();
    tools[0].schema["properties"]["path"] = json!({"type": "string"});
    let mut run = Run::new(tools);
    run.say(Role::User, "where is Charge used?");
    let text = run.finish(|call| match call.parsed().unwrap()["path"].as_str() {
        Some("*.rs") => some("src/b.rs:7:     let by: Charge;", 0),
        _ => some(
            "docs/a.md:3: A `Charge` is sent.\n\nsrc/a.rs:1: struct Charge {}",
            2_000,
        ),
    });
    for piece in [
        "`Charge` is used in src/b.rs:7.",
        "Not looked at: 1999 more lines that were found.",
        "It is defined in src/a.rs:1.",
    ] {
        assert!(text.contains(piece), "no {piece:?} in {text}");
    }
}
