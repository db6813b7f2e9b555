//! Time and allocations of one classification. Prints figures and checks none.

use std::sync::Arc;

use divan::{AllocProfiler, Bencher, black_box};
use oracle_agent::query::{Classifier, Lexicon, QueryContext, Weights};

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const TYPICAL: &str = "Could you tell me where the retry handler decides whether a failed payment \
                       is tried again, and which config key sets the limit?";
const HAN: &str = "你能告诉我重试逻辑在哪里决定失败的支付要不要再试一次，上限是哪个配置项吗？";

fn lexicon() -> Classifier {
    Lexicon::builtin().map_or_else(
        |_| Classifier::new(&Lexicon::default()),
        |l| Classifier::new(&l),
    )
}

fn bench(bencher: Bencher<'_, '_>, query: &str) {
    let Ok(weights) = Weights::builtin() else {
        return;
    };
    let classifier = lexicon().with_weights(Arc::new(weights));
    bencher.bench_local(|| classifier.classify(black_box(query), QueryContext::Fresh));
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
fn after_something_said(bencher: Bencher<'_, '_>) {
    let Ok(weights) = Weights::builtin() else {
        return;
    };
    let classifier = lexicon().with_weights(Arc::new(weights));
    let context = QueryContext::Following("It is in the gateway, next to the rate limits.");
    bencher.bench_local(|| classifier.classify(black_box("zzxqj vvkwp ggrbt whkn that"), context));
}

#[divan::bench]
fn four_thousand_characters(bencher: Bencher<'_, '_>) {
    bench(bencher, &TYPICAL.repeat(4_000 / TYPICAL.len() + 1));
}

#[divan::bench]
fn four_thousand_characters_of_han(bencher: Bencher<'_, '_>) {
    bench(bencher, &HAN.repeat(4_000 / HAN.chars().count() + 1));
}

#[divan::bench]
fn the_lexicon_alone(bencher: Bencher<'_, '_>) {
    let classifier = lexicon();
    bencher.bench_local(|| classifier.classify(black_box(TYPICAL), QueryContext::Fresh));
}

#[divan::bench]
fn compile_the_lexicon(bencher: Bencher<'_, '_>) {
    let Ok(lexicon) = Lexicon::builtin() else {
        return;
    };
    bencher.bench_local(|| Classifier::new(black_box(&lexicon)));
}

#[divan::bench]
fn read_the_weights(bencher: Bencher<'_, '_>) {
    bencher.bench_local(Weights::builtin);
}
