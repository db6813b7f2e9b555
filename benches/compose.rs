//! Composing a prompt, with and without the cache.

use std::sync::Arc;

use divan::{Bencher, black_box};
use oracle_agent::{
    model::{QueryType, tool::ToolNeed},
    prompt::{Cache, ComposeInput, Composer, Error, Prompts, TOKEN_BUDGET, ToolLine, Variables},
};

fn main() {
    divan::main();
}

fn composer() -> Result<Composer, Error> {
    Ok(Composer::new(Prompts::builtin()?, TOKEN_BUDGET))
}

/// A session with twenty tools and a project context at its cap.
fn variables() -> Variables {
    let needs = [
        ToolNeed::Code,
        ToolNeed::Vault,
        ToolNeed::Web,
        ToolNeed::General,
    ];
    let tools = (0..20)
        .zip(needs.into_iter().cycle())
        .map(|(number, serves)| ToolLine {
            name: format!("tool_number_{number}"),
            summary: "Searches one of the sources that a session may have at hand.".to_owned(),
            serves,
        });
    Variables {
        project_name: "bench".to_owned(),
        project_context: "A line about the project. ".repeat(300),
        max_turns: Some(30),
        tools: tools.collect(),
        sub_agents: Vec::new(),
    }
}

fn inputs() -> [ComposeInput; 5] {
    let variables = Arc::new(variables().prepare());
    QueryType::ALL.map(|query_type| ComposeInput::new(Arc::clone(&variables), query_type))
}

/// A start or reload: compiles and checks seven files.
#[divan::bench]
fn load() -> Result<Prompts, Error> {
    Prompts::builtin()
}

/// Once per session.
#[divan::bench]
fn prepare(bencher: Bencher<'_, '_>) {
    let variables = variables();
    bencher.bench(|| black_box(&variables).prepare());
}

/// All five types without a cache: five prompts an iteration.
#[divan::bench]
fn five_cold(bencher: Bencher<'_, '_>) {
    let (composer, inputs) = (composer(), inputs());
    bencher.bench(|| {
        let composer = composer.as_ref().map_err(Error::clone)?;
        inputs
            .iter()
            .map(|input| composer.compose(black_box(input)))
            .collect::<Result<Vec<_>, _>>()
    });
}

/// All five types from a filled cache: five prompts an iteration.
#[divan::bench]
fn five_cached(bencher: Bencher<'_, '_>) {
    let inputs = inputs();
    let (composer, mut cache) = (composer().map(Arc::new), Cache::default());
    let mut compose = || {
        let composer = composer.as_ref().map_err(Error::clone)?;
        inputs
            .iter()
            .map(|input| cache.compose(composer, black_box(input)))
            .collect::<Result<Vec<_>, _>>()
    };
    // The first round fills the cache.
    let _ = black_box(compose());
    bencher.bench_local(compose);
}
