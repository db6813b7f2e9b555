//! `oracle ctl`: the control channel on the command line.
//!
//! A command line becomes a verb, and its answer text; the server decides what is allowed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use futures_util::TryStreamExt as _;
use secrecy::SecretString;

use super::{
    CliError, CliResult, context::CommandContext, exit, interrupts::Interrupts,
    runtime::on_runtime, terminal::Terminal,
};
use crate::{
    control::{Client, ClientError, Subject, Verb, Watching, WireUpdate, socket},
    model::{Owner, SessionKey, TenantId},
};
use oracle_config::Environment;
use oracle_journal::sqlite::{Inspection, processes};

pub(super) mod output;

const KEY: &str = "ORACLE_API_KEY";

/// The server to control.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct ServerArgs {
    /// Server to connect to [default: the one that uses the data directory]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// File that contains the key for --url [default: the variable ORACLE_API_KEY]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub key_file: Option<PathBuf>,
    /// Process id of the server, if several use the data directory
    #[arg(long, value_name = "PID", conflicts_with = "url")]
    pub pid: Option<u32>,
}

/// `oracle ctl`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct CtlArgs {
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The command to run.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// A subcommand of `oracle ctl`: a verb, or a subscription.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub enum CtlCommand {
    /// A verb.
    #[command(flatten, next_display_order = 0)]
    Do(Verb),
    /// Watch new events of one session or all sessions
    // After `tail`: commands of the same place are listed by name.
    #[command(display_order = 3)]
    Watch(Watching),
}

pub(super) fn run(args: &CtlArgs, context: CommandContext<'_>) -> CliResult {
    let folder = context.directory()?;
    let done = on_runtime(Box::pin(async {
        let session = match &args.command {
            CtlCommand::Do(verb) => verb.session(),
            CtlCommand::Watch(wanted) => wanted.session.as_ref(),
        };
        let client = connect(&args.server, session, &folder, context.environment).await?;
        match &args.command {
            CtlCommand::Do(verb) => {
                output::answer(&client.carry_out(verb).await?, context.terminal)
            }
            CtlCommand::Watch(wanted) => watch(&client, wanted, context.terminal).await,
        }
    }));
    let Err(CliError::Refused(refused)) = done else {
        return done;
    };
    if context.terminal.json {
        context.terminal.out.json(&refused)?;
    }
    let code = exit::of_order(refused.code);
    Err(CliError::with_code(code, [refused.message]))
}

/// Connects to the server at the URL, or to one that uses the data directory: of several, to the owner
/// of the session, or to the first if it has none. Without a session, several are an error.
pub(super) async fn connect(
    args: &ServerArgs,
    session: Option<&Subject>,
    folder: &Path,
    environment: &Environment,
) -> CliResult<Client> {
    if let Some(url) = &args.url {
        let key = key(args.key_file.as_deref(), environment)?;
        return Ok(Client::http(url, key)?);
    }
    let mut servers = servers(folder, args.pid).await?;
    if servers.len() > 1 {
        let Some(session) = session else {
            let pids = servers.iter().filter_map(|(pid, _)| *pid);
            let pids: Vec<String> = pids.map(|pid| pid.to_string()).collect();
            return Err(CliError::usage(format_args!(
                "several servers use this data directory (process ids {}): choose one with --pid",
                pids.join(", ")
            )));
        };
        let owner = owner(folder, &session.of(&TenantId::local())).and_then(|owner| owner.pid);
        servers.sort_by_key(|(pid, _)| *pid != owner);
    }
    let first = servers.into_iter().next();
    first.map(|(_, client)| client).ok_or_else(|| {
        let which = args.pid.map(|pid| format!(" with the process id {pid}"));
        CliError::failed(format_args!(
            "no server{} uses the data directory {}: start one with `oracle serve`, or give its \
             address with --url",
            which.unwrap_or_default(),
            folder.display()
        ))
    })
}

fn owner(folder: &Path, session: &SessionKey) -> Option<Owner> {
    Inspection::open(folder).ok()?.owner(session).ok()?
}

/// Connects to the servers that use the data directory, in the order of their process ids.
async fn servers(folder: &Path, pid: Option<u32>) -> CliResult<Vec<(Option<u32>, Client)>> {
    let unusable = |path: &Path, error: io::Error| {
        CliError::failed(format_args!(
            "cannot use `{}`: {error}; check its owner and permissions",
            path.display()
        ))
    };
    let mut there = processes(folder).map_err(|error| unusable(folder, error))?;
    there.retain(|owner| owner.socket.is_some() && (pid.is_none() || owner.pid == pid));
    if there.is_empty() && pid.is_none() {
        // A server that is starting has not announced its socket yet.
        let socket = Some(folder.join(socket::NAME));
        there.push(Owner {
            pid,
            socket,
            url: None,
        });
    }
    let mut servers = Vec::new();
    for Owner { pid, socket, .. } in there {
        let path = socket.unwrap_or_default();
        match Client::unix(&path).await {
            Ok(client) => servers.push((pid, client)),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {}
                _ => return Err(unusable(&path, error)),
            },
        }
    }
    servers.sort_by_key(|(pid, _)| *pid);
    Ok(servers)
}

pub(super) fn key(
    file: Option<&Path>,
    environment: &Environment,
) -> CliResult<Option<SecretString>> {
    let Some(path) = file else {
        let key = environment.get(KEY).and_then(|key| key.to_str());
        return Ok(key.map(|key| key.trim().into()));
    };
    let key = fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        CliError::usage(format_args!(
            "cannot read the key file `{path}`: {error}; name a readable one with --key-file"
        ))
    })?;
    Ok(Some(key.trim().into()))
}

/// Prints records until Ctrl-C, or until the server has ended.
async fn watch(client: &Client, wanted: &Watching, terminal: &mut Terminal) -> CliResult {
    let mut interrupts = Interrupts::listen();
    let mut events = client.watch(wanted).await?;
    loop {
        let seen = tokio::select! {
            seen = events.try_next() => seen?,
            () = interrupts.pressed() => return Ok(()),
        };
        let Some(seen) = seen else {
            let why = "the server closed the control channel: check that it is still running";
            return Err(CliError::failed(why));
        };
        output::update(&seen, terminal)?;
        if matches!(seen, WireUpdate::End { .. }) {
            return Ok(());
        }
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Url { .. } => Self::usage(error),
            error => Self::Refused(error.into()),
        }
    }
}
