//! Which block counts: code fences, inline code, and the lone fenced signal.

use super::*;

const BLOCK: &str = "<signal type='need_turn'><reason>a good reason</reason></signal>";
const LATER: &str = "<signal type='need_turn'><reason>the later one</reason></signal>";
const BAD: &str = "<signal type='need_turn'><reason>no</reason></signal>";
const FAULT: &str = "the field `reason` of a need_turn signal needs 5 to 500 characters, it has 2";

fn good() -> Is {
    need("a good reason")
}

#[test]
fn the_first_complete_block_outside_code_counts() {
    check(&[
        (
            "the first of two",
            &format!("a {BLOCK} b {LATER} c"),
            good(),
            "a  b  c",
        ),
        ("in mid-line", &format!("a {BLOCK} b"), good(), "a  b"),
        ("nothing but the block", BLOCK, good(), ""),
        (
            "a later block does not rescue",
            &format!("a {BAD} b {LATER}"),
            rejected(FAULT),
            "a  b",
        ),
        (
            "an indented block",
            &format!("a\n        {BLOCK}"),
            good(),
            "a",
        ),
        ("no reply", "", Is::Nothing, ""),
        ("only white space", " \n\t ", Is::Nothing, ""),
    ]);
}

#[test]
fn inline_code_is_content() {
    for (name, text) in [
        ("one backtick", format!("as `{BLOCK}` shows")),
        (
            "two backticks around one",
            format!("as `` ` {BLOCK} `` shows"),
        ),
        (
            "a run closes with a run of its length",
            format!("as ` `` {BLOCK} `` ` shows"),
        ),
        (
            "three backticks in a line",
            format!("as ```{BLOCK}``` shows"),
        ),
        ("at the start of a line", format!("```{BLOCK}```")),
        (
            "a tag alone",
            "write `<signal type=\"stuck\">` and `</signal>`".to_owned(),
        ),
        ("the second of two", format!("`a` `{BLOCK}` `b`")),
    ] {
        assert_eq!(interpret(&text), (Is::Nothing, text.clone()), "{name}");
    }
}

#[test]
fn inline_code_lookalikes_are_not_code() {
    check(&[
        (
            "it ends on its line",
            &format!("a ` b\n{BLOCK}\n` c"),
            good(),
            "a ` b\n\n` c",
        ),
        (
            "a run without a partner",
            &format!("a `` b {BLOCK} ` c"),
            good(),
            "a `` b  ` c",
        ),
        (
            "between two codes",
            &format!("`a`{BLOCK}`b`"),
            good(),
            "`a``b`",
        ),
        (
            "a closing tag in code is text of the block",
            "<signal type='need_turn'><reason>write `</signal>` last</reason></signal>",
            need("write `</signal>` last"),
            "",
        ),
        (
            "backticks in a value are no code",
            &format!("<signal a='`'></signal>1{BLOCK}`2"),
            rejected(
                "the signal has no `type`; use one of need_turn, context_sufficient, stuck, \
                 need_capability, partial_answer, delegation_recommended",
            ),
            "1`2",
        ),
    ]);
}

#[test]
fn fenced_block_among_other_text_is_an_example() {
    for (name, text) in [
        (
            "text follows",
            format!("```xml\n{BLOCK}\n```\nThat is how."),
        ),
        (
            "text before it in the fence",
            format!("```\nFirst:\n{BLOCK}\n```"),
        ),
        (
            "text after it in the fence",
            format!("```\n{BLOCK}\nThat is how.\n```"),
        ),
        (
            "two blocks in the fence",
            format!("```\n{BLOCK}\n{LATER}\n```"),
        ),
        (
            "only an opening tag",
            "```\n<signal type='stuck'>\n```".to_owned(),
        ),
        (
            "an unclosed tag before it",
            format!("```\n<signal>\n{BLOCK}\n```"),
        ),
        (
            "a stray tag after it",
            format!("```\n{BLOCK}</signal>\n```"),
        ),
        ("inline code after it", format!("```\n{BLOCK}`x`\n```")),
        (
            "a fence after it",
            format!("```\n{BLOCK}\n```\n```\nx\n```"),
        ),
        (
            "an empty fence after it",
            format!("```\n{BLOCK}\n```\n\n~~~\n~~~"),
        ),
        ("tildes", format!("~~~ xml\n{BLOCK}\n~~~\nmore")),
        (
            "a longer fence holds a shorter",
            format!("````\n```\n{BLOCK}\n```\n````"),
        ),
        (
            "a shorter run does not close",
            format!("````\n{BLOCK}\n```\nmore"),
        ),
        (
            "the other mark does not close",
            format!("```\n{BLOCK}\n~~~\nmore"),
        ),
        (
            "marks with text do not close",
            format!("```\n{BLOCK}\n``` more"),
        ),
        (
            "three spaces before the marks",
            format!("a\n   ```\n{BLOCK}\n   ```\nmore"),
        ),
        (
            "an unclosed fence runs to the end",
            format!("```\nfn main() {{}}\n{BLOCK}"),
        ),
        ("nothing in it", "```\n```".to_owned()),
        ("a cut opening line", "```xml".to_owned()),
    ] {
        assert_eq!(interpret(&text), (Is::Nothing, text.clone()), "{name}");
    }
}

#[test]
fn fence_lookalikes_are_not_fences() {
    check(&[
        ("two marks", &format!("``\n{BLOCK}\n``"), good(), "``\n\n``"),
        (
            "four spaces",
            &format!("a\n    ```\n{BLOCK}\n"),
            good(),
            "a\n    ```",
        ),
        ("in mid-line", &format!("a ```\n{BLOCK}\n"), good(), "a ```"),
        (
            "a backtick after backticks",
            &format!("``` `\n{BLOCK}\n"),
            good(),
            "``` `",
        ),
        (
            "after a closed fence",
            &format!("```\na\n```\n{BLOCK}\n"),
            good(),
            "```\na\n```",
        ),
        (
            "a longer closing line",
            &format!("```\na\n`````  \n{BLOCK}\n"),
            good(),
            "```\na\n`````",
        ),
    ]);
}

#[test]
fn block_that_fills_the_last_fence_counts() {
    check(&[
        (
            "at the end",
            &format!("Done.\n```xml\n{BLOCK}\n```"),
            good(),
            "Done.",
        ),
        (
            "white space around",
            &format!("Done.\n```\n\n {BLOCK} \n\n```\n \n"),
            good(),
            "Done.",
        ),
        (
            "tildes",
            &format!("Done.\n~~~\n{BLOCK}\n~~~~"),
            good(),
            "Done.",
        ),
        (
            "indented",
            &format!("Done.\n  ```\n  {BLOCK}\n  ```"),
            good(),
            "Done.",
        ),
        (
            "all of the reply",
            &format!("```\n{BLOCK}\n```"),
            good(),
            "",
        ),
        (
            "a fence that does not close",
            &format!("Done.\n```xml\n{BLOCK}\n"),
            good(),
            "Done.",
        ),
        (
            "windows line ends",
            &format!("Done.\r\n```xml\r\n{BLOCK}\r\n```\r\n"),
            good(),
            "Done.",
        ),
        (
            "the last of two fences",
            &format!("```\n{LATER}\n```\n```\n{BLOCK}\n```"),
            good(),
            &format!("```\n{LATER}\n```"),
        ),
        (
            "one outside code goes before",
            &format!("{LATER} Done.\n```\n{BLOCK}\n```"),
            need("the later one"),
            &format!("Done.\n```\n{BLOCK}\n```"),
        ),
        (
            "a rejected one goes too",
            &format!("Done.\n```\n{BAD}\n```"),
            rejected(FAULT),
            "Done.",
        ),
        (
            "after a tag that never closes",
            &format!("One <signal type='x'> two\n```\n{BLOCK}\n```"),
            good(),
            "One  two",
        ),
        (
            "one outside code goes before, also after a tag that never closes",
            &format!("One <signal type='x'> two {LATER}\n```\n{BLOCK}\n```"),
            need("the later one"),
            &format!("One  two \n```\n{BLOCK}\n```"),
        ),
        (
            "in a block that closes after it, it is text",
            &format!(
                "a <signal type='need_turn'><reason>outer one</reason>\n```\n{BLOCK}\n```\n</signal>"
            ),
            need("outer one"),
            "a",
        ),
        (
            "a nested one counts as the outer",
            "```\n<signal type='need_turn'><reason>outer one</reason><signal></signal></signal>\n```",
            need("outer one"),
            "",
        ),
        (
            "what it holds is read as it would be outside",
            "```\n<signal type='need_turn'><reason>write `<signal>` first</reason></signal>\n```",
            need("write `<signal>` first"),
            "",
        ),
    ]);
}
