//! Which bytes are tags, and which tags match.

use super::*;

const BODY: &str = "<reason>a good reason</reason></signal>";

#[test]
fn opening_tags_parse_in_every_form() {
    for (name, tag) in [
        ("plain", r#"<signal type="need_turn">"#),
        ("single quotes", "<signal type='need_turn'>"),
        ("spare white space", "<signal \t type = \"need_turn\"  >"),
        (
            "no-break spaces",
            "<signal\u{a0}type\u{a0}=\u{a0}\"need_turn\"\u{a0}>",
        ),
        (
            "wide spaces",
            "<signal\u{3000}\u{2028}type=\"need_turn\"\u{85}>",
        ),
        ("over lines", "<signal\n  type=\n'need_turn'\r\n>"),
        ("letter case of all parts", r#"<SIGNAL Type="Need_Turn">"#),
        (
            "attributes in any order",
            r#"<signal confidence='0.9' x="" type="need_turn">"#,
        ),
        (
            "markup in a value",
            r#"<signal note="a > b < c ' `" type="need_turn">"#,
        ),
        (
            "a tag in a value",
            r#"<signal note="<signal>" type="need_turn">"#,
        ),
        (
            "white space around the type",
            r#"<signal type=" need_turn ">"#,
        ),
    ] {
        let reply = format!("Text {tag}{BODY} more");
        assert_eq!(
            interpret(&reply),
            (need("a good reason"), "Text  more".to_owned()),
            "{name}"
        );
    }
}

#[test]
fn lookalike_tags_stay_as_text() {
    for (name, text) in [
        ("a header file", "#include <signal.h> and more"),
        ("an attribute without a value", "<signal type> and more"),
        (
            "an attribute without a value, spaced",
            "<signal type > and more",
        ),
        (
            "a longer name without a type",
            "<signals of=\"a\" typed='1'> and <signals> and more",
        ),
        ("a space before the name", "< signal> and more"),
        ("a value without quotes", "<signal a=need_turn> and more"),
        ("a longer name cut at the end", "ends in <signals a='1"),
        (
            "a type that is no attribute",
            "<signal a=\"type=x\" b> and more",
        ),
        ("values that touch", r#"<signal a="1"b="2"> and more"#),
        ("a lost quote", "<signal a=\"need_turn> and more\nand more"),
        ("a value over lines", "<signal a=\"need\nturn\"> and more"),
        (
            "self-closed tags",
            r#"<signal/> <signal /> <signal a="1"/> and more"#,
        ),
        (
            "a signal in JSON",
            r#"{"signal": "context_sufficient", "sources_found": 3}"#,
        ),
        (
            "a translated signal",
            "<señal tipo=\"atascado\"><razón>no hay nada</razón></señal>",
        ),
        ("a slash before white space", "</ signal> and more"),
        ("a name that begins alike", "<sign> <s> </signals>"),
        ("a bare name at the end", "ends in <signal"),
        ("half a name at the end", "ends in <sig"),
        ("a comparison", "if a < b && b > c"),
    ] {
        assert_eq!(interpret(text), (Is::Nothing, text.to_owned()), "{name}");
    }
}

#[test]
fn closing_tags_allow_whitespace_and_any_case() {
    for closing in [
        "</signal>",
        "</signal  >",
        "</SIGNAL\n>",
        "</Signal\t>",
        "</signal\u{2003}\u{b}>",
    ] {
        let reply = format!("<signal type='need_turn'><reason>a good reason</reason>{closing}end");
        assert_eq!(
            interpret(&reply),
            (need("a good reason"), "end".to_owned()),
            "{closing:?}"
        );
    }
}

#[test]
fn tags_match_like_brackets() {
    let inner = "<signal type='stuck'><reason>not this one</reason><blocker>x</blocker></signal>";
    check(&[
        (
            "of a nested pair the outer block counts, with its own fields only",
            &format!("a <signal type='need_turn'><reason>outer reason</reason>{inner}</signal> b"),
            need("outer reason"),
            "a  b",
        ),
        (
            "fields of the inner block are not those that the outer lacks",
            &format!("<signal type='need_turn'>{inner}</signal>"),
            rejected("a need_turn signal needs the field `reason`, which is missing"),
            "",
        ),
        (
            "a block in a field is text of the field",
            "<signal type='need_turn'><reason>a <signal><reason>b</reason></signal> c</reason></signal>",
            need("a <signal><reason>b</reason></signal> c"),
            "",
        ),
        (
            "an opening tag that never closes is no block, a complete one after it counts",
            "One <signal type='stuck'> two <signal type='need_turn'><reason>a good reason</reason></signal> three",
            need("a good reason"),
            "One  two  three",
        ),
        (
            "two that never close",
            "1<signal>2<signal>3<signal type='need_turn'><reason>a good reason</reason></signal>4",
            need("a good reason"),
            "1234",
        ),
        (
            "of two complete ones after an unclosed one the first counts",
            "<signal>1<signal type='need_turn'><reason>first one</reason></signal>2<signal type='need_turn'><reason>second</reason></signal>",
            need("first one"),
            "12",
        ),
        (
            "a stray closing tag ends nothing",
            "a</signal> b <signal type='need_turn'><reason>a good reason</reason></signal>",
            need("a good reason"),
            "a b",
        ),
    ]);
}

#[test]
fn signal_keeps_raw_xml_and_parse_time() {
    let block = "<Signal  type='need_turn' >\n <Reason> five5 &amp; </Reason>\n</signal >";
    let at = Timestamp::from_millis(7);
    let reading = read(&format!("x {block} y"), at);
    let signal = reading.finding.signal().unwrap();
    assert_eq!((signal.raw_xml.as_str(), signal.timestamp), (block, at));
    let reading = read("<signal type='x'></signal>", at);
    assert_eq!(
        reading.finding.rejection().unwrap().raw_xml,
        "<signal type='x'></signal>"
    );
}
