//! `oracle ctl` and `oracle top`: finds the server and connects to it.

use std::{fs, io, path::Path};

use secrecy::SecretString;

use super::{CommandContext, run::on_runtime};
#[cfg(feature = "tui")]
use crate::cli::top::{self, TopArgs};
use crate::{
    cli::{
        CliError, Environment,
        ctl::{self, CtlArgs, ServerArgs},
    },
    control::{Client, Subject, socket},
    journal::sqlite::{Inspection, processes},
    model::{Owner, SessionKey, TenantId},
};

const KEY: &str = "ORACLE_API_KEY";

pub(super) fn ctl(ctl: &CtlArgs, context: CommandContext<'_>) -> Result<(), CliError> {
    let (folder, environment) = (context.directory()?, context.environment);
    let find =
        async |session: Option<&Subject>| connect(&ctl.server, session, &folder, environment).await;
    on_runtime(Box::pin(ctl::run(&ctl.command, find, context.terminal)))
}

/// Opens the live table. It connects again whenever the connection is lost.
#[cfg(feature = "tui")]
pub(super) fn top(args: &TopArgs, context: CommandContext<'_>) -> Result<(), CliError> {
    let (folder, environment) = (context.directory()?, context.environment);
    let find = async || connect(&args.server, None, &folder, environment).await;
    on_runtime(Box::pin(top::run(args, find, context.terminal)))
}

/// Connects to the server at the URL, or to one that uses the data directory: of several, to the owner
/// of the session, or to the first if it has none. Without a session, several are an error.
async fn connect(
    args: &ServerArgs,
    session: Option<&Subject>,
    folder: &Path,
    environment: &Environment,
) -> Result<Client, CliError> {
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
async fn servers(folder: &Path, pid: Option<u32>) -> Result<Vec<(Option<u32>, Client)>, CliError> {
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
) -> Result<Option<SecretString>, CliError> {
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
