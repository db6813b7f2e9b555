//! Words that no file has, which a search takes for others.

use super::*;

#[test]
fn a_slip_is_read_as_what_it_is_and_another_word_is_not() {
    for (name, question, line, (word, known), absent, signal, holds) in [
        (
            "another word",
            "where is the payment?",
            "let parent = id();",
            ("payment", "parent"),
            "",
            "partial_answer",
            "I read “payment” as “parent”. The closest match is in src/a.rs:7. Missing: “payment” found nowhere.",
        ),
        (
            "its beginning is the same, its stem is not",
            "where is the invoice?",
            "let invocation = id();",
            ("invoice", "invocation"),
            "",
            "partial_answer",
            "“invoice” found nowhere",
        ),
        (
            "another word, and one that is nowhere",
            "where is the salary of zygotes?",
            "impl_solaris!();",
            ("salary", "solaris"),
            "in no file: `zygotes`; ",
            "partial_answer",
            "“salary”, “zygotes” found nowhere",
        ),
        (
            "another word beside one that is there",
            "where is the payment of a gateway?",
            "let parent = gateway();",
            ("payment", "parent"),
            "",
            "context_sufficient",
            "I read “payment” as “parent”.",
        ),
        (
            "a letter that was left out",
            "where is the gatway?",
            "let gateway = id();",
            ("gatway", "gateway"),
            "",
            "context_sufficient",
            "I read “gatway” as “gateway”.",
        ),
        (
            "a slip in the ending",
            "where is the schedular?",
            "let schedule = id();",
            ("schedular", "scheduler"),
            "",
            "context_sufficient",
            "I read “schedular” as “schedule”.",
        ),
        (
            "two slips in a long word",
            "where is the authentification?",
            "fn authentication() {}",
            ("authentification", "authentication"),
            "",
            "context_sufficient",
            "I read “authentification” as “authentication”.",
        ),
    ] {
        let mut run = Run::new(tools());
        run.say(Role::User, question);
        let text = run.finish(|call| match call.name.as_str() {
            "code_search" => {
                let stem = crate::words::stem(known);
                let content = format!(
                    "src/a.rs (lines 7–7 of 9)\nsrc/a.rs:7: {line}\n\nall 1 place shown; \
                     1 file searched; `{word}` read as `{stem}`; {absent}the best place has 70 % of what was asked"
                );
                (ToolStatus::Ok, content)
            }
            _ => (ToolStatus::Failed, "there is no such file".to_owned()),
        });
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert!(text.contains(holds), "{name}: {text}");
    }
}
