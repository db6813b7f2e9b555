//! `oracle ctl` and `oracle top`: finds the servers and connects to them.

use std::{fs, io, path::Path};

use secrecy::SecretString;

use super::{CommandContext, run::on_runtime};
#[cfg(feature = "tui")]
use crate::cli::top::{self, TopArgs};
use crate::{
    cli::{
        CliError, Environment,
        ctl::{self, CtlArgs, Server, ServerArgs},
    },
    control::{Client, socket},
    journal::sqlite::{Inspection, processes},
    model::{Owner, SessionKey},
};

const KEY: &str = "ORACLE_API_KEY";

pub(super) fn ctl(ctl: &CtlArgs, context: CommandContext<'_>) -> Result<(), CliError> {
    let folder = context.directory()?;
    on_runtime(Box::pin(async {
        let servers = connect(&ctl.server, &folder, context.environment).await?;
        let owner = |session: &SessionKey| owner(&folder, session);
        ctl::run(&ctl.command, &servers, owner, context.terminal).await
    }))
}

/// Opens the live table. It connects again whenever the connection is lost.
#[cfg(feature = "tui")]
pub(super) fn top(args: &TopArgs, context: CommandContext<'_>) -> Result<(), CliError> {
    let (folder, environment) = (context.directory()?, context.environment);
    let find: &top::Connect<'_> = &|| Box::pin(connect(&args.server, &folder, environment));
    let owner = |session: &SessionKey| owner(&folder, session);
    on_runtime(Box::pin(top::run(args, find, &owner, context.terminal)))
}

async fn connect(
    args: &ServerArgs,
    folder: &Path,
    environment: &Environment,
) -> Result<Vec<Server>, CliError> {
    let Some(url) = &args.url else {
        return servers(folder, args.pid).await;
    };
    let client = Client::http(url, key(args.key_file.as_deref(), environment)?)?;
    Ok(vec![Server { pid: None, client }])
}

fn owner(folder: &Path, session: &SessionKey) -> Option<Owner> {
    Inspection::open(folder).ok()?.owner(session).ok()?
}

async fn servers(folder: &Path, pid: Option<u32>) -> Result<Vec<Server>, CliError> {
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
            Ok(client) => servers.push(Server { pid, client }),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {}
                _ => return Err(unusable(&path, error)),
            },
        }
    }
    if servers.is_empty() {
        let which = pid.map_or_else(String::new, |pid| format!(" with the process id {pid}"));
        return Err(CliError::failed(format_args!(
            "no server{which} uses the data directory {}: start one with `oracle serve`, or give \
             its address with --url",
            folder.display()
        )));
    }
    servers.sort_by_key(|server| server.pid);
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
