//! The cost of reading is linear in the reply, even for adversarial replies.

use super::*;
use crate::signal::view::STEPS;

const SIZE: usize = 1 << 20;
/// Maximum number of visits per byte.
const MOST: usize = 16;

/// `unit`, repeated.
fn full_of(unit: &str) -> String {
    unit.repeat(SIZE / unit.len())
}

/// Runs of backticks of all lengths on one line, none of which closes.
fn rising_ticks() -> String {
    let mut text = String::new();
    let mut length = 1;
    while text.len() < SIZE {
        text.push_str(&"`".repeat(length));
        text.push('x');
        length += 1;
    }
    text
}

fn in_block(inside: &str) -> String {
    format!("<signal type='stuck'>{inside}</signal>")
}

/// Replies with superlinear cost for a naive reader.
fn adversarial() -> Vec<(&'static str, String)> {
    vec![
        (
            "opening tags without an end",
            full_of("<signal type=\"a\">"),
        ),
        (
            "opening tags, then all ends",
            full_of("<signal type='x'>") + &full_of("</signal>"),
        ),
        (
            "opening tags without a bracket",
            full_of("<signal type=\"a\""),
        ),
        ("a value without an end", full_of("<signal type=\"aaaa")),
        (
            "values in alternating quotes",
            full_of("<signal a=\"<signal b='"),
        ),
        (
            "attributes that swallow tags",
            full_of("<signal a=\" b='<signal a=' b=\" "),
        ),
        (
            "attributes without an end",
            "<signal".to_owned() + &full_of(" a=\"<signal \""),
        ),
        (
            "white space in tags",
            full_of("<signal                      "),
        ),
        ("closing tags without a bracket", full_of("</signal ")),
        ("near misses", full_of("<signals type=x>")),
        ("self-closed tags", full_of("<signal type='x'/>")),
        ("near misses without a bracket", full_of("<signal type=x ")),
        ("a near miss over lines", full_of("<signal type=x\n")),
        (
            "near misses, then all ends",
            full_of("<signal type=x>") + &full_of("</signal>"),
        ),
        (
            "near misses, then all ends of theirs",
            full_of("<signals type=x>") + &full_of("</signals>"),
        ),
        (
            "near misses and blocks in a near miss",
            "<signal type=x>".to_owned() + &full_of("<signals type=x></signals><signal></signal>"),
        ),
        (
            "ends of near misses in open blocks",
            full_of("<signals type=x><signal></signals>"),
        ),
        (
            "fields after near misses",
            full_of("<signal type=x><a><b>1</b>"),
        ),
        (
            "types in quotes that do not end",
            full_of("<signal type=\"> <signal type='> "),
        ),
        (
            "types in values that swallow tags",
            full_of("<signal type=\" b='<signal type=' b=\" "),
        ),
        (
            "types whose values have brackets",
            full_of("<signal type='x' a=\"> b\"c"),
        ),
        (
            "attributes called type",
            "<signal".to_owned() + &full_of(" type"),
        ),
        ("thoughts", full_of("<think>a</think>\n")),
        ("thoughts without an end", full_of("\n<think>a")),
        ("ends of thoughts", full_of("\n</thinking>")),
        (
            "cut ends of thoughts",
            "<reasoning>".to_owned() + &full_of("</reasonin"),
        ),
        (
            "brackets in a thought",
            "<think>".to_owned() + &full_of("<"),
        ),
        (
            "white space before thoughts",
            full_of("                      <think></think>"),
        ),
        (
            "one long name at the start of a line",
            format!("<{}", full_of("think")),
        ),
        ("brackets", full_of("<")),
        ("backticks", full_of("`")),
        ("backticks in runs of all lengths", rising_ticks()),
        ("lone backticks, a tag each", full_of("`\n<signal>`` ")),
        ("two lengths of backticks", full_of("` `` ")),
        ("fences that open", full_of("```\n")),
        ("fences in two marks", full_of("```\n~~~\n")),
        ("fence lines with backticks after", full_of("```a`\n")),
        (
            "lone fenced signals",
            full_of("```\n<signal></signal>\n```\n"),
        ),
        ("unclosed fenced signals", full_of("```\n<signal>\n```\n")),
        (
            "long runs that do not close",
            "```\n".to_owned() + &full_of("``"),
        ),
        ("fields without an end", in_block(&full_of("<reason>"))),
        (
            "fields of other names without an end",
            in_block(&full_of("<a><b><c>")),
        ),
        ("ends of fields", in_block(&full_of("</reason>"))),
        (
            "fields in fields",
            in_block(&(full_of("<a>") + &full_of("</a>"))),
        ),
        ("fields without a bracket", in_block(&full_of("<reason "))),
        ("one long name", in_block(&format!("<{}", full_of("a")))),
        (
            "blocks in the block",
            in_block(&full_of("<signal></signal>")),
        ),
        (
            "fields after tags that never close",
            full_of("<signal><a><b>1</b>"),
        ),
        (
            "a field without an end after each tag",
            full_of("<signal><a>"),
        ),
        (
            "a list in a list in a list",
            in_block(&format!("<attempted>{}", full_of("["))),
        ),
        ("newlines", full_of("\n")),
        ("newlines after text", full_of("a\n\n\n\n")),
        ("white space", full_of(" ")),
        ("plain text", full_of("Plain words, as most replies have. ")),
    ]
}

#[test]
fn parsing_is_linear_in_the_reply() {
    for (name, reply) in adversarial() {
        STEPS.set(0);
        let reading = read(&reply, Timestamp::default());
        let steps = STEPS.get();
        assert!(
            steps <= MOST * reply.len(),
            "{name}: {steps} steps for {}",
            reply.len()
        );
        assert!(
            steps >= reply.len(),
            "{name}: {steps} steps for {}",
            reply.len()
        );
        assert!(reading.text.len() <= reply.len(), "{name}");
    }
}

#[test]
fn streaming_in_small_chunks_stays_linear() {
    for (name, reply) in adversarial() {
        STEPS.set(0);
        let mut shown = String::new();
        let mut filter = SignalFilter::default();
        let mut end = 0;
        while end < reply.len() {
            end = (end + 20).min(reply.len());
            let view = View::whole(&reply).until(end, false);
            filter.feed(view, &mut shown);
        }
        filter.feed(View::whole(&reply), &mut shown);
        let steps = STEPS.get();
        assert!(
            steps <= MOST * reply.len(),
            "{name}: {steps} for {}",
            reply.len()
        );
        assert_eq!(shown, read(&reply, Timestamp::default()).text, "{name}");
    }
}
