//! Trains the classifier's weights on the labelled queries of this repository.
//!
//! ```sh
//! cargo run --release --example train_classifier -- write   # weights and their report
//! cargo run --release --example train_classifier -- check   # train and compare
//! cargo run --release --example train_classifier -- choose  # try other settings
//! cargo run --example train_classifier                      # check weights against data
//! ```
//!
//! Equal data gives equal bytes. `tests/data/queries_dev.tsv` is used for evaluation only.

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{error::Error, fmt::Write as _, fs, path::Path, sync::Arc};

use oracle_agent::query::{
    Classifier, Evaluation, LabelledQuery, Lexicon, Weights,
    training::{self, CrossValidation, Settings},
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
const CHOICE: &str = "config/classifier-choice.txt";

const SHOWN: usize = 60;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let verb = std::env::args().nth(1);
    let shared = Data::read(&SHARED)?;
    let all = Data::read(&[SHARED[0], SHARED[1], OWN])?;
    match verb.as_deref() {
        None => {
            let weights = Weights::parse(&fs::read(at(WEIGHTS))?, WEIGHTS)?;
            if weights.stamp() != all.stamp {
                return Err("the weights are not of this data and lexicon: train them anew".into());
            }
            println!("the weights are of this data and lexicon");
            Ok(())
        }
        Some("write") => {
            let (bytes, report, _) = report(&all, &shared)?;
            fs::write(at(WEIGHTS), bytes)?;
            fs::write(at(REPORT), &report)?;
            println!("{report}");
            Ok(())
        }
        Some("check") => {
            let (bytes, report, taken) = report(&all, &shared)?;
            if !fs::read_to_string(at(CHOICE))?.contains(&taken) {
                return Err("the settings were chosen on other data: `choose` anew".into());
            }
            if bytes != fs::read(at(WEIGHTS))? || report != fs::read_to_string(at(REPORT))? {
                let why = "what was trained differs from what is there: `write` it and look at the difference";
                return Err(why.into());
            }
            println!("the same bytes, the same report");
            Ok(())
        }
        Some("choose") => {
            fs::write(at(CHOICE), choice(&all)?)?;
            println!("{CHOICE} is written");
            Ok(())
        }
        Some(_) => Err("`write`, `check` or `choose`".into()),
    }
}

fn at(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

struct Data {
    lexicon: Lexicon,
    rows: Vec<LabelledQuery>,
    stamp: [u8; 32],
}

impl Data {
    fn read(paths: &[&str]) -> Outcome<Self> {
        let mut sources = vec![fs::read_to_string(at(LEXICON))?];
        let lexicon = Lexicon::parse(&sources[0], LEXICON)?;
        let mut rows = Vec::new();
        for path in paths {
            let text = fs::read_to_string(at(path))?;
            rows.extend(LabelledQuery::parse(&text, path)?);
            sources.push(text);
        }
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        let stamp = training::stamp(&sources);
        Ok(Self {
            lexicon,
            rows,
            stamp,
        })
    }

    fn train(&self) -> Outcome<training::Trained> {
        let settings = Settings::default();
        Ok(training::train(
            &self.lexicon,
            &self.rows,
            &settings,
            self.stamp,
        )?)
    }

    fn validate(&self, settings: &Settings) -> Outcome<CrossValidation> {
        Ok(training::cross_validate(
            &self.lexicon,
            &self.rows,
            settings,
        )?)
    }
}

/// The weights of all data, their report, and the line of `config/classifier-choice.txt` that
/// belongs to them.
fn report(all: &Data, shared: &Data) -> Outcome<(Vec<u8>, String, String)> {
    let (of_all, of_shared) = (all.train()?, shared.train()?);
    let dev = LabelledQuery::parse(&fs::read_to_string(at(DEV))?, DEV)?;
    let on_dev = |bytes: &[u8]| -> Outcome<Evaluation> {
        let weights = Arc::new(Weights::parse(bytes, WEIGHTS)?);
        let classifier = Classifier::new(&all.lexicon).with_weights(weights);
        Ok(Evaluation::of(&classifier, &dev))
    };
    let mut out = String::new();
    writeln!(
        out,
        "# How the weights in config/classifier.bin do. Written by the training.\n"
    )?;
    writeln!(
        out,
        "{} of {} features, {} bytes, temperature {:.2}\n",
        of_all.kept,
        of_all.features,
        of_all.bytes.len(),
        of_all.validation.temperature
    )?;
    for (title, found) in [
        (
            "Dev set, committed weights (only measured)",
            on_dev(&of_all.bytes)?.to_string(),
        ),
        (
            "Dev set, trained on the two shared train files alone",
            on_dev(&of_shared.bytes)?.to_string(),
        ),
        (
            "Cross-validation over all training data",
            folds(&of_all.validation),
        ),
        (
            "Cross-validation over the two shared train files alone",
            folds(&of_shared.validation),
        ),
    ] {
        writeln!(out, "## {title}\n\n{found}")?;
    }
    writeln!(
        out,
        "## The surest mistakes of the cross-validation over all training data\n"
    )?;
    for mistake in of_all.validation.together.mistakes.iter().take(SHOWN) {
        let row = &mistake.row;
        writeln!(
            out,
            "{:.2} {} classified as {} ({}): {}",
            mistake.confidence, row.query_type, mistake.predicted, row.language, row.query
        )?;
    }
    let taken = tried(&Settings::default(), &of_all.validation);
    Ok((of_all.bytes, out, taken))
}

/// The accuracy of each fold, its spread, and the result of all folds together.
fn folds(validation: &CrossValidation) -> String {
    let each = validation.folds.iter();
    let each = each.map(|fold| format!("{:.1}", 100.0 * fold.total.accuracy()));
    let (mean, deviation) = validation.accuracy();
    format!(
        "folds: {} %, mean {:.1}, standard deviation {:.1}\n\n{}",
        each.collect::<Vec<_>>().join(", "),
        100.0 * mean,
        100.0 * deviation,
        validation.together
    )
}

/// The chosen settings, and the effect of changing each.
fn choice(data: &Data) -> Outcome<String> {
    let taken = Settings::default();
    let gains = |words, letters| Settings {
        gains: [words, letters],
        ..taken
    };
    let penalty = |penalty| Settings { penalty, ..taken };
    let fewest = |fewest_rows| Settings {
        fewest_rows,
        ..taken
    };
    let kept = |kept| Settings { kept, ..taken };
    let mut out = "# Cross-validation over all training data: the settings that are taken, and others\n\n\
                   words  letters  penalty  fewest rows    kept   accuracy  deviation  temperature\n"
        .to_owned();
    for settings in [
        taken,
        gains(1.0, 1.0),
        gains(1.0, 1.8),
        gains(1.4, 1.4),
        gains(0.7, 1.4),
        penalty(0.003),
        penalty(0.03),
        fewest(1),
        Settings {
            kept: 0.4,
            ..fewest(1)
        },
        fewest(3),
        kept(0.5),
        kept(0.65),
        kept(0.8),
        kept(1.0),
    ] {
        let line = tried(&settings, &data.validate(&settings)?);
        println!("{line}");
        writeln!(out, "{line}")?;
    }
    Ok(out)
}

/// A line of `config/classifier-choice.txt`.
fn tried(settings: &Settings, found: &CrossValidation) -> String {
    let (mean, deviation) = found.accuracy();
    let Settings {
        gains: [words, letters],
        penalty,
        fewest_rows,
        kept,
    } = *settings;
    format!(
        "{words:5.1} {letters:8.1} {penalty:8.3} {fewest_rows:12} {kept:7.3} {:9.2}% {:9.2}% {:12.2}",
        100.0 * mean,
        100.0 * deviation,
        found.temperature
    )
}
