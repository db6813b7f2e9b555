//! Seeded mutations of the seeds in `fuzz/corpus`, for every target of the fuzzer.
//!
//! `cargo fuzz` searches further, guided by coverage: CONTRIBUTING.md says how. Here the number of
//! a case alone determines it. `ORACLE_LONG_TESTS=1` runs a hundred times as many.

use std::{fs, path::Path};

use oracle_agent::testkit::fuzz::TARGETS;

use crate::actors::simulation::{Dice, long};

const CASES: u64 = 4_000;
const LONGEST: usize = 4_096;

/// Names the case that fails.
struct Case<'a> {
    target: &'a str,
    number: u64,
    data: Vec<u8>,
}

impl Drop for Case<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (target, number) = (self.target, self.number);
            eprintln!("{target}, case {number}: {}", self.data.escape_ascii());
        }
    }
}

/// The seeds of a target, and the pieces of which they consist.
struct Corpus {
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Corpus {
    fn of(target: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        let mut files: Vec<_> = fs::read_dir(folder.join(target))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        let seeds: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte > 127;
        let mut words: Vec<_> = seeds
            .iter()
            .flat_map(|seed| seed.chunk_by(|a, b| is_word(a) && is_word(b)))
            .map(<[u8]>::to_vec)
            .collect();
        words.extend(
            [
                "\0",
                "\u{feff}",
                "\\u0000",
                "-1",
                "1e400",
                "18446744073709551616",
            ]
            .map(Into::into),
        );
        words.sort();
        words.dedup();
        Self { seeds, words }
    }

    fn case(&self, number: u64) -> Vec<u8> {
        let mut dice = Dice(number);
        let mut data = dice.of(&self.seeds).clone();
        for _ in 0..dice.below(6) {
            self.mutate(&mut data, &mut dice);
        }
        data.truncate(LONGEST);
        data
    }

    fn mutate(&self, data: &mut Vec<u8>, dice: &mut Dice) {
        let mut at = |length: usize| usize::try_from(dice.below(length as u64 + 1)).unwrap();
        let (start, end) = (at(data.len()), at(data.len()));
        let range = start.min(end)..start.max(end);
        let near = start..data.len().min(start + at(8));
        match dice.below(7) {
            0 => data.truncate(start),
            1 => drop(data.drain(near)),
            2 => {
                let part = data[range].to_vec();
                data.splice(end..end, part);
            }
            3 => {
                let other = dice.of(&self.seeds);
                data.splice(range, other.iter().copied());
            }
            4 if start < data.len() => data[start] = dice.below(256) as u8,
            4 | 5 => {
                let word = dice.of(&self.words);
                data.splice(start..start, word.iter().copied());
            }
            _ => {
                let word = dice.of(&self.words);
                data.splice(near, word.iter().copied());
            }
        }
    }
}

#[test]
fn mutated_seeds_break_no_promise_of_any_target() {
    std::thread::scope(|scope| {
        for (target, run) in TARGETS {
            scope.spawn(move || {
                let corpus = Corpus::of(target);
                for number in 0..if long() { 100 * CASES } else { CASES } {
                    let data = corpus.case(number);
                    let case = Case {
                        target,
                        number,
                        data,
                    };
                    run(&case.data);
                }
            });
        }
    });
}
