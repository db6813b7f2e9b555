//! Answers in any chunks: the same deltas for any cut, bounded memory, no panic on any input.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    llm::{Dialect, decode::tests::draft},
    model::{Message, Part, Role},
    testkit::llm_conformance::Scenario,
};

type Read = (Vec<Delta>, Result<Reply, Fault>);

fn decoder(dialect: Dialect) -> Box<dyn Decode> {
    (dialect.protocol().decoder)(draft(Scenario::Results))
}

fn read<'a>(dialect: Dialect, chunks: impl IntoIterator<Item = &'a [u8]>, bounds: Bounds) -> Read {
    let mut reading = Reading::new(decoder(dialect), bounds);
    let mut deltas = Vec::new();
    for chunk in chunks {
        let fed = reading.feed(chunk, &mut deltas);
        is_bounded(&reading, bounds);
        match fed {
            Ok(Flow::More) => {}
            Ok(Flow::End) => {
                let reply = reading.end(Flow::End, &mut deltas);
                return (deltas, reply);
            }
            Err(fault) => return (deltas, Err(fault)),
        }
    }
    let reply = reading.end(Flow::More, &mut deltas);
    (deltas, reply)
}

/// Memory for an incomplete event or answer grows by doubling (for the parser's `line` and `data`
/// separately); the rest is as long as its source. A byte that is not UTF-8 becomes a character of
/// three.
fn is_bounded(reading: &Reading, bounds: Bounds) {
    let (begun, made) = reading.held();
    let limit = match reading.form {
        ReplyForm::Unknown => 0,
        ReplyForm::Events(_) => 4 * bounds.event + 64,
        ReplyForm::Whole(_) => 2 * bounds.reply + 64,
    };
    assert!(
        begun <= limit.min(6 * reading.bytes + 64),
        "{begun} bytes of {}",
        reading.bytes
    );
    assert!(
        made <= 3 * reading.bytes,
        "{made} bytes of {}",
        reading.bytes
    );
}

/// Valid and invalid streams and whole answers of all dialects.
const CORPUS: &[(Dialect, &str)] = &[
    (
        Dialect::OpenAi,
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n: keep-alive\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"Grüße 🦀\"}}]}\r\n\r\n\
         data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"a\",\"index\":0}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"signature\":\"s\",\"index\":0}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"q\\\"\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n\
         data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
    ),
    (
        Dialect::OpenAi,
        "{\"choices\":[{\"message\":{\"content\":\"Whole ä\",\"tool_calls\":[{\"id\":\"b\",\"function\":{\"name\":\"g\",\"arguments\":{\"x\":[]}}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}",
    ),
    (
        Dialect::OpenAi,
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n",
    ),
    (
        Dialect::Anthropic,
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9}}}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n\
         event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm €\"}}\n\n\
         event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"sig\"}}\n\n\
         event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
         event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n\
         event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}}\n\n\
         event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"q\\\":1}\"}}\n\n\
         event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":4}}\n\n\
         event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ),
    (
        Dialect::Anthropic,
        "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"Whole ä\"},{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"g\",\"input\":{\"x\":[]}}],\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}",
    ),
    (
        Dialect::Responses,
        "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n\
         data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"delta\":\"hm €\"}\n\n\
         data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"rs\",\"encrypted_content\":\"e\"}}\n\n\
         data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"delta\":\"Grüße\"}\n\n\
         data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"type\":\"message\",\"phase\":\"commentary\",\"content\":[{\"text\":\"Grüße 🦀\"}]}}\n\n\
         data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":2,\"delta\":\"{\\\"q\\\"\"}\n\n\
         data: {\"type\":\"response.output_item.done\",\"output_index\":2,\"item\":{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":\"{\\\"q\\\":1}\"}}\n\n\
         event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":9,\"output_tokens\":4}}}\n\n",
    ),
    (
        Dialect::Responses,
        "{\"object\":\"response\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"text\":\"Whole ä\"}]},{\"type\":\"function_call\",\"call_id\":\"b\",\"name\":\"g\",\"arguments\":{\"x\":[]}}],\"usage\":{\"input_tokens\":5,\"output_tokens\":2}}",
    ),
    (
        Dialect::Responses,
        "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"oops\"}\n\n",
    ),
    (
        Dialect::Anthropic,
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    ),
];

/// Pieces that are likely to break a stream.
const WORDS: &[&str] = &[
    "\n\n",
    "\r",
    "data: ",
    "data:",
    "event: error\n",
    "[DONE]",
    ":",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "null",
    "\u{FEFF}",
    "0",
    "-1",
    "1e999",
    "\"index\":0,",
    "\"id\":\"a\",",
    "\"id\":\"\",",
    "\"content\":null,",
    "<html>",
    "\"error\":{},",
    "\"finish_reason\":\"stop\"",
    "\"choices\":[],",
    "\"arguments\":{}",
    "\\ud83d",
    " ",
    "🦀",
    "\"type\":\"message_stop\"",
    "\"type\":\"content_block_start\"",
    "\"usage\":{\"prompt_tokens\":-5}",
];

/// A small, fast, portable generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() % bound.max(1)
    }

    /// A stream that was valid before a few changes, or random bytes.
    fn stream(&mut self) -> (Dialect, Vec<u8>) {
        let (dialect, text) = CORPUS[self.below(CORPUS.len())];
        let mut bytes = text.as_bytes().to_vec();
        if self.below(20) == 0 {
            bytes = (0..self.below(400))
                .map(|_| self.next().to_le_bytes()[0])
                .collect();
        }
        for _ in 0..self.below(6) {
            let (at, to) = (self.below(bytes.len()), self.below(bytes.len()));
            let (at, to) = (at.min(to), at.max(to));
            match self.below(6) {
                0 => drop(bytes.drain(at..to.min(at + 40))),
                1 => bytes.truncate(to),
                2 => {
                    let copy = bytes[at..to.min(at + 300)].to_vec();
                    bytes.splice(to..to, copy);
                }
                3 => {
                    let word = WORDS[self.below(WORDS.len())].bytes();
                    bytes.splice(at..at, word);
                }
                4 => {
                    let (_, other) = CORPUS[self.below(CORPUS.len())];
                    let from = self.below(other.len());
                    bytes.splice(at..to, other.as_bytes()[from..].iter().copied());
                }
                _ => {
                    let random = self.next().to_le_bytes()[0];
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = random;
                    }
                }
            }
        }
        bytes.truncate(8_000);
        (dialect, bytes)
    }

    fn chunks<'a>(&mut self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let longest = [1, 3, 20, 200, 5000][self.below(5)];
        let (mut chunks, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(1 + self.below(longest)));
            chunks.push(head);
            rest = tail;
        }
        chunks
    }
}

/// Properties of every answer.
fn check(bytes: &[u8], (deltas, reply): &Read) {
    let said: String = deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            Delta::Reasoning(_) | Delta::Progress(_) | Delta::Used(_) => None,
            Delta::Alive | Delta::Limits(_) | Delta::Done(_) => panic!("not of the decoder"),
        })
        .collect();
    // A byte that is not UTF-8 becomes a character of three.
    assert!(said.len() <= 3 * bytes.len());
    let Ok(reply) = reply else { return };
    let message = Message {
        role: Role::Assistant,
        parts: reply.parts.clone(),
    };
    assert_eq!(message.texts().collect::<String>(), said);
    let ids: BTreeSet<_> = message.calls().map(|call| call.id.clone()).collect();
    assert_eq!(ids.len(), message.calls().count(), "ids are unique");
    let draft = draft(Scenario::Results);
    let before = draft
        .request
        .messages
        .iter()
        .flat_map(|message| message.calls());
    assert!(before.into_iter().all(|call| !ids.contains(&call.id)));
    assert!(ids.iter().all(|id| !id.0.is_empty()));
    for part in &reply.parts {
        if let Part::Opaque(opaque) = part {
            let body: serde_json::Value = serde_json::from_str(&opaque.body).unwrap();
            assert!(body.is_object(), "{body}");
        }
    }
}

#[test]
fn hidden_fragments_count_as_progress() {
    for (dialect, bytes) in CORPUS {
        let (deltas, _) = read(*dialect, [bytes.as_bytes()], Bounds::default());
        let shown: Vec<&str> = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::Text(_) => Some("text"),
                Delta::Reasoning(_) => Some("reasoning"),
                Delta::Progress(_) => Some("progress"),
                Delta::Used(_) => None,
                Delta::Alive | Delta::Limits(_) | Delta::Done(_) => panic!("not of the decoder"),
            })
            .collect();
        let calls = bytes.matches("\"name\"").count();
        let expected = match (dialect, bytes.contains("data: "), calls) {
            (Dialect::OpenAi, true, 1) => "text reasoning reasoning progress progress",
            (Dialect::Anthropic, true, 1) => "reasoning progress text progress progress",
            (Dialect::Responses, true, 1) => "reasoning text text progress progress",
            (_, false, 1) => "text progress",
            (Dialect::OpenAi, _, _) => "text",
            (Dialect::Anthropic | Dialect::Responses, _, _) => "",
        };
        assert_eq!(shown.join(" "), expected, "{bytes}");
    }
}

/// 20,000 streams; a million with `ORACLE_LONG_TESTS=1`. Split, to use all cores.
#[test]
fn arbitrary_bytes_decode_alike_in_any_chunking() {
    const SHARES: u64 = 8;
    let long = std::env::var("ORACLE_LONG_TESTS").is_ok_and(|value| value == "1");
    let each = if long { 1_000_000 } else { 20_000 } / SHARES;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let shares: Vec<u64> = (1..=SHARES).collect();
    let counted = std::thread::scope(|scope| {
        let run = |shares: &[u64]| shares.iter().map(|share| fuzzed(*share, each)).collect();
        let part = shares.len().div_ceil(cores);
        let threads: Vec<_> = shares
            .chunks(part)
            .map(|shares| scope.spawn(move || -> Vec<_> { run(shares) }))
            .collect();
        let counts = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        counts.collect::<Vec<(u64, u64)>>()
    });
    let good: u64 = counted.iter().map(|(good, _)| good).sum();
    let bad: u64 = counted.iter().map(|(_, bad)| bad).sum();
    assert_eq!(good + bad, each * SHARES);
    assert!(
        good > 1000 && bad > 1000,
        "{good} good and {bad} bad: one-sided"
    );
}

/// Numbers of streams with and without a reply.
fn fuzzed(share: u64, streams: u64) -> (u64, u64) {
    let mut random = Random(0x5EED_0F0A_C1E5_u64.wrapping_mul(share));
    let (mut good, mut bad) = (0, 0);
    for _ in 0..streams {
        let (dialect, bytes) = random.stream();
        let whole = read(dialect, [&bytes[..]], Bounds::default());
        let chunks = random.chunks(&bytes);
        let in_chunks = read(dialect, chunks.iter().copied(), Bounds::default());
        assert_eq!(in_chunks, whole, "{dialect:?}: {}", bytes.escape_ascii());
        check(&bytes, &whole);
        let narrow = Bounds {
            reply: 1 + random.below(4_000),
            event: 1 + random.below(400),
        };
        check(&bytes, &read(dialect, chunks, narrow));
        match whole.1 {
            Ok(_) => good += 1,
            Err(_) => bad += 1,
        }
    }
    (good, bad)
}

proptest! {
    #[test]
    fn chunking_does_not_change_the_deltas(
        (dialect, text) in prop::sample::select(CORPUS),
        sizes in vec(1_usize..60, 1..30),
    ) {
        let (mut chunks, mut rest, mut sizes) = (Vec::new(), text.as_bytes(), sizes.iter().cycle());
        while !rest.is_empty() {
            let size = sizes.next().map_or(1, |size| (*size).min(rest.len()));
            let (head, tail) = rest.split_at(size);
            chunks.push(head);
            rest = tail;
        }
        prop_assert_eq!(
            read(dialect, chunks, Bounds::default()),
            read(dialect, [text.as_bytes()], Bounds::default())
        );
    }
}

#[test]
fn truncated_stream_yields_no_reply_before_its_finish() {
    for (dialect, text) in CORPUS {
        let whole = read(*dialect, [text.as_bytes()], Bounds::default()).1;
        for at in 0..text.len() {
            let cut = read(*dialect, [&text.as_bytes()[..at]], Bounds::default()).1;
            match (cut, &whole) {
                // After the stop reason only the end mark may be missing, and perhaps the usage.
                (Ok(cut), Ok(whole)) => assert_eq!(cut.parts, whole.parts, "cut at {at}: {text}"),
                (Ok(_), Err(fault)) => panic!("cut at {at} hides {fault}: {text}"),
                (Err(fault), _) => assert!(
                    ["cut", "server_error", "overloaded"].contains(&fault.code.as_str()),
                    "cut at {at}: {fault:?}: {text}"
                ),
            }
        }
    }
}

#[test]
fn endless_replies_are_refused() {
    let bounds = Bounds {
        reply: 10_000,
        event: 1_000,
    };
    let piece: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    let block: &[u8] =
        b"data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\"}}\n\n";
    let endless = std::iter::repeat;
    for (name, dialect, code, begin, more) in [
        ("pieces", Dialect::OpenAi, "too_much", &b""[..], piece),
        (
            "a line",
            Dialect::OpenAi,
            "too_much",
            b"data: ",
            b"xxxxxxxxxx",
        ),
        ("an event", Dialect::OpenAi, "too_much", b"", b"data: x\n"),
        ("comments", Dialect::OpenAi, "too_much", b"", b": x\n\n"),
        ("blank lines", Dialect::OpenAi, "too_much", b"", b"\n\n\n\n"),
        (
            "a whole answer",
            Dialect::OpenAi,
            "too_much",
            b"{\"a\":[",
            b"1,1,1,",
        ),
        ("blocks", Dialect::Anthropic, "too_much", b"", block),
        (
            "a page",
            Dialect::Anthropic,
            "bad_stream",
            b"<!doctype html>",
            b"<p>",
        ),
    ] {
        let chunks = [begin].into_iter().chain(endless(more));
        let fault = read(dialect, chunks, bounds).1.unwrap_err();
        assert_eq!(fault.code.as_str(), code, "{name}");
    }
}

#[test]
fn malformed_replies_are_classified() {
    for (name, text, code) in [
        ("nothing", "", "cut"),
        ("blank lines", "\r\n\n", "cut"),
        ("comments alone", ": a\n\n: b\n\n", "cut"),
        ("words", "Internal server error", "server_error"),
        (
            "words of a proxy",
            "upstream connect error, reset",
            "overloaded",
        ),
        ("a page", "\u{FEFF} <html>", "bad_stream"),
        ("other JSON", "{\"choices\": 1, \"x\": 2}", "empty_reply"),
        ("a list", "[]", "empty_reply"),
        ("half a JSON text", "{\"choices\": [{", "cut"),
        ("two JSON texts", "{}{}", "bad_stream"),
        (
            "events of no JSON",
            "data: hello\n\ndata: there\n\n",
            "bad_stream",
        ),
    ] {
        let fault = read(Dialect::OpenAi, [text.as_bytes()], Bounds::default())
            .1
            .unwrap_err();
        assert_eq!(fault.code.as_str(), code, "{name}");
    }
}

#[test]
fn an_error_quotes_a_part_of_a_long_text() {
    let text = "no ".repeat(1 << 20);
    let fault = read(Dialect::OpenAi, [text.as_bytes()], Bounds::default()).1;
    assert!(fault.unwrap_err().detail.len() < 9_000);
}

#[test]
fn an_error_in_a_stream_has_the_policy_of_its_status_until_content_arrives() {
    const BUSY: &str = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    const START: &str = "data: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"usage\":{\"input_tokens\":5}}}\n\n";
    const BLOCK: &str = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
    const THOUGHT: &str = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"Hm\"}}\n\n";
    const LIMITED: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}],\"error\":{\"code\":429,\"message\":\"Provider returned error\",\"metadata\":{\"raw\":\"slow down\"}}}\n\n";
    const ROLE: &str =
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";
    const CALL: &str = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"t\",\"arguments\":\"\"}}]}}]}\n\n";
    const OK_FALSE: &str = "{\"success\":false,\"message\":\"Too many requests\"}";
    let (away, retry) = (
        FaultClass::Unavailable { after_ms: None },
        FaultClass::Retryable { after_ms: None },
    );
    for (name, dialect, text, code, class) in [
        (
            "at once",
            Dialect::Anthropic,
            BUSY.to_owned(),
            "overloaded",
            away,
        ),
        (
            "after the start",
            Dialect::Anthropic,
            [START, BLOCK, BUSY].concat(),
            "overloaded",
            away,
        ),
        (
            "after a thought",
            Dialect::Anthropic,
            [START, THOUGHT, BUSY].concat(),
            "overloaded",
            retry,
        ),
        (
            "a limit",
            Dialect::OpenAi,
            [": wait\n\n", ROLE, LIMITED].concat(),
            "rate_limited",
            away,
        ),
        (
            "after text",
            Dialect::OpenAi,
            [ROLE, HELLO, LIMITED].concat(),
            "rate_limited",
            retry,
        ),
        (
            "after a call",
            Dialect::OpenAi,
            [CALL, LIMITED].concat(),
            "rate_limited",
            retry,
        ),
        (
            "a body",
            Dialect::OpenAi,
            OK_FALSE.to_owned(),
            "rate_limited",
            away,
        ),
        (
            "a body",
            Dialect::Anthropic,
            OK_FALSE.to_owned(),
            "rate_limited",
            away,
        ),
        (
            "an event",
            Dialect::OpenAi,
            format!("data: {OK_FALSE}\n\n"),
            "rate_limited",
            away,
        ),
        (
            "an event and the mark",
            Dialect::OpenAi,
            format!("data: {OK_FALSE}\n\ndata: [DONE]\n\n"),
            "rate_limited",
            away,
        ),
        (
            "a body of another kind",
            Dialect::OpenAi,
            "{\"detail\":\"no\"}".to_owned(),
            "empty_reply",
            retry,
        ),
    ] {
        for size in [1, 30, 5_000] {
            let chunks = text.as_bytes().chunks(size);
            let fault = read(dialect, chunks, Bounds::default()).1.unwrap_err();
            assert_eq!(
                (fault.code.as_str(), fault.class),
                (code, class),
                "{name} by {size}"
            );
        }
    }
}

#[test]
fn answer_of_too_many_values_is_refused() {
    let many = r#"{"":0},"#.repeat(100_000);
    let reply = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]"#;
    let whole = format!(r#"{reply},"x":[{many}0]}}"#);
    for answer in [format!("data: {whole}\n\ndata: [DONE]\n\n"), whole] {
        let (_, read) = read(Dialect::OpenAi, [answer.as_bytes()], Bounds::default());
        let why = read.unwrap_err().detail;
        assert!(why.contains("more than 65536 values"), "{why}");
    }
}
