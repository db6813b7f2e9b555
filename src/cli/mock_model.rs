//! `oracle dev mock-model`: a model server for testing a set-up.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::NonZeroU16,
};

use tokio::runtime::Builder;

use super::{CliError, CliResult, interrupts::Interrupts, runtime::on, terminal::Terminal};
use crate::mock::{FaultKind, Mock, Settings};

/// `oracle dev mock-model`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct MockModelArgs {
    /// Address to listen on
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub host: IpAddr,
    /// Port to listen on; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 8099)]
    pub port: u16,
    /// Number of worker threads
    #[arg(long, value_name = "N", default_value_t = NonZeroU16::MIN)]
    pub threads: NonZeroU16,
    /// List the available faults and exit
    #[arg(long)]
    pub list_faults: bool,
    /// The behaviour of the model.
    #[command(flatten)]
    pub settings: Settings,
}

/// Serves until Ctrl-C, or lists the faults.
pub(super) fn run(args: &MockModelArgs, terminal: &mut Terminal) -> CliResult {
    if args.list_faults {
        return list_faults(terminal);
    }
    let mut runtime = match args.threads.get() {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    runtime.worker_threads(args.threads.get().into());
    on(runtime, serve(args, terminal))
}

/// Prints the names and effects of all faults.
fn list_faults(terminal: &mut Terminal) -> CliResult {
    let width = FaultKind::ALL.iter().map(|kind| kind.name().len()).max();
    let width = width.unwrap_or_default() + "=N".len();
    let mut text = String::new();
    for kind in FaultKind::ALL {
        let number = kind.number();
        let name = format!("{}{}", kind.name(), number.map_or("", |_| "=N"));
        let meaning = number.map_or_else(String::new, |number| format!("; N: {number}"));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:width$}  {}{meaning}", kind.what());
    }
    Ok(terminal.write(&text)?)
}

async fn serve(args: &MockModelArgs, terminal: &mut Terminal) -> CliResult {
    let mut interrupts = Interrupts::listen();
    let address = SocketAddr::from((args.host, args.port));
    let mock = Mock::at(address, args.settings.clone())
        .await
        .map_err(|error| {
            CliError::failed(format_args!(
                "cannot listen on {address} ({error}): choose a free port, or 0 for any"
            ))
        })?;
    terminal.line(mock.url())?;
    interrupts.pressed().await;
    mock.shut_down().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::cli::{Args, Command, DevCommand};

    fn args(line: &str) -> MockModelArgs {
        let words = ["oracle", "mock-model"]
            .into_iter()
            .chain(line.split_whitespace());
        match Args::read(words.map(Into::into)).unwrap().command {
            Command::Bare(DevCommand::MockModel(args)) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_set_the_behaviour() {
        let line = "--turns 2 --fault 429@1 --fault cut --models a,b --latency 20ms..80ms";
        let settings = args(line).settings;
        let want = Settings {
            turns: NonZeroU32::new(2).unwrap(),
            faults: ["429@1", "cut"].map(|fault| fault.parse().unwrap()).into(),
            models: vec!["a".into(), "b".into()],
            latency: "20ms..80ms".parse().unwrap(),
            ..Settings::default()
        };
        assert_eq!(settings, want);
        assert_eq!(args("").settings, Settings::default());
    }
}
