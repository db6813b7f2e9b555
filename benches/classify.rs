//! How long one classification takes (architecture, "Speed"). Prints figures, asserts nothing.

use divan::{Bencher, black_box};
use oracle_agent::query::{Classifier, Context, Lexicon};

fn main() {
    divan::main();
}

const TYPICAL: &str = "Could you tell me where the retry handler decides whether a failed payment \
                       is tried again, and which config key sets the limit?";

fn bench(bencher: Bencher<'_, '_>, query: &str) {
    let Ok(lexicon) = Lexicon::builtin() else {
        return;
    };
    let classifier = Classifier::new(&lexicon);
    bencher.bench_local(|| classifier.classify(black_box(query), Context::Fresh));
}

#[divan::bench]
fn short(bencher: Bencher<'_, '_>) {
    bench(bencher, "thanks, that helps");
}

#[divan::bench]
fn typical(bencher: Bencher<'_, '_>) {
    bench(bencher, TYPICAL);
}

#[divan::bench]
fn four_thousand_characters(bencher: Bencher<'_, '_>) {
    bench(bencher, &TYPICAL.repeat(4_000 / TYPICAL.len() + 1));
}

#[divan::bench]
fn compile_the_lexicon(bencher: Bencher<'_, '_>) {
    let Ok(lexicon) = Lexicon::builtin() else {
        return;
    };
    bencher.bench_local(|| Classifier::new(black_box(&lexicon)));
}
