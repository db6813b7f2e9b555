use sha2::{Digest, Sha256};

use super::*;
use crate::query::Lexicon;
use crate::query::error::{WeightsError, WeightsProblem};
use crate::query::matcher::Matcher;

/// Offset of the layout version, and one in the middle.
const FORMAT_AT: usize = 8;
const MIDDLE: usize = 200_000;
/// After magic, three numbers, stamp, temperature, rarity step, gains and scales.
const BIAS_AT: usize = TEMPERATURE_AT + 4 * (1 + 1 + 2 + TYPES);
const TEMPERATURE_AT: usize = 8 + 12 + 32;

/// With a matching checksum.
fn sealed(bytes: &mut [u8]) {
    let body = bytes.len() - 32;
    let checksum = Sha256::digest(&bytes[..body]);
    bytes[body..].copy_from_slice(&checksum);
}

fn number(at: usize, number: f32) -> impl FnOnce(&mut Vec<u8>) {
    move |all| {
        all[at..at + 4].copy_from_slice(&number.to_le_bytes());
        sealed(all);
    }
}

fn refused(change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = BUILTIN.to_vec();
    change(&mut bytes);
    Weights::parse(&bytes, "my.bin").unwrap_err().to_string()
}

#[test]
fn built_in_weights_load_and_stay_small() {
    assert!(Weights::builtin().is_ok());
    assert!(BUILTIN.len() <= 600 * 1024, "{} bytes", BUILTIN.len());
}

#[test]
fn invalid_weights_are_refused_by_name() {
    for (name, error, want) in [
        ("empty", refused(Vec::clear), "is not a weights file"),
        (
            "other bytes",
            refused(|all| all[0] = b'x'),
            "is not a weights file",
        ),
        (
            "a later layout",
            refused(|all| all[FORMAT_AT] = 9),
            "has version 9.2, but this version of Oracle reads 1.2",
        ),
        (
            "other features",
            refused(|all| all[FORMAT_AT + 4] = 7),
            "has version 1.7, but this version of Oracle reads 1.2",
        ),
        (
            "a flipped bit",
            refused(|all| all[MIDDLE] ^= 1),
            "is corrupt",
        ),
        ("cut off", refused(|all| all.truncate(MIDDLE)), "is corrupt"),
        ("longer", refused(|all| all.push(0)), "is corrupt"),
        (
            "no number",
            refused(number(BIAS_AT, f32::NAN)),
            "is corrupt",
        ),
        ("absurd", refused(number(BIAS_AT, -3e38)), "is corrupt"),
        (
            "no temperature",
            refused(number(TEMPERATURE_AT, 1e-45)),
            "is corrupt",
        ),
    ] {
        assert!(error.starts_with("`my.bin` "), "{name}: {error}");
        assert!(error.contains(want), "{name}: {error}");
    }
    let empty = Weights::parse(&[], "x");
    let want = WeightsError {
        origin: "x".into(),
        problem: WeightsProblem::NotWeights,
    };
    assert_eq!(empty, Err(want));
}

#[test]
fn reused_reading_keeps_no_earlier_text() {
    let weights = Weights::builtin().unwrap();
    let matcher = Matcher::new(&Lexicon::builtin().unwrap());
    let mut kept = Reading::default();
    for text in [
        "where is the parser",
        "thanks",
        "谢谢你",
        "where is the parser",
    ] {
        let mut fresh = Reading::default();
        matcher.read(text, &mut kept);
        matcher.read(text, &mut fresh);
        let score = Score::default();
        let (got, want) = (
            weights.judge(text, &mut kept, &score),
            weights.judge(text, &mut fresh, &score),
        );
        assert_eq!(got, want, "{text}");
    }
}
