//! Questions about one name: what is only like it is not told as certain.

use super::says;

const CLOCK: &str = "\
pub const TOKEN_WAKEUP: u32 = 3;

/// What all lines cost, before the watchdog barks.
pub fn total_price(lines: &[u32]) -> u32 {
    lines.iter().sum()
}

pub fn backoff_limit() -> u32 {
    TOKEN_WAKEUP
}
";

const OPTIONS: &str = "\
#include \"options.h\"

int options_set_max_background_jobs_limit(struct options *opt, int n) {
  opt->limit = n;
  return encode(kMaxVarintLength);
}
";

const CODING: &str = "\
#pragma once

// The maximum length of a varint in bytes.
const unsigned int kMaxVarintLength = 10;

int encode(unsigned int length);
";

const CHUNK: &str = "\
\"use strict\";

/**
 * A chunk is what modules are put into.
 */
class Chunk {
\tconstructor(name) {
\t\tthis.name = name;
\t}

\taddGroup(group) {
\t\tthis.groups.add(group);
\t}

\tget size() {
\t\treturn this.groups.size;
\t}
}

module.exports = Chunk;
";

const GRAPH: &str = "\
\"use strict\";

/**
 * Sets the graph of a chunk: chunk by chunk, for each chunk.
 * @param {Chunk} chunk the chunk
 */
function setChunkGraph(chunk, chunkGraph) {
\tchunkGraphs.set(chunk, chunkGraph);
}

/**
 * @param {Chunk} chunk what is a chunk
 */
function clearChunk(chunk) {
\tchunkGraphs.delete(chunk);
}
";

#[tokio::test]
async fn what_is_only_like_a_name_is_no_certain_answer() {
    let files = [
        ("src/clock.rs", CLOCK),
        ("util/options.c", OPTIONS),
        ("util/coding.h", CODING),
        ("lib/Chunk.js", CHUNK),
        ("lib/ChunkGraph.js", GRAPH),
        ("words/lexicon.txt", "watchdog\nWatchman\nfeed\n"),
        (
            "docs/jobs.md",
            "# Jobs\n\nRunner is what we call the one that runs jobs.\n",
        ),
    ];
    let rows: [super::Row<'_>; 11] = [
        (
            &["where is Wakeup defined?"],
            "partial",
            &[
                "I saw nothing of that very name, `Wakeup`: this is the nearest.",
                "src/clock.rs:",
            ],
        ),
        (&["where is Watchdog defined?"], "partial", &["`Watchdog`"]),
        (
            &["where is total defined?"],
            "partial",
            &["nothing of that very name, `total`"],
        ),
        (
            &["where is the total price?"],
            "answered",
            &["`total_price` in src/clock.rs"],
        ),
        (
            &["what is max_background_jobs?"],
            "partial",
            &["nothing of that very name, `max_background_jobs`"],
        ),
        (
            &["who calls max_background_jobs?"],
            "partial",
            &["nothing of that very name, `max_background_jobs`"],
        ),
        (&["where is Runner defined?"], "partial", &["docs/jobs.md"]),
        (
            &["where is total_price defined?"],
            "answered",
            &["the definition of `total_price` in src/clock.rs:3-6."],
        ),
        (
            &["where is kMaxVarintLength defined?"],
            "answered",
            &["the definition of `kMaxVarintLength` in util/coding.h:3-4."],
        ),
        (
            &["what is kMaxVarintLength?"],
            "answered",
            &["the definition of `kMaxVarintLength` in util/coding.h:3-4."],
        ),
        (
            &["what is Chunk?"],
            "answered",
            &["the definition of `Chunk` in lib/Chunk.js:"],
        ),
    ];
    says(&files, &rows).await;
}

const SHOP: &str = "\
pub struct Shop {
    open: bool,
}

impl Shop {
    pub fn close(&mut self) {
        self.open = false;
    }

    pub fn at_night(&mut self) {
        self.close();
    }
}

impl Clone for Shop {
    fn clone(&self) -> Self {
        Self { open: self.open }
    }
}

pub struct Door;

impl Door {
    pub fn close(&self) {}
}

pub fn price() -> u32 {
    3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_cheap() {
        assert_eq!(price(), 3);
    }
}
";

const MAIN: &str = "\
use shop::{Door, Shop, price};

fn main() {
    let mut shop = Shop::new();
    Shop::close(&mut shop);
    shop.close();
    it.close();
    Door::close(&Door);
    file::close(3);
    println!(\"{}\", price());
}
";

const CONFIG: &str = "\
import json


class Config:
    def load(self, path):
        with open(path) as file:
            return json.load(file)


def start(config):
    return config.load(\"a.json\")
";

const PLAIN: &str = "\
class Menu:
    def load(self):
        return 3


def begin():
    return Menu.load(Menu())
";

#[tokio::test]
async fn what_is_used_of_something_else_is_no_use_of_it() {
    let files = [
        ("src/shop.rs", SHOP),
        ("src/main.rs", MAIN),
        ("config.py", CONFIG),
        ("menu.py", PLAIN),
        (
            "tests/shop.rs",
            "#[test]\nfn closes() {\n    Shop::close(&mut shop());\n}\n",
        ),
    ];
    let rows: [super::Row<'_>; 9] = [
        (
            &["who calls Shop::close?"],
            "partial",
            &[
                "`Shop::close` is used in src/main.rs:5 and in ",
                "Perhaps also in src/main.rs:6, src/main.rs:7: I do not know the types of receivers",
                "Left out: 2 lines that use `close` of something else, as src/main.rs:8.",
                "It is defined in src/shop.rs:6.",
            ],
        ),
        (
            &["who calls Config.load?"],
            "partial",
            &[
                "`load` is used in config.py:11, but I do not know the types of receivers",
                "Left out: 2 lines that use `load` of something else, as config.py:7.",
            ],
        ),
        (
            &["who calls json.load?"],
            "partial",
            &["`json.load` is used in config.py:7."],
        ),
        (
            &["who calls Menu.load?"],
            "partial",
            &["`Menu.load` is used in menu.py:7."],
        ),
        (
            &["who calls price?", "and where is it tested?"],
            "answered",
            &["`price` is used by tests in src/shop.rs:37."],
        ),
        (
            &["who calls at_night?", "and where is it tested?"],
            "partial",
            &["I saw no test that uses `at_night`."],
        ),
        (
            &["who calls Shop::close?", "and where is it tested?"],
            "answered",
            &["`Shop::close` is used by tests in tests/shop.rs:3."],
        ),
        (
            &[
                "where is price defined?",
                "who calls price?",
                "show me the whole function",
            ],
            "answered",
            &["All of `price` is in src/shop.rs:27-29."],
        ),
        (
            &[
                "where is at_night defined?",
                "who calls it?",
                "show me the whole function",
            ],
            "answered",
            &["All of `at_night` is in src/shop.rs:10-12."],
        ),
    ];
    says(&files, &rows).await;
}

#[tokio::test]
async fn what_goes_on_from_a_name_tells_more_or_that_there_is_none() {
    let files = [
        ("src/shop.rs", SHOP),
        ("lib/Chunk.js", CHUNK),
        ("config.py", CONFIG),
    ];
    let rows: [super::Row<'_>; 7] = [
        (
            &["where is Shop defined?", "which methods does it have?"],
            "answered",
            &[
                "`Shop` has 3 methods here, by the outline of src/shop.rs:",
                "\nsrc/shop.rs:6: pub fn close(&mut self)",
                "\nsrc/shop.rs:16: fn clone(&self) -> Self",
            ],
        ),
        (
            &["which methods does Chunk have?"],
            "answered",
            &[
                "`Chunk` has 3 methods here, by the outline of lib/Chunk.js:",
                "\nlib/Chunk.js:11: addGroup(group)",
            ],
        ),
        (
            &["welche Methoden hat Config?"],
            "answered",
            &["`Config` has one method here, by the outline of config.py:"],
        ),
        (
            &["which methods does at_night have?"],
            "partial",
            &["Missing: the methods of `at_night`"],
        ),
        (
            &["where is at_night defined?", "wie funktioniert das?"],
            "partial",
            &["quoted before"],
        ),
        (
            &["who calls at_night?", "how does it work?"],
            "partial",
            &["quoted before"],
        ),
        (
            &["who calls price?", "how does it work?"],
            "answered",
            &["All of `price` is in src/shop.rs:27-29."],
        ),
    ];
    says(&files, &rows).await;
}

const TABLE_H: &str = "\
#pragma once

class Table {
 public:
  int Size() const;
};
";

const TABLE_CC: &str = "\
#include \"table.h\"

int Table::Size() const {
  return 3;
}
";

const KID: &str = "\
class Plain:
    def halt(self):
        return 3


class Kid(Plain):
    def run(self):
        return self.halt()


class Stone:
    def roll(self):
        return self.halt()
";

const COLOR: &str = "\
/// What paint has.
pub enum Color {
    Red,
    Blue(u8),
}

impl Color {
    pub fn name(&self) -> String {
        String::new()
    }
}

pub struct Name;

impl Name {
    pub fn name(&self) {}
}

pub struct DB;

impl DB {
    pub fn get(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_named() {
        Color::name(&Color::Red);
    }
}
";

const POOL_RS: &str = "\
pub struct Pool {
    size: usize,
}

impl Pool {
    pub fn take(&self) -> usize {
        self.size
    }
}
";

const POOL_JS: &str = "\
class Pool { get() { return 1; } put() { return 2; } }

module.exports = Pool;
";

#[tokio::test]
async fn what_a_type_has_is_told_of_that_type_and_as_far_as_it_is_known() {
    let files = [
        ("include/table.h", TABLE_H),
        ("src/table.cc", TABLE_CC),
        ("kid.py", KID),
        ("src/color.rs", COLOR),
        ("src/pool.rs", POOL_RS),
        ("lib/pool.js", POOL_JS),
    ];
    let rows: [super::Row<'_>; 11] = [
        (
            &["who calls Table::Size?"],
            "partial",
            &["`Size` is only defined in include/table.h:5 and in one other place."],
        ),
        (
            &["who calls Plain.halt?"],
            "partial",
            &[
                "`halt` is used in kid.py:8, but I do not know the types of receivers",
                "Left out: one line that uses `halt` of something else, as kid.py:13.",
                "It is defined in kid.py:2.",
            ],
        ),
        (
            &["what variants does Color have?"],
            "answered",
            &["All of `Color` is in src/color.rs:1-5.", "Blue(u8),"],
        ),
        (
            &["where is Color defined?", "which variants does it have?"],
            "answered",
            &["All of `Color` is in src/color.rs:1-5.", "Blue(u8),"],
        ),
        (
            &["which members does Color have?"],
            "partial",
            &["outlines list functions alone"],
        ),
        (
            &["which fields does Pool have?"],
            "partial",
            &["there are several by that name: lib/pool.js:1, src/pool.rs:1"],
        ),
        (
            &["which methods does Pool have?"],
            "partial",
            &[
                "There are several by that name: lib/pool.js:1, src/pool.rs:1. Together they have at least one method",
                "\nsrc/pool.rs:6: pub fn take(&self) -> usize",
            ],
        ),
        (
            &["where is Color defined?", "which methods does DB have?"],
            "answered",
            &["`DB` has one method here"],
        ),
        (
            &["where is Color::name tested?"],
            "answered",
            &["`Color::name` is used by tests in src/color.rs:31."],
        ),
        (
            &["which tests cover Name::name?"],
            "partial",
            &["I saw no test that uses `Name::name`"],
        ),
        (
            &["who calls Color::name?", "which methods does it have?"],
            "answered",
            &["`Color` has one method here"],
        ),
    ];
    says(&files, &rows).await;
}
