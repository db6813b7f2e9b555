//! Prints the features of the labelled queries on standard input, one JSON line each, for
//! `config/train_classifier.py`.

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{error::Error, io};

use oracle_agent::query::{LabelledQuery, Lexicon, training_rows};

fn main() -> Result<(), Box<dyn Error>> {
    let rows = LabelledQuery::parse(&io::read_to_string(io::stdin())?, "standard input")?;
    for row in training_rows(&Lexicon::builtin()?, &rows) {
        println!("{}", serde_json::to_string(&row)?);
    }
    Ok(())
}
