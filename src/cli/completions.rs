//! `oracle completions`: what a shell needs to complete command lines.

use std::io::Write;

use clap_complete::Shell;

use super::{Stop, terminal::Terminal, tree};

/// `oracle completions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub struct CompletionsArgs {
    /// Which shell
    pub shell: Shell,
}

/// Prints the completions.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: CompletionsArgs, terminal: &mut Terminal) -> Result<(), Stop> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree(), "oracle", &mut script);
    terminal.out.write_all(&script)?;
    Ok(())
}
