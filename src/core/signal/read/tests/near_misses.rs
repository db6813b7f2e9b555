//! Near misses: opening tags that name a type and break the rules.

use super::*;

const BLOCK: &str = "<signal type='need_turn'><reason>a good reason</reason></signal>";
const FIELDS: &str = "<reason>a good reason</reason><confidence>0.9</confidence>";
const PLURAL: &str = "the tag is `signal`, not `signals`";
const SELF_CLOSED: &str = "a `signal` tag must not be self-closed";
const MALFORMED: &str =
    "the attributes of a `signal` tag need quoted values and a `>` after the last";

fn rejected(fault: &str) -> Is {
    Is::Rejected(format!(
        "{fault}; write `signal type=\"need_turn\"` in angle brackets, then the fields and a \
         closing `signal` tag"
    ))
}

#[test]
fn near_miss_is_stripped_and_rejected() {
    for (name, tag, fault) in [
        ("plural", "<signals type=\"stuck\">", PLURAL),
        ("plural in capitals", "<SIGNALS Type = 'stuck' >", PLURAL),
        ("plural, unquoted", "<signals type=stuck>", PLURAL),
        ("plural, self-closed", "<signals type='stuck'/>", PLURAL),
        ("self-closed", "<signal type=\"need_turn\"/>", SELF_CLOSED),
        ("self-closed, spaced", "<signal type='x' />", SELF_CLOSED),
        ("self-closed, unquoted", "<signal type=x/>", SELF_CLOSED),
        (
            "self-closed with a bracket in a value",
            "<signal type='x' note='a > b'/>",
            SELF_CLOSED,
        ),
        ("unquoted", "<signal type=need_turn>", MALFORMED),
        ("unquoted, spaced", "<signal type = need_turn >", MALFORMED),
        ("no value", "<signal type=>", MALFORMED),
        (
            "unquoted over lines",
            "<signal\n  type=need_turn\n  confidence=0.9\n>",
            MALFORMED,
        ),
        (
            "unquoted before the type",
            "<signal confidence=0.9 type='need_turn'>",
            MALFORMED,
        ),
        (
            "values that touch",
            "<signal type='x'confidence='1'>",
            MALFORMED,
        ),
        (
            "a comma between attributes",
            "<signal type='x', confidence='1'>",
            MALFORMED,
        ),
        ("an attribute alone", "<signal type='x' last>", MALFORMED),
        ("a lost quote", "<signal type=\"need_turn>", MALFORMED),
    ] {
        for (part, reply, text) in [
            ("alone", format!("Done. {tag}"), "Done."),
            ("with text", format!("Done. {tag} More."), "Done.  More."),
            (
                "with text on the next line",
                format!("Done. {tag}\nMore."),
                "Done. \nMore.",
            ),
            ("with fields", format!("Done.\n{tag}\n{FIELDS}\n"), "Done."),
            (
                "with cut fields",
                format!("Done.\n{tag}\n<reason>five"),
                "Done.",
            ),
            (
                "with a closing tag",
                format!("Done. {tag}{FIELDS}</signal> More."),
                "Done.  More.",
            ),
            (
                "with the plural's closing tag",
                format!("Done. {tag}{FIELDS}</signals > More."),
                "Done.  More.",
            ),
            (
                "in front of a closing tag after text",
                format!("Done. {tag} all of it </signal> More."),
                "Done.  More.",
            ),
        ] {
            let expected = (rejected(fault), text.to_owned());
            assert_eq!(interpret(&reply), expected, "{name}, {part}: {reply:?}");
        }
    }
}

#[test]
fn near_miss_without_a_bracket_ends_at_its_line() {
    for (name, reply, text) in [
        (
            "before a field",
            "a\n<signal type='need_turn'\n<reason>five words</reason>\n</signal>\nb",
            "a\n\nb",
        ),
        (
            "before the next line of text",
            "a <signal type='x'\nThe answer is 42.\nb",
            "a \nThe answer is 42.\nb",
        ),
        ("unquoted", "a <signal type=x\nand b", "a \nand b"),
        (
            "with a lost quote",
            "a <signal type='x and so on\nb",
            "a \nb",
        ),
        (
            "with a lost quote before a field",
            "a <signal type='x<reason>five words</reason>\n</signal>\nb",
            "a \nb",
        ),
        (
            "in prose",
            "Write <signal type= and the name.\nThen go on.",
            "Write \nThen go on.",
        ),
    ] {
        let expected = (rejected(MALFORMED), text.to_owned());
        assert_eq!(interpret(reply), expected, "{name}");
    }
}

#[test]
fn near_miss_is_ignored_beside_a_valid_block() {
    let good = || need("a good reason");
    check(&[
        (
            "a block after it counts",
            &format!("a <signal type=x/> b {BLOCK} c"),
            good(),
            "a  b  c",
        ),
        (
            "a block before it counts",
            &format!("a {BLOCK} b <signals type='x'> c"),
            good(),
            "a  b  c",
        ),
        (
            "a block in it counts",
            &format!("a <signals type='x'>{BLOCK}</signals> b"),
            good(),
            "a  b",
        ),
        (
            "a block in it counts after a tag that never closes",
            &format!("a <signal><signals type='x'>{BLOCK}</signals> b"),
            good(),
            "a  b",
        ),
        (
            "a fenced block at the end counts",
            &format!("a <signal type=x/> b\n```\n{BLOCK}\n```"),
            good(),
            "a  b",
        ),
        (
            "a fenced block after a closed one in an unclosed tag counts",
            &format!("a <signal> <signals type='x'></signals> b\n```\n{BLOCK}\n```"),
            good(),
            "a  b",
        ),
        (
            "in a field of a block it is text",
            "<signal type='need_turn'><reason>not <signal type=x> here</reason></signal>",
            need("not <signal type=x> here"),
            "",
        ),
        (
            "with its closing tag in a field of a block too",
            "<signal type='need_turn'><reason><signals type=x>b</signals></reason></signal>",
            need("<signals type=x>b</signals>"),
            "",
        ),
        (
            "a rejected block goes first",
            "a <signal type=x/> <signal type='x'></signal> b",
            Is::Rejected(format!(
                "the signal type `x` is unknown; use one of {}",
                SignalType::ALL.map(SignalType::as_str).join(", ")
            )),
            "a  b",
        ),
        (
            "of two near misses the first counts",
            "a <signal type=x/> <signals type='x'> b",
            rejected(SELF_CLOSED),
            "a  b",
        ),
        (
            "a misspelt type",
            "a <signal type=\"context_suficient\"><sources_found>1</sources_found></signal>",
            Is::Rejected(format!(
                "the signal type `context_suficient` is unknown; use one of {}",
                SignalType::ALL.map(SignalType::as_str).join(", ")
            )),
            "a",
        ),
    ]);
}

#[test]
fn near_miss_in_code_is_content() {
    for (name, text) in [
        ("inline", "never `<signal type=need_turn>` or so"),
        ("inline, self-closed", "as `<signal type=\"stuck\"/>` shows"),
        ("in a fence", "```\n<signals type='x'>a</signals>\n```\nb"),
        (
            "all of the last fence",
            "a\n```xml\n<signal type=need_turn></signal>\n```",
        ),
        ("closing", "a </signals> b"),
    ] {
        assert_eq!(interpret(text), (Is::Nothing, text.to_owned()), "{name}");
    }
}

#[test]
fn near_miss_raw_xml_is_verbatim() {
    for (reply, raw_xml) in [
        ("a <signal type=x/> b", "<signal type=x/>"),
        (
            "a <signals type='x'>b</signals> c",
            "<signals type='x'>b</signals>",
        ),
        (
            "a <signals type='x'>b <signal type=y>c</signal>",
            "<signals type='x'>",
        ),
    ] {
        let finding = read(reply, Timestamp::default()).finding;
        assert_eq!(finding.rejection().unwrap().raw_xml, raw_xml, "{reply}");
    }
}
