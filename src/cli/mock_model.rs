//! `oracle dev mock-model`: a model server for testing a set-up.

use std::{
    fmt::Write as _,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    num::{NonZeroU16, NonZeroU32},
    ops::Not,
    path::{Path, PathBuf},
};

use serde::Serialize;
use toml::Table;

use super::{CliError, interrupts::Interrupts, terminal::Terminal};
use crate::mock::{FaultKind, Mock, Settings};

const TIMING_HEADING: &str = "Timing and faults";

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
    /// TOML file with the options below, named without `--`
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// The behavior that the command line sets.
    #[command(flatten)]
    pub behaviour: Behaviour,
}

/// The behavior that the command line sets.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize)]
#[command(next_help_heading = "Replies")]
#[serde(rename_all = "kebab-case")]
pub struct Behaviour {
    /// Number of replies to a question; all but the last ask for another turn [default: 3]
    #[arg(long, value_name = "N")]
    turns: Option<NonZeroU32>,
    /// Call the first tool of the request in the first reply to a question
    #[arg(long)]
    #[serde(skip_serializing_if = "Not::not")]
    tools: bool,
    /// Arguments of that call, sent verbatim [default: arguments that match the tool's schema]
    #[arg(long, value_name = "JSON")]
    tool_arguments: Option<String>,
    /// Play a script (see docs/scripts.md)
    #[arg(long, value_name = "FILE", conflicts_with = "echo")]
    script: Option<PathBuf>,
    /// Repeat the user's last message
    #[arg(long)]
    #[serde(skip_serializing_if = "Not::not")]
    echo: bool,
    /// Length of a reply in characters, without its signal [default: 400]
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Number of chunks in a streamed text [default: 20]
    #[arg(long, value_name = "N")]
    chunks: Option<NonZeroU32>,
    /// Models to offer, separated by commas [default: any]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    models: Vec<String>,

    /// Delay before an answer: `20ms`, or a random time in `20ms..80ms`
    #[arg(long, value_name = "TIME", help_heading = TIMING_HEADING)]
    latency: Option<String>,
    /// Delay between the events of a stream
    #[arg(long, value_name = "TIME", help_heading = TIMING_HEADING)]
    gap: Option<String>,
    /// Fault to inject: `NAME` into all requests, `NAME:0.05` into a share, `NAME@3,7..9` into
    /// these; can be repeated
    #[arg(long = "fault", value_name = "FAULT", help_heading = TIMING_HEADING)]
    #[serde(rename = "fault", skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
    /// Seed for random choices [default: 0]
    #[arg(long, value_name = "N", help_heading = TIMING_HEADING)]
    seed: Option<u64>,

    /// Maximum requests per minute; others get 429
    #[arg(long, value_name = "N", help_heading = "Limits and checks")]
    requests_per_minute: Option<NonZeroU32>,
    /// Maximum tokens per minute, sent and received (estimated)
    #[arg(long, value_name = "N", help_heading = "Limits and checks")]
    tokens_per_minute: Option<NonZeroU32>,
    /// Maximum burst of requests [default: the requests of a minute]
    #[arg(long, value_name = "N", help_heading = "Limits and checks")]
    burst: Option<NonZeroU32>,
    /// Maximum number of concurrent requests
    #[arg(long, value_name = "N", help_heading = "Limits and checks")]
    concurrency: Option<NonZeroU32>,
    /// Key that requests must present; others get 401
    #[arg(long, value_name = "KEY", help_heading = "Limits and checks")]
    key: Option<String>,
    /// Reject requests that break a rule, instead of only reporting them
    #[arg(long, help_heading = "Limits and checks")]
    #[serde(skip_serializing_if = "Not::not")]
    strict: bool,
    /// Number of requests to keep for `GET /requests` [default: 256]
    #[arg(long, value_name = "N", help_heading = "Limits and checks")]
    keep: Option<usize>,
}

impl MockModelArgs {
    /// The settings: defaults, overridden by the file, then by the command line.
    pub fn settings(&self) -> Result<Settings, CliError> {
        let mut table = match &self.settings {
            Some(path) => table_of(path)?,
            None => Table::new(),
        };
        // The command line's choice of two replaces the file's other one.
        if self.behaviour.script.is_some() {
            table.remove("echo");
        }
        if self.behaviour.echo {
            table.remove("script");
        }
        table.extend(Table::try_from(&self.behaviour).map_err(CliError::failed)?);
        let settings = table.try_into::<Settings>();
        settings.map_err(|error| CliError::usage(error.message()))
    }
}

fn table_of(path: &Path) -> Result<Table, CliError> {
    let text = fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        CliError::usage(format_args!(
            "cannot read `{path}` ({error}): use a readable file"
        ))
    })?;
    // The error names its line.
    Settings::parse(&text, path).map_err(CliError::usage)?;
    text.parse().map_err(CliError::usage)
}

/// Prints the names and effects of all faults.
pub fn list_faults(terminal: &mut Terminal) -> Result<(), CliError> {
    let width = FaultKind::ALL.iter().map(|kind| kind.name().len()).max();
    let width = width.unwrap_or_default() + "=N".len();
    let mut text = String::new();
    for kind in FaultKind::ALL {
        let number = kind.number();
        let name = format!("{}{}", kind.name(), number.map_or("", |_| "=N"));
        // Writing to a string does not fail.
        let _ = write!(text, "{name:width$}  {}", kind.what());
        let _ = match number {
            Some(number) => writeln!(text, "; N: {number}"),
            None => writeln!(text),
        };
    }
    Ok(terminal.write(&text)?)
}

/// Serves until Ctrl-C.
pub async fn run(
    address: SocketAddr,
    settings: Settings,
    terminal: &mut Terminal,
) -> Result<(), CliError> {
    let mut interrupts = Interrupts::listen();
    let mock = Mock::at(address, settings).await.map_err(|error| {
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
    fn command_line_overrides_the_settings_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.toml");
        fs::write(
            &path,
            "turns = 5\nsize = 7\nfault = [\"500\"]\nstrict = true\n",
        )
        .unwrap();
        let line = format!(
            "--settings {} --turns 2 --fault 429@1 --fault cut --models a,b",
            path.display()
        );
        let settings = args(&line).settings().unwrap();
        let faults = ["429@1", "cut"].map(|fault| fault.parse().unwrap());
        assert_eq!(settings.faults, faults);
        assert_eq!(
            (settings.turns.get(), settings.size, settings.strict),
            (2, 7, true)
        );
        assert_eq!(settings.models, ["a", "b"]);
    }

    #[test]
    fn command_line_overrides_the_reply_source_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("s.json");
        fs::write(&script, r#"{"turns": [{"reply": "hello"}]}"#).unwrap();
        let path = folder.path().join("m.toml");
        for (file, line, echo) in [
            (format!("script = {script:?}"), "--echo".to_owned(), true),
            (
                "echo = true".to_owned(),
                format!("--script {}", script.display()),
                false,
            ),
        ] {
            fs::write(&path, &file).unwrap();
            let line = format!("--settings {} {line}", path.display());
            let settings = args(&line).settings().unwrap();
            let who = (settings.echo, settings.script.is_some());
            assert_eq!(who, (echo, !echo), "{file}");
        }
    }
}
