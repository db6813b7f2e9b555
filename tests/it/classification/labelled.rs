//! The labelled queries, and how the committed weights do on the ones that are only measured.

use std::collections::{BTreeMap, BTreeSet};

use oracle_agent::model::QueryType;
use oracle_agent::query::{Classifier, Evaluation, Labelled, Lexicon, Weights, training};

use super::{classifier, tables::ROWS};

const LEXICON: &str = include_str!("../../../config/lexicon.toml");
const REPORT: &str = include_str!("../../../config/classifier-report.txt");
const DEV: &str = include_str!("../../data/queries_dev.tsv");
/// In the order of the training.
const TRAIN: [(&str, &str); 3] = [
    ("train", include_str!("../../data/queries_train.tsv")),
    (
        "multilingual",
        include_str!("../../data/queries_train_multilingual.tsv"),
    ),
    ("own", include_str!("../../data/queries_own.tsv")),
];

fn rows(text: &str) -> Vec<Labelled> {
    Labelled::parse(text, "test").unwrap()
}

/// Queries that differ in nothing but case and signs are one.
fn bare(query: &str) -> String {
    let letters: String = query.chars().filter(|c| c.is_alphanumeric()).collect();
    letters.to_lowercase()
}

#[test]
fn the_weights_are_of_the_data_and_the_lexicon() {
    let sources = [LEXICON, TRAIN[0].1, TRAIN[1].1, TRAIN[2].1];
    let weights = Weights::builtin().unwrap();
    assert_eq!(
        weights.stamp(),
        training::stamp(&sources),
        "train anew: cargo run --release --example train_classifier -- write"
    );
}

#[test]
fn nothing_that_measures_is_learned_from() {
    let mut measured: BTreeSet<String> = rows(DEV).iter().map(|row| bare(&row.query)).collect();
    for (_, rows) in ROWS {
        measured.extend(rows.iter().map(|(_, query)| bare(query)));
    }
    let lexicon = Lexicon::builtin().unwrap();
    for (name, text) in TRAIN {
        let rows = rows(text);
        // "ok" is in the shared file and in T009: the lexicon decides it, and nobody learns from it.
        for row in training::learned_from(&lexicon, &rows) {
            assert!(!measured.contains(&bare(&row.query)), "{name}: {row:?}");
        }
    }
}

#[test]
fn the_labels_of_our_own_queries_do_not_contradict() {
    let mut labels: BTreeMap<String, QueryType> = BTreeMap::new();
    for (name, text) in TRAIN {
        for row in rows(text) {
            let key = row.query.to_lowercase();
            let before = *labels.entry(key).or_insert(row.query_type);
            assert_eq!(before, row.query_type, "{name}: {}", row.query);
        }
    }
}

#[test]
fn the_dev_set_is_classified_as_well_as_the_report_says() {
    let found = Evaluation::of(classifier(), &rows(DEV));
    println!("{found}");
    assert!(
        REPORT.contains(&found.to_string()),
        "the report is of other weights: train anew"
    );
    let (accuracy, confidence) = (found.total.accuracy(), found.total.confidence());
    assert!(accuracy >= 0.88, "{accuracy}");
    assert!(
        (accuracy - confidence).abs() <= 0.08,
        "{accuracy} {confidence}"
    );
    for (query_type, tally) in &found.types {
        assert!(tally.accuracy() >= 0.8, "{query_type}: {tally:?}");
    }
    for (tenth, tally) in found.tenths.iter().enumerate().filter(|(_, t)| t.all >= 30) {
        let off = (tally.accuracy() - tally.confidence()).abs();
        assert!(off <= 0.1, "tenth {tenth}: {tally:?}");
    }
}

/// What the lexicons alone reach on queries that nobody tuned them for; they may not fall below it.
const FLOOR_LEXICON: f64 = 0.81;

#[test]
fn the_lexicons_alone_keep_their_accuracy_on_the_dev_set() {
    let lexicon = Classifier::new(&Lexicon::builtin().unwrap());
    let found = Evaluation::of(&lexicon, &rows(DEV)).total;
    assert!(found.accuracy() >= FLOOR_LEXICON, "{found:?}");
    let off = (found.accuracy() - found.confidence()).abs();
    assert!(off <= 0.08, "{found:?}");
}

#[test]
fn training_gives_the_same_bytes_each_time_and_learns() {
    let short = |row: &Labelled| (8..20).contains(&row.query.len());
    let rows = rows(TRAIN[0].1).into_iter().filter(short);
    let rows: Vec<Labelled> = rows.take(130).collect();
    let lexicon = Lexicon::builtin().unwrap();
    let once = training::train(&lexicon, &rows, [7; 32]).unwrap();
    let again = training::train(&lexicon, &rows, [7; 32]).unwrap();
    assert_eq!(once.bytes, again.bytes);
    let weights = Weights::parse(&once.bytes, "test").unwrap();
    assert_eq!(weights.stamp(), [7; 32]);
    let learned = Classifier::new(&lexicon).with_weights(weights.into());
    let accuracy = Evaluation::of(&learned, &rows).total.accuracy();
    assert!(accuracy > 0.9, "{accuracy} of what it learned from");
    assert!(training::train(&lexicon, &rows[..50], [7; 32]).is_err());
}
