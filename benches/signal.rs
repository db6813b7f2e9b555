//! Throughput of reading replies. Prints figures and checks none.

use divan::{Bencher, black_box, counter::BytesCount};
use oracle_agent::{
    model::Timestamp,
    signal::{Stripper, read},
};

fn main() {
    divan::main();
}

const SENTENCE: &str =
    "The session store keeps every turn, and the index says where to look for it. ";
const SIGNAL: &str = "\n\n<signal type=\"need_turn\">\n  <reason>Found the backup API, still have to check \
                      that it answers</reason>\n  <confidence>0.85</confidence>\n  \
                      <expected_turns>1</expected_turns>\n</signal>";

/// About `bytes` bytes, with a blank line after every fourth sentence.
fn plain(bytes: usize) -> String {
    let paragraph = SENTENCE.repeat(4) + "\n\n";
    paragraph.repeat(bytes / paragraph.len() + 1)
}

fn read_all(bencher: Bencher<'_, '_>, reply: &str) {
    bencher
        .counter(BytesCount::of_str(reply))
        .bench(|| read(black_box(reply), Timestamp::default()));
}

#[divan::bench(args = [1, 10, 100])]
fn signal_at_the_end(bencher: Bencher<'_, '_>, kilobytes: usize) {
    read_all(bencher, &(plain(kilobytes * 1024 - SIGNAL.len()) + SIGNAL));
}

#[divan::bench]
fn plain_text_1_mb(bencher: Bencher<'_, '_>) {
    read_all(bencher, &plain(1 << 20));
}

#[divan::bench]
fn markdown_1_mb(bencher: Bencher<'_, '_>) {
    let part = format!("- `read` is in `src/lib.rs`, {SENTENCE}\n```rust\nfn f() {{}}\n```\n");
    read_all(bencher, &part.repeat((1 << 20) / part.len()));
}

/// Repeated text on which a naive parser takes more than linear time, by name.
const ADVERSARIAL: &[(&str, &str)] = &[
    ("open tags", "<signal type=\"a\">"),
    ("tags without a bracket", "<signal type=\"a\""),
    ("values without an end", "<signal type=\"aaaa"),
    ("tags in values", "<signal a=\"<signal b='"),
    ("blocks", "<signal></signal>"),
    ("fields without an end", "<signal><reason>"),
    ("backticks", "` `` "),
    ("fenced tags", "```\n<signal>\n"),
    ("newlines", "\n"),
];

fn adversarial(name: &str) -> String {
    let unit = ADVERSARIAL
        .iter()
        .find(|shape| shape.0 == name)
        .map_or("", |shape| shape.1);
    unit.repeat((1 << 20) / unit.len().max(1))
}

fn shapes() -> impl Iterator<Item = &'static str> {
    ADVERSARIAL.iter().map(|shape| shape.0)
}

#[divan::bench(args = shapes())]
fn adversarial_1_mb(bencher: Bencher<'_, '_>, name: &str) {
    read_all(bencher, &adversarial(name));
}

#[divan::bench(args = shapes())]
fn adversarial_stream_1_mb_in_chunks_of_20(bencher: Bencher<'_, '_>, name: &str) {
    stream_all(bencher, &adversarial(name));
}

#[divan::bench]
fn stream_10_kb_in_chunks_of_20(bencher: Bencher<'_, '_>) {
    stream_all(bencher, &(plain(10 * 1024 - SIGNAL.len()) + SIGNAL));
}

fn stream_all(bencher: Bencher<'_, '_>, reply: &str) {
    let chunks: Vec<&str> = reply
        .as_bytes()
        .chunks(20)
        .filter_map(|chunk| str::from_utf8(chunk).ok())
        .collect();
    bencher.counter(BytesCount::of_str(reply)).bench(|| {
        let mut stripper = Stripper::new();
        let mut shown = 0;
        for chunk in &chunks {
            shown += stripper.push(black_box(chunk)).len();
        }
        shown + stripper.finish().len()
    });
}
