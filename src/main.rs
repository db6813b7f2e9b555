//! The `oracle` binary: arguments, environment and standard streams in, an exit code out.

use std::{env, io::Write, process::ExitCode};

use oracle_agent::{
    cli::{self, Args, CliError, Environment, terminal::Terminal},
    telemetry::{self, LogWriter},
};

#[cfg(feature = "server")]
use oracle_agent::cli::Command;
#[cfg(feature = "mcp")]
use oracle_agent::tool::mcp;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Programs of the same user, such as MCP servers, cannot read its environment and memory.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    #[cfg(feature = "mcp")]
    let mut args = env::args_os().skip(1);
    #[cfg(feature = "mcp")]
    if args.next().is_some_and(|first| first == mcp::GUARD) {
        return match mcp::guard(args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "{error}");
                ExitCode::FAILURE
            }
        };
    }
    let environment = Environment::new(env::vars_os());
    let mut terminal = Terminal::standard(&environment);
    let code = run(&environment, &mut terminal).unwrap_or_else(|stop| stop.report(&mut terminal));
    ExitCode::from(code)
}

fn run(environment: &Environment, terminal: &mut Terminal) -> Result<u8, CliError> {
    let args = Args::read(env::args_os())?;
    let writer = match args.command {
        #[cfg(feature = "server")]
        Command::Serve(_) => LogWriter::Background,
        _ => LogWriter::Blocking,
    };
    let _log = telemetry::start(args.options.verbose, environment.get("RUST_LOG"), writer);
    let code = cli::run(&args, environment, terminal)?;
    terminal.out.flush()?;
    Ok(code)
}
