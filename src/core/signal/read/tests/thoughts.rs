//! Inline reasoning: `<think>` and similar tags.

use super::*;

const BLOCK: &str = "<signal type='need_turn'><reason>a good reason</reason></signal>";
const THOUGHT: &str = "<signal type='need_turn'><reason>only a thought</reason></signal>";

#[test]
fn thinking_is_not_part_of_the_reply() {
    check(&[
        (
            "at the start",
            &format!("<think>hm {THOUGHT}</think>\nDone. {BLOCK}"),
            need("a good reason"),
            "Done.",
        ),
        (
            "after white space",
            "\n  <think>hm</think>Done.",
            Is::Nothing,
            "Done.",
        ),
        (
            "at the start of a line",
            "One.\n\n<thinking>\nhm\n</thinking>\n\nTwo.",
            Is::Nothing,
            "One.\n\nTwo.",
        ),
        (
            "two in a row",
            "<thought>a</thought> <thought>b</thought> Done.",
            Is::Nothing,
            "Done.",
        ),
        (
            "any letter case",
            "<Reasoning>hm</REASONING>Done.",
            Is::Nothing,
            "Done.",
        ),
        (
            "they end at their own name",
            "<reasoning>a<think>b</think>c</thought></reasoning>Done.",
            Is::Nothing,
            "Done.",
        ),
        (
            "they hold no code",
            &format!("<think>a `</think>\n{BLOCK} `b`"),
            need("a good reason"),
            "`b`",
        ),
        (
            "nor fences",
            &format!("<think>\n```\n{THOUGHT}\n</think>\n```\nb\n```"),
            Is::Nothing,
            "```\nb\n```",
        ),
        (
            "near misses in them are thoughts",
            "<think><signal type=x> <signals type='x'></think>Done.",
            Is::Nothing,
            "Done.",
        ),
        (
            "an end in a thought ends no block",
            &format!("<signal>\n<think></signal></think>\n{BLOCK}"),
            need("a good reason"),
            "",
        ),
        (
            "in square brackets",
            &format!("[THINK]hm {THOUGHT} [a] [/THINK]Done. {BLOCK}"),
            need("a good reason"),
            "Done.",
        ),
        (
            "in details",
            &format!(
                "<details type=\"reasoning\" done=\"true\">\n> hm {THOUGHT}\n</details>\nDone. {BLOCK}"
            ),
            need("a good reason"),
            "Done.",
        ),
        (
            "other details",
            &format!("It is.\n<details><summary>a</summary>\nb\n</details>\nDone. {BLOCK}"),
            need("a good reason"),
            "It is.\n<details><summary>a</summary>\nb\n</details>\nDone.",
        ),
        (
            "in triangles",
            "◁think▷hm — ◁ ▷◁/think▷Done.",
            Is::Nothing,
            "Done.",
        ),
        (
            "after a fenced signal",
            &format!("Done.\n```\n{BLOCK}\n```\n<think>hm</think>"),
            need("a good reason"),
            "Done.",
        ),
        (
            "a block whose field has such a name",
            "<signal type='need_turn'>\n<reasoning>hm</reasoning>\n<reason>a good reason</reason></signal>",
            need("a good reason"),
            "",
        ),
    ]);
}

#[test]
fn unclosed_thinking_runs_to_the_end() {
    for (name, reply, text) in [
        ("all of the reply", format!("<think>hm {THOUGHT}"), ""),
        (
            "after text",
            format!("Done.\n<think>hm\n{THOUGHT}"),
            "Done.",
        ),
        ("a cut end", "<think>hm</thin".to_owned(), ""),
        ("another end", "<think>hm</thinking> b".to_owned(), ""),
    ] {
        assert_eq!(interpret(&reply), (Is::Nothing, text.to_owned()), "{name}");
    }
}

#[test]
fn an_answer_may_mention_the_tags() {
    for (name, text) in [
        (
            "in mid-line",
            "Models write <think> first.\nThen </think> ends it.",
        ),
        (
            "in inline code",
            "`<think>` begins it,\n`</think>` ends it.",
        ),
        (
            "in a fence",
            "```\n<think>\nhm\n</think>\n```\nThat is how.",
        ),
        ("in a list", "- <think> begins it\n- </think> ends it"),
        (
            "other names",
            "<thinker>a</thinker>\n<rethink>\n<think-a>\n< think>",
        ),
        ("attributes", "<thought id='1'>a"),
        (
            "the closing tag alone in code",
            "The tag `</think>` ends it.\n```\na</think>b\n```",
        ),
        (
            "the closing tag alone in a sentence",
            "The model forgot </think> before it spoke, or wrote </think>, or (</think>).",
        ),
        (
            "other words in square brackets",
            "[thinking](a.md)\n[reasoning] is a word\n[Think] too, and [/think]",
        ),
        ("a cut tag at the end", "It begins with\n<think"),
        ("a closing tag cut at the end", "It ends with\n</think"),
    ] {
        assert_eq!(interpret(text), (Is::Nothing, text.to_owned()), "{name}");
    }
}

#[test]
fn unopened_thinking_end_discards_earlier_signals() {
    check(&[
        (
            "the text before it is a thought",
            "hm\n</think>\nDone.",
            Is::Nothing,
            "Done.",
        ),
        (
            "a block before it does not count, one after it does",
            &format!("hm {THOUGHT}\n</think>\nDone. {BLOCK}"),
            need("a good reason"),
            "Done.",
        ),
        (
            "nor does one alone",
            &format!("hm {THOUGHT}\n</thinking>\nDone."),
            Is::Nothing,
            "Done.",
        ),
        (
            "nor a near miss",
            "hm <signal type=x></signal>\n</think>\nDone.",
            Is::Nothing,
            "Done.",
        ),
        (
            "nor a fenced one",
            &format!("hm\n```\n{THOUGHT}\n```\n</think>"),
            Is::Nothing,
            "",
        ),
        (
            "nor one that is not closed",
            &format!("So I write <signal type=\"need_turn\"> last.</think>Done.\n{BLOCK}"),
            need("a good reason"),
            "Done.",
        ),
        (
            "only the first such tag",
            &format!("hm\n</think>\n{BLOCK} Done.\n</think>\nMore."),
            need("a good reason"),
            "Done.\n\nMore.",
        ),
        (
            "no thought has come before",
            &format!("<think>hm</think>{BLOCK} Done.\n</think>\nMore."),
            need("a good reason"),
            "Done.\n\nMore.",
        ),
        (
            "in mid-line",
            &format!("Maybe. No. {THOUGHT} So it is here.</think>It is here. {BLOCK}"),
            need("a good reason"),
            "It is here.",
        ),
        (
            "before a space",
            &format!("hm {THOUGHT}. </think> It is here. {BLOCK}"),
            need("a good reason"),
            "It is here.",
        ),
        (
            "at the end of a line",
            "I know.</thinking>\n\nIt is here.",
            Is::Nothing,
            "It is here.",
        ),
        (
            "at the end of the reply",
            "I know.</think>",
            Is::Nothing,
            "",
        ),
        (
            "in square brackets",
            &format!("hm {THOUGHT} ok[/THINK]It is here."),
            Is::Nothing,
            "It is here.",
        ),
        (
            "in triangles",
            &format!("hm {THOUGHT} ok◁/think▷It is — here."),
            Is::Nothing,
            "It is — here.",
        ),
        (
            "in a block it ends nothing",
            "<signal type='need_turn'><reason>a good reason</reason><thought>b\n</thought></signal>",
            need("a good reason"),
            "",
        ),
    ]);
}
