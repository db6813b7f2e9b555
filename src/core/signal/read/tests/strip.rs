//! The visible text.

use super::*;

const BLOCK: &str = "<signal type='need_turn'><reason>a good reason</reason></signal>";

#[test]
fn unclosed_opening_tag_is_stripped_with_its_fields() {
    for (name, reply, text) in [
        ("alone", "Done. <signal type='stuck'>", "Done."),
        ("with text after it", "a <signal type='stuck'> b", "a  b"),
        (
            "whole fields",
            "Done.\n<signal type='x'>\n<a>1</a>\n<b>2</b>\n",
            "Done.",
        ),
        (
            "a cut field",
            "Answer here.\n<signal type=\"need_turn\">\n  <reason>Unclosed signal",
            "Answer here.",
        ),
        (
            "a cut closing tag of a field",
            "Done.\n<signal>\n<a>1</a><b>2</b",
            "Done.",
        ),
        (
            "a cut opening tag of a field",
            "Done.\n<signal>\n<a>1</a><rea",
            "Done.",
        ),
        ("a bare bracket", "Done.\n<signal>\n<a>1</a>\n<", "Done."),
        (
            "a cut closing tag",
            "Done.\n<signal>\n<a>1</a>\n</sig",
            "Done.",
        ),
        (
            "a closing tag cut before its end",
            "Done.\n<signal>\n<a>1</a>\n</signal ",
            "Done.",
        ),
        ("an empty field", "Done.\n<signal>\n<a/>\n", "Done."),
        (
            "fields and text: only the tag goes",
            "a <signal><b>1</b> text",
            "a <b>1</b> text",
        ),
        (
            "text and fields",
            "a <signal>text <b>1</b>",
            "a text <b>1</b>",
        ),
        ("a stray end of a field", "a <signal></b>", "a </b>"),
        (
            "its fields, before a complete block",
            "a <signal><b>1 <signal></signal> c",
            "a  c",
        ),
        (
            "cut in its own attributes",
            "Done.\n<signal type=\"need_tu",
            "Done.",
        ),
        ("cut after its name", "Done.\n<signal ", "Done."),
        ("twice", "a <signal><b>1</b><signal><c>2", "a"),
        (
            "the closing tag of a near miss",
            "a <signal type='x'><b>1</b></signals>",
            "a",
        ),
    ] {
        assert_eq!(interpret(reply).1, text, "{name}");
    }
}

#[test]
fn stray_tags_outside_code_are_stripped() {
    for (name, reply, text) in [
        ("closing", "a </signal> b", "a  b"),
        ("closing, spaced", "a </SIGNAL\n > b", "a  b"),
        ("closing before opening", "</signal>a<signal type='x'>", "a"),
        ("cut at the end", "a </signal", "a"),
        ("in code it stays", "a `</signal>` b", "a `</signal>` b"),
        (
            "in a fence it stays",
            "```\n</signal>\n```\nb",
            "```\n</signal>\n```\nb",
        ),
    ] {
        assert_eq!(interpret(reply), (Is::Nothing, text.to_owned()), "{name}");
    }
}

#[test]
fn complete_blocks_are_stripped_and_whitespace_is_tidied() {
    for (name, reply, text) in [
        ("three newlines", "a\n\n\nb".to_owned(), "a\n\nb"),
        ("many newlines", "a\n\n\n\n\n\n\nb".to_owned(), "a\n\nb"),
        ("two newlines stay", "a\n\nb".to_owned(), "a\n\nb"),
        (
            "newlines that a block parted",
            format!("a\n\n{BLOCK}\n\nb"),
            "a\n\nb",
        ),
        ("two runs", "a\n\n\nb\n\n\n\nc".to_owned(), "a\n\nb\n\nc"),
        (
            "runs parted by spaces stay",
            "a\n\n \n\nb".to_owned(),
            "a\n\n \n\nb",
        ),
        ("ends", "\n\n\n a \u{a0}\n".to_owned(), "a"),
        ("ends beside blocks", format!(" {BLOCK} a {BLOCK} "), "a"),
        (
            "multi-byte text",
            format!("ä€😀 {BLOCK} 漢字"),
            "ä€😀  漢字",
        ),
        (
            "newlines in a fence are text too",
            "```\na\n\n\n\nb\n```".to_owned(),
            "```\na\n\nb\n```",
        ),
    ] {
        assert_eq!(interpret(&reply).1, text, "{name}");
    }
}
