//! Makes the classifier's weights from the labelled queries of the repository.
//!
//! ```sh
//! cargo run --release --example train_classifier -- write   # config/classifier.bin and its report
//! cargo run --release --example train_classifier -- check   # train, and compare with what is there
//! cargo run --example train_classifier                      # only whether the weights fit the data
//! ```
//!
//! The same data gives the same bytes on the same target. `tests/data/queries_dev.tsv` only measures.

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{error::Error, fmt::Write as _, fs, path::Path, sync::Arc};

use oracle_agent::query::{
    Classifier, Evaluation, Labelled, Lexicon, Weights,
    training::{self, Trained},
};

const LEXICON: &str = "config/lexicon.toml";
const SHARED: [&str; 2] = [
    "tests/data/queries_train.tsv",
    "tests/data/queries_train_multilingual.tsv",
];
const OWN: &str = "tests/data/queries_own.tsv";
const DEV: &str = "tests/data/queries_dev.tsv";
const WEIGHTS: &str = "config/classifier.bin";
const REPORT: &str = "config/classifier-report.txt";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path));
    let lexicon = Lexicon::parse(&read(LEXICON)?, LEXICON)?;
    let rows = |paths: &[&str]| -> Outcome<Vec<Labelled>> {
        let mut rows = Vec::new();
        for path in paths {
            rows.extend(Labelled::parse(&read(path)?, path)?);
        }
        Ok(rows)
    };
    let stamp = |paths: &[&str]| -> Outcome<[u8; 32]> {
        let mut sources = vec![read(LEXICON)?];
        for path in paths {
            sources.push(read(path)?);
        }
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        Ok(training::stamp(&sources))
    };
    let all = [SHARED[0], SHARED[1], OWN];
    let Some(verb) = std::env::args().nth(1) else {
        let weights = Weights::parse(&fs::read(root.join(WEIGHTS))?, WEIGHTS)?;
        if weights.stamp() != stamp(&all)? {
            return Err("the weights are not of this data and lexicon: train them anew".into());
        }
        println!("the weights are of this data and lexicon");
        return Ok(());
    };
    let dev = rows(&[DEV])?;
    let trained = training::train(&lexicon, &rows(&all)?, stamp(&all)?)?;
    let shared = training::train(&lexicon, &rows(&SHARED)?, stamp(&SHARED)?)?;
    let on = |bytes: &[u8], rows: &[Labelled]| -> Outcome<Evaluation> {
        let weights = Arc::new(Weights::parse(bytes, WEIGHTS)?);
        Ok(Evaluation::of(
            &Classifier::new(&lexicon).with_weights(weights),
            rows,
        ))
    };
    let mut report = String::new();
    writeln!(
        report,
        "# How the weights in config/classifier.bin do. Written by the training.\n"
    )?;
    writeln!(
        report,
        "{} features, {} bytes, temperature {:.2}\n",
        trained.features,
        trained.bytes.len(),
        trained.temperature
    )?;
    writeln!(
        report,
        "## Dev set, committed weights (only measured)\n\n{}",
        on(&trained.bytes, &dev)?
    )?;
    writeln!(
        report,
        "## Dev set, trained on the two shared train files alone\n\n{}",
        on(&shared.bytes, &dev)?
    )?;
    writeln!(
        report,
        "## Cross-validation over all training data\n\n{}",
        folds(&trained)
    )?;
    writeln!(
        report,
        "## Cross-validation over the two shared train files alone\n\n{}",
        folds(&shared)
    )?;
    writeln!(
        report,
        "## The surest mistakes of the cross-validation over all training data\n"
    )?;
    for mistake in trained.together.mistakes.iter().take(60) {
        let row = &mistake.row;
        writeln!(
            report,
            "{:.2} {} taken for {} ({}): {}",
            mistake.confidence, row.query_type, mistake.taken_for, row.language, row.query
        )?;
    }
    match verb.as_str() {
        "write" => {
            fs::write(root.join(WEIGHTS), &trained.bytes)?;
            fs::write(root.join(REPORT), &report)?;
            println!("{report}");
            Ok(())
        }
        "check" if trained.bytes == fs::read(root.join(WEIGHTS))? && report == read(REPORT)? => {
            println!("the same bytes, the same report");
            Ok(())
        }
        "check" => Err(
            "what was trained differs from what is there: `write` it and look at the difference"
                .into(),
        ),
        _ => Err("`write` or `check`".into()),
    }
}

/// Accuracy of each fold, with the spread, then all together.
fn folds(trained: &Trained) -> String {
    let each: Vec<f64> = trained
        .folds
        .iter()
        .map(|fold| fold.total.accuracy())
        .collect();
    let mean = each.iter().sum::<f64>() / each.len() as f64;
    let spread =
        each.iter().map(|fold| (fold - mean).powi(2)).sum::<f64>() / (each.len() - 1) as f64;
    let shown: Vec<String> = each
        .iter()
        .map(|fold| format!("{:.1}", 100.0 * fold))
        .collect();
    format!(
        "folds: {} %, mean {:.1}, standard deviation {:.1}\n\n{}",
        shown.join(", "),
        100.0 * mean,
        100.0 * spread.sqrt(),
        trained.together
    )
}
