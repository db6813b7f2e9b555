//! A reproducible tree of files that resembles a project: code and prose with a realistic word
//! distribution, and names that recur within a file.

use std::{fmt::Write as _, fs, path::Path};

/// The line that answers [`QUESTION`], in one file of every tree.
const DECIDES: &str = "fn decide_what_the_session_budget_is() {}\n";
pub(crate) const QUESTION: &str = "Where is decided what the budget of a session is?";

const FILES_PER_FOLDER: usize = 50;
const SYLLABLES: [&str; 20] = [
    "ba", "cor", "dul", "fen", "gi", "hom", "jur", "ka", "lim", "mo", "nex", "pol", "qua", "ri",
    "sto", "tem", "ul", "ver", "wan", "zi",
];
const COMMON: [&str; 32] = [
    "value", "handler", "request", "journal", "window", "parser", "reader", "answer", "record",
    "session", "actor", "gateway", "token", "budget", "signal", "prompt", "limit", "queue",
    "worker", "format", "buffer", "header", "stream", "policy", "the", "of", "is", "and", "when",
    "a", "it", "to",
];

/// Writes the files and returns their total size in bytes.
pub(crate) fn write(folder: &Path, files: usize) -> std::io::Result<u64> {
    let mut chance = Chance(42);
    let mut bytes = 0;
    for file in 0..files {
        let top = ["src", "lib", "tests", "docs"][[0, 0, 0, 1, 1, 2, 3, 0][file % 8]];
        let inner = folder.join(format!("{top}/part{}", file / FILES_PER_FOLDER));
        fs::create_dir_all(&inner)?;
        let (extension, text) = match file % 8 {
            6 => ("md", prose(&mut chance)),
            3 | 4 => ("py", code(&mut chance, "def", ":")),
            2 => ("js", code(&mut chance, "function", " {")),
            _ => ("rs", code(&mut chance, "pub fn", " {")),
        };
        let decides = if file % 500 == 7 { DECIDES } else { "" };
        let name = format!("{}_{file}.{extension}", chance.word());
        bytes += (text.len() + decides.len()) as u64;
        fs::write(inner.join(name), text + decides)?;
    }
    Ok(bytes)
}

fn code(chance: &mut Chance, keyword: &str, opens: &str) -> String {
    let names: Vec<String> = (0..25).map(|_| chance.name()).collect();
    let mut text = String::new();
    for _ in 0..3 + chance.below(12) {
        let closes = if opens == ":" { "\n" } else { "}\n\n" };
        let mark = if opens == ":" { "#" } else { "//" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{mark} {}", chance.sentence());
        let _ = writeln!(
            text,
            "{keyword} {}({}){opens}",
            chance.name(),
            chance.one(&names)
        );
        for _ in 0..2 + chance.below(20) {
            let (a, b, c) = (chance.one(&names), chance.one(&names), chance.one(&names));
            let _ = writeln!(text, "    {a} = {b}.{c}({});", chance.below(1_000));
        }
        text.push_str(closes);
    }
    text
}

fn prose(chance: &mut Chance) -> String {
    let mut text = format!("# {}\n\n", chance.sentence());
    for _ in 0..4 + chance.below(20) {
        if chance.below(3) == 0 {
            let _ = writeln!(text, "## {}\n", chance.sentence());
        }
        for _ in 0..2 + chance.below(5) {
            let _ = writeln!(text, "{}.", chance.sentence());
        }
        text.push('\n');
    }
    text
}

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    fn one<'a>(&mut self, of: &'a [String]) -> &'a str {
        &of[self.below(of.len())]
    }

    /// Returns one of 8,032 words, with a skewed distribution.
    fn word(&mut self) -> String {
        let share = self.below(1_000_000) as f64 / 1e6;
        let rank = (8_032.0 * share.powi(4)) as usize;
        match rank.checked_sub(COMMON.len()) {
            None => COMMON[rank].to_owned(),
            Some(rare) => [rare / 400, rare / 20 % 20, rare % 20]
                .map(|at| SYLLABLES[at])
                .concat(),
        }
    }

    fn name(&mut self) -> String {
        format!("{}_{}", self.word(), self.word())
    }

    fn sentence(&mut self) -> String {
        let words: Vec<String> = (0..5 + self.below(12)).map(|_| self.word()).collect();
        words.join(" ")
    }
}
