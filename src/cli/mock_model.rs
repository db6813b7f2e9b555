//! `oracle mock-model`: a model server for those who test their own set-up.

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

use super::{Stop, interrupts::Interrupts, terminal::Terminal};
use crate::mock::{FaultKind, Mock, Settings};

const WHEN: &str = "When it says it, and what goes wrong";

/// `oracle mock-model`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct MockModelArgs {
    /// Address to serve on
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub host: IpAddr,
    /// Port to serve on; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8099)]
    pub port: u16,
    /// Threads that serve
    #[arg(long, value_name = "N", default_value_t = NonZeroU16::MIN)]
    pub threads: NonZeroU16,
    /// List the faults, and stop
    #[arg(long)]
    pub list_faults: bool,
    /// TOML file with the settings below, by their names without `--`
    #[arg(long, value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// How it behaves, as far as the command line says it.
    #[command(flatten)]
    pub behaviour: Behaviour,
}

/// How it behaves, as far as the command line says it.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args, Serialize)]
#[command(next_help_heading = "What it says")]
#[serde(rename_all = "kebab-case")]
pub struct Behaviour {
    /// Replies to a question; all but the last ask for another turn [default: 3]
    #[arg(long, value_name = "N")]
    turns: Option<NonZeroU32>,
    /// Call the request's first tool in the first reply to a question
    #[arg(long)]
    #[serde(skip_serializing_if = "Not::not")]
    tools: bool,
    /// Arguments of that call, as they are [default: some that fit the tool's schema]
    #[arg(long, value_name = "JSON")]
    tool_arguments: Option<String>,
    /// Say what a script says (see docs/scripts.md)
    #[arg(long, value_name = "FILE", conflicts_with = "echo")]
    script: Option<PathBuf>,
    /// Say what the user said
    #[arg(long)]
    #[serde(skip_serializing_if = "Not::not")]
    echo: bool,
    /// Characters of a reply, without its signal [default: 400]
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// Pieces of a streamed text [default: 20]
    #[arg(long, value_name = "N")]
    chunks: Option<NonZeroU32>,
    /// Models that there are, with commas between them [default: any]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    models: Vec<String>,

    /// Before an answer: `20ms`, or anything in `20ms..80ms`
    #[arg(long, value_name = "TIME", help_heading = WHEN)]
    latency: Option<String>,
    /// Between the events of a stream
    #[arg(long, value_name = "TIME", help_heading = WHEN)]
    gap: Option<String>,
    /// What goes wrong: `NAME` always, `NAME:0.05` of all requests, `NAME@3,7..9` for these; may be
    /// given more than once
    #[arg(long = "fault", value_name = "FAULT", help_heading = WHEN)]
    #[serde(rename = "fault", skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
    /// What chance goes by [default: 0]
    #[arg(long, value_name = "N", help_heading = WHEN)]
    seed: Option<u64>,

    /// Most requests a minute; more get 429
    #[arg(long, value_name = "N", help_heading = "What it demands")]
    requests_per_minute: Option<NonZeroU32>,
    /// Most tokens a minute, sent and received, estimated
    #[arg(long, value_name = "N", help_heading = "What it demands")]
    tokens_per_minute: Option<NonZeroU32>,
    /// Requests that may come at once [default: those of a minute]
    #[arg(long, value_name = "N", help_heading = "What it demands")]
    burst: Option<NonZeroU32>,
    /// Most requests at the same time
    #[arg(long, value_name = "N", help_heading = "What it demands")]
    concurrency: Option<NonZeroU32>,
    /// Key that requests must have; others get 401
    #[arg(long, value_name = "KEY", help_heading = "What it demands")]
    key: Option<String>,
    /// Refuse a request that breaks a rule, instead of only telling of it
    #[arg(long, help_heading = "What it demands")]
    #[serde(skip_serializing_if = "Not::not")]
    strict: bool,
    /// Requests that are kept for `GET /requests` [default: 256]
    #[arg(long, value_name = "N", help_heading = "What it demands")]
    keep: Option<usize>,
}

impl MockModelArgs {
    /// How it behaves: by default, as the file says, as the command line says.
    pub fn settings(&self) -> Result<Settings, Stop> {
        let mut table = match &self.settings {
            Some(path) => table_of(path)?,
            None => Table::new(),
        };
        // What is said is one of two; the file may have chosen the other one.
        if self.behaviour.script.is_some() {
            table.remove("echo");
        }
        if self.behaviour.echo {
            table.remove("script");
        }
        table.extend(Table::try_from(&self.behaviour).map_err(Stop::failed)?);
        let settings = table.try_into::<Settings>();
        settings.map_err(|error| Stop::usage(error.message()))
    }
}

fn table_of(path: &Path) -> Result<Table, Stop> {
    let text = fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        Stop::usage(format_args!(
            "`{path}` cannot be read ({error}): use a file that exists and that you may read"
        ))
    })?;
    // What is wrong is told with its line.
    Settings::parse(&text, path).map_err(Stop::usage)?;
    text.parse().map_err(Stop::usage)
}

/// Prints the names of all faults, and what they do.
pub fn list_faults(terminal: &mut Terminal) -> Result<(), Stop> {
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
) -> Result<(), Stop> {
    let mut interrupts = Interrupts::listen();
    let mock = Mock::at(address, settings).await.map_err(|error| {
        Stop::failed(format_args!(
            "{address} cannot be served on ({error}): name a free port, or 0 for any"
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
    use crate::cli::{Args, Command};

    fn args(line: &str) -> MockModelArgs {
        let words = ["oracle", "mock-model"]
            .into_iter()
            .chain(line.split_whitespace());
        match Args::read(words.map(Into::into)).unwrap().command {
            Command::MockModel(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
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
    fn the_command_line_says_who_speaks_whomever_the_file_named() {
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
