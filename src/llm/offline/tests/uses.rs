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

#[test]
fn who_implements_a_type_is_told_with_places() {
    const TRAIT: &str = "src/a.rs:1: pub trait Backend {";
    const ONE: &str = "src/a.rs:1: pub trait Backend {\n\nsrc/b.rs:7: impl Backend for Offline {";
    const TWO: &str =
        "src/b.rs:7: impl Backend for Offline {\nsrc/b.rs:19: impl Backend for Mock {";
    const EXTENDED: &str = "src/a.py:3: class Mock(Backend):";
    for (name, question, (lines, unshown), signal, holds) in [
        (
            "one",
            "who implements Backend?",
            (ONE, 0),
            "context_sufficient",
            "`Backend` is defined in src/a.rs:1 and implemented by `Offline` in src/b.rs:7.",
        ),
        (
            "two, and no definition",
            "which types implement the Backend trait?",
            (TWO, 0),
            "context_sufficient",
            "`Backend` is implemented by 2 types:\n\n- `Offline` in src/b.rs:7\n- `Mock` in src/b.rs:19\n",
        ),
        (
            "some of many",
            "list all implementations of Backend",
            (TWO, 7),
            "context_sufficient",
            "implemented by at least 2 types:",
        ),
        (
            "another language",
            "qui hérite de Backend ?",
            (EXTENDED, 0),
            "context_sufficient",
            "`Backend` is extended by `Mock` in src/a.py:3.",
        ),
        (
            "none",
            "wer implementiert Backend?",
            (TRAIT, 0),
            "partial_answer",
            "I saw nothing that implements or extends `Backend`.",
        ),
    ] {
        let mut run = Run::new(tools());
        run.say(Role::User, question);
        let text = run.finish(|call| match call.arguments.as_str() {
            query if query.contains("impl") || query.contains("words") => some(lines, unshown),
            _ => (ToolStatus::Ok, "nothing found".to_owned()),
        });
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert!(text.contains(holds), "{name}: no {holds:?} in {text}");
    }
}

#[test]
fn what_is_only_used_is_not_told_as_defined() {
    const USED: &str =
        "src/a.rs:2: use std::collections::HashMap;\n\nsrc/b.rs:7:     by: HashMap<u32, u32>,";
    const VARIANT: &str = "src/a.rs:2:     HashMap,\n\nsrc/b.rs:7:     by: Kind::HashMap,";
    const DEFINED: &str =
        "src/a.rs:2: pub struct HashMap {\n\nsrc/b.rs:7:     by: HashMap<u32, u32>,";
    for (name, lines, signal, holds) in [
        (
            "only used",
            USED,
            "partial_answer",
            "I saw no definition of `HashMap` here, it is only used, as in src/b.rs:7. The closest match is",
        ),
        (
            "a variant",
            VARIANT,
            "context_sufficient",
            "The closest match is",
        ),
        (
            "defined",
            DEFINED,
            "context_sufficient",
            "The closest match is the definition of `HashMap` in src/a.rs:2.",
        ),
    ] {
        let mut run = Run::new(tools());
        run.say(Role::User, "where is HashMap defined?");
        let text = run.finish(|call| match call.name.as_str() {
            "code_search" => some(lines, 0),
            _ => (ToolStatus::Failed, "there is no such file".to_owned()),
        });
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert!(text.contains(holds), "{name}: no {holds:?} in {text}");
        assert_eq!(
            text.contains("no definition"),
            name == "only used",
            "{name}: {text}"
        );
    }
}

#[test]
fn a_definition_among_many_uses_is_looked_for_by_name() {
    const USED: &str = "src/b.rs:7:     by: HashMap<u32, u32>,";
    const DEFINED: &str = "src/a.rs:2: pub struct HashMap {";
    let mut run = Run::new(tools());
    run.say(Role::User, "where is HashMap defined?");
    let text = run.finish(|call| match call.arguments.as_str() {
        query if query.contains("struct|") => some(DEFINED, 0),
        query if query.contains("query") => some(USED, 90),
        _ => (ToolStatus::Failed, "there is no such file".to_owned()),
    });
    let lead = "The closest match is the definition of `HashMap` in src/a.rs:2.";
    assert!(text.starts_with(lead), "{text}");
}

#[test]
fn a_name_in_a_type_is_read_by_that_name_where_no_search_shows_it() {
    const WORDS: &str = "src/db.cc (lines 40–41 of 90): DBImpl > SyncWAL\nsrc/db.cc:40: Status DBImpl::SyncWAL() {\n\n\
                         src/b.cc (lines 3–3 of 9): Other > Get\nsrc/b.cc:3:   Status Get() { return s; }\n\n\
                         all 2 places shown; 9 files searched";
    const READ: &str = "src/db.cc (lines 70–72 of 90)\n70: Status DBImpl::Get(\n71:     const Key& key) {\n72: }\n\
                        … 18 more lines; go on with start_line=73\n… all of method `DBImpl::Get`";
    for (name, read, signal, lead) in [
        (
            "it is there",
            Some(READ),
            "context_sufficient",
            "The closest match is the definition of `DBImpl::Get` in src/db.cc:70-72.",
        ),
        (
            "it is not",
            None,
            "partial_answer",
            "I saw `Get` defined here, but not in `DBImpl`. The closest match is the definition of `Get` in src/b.cc:3.",
        ),
    ] {
        let mut tools = tools();
        tools[1].schema["properties"]["symbol"] = json!({"type": "string"});
        let mut run = Run::new(tools);
        run.say(Role::User, "what does DBImpl::Get do?");
        let text = run.finish(|call| {
            let arguments = call.parsed().unwrap();
            let is_of = |key: &str, value: &str| arguments[key].as_str() == Some(value);
            let is_symbol = is_of("path", "src/db.cc") && is_of("symbol", "DBImpl::Get");
            match (is_of("mode", "words"), read) {
                (true, _) => (ToolStatus::Ok, WORDS.to_owned()),
                (_, Some(read)) if is_symbol => (ToolStatus::Ok, read.to_owned()),
                _ if call.name == "code_search" => (ToolStatus::Ok, "nothing found".to_owned()),
                _ => (ToolStatus::Failed, "there is none".to_owned()),
            }
        });
        assert!(text.starts_with(lead), "{name}: {text}");
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
    }
}
