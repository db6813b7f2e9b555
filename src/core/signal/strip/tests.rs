//! The stream yields the reader's text, however it is cut, and yields it early.

use std::sync::{Arc, LazyLock};

use proptest::{prelude::*, sample::select, test_runner::Config};
use regex::Regex;

use super::*;
use crate::{
    model::{Timestamp, ToolSpec},
    signal::{Finding, escape, read, read_reply},
};

/// Runs 10,000 cases, and twenty times as many if `ORACLE_LONG_TESTS` is set.
fn cases() -> Config {
    let long = std::env::var("ORACLE_LONG_TESTS").is_ok_and(|value| value == "1");
    Config {
        cases: if long { 200_000 } else { 10_000 },
        failure_persistence: None,
        ..Config::default()
    }
}

fn fragment() -> impl Strategy<Value = String> {
    let fixed = select(vec![
        "<signal type=\"need_turn\">",
        "<signal type='stuck' confidence='0.4'>",
        "<SIGNAL\n type = \"x\" >",
        "<signal\u{a0}type\u{2003}=\u{3000}'x'\u{85}>",
        "</signal\u{1680}>",
        "<signal\u{a0}",
        "\u{2028}",
        "<signal>",
        "</signal>",
        "</Signal \n>",
        "<signal type=\"need_turn\"><reason>a good reason</reason></signal>",
        "<signal",
        "<signal ",
        "<signal type",
        "<signal type=\"",
        "<signal type=need_turn>",
        "<signal type=\"need_turn\"/>",
        "<signals type='stuck'>",
        "<signals",
        "</signals>",
        " type=",
        "/>",
        "<signal a='<signal b=\"",
        "<sig",
        "</sig",
        "nal>",
        "<",
        "</",
        ">",
        "\"",
        "'",
        "=",
        "<reason>",
        "</reason>",
        "<reason>five words in a field</reason>",
        "<confidence>0.5</confidence>",
        "<a/>",
        "<rea",
        "`",
        "``",
        "```",
        "````",
        "~~~",
        "\n```\n",
        "\n```xml\n",
        "\n~~~\n",
        "\n   ```  \n",
        "\n    ```\n",
        "```\n<signal type='need_turn'><reason>a good reason</reason></signal>\n```",
        "\n",
        "\n\n",
        "\n\n\n",
        "\r\n",
        " ",
        "   ",
        "\t",
        "\u{a0}",
        "plain",
        "ä€😀",
        "漢字 ",
        "&lt;",
    ]);
    prop_oneof![9 => fixed.prop_map(str::to_owned), 1 => any::<String>()]
}

fn reply() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 0..16).prop_map(|parts| parts.concat())
}

/// A reply with reasoning and fragments of its tags.
fn thoughtful_reply() -> impl Strategy<Value = String> {
    let tag = select(vec![
        "<think>",
        "</think>",
        "\n</THINK>\n",
        "\n <Thinking>",
        "</thinking>",
        "\n<thi",
        "nk>",
        "</thin",
        "\n</",
        "<reasoning>",
        "</reasoning>",
        "[THINK]",
        "[/THINK]",
        "◁think▷",
        "◁/think▷",
        "<|im_end|>",
        "<|im_start|>assistant\n",
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
        "<|end|>",
        "</s>",
        "<s>",
        "[INST]",
        "<tool_call>",
        "{\"name\": \"search\", \"arguments\": {}}",
        "\n{\"name\": \"search\", \"arguments\": {}}\n",
        "</tool_call>\n",
        "<function=search></function>",
        "[TOOL_CALLS]",
    ]);
    let part = prop_oneof![2 => fragment(), 1 => tag.prop_map(str::to_owned)];
    prop::collection::vec(part, 0..16).prop_map(|parts| parts.concat())
}

/// Cuts a text after these numbers of characters, cyclically.
fn chunks<'a>(mut text: &'a str, sizes: &[usize]) -> Vec<&'a str> {
    let mut chunks = Vec::new();
    let mut sizes = sizes.iter().cycle();
    while let (false, Some(size)) = (text.is_empty(), sizes.next()) {
        let end = text
            .char_indices()
            .nth(*size)
            .map_or(text.len(), |(at, _)| at);
        let (chunk, rest) = text.split_at(end);
        chunks.push(chunk);
        text = rest;
    }
    chunks
}

/// The output of each push and of the end.
fn strip<'a>(parts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut stripper = Stripper::new();
    let mut shown: Vec<_> = parts
        .into_iter()
        .map(|chunk| stripper.push(chunk))
        .collect();
    shown.push(stripper.finish());
    shown
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn chunking_does_not_change_the_stripped_text(
        reply in prop_oneof![reply(), thoughtful_reply()],
        sizes in prop::collection::vec(1_usize..12, 1..6),
    ) {
        let tools: Arc<[ToolSpec]> = Arc::new([ToolSpec::new("search", "", true.into())]);
        for tools in [Arc::default(), tools] {
            let whole = read_reply(&reply, Arc::clone(&tools), true, Timestamp::default());
            let mut stripper = Stripper::for_tools(tools, true);
            let pieces = chunks(&reply, &sizes).into_iter();
            let mut shown: String = pieces.map(|piece| stripper.push(piece)).collect();
            shown += &stripper.finish();
            let text = whole.reading.text;
            // A thought without an opening tag is shown before its end is known.
            let is_whole = !["</", "[/", "◁/"].iter().any(|tag| reply.contains(tag));
            prop_assert!(shown.ends_with(&text), "{shown:?} {text:?}");
            prop_assert!(shown == text || !is_whole, "{shown:?} {text:?}");
        }
    }

    #[test]
    fn leading_thinking_does_not_change_the_reading(
        reply in reply(),
        thought in prop::collection::vec(fragment(), 0..8),
        sizes in prop::collection::vec(1_usize..12, 1..6),
    ) {
        let thoughtful = format!(" \n<think>{}</think>\n{reply}", thought.concat());
        let [with, without] = [&thoughtful, &reply].map(|text| read(text, Timestamp::default()));
        prop_assert_eq!(&with, &without);
        prop_assert_eq!(strip(chunks(&thoughtful, &sizes)).concat(), without.text);
    }

    #[test]
    fn streaming_never_shows_a_block(
        parts in prop::collection::vec((outside(), inside()), 0..6),
        last in outside(),
        sizes in prop::collection::vec(1_usize..12, 1..6),
    ) {
        let mut reply = String::new();
        for (text, block) in parts {
            reply.push_str(&text);
            reply.push_str(&format!("<signal type='need_turn'>§{block}§</signal>"));
        }
        reply.push_str(&last);
        for piece in strip(chunks(&reply, &sizes)) {
            prop_assert!(!piece.contains('§'), "{piece:?} of {reply:?}");
        }
    }

    #[test]
    fn parser_agrees_with_the_reference_without_code(reply in reply()) {
        // The last line ends a tag that the reply leaves cut. Without a type there are no near
        // misses; other tests cover those.
        let reply = reply.replace(['`', '~'], "").replace("type", "kind") + "\n!";
        let reading = read(&reply, Timestamp::default());
        let plain = plain(&reply);
        let raw_xml = match &reading.finding {
            Finding::Nothing => None,
            Finding::Signal(signal) => Some(signal.raw_xml.as_str()),
            Finding::Rejection(rejection) => Some(rejection.raw_xml.as_str()),
        };
        prop_assert_eq!(raw_xml, plain.block);
        if let Some(text) = plain.text {
            prop_assert_eq!(reading.text, text);
        }
    }

    #[test]
    fn escaped_text_contains_no_signal(reply in reply(), after in reply()) {
        let escaped = format!("{}{}", escape(&reply), escape(&after));
        let reading = read(&escaped, Timestamp::default());
        prop_assert_eq!(reading.finding, Finding::Nothing);
        prop_assert_eq!(reading.text, tidied(&escaped));
    }

    #[test]
    fn arbitrary_bytes_strip_alike_when_streamed(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let reply = String::from_utf8_lossy(&bytes);
        let whole = read(&reply, Timestamp::default()).text;
        prop_assert_eq!(strip(chunks(&reply, &[1])).concat(), whole);
    }
}

fn outside() -> impl Strategy<Value = String> {
    prop::collection::vec(
        select(vec![
            "plain ",
            "\n",
            "\n\n\n",
            " < ",
            "<sig",
            "<signals>",
            "<signals type='stuck'>",
            "<signal type=",
            "<signal type='x'/>",
            "</signals>",
            "\n<think>§</think>",
            "ä€😀",
            "</b>",
            "<reason>",
        ]),
        0..5,
    )
    .prop_map(|parts| parts.concat())
}

/// The content of a block that neither ends it nor hides its end.
fn inside() -> impl Strategy<Value = String> {
    prop::collection::vec(
        select(vec![
            "§",
            "<reason>§</reason>",
            "\n§\n",
            "<signal>§</signal>",
            "`§`",
            "<signal type=§>",
            "\n<think></signal></think>",
            "<reason",
            "ä§",
        ]),
        0..5,
    )
    .prop_map(|parts| parts.concat())
}

/// A reference implementation for replies without code, written for clarity.
struct Plain<'a> {
    block: Option<&'a str>,
    /// `None` if a tag stays open.
    text: Option<String>,
}

static TAG: LazyLock<Regex> = LazyLock::new(|| {
    let white = r"\s";
    let name = "[sS][iI][gG][nN][aA][lL]";
    let value = r#"(?:"[^"\n]*"|'[^'\n]*')"#;
    let attribute = format!("{white}+[A-Za-z_][A-Za-z0-9_.:-]*{white}*={white}*{value}");
    Regex::new(&format!(
        "<{name}(?:{attribute})*{white}*>|</{name}{white}*>"
    ))
    .unwrap()
});

fn plain(reply: &str) -> Plain<'_> {
    let (mut open, mut blocks): (Vec<usize>, Vec<(usize, usize)>) = (vec![], vec![]);
    let mut strays = vec![];
    for tag in TAG.find_iter(reply) {
        if !tag.as_str().starts_with("</") {
            open.push(tag.start());
        } else if let Some(start) = open.pop() {
            blocks.retain(|block| block.0 < start);
            blocks.push((start, tag.end()));
        } else {
            strays.push((tag.start(), tag.end()));
        }
    }
    let block = blocks.first().map(|block| &reply[block.0..block.1]);
    let text = open.is_empty().then(|| {
        let mut gone = [blocks, strays].concat();
        gone.sort_unstable();
        let mut text = reply.to_owned();
        gone.iter()
            .rev()
            .for_each(|(start, end)| text.replace_range(start..end, ""));
        tidied(&text)
    });
    Plain { block, text }
}

/// Normalizes white space by plain replacement.
fn tidied(text: &str) -> String {
    let mut text = text.trim().to_owned();
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

#[test]
fn visible_text_is_streamed_at_once() {
    for (name, steps) in [
        (
            "plain text",
            vec![("Hello", "Hello"), (" wor", " wor"), ("ld", "ld")],
        ),
        (
            "white space waits for text",
            vec![("a \n", "a"), ("\n\n", ""), ("b", " \n\nb")],
        ),
        (
            "newlines fold",
            vec![("a\n", "a"), ("\n\n\n", ""), ("b", "\n\nb")],
        ),
        ("leading white space goes", vec![("\n \n", ""), ("a", "a")]),
        ("a comparison", vec![("a <", "a"), (" b", " < b")]),
        (
            "a tag that is none",
            vec![("x <sig", "x"), ("n> y", " <sign> y")],
        ),
        (
            "a header file",
            vec![("x <signal", "x"), (".h> y", " <signal.h> y")],
        ),
        (
            "a lost quote ends on its line",
            vec![("<signal a=\"a b", ""), ("\nc", "<signal a=\"a b\nc")],
        ),
        (
            "a near miss",
            vec![
                ("a <signals ty", "a"),
                ("pe='x'>b", ""),
                ("</signals> c", "  c"),
            ],
        ),
        (
            "the plural without a type",
            vec![("a <signals x='1'", "a"), ("> b", " <signals x='1'> b")],
        ),
        (
            "a thought",
            vec![
                ("<thi", ""),
                ("nk>hm <", ""),
                ("/thi", ""),
                ("nk> a", "a"),
                ("b\n <", "b"),
                ("r>b", "\n <r>b"),
            ],
        ),
        (
            "the end of a thought whose start is missing",
            vec![("hm\n</thi", "hm"), ("nk>\na", "\n\na")],
        ),
        (
            "the tag of a thought in mid-line",
            vec![("a <think> b", "a <think> b"), (" </think>", " </think>")],
        ),
        (
            "a block",
            vec![
                ("a <signal type='x'>b", "a"),
                ("</sig", ""),
                ("nal> c", "  c"),
            ],
        ),
        (
            "an open line of backticks",
            vec![("use `f", "use `f"), ("oo now", "oo now"), ("` ok", "` ok")],
        ),
        (
            "a tag on such a line waits",
            vec![("`a <signal> b", "`a"), ("` c", " <signal> b` c")],
        ),
        (
            "it waits no longer than its line",
            vec![("`a </signal> b", "`a"), ("\nc", "  b\nc")],
        ),
        ("a stray tag", vec![("a </signal> b", "a  b")]),
        (
            "a fence of code",
            vec![
                ("```rust\nf", "```rust\nf"),
                ("n", "n"),
                ("\n``", ""),
                ("`\nx", "\n```\nx"),
            ],
        ),
        (
            "a fence that may be a signal",
            vec![
                ("a\n```xml\n<signal>", "a"),
                ("</signal>\n```\n", ""),
                ("b", "\n```xml\n<signal></signal>\n```\nb"),
            ],
        ),
        (
            "such a fence after the signal",
            vec![("<signal></signal>a\n```\n<signal>b", "a\n```\n<signal>b")],
        ),
        (
            "text in such a fence",
            vec![
                ("```\n<signal></signal>", ""),
                (" b", "```\n<signal></signal> b"),
            ],
        ),
    ] {
        let mut stripper = Stripper::new();
        for (chunk, expected) in steps {
            assert_eq!(stripper.push(chunk), expected, "{name}: after {chunk:?}");
        }
    }
}

#[test]
fn finish_resolves_open_tags() {
    for (name, chunk, pushed, finished) in [
        ("an unclosed tag", "a <signal type='x'> b", "a", "  b"),
        (
            "an unclosed tag with fields",
            "a <signal type='x'><reason>b",
            "a",
            "",
        ),
        ("half a tag", "a <sig", "a", " <sig"),
        ("half the tag of a thought", "a\n<thin", "a", "\n<thin"),
        ("an unclosed thought", "a\n<think> b", "a", ""),
        (
            "an unclosed near miss",
            "a <signals type='x'> b",
            "a",
            "  b",
        ),
        (
            "a near miss with a lost quote",
            "a <signal type='x> b",
            "a",
            "  b",
        ),
        (
            "a fenced signal",
            "a\n```\n<signal></signal>\n```\n",
            "a",
            "",
        ),
        ("a fence mark", "a\n```", "a", "\n```"),
        ("trailing white space", "a \n ", "a", ""),
        ("a tag behind a backtick", "`a <signal> b", "`a", "  b"),
    ] {
        let shown = strip([chunk]);
        assert_eq!(shown, [pushed, finished], "{name}");
    }
}
