//! `oracle mcp`: serves the project's tools and conversations on the standard streams.

use std::io::{stdin, stdout};

use super::{CliError, CliResult, Interrupts, context::CommandContext, system::with_system};
use oracle_mcp::{serve, standard_stream};

pub(super) fn run(mut context: CommandContext<'_>) -> CliResult {
    let config = context.load_with_local_model()?.config;
    let (builder, storage) = context.prepare(&config)?;
    with_system(builder, Some(storage), async |oracle, _| {
        let mut ends = Interrupts::listen_to_machine();
        let input = standard_stream(&stdin()).map_err(CliError::failed)?;
        let output = standard_stream(&stdout()).map_err(CliError::failed)?;
        serve(oracle.clone(), input, output, ends.pressed()).await;
        Ok(())
    })
}
